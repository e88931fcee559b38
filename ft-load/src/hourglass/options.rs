//! The command line of `ft-load hourglass`: that of appendix A, and clean long names beside it.

use super::class::{Class, Priority};
use super::file;
use super::print::View;
use super::scenario::{
    DEFAULT_GAP_NS, DEFAULT_RECORDS, MAX_RECORDS, MAX_THREADS, Plan, Scenario, Setting,
};
use super::timer::Timer;
use super::workload::Workload;
use crate::args::Words;
use crate::time::parse;
use crate::{Error, cpus};

pub(super) const HELP: &str = "\
ft-load hourglass -n THREADS [OPTIONS]
ft-load hourglass --scenario FILE [OPTIONS]

Threads with a known load, which find out for themselves when they ran: execution trace, deadlines hit and
missed, dispatch latencies, and what the gaps between runs say about the scheduler (Regehr, \"Inferring
scheduling behavior with Hourglass\", 2002). Under `ft-agent record` each of these gets its cause.

For all threads:
  -n, --threads N          how many (this or --scenario is needed)
  -d, --duration TIME      length of the run (default 10s)
  -e, --records N          runs that the execution trace has room for (default 300000)
  -c, --cycles             print the execution trace in cycles, too
      --gap TIME           readings of the counter that are farther apart are a gap (default 1us)
      --lock-memory        fail if memory cannot be locked, instead of touching it
      --scenario FILE      threads as a file in TOML has them, see below
      --summary            leave out the execution trace and the single latencies
      --json               print JSON

For one thread, or for all until the first -t:
  -t, --thread N           the thread that the options behind it are for, from 0 on
  -a, --all                they are for all threads
  -w, --workload WORKLOAD  CPU                           runs whenever it can (default)
                           CPU_SCAN KB                   and reads through an array
                           CPU_YIELD AMOUNT              and yields after that much of the CPU
                           CPU_SCAN_YIELD KB AMOUNT      both
                           PERIODIC AMOUNT PERIOD        then sleeps until the next period
                           CPU_PERIODIC AMOUNT PERIOD    then begins the next at once
                           LAT PERIOD                    sleeps, and takes down how late it runs
  -p, --priority PRIORITY  IDLE, LOW, NORMAL, HIGH, HIGHEST (SCHED_IDLE; nice 10, 0, -10, -20), RTLOW,
                           RTMED, RTHIGH (SCHED_FIFO 10, 40, 80), nice:N or fifo:N (default: as it is)
  -rh, --reserve-hard AMOUNT PERIOD   so much of the CPU and no more (SCHED_DEADLINE)
  -rs, --reserve-soft AMOUNT PERIOD   so much, and what others leave of theirs (reclaiming)
  -i, --timer TIMER        NATIVE (relative sleep, default), HR (clock_nanosleep), TIMERFD or RTC
  -s, --start TIME         starts that long into the run
  -f, --finish TIME        finishes then
      --cpu LIST           runs on these CPUs alone: 1 or 0-2,5
      --slice TIME         asks for that much of the CPU at once (EEVDF, Linux 6.12; 0.1ms to 100ms)

How often a reservation was used up is counted by the kernel's own signal (SIGXCPU, SCHED_FLAG_DL_OVERRUN).
Times have units: 87.0us, 1020ms, 1.5s, 3m. The trace has thread, start, end, length and the gap before it on its
CPU in ms, and on several CPUs which; `latlate:` is how late a thread ran, in µs.

A scenario has `duration`, `records`, `gap` and tables `[[thread]]` with `workload`, `priority`, `reserve-hard`,
`reserve-soft`, `timer`, `start`, `finish`, `cpu`, `slice`, all as text like above, `name` and `count`.

Examples:
  ft-load hourglass -n 2 -t 0 -p RTMED -w PERIODIC 3ms 8ms -i HR -t 1 -p RTLOW -w PERIODIC 17ms 33ms -i HR --cpu=1
  ft-load hourglass -d 60s -n 10 -a -p NORMAL -w CPU_YIELD 0.9ms
  ft-agent record -o trace -- ft-load hourglass -n 1 -p RTHIGH -w LAT 5.3ms -i HR --summary";

/// What a command line asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Asked {
    Help,
    Run(Scenario, View),
}

/// Reads the command line.
///
/// # Errors
///
/// A sentence for the first part of it that makes no sense.
pub(super) fn read(words: &[String]) -> Result<Asked, Error> {
    let mut words = Words::new(words);
    let (mut threads, mut path) = (None, None);
    let (mut duration_ns, mut records, mut gap_ns) = (None, None, None);
    let (mut view, mut lock_memory) = (View::default(), false);
    let mut subject: Option<usize> = None;
    let mut settings: Vec<(Option<usize>, Setting)> = Vec::new();
    while let Some(option) = words.option()? {
        match option {
            "-n" | "--threads" => {
                threads = Some(words.number("a number of threads", 1, MAX_THREADS)?);
            }
            "-d" | "--duration" => duration_ns = Some(words.time("a time")?),
            "-e" | "--records" => {
                records = Some(words.number("a number of records", 1, MAX_RECORDS)?);
            }
            "-c" | "--cycles" => view.cycles = true,
            "--gap" => gap_ns = Some(words.time("a time")?),
            "--lock-memory" => lock_memory = true,
            "--scenario" => path = Some(words.value("a file")?),
            "--summary" => view.summary = true,
            "--json" => view.json = true,
            "-t" | "--thread" => subject = Some(words.number("a thread", 0, MAX_THREADS - 1)?),
            "-a" | "--all" => subject = None,
            "-h" | "--help" => return Ok(Asked::Help),
            _ => settings.push((subject, setting(option, &mut words)?)),
        }
    }
    let mut scenario = match (threads, path) {
        (Some(_), Some(_)) => {
            return Err(Error::usage(
                "-n and --scenario both say which threads there are; leave out one",
            ));
        }
        (None, None) => {
            return Err(Error::usage(
                "nothing says how many threads there are; add -n or --scenario",
            ));
        }
        (None, Some(_)) if !settings.is_empty() => {
            return Err(Error::usage(
                "a scenario says what its threads do; leave out the options for threads, or --scenario",
            ));
        }
        (None, Some(path)) => file::read(path)?,
        (Some(threads), None) => Scenario {
            duration_ns: 10_000_000_000,
            records: DEFAULT_RECORDS,
            gap_ns: DEFAULT_GAP_NS,
            lock_memory: false,
            threads: vec![Plan::default(); threads],
        },
    };
    let threads = scenario.threads.len();
    for (subject, setting) in settings {
        match subject {
            None => scenario.threads.iter_mut().for_each(|plan| plan.set(setting.clone())),
            Some(n) => match scenario.threads.get_mut(n) {
                Some(plan) => plan.set(setting),
                None => {
                    return Err(Error::usage(format!(
                        "there is no thread {n}; with -n {threads} they are 0 to {}",
                        threads - 1
                    )));
                }
            },
        }
    }
    scenario.duration_ns = duration_ns.unwrap_or(scenario.duration_ns);
    scenario.records = records.unwrap_or(scenario.records);
    scenario.gap_ns = gap_ns.unwrap_or(scenario.gap_ns);
    scenario.lock_memory = lock_memory;
    Ok(Asked::Run(scenario.check()?, view))
}

/// An option for threads.
fn setting(option: &str, words: &mut Words<'_>) -> Result<Setting, Error> {
    Ok(match option {
        "-w" | "--workload" => {
            let name = words.value("a workload")?;
            Setting::Workload(Workload::read(name, |what| words.value(what))?)
        }
        "-p" | "--priority" => {
            Setting::Class(Class::Priority(Priority::read(words.value("a priority")?)?))
        }
        "-rh" | "--reserve-hard" | "-rs" | "--reserve-soft" => {
            let soft = matches!(option, "-rs" | "--reserve-soft");
            let (amount, period) = (words.value("an amount")?, words.value("a period")?);
            Setting::Class(Class::reservation(amount, period, soft)?)
        }
        "-i" | "--timer" => Setting::Timer(Timer::read(words.value("a timer")?)?),
        "-s" | "--start" => Setting::Start(parse(words.value("a time")?)?),
        "-f" | "--finish" => Setting::Finish(words.time("a time")?),
        "--cpu" => Setting::Cpus(cpus::parse(words.value("CPUs")?)?),
        "--slice" => Setting::Slice(words.time("a time")?),
        _ => return Err(words.unknown()),
    })
}
