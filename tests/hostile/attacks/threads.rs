//! Events in the name of another's threads, in a ring and in the shared ring: whoever believes them ends another
//! program's holds.

use std::fs;

use ft_trace::tables::UserEvent;
use ft_user::sync::Mutex;

use crate::Attack;
use crate::own_rings::OwnRings;
use crate::stage::{Attacker, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "threads", program, test };

/// Threads of the honest program that record.
fn victims() -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("proc").flatten().map(|entry| entry.path());
    let is_honest = |path: &std::path::PathBuf| {
        let line = fs::read(path.join("cmdline")).unwrap_or_default();
        line.windows(8).any(|word| word == b"\0honest\0")
    };
    let threads = |path: std::path::PathBuf| {
        let tasks = fs::read_dir(path.join("task")).into_iter().flatten().flatten();
        tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect::<Vec<u32>>()
    };
    // Started by the agent a moment ago: the newest.
    let newest = processes.filter(is_honest).map(threads).max_by_key(|threads| threads[0]);
    newest.expect("an honest program")
}

fn program(attacker: &Attacker) {
    let mut rings = OwnRings::record(&attacker.socket);
    let lock = Mutex::named("stolen", 0);
    let victims = victims();
    for (victim, generation) in victims.iter().cycle().take(400).zip(2..) {
        rings.rename(*victim, generation);
        drop(lock.lock());
        rings.acquire_as(*victim);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    attacker.stay();
}

fn test(stage: &Stage) {
    let recorded = stage.attack(&ATTACK, &[]);
    let honest = recorded.honest_threads();
    let mut theirs = 0;
    for event in recorded.trace.rows::<UserEvent>() {
        let event = event.expect("a row");
        if event.pid.0 == recorded.attacker {
            assert!(!honest.contains(&event.tid.0), "{event:?}");
            // Of no thread, or of the one that ran there by the kernel's records.
            theirs += u32::from(event.tid.0 < 0 || event.tid.0 == recorded.attacker);
        }
    }
    assert!(theirs > 400, "of both rings: {theirs}");
}
