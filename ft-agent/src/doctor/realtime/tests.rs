use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::super::Status;
use super::*;

/// A machine of these files, each with its text.
fn machine(files: &[(&str, &str)]) -> TempDir {
    let root = TempDir::new().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

/// The check of this name.
fn check(root: &Path, process: Option<i32>, name: &str) -> (Status, String) {
    let checks = Machine::new(root, process).checks(process);
    for check in &checks {
        assert_eq!(check.remedy.is_empty(), check.status == Status::Ok, "{check:?}");
        assert_ne!(check.status, Status::Fail, "{check:?}");
    }
    let found = checks.into_iter().find(|check| check.name == name).unwrap();
    (found.status, found.found)
}

const CPUS: (&str, &str) = ("sys/devices/system/cpu/online", "0-3\n");

/// A machine of these files and four CPUs.
fn found(files: &[(&str, &str)], name: &str) -> (Status, String) {
    let root = machine(&[&[CPUS], files].concat());
    check(root.path(), None, name)
}

fn is_ok(files: &[(&str, &str)], name: &str) {
    let (status, text) = found(files, name);
    assert_eq!(status, Status::Ok, "{text}");
}

fn warns(files: &[(&str, &str)], name: &str, part: &str) {
    let (status, text) = found(files, name);
    assert_eq!(status, Status::Warn, "{text}");
    assert!(text.contains(part), "{text}");
}

#[test]
fn preemption_is_what_runs_not_what_is_built() {
    let dynamic = ("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Thu");
    let chosen = |text| [dynamic, ("sys/kernel/debug/sched/preempt", text)];
    is_ok(&chosen("none voluntary (full) lazy\n"), "preemption");
    is_ok(&chosen("none voluntary full (lazy)\n"), "preemption");
    warns(&chosen("(none) voluntary full lazy\n"), "preemption", "none: ");
    warns(&chosen("none (voluntary) full\n"), "preemption", "voluntary: ");
    warns(&[dynamic], "preemption", "cannot be read");
    is_ok(&[dynamic, ("proc/cmdline", "quiet preempt=none preempt=full")], "preemption");
    is_ok(&[("sys/kernel/realtime", "1\n")], "preemption");
    is_ok(&[("proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian")], "preemption");
    is_ok(&[("proc/sys/kernel/version", "#1 SMP PREEMPT Debian")], "preemption");
    warns(&[("proc/sys/kernel/version", "#1 SMP Debian")], "preemption", "none or voluntary");
}

#[test]
fn cpus_are_isolated_by_option_or_partition() {
    warns(&[], "isolated CPUs", "CPUs 0-3");
    let by_option = ("sys/devices/system/cpu/isolated", "2\n");
    is_ok(&[by_option], "isolated CPUs");
    is_ok(&[by_option, ("sys/fs/cgroup/cpuset.cpus.isolated", "3\n")], "isolated CPUs");
    // The others are those of the loop.
    warns(&[by_option, ("sys/devices/system/cpu/nohz_full", "(null)")], "timer tick", "CPU 2");
    is_ok(&[by_option, ("sys/devices/system/cpu/nohz_full", "1-2")], "timer tick");
}

#[test]
fn interrupts_strike_by_their_effective_affinity() {
    let isolated = ("sys/devices/system/cpu/isolated", "2\n");
    let files = |effective| {
        [
            isolated,
            ("proc/irq/9/smp_affinity_list", "0-3"),
            ("proc/irq/24/eth0/x", ""),
            ("proc/irq/24/smp_affinity_list", "0-3"),
            ("proc/irq/24/effective_affinity_list", effective),
        ]
    };
    // Number 9 has no handler.
    is_ok(&files("1"), "interrupts");
    warns(&files("2-3"), "interrupts", "CPU 2, with their softirqs: eth0 (24)");
    let rps = |mask| [isolated, ("sys/class/net/veth0/queues/rx-0/rps_cpus", mask)];
    is_ok(&rps("00000000,00000000"), "received packets");
    is_ok(&rps("00000004,0000000b"), "received packets");
    warns(&rps("00000000,00000004"), "received packets", "veth0");
}

#[test]
fn budgets_are_those_of_the_kernel_that_runs() {
    let files = |release, runtime| {
        [
            ("proc/sys/kernel/osrelease", release),
            ("proc/sys/kernel/sched_rt_runtime_us", runtime),
            ("proc/sys/kernel/sched_rt_period_us", "1000000"),
            ("sys/kernel/debug/sched/fair_server/cpu0/runtime", "50000000\n"),
        ]
    };
    warns(&files("6.11.3", "950000"), "real-time budget", "950 ms of each 1.00 s");
    is_ok(&files("6.11.3", "-1"), "real-time budget");
    is_ok(&files("6.12.0", "950000"), "real-time budget");
    let groups = [&files("6.12.0", "950000")[..], &[("sys/fs/cgroup/cpu/cpu.rt_runtime_us", "")]];
    warns(&groups.concat(), "real-time budget", "950 ms");
    warns(&files("6.12.0", "-1"), "fair server", "gives 50.0 ms of each second");
    warns(&files("6.12.0", "-1")[..3], "fair server", "cannot be read");
    let root = machine(&files("6.11.3", "-1"));
    let checks = Machine::new(root.path(), None).checks(None);
    assert!(checks.iter().all(|check| check.name != "fair server"));
}

#[test]
fn cores_frequencies_and_idle_states() {
    is_ok(&[], "shared cores");
    let siblings = |cpu1| {
        [
            ("sys/devices/system/cpu/smt/active", "1"),
            ("sys/devices/system/cpu/cpu1/topology/thread_siblings_list", cpu1),
        ]
    };
    is_ok(&siblings("1"), "shared cores");
    warns(&siblings("1,3"), "shared cores", "CPUs 1,3");
    is_ok(&[], "frequency");
    let governor = |text| [("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", text)];
    is_ok(&governor("performance\n"), "frequency");
    warns(&governor("powersave\n"), "frequency", "'powersave' lowers that of CPU 0");
    is_ok(&[], "idle states");
    let state = |latency, disable| {
        [
            ("sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C1"),
            ("sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "2"),
            ("sys/devices/system/cpu/cpu0/cpuidle/state3/name", "C6"),
            ("sys/devices/system/cpu/cpu0/cpuidle/state3/latency", latency),
            ("sys/devices/system/cpu/cpu0/cpuidle/state3/disable", disable),
        ]
    };
    warns(&state("133", "0"), "idle states", "133 µs to leave C6");
    is_ok(&state("133", "1"), "idle states");
}

#[test]
fn a_process_is_judged_by_its_real_time_threads() {
    let stat = |policy: &str| {
        let fields = vec!["1"; 34].join(" ");
        format!("78 (loop (rt) 1) S 1 1 {fields} 80 {policy} 0")
    };
    let files = |policy: &str, locked: &str| {
        let status = format!("VmLck:\t{locked} kB\nVmRSS:\t2048 kB\n");
        let stat = stat(policy);
        let root = machine(&[CPUS]);
        for (path, text) in [
            ("status", status.as_str()),
            ("timerslack_ns", "50000"),
            ("task/78/stat", &stat),
            ("task/78/status", "Cpus_allowed_list:\t1\n"),
            ("task/77/stat", "77 (main) S 1"),
            ("task/77/status", "Cpus_allowed_list:\t0-3\n"),
        ] {
            let path = root.path().join("proc/77").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    };
    let is = |root: &TempDir, name, status, part: &str| {
        let (found, text) = check(root.path(), Some(77), name);
        assert_eq!(found, status, "{text}");
        assert!(text.contains(part), "{text}");
    };
    let fifo = files("1", "1024");
    is(&fifo, "scheduling class", Status::Ok, "loop (rt) 1 (78) FIFO 80 on CPU 1");
    is(&fifo, "locked memory", Status::Ok, "1.00 MiB; 2.00 MiB are in memory");
    is(&fifo, "timer slack", Status::Ok, "have none");
    is(&fifo, "isolated CPUs", Status::Warn, "moved to CPU 1:");
    let ordinary = files("0", "0");
    is(&ordinary, "scheduling class", Status::Warn, "no thread of 77");
    is(&ordinary, "locked memory", Status::Warn, "none");
    is(&ordinary, "timer slack", Status::Warn, "50.0 µs late");
    is(&ordinary, "isolated CPUs", Status::Warn, "moved to CPUs 0-3:");
}
