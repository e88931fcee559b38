//! A program that is built with `--cfg ft_off` has no site, whatever features are on; one that is built without it has.
#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Builds `examples/embed.rs` with all features and without sites.
fn build() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("off");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--all-features", "--example", "embed"]);
    cargo.args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
    cargo.arg("--target-dir").arg(&target).env("RUSTFLAGS", "--cfg ft_off");
    said(cargo.env_remove("CARGO_ENCODED_RUSTFLAGS"));
    target.join("debug/examples/embed")
}

fn said(command: &mut Command) -> Output {
    let output = command.output().expect("it can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Bytes of a program's section of sites; 0 if it has none. What finds the section can be linked, so that it is there and empty.
fn bytes_of_sites(program: impl AsRef<OsStr>) -> u64 {
    let sections = said(Command::new("objdump").arg("-h").arg(program.as_ref())).stdout;
    let sections = String::from_utf8_lossy(&sections);
    let size = |name: &str| {
        let mut words = sections.split_whitespace().skip_while(|word| *word != name);
        words.nth(1).map(|size| u64::from_str_radix(size, 16).expect("a size"))
    };
    assert!(size(".text") > Some(0), "the sections of a program: {sections}");
    size("ft_sites").unwrap_or(0)
}

#[test]
fn who_builds_the_program_can_build_it_without_sites() {
    ft_user::event!("test.site");
    assert!(bytes_of_sites(std::env::current_exe().expect("this program")) > 0);

    let program = build();
    assert_eq!(bytes_of_sites(&program), 0);
    let balances = said(&mut Command::new(program)).stdout;
    assert!(balances.starts_with(b"[") && balances.ends_with(b"]\n"), "it runs as with them");
}
