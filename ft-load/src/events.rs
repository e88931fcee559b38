//! `ft-load events`: threads that write events at a given rate.
//!
//! Each thread has a CPU, writes bursts of 64 events at times that are fixed at its start, and is busy in between, as the
//! loop of npt is (Beamonte and Dagenais, 2015, section 6, limit its rate likewise). A thread that is late catches up.
//!
//! # Events
//!
//! | event | arguments | written |
//! |---|---|---|
//! | `load.event` | `address`, one of 16; `count`, from 0 on | by each thread, as often as is printed at the end |

use std::sync::OnceLock;
use std::thread;

use ft_user::event;
use ft_user::gap::tsc_hz;
use serde::Serialize;

use crate::args::Words;
use crate::clock::tsc;
use crate::time::Time;
use crate::{Error, Output, cpus};

const HELP: &str = "\
ft-load events [OPTIONS]

Threads that write events at a given rate, in bursts of 64, each on a CPU of its own while there are some. The last CPU
that the process may run on is the first that gets a thread.

      --threads N        threads, 1 to 64 (default 1)
      --rate N           events a second of each thread (default: as many as it can)
      --time TIME        for how long (default 1s)
      --json             print JSON

Examples:
  ft-agent record --no-convert -- ft-load events --rate 1000000 --threads 2";

/// Events of a burst.
///
/// Limit: part of the definition: the number of events is a multiple.
/// Shown by: `events_are_whole_bursts_and_no_more_than_asked_for`.
const BURST: u64 = 64;

/// Threads that may be asked for.
///
/// Limit: more are refused.
/// Shown by: `every_option_is_read_and_refused`.
pub(crate) const MOST_THREADS: usize = 64;

/// The longest that they may be asked to run: an hour, ns.
///
/// Limit: a longer one is refused.
/// Shown by: `every_option_is_read_and_refused`, `bad_lines_get_one_sentence_…`,
/// `what_is_no_time_is_refused_with_a_remedy`.
pub(crate) const LONGEST_NS: u64 = 3_600_000_000_000;

/// What is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    threads: usize,
    /// Events a second of each thread; `None`: as many as it can.
    rate: Option<u64>,
    time_ns: u64,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Written {
    threads: usize,
    /// Of all threads.
    events: u64,
    /// Events a second of each thread, on the average.
    rate: f64,
}

/// Runs `ft-load events` with these words behind its name.
///
/// # Errors
///
/// A sentence for what the command line gets wrong, or the machine refuses; then nothing was written.
pub fn run(words: &[String]) -> Result<Output, Error> {
    let Some((plan, json)) = read(words)? else { return Ok(Output::new(format!("{HELP}\n"))) };
    let written = write(plan)?;
    Ok(Output::new(match json {
        // One line: it may stand between those of who records.
        true => serde_json::to_string(&written).unwrap_or_default() + "\n",
        false => format!(
            "{} events of {} threads in {}, {:.0} a second each\n",
            written.events,
            written.threads,
            Time(plan.time_ns),
            written.rate
        ),
    }))
}

fn read(words: &[String]) -> Result<Option<(Plan, bool)>, Error> {
    let mut words = Words::new(words);
    let (mut plan, mut json) = (Plan { threads: 1, rate: None, time_ns: 1_000_000_000 }, false);
    while let Some(option) = words.option()? {
        match option {
            "--threads" => plan.threads = words.number("a number of threads", 1, MOST_THREADS)?,
            "--rate" => plan.rate = Some(words.number("a number of events", 1, 1_000_000_000)?),
            "--time" => plan.time_ns = words.time("a time")?,
            "--json" => json = true,
            "-h" | "--help" => return Ok(None),
            _ => return Err(words.unknown()),
        }
    }
    if plan.time_ns > LONGEST_NS {
        return Err(Error::usage("events are written for an hour at most; give a shorter --time"));
    }
    Ok(Some((plan, json)))
}

fn write(plan: Plan) -> Result<Written, Error> {
    // Without an agent nothing is recorded, and the events are written nowhere.
    let rings = plan.threads as u32 + 1;
    ft_user::init_with(ft_user::Config { rings, ..ft_user::Config::default() }).ok();
    let allowed = cpus::allowed();
    let hz = tsc_hz() as f64;
    // Whether all threads are there: else none may begin.
    let all_there = OnceLock::new();
    let written: Result<Vec<(u64, f64)>, Error> = thread::scope(|scope| {
        let all_there = &all_there;
        let mut threads = Vec::new();
        for n in 0..plan.threads {
            let cpu = allowed.iter().rev().cycle().nth(n).copied();
            let body = move || {
                let ready = cpu.map_or(Ok(()), |cpu| cpus::pin(&[cpu]));
                ft_user::thread_init();
                if *all_there.wait() { ready.map(|()| paced(plan, hz)) } else { Ok((0, 1.0)) }
            };
            match thread::Builder::new().name(format!("events-{n}")).spawn_scoped(scope, body) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    let _ = all_there.set(false);
                    return Err(Error::refused(format!(
                        "{n} of {} threads could be started ({error}); ask for fewer, or raise `ulimit -u`",
                        plan.threads
                    )));
                }
            }
        }
        let _ = all_there.set(true);
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    });
    let written = written?;
    let rate = written.iter().map(|(events, seconds)| *events as f64 / seconds).sum::<f64>();
    Ok(Written {
        threads: plan.threads,
        events: written.iter().map(|(events, _)| events).sum(),
        rate: rate / plan.threads as f64,
    })
}

/// Writes the events of one thread: how many, and in how many seconds.
fn paced(plan: Plan, hz: f64) -> (u64, f64) {
    let burst = plan.rate.map_or(0.0, |rate| BURST as f64 / rate as f64 * hz);
    let start = tsc();
    let end = start.saturating_add((plan.time_ns as f64 / 1e9 * hz) as u64);
    let (mut due, mut count, mut random) = (start as f64, 0, start | 1);
    let mut now = start;
    while now < end {
        for _ in 0..BURST {
            // xorshift64
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let address = 0x7f12_3456_7000 + (random >> 60) * 64;
            event!("load.event", address: u64, count: u64; "{count} about {address}");
            count += 1;
        }
        due += burst;
        loop {
            now = tsc();
            if now as f64 >= due || now >= end {
                break;
            }
            std::hint::spin_loop();
        }
    }
    (count, (now - start).max(1) as f64 / hz)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<(Plan, bool)>, Error> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        read(&words)
    }

    #[test]
    fn every_option_is_read_and_refused() {
        let plan = Plan { threads: 3, rate: Some(5000), time_ns: 20_000_000 };
        assert_eq!(parsed("--threads 3 --rate=5000 --time 20ms --json"), Ok(Some((plan, true))));
        let plan = Plan { threads: 1, rate: None, time_ns: 1_000_000_000 };
        assert_eq!(parsed(""), Ok(Some((plan, false))));
        assert_eq!(parsed("--help"), Ok(None));
        for (line, remedy) in [
            ("--threads 0", "use 1 to 64"),
            ("--threads 65", "use 1 to 64"),
            ("--rate 0", "use 1 to"),
            ("--rate", "write it behind the option"),
            ("--time 5", "write 5us, 5ms"),
            ("--time 2h", "a shorter --time"),
            ("--frobnicate", "--help lists them"),
        ] {
            let error = parsed(line).unwrap_err().to_string();
            assert!(error.contains(remedy) && !error.contains('\n'), "{line}: {error}");
        }
    }

    #[test]
    fn events_are_whole_bursts_and_no_more_than_asked_for() {
        let plan = Plan { threads: 2, rate: Some(64_000), time_ns: 20_000_000 };
        let written = write(plan).unwrap();
        // A burst each millisecond, of each thread, from the first moment on.
        assert!(written.events > 0 && written.events.is_multiple_of(BURST));
        assert!(written.events <= 2 * 21 * BURST, "{written:?}");
        assert!(written.rate <= 64_000.0 * 1.06, "{written:?}");
    }
}
