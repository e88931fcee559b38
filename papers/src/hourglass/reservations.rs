//! Section 5.6: CPU reservations, exact and with a little more, and what today's kernel takes of them.

use anyhow::Result;
use ft_load::hourglass::Outcome;

use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::quantity::ns;
use crate::recorded::Recorded;
use crate::stats::percentile;
use crate::trace::turns;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "hourglass-5.6",
    title: "Hourglass, section 5.6: CPU reservations",
    full_minutes: 1.3,
    programs: &["ft-agent", "ft-load"],
    run,
};

/// Amount and period of both tasks, ms.
const TASKS: [(f64, f64); 2] = [(3.0, 8.0), (17.0, 33.0)];

const PAPER_SECONDS: f64 = 10.0;

fn run(lab: &Lab) -> Result<Finding> {
    let mut csv = Csv::new([
        "variant",
        "thread",
        "reserved_ms",
        "job",
        "release_ns",
        "start_ns",
        "finish_ns",
        "due_ns",
    ]);
    let mut threads_csv = Csv::new([
        "variant",
        "thread",
        "reserved_ms",
        "missed",
        "hit",
        "overruns",
        "preempted_ns",
        "lost",
    ]);
    let mut set = |name: &str, option: &str, reserved: [f64; 2]| -> Result<Recorded> {
        let threads: Vec<String> = (0..2).map(|n| thread(n, option, reserved[n])).collect();
        lab.settle();
        let recorded =
            Recorded::hourglass(lab, PAPER_SECONDS, &format!("-n 2 {}", threads.join(" ")))?;
        for job in recorded.jobs() {
            let reserved = reserved[usize::from(job[0] == "1")];
            csv.row([&name, &job[0], &reserved, &job[1], &job[2], &job[3], &job[4], &job[5]]);
        }
        for (n, reserved) in reserved.iter().enumerate() {
            let [missed, hit, overruns] =
                ["missed", "hit", "overruns"].map(|key| &recorded.thread(n)[key]);
            let preempted_ns = recorded.preempted_ns(n);
            let lost = recorded.lost();
            threads_csv.row([&name, &n, reserved, missed, hit, overruns, &preempted_ns, &lost]);
        }
        Ok(recorded)
    };
    let exact = set("exact", "-rh", TASKS.map(|task| task.0))?;
    let more = set("0.1 ms more", "-rh", TASKS.map(|task| task.0 + 0.1))?;
    let soft = set("exact soft", "-rs", TASKS.map(|task| task.0))?;
    // What the kernel takes a job to have used: all from its start to its finish when nothing but interrupts can stop it.
    let needs = [needs(lab, TASKS[0])?, needs(lab, TASKS[1])?];
    let needed = [0, 1].map(|n| fitting(&needs[n], TASKS[n].1));
    let fitted = set("as measured", "-rh", needed)?;
    lab.settle();
    let greedy = lab.hourglass(PAPER_SECONDS, "-n 1 -w CPU -rh 1ms 20ms")?;
    Ok(Finding {
        how: "`ft-load hourglass -n 2 -t 0 -w PERIODIC 3ms 8ms -rh … -t 1 -w PERIODIC 17ms 33ms -rh …` on all CPUs, because \
              `SCHED_DEADLINE` admits no thread that is bound to one, recorded by `ft-agent record -k sched,irq`. Where \
              a thread could run and did not, the idle CPU (`swapper`) or ordinary threads had it instead: its reservation was used \
              up, or the other one of the two ran. Overruns are the \
              kernel's own signal that a reservation was used up (`SCHED_FLAG_DL_OVERRUN`). Jobs are measured as `RTHIGH`, one task \
              at a time, from start to finish, unrecorded."
            .into(),
        figures: Vec::new(),
        values: vec![
            lab.values(EXPERIMENT.id, &csv)?,
            lab.values(&format!("{}-threads", EXPERIMENT.id), &threads_csv)?,
        ],
        rows: rows(&exact, &more, &soft, &fitted, &needs, needed, &greedy),
    })
}

fn thread(n: usize, option: &str, reserved_ms: f64) -> String {
    let (amount, period) = TASKS[n];
    format!("-t {n} -w PERIODIC {amount}ms {period}ms -i HR {option} {reserved_ms:.3}ms {period}ms")
}

/// From start to finish of each job where nothing but interrupts stops it, sorted, ns.
fn needs(lab: &Lab, (amount, period): (f64, f64)) -> Result<Vec<u64>> {
    let line =
        format!("-n 1 --cpu {} -p RTHIGH -w PERIODIC {amount}ms {period}ms -i HR", lab.cpu());
    let outcome = lab.hourglass(PAPER_SECONDS, &line)?;
    let jobs = outcome.threads[0].jobs.iter();
    let mut took: Vec<u64> =
        jobs.filter_map(|job| Some((job.finish_ns? - job.start_ns).max(0) as u64)).collect();
    took.sort_unstable();
    Ok(took)
}

/// What the longest job took, and the paper's 0.1 ms; at most what leaves both tasks room to be admitted, ms.
fn fitting(needs: &[u64], period_ms: f64) -> f64 {
    let longest_ms = needs.last().map_or(0.0, |ns| *ns as f64 / 1e6);
    (longest_ms + 0.1).min(period_ms * 0.9)
}

/// How long a thread that wants all it can get runs in one go, sorted, ns: turns are apart by much of the period.
fn granted(outcome: &Outcome) -> Vec<u64> {
    let mut lengths: Vec<u64> =
        turns(outcome, 2_000_000).iter().map(|turn| (turn.end_ns - turn.start_ns) as u64).collect();
    lengths.sort_unstable();
    lengths
}

fn rows(
    exact: &Recorded,
    more: &Recorded,
    soft: &Recorded,
    fitted: &Recorded,
    needs: &[Vec<u64>; 2],
    needed: [f64; 2],
    greedy: &Outcome,
) -> Vec<Row> {
    let deadlines = |recorded: &Recorded| {
        let overruns = [0, 1].map(|n| recorded.thread(n)["overruns"].to_string());
        format!("{} ({} overruns)", recorded.deadlines(), overruns.join("; "))
    };
    let at =
        |sorted: &[u64], p| percentile(sorted, p).map_or("–".into(), |value| ns(value as f64));
    let three = |sorted: &[u64]| {
        format!("{}, {}, {}", at(sorted, 50.0), at(sorted, 99.0), at(sorted, 100.0))
    };
    let [first, second] = needed;
    vec![
        Row::new(
            "reserved exactly: missed / hit, task 0; task 1",
            "985 / 12; 106 / 197",
            deadlines(exact),
            format!("a job needs more than its amount, if only to be woken; {}", exact.late()),
        ),
        Row::new(
            "0.1 ms more",
            "0 / 1000; 0 / 303",
            deadlines(more),
            format!(
                "a job needs here what the rows below say, which is often more than 0.1 ms more; {}",
                more.late()
            ),
        ),
        Row::new(
            "from start to finish of 3 ms, median, p99, longest",
            "–",
            three(&needs[0]),
            "what interrupts and the host add: it has to fit into what is reserved, because the kernel charges interrupts to \
             whom they interrupt (it has no `CONFIG_IRQ_TIME_ACCOUNTING`)",
        ),
        Row::new(
            "the same of 17 ms",
            "–",
            three(&needs[1]),
            "grows with the amount, where the paper's 0.1 ms is the same for both",
        ),
        Row::new(
            format!("reserved by that: {first:.2} and {second:.2} ms"),
            "–",
            deadlines(fitted),
            format!("the longest of each, and 0.1 ms; {}", fitted.late()),
        ),
        Row::new(
            "reserved exactly, but soft (`-rs`)",
            "recommended for real applications",
            deadlines(soft),
            format!("what nobody has reserved is theirs, too (GRUB); {}", soft.late()),
        ),
        Row::new(
            "greedy thread, 1 ms in 20 ms reserved: one go, median, p99, longest",
            "1 ms",
            format!(
                "{}; {} overruns",
                three(&granted(greedy)),
                greedy.threads[0].overruns.unwrap_or_default()
            ),
            "the end of an amount is seen by the clock interrupt unless the scheduler's feature `HRTICK_DL` is on; \
             that it is off here is inferred from the lengths of the goes, because this kernel does not show its features",
        ),
    ]
}
