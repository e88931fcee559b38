//! The command line of `ft-load npt`.

use super::measure::Plan;
use super::record::Recorded;
use crate::args::Words;
use crate::time::parse;
use crate::{Error, agent};

pub(super) const HELP: &str = "\
ft-load npt [OPTIONS]

A loop on one CPU that nothing should interrupt: how long each pass took (Beamonte and Dagenais, \"Linux
low-latency tracing for multicore hard real-time systems\", 2015).

      --loops N          passes (default 10000000)
      --cpu N            the CPU (default: the last one that is isolated, isolcpus=N, or else the last one that the process
                         may run on)
      --rt PRIORITY      SCHED_FIFO, 1 to 99 (default: as the process is)
      --warm-up N        passes before those, which do not count (default 5)
      --eval-cpu-speed   keep the CPU busy for half a second first, and measure the counter's frequency meanwhile
      --no-lock-memory   do without locked memory
      --tracepoint       write an event in each pass, where somebody records
      --rate N           at most that many events a second
      --peak TIME        passes that are longer are peaks (default 5us); in a recording `gaps` says why
      --max-time TIME    end after this time, done or not (default 1m)
      --json             print JSON

Recorded by ft-agent, which then says what caused each peak (`ft-agent report DIR npt`):
      --record DIR       record the loop into this directory
  -k, --kernel GROUPS    with these kernel groups, such as sched,irq or none (default: the agent's)
      --reader HOW       who reads the events comes adaptive, timed=TIME (10us to 100ms), active (without a pause, which takes
                         a CPU) or waking (the loop wakes it by a system call, as often as an eighth of its ring is full)
      --agent FILE       ft-agent (default: beside this program, else of the PATH)

Examples:
  ft-load npt --rt 90 --cpu 1
  ft-load npt --rt 90 --tracepoint --loops 1000000 --record trace -k sched,irq --reader timed=100us";

/// Passes that may be asked for: half an hour of them.
///
/// Limit: more are refused; a loop that ends before all its passes says so.
/// Shown by: `a_real_time_loop_ends_in_time`.
const MAX_LOOPS: u64 = 100_000_000_000;

/// The longest that a loop may last: an hour, ns.
///
/// Limit: as `LONGEST_NS` of `events.rs`.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Reads the command line; `None` where it asks for help.
///
/// # Errors
///
/// A sentence for the first part of it that makes no sense.
pub(super) fn read(words: &[String]) -> Result<Option<(Plan, bool, Option<Recorded>)>, Error> {
    let mut words = Words::new(words);
    let mut json = false;
    let (mut trace, mut kernel, mut how, mut agent) = (None, None, None, None);
    let mut plan = Plan {
        loops: 10_000_000,
        cpu: None,
        real_time: None,
        warm_up: 5,
        eval_cpu_speed: false,
        lock_memory: true,
        tracepoint: false,
        rate: None,
        peak_ns: 5_000,
        max_time_ns: 60_000_000_000,
    };
    while let Some(option) = words.option()? {
        match option {
            "--loops" => plan.loops = words.number("a number of passes", 1, MAX_LOOPS)?,
            "--cpu" => plan.cpu = Some(words.number("a CPU", 0, libc::CPU_SETSIZE as usize - 1)?),
            "--rt" => plan.real_time = Some(words.number("a priority", 1, 99)?),
            "--warm-up" => plan.warm_up = words.number("a number of passes", 0, MAX_LOOPS)?,
            "--eval-cpu-speed" => plan.eval_cpu_speed = true,
            "--no-lock-memory" => plan.lock_memory = false,
            "--tracepoint" => plan.tracepoint = true,
            "--rate" => plan.rate = Some(words.number("a number of events", 1, 1_000_000_000)?),
            "--peak" => plan.peak_ns = words.time("a time")?,
            "--max-time" => plan.max_time_ns = words.time("a time")?,
            "--json" => json = true,
            "--record" => trace = Some(words.value("a directory")?.into()),
            "-k" | "--kernel" => kernel = Some(agent::groups(words.value("kernel groups")?)?),
            "--reader" => how = Some(reader(words.value("how it reads")?)?),
            "--agent" => agent = Some(words.value("a file")?.into()),
            "-h" | "--help" => return Ok(None),
            _ => return Err(words.unknown()),
        }
    }
    if plan.rate.is_some() && !plan.tracepoint {
        return Err(Error::usage("--rate is how many events there may be; add --tracepoint"));
    }
    if plan.max_time_ns > LONGEST_NS {
        return Err(Error::usage("a loop lasts an hour at most; give a shorter --max-time"));
    }
    let recorded = match trace {
        Some(trace) => Some(Recorded { trace, kernel, reader: how, agent }),
        None if kernel.is_some() || how.is_some() || agent.is_some() => {
            return Err(Error::usage(
                "--kernel, --reader and --agent say how the loop is recorded; add --record DIR",
            ));
        }
        None => None,
    };
    Ok(Some((plan, json, recorded)))
}

/// How the agent reads; it knows which times there can be.
fn reader(text: &str) -> Result<String, Error> {
    match text.strip_prefix("timed=") {
        Some(time) => {
            parse(time)?;
        }
        None if ["adaptive", "active", "waking"].contains(&text) => {}
        None => {
            return Err(Error::usage(format!(
                "there is no reader `{}`; use adaptive, timed=TIME, active or waking",
                text.escape_debug()
            )));
        }
    }
    Ok(text.to_owned())
}

/// The words of a plan, of which [`read`] makes it again.
pub(super) fn words(plan: &Plan, json: bool) -> Vec<String> {
    let time = |ns: u64| format!("{ns}ns");
    let values = [
        ("--loops", Some(plan.loops.to_string())),
        ("--cpu", plan.cpu.map(|cpu| cpu.to_string())),
        ("--rt", plan.real_time.map(|priority| priority.to_string())),
        ("--warm-up", Some(plan.warm_up.to_string())),
        ("--rate", plan.rate.map(|rate| rate.to_string())),
        ("--peak", Some(time(plan.peak_ns))),
        ("--max-time", Some(time(plan.max_time_ns))),
    ];
    let flags = [
        ("--eval-cpu-speed", plan.eval_cpu_speed),
        ("--no-lock-memory", !plan.lock_memory),
        ("--tracepoint", plan.tracepoint),
        ("--json", json),
    ];
    let values = values.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?]));
    let flags = flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name.to_owned());
    values.flatten().chain(flags).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<(Plan, bool, Option<Recorded>)>, Error> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        read(&words)
    }

    #[test]
    fn every_option_is_read() {
        let line = "--loops 1000 --cpu 1 --rt 90 --warm-up 7 --eval-cpu-speed --no-lock-memory --tracepoint \
                    --rate=5000 --peak 10us --max-time 2s --json";
        let plan = Plan {
            loops: 1000,
            cpu: Some(1),
            real_time: Some(90),
            warm_up: 7,
            eval_cpu_speed: true,
            lock_memory: false,
            tracepoint: true,
            rate: Some(5000),
            peak_ns: 10_000,
            max_time_ns: 2_000_000_000,
        };
        assert_eq!(parsed(line), Ok(Some((plan.clone(), true, None))));
        // What the agent starts is the same again.
        assert_eq!(read(&words(&plan, true)), Ok(Some((plan, true, None))));
        let recorded = Recorded {
            trace: "t".into(),
            kernel: Some("sched,irq".into()),
            reader: Some("timed=50us".into()),
            agent: Some("./ft-agent".into()),
        };
        let line = "--record t -k sched,irq --reader timed=50us --agent ./ft-agent";
        let Ok(Some((_, _, Some(found)))) = parsed(line) else { panic!("it is recorded") };
        assert_eq!(found, recorded);
        let Ok(Some((plan, false, None))) = parsed("") else {
            panic!("every option has a default")
        };
        assert_eq!((plan.loops, plan.warm_up, plan.lock_memory), (10_000_000, 5, true));
        assert_eq!(read(&words(&plan, false)), Ok(Some((plan, false, None))));
        assert_eq!(parsed("--help"), Ok(None));
    }

    #[test]
    fn bad_lines_get_one_sentence_with_the_remedy() {
        for (line, remedy) in [
            ("--loops", "write it behind the option"),
            ("--loops 0", "use 1 to"),
            ("--loops many", "use 1 to"),
            ("--cpu 0,1", "use 0 to 1023"),
            ("--rt 100", "use 1 to 99"),
            ("--warm-up x", "use 0 to"),
            ("--tracepoint=1", "leave out `=1`"),
            ("--rate 5", "add --tracepoint"),
            ("--tracepoint --rate 0", "use 1 to"),
            ("--peak 5", "write 5us, 5ms"),
            ("--max-time 2h", "a shorter --max-time"),
            ("--record", "write it behind the option"),
            ("--reader active", "add --record DIR"),
            ("-k sched", "add --record DIR"),
            ("--agent x", "add --record DIR"),
            ("--record t -k Sched", "such as sched,irq"),
            ("--record t --reader fast", "use adaptive, timed=TIME, active or waking"),
            ("--record t --reader timed=5", "write 5us, 5ms"),
            ("--frobnicate", "--help lists them"),
            ("1000", "`1000` belongs to no option"),
        ] {
            let error = parsed(line).unwrap_err().to_string();
            assert!(error.contains(remedy) && !error.contains('\n'), "{line}: {error}");
        }
    }
}
