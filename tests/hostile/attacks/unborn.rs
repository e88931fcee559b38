//! Events under numbers that no thread has yet, a flood of them: whoever remembers each without end runs out of memory, and
//! whoever believes them knows the thread that gets such a number later as one of the attacker's, in whose name it holds a lock.

use std::fs;
use std::ops::Range;

use ft_trace::tables::{CriticalSection, UserEvent};

use crate::Attack;
use crate::gate;
use crate::own_rings::OwnRings;
use crate::stage::{Attacker, Attacking, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "unborn", program, test };

/// Numbers that are claimed.
const NUMBERS: u32 = 20_000;

/// What the agent may use of memory meanwhile, and in what it makes of the recording, KiB.
const MODEST: u64 = 1 << 20;

/// Of these, the kernel has yet to give so many; it gives none of the others.
const YET_TO_GIVE: u32 = 100;

/// Beyond these the kernel gives no number (proc_sys_kernel(5), pid_max).
fn most() -> u32 {
    let most = fs::read_to_string("/proc/sys/kernel/pid_max").expect("a file of proc");
    most.trim().parse().expect("a number")
}

fn numbers() -> Range<u32> {
    let first = most() - YET_TO_GIVE;
    first..first + NUMBERS
}

fn program(attacker: &Attacker) {
    let mut rings = OwnRings::record(&attacker.socket);
    for tid in numbers() {
        rings.acquire_as(tid);
    }
    while rings.read() < numbers().len() as u32 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    attacker.stay();
}

/// An honest program gets one of the numbers; what it says.
fn newcomer(stage: &Stage, _: &mut [Attacking]) -> String {
    let started = (numbers().start..most()).find_map(|tid| stage.start_numbered(tid as i32).ok());
    started.expect("a number that nobody has").end()
}

fn test(stage: &Stage) {
    // Somebody has that one.
    let refused = stage.start_numbered(1).err().and_then(|error| error.raw_os_error());
    if refused != Some(libc::EEXIST) {
        return gate::skipped("nobody may choose the number of a process here (clone3, set_tid)");
    }
    let recorded = stage
        .attack_in(&ATTACK, &Scene { claims_numbers: true, then: &newcomer, ..Scene::default() });
    assert!(recorded.peak_kib < MODEST, "the agent has used {} KiB", recorded.peak_kib);
    let honest = recorded.honest_threads();
    assert!(honest.iter().any(|&tid| numbers().contains(&(tid as u32))), "{honest:?}");
    // All of it is the attacker's own, and the honest threads are of no other process.
    let events = recorded.trace.rows::<UserEvent>().map(|event| event.expect("a row"));
    let claimed = events.filter(|event| numbers().contains(&event.tid.0.unsigned_abs()));
    let attackers = claimed.filter(|event| event.pid.0 == recorded.attacker).count();
    // One that somebody has by chance is not believed.
    assert!(attackers > (NUMBERS - YET_TO_GIVE) as usize, "{attackers}");
    for hold in recorded.trace.rows::<CriticalSection>() {
        let hold = hold.expect("a row");
        assert!(&*hold.lock_name != "ledger" || hold.depth == 0, "{hold:?}");
    }
}
