//! Table 2, Figure 6 and section 5.4: deadlines of a demanding thread beside the reception of network data.

use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::plot::lanes::{self, Lane, Panel};
use crate::quantity::{digits, ns, percent};
use crate::recorded::{Parts, Recorded};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "hourglass-table2",
    title: "Hourglass, Table 2 and Figure 6: deadlines beside network reception",
    full_minutes: 1.1,
    programs: &["ft-agent", "ft-load", "iperf3", "unshare", "ip"],
    run,
};

const PAPER_SECONDS: f64 = 20.0;

/// From the start of the network until it is counted, s.
const LEAD_S: f64 = 1.0;

fn run(lab: &Lab) -> Result<Finding> {
    let line = format!("-n 1 --cpu {} -t 0 -p RTHIGH -w PERIODIC 4ms 5ms -i HR", lab.cpu());
    let seconds = lab.seconds(PAPER_SECONDS);
    let alone = Recorded::hourglass(lab, PAPER_SECONDS, &line)?;
    let network = Network::start(lab, seconds)?;
    sleep(Duration::from_secs_f64(seconds + LEAD_S));
    let idle_rate = network.finish(seconds)?;
    let network = Network::start(lab, seconds)?;
    sleep(Duration::from_secs_f64(LEAD_S));
    let beside = Recorded::hourglass(lab, PAPER_SECONDS, &line)?;
    let busy_rate = network.finish(seconds)?;

    let half = seconds * 500.0;
    let panel = |title: &str, run: &Recorded| Panel {
        title: title.into(),
        lanes: vec![Lane {
            name: "4 ms in 5 ms".into(),
            runs: run.runs().map(|(_, interval)| interval).collect(),
        }],
        window: half.floor()..half.floor() + 25.0,
    };
    let svg =
        lanes::draw(&[panel("alone, 25 ms", &alone), panel("beside reception, 25 ms", &beside)])?;
    let mut csv = Csv::new(["scenario", "job", "release_ns", "start_ns", "finish_ns", "due_ns"]);
    for (name, run) in [("alone", &alone), ("reception", &beside)] {
        for [_, job, release, start, finish, due] in run.jobs() {
            csv.row([&name, &job, &release, &start, &finish, &due]);
        }
    }
    Ok(Finding {
        how: format!(
            "`ft-load hourglass -d 20s {line}`, and `iperf3` over loopback in a network namespace of its own, whose reception \
             (`rps_cpus`) is done by the thread's CPU, with the receiving program; CPU {} sends, in place of another machine. \
             The thread is recorded by `ft-agent record -k sched,irq`. Timer `HR` \
             stands for `RTC`.",
            lab.other_cpu()
        ),
        figures: vec![lab.figure(EXPERIMENT.id, &svg)?],
        values: vec![lab.values(EXPERIMENT.id, &csv)?],
        rows: rows(&alone, &beside, idle_rate, busy_rate),
    })
}

/// A stream of data from another CPU to the one that is looked at.
struct Network(Child);

impl Network {
    fn start(lab: &Lab, seconds: f64) -> Result<Network> {
        let (to, from, mask) = (lab.cpu(), lab.other_cpu(), mask(lab.cpu()));
        let length = (seconds + 2.0 * LEAD_S).ceil();
        // Both namespaces, the mount in them and the server end with the shell's children.
        let script = format!(
            "mount -t sysfs sysfs /sys && ip link set lo up && echo {mask} > /sys/class/net/lo/queues/rx-0/rps_cpus || exit
             iperf3 -s -1 -A {to} > /dev/null & sleep 0.3
             iperf3 -c 127.0.0.1 -A {from} -t {length} -i 0.1 -J"
        );
        let child = Command::new("unshare")
            .args(["--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", &script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("`unshare` cannot be started; install util-linux")?;
        Ok(Network(child))
    }

    /// Waits for its end; bits per second received while it was counted.
    fn finish(self, seconds: f64) -> Result<f64> {
        let output = self.0.wait_with_output()?;
        let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let Some(intervals) = json["intervals"].as_array().filter(|_| output.status.success())
        else {
            bail!(
                "iperf3 did not run in a namespace of its own ({}); run this as root",
                output.status
            );
        };
        let number = |interval: &Value, name: &str| interval["sum"][name].as_f64().unwrap_or(0.0);
        let counted = intervals.iter().filter(|interval| {
            number(interval, "start") >= LEAD_S && number(interval, "end") <= LEAD_S + seconds
        });
        let (bytes, time) = counted.fold((0.0, 0.0), |(bytes, time), interval| {
            (bytes + number(interval, "bytes"), time + number(interval, "seconds"))
        });
        Ok(bytes * 8.0 / time.max(1e-9))
    }
}

/// A set of this CPU alone, as sysfs reads it: groups of 32 bits.
fn mask(cpu: usize) -> String {
    format!("{:x}{}", 1u32 << (cpu % 32), ",00000000".repeat(cpu / 32))
}

fn rows(alone: &Recorded, beside: &Recorded, idle_rate: f64, busy_rate: f64) -> Vec<Row> {
    let missed = |run: &Recorded| {
        let count = |key: &str| run.thread(0)[key].as_u64().unwrap_or(0);
        let (missed, all) = (count("missed"), (count("hit") + count("missed")).max(1));
        format!("{missed} of {all}: {}", percent(missed as f64 / all as f64))
    };
    let rate = |bits: f64| format!("{} Gbit/s", digits(bits / 1e9));
    vec![
        Row::new(
            "control 1, the thread alone: missed",
            "0.0 %",
            missed(alone),
            format!("1 ms of 5 is left for all else; {}", alone.late()),
        ),
        Row::new(
            "control 2, reception alone",
            "94 Mbit/s",
            rate(idle_rate),
            "loopback is memory, not a wire",
        ),
        Row::new(
            "both: missed",
            "plain 33.0 %, RML 0.4 %, TimeSys 0.0 %",
            missed(beside),
            format!(
                "soft interrupts go before a real-time thread as in plain 2.4; {}",
                beside.late()
            ),
        ),
        Row::new(
            "both: received",
            "plain 68, RML 66, TimeSys 59 Mbit/s",
            rate(busy_rate),
            "the receiving program has a fifth of its CPU",
        ),
        Row::new("4 ms take longer by: alone", "–", longer(alone), beyond(alone)),
        Row::new("the same beside reception", "–", longer(beside), beyond(beside)),
    ]
}

/// What a job of the thread needs, ns.
const AMOUNT_NS: i64 = 4_000_000;

/// How much longer than their amount jobs took from start to finish.
fn longer(run: &Recorded) -> String {
    let took = run.jobs().filter_map(|[_, _, _, start, finish, _]| {
        Some((finish.parse::<i64>().ok()? - start.parse::<i64>().ok()? - AMOUNT_NS).max(0) as u64)
    });
    let mut over: Vec<u64> = took.collect();
    over.sort_unstable();
    let at = |p| crate::stats::percentile(&over, p).map_or("–".into(), |v| ns(v as f64));
    format!("median {}, longest {}", at(50.0), at(100.0))
}

/// What all jobs had beyond their own work, by the recording, per job; and who took most of how many of them.
fn beyond(run: &Recorded) -> String {
    let jobs = run.report("jobs");
    let worker = &jobs["workers"][0];
    let count = worker["jobs"].as_f64().unwrap_or(0.0).max(1.0);
    let Some(parts) = Parts::of(&worker["parts"]) else {
        return run.says("it tells no parts");
    };
    let culprits = jobs["culprits"].as_array().into_iter().flatten().take(3);
    let named =
        culprits.map(|c| format!("`{}` {}", c["culprit"].as_str().unwrap_or("?"), c["jobs"]));
    run.says(&format!(
        "a job had on average {}; what took most beyond that of how many: {}",
        parts.told(|sum| ns(sum / count)),
        named.collect::<Vec<_>>().join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_groups_of_32_cpus() {
        assert_eq!(mask(1), "2");
        assert_eq!(mask(31), "80000000");
        assert_eq!(mask(33), "2,00000000");
    }
}
