//! The command line of `ft-load capacity`.

use std::path::PathBuf;

use crate::args::{Words, number};
use crate::events::{LONGEST_NS, MOST_THREADS};
use crate::{Error, agent};

pub(super) const HELP: &str = "\
ft-load capacity [OPTIONS]

The highest rate of events at which a recording loses nothing on this machine, by binary search (Beamonte and Dagenais,
\"Linux low-latency tracing for multicore hard real-time systems\", 2015, table 4): for each number of threads, with and
without records of the kernel, and for each size of a thread's ring.

      --threads LIST     numbers of threads, 1 to 64 (default 1,2, or 1 where there is one CPU)
  -k, --kernel GROUPS    kernel groups of `ft-agent record`; may be given more than once (default none, and
                         sched,irq,task, which needs root)
      --ring-size LIST   sizes of a thread's ring, 128K to 128M (default 8M)
      --kernel-buffer SIZE
                         size of the buffer of the kernel's records (default: the agent's)
      --time TIME        length of a run; there are about 20 for each row (default 2s)
      --dir DIR          where the recordings are made, one at a time, and removed (default /dev/shm: the disk is not
                         measured)
      --agent FILE       ft-agent (default: beside this program, else of the PATH)
      --json             print JSON, with every run

Examples:
  ft-load capacity
  ft-load capacity --threads 1 -k none --ring-size 1M,8M,32M --time 500ms";

/// What is to be found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) threads: Vec<usize>,
    /// As the agent's `-k` has them.
    pub(super) kernel: Vec<String>,
    /// As the agent's `--ring-size` has them.
    pub(super) rings: Vec<String>,
    pub(super) kernel_buffer: Option<String>,
    pub(super) time_ns: u64,
    pub(super) dir: Option<PathBuf>,
    pub(super) agent: Option<PathBuf>,
}

/// Reads the command line; `None` where it asks for help.
///
/// # Errors
///
/// A sentence for the first part of it that makes no sense.
pub(super) fn read(words: &[String], cpus: usize) -> Result<Option<(Plan, bool)>, Error> {
    let mut words = Words::new(words);
    let mut json = false;
    let mut plan = Plan {
        threads: Vec::new(),
        kernel: Vec::new(),
        rings: Vec::new(),
        kernel_buffer: None,
        time_ns: 2_000_000_000,
        dir: None,
        agent: None,
    };
    while let Some(option) = words.option()? {
        match option {
            "--threads" => {
                let list = words.value("numbers of threads")?.split(',');
                let threads = list.map(|text| number(text, option, 1, MOST_THREADS));
                plan.threads = threads.collect::<Result<_, _>>()?;
            }
            "-k" | "--kernel" => plan.kernel.push(agent::groups(words.value("kernel groups")?)?),
            "--ring-size" => {
                let list = words.value("sizes")?.split(',').map(|text| size(text, option));
                plan.rings = list.collect::<Result<_, _>>()?;
            }
            "--kernel-buffer" => plan.kernel_buffer = Some(size(words.value("a size")?, option)?),
            "--time" => plan.time_ns = words.time("a time")?,
            "--dir" => plan.dir = Some(words.value("a directory")?.into()),
            "--agent" => plan.agent = Some(words.value("a file")?.into()),
            "--json" => json = true,
            "-h" | "--help" => return Ok(None),
            _ => return Err(words.unknown()),
        }
    }
    if !(10_000_000..=LONGEST_NS).contains(&plan.time_ns) {
        return Err(Error::usage("a run lasts 10ms to an hour; give another --time"));
    }
    if plan.threads.is_empty() {
        plan.threads = if cpus > 1 { vec![1, 2] } else { vec![1] };
    }
    if plan.kernel.is_empty() {
        plan.kernel = vec!["none".into(), "sched,irq,task".into()];
    }
    if plan.rings.is_empty() {
        plan.rings = vec!["8M".into()];
    }
    Ok(Some((plan, json)))
}

/// A size with its unit; which there can be the agent knows.
fn size(text: &str, option: &str) -> Result<String, Error> {
    let digits = text.strip_suffix(['K', 'M', 'G']).unwrap_or(text);
    match !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        true => Ok(text.to_owned()),
        false => Err(Error::usage(format!(
            "`{}` is no size that `{option}` takes; write 512K, 8M or 1G",
            text.escape_debug()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<(Plan, bool)>, Error> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        read(&words, 2)
    }

    #[test]
    fn every_option_is_read() {
        let line = "--threads 1,3 -k none --kernel sched,irq --ring-size 1M,512K --kernel-buffer 64M --time 500ms \
                    --dir /tmp --agent=./ft-agent --json";
        let plan = Plan {
            threads: vec![1, 3],
            kernel: vec!["none".into(), "sched,irq".into()],
            rings: vec!["1M".into(), "512K".into()],
            kernel_buffer: Some("64M".into()),
            time_ns: 500_000_000,
            dir: Some("/tmp".into()),
            agent: Some("./ft-agent".into()),
        };
        assert_eq!(parsed(line), Ok(Some((plan, true))));
        let Ok(Some((plan, false))) = parsed("") else { panic!("every option has a default") };
        assert_eq!((plan.threads, plan.time_ns), (vec![1, 2], 2_000_000_000));
        assert_eq!(plan.kernel, ["none", "sched,irq,task"]);
        assert_eq!(read(&[], 1).unwrap().unwrap().0.threads, [1]);
        assert_eq!(parsed("-h"), Ok(None));
    }

    #[test]
    fn bad_lines_get_one_sentence_with_the_remedy() {
        for (line, remedy) in [
            ("--threads 0", "use 1 to 64"),
            ("--threads 1,,2", "use 1 to 64"),
            ("--threads", "write it behind the option"),
            ("-k Sched", "such as sched,irq"),
            ("--kernel sched,", "such as sched,irq"),
            ("--ring-size 8X", "write 512K, 8M or 1G"),
            ("--ring-size 1M,", "write 512K, 8M or 1G"),
            ("--kernel-buffer M", "write 512K, 8M or 1G"),
            ("--time 1ms", "10ms to an hour"),
            ("--time 2h", "10ms to an hour"),
            ("--json=1", "leave out `=1`"),
            ("--frobnicate", "--help lists them"),
            ("8M", "`8M` belongs to no option"),
        ] {
            let error = parsed(line).unwrap_err().to_string();
            assert!(error.contains(remedy) && !error.contains('\n'), "{line}: {error}");
        }
    }
}
