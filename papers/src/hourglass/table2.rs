//! Table 2, Figure 6 and section 5.4: deadlines of a demanding thread beside the reception of network data.

use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use ft_load::hourglass::Outcome;
use serde_json::Value;

use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::plot::lanes::{self, Panel};
use crate::quantity::{digits, ns, percent};
use crate::trace::lanes as lanes_of;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "hourglass-table2",
    title: "Hourglass, Table 2 and Figure 6: deadlines beside network reception",
    full_minutes: 1.1,
    programs: &["iperf3", "unshare", "ip"],
    run,
};

const PAPER_SECONDS: f64 = 20.0;

/// From the start of the network until it is counted, s.
const LEAD_S: f64 = 1.0;

fn run(lab: &Lab) -> Result<Finding> {
    let line = format!("-n 1 --cpu {} -t 0 -p RTHIGH -w PERIODIC 4ms 5ms -i HR", lab.cpu());
    let seconds = lab.seconds(PAPER_SECONDS);
    let alone = lab.hourglass(PAPER_SECONDS, &line)?;
    let network = Network::start(lab, seconds)?;
    sleep(Duration::from_secs_f64(seconds + LEAD_S));
    let idle_rate = network.finish(seconds)?;
    let network = Network::start(lab, seconds)?;
    sleep(Duration::from_secs_f64(LEAD_S));
    let beside = lab.hourglass(PAPER_SECONDS, &line)?;
    let busy_rate = network.finish(seconds)?;

    let half = seconds * 500.0;
    let panel = |title: &str, outcome: &Outcome| Panel {
        title: title.into(),
        lanes: lanes_of(outcome, |_| "4 ms in 5 ms".into()),
        window: half.floor()..half.floor() + 25.0,
    };
    let svg =
        lanes::draw(&[panel("alone, 25 ms", &alone), panel("beside reception, 25 ms", &beside)])?;
    let mut csv = Csv::new(["scenario", "job", "release_ns", "start_ns", "finish_ns", "due_ns"]);
    for (name, outcome) in [("alone", &alone), ("reception", &beside)] {
        for job in &outcome.threads[0].jobs {
            let finish = job.finish_ns.map_or(String::new(), |ns| ns.to_string());
            csv.row([&name, &job.number, &job.release_ns, &job.start_ns, &finish, &job.due_ns]);
        }
    }
    Ok(Finding {
        how: format!(
            "`ft-load hourglass -d 20s {line}`, and `iperf3` over loopback in a network namespace of its own, whose reception \
             (`rps_cpus`) is done by the thread's CPU, with the receiving program; CPU {} sends, in place of another machine. \
             Timer `HR` stands for `RTC`.",
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

fn rows(alone: &Outcome, beside: &Outcome, idle_rate: f64, busy_rate: f64) -> Vec<Row> {
    let missed = |outcome: &Outcome| {
        let deadlines = outcome.threads[0].deadlines.unwrap_or_default();
        let all = (deadlines.hit + deadlines.missed).max(1);
        format!("{} of {all}: {}", deadlines.missed, percent(deadlines.missed as f64 / all as f64))
    };
    let gaps = |outcome: &Outcome| {
        // From a job's start to its finish, beyond the amount.
        let over = outcome.threads[0]
            .jobs
            .iter()
            .filter_map(|job| Some((job.finish_ns? - job.start_ns - 4_000_000).max(0) as u64));
        let mut over: Vec<u64> = over.collect();
        over.sort_unstable();
        let at = |p| crate::stats::percentile(&over, p).map_or("–".into(), |v| ns(v as f64));
        format!("median {}, longest {}", at(50.0), at(100.0))
    };
    let rate = |bits: f64| format!("{} Gbit/s", digits(bits / 1e9));
    vec![
        Row::new(
            "control 1, the thread alone: missed",
            "0.0 %",
            missed(alone),
            "1 ms of 5 is left for all else; a recording shows the host of the virtual machine in what is missed, and nothing of Linux",
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
            "soft interrupts go before a real-time thread as in plain 2.4; but, it seems, the sender waits for the receiving program, \
             which has what the thread leaves, and so there is little to receive meanwhile",
        ),
        Row::new(
            "both: received",
            "plain 68, RML 66, TimeSys 59 Mbit/s",
            rate(busy_rate),
            "the receiving program has a fifth of its CPU",
        ),
        Row::new("4 ms take longer by: alone", "–", gaps(alone), "clock interrupts and the host"),
        Row::new(
            "the same beside reception",
            "–",
            gaps(beside),
            "interrupts for reception besides",
        ),
    ]
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
