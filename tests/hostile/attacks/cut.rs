//! Files that are cut short while somebody reads them: their owner hears of each time that one is opened, and does it then, or a little
//! later. Who had mapped one would die of it.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use ft_trace::convert::synthetic::program::named;
use ft_trace::tables::FrameRow;
use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};

use crate::Attack;
use crate::code::run;
use crate::forged::recorded;
use crate::stage::{Attacker, Attacking, NOBODY, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "cut", program, test };

/// Bytes of a file, which takes some ms to read; and of what is left.
const LONG: u64 = 8 << 20;
const SHORT: u64 = 100;

/// After how long files are cut, µs.
const AFTER: [u64; 8] = [0, 200, 400, 800, 1500, 3000, 6000, 12_000];

pub(super) fn program(attacker: &Attacker) {
    let _memfd = recorded(&attacker.socket);
    let folder = tempfile::tempdir().expect("a folder");
    let mut content = named(b"named");
    content.resize(LONG as usize, 1);
    for after in AFTER {
        let path = folder.path().join(after.to_string());
        fs::write(&path, &content).expect("a file");
        run(&path, Duration::from_millis(300));
    }
    // By then the agent has looked at them, which it does each second: what opens them next wants their names.
    thread::sleep(Duration::from_millis(2500));
    for after in AFTER {
        let path = folder.path().join(after.to_string());
        let file = File::options().write(true).open(&path).expect("a file");
        let events = init(CreateFlags::CLOEXEC).expect("inotify");
        add_watch(&events, &path, WatchFlags::OPEN).expect("it is there");
        thread::spawn(move || {
            let heard = File::from(events).read(&mut [0; 4096]);
            assert!(heard.is_ok_and(|bytes| bytes > 0), "an event");
            thread::sleep(Duration::from_micros(after));
            file.set_len(SHORT).expect("it is shorter");
        });
    }
    attacker.ready();
    println!("{}", folder.path().display());
    attacker.wait();
}

fn test(stage: &Stage) {
    let folder = OnceLock::new();
    let then = |_: &Stage, attackers: &mut [Attacking]| {
        let _ = folder.set(PathBuf::from(attackers[0].hear()));
        String::new()
    };
    let options = ["-k", "default,profile"];
    let scene = Scene { options: &options, then: &then, ..Scene::default() };
    let recorded = stage.attack_in(&ATTACK, &scene);
    let folder: &Path = folder.get().expect("it has said so");
    let is_cut = |after: &u64| {
        let length = fs::metadata(folder.join(after.to_string())).expect("a file").len();
        length == SHORT
    };
    let cut = AFTER.iter().filter(|after| is_cut(after)).count();
    fs::remove_dir_all(folder).expect("its folder");
    assert!(cut > 0, "none was opened");
    let warnings = recorded.trace.meta().warnings.iter().map(ToString::to_string);
    let own = format!("of the user with number {NOBODY} ");
    let warnings: Vec<String> = warnings.filter(|warning| warning.contains(&own)).collect();
    assert!(warnings.is_empty(), "who reads a file does not die of its end: {warnings:?}");
    let frames = recorded.trace.rows::<FrameRow>().map(|row| row.expect("a row"));
    let its = frames.filter(|row| Path::new(&*row.object).starts_with(folder));
    assert!(its.count() > 0, "no sample");
}
