//! The command line of `ft-load npt`.

use super::measure::Plan;
use crate::Error;
use crate::args::Words;

pub(super) const HELP: &str = "\
ft-load npt [OPTIONS]

A loop on one CPU that nothing should interrupt: how long each pass took (Beamonte and Dagenais, \"Linux
low-latency tracing for multicore hard real-time systems\", 2015).

      --loops N          passes (default 10000000)
      --cpu N            the CPU (default: the last one that the process may run on)
      --rt PRIORITY      SCHED_FIFO, 1 to 99 (default: as the process is)
      --warm-up N        passes before those, which do not count (default 5)
      --eval-cpu-speed   keep the CPU busy for half a second first, and measure the counter's frequency meanwhile
      --no-lock-memory   do without locked memory
      --tracepoint       write an event in each pass, where somebody records
      --rate N           at most that many events a second
      --peak TIME        passes that are longer are peaks (default 5us); in a recording `gaps` says why
      --max-time TIME    end after this time, done or not (default 1m)
      --json             print JSON

Examples:
  ft-load npt --rt 90 --cpu 1
  ft-agent record -o trace -- ft-load npt --rt 90 --tracepoint --loops 1000000";

/// Passes that may be asked for: half an hour of them.
const MAX_LOOPS: u64 = 100_000_000_000;

/// The longest that a loop may last: an hour, ns.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Reads the command line; `None` where it asks for help.
///
/// # Errors
///
/// A sentence for the first thing in it that makes no sense.
pub(super) fn read(words: &[String]) -> Result<Option<(Plan, bool)>, Error> {
    let mut words = Words::new(words);
    let mut json = false;
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
    Ok(Some((plan, json)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<(Plan, bool)>, Error> {
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
        assert_eq!(parsed(line), Ok(Some((plan, true))));
        let Ok(Some((plan, false))) = parsed("") else { panic!("every option has a default") };
        assert_eq!((plan.loops, plan.warm_up, plan.lock_memory), (10_000_000, 5, true));
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
            ("--frobnicate", "--help lists them"),
            ("1000", "`1000` belongs to no option"),
        ] {
            let error = parsed(line).unwrap_err().to_string();
            assert!(error.contains(remedy) && !error.contains('\n'), "{line}: {error}");
        }
    }
}
