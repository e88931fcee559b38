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

/// Whether a program has a section of sites.
fn has_sites(program: impl AsRef<OsStr>) -> bool {
    let sections = said(Command::new("objdump").arg("-h").arg(program.as_ref())).stdout;
    let sections = String::from_utf8_lossy(&sections);
    let has = |name| sections.split_whitespace().any(|word| word == name);
    assert!(has(".text"), "the sections of a program: {sections}");
    has("ft_sites")
}

#[test]
fn who_builds_the_program_can_build_it_without_sites() {
    ft_user::event!("test.site");
    assert!(has_sites(std::env::current_exe().expect("this program")));

    let program = build();
    assert!(!has_sites(&program));
    let balances = said(&mut Command::new(program)).stdout;
    assert!(balances.starts_with(b"[") && balances.ends_with(b"]\n"), "it runs as with them");
}
