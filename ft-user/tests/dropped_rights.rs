//! A process that has given up rights still switches its sites, or says why not.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

#[path = "common/c.rs"]
mod c;
mod common;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use c::{Link, build, compilers};
use common::Memory;

/// Runs the program; what it said, and the numbers of its events.
fn outcome(how: &str) -> Option<(Vec<String>, Vec<u64>)> {
    let compiler = compilers(&["gcc"]).pop()?;
    let name = format!("dropped-{how}");
    let flags = ["-std=gnu11", "-O2"];
    let program = build(compiler, &flags, &["tests/c/dropped.c"], Link::Shared, &name);
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("empty-root");
    std::fs::create_dir_all(&root).unwrap();
    let mut child = Command::new(program)
        .arg(how)
        .arg(root)
        .env("FT_SOCKET", "/nonexistent")
        .env_remove("FT_ENABLE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Whoever is not root may not look at a process that is not dumpable, but can before.
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let said: Vec<String> = lines.take_while(|line| line != "ready").collect();
    // SAFETY: takes no pointer.
    let is_root = unsafe { libc::geteuid() } == 0;
    let events = match is_root && said.len() > 1 {
        true => Memory::of(child.id()).take().into_iter().map(|event| event.words[0]).collect(),
        false => Vec::new(),
    };
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success(), "{how}: {said:?}");
    Some((said, events))
}

fn check(how: &str, expected: [&str; 4], expected_events: &[u64]) {
    let Some((said, events)) = outcome(how) else { return };
    if said.contains(&"unsupported".to_owned()) {
        c::skipped("the kernel does not know PR_SET_MDWE (Linux 6.3)");
        return;
    }
    assert_eq!(said, expected, "{how}");
    // SAFETY: takes no pointer.
    if unsafe { libc::geteuid() } == 0 {
        assert_eq!(events, expected_events, "{how}");
    }
}

#[test]
fn another_user_switches_its_sites() {
    check("user", ["enable 1 0", "disable 1 0", "enable 1 0", "none 0 0"], &[1, 3]);
}

#[test]
fn who_has_no_proc_switches_its_sites() {
    // SAFETY: takes no pointer.
    if unsafe { libc::geteuid() } != 0 {
        c::skipped("chroot needs root");
        return;
    }
    check("root", ["enable 1 0", "disable 1 0", "enable 1 0", "none 0 0"], &[1, 3]);
}

#[test]
fn who_may_not_write_its_text_at_all_is_told() {
    let expected = ["enable 1 0", "disable 0 EACCES", "enable 1 0", "none 0 0"];
    check("mdwe", expected, &[1, 2, 3]);
}
