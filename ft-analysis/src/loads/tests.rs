mod between;
mod early;
mod made_up;

use super::*;
use crate::timeline::{every_payload, nonsense, run, sites, threads};
use crate::{Context, Run};
use ft_trace::tables::{Deadline, LoadJob, LoadRun, RunEnd};

/// `a0 10+20 unasked run15 vec5 gap7`, and the mark.
fn run_text(r: &LoadRun) -> String {
    let (thread, parts) = (r.tid.0 as u8 as char, parts(r.parts));
    let gap = r.gap_ns.map_or(String::new(), |ns| format!(" gap{ns}"));
    format!("{thread}{} {}+{} {}{parts}{gap}{}", r.worker, r.ts, r.dur, r.ended, mark(r.mark))
}

/// `a0#3 10+20 at 12 hit back2 run15 dis5 by X5`, and the mark.
fn job_text(r: &LoadJob) -> String {
    let (thread, parts) = (r.tid.0 as u8 as char, parts(r.parts));
    let by = r.culprit.as_ref().zip(r.culprit_ns);
    let by = by.map_or(String::new(), |(who, ns)| format!(" by {who} {ns}"));
    let back = if r.backlog_ns > 0 { format!(" back{}", r.backlog_ns) } else { String::new() };
    assert_eq!(r.finish.is_none(), r.mark == Mark::Censored);
    let (number, dur, start) = (r.number, r.dur, r.start);
    let (deadline, mark) = (r.deadline, mark(r.mark));
    format!(
        "{thread}{}#{number} {}+{dur} at {start} {deadline}{back}{parts}{by}{mark}",
        r.worker, r.ts
    )
}

fn parts(parts: Option<ft_trace::tables::Decomposition>) -> String {
    let names = ["run", "pre", "dis", "blk", "hard", "soft", "vec", "?"];
    let Some(parts) = parts else { return " no kernel".into() };
    let shown = names.iter().zip(parts.to_array()).filter(|(_, ns)| *ns != 0);
    shown.map(|(name, ns)| format!(" {name}{ns}")).collect()
}

fn mark(mark: Mark) -> String {
    if mark == Mark::Exact { String::new() } else { format!(" {mark}") }
}

/// What holds of the rows of any trace.
fn hold(rows: &Rows, tally: &Tally) {
    let worked = tally.worked;
    assert_eq!(worked.workers, rows.workers.len() as u64);
    assert_eq!((worked.runs, worked.jobs), (rows.runs.len() as u64, rows.jobs.len() as u64));
    for run in &rows.runs {
        assert!(run.dur >= 0 && run.gap_ns.is_none_or(|ns| ns >= 0), "{run:?}");
        assert!(run.parts.is_none_or(|parts| parts.total_ns() == run.dur), "{run:?}");
    }
    for job in &rows.jobs {
        assert!(job.dur >= 0 && (0..=job.dur).contains(&job.backlog_ns), "{job:?}");
        let sums = |parts: ft_trace::tables::Decomposition| {
            parts.to_array().iter().all(|ns| *ns >= 0)
                && parts.total_ns() + job.backlog_ns == job.dur
        };
        assert!(job.parts.is_none_or(sums), "{job:?}");
        assert!(job.culprit_ns.is_none_or(|ns| (1..=job.dur).contains(&ns)), "{job:?}");
    }
    assert_eq!(
        (worked.sleeps, worked.switches),
        (rows.timer_latency.len() as u64, rows.switches.len() as u64,)
    );
    for sleep in &rows.timer_latency {
        let parts = [sleep.timer_ns, sleep.interrupt_ns, sleep.dispatch_ns, sleep.return_ns];
        let known: Vec<i64> = parts.into_iter().flatten().collect();
        assert!(known.iter().all(|ns| *ns >= 0) && sleep.dur >= 0, "{sleep:?}");
        let sum: i64 = known.iter().sum();
        assert!(known.is_empty() || (known.len(), sum) == (4, sleep.dur), "{sleep:?}");
    }
    for switch in &rows.switches {
        let known: Vec<i64> =
            [switch.out_ns, switch.others_ns, switch.in_ns].into_iter().flatten().collect();
        assert!(known.iter().all(|ns| *ns >= 0) && switch.dur >= 0, "{switch:?}");
        let sum: i64 = known.iter().sum();
        assert!(known.is_empty() || (known.len(), sum) == (3, switch.dur), "{switch:?}");
    }
    for worker in &rows.workers {
        assert!(worker.dur >= 0 && worker.run_ns >= 0 && worker.gap_ns >= 0, "{worker:?}");
    }
}

fn check(timeline: &str, runs: &[&str], jobs: &[&str], without_row: WithoutRow) -> Rows {
    let (rows, tally) = run(true, timeline);
    assert_eq!(rows.runs.iter().map(run_text).collect::<Vec<_>>(), runs, "{timeline}");
    assert_eq!(rows.jobs.iter().map(job_text).collect::<Vec<_>>(), jobs, "{timeline}");
    assert_eq!(tally.worked.without_row, without_row);
    hold(&rows, &tally);
    rows
}

/// A `PERIODIC` worker with a period of 100 from 100 to 500, which sleeps until 100, and is late by 3 and 2.
const BEGIN: &str = "
    0 0 .>a S
    10 worker a 0 4 1
    11 class a 1 40 0
    12 span a 100 500 0
    13 demand a 30 100
    14 bound a 30
    20 0 a>. S
    103 wake . a 0
    105 0 .>a S
    106 poll a 0
    107 first a 107
";

#[test]
fn a_response_is_what_the_timer_the_scheduler_and_others_took_and_what_it_had() {
    let timeline = BEGIN.to_owned()
        + "109 job a 0 108 100
           120 0 a>X R
           130 0 X>a S
           133 gap a 0 119 132
           140 irq a vector 6
           148 gap a 0 139 147
           153 finish a 0 152
           154 over a
           155 sleep a 200
           156 0 a>. S
           204 wake . a 0
           211 0 .>a S
           213 woke a 200 212
           215 gap a 0 153 214
           216 job a 1 214 200
           244 finish a 1 244
           245 over a
           246 yield a
           260 gap a 0 245 259
           270 last a 270
           271 end a 0
           272 done a 5 2 1";
    let rows = check(
        &timeline,
        &[
            "a0 107+12 unasked run12 gap13",
            "a0 132+7 unasked run7 gap8",
            "a0 147+6 slept run6 gap61",
            "a0 214+31 yielded run31 gap14",
            "a0 259+11 finished run11",
        ],
        &[
            // From 105 on it was on its way to the job, and beside 120..130 and 140..146 it was on its way in gaps.
            "a0#0 100+52 at 108 hit run23 pre10 dis2 blk3 vec6 ?8 by X 10",
            "a0#1 200+44 at 214 hit run30 dis7 blk4 ?3 by . 7",
        ],
        WithoutRow::default(),
    );
    let [worker] = &rows.workers[..] else { panic!("{:?}", rows.workers) };
    assert_eq!((worker.ts.0, worker.dur, worker.worker, worker.priority), (100, 400, 0, 40));
    assert_eq!((worker.workload.word(), worker.policy.word()), ("PERIODIC", "SCHED_FIFO"));
    assert_eq!(
        (worker.amount_ns, worker.period_ns, worker.bound_ns),
        (Some(30), Some(100), Some(30))
    );
    assert_eq!((worker.only_cpu, worker.timer.word()), (Some(0), "HR"));
    assert_eq!((worker.runs, worker.run_ns + worker.gap_ns), (5, 270 - 107));
    // Of four whole periods it worked in two.
    assert_eq!((worker.jobs, worker.hit, worker.missed, worker.sleeps), (2, 2, 2, 1));
    assert_eq!(worker.mark, Mark::Exact);
}

#[test]
fn what_waits_for_an_earlier_job_is_backlog() {
    let timeline = BEGIN.to_owned()
        + "109 job a 0 108 100
           120 0 a>X R
           250 0 X>a S
           251 gap a 0 120 250
           330 finish a 0 330
           331 over a
           332 job a 1 331 200
           340 finish a 1 340
           341 over a
           342 job a 2 341 300
           398 finish a 2 398
           399 over a
           450 job a 3 449 400
           460 last a 460
           461 over a
           462 end a 0
           463 done a 2 4 0";
    let rows = check(
        &timeline,
        &["a0 107+13 unasked run13 gap130", "a0 250+210 finished run210"],
        &[
            "a0#0 100+230 at 108 missed run92 pre130 dis2 blk3 ?3 by X 130",
            "a0#1 200+140 at 331 hit back130 run9 ?1",
            "a0#2 300+98 at 341 hit back40 run57 ?1",
            "a0#3 400+61 at 449 open run12 ?49 censored",
        ]
        .map(|text| text.replace("#1 200+140 at 331 hit", "#1 200+140 at 331 missed"))
        .each_ref()
        .map(String::as_str),
        WithoutRow::default(),
    );
    assert_eq!((rows.workers[0].hit, rows.workers[0].missed), (1, 3));
}

/// Two had the CPU before and after the release: of each as much is reported as it surely had after it.
#[test]
fn of_a_wait_that_a_release_cuts_the_culprit_is_not_told_more_than_it_had() {
    let timeline = BEGIN.to_owned()
        + "109 job a 0 108 100
           150 finish a 0 150
           151 over a
           180 0 a>X R
           215 0 X>Y R
           260 0 Y>a R
           262 gap a 0 180 261
           263 job a 1 261 200
           295 finish a 1 295
           296 over a
           300 last a 300
           301 over a
           302 end a 0
           303 done a 2 2 0";
    check(
        &timeline,
        &["a0 107+73 unasked run73 gap81", "a0 261+39 finished run39"],
        &[
            "a0#0 100+50 at 108 hit run42 dis2 blk3 ?3 by late timer 3",
            "a0#1 200+95 at 261 hit run34 pre60 ?1 by Y 25 lower bound",
        ],
        WithoutRow::default(),
    );
}

/// Each job is released by the end of the one before; a period that goes by without its end is missed.
#[test]
fn a_job_that_its_start_releases_has_no_time_before() {
    let timeline = BEGIN.replace("worker a 0 4 1", "worker a 7 5 1")
        + "109 job a 0 108 0
           150 finish a 0 150
           150 over a
           151 job a 1 150 0
           420 finish a 1 420
           421 over a
           422 job a 2 420 0
           499 last a 499
           500 over a
           500 done a 1 3 0";
    let rows = check(
        &timeline,
        &["a7 107+392 finished run392"],
        &[
            "a7#0 108+42 at 108 hit run42",
            "a7#1 150+270 at 150 missed run270",
            "a7#2 420+80 at 420 open run80 censored",
        ],
        WithoutRow::default(),
    );
    assert_eq!((rows.workers[0].hit, rows.workers[0].missed), (2, 2));
}

#[test]
fn what_is_lost_or_cannot_be_is_marked_or_counted() {
    // The job's gap is lost, so what it had of the CPU may be less.
    let lost = BEGIN.to_owned()
        + "109 job a 0 108 100
           120 lose ring 10 a
           150 finish a 0 150
           151 over a
           170 gap a 0 160 169
           180 last a 180
           181 done a 2 1 0";
    let rows = check(
        &lost,
        &["a0 169+11 finished run11"],
        &["a0#0 100+50 at 108 hit run42 dis2 blk3 ?3 by late timer 3 lower bound"],
        WithoutRow { runs: 1, ..WithoutRow::default() },
    );
    assert_eq!(rows.workers[0].mark, Mark::LowerBound);
    // The end is not recorded; what cannot be is not believed.
    let wrong = BEGIN.to_owned()
        + "110 gap a 0 90 109
           111 job a 0 999 100
           112 finish a 0 111
           113 job a 1 112 100
           114 finish a 2 113
           115 finish a 1 90
           120 job a 2 119 100
           130 exit a";
    let rows = check(
        &wrong,
        &[],
        &["a0#2 100+30 at 119 open run11 ?19 censored"],
        WithoutRow { runs: 1, finishes: 2, impossible: 3 },
    );
    assert_eq!(rows.workers[0].mark, Mark::Censored);
}

#[test]
fn without_the_kernel_there_are_times_and_no_parts() {
    let (rows, tally) =
        run(false, &(BEGIN.to_owned() + "109 job a 0 108 100\n 150 finish a 0 149\n 151 over a"));
    hold(&rows, &tally);
    let jobs: Vec<_> = rows.jobs.iter().map(job_text).collect();
    assert_eq!(jobs, ["a0#0 100+49 at 108 hit no kernel"]);
}

#[test]
fn every_payload_is_survived() {
    for kernel in [true, false] {
        let mut run = Run::new(Context::new(kernel, 10, &threads(), &sites(), &[]));
        every_payload(1000, 7).for_each(|event| run.push(&event));
        let (rows, tally) = run.finish();
        hold(&rows, &tally);
        assert!(tally.worked.without_row.impossible > 0 && tally.worked.workers > 0);
    }
}
