//! An attacker that is many processes.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::stage::Attacker;

/// Says that a process is one of the crowd.
const MEMBER: &str = "HOSTILE_MEMBER";

/// How long a crowd is at it before the attack is in place.
const WARM_UP: Duration = Duration::from_secs(2);

/// Runs this program in as many processes, in each of which the step that `attack` makes is done again and again until
/// the attacker ends.
pub(crate) fn run<'a, S: FnMut()>(
    attacker: &'a Attacker,
    processes: usize,
    attack: impl FnOnce(&'a str) -> S,
) {
    if std::env::var_os(MEMBER).is_some() {
        // Whoever is killed closes its pipes.
        thread::spawn(|| {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            std::process::exit(0);
        });
        let mut step = attack(&attacker.socket);
        loop {
            step();
        }
    }
    let member = |_| {
        let mut program = Command::new("/proc/self/exe");
        program.args(std::env::args_os().skip(1)).env(MEMBER, "");
        program.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("a process")
    };
    let _crowd: Vec<_> = (0..processes).map(member).collect();
    thread::sleep(WARM_UP);
    attacker.stay();
}
