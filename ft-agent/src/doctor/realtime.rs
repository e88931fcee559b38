//! What of this machine delays a real-time thread, and what of a program that runs.
//!
//! Nothing here fails: each fact delays some loops and not others. A judgement names its effect, so that a reader can tell whether it is his.
//! All facts are files below `/proc` and `/sys`; a test has a folder of its own in their place. Sources: the kernel's
//! Documentation/admin-guide/kernel-parameters.txt and sysctl/kernel.rst, proc(5), cpuset(7).

mod process;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use ft_report::units::short_ns;
use ft_trace::legible::legible;

use super::Check;
use crate::collect::kernel;
use crate::cpus::parse;

/// Longer wake-ups of an idle CPU are worth a word, µs. The first idle state of most CPUs takes 1 or 2.
const LONG_WAKE_UP: u64 = 10;

/// Names that one line lists.
const SHOWN: usize = 4;

/// All checks. With a process, of the CPUs on which its real-time threads may run; else of those that are isolated, or of all if none is.
pub(super) fn run(process: Option<i32>) -> Vec<Check> {
    Machine::new(Path::new("/"), process).checks(process)
}

struct Machine {
    root: PathBuf,
    /// Those of the loop.
    cpus: BTreeSet<u32>,
}

impl Machine {
    fn new(root: &Path, process: Option<i32>) -> Machine {
        let mut machine = Machine { root: root.to_owned(), cpus: BTreeSet::new() };
        machine.cpus = match process {
            Some(pid) => machine.cpus_of(pid),
            None => machine.isolated(),
        };
        if machine.cpus.is_empty() {
            machine.cpus = machine.list("sys/devices/system/cpu/online");
        }
        machine
    }

    fn checks(&self, process: Option<i32>) -> Vec<Check> {
        let mut all = process.map(|pid| self.process(pid)).unwrap_or_default();
        all.extend([
            self.preemption(),
            self.isolation(),
            self.ticks(),
            self.interrupts(),
            self.packets(),
            self.budget(),
        ]);
        all.extend(self.fair_server());
        all.extend([self.siblings(), self.frequency(), self.idle_states()]);
        all
    }

    /// A file's text without white space at its ends; `None` where it cannot be read.
    fn read(&self, path: &str) -> Option<String> {
        Some(fs::read_to_string(self.root.join(path)).ok()?.trim().to_owned())
    }

    fn list(&self, path: &str) -> BTreeSet<u32> {
        parse(&self.read(path).unwrap_or_default()).into_iter().collect()
    }

    /// Names in a folder, in order.
    fn names(&self, path: &str) -> BTreeSet<String> {
        let entries = fs::read_dir(self.root.join(path)).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// What a file of each of the loop's CPUs says, with those CPUs.
    fn of_each(&self, file: &str) -> BTreeMap<String, BTreeSet<u32>> {
        let mut found: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
        for &cpu in &self.cpus {
            if let Some(text) = self.read(&format!("sys/devices/system/cpu/cpu{cpu}/{file}")) {
                found.entry(text).or_default().insert(cpu);
            }
        }
        found
    }

    fn is_at_least(&self, version: (u32, u32)) -> bool {
        let release = self.read("proc/sys/kernel/osrelease").unwrap_or_default();
        kernel::version(&release).is_some_and(|found| found >= version)
    }

    /// When a thread in a system call gives way to one of higher priority.
    fn preemption(&self) -> Check {
        const NAME: &str = "preemption";
        const FULL: &str = "full: a real-time thread preempts system calls of others";
        const RT: &str =
            "PREEMPT_RT: a real-time thread preempts system calls and most interrupts of others";
        let version = self.read("proc/sys/kernel/version").unwrap_or_default();
        if self.read("sys/kernel/realtime").is_some_and(|text| text == "1")
            || version.contains("PREEMPT_RT")
        {
            return Check::ok(NAME, RT);
        }
        let choices = self.read("sys/kernel/debug/sched/preempt").unwrap_or_default();
        let chosen = choices.split_once('(').and_then(|(_, rest)| Some(rest.split_once(')')?.0));
        let command_line = self.read("proc/cmdline").unwrap_or_default();
        let booted = command_line.split_whitespace().rev().find_map(|w| w.strip_prefix("preempt="));
        match chosen.or(booted) {
            Some("full") => Check::ok(NAME, FULL),
            Some("lazy") => Check::ok(
                NAME,
                "lazy: a real-time thread preempts system calls of others; an ordinary one waits for the tick",
            ),
            Some(other) => Check::warn(
                NAME,
                format!(
                    "{other}: a thread in a long system call keeps the CPU until that pauses or ends"
                ),
                "boot with preempt=full, or a kernel with PREEMPT_RT",
            ),
            None if version.contains("PREEMPT_DYNAMIC") => Check::warn(
                NAME,
                "chosen at boot; the choice cannot be read",
                "mount -t debugfs debugfs /sys/kernel/debug, and run this again as root",
            ),
            None if version.split_whitespace().any(|word| word == "PREEMPT") => {
                Check::ok(NAME, FULL)
            }
            None => Check::warn(
                NAME,
                "none or voluntary: a thread in a long system call keeps the CPU until that pauses or ends",
                "use a kernel with PREEMPT_DYNAMIC (preempt=full) or PREEMPT_RT",
            ),
        }
    }

    /// By boot option, or by a partition of cgroup v2.
    fn isolated(&self) -> BTreeSet<u32> {
        let lists = ["sys/devices/system/cpu/isolated", "sys/fs/cgroup/cpuset.cpus.isolated"];
        lists.into_iter().flat_map(|path| self.list(path)).collect()
    }

    fn isolation(&self) -> Check {
        const NAME: &str = "isolated CPUs";
        let isolated = self.isolated();
        let open: BTreeSet<u32> = self.cpus.difference(&isolated).copied().collect();
        if open.is_empty() {
            return Check::ok(
                NAME,
                format!("{}: no other thread is moved there", listed(&self.cpus)),
            );
        }
        Check::warn(
            NAME,
            format!(
                "any thread may be moved to {}: it evicts caches, and its system calls delay",
                listed(&open)
            ),
            "boot with isolcpus=CPUS, or make a partition (cpuset.cpus.partition=isolated, cgroup v2)",
        )
    }

    fn ticks(&self) -> Check {
        const NAME: &str = "timer tick";
        // "(null)" where there are none.
        let stopped = self.list("sys/devices/system/cpu/nohz_full");
        let ticking: BTreeSet<u32> = self.cpus.difference(&stopped).copied().collect();
        if ticking.is_empty() {
            return Check::ok(
                NAME,
                format!("stopped on {} while one thread runs", listed(&self.cpus)),
            );
        }
        Check::warn(
            NAME,
            format!("strikes {} 100 to 1,000 times a second, for some µs each", listed(&ticking)),
            "matters below some 10 µs: boot with nohz_full=CPUS rcu_nocbs=CPUS (CONFIG_NO_HZ_FULL)",
        )
    }

    /// Interrupts that have a handler and may strike the loop's CPUs.
    fn interrupts(&self) -> Check {
        const NAME: &str = "interrupts";
        let numbers = self.names("proc/irq");
        // The handler's name is that of a folder (Documentation/core-api/irq/irq-affinity.rst has the files).
        let handler = |number: &String| {
            let folder = format!("proc/irq/{number}");
            let is_folder = |name: &String| self.root.join(&folder).join(name).is_dir();
            self.names(&folder).into_iter().find(is_folder)
        };
        let strikes = |number: &String| {
            let of = |file| self.list(&format!("proc/irq/{number}/{file}"));
            let effective = of("effective_affinity_list");
            let may = if effective.is_empty() { of("smp_affinity_list") } else { effective };
            !may.is_disjoint(&self.cpus)
        };
        let found: Vec<String> = numbers
            .iter()
            .filter(|number| number.parse::<u32>().is_ok() && strikes(number))
            .filter_map(|number| Some(format!("{} ({number})", handler(number)?)))
            .collect();
        if found.is_empty() {
            return Check::ok(
                NAME,
                format!("those of devices strike none of {}", listed(&self.cpus)),
            );
        }
        Check::warn(
            NAME,
            format!(
                "of devices strike {}, with their softirqs: {}",
                listed(&self.cpus),
                some(&found)
            ),
            "echo OTHER_CPUS > /proc/irq/NUMBER/smp_affinity_list, and stop irqbalance; or boot with irqaffinity=",
        )
    }

    /// Receive packet steering: the softirq of a packet runs on these CPUs (Documentation/networking/scaling.rst).
    fn packets(&self) -> Check {
        const NAME: &str = "received packets";
        let steered = |device: &String| {
            let queues = format!("sys/class/net/{device}/queues");
            self.names(&queues).iter().any(|queue| {
                let mask = self.read(&format!("{queues}/{queue}/rps_cpus")).unwrap_or_default();
                !bits(&mask).is_disjoint(&self.cpus)
            })
        };
        let devices: Vec<String> =
            self.names("sys/class/net").into_iter().filter(steered).collect();
        if devices.is_empty() {
            return Check::ok(NAME, format!("none are steered to {}", listed(&self.cpus)));
        }
        Check::warn(
            NAME,
            format!("of {} are handled on {} (RPS)", some(&devices), listed(&self.cpus)),
            "leave these CPUs out of /sys/class/net/DEVICE/queues/rx-*/rps_cpus",
        )
    }

    /// What real-time threads may take of each period. From 6.12 on only groups of threads have such a limit.
    fn budget(&self) -> Check {
        const NAME: &str = "real-time budget";
        let figure = |name: &str| -> Option<i64> {
            self.read(&format!("proc/sys/kernel/{name}"))?.parse().ok()
        };
        let has_groups = ["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"]
            .iter()
            .any(|folder| self.root.join(folder).join("cpu.rt_runtime_us").exists());
        match (figure("sched_rt_runtime_us"), figure("sched_rt_period_us")) {
            (Some(runtime), Some(period)) if runtime >= 0 && runtime < period => {
                let at_most = format!(
                    "at most {} of each {}",
                    short_ns(runtime as f64 * 1e3),
                    short_ns(period as f64 * 1e3)
                );
                if self.is_at_least((6, 12)) && !has_groups {
                    return Check::ok(NAME, "none: this kernel limits no real-time thread");
                }
                Check::warn(
                    NAME,
                    format!(
                        "{at_most} for all threads of FIFO and RR; then they stop, until the period ends"
                    ),
                    "sysctl kernel.sched_rt_runtime_us=-1, if none of them can run for ever",
                )
            }
            (None, _) | (_, None) => Check::warn(NAME, "unknown", "mount /proc"),
            _ => Check::ok(NAME, "all of the time"),
        }
    }

    /// What ordinary threads get where real-time ones leave them nothing: since 6.12.
    fn fair_server(&self) -> Option<Check> {
        const NAME: &str = "fair server";
        const REMEDY: &str = "echo 0 > /sys/kernel/debug/sched/fair_server/cpuN/runtime, if no real-time thread can run for ever";
        if !self.is_at_least((6, 12)) {
            return None;
        }
        let folder = "sys/kernel/debug/sched/fair_server";
        let known: BTreeMap<u32, u64> = self
            .cpus
            .iter()
            .filter_map(|cpu| {
                Some((*cpu, self.read(&format!("{folder}/cpu{cpu}/runtime"))?.parse().ok()?))
            })
            .collect();
        let most = known.values().max();
        let gives = "to ordinary threads, though a real-time thread wants the CPU";
        Some(match most {
            Some(0) => Check::ok(NAME, format!("off on {}", listed(&self.cpus))),
            Some(&ns) => Check::warn(
                NAME,
                format!("gives {} of each second {gives}", short_ns(ns as f64)),
                REMEDY,
            ),
            None => Check::warn(
                NAME,
                format!(
                    "gives 50 ms of each second {gives}, unless it was changed: that cannot be read"
                ),
                REMEDY,
            ),
        })
    }

    fn siblings(&self) -> Check {
        const NAME: &str = "shared cores";
        if self.read("sys/devices/system/cpu/smt/active").is_none_or(|text| text != "1") {
            return Check::ok(NAME, "none: each CPU is a core");
        }
        let siblings: BTreeSet<u32> = self
            .of_each("topology/thread_siblings_list")
            .into_iter()
            .filter(|(list, _)| parse(list).len() > 1)
            .flat_map(|(list, _)| parse(&list))
            .collect();
        if siblings.is_empty() {
            return Check::ok(NAME, format!("{} share none", listed(&self.cpus)));
        }
        Check::warn(
            NAME,
            format!("{} share cores: work on one slows the other", listed(&siblings)),
            "leave the loop's sibling idle, or boot with nosmt",
        )
    }

    fn frequency(&self) -> Check {
        const NAME: &str = "frequency";
        let mut governors = self.of_each("cpufreq/scaling_governor");
        governors.remove("performance");
        let Some((governor, slow)) = governors.pop_first() else {
            return Check::ok(NAME, format!("no governor lowers that of {}", listed(&self.cpus)));
        };
        Check::warn(
            NAME,
            format!(
                "'{governor}' lowers that of {}: work takes longer after idle time",
                listed(&slow)
            ),
            "cpupower -c CPUS frequency-set -g performance",
        )
    }

    /// The longest time that a CPU needs to leave an idle state which it may enter.
    fn idle_states(&self) -> Check {
        const NAME: &str = "idle states";
        let longest = self.cpus.iter().flat_map(|cpu| {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle");
            let state = |state: String| {
                let of = |file| self.read(&format!("{folder}/{state}/{file}"));
                let is_off = of("disable").is_some_and(|text| text != "0");
                let us: u64 = of("latency")?.parse().ok()?;
                (!is_off).then(|| (us, of("name").unwrap_or_default()))
            };
            self.names(&folder).into_iter().filter_map(state).collect::<Vec<_>>()
        });
        match longest.max() {
            Some((us, name)) if us > LONG_WAKE_UP => Check::warn(
                NAME,
                format!("a CPU takes up to {us} µs to leave {name}"),
                "keep /dev/cpu_dma_latency open with a 0 written to it, or: cpupower idle-set -D 2",
            ),
            Some((us, name)) => Check::ok(NAME, format!("a CPU leaves {name} within {us} µs")),
            None => Check::ok(NAME, "the kernel chooses none; a hypervisor may"),
        }
    }
}

/// `CPU 1`, `CPUs 0-3,8`.
fn listed(set: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &cpu in set {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let word = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let list = ranges.iter().map(word).collect::<Vec<_>>().join(",");
    format!("CPU{} {list}", if set.len() == 1 { "" } else { "s" })
}

/// Reads a mask like `00000001,80000003`: hexadecimal, most significant word first.
fn bits(mask: &str) -> BTreeSet<u32> {
    let words = mask.split(',').rev().map(|word| u32::from_str_radix(word.trim(), 16).unwrap_or(0));
    let bits = |(at, word): (u32, u32)| {
        (0..32).filter(move |bit| word & 1 << bit != 0).map(move |bit| at * 32 + bit)
    };
    (0..).zip(words).flat_map(bits).collect()
}

fn some(names: &[String]) -> String {
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    let shown = legible(&shown);
    if more > 0 { format!("{shown} and {more} more") } else { shown.into_owned() }
}
