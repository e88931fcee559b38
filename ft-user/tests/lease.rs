//! What an agent has switched on goes off when the agent is gone, and nothing else does.

#![cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]

mod common;

use std::process::Command;
use std::sync::atomic::Ordering::*;
use std::thread;

use common::Memory;
use common::agent::Listener;
use ft_user::Agent;
use ft_user::layout::{MIN_RING_SLOTS, lease};

/// Tells [`as_process`] that it is meant, and what to do.
const ROLE: &str = "FT_TEST_LEASE";

/// Writes an event of each kind so often; returns how many sites were on each time, by who has switched them on: the agent, the
/// environment, the program.
fn tell(times: u32) -> [u32; 3] {
    let mut on = [0; 3];
    for _ in 0..times {
        ft_user::event!("lent.tells", n: u32 = { on[0] += 1; on[0] });
        ft_user::event!("kept.by-environment", n: u32 = { on[1] += 1; on[1] });
        ft_user::event!("kept.by-program", n: u32 = { on[2] += 1; on[2] });
    }
    on
}

/// As many as fill a ring, and are then lost.
const MANY: u32 = 2 * MIN_RING_SLOTS;

fn run(role: &str, mode: &str) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let path = std::env::temp_dir().join(format!("ft-lease-{}-{role}-{mode}", std::process::id()));
    command.args(["--exact", "as_process", "--nocapture"]).env(ROLE, role);
    command.env("FT_SOCKET", &path).env("FT_MODE", mode).env("FT_RING_SLOTS", "4096");
    let output = command.env("FT_ENABLE", "kept.by-environment").output().unwrap();
    let _ = std::fs::remove_file(&path);
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{role} {mode}: {text}");
}

/// No test by itself.
#[test]
fn as_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let agent = Listener::at(std::env::var_os("FT_SOCKET").unwrap().as_ref());
    let served = thread::spawn(move || agent.serve(b"lent.*,kept.by-environment"));
    assert_eq!(ft_user::init().unwrap().agent, Agent::Registered);
    ft_user::enable("kept.by-program");
    let memory = Memory::map(&served.join().unwrap().1);
    let header = memory.header();

    // An agent that says nothing, and one that is there.
    assert_eq!(tell(MANY), [MANY; 3]);
    header.lease.store(u64::MAX, Relaxed);
    header.full_wait_us.store(1, Relaxed);
    assert_eq!(tell(MANY), [MANY; 3]);
    if role == "filtered" {
        kill_for_opening();
    }
    header.lease.store(lease::OVER, Relaxed);
    let [lent, kept @ ..] = tell(MANY);
    assert_eq!(kept, [MANY; 2]);
    if role == "filtered" {
        assert_eq!((lent, header.lease.load(Relaxed)), (MANY, lease::OVER));
        return;
    }
    // It is noticed while events are lost.
    assert!(lent < MANY, "{lent}");
    assert_eq!(tell(3), [0, 3, 3]);
    assert_eq!(header.lease.load(Relaxed), lease::TAKEN_BACK);
    assert_eq!((header.full_wait_us.load(Relaxed), header.sites_enabled.load(Relaxed)), (0, 2));

    // The next agent switches from outside, and a child has what its parent has.
    header.lease.store(u64::MAX, Relaxed);
    let mut text = ft_user::patch::Text::own().unwrap();
    ft_user::site::for_each(|site| assert!(text.lend(site.trigger as u64).is_ok()));
    drop(text);
    assert_eq!(tell(MANY), [MANY; 3]);
    header.lease.store(lease::OVER, Relaxed);
    // SAFETY: the child writes events, and ends at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        tell(2 * MANY);
        let off = tell(3) == [0, 3, 3];
        // SAFETY: ends the child.
        unsafe { libc::_exit(if off { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: a child of this process, and a place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child's sites stay on");
}

/// From here on this process is killed where it opens a file.
fn kill_for_opening() {
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // Load the number of the call, compare, kill the process or allow (seccomp(2)).
    let mut steps = [
        step(0x20, 0, 0, 0),
        step(0x15, 0, 1, libc::SYS_openat as u32),
        step(0x06, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        step(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: steps.as_mut_ptr() };
    // SAFETY: a whole program, which the kernel copies.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program), 0);
    }
}

#[test]
fn sites_of_an_agent_that_is_gone_go_off() {
    run("plain", "discard");
}

#[test]
fn in_overwrite_mode_too() {
    run("plain", "overwrite");
}

#[test]
fn a_filter_of_system_calls_kills_nobody() {
    run("filtered", "discard");
    run("filtered", "overwrite");
}
