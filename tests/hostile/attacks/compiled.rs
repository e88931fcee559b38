//! Maps of compilers: large ones of many processes, all of which but one have a second name, so that they may be one file.

use std::fs::{self, File};
use std::io::Write as _;
use std::process;
use std::time::Duration;

use ft_trace::tables::FrameRow;

use crate::Attack;
use crate::code::run_compiled;
use crate::forged::recorded;
use crate::stage::{Attacker, NOBODY, Recorded, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "compiled", program, test };

/// What the agent may use of memory, KiB.
const MODEST: u64 = 1 << 20;

/// Lines of a map, of seven bytes each, and behind them one that has all addresses.
const LINES: usize = 1 << 19;

const PROCESSES: usize = 4;

pub(super) fn program(attacker: &Attacker) {
    let _memfd = recorded(&attacker.socket);
    let map = format!("/tmp/perf-{}.map", process::id());
    let mut file = File::create(&map).expect("a file");
    file.write_all(&b"1 1 at\n".repeat(LINES)).expect("a map");
    file.write_all(b"2 ffffffffffffffff named\n").expect("a map");
    if !attacker.number.is_multiple_of(PROCESSES) {
        fs::hard_link(&map, format!("{map}.second")).expect("a second name");
    }
    run_compiled(Duration::from_millis(300));
    attacker.stay();
    clear(process::id() as i32);
}

/// Takes away what a process has made.
fn clear(pid: i32) {
    for name in ["", ".second"] {
        let _ = fs::remove_file(format!("/tmp/perf-{pid}.map{name}"));
    }
}

/// Takes away what these have made.
pub(super) fn clear_all(recorded: &Recorded) {
    recorded.attackers.iter().for_each(|pid| clear(*pid));
}

fn test(stage: &Stage) {
    let scene = Scene {
        options: &["-k", "default,profile"],
        users: &[NOBODY; PROCESSES],
        ..Scene::default()
    };
    let recorded = stage.attack_in(&ATTACK, &scene);
    clear_all(&recorded);
    let frames = recorded.trace.rows::<FrameRow>().map(|row| row.expect("a row"));
    let frames: Vec<FrameRow> = frames.collect();
    let mut named = 0;
    for &pid in &recorded.attackers {
        let its = || frames.iter().filter(|row| row.pid.0 == pid);
        assert!(its().any(|row| ["", "JIT"].contains(&&*row.object)), "no sample of {pid}");
        named += usize::from(its().any(|row| &*row.function == "named"));
    }
    assert_eq!(named, 1, "a map with one name has names, and others have not: {frames:?}");
    assert!(recorded.peak_kib < MODEST, "the agent has used {} KiB", recorded.peak_kib);
}
