//! What a running process has of its own: classes and CPUs of its threads, locked memory, timer slack.

use std::collections::BTreeSet;

use ft_report::units::{short_bytes, short_ns};

use super::super::Check;
use super::{Machine, listed, some};
use crate::cpus::parse;

/// A thread that the scheduler runs before all ordinary ones.
struct RealTime {
    tid: String,
    name: String,
    class: &'static str,
    priority: u32,
    cpus: BTreeSet<u32>,
}

impl Machine {
    /// CPUs on which its real-time threads may run, or all its threads if it has none.
    pub(super) fn cpus_of(&self, pid: i32) -> BTreeSet<u32> {
        let threads = self.real_time(pid);
        if !threads.is_empty() {
            return threads.into_iter().flat_map(|thread| thread.cpus).collect();
        }
        let tasks = self.names(&format!("proc/{pid}/task"));
        tasks.iter().flat_map(|tid| self.allowed(pid, tid)).collect()
    }

    pub(super) fn process(&self, pid: i32) -> Vec<Check> {
        let threads = self.real_time(pid);
        vec![scheduling(pid, &threads), self.memory(pid), self.slack(pid, threads.is_empty())]
    }

    fn allowed(&self, pid: i32, tid: &str) -> BTreeSet<u32> {
        let status = self.read(&format!("proc/{pid}/task/{tid}/status")).unwrap_or_default();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        list.map(parse).unwrap_or_default().into_iter().collect()
    }

    fn real_time(&self, pid: i32) -> Vec<RealTime> {
        let tasks = self.names(&format!("proc/{pid}/task"));
        let thread = |tid: String| {
            let stat = self.read(&format!("proc/{pid}/task/{tid}/stat"))?;
            // The name is in brackets and may have some; behind them the third field begins (proc_pid_stat(5)).
            let (head, rest) = stat.rsplit_once(')')?;
            let name = head.split_once('(')?.1.to_owned();
            let fields: Vec<&str> = rest.split_whitespace().collect();
            let (priority, policy) = (fields.get(37)?.parse().ok()?, *fields.get(38)?);
            // sched(7), linux/sched.h.
            let class = match policy {
                "1" => "FIFO",
                "2" => "RR",
                "6" => "DEADLINE",
                _ => return None,
            };
            let cpus = self.allowed(pid, &tid);
            Some(RealTime { tid, name, class, priority, cpus })
        };
        tasks.into_iter().filter_map(thread).collect()
    }

    /// Whether pages are there before they are touched.
    fn memory(&self, pid: i32) -> Check {
        const NAME: &str = "locked memory";
        let status = self.read(&format!("proc/{pid}/status")).unwrap_or_default();
        let bytes = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
        };
        match (bytes("VmLck:"), bytes("VmRSS:")) {
            (Some(0), _) => Check::warn(
                NAME,
                "none: a page's first touch is a fault, and pages of files can go at any time",
                "call mlockall(MCL_CURRENT | MCL_FUTURE) before the loop begins",
            ),
            (Some(locked), Some(there)) => Check::ok(
                NAME,
                format!("{}; {} are in memory", short_bytes(locked), short_bytes(there)),
            ),
            _ => Check::warn(NAME, "unknown", "run this as the process's user, or as root"),
        }
    }

    /// Sleeps of ordinary threads may end so much later (prctl(2), PR_SET_TIMERSLACK).
    fn slack(&self, pid: i32, is_ordinary: bool) -> Check {
        const NAME: &str = "timer slack";
        let read = self.read(&format!("proc/{pid}/timerslack_ns"));
        let ns: Option<u64> = read.and_then(|text| text.parse().ok());
        match ns {
            _ if !is_ordinary => Check::ok(NAME, "real-time threads have none"),
            Some(ns) if ns > 1 => Check::warn(
                NAME,
                format!("a sleep may end {} late", short_ns(ns as f64)),
                "call prctl(PR_SET_TIMERSLACK, 1) in the thread, or give it a real-time class",
            ),
            Some(ns) => Check::ok(NAME, format!("{ns} ns")),
            None => Check::warn(NAME, "unknown", "run this as root"),
        }
    }
}

fn scheduling(pid: i32, threads: &[RealTime]) -> Check {
    const NAME: &str = "scheduling class";
    if threads.is_empty() {
        return Check::warn(
            NAME,
            format!(
                "no thread of {pid} is real-time (FIFO, RR, DEADLINE): any other thread can delay it"
            ),
            "chrt -f -p 80 TID, or pthread_setschedparam in the program",
        );
    }
    let word = |thread: &RealTime| {
        let priority = match thread.class {
            "DEADLINE" => String::new(),
            _ => format!(" {}", thread.priority),
        };
        let (name, on) = (&thread.name, listed(&thread.cpus));
        format!("{name} ({}) {}{priority} on {on}", thread.tid, thread.class)
    };
    let words: Vec<String> = threads.iter().map(word).collect();
    Check::ok(NAME, some(&words))
}
