//! Whole reports, from timelines: golden texts, widths, JSON.

#[path = "../../../tests/common/accept.rs"]
mod accept;
mod left_out;
mod numbers;
mod own;
mod summary;
mod what_if;

use super::agreement::AgreementReport;
use super::dispatch::Dispatch;
use super::functions::Functions;
use super::gaps::Gaps;
use super::locks::Locks;
use super::preempted::Preempted;
use super::quality::Quality;
use super::steal::Steal;
use super::summary::Answers;
use super::tasks::Tasks;
use super::time::Times;
use super::waits::Waits;
use super::what_if::WhatIfs;
use super::*;
use crate::stats::IDLE;
use ft_analysis::Rows;
use ft_analysis::timeline::run;
use ft_trace::spool::frame::MissingTracepoint;
use ft_trace::tables::{InferredCause, LockPreemption};
use serde_json::Value;

/// The reports of these rows.
fn answers_of(rows: Rows, tally: &Tally) -> Answers {
    let (mut locks, mut dispatch, mut gaps) =
        (Locks::default(), Dispatch::default(), Gaps::default());
    rows.critical_sections.iter().for_each(|r| locks.add(r));
    rows.dispatch_latency.iter().for_each(|r| dispatch.add(r));
    rows.gaps.iter().for_each(|r| gaps.add(r));
    let (mut waits, mut preempted) = (Waits::default(), Preempted::default());
    rows.lock_waits.iter().for_each(|r| waits.add(r));
    rows.unfinished_waits.iter().for_each(|r| waits.add_unfinished(r));
    rows.lock_order.into_iter().for_each(|r| waits.add_order(r));
    rows.lock_preemptions.iter().for_each(|r| preempted.add(r));
    let mut times = Times::default();
    rows.thread_time.iter().for_each(|r| times.add(r));
    let (mut tasks, mut functions) = (Tasks::default(), Functions::default());
    rows.async_tasks.iter().for_each(|r| tasks.task(r));
    rows.async_switches.iter().for_each(|r| tasks.poll(r));
    rows.functions.iter().for_each(|r| functions.add(r));
    let steal = Steal {
        hypervisor: true,
        stolen_ns: Some(30_000_000),
        cpus_ns: vec![Some(30_000_000), Some(0)],
        left_out: None,
    };
    Answers {
        locks: locks.finish(tally),
        waits: waits.finish(tally),
        futexes: futexes::Futexes::default().finish(false, tally.kernel),
        preempted: preempted.finish(tally),
        dispatch: dispatch.finish(tally),
        gaps: gaps.finish(tally),
        time: times.finish(tally, steal),
        tasks: tasks.finish(tally),
        functions: functions.finish(tally, 2e9),
        sleeps: false,
        preload: false,
    }
}

/// The document of these rows, with this head.
fn document_of(head: Head, rows: Rows, tally: &Tally) -> Document {
    let mut what_ifs = WhatIfs::default();
    rows.what_ifs.iter().for_each(|r| what_ifs.add(r));
    rows.lock_waits.iter().for_each(|r| what_ifs.add_wait(r));
    let a = answers_of(rows, tally);
    let agreement = AgreementReport::new(tally).section();
    let sections = [
        a.locks.section(),
        a.waits.section(),
        a.preempted.section(),
        what_ifs.finish(tally, true).section(),
        a.dispatch.section(),
        a.gaps.section(),
        agreement,
        a.time.section(),
    ];
    Document { begin_ns: 0, head: head.section(), sections: sections.into() }
}

fn document(kernel: bool, timeline: &str) -> Document {
    let (rows, tally) = run(kernel, timeline);
    document_of(Head::default(), rows, &tally)
}

/// The text of all sections but the head.
fn text(document: &Document) -> String {
    document.sections.iter().map(ToString::to_string).collect()
}

const TIMELINE: &str = "
    0 0 .>a S
    500 acquire a L
    700 acquire a M
    1000 0 a>X R+
    5000 0 X>a S
    5200 release a M
    5900 release a L
    6000 wait a L
    6100 0 a>X S
    9000 wake X a 0
    12000 0 X>a R
    12100 acquire a L
    12300 irq a vector 400
    13100 release a L
    20000 poll a 0
    30000 irq a soft 1500
    32000 gap a 0 29500 31800
    40000 acquire a L
    40050 lose sched 100
    40300 release a L
    40400 release a M
";

/// Waits behind a preempted holder, in a chain, and in a circle; locks in both orders.
const CONTENDED: &str = "
    0 0 .>a S
    0 1 .>b S
    0 2 .>c S
    0 3 .>d S
    1000 acquire a K 1
    1100 acquire a L 2
    1500 acquire c M 5
    2000 wait b L 3
    2500 wait c K 6
    3000 wait d M 7
    4000 0 a>X R+
    9000 0 X>a S
    9500 release a L
    9600 acquire b L 3
    9700 release b L
    40000 0 a>X S
    50000 wake X a 0
    54000 0 X>a S
    60000 release a K
    60100 acquire c K 6
    61000 release c K
    62000 release c M
    62200 acquire d M 7
    63000 release d M
    70000 acquire a L 8
    71000 acquire b K 4
    72000 wait a K 9
    73000 wait b L 3
    74000 1 b>. S
    80000 0 a>. S
";

/// Compares with a file of `golden/`. To accept changes, run the tests with `FT_ACCEPT=1`, and read the diff.
fn check(name: &str, found: &str, expected: &str) {
    if accept::accepts() {
        let path = format!("{}/src/sections/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, found).expect("the golden file is written");
        return;
    }
    assert_eq!(found, expected, "golden/{name}.txt differs; found:\n{found}");
    for line in found.lines() {
        assert!(line.chars().count() <= 100, "wider than 100 columns: {line}");
    }
}

#[test]
fn the_reports_of_a_small_trace() {
    let text = text(&document(true, TIMELINE));
    check("reports", &text, include_str!("golden/reports.txt"));
}

#[test]
fn the_reports_of_a_contended_trace() {
    let document = document(true, CONTENDED);
    let text: String = document.sections[1..4].iter().map(ToString::to_string).collect();
    check("contended", &text, include_str!("golden/contended.txt"));
}

/// A holder that is woken waits for its CPU also while nothing runs there; nobody has taken one from it, the idle task least
/// of all. Nor is a thread of that name the idle task.
#[test]
fn a_holder_that_is_woken_is_told_apart_from_one_that_is_preempted() {
    let (mut rows, tally) = run(
        true,
        "0 0 .>a S
         1000 acquire a L 1
         2000 0 a>X R+
         5000 0 X>a S
         6000 0 a>X S
         7000 wake X a 0
         9000 0 X>a S
         10000 0 a>. S
         11000 wake . a 0
         16000 0 .>a S
         17000 release a L",
    );
    let of_program =
        LockPreemption { preemptor_comm: Some(IDLE.into()), ..rows.lock_preemptions[0].clone() };
    rows.lock_preemptions.push(of_program);
    let answers = answers_of(rows, &tally);
    let found: Vec<_> = answers.preempted.preemptors.iter().collect();
    let found: Vec<_> =
        found.iter().map(|p| (&*p.comm, p.cause.word(), p.tid, p.times, p.total_ns)).collect();
    assert_eq!(
        found,
        [
            (IDLE, "woken", Some(0), 1, 5000),
            (IDLE, "preempted", Some(88), 1, 3000),
            ("X", "preempted", Some(88), 1, 3000),
            ("X", "woken", Some(88), 1, 2000),
        ]
    );
    let said = format!("{:200}", answers.section());
    // 5.00 µs of the idle task and 2.00 µs of X.
    let words = "4 times a lock's holder had no CPU: 13.0 µs, 53.8 % of it woken and waiting for a CPU \
                 (38.5 % where the idle task had the CPU longest); nobody waited for it";
    assert!(said.contains(words), "{said}");
    let text = format!("{:200}", answers.preempted.section());
    for line in [["(idle)", "woken", "38.5 %"], ["X", "preempted", "23.1 %"]] {
        let has = |row: &str| line.iter().all(|word| row.contains(word));
        assert!(text.lines().any(has), "{line:?}: {text}");
    }
    let longest = |row: &str| ["0x4c", "woken", "5.00 µs"].iter().all(|word| row.contains(word));
    assert!(text.lines().any(longest), "{text}");
}

#[test]
fn the_reports_without_a_kernel_stream() {
    let text = text(&document(false, TIMELINE));
    check("no-kernel", &text, include_str!("golden/no-kernel.txt"));
}

/// A program that reads 0 would believe it.
#[test]
fn without_a_kernel_stream_json_has_null_for_what_is_not_known() {
    let json = serde_json::to_value(document(false, TIMELINE)).expect("documents serialise");
    let of = |name: &str| json["sections"][name]["values"].clone();
    let preempted = of("preempted");
    for key in ["times", "preempted", "total_ns"] {
        assert!(preempted[key].is_null(), "{key}: {preempted}");
    }
    assert_eq!(preempted["kernel"], false);
    let all = of("dispatch")["all"].clone();
    for key in ["wakeups", "total_ns", "p50_ns", "max_ns"] {
        assert!(all[key].is_null(), "{key}: {all}");
    }
    let time = of("time");
    assert!(time["balanced"].is_null(), "{time}");
    assert_eq!(time["steal"]["stolen_ns"], 30_000_000);
}

#[test]
fn the_reports_of_nothing_say_what_to_do() {
    let text = text(&document(true, ""));
    check("empty", &text, include_str!("golden/empty.txt"));
}

/// Where threads have read counters with their events.
#[test]
fn the_lock_whose_holds_miss_the_cache_most_is_named_first() {
    let (rows, mut tally) = run(
        false,
        "10 count a 5 100 0\n 10 acquire a K
         20 count a 5 150 3\n 20 release a K
         30 count a 5 200 3\n 30 acquire a L
         40 count a 5 210 43\n 40 release a L
         50 acquire a L\n 60 release a L",
    );
    tally.counting.names = vec!["instructions".into(), "cache-misses".into()];
    let mut locks = Locks::default();
    rows.critical_sections.iter().for_each(|r| locks.add(r));
    let section = locks.finish(&tally).section();
    let text = format!("{section:140}");
    let table = &text[text.find("What counters counted").expect("the table")..];
    let order: Vec<_> = ["instructions", " 50 ", " 10 ", "cache-misses", " 40 ", " 3 "]
        .map(|said| table.find(said).unwrap_or_else(|| panic!("{said}: {table}")))
        .into();
    assert!(order.is_sorted(), "{table}");
    let json = serde_json::to_value(&section.values).expect("values");
    // The hold without readings counts in neither.
    assert_eq!(json["locks"][0]["counted"][0]["intervals"], 1, "{json}");
}

/// No event of a group that the kernel does not have is not the same as no event.
#[test]
fn a_head_says_which_groups_are_not_whole() {
    let begin = MissingTracepoint { group: "lock".into(), tracepoint: "contention_begin".into() };
    let kernel_groups = vec!["sched".into(), "lock".into()];
    let quality = Quality { recorded_ns: 100, ..Quality::default() };
    let mut head = Head { kernel_groups, quality, ..Head::default() };
    let text = head.clone().section().to_string();
    assert!(text.contains("sched, lock (") && text.contains("; all streams complete 100 %"));
    head.missing.push(begin);
    let text = head.section().to_string();
    assert!(text.contains("sched, lock (incomplete) ("), "{text}");
    assert!(text.contains("; what this kernel has complete 100 %"), "{text}");
}

#[test]
fn json_has_what_the_text_leaves_out() {
    let json = serde_json::to_value(document(true, TIMELINE)).expect("documents serialise");
    assert_eq!(json["schema"], "ft-report/1");
    let of = |name: &str| json["sections"][name]["values"].clone();
    let lock = &of("locks")["locks"][0];
    assert_eq!(lock["holds"], 3);
    assert_eq!(lock["histogram_100ns"][0], serde_json::json!([300, 1]));
    assert_eq!(of("locks")["depths"], serde_json::json!([3, 1]));
    assert_eq!(of("dispatch")["worst"][0]["behind_ns"], 3000);
    assert_eq!(of("time")["threads"][0]["difference_ns"], 0);
    assert_eq!(of("time")["steal"]["stolen_ns"], 30_000_000);
    assert_eq!(of("gaps")["longest"][0]["parts"]["softirq_ns"], 1500);
    let json = serde_json::to_value(document(true, CONTENDED)).expect("documents serialise");
    let of = |name: &str| json["sections"][name]["values"].clone();
    assert_eq!(of("waits")["longest"][0]["chain"], 2);
    assert_eq!(of("waits")["unfinished"][1]["cycle"], 97);
    assert_eq!(of("what-if")["all"]["waiters"], 2);
    assert_eq!(of("preempted")["preemptors"][0]["prio"], 120);
}

/// What a viewer finds that knows no section: typed columns, rows with marks, figures with their data.
#[test]
fn json_has_what_the_text_shows_with_its_types() {
    let json = serde_json::to_value(document(true, TIMELINE)).expect("documents serialise");
    let blocks = json["sections"]["locks"]["blocks"].as_array().expect("blocks");
    let table = |title: &str| {
        let mut tables = blocks.iter().filter_map(|block| block.get("table"));
        tables.find(|table| table["title"] == title).expect(title)
    };
    let longest = table("The longest holds");
    let column = serde_json::json!({"title": "hold", "kind": "duration-ns"});
    assert_eq!(longest["columns"][2], column);
    assert_eq!(longest["rows"][0]["cells"][2], 5400);
    let marks: Vec<_> =
        longest["rows"].as_array().expect("rows").iter().map(|r| &r["mark"]).collect();
    assert_eq!(marks, ["exact", "exact", "exact", "lower bound"]);
    assert_eq!(table("Hold times")["rows"][2]["cells"][3], 0.25);
    let mut figures = blocks.iter().filter_map(|block| block.get("figure"));
    let depths = figures.find(|figure| figure.get("bars").is_some()).expect("depths");
    assert_eq!(depths["bars"]["bars"], serde_json::json!([[0, 3], [1, 1]]));
}

#[test]
fn long_names_and_large_numbers_fit() {
    let (mut rows, mut tally) = run(true, TIMELINE);
    let contended = run(true, CONTENDED).0;
    let long: ft_trace::ids::Name = "a-name-that-is-much-too-long-for-any-column".into();
    let place: ft_trace::ids::Name = format!("{long}/{long}.rs:12345").into();
    let lock = |i: usize| -> ft_trace::ids::Name { format!("{}{long}", i % 30).into() };
    let few = std::mem::take(&mut rows);
    for i in 0..2000 {
        let tid = 4_194_000 + i as i32 % 30;
        let mut hold = few.critical_sections[i % 4].clone();
        hold.lock_name = lock(i);
        hold.kind = "rwlock-write".into();
        hold.place = place.clone();
        hold.preemptor_comm = Some(long.clone());
        hold.wait_ns = 999_499;
        rows.critical_sections.push(hold);
        let mut wake = few.dispatch_latency[0].clone();
        wake.tid.0 = tid;
        (wake.comm, wake.waker_comm, wake.running_comm) =
            (long.clone(), long.clone(), Some(long.clone()));
        (wake.dur, wake.migrated) = (99_949_999, true);
        rows.dispatch_latency.push(wake);
        let mut gap = few.gaps[0].clone();
        gap.tid.0 = tid;
        (gap.comm, gap.culprit) = (long.clone(), Some(long.clone()));
        gap.inferred = InferredCause::SwitchToSibling;
        rows.gaps.push(gap);
        let mut time = few.thread_time[i % few.thread_time.len()].clone();
        (time.tid.0, time.wall_ns, time.spent_ns) = (tid, 99_999_999_999_999, 33_333_333_333_333);
        (time.comm, time.culprit) = (long.clone(), Some(long.clone()));
        rows.thread_time.push(time);
        let mut wait = contended.lock_waits[i % contended.lock_waits.len()].clone();
        (wait.tid.0, wait.lock_name, wait.kind) = (tid, lock(i), "rwlock-write".into());
        (wait.comm, wait.place, wait.dur) = (long.clone(), place.clone(), 999_499_000);
        (wait.holder_comm, wait.root_comm) = (Some(long.clone()), Some(long.clone()));
        (wait.holder_place, wait.root_place) = (Some(place.clone()), Some(place.clone()));
        (wait.root_lock, wait.root_ns, wait.chain) = (Some(lock(i)), Some(999_499_000), 3);
        rows.lock_waits.push(wait);
        let mut end = contended.unfinished_waits[i % 2].clone();
        (end.tid.0, end.lock_name, end.comm) = (tid, lock(i), long.clone());
        (end.holder_comm, end.holder_gone) = (Some(long.clone()), true);
        (end.place, end.holder_place) = (place.clone(), Some(place.clone()));
        rows.unfinished_waits.push(end);
        let mut held_up = contended.lock_preemptions[i % 2].clone();
        (held_up.lock_name, held_up.comm, held_up.place) = (lock(i), long.clone(), place.clone());
        (held_up.preemptor_comm, held_up.preemptor_tid) = (Some(long.clone()), Some(tid));
        (held_up.dur, held_up.waiters, held_up.delayed_ns) = (999_499_000, 999, 999_499_000);
        rows.lock_preemptions.push(held_up);
        let mut edge = contended.lock_order[i % contended.lock_order.len()].clone();
        (edge.held_place, edge.place) = (place.clone(), place.clone());
        edge.count = 99_999_999;
        rows.lock_order.push(edge);
    }
    tally.incomplete.semaphore_waits = 99_999_999;
    let text = document_of(Head::default(), rows, &tally).to_string();
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(wide.is_empty(), "{} lines, {:#?}", wide.len(), wide.first());
}

#[test]
fn what_a_section_is_about_has_one_line_of_the_help() {
    let width = all().iter().map(|section| section.name.len()).max().expect("sections");
    for section in all() {
        let line = 2 + width + 2 + section.about.chars().count();
        assert!(line <= 100, "{}: {line} columns", section.name);
    }
}
