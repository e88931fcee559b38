//! Hostile programs: each runs as an unprivileged user, against an agent that is root, beside an honest
//! program whose truth is known.
//!
//! One attack a file in `attacks/`: the program of the attacker, and the test that starts it. Whatever it
//! does, [`stage::Stage::attack`] requires that
//!
//! - the agent survives, and ends when the honest program does, with the attacker still there;
//! - the trace is whole, and every event and hold of the honest program is in it, once, and none is lost;
//!
//! and the test requires the rest: that the attacker is named, or what else must hold.
//!
//! Attacks on what is known of threads and processes go on once more beside records of the kernel, in its default groups: then
//! the kernel must know the time of the honest threads, too.
//!
//! This binary is all of the programs: the suite copies itself to where every user can start it, and starts
//! the copy with `honest` or `attacker` as its first argument. Without, it runs the attacks one after the other; words
//! among the arguments select those whose names contain one of them, or with `--exact` are one of them, as with other tests.

mod attacks;
mod code;
mod crowd;
mod forged;
mod fuse;
mod honest;
mod namespace;
mod numbered;
mod own_rings;
mod running;
mod stage;
mod watched;

use ft_tests::gate;

use std::path::Path;
use std::process::ExitCode;
use std::thread;

use stage::{Attacker, Stage};

/// One attack.
pub(crate) struct Attack {
    /// Name of its file.
    pub(crate) name: &'static str,
    /// What the attacker does: runs in a process of its own, as another user.
    pub(crate) program: fn(&Attacker),
    /// Starts it, and judges what came of it.
    pub(crate) test: fn(&Stage),
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [honest::ROLE, enough] => honest::run(Path::new(enough)),
        [stage::ATTACKER, name, number, socket] => {
            let attack =
                attacks::ALL.iter().chain(attacks::WITH_KERNEL).find(|attack| attack.name == name);
            let number = number.parse().expect("a number");
            (attack.expect("a known attack").program)(&Attacker::new(socket, number));
        }
        _ => return suite(&args),
    }
    ExitCode::SUCCESS
}

/// Runs the selected attacks. Other options of the usual test harness are accepted and mean nothing here.
fn suite(args: &[String]) -> ExitCode {
    let words: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let alone = attacks::ALL.iter().map(|&attack| (attack.name.to_owned(), attack, false));
    let beside_the_kernel = attacks::WITH_KERNEL
        .iter()
        .map(|&attack| (format!("{}-with-kernel", attack.name), attack, true));
    let is_exact = args.iter().any(|arg| arg == "--exact");
    let selects =
        |word: &str, name: &str| if is_exact { name == word } else { name.contains(word) };
    let selected = |(name, ..): &(String, &Attack, bool)| {
        words.is_empty() || words.iter().any(|word| selects(word, name))
    };
    let attacks: Vec<(String, &'static Attack, bool)> =
        alone.chain(beside_the_kernel).filter(selected).collect();
    if args.iter().any(|arg| arg == "--list") {
        attacks.iter().for_each(|(name, ..)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let mut failed = Vec::new();
    for &(ref name, attack, kernel) in &attacks {
        // The ledger of tests names a test after its thread.
        let test = thread::Builder::new().name(name.clone()).spawn(move || run(attack, kernel));
        let passed = test.expect("a thread").join().is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        if !passed {
            failed.push(name);
        }
    }
    let result = if failed.is_empty() { "ok" } else { "FAILED" };
    // As the usual test harness counts.
    println!(
        "\ntest result: {result}. {} passed; {} failed: {failed:?}",
        attacks.len() - failed.len(),
        failed.len()
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one, where that can be.
fn run(attack: &Attack, kernel: bool) {
    if !rustix::process::geteuid().is_root() {
        return gate::skipped("only root can start an attacker that is another user");
    }
    if kernel {
        if !gate::recordable_or_skip() {
            return;
        }
    } else {
        gate::ran();
    }
    (attack.test)(&Stage::new(kernel));
}
