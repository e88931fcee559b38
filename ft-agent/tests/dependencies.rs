//! aya-ebpf defines `memcpy` and its like for whatever links it, so it must never reach a host program.

use std::process::Command;

#[test]
fn the_agent_never_links_aya_ebpf() {
    let cargo = std::env::var_os("CARGO").expect("cargo runs the tests");
    let tree = Command::new(cargo)
        .args([
            "tree",
            "--offline",
            "--package",
            "ft-agent",
            "--edges",
            "normal",
            "--prefix",
            "none",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let tree = String::from_utf8_lossy(&tree.stdout).into_owned();
    assert!(tree.lines().any(|line| line.starts_with("ft-ebpf ")), "the tree is shown: {tree}");
    assert!(!tree.lines().any(|line| line.starts_with("aya-ebpf ")), "{tree}");
}
