//! What it costs that a process without rights looks names up: the same code, with the same addresses, in such a process and in this one, in
//! turns.
//!
//! `cargo bench -p ft-tests --bench names [-- ADDRESSES]`; prints the median of the CPU times of the turns, and the
//! least time that has passed.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use ft_trace::convert::{Addresses, READS_NAMES, serve_names};
use ft_trace::{helper, vdso};

/// Turns of each.
const ROUNDS: usize = 5;

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|first| first == READS_NAMES) {
        return if serve_names().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    helper::start_by(|kind| {
        let mut command = Command::new("/proc/self/exe");
        command.arg(kind).env_clear();
        command
    });
    let most = std::env::args().filter_map(|a| a.parse().ok()).next().unwrap_or(1_000_000);
    let own = std::env::current_exe().expect("a path");
    let own = own.to_str().expect("UTF-8");
    println!("{:10} {:16} {:>22} {:>22} {:>6}", "addresses", "of", "by a worker", "here", "ratio");
    for (path, count) in [(vdso::NAME, 1), (own, 1), (own, 1000), (own, most)] {
        let asked = Addresses::of(path, count).expect("what this process has mapped");
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let named = [
                timed(&mut theirs, || asked.by_a_worker()),
                timed(&mut ours, || asked.in_this_process()),
            ];
            assert_eq!(named[0], named[1], "they find the same");
        }
        let [theirs, ours] = [theirs, ours].map(Times::of);
        let ratio = theirs.cpu.as_secs_f64() / ours.cpu.as_secs_f64();
        let of = path.rsplit('/').next().unwrap_or(path);
        let shown = |Times { cpu, passed }| {
            let [cpu, passed] = [cpu, passed].map(|time: Duration| time.as_secs_f64() * 1e3);
            format!("{cpu:.2} ({passed:.2}) ms")
        };
        println!("{count:<10} {of:16.16} {:>22} {:>22} {ratio:6.2}", shown(theirs), shown(ours));
    }
    ExitCode::SUCCESS
}

/// Of one turn.
#[derive(Clone, Copy)]
struct Times {
    /// CPU time of this process and of its workers.
    cpu: Duration,
    passed: Duration,
}

impl Times {
    /// The median of the CPU times, which others on the machine have little part in, and the least time that has passed.
    fn of(mut turns: Vec<Times>) -> Times {
        let passed = turns.iter().map(|turn| turn.passed).min().expect("turns");
        turns.sort_by_key(|turn| turn.cpu);
        Times { passed, ..turns[turns.len() / 2] }
    }
}

fn timed(turns: &mut Vec<Times>, act: impl FnOnce() -> usize) -> usize {
    let (since, before) = (Instant::now(), cpu());
    let named = act();
    turns.push(Times { cpu: cpu() - before, passed: since.elapsed() });
    named
}

/// CPU time of this process, and of the children that it has waited for.
fn cpu() -> Duration {
    let taken = [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN].map(|who| {
        // SAFETY: all zeros are a value of it.
        let mut usage = unsafe { std::mem::zeroed::<libc::rusage>() };
        // SAFETY: writes to what it is.
        assert_eq!(unsafe { libc::getrusage(who, &raw mut usage) }, 0);
        let time = |time: libc::timeval| {
            Duration::from_micros(time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64)
        };
        time(usage.ru_utime) + time(usage.ru_stime)
    });
    taken[0] + taken[1]
}
