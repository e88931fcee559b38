//! What the quota of a cgroup keeps from the CPU: as much as the kernel says.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
};

use ft_agent::collect::kernel::Group;
use ft_ebpf::Throttle;

use crate::common::{Record, drain, drain_until, kernel_or_skip, skipped};
use crate::options;

const QUOTA_US: u64 = 20_000;
const PERIOD_US: u64 = 100_000;

/// A cgroup with a quota, of whichever version the machine has; it is removed at the end.
struct Limited(PathBuf);

impl Limited {
    /// Makes it, or reports why not.
    fn make() -> Option<Limited> {
        let name = format!("ft-quota-{}", std::process::id());
        for root in ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"] {
            let group = Limited(Path::new(root).join(&name));
            if fs::create_dir(&group.0).is_err() {
                continue;
            }
            let set = |file: &str, text: String| fs::write(group.0.join(file), text).is_ok();
            let of_first_version = || {
                set("cpu.cfs_period_us", PERIOD_US.to_string())
                    && set("cpu.cfs_quota_us", QUOTA_US.to_string())
            };
            if set("cpu.max", format!("{QUOTA_US} {PERIOD_US}")) || of_first_version() {
                return Some(group);
            }
        }
        skipped("no cgroup can be made that has a quota; run as root");
        None
    }

    /// For how long the kernel has kept its threads from a CPU, ns.
    fn throttled_ns(&self) -> u64 {
        let text = fs::read_to_string(self.0.join("cpu.stat")).unwrap();
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse::<u64>().ok()
        };
        value("throttled_time ").or(value("throttled_usec ").map(|us| us * 1000)).expect("cpu.stat")
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Ends it also when the test fails.
struct Burner(Child);

impl Drop for Burner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_a_quota_takes_is_what_the_kernel_counts() {
    let groups = [Group::Sched, Group::Task];
    let Some(mut kernel) = kernel_or_skip(&options(&groups)) else { return };
    let Some(group) = Limited::make() else { return };
    // It has one CPU: the kernel counts each CPU of the group for itself.
    let shell = format!("echo $$ > {}/cgroup.procs && while :; do :; done", group.0.display());
    let pinned = ["-c", "0", "sh", "-c", &shell];
    // As what this process starts: its first throttle counts, too.
    kernel.observe(std::process::id());
    let burner = Burner(Command::new("taskset").args(pinned).spawn().expect("taskset"));
    let pid = burner.0.id();
    let of_burner = |records: &[Record]| -> Vec<Throttle> {
        let throttles = records.iter().filter_map(|record| match record {
            Record::Throttle(throttle) if throttle.tgid == pid => Some(*throttle),
            _ => None,
        });
        throttles.collect()
    };
    let mut records = drain_until(&mut kernel, |records| of_burner(records).len() >= 5);
    // Its last throttle ends, too, for it comes back to end.
    drop(burner);
    let counted = group.throttled_ns();
    records.extend(drain(&mut kernel));
    let throttles = of_burner(&records);
    for throttle in &throttles {
        let name = throttle.name.split(|byte| *byte == 0).next().unwrap();
        assert_eq!(group.0.file_name().unwrap().as_encoded_bytes(), name);
        assert_eq!(throttle.quota_ns, QUOTA_US * 1000);
        assert_eq!(throttle.period_ns, PERIOD_US * 1000);
        assert_eq!(throttle.flags & Throttle::SINCE_LEFT, Throttle::SINCE_LEFT);
        assert!(throttle.ns <= throttle.header.ts - throttle.left_ts, "{throttle:?}");
    }
    if throttles.iter().all(|throttle| throttle.flags & Throttle::MEASURED != 0) {
        let sum: u64 = throttles.iter().map(|throttle| throttle.ns).sum();
        let differs = sum.abs_diff(counted) as f64 / counted as f64;
        assert!(differs < 0.05, "{sum} ns of {counted}: {throttles:?}");
    }
}
