//! Facts of the machine, for the first frame of a spool.

use std::fs;
use std::time::Duration;

use super::{StartAt, cost};
use crate::{clock, cpus};
use ft_trace::spool::frame::{self, ClockSample, IrqName, Start};

/// Time over which the frequency of the TSC is measured at the start. The model that conversions use
/// comes from all samples of the recording; this is a first figure for reports.
const FREQUENCY_TIME: Duration = Duration::from_millis(20);

/// The facts that are known before, and a clock sample for [`begin`].
pub(super) fn facts(start: Start) -> (Start, ClockSample) {
    let first = clock::sample();
    // One that is counted costs more, and how much depends on the counters.
    let event_cost_ns = start.counters.is_empty().then(cost::event_ns).flatten();
    let uname = rustix::system::uname();
    let cpuinfo = read("/proc/cpuinfo");
    let facts = Start {
        agent_version: env!("CARGO_PKG_VERSION").into(),
        user_layout: ft_user::layout::VERSION,
        kernel_layout: ft_ebpf::VERSION,
        host: uname.nodename().to_string_lossy().into_owned(),
        boot_id: line("/proc/sys/kernel/random/boot_id"),
        kernel: uname.release().to_string_lossy().into_owned(),
        cpu_model: cpu_model(&cpuinfo),
        hypervisor: clock::has_flag(&cpuinfo, "hypervisor"),
        tsc_lacks: clock::unannounced(&cpuinfo).into_iter().map(str::to_owned).collect(),
        cpus: cpus::possible().last().map_or(1, |highest| highest + 1),
        irq_names: irq_names(&read("/proc/interrupts")),
        clock_source: clock::source(),
        ptp_clocks: clock::ptp_clocks(),
        agent_pid: i32::try_from(std::process::id()).ok(),
        event_cost_ns,
        ..start
    };
    (facts, first)
}

/// The recording begins: all facts, and its first clock sample, at least 20 ms after the one that came with them.
pub(super) fn begin(
    facts: Start,
    first: ClockSample,
    start_at: Option<&StartAt>,
) -> (Start, ClockSample) {
    let since = Duration::from_nanos((clock::monotonic_ns() - first.mono_ns).unsigned_abs());
    std::thread::sleep(FREQUENCY_TIME.saturating_sub(since));
    let second = clock::sample_with_host();
    let cycles = second.tsc.wrapping_sub(first.tsc) as f64;
    let start = Start {
        steal_ns: steal_ns(),
        tsc_hz: cycles * 1e9 / (second.mono_ns - first.mono_ns) as f64,
        start_ns: second.mono_ns,
        start_at: start_at.map(|start_at| frame::StartAt {
            asked: start_at.asked.clone(),
            asked_ns: start_at.at_ns,
            began_ns: second.mono_ns + second.realtime_offset_ns,
        }),
        ..facts
    };
    (start, second)
}

/// CPU time of all threads of this process so far, ns.
pub(super) fn cpu_ns() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Stolen from each CPU since boot, by its number, ns.
pub(super) fn steal_ns() -> Vec<Option<i64>> {
    steal_of(&read("/proc/stat"))
}

/// Eighth figure of the lines `cpuN`, in ticks of USER_HZ, which is 100 (proc_stat(5)). A CPU that is offline has none.
fn steal_of(stat: &str) -> Vec<Option<i64>> {
    let of_cpu = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_whitespace();
        let cpu = words.next()?.parse::<u16>().ok()?;
        Some((usize::from(cpu), words.nth(7)?.parse::<i64>().ok()?.checked_mul(10_000_000)?))
    };
    let mut steal = Vec::new();
    for line in stat.lines().skip(1).take_while(|line| line.starts_with("cpu")) {
        let Some((cpu, ns)) = of_cpu(line) else { return Vec::new() };
        steal.resize(steal.len().max(cpu + 1), None);
        steal[cpu] = Some(ns);
    }
    steal
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn line(path: &str) -> String {
    read(path).trim().to_owned()
}

fn cpu_model(cpuinfo: &str) -> String {
    let line = cpuinfo.lines().find(|l| l.starts_with("model name"));
    line.and_then(|l| l.split_once(':')).map_or("", |(_, model)| model).trim().to_owned()
}

/// Numbered lines of `/proc/interrupts`: `LINE: count per CPU… chip hwirq name`.
fn irq_names(interrupts: &str) -> Vec<IrqName> {
    let mut lines = interrupts.lines();
    let cpus = lines.next().map_or(0, |header| header.split_whitespace().count());
    let name = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        let number = number.trim().parse().ok()?;
        // Behind the counts: the chip, the line of the chip, the actions.
        let words: Vec<&str> = rest.split_whitespace().skip(cpus + 2).collect();
        (!words.is_empty()).then(|| IrqName { number, name: words.join(" ") })
    };
    lines.filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupt_lines_have_names() {
        let text = "           CPU0       CPU1\n  4:  1  22   IO-APIC   4-edge      ttyS0\n \
                    24:  0  5  PCI-MSI-0000:00:03.0   1-edge  virtio0-input.0\n 9:  0  0  IO-APIC  9\n\
                    LOC:  3  4   Local timer interrupts\n";
        let names: Vec<_> = irq_names(text).into_iter().map(|n| (n.number, n.name)).collect();
        assert_eq!(names, [(4, "ttyS0".into()), (24, "virtio0-input.0".into())]);
        assert!(irq_names("").is_empty());
    }

    #[test]
    fn stolen_time_is_read_for_each_cpu() {
        let stat = "cpu  1 2 3 4 5 6 7 30 9 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n\
                    cpu1 1 2 3 4 5 6 7 22 9 0\nintr 1 2 3\n";
        assert_eq!(steal_of(stat), [Some(80_000_000), Some(220_000_000)]);
        assert!(steal_of("cpu  1 2 3\ncpu0 1 2 3\n").is_empty());
    }

    #[test]
    fn a_cpu_that_is_offline_takes_no_others_stolen_time() {
        let stat = "cpu  1 2 3 4 5 6 7 30 9 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n\
                    cpu3 1 2 3 4 5 6 7 22 9 0\nintr 1 2 3\n";
        assert_eq!(steal_of(stat), [Some(80_000_000), None, None, Some(220_000_000)]);
    }

    #[test]
    fn the_model_is_found() {
        assert_eq!(cpu_model("a: b\nmodel name\t: AMD EPYC\n"), "AMD EPYC");
        assert_eq!(cpu_model(""), "");
    }
}
