//! Events in the name of another's threads, in a ring and in the shared ring: whoever believes them ends another
//! program's holds.

use std::fs;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use ft_trace::tables::UserEvent;
use ft_user::layout::{Header, RingControl, SharedControl, SharedSlot, commit, marker};
use ft_user::sync::Mutex;

use crate::Attack;
use crate::forged::own_memfd;
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
    // SAFETY: no other thread of this process runs yet.
    unsafe { std::env::set_var("FT_SOCKET", &attacker.socket) };
    ft_user::init().expect("the tracer starts");
    let lock = Mutex::named("stolen", 0);
    drop(lock.lock());
    let memfd = own_memfd();
    let number = |at: u64| {
        let mut bytes = [0; 8];
        memfd.read_exact_at(&mut bytes, at).expect("a file of ours");
        u64::from_ne_bytes(bytes)
    };
    let put = |at: u64, bytes: &[u8]| memfd.write_all_at(bytes, at).expect("a file of ours");
    let ring = number(offset_of!(Header, rings_offset) as u64);
    let shared = number(offset_of!(Header, shared_offset) as u64);
    let slots = number(ring + offset_of!(RingControl, mask) as u64) + 1;
    assert!(number(ring + offset_of!(RingControl, head) as u64) > slots, "it records");
    // A site of ours, from the first event.
    let word = number(ring + 4096) & !(commit::TAG_MASK << commit::TAG_SHIFT);
    let victims = victims();
    for (n, victim) in victims.iter().cycle().take(400).enumerate() {
        // A ring that is the victim's.
        let at = |offset: usize| ring + offset as u64;
        put(at(offset_of!(RingControl, tid)), &victim.to_ne_bytes());
        put(at(offset_of!(RingControl, generation)), &(n as u32 + 2).to_ne_bytes());
        drop(lock.lock());
        // Slots of the shared ring, as the library writes them: counted, then ready.
        let slot = shared + 4096 + n as u64 * size_of::<SharedSlot>() as u64;
        put(slot + offset_of!(SharedSlot, tid) as u64, &victim.to_ne_bytes());
        put(slot + offset_of!(SharedSlot, commit) as u64, &word.to_ne_bytes());
        // SAFETY: reads the time stamp counter.
        let now = unsafe { std::arch::x86_64::_rdtsc() };
        put(slot + offset_of!(SharedSlot, tsc) as u64, &now.to_ne_bytes());
        put(slot + offset_of!(SharedSlot, marker) as u64, &marker::READY.to_ne_bytes());
        let written = n as u32 + 1;
        put(shared + offset_of!(SharedControl, write) as u64, &written.to_ne_bytes());
        put(shared + offset_of!(SharedControl, free) as u64, &1i32.to_ne_bytes());
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    attacker.stay();
}

fn test(stage: &Stage) {
    let recorded = stage.attack(&ATTACK, &[]);
    let honest = recorded.honest_threads();
    let mut unnumbered = 0;
    for event in recorded.trace.rows::<UserEvent>() {
        let event = event.expect("a row");
        if event.pid.0 == recorded.attacker {
            assert!(!honest.contains(&event.tid.0), "{event:?}");
            unnumbered += u32::from(event.tid.0 < 0);
        }
    }
    assert!(unnumbered > 400, "of both rings: {unnumbered}");
}
