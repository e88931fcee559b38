//! Timelines in, pages out: what is in the page sums to what the tables say.

use std::collections::BTreeMap;

use ft_analysis::Context;
use ft_analysis::timeline::{LATE_JOB, events, names, run, sites, threads as named};
use ft_trace::tables::Part;

use super::survey::Surveyor;
use super::*;
use crate::tracks::Tracks;

/// Everything in it: a holder that is preempted, a waiter, a sleeper, interrupts, a polling thread with gaps, a scope.
const BUSY: &str = "
    0 0 .>a S
    0 1 .>b S
    100 open a
    200 acquire a L
    300 wait b L
    400 1 b>. S
    500 0 a>X R
    1500 0 X>a S
    1600 irq a vector 50
    1700 irq a soft 30
    1900 release a L
    1910 wake a b 1
    2400 1 .>b S
    2450 acquire b L
    2600 release b L
    2700 close a
    2800 1 b>p S
    2900 poll p 1
    3000 0 a>. S
    3300 1 p>X R
    3700 1 X>p S
    4000 gap p 1 3200 3900
    4200 gap p 1 4000 4150
    5000 1 p>. S
    6000 wake X a 0
    6100 0 .>a S
    6200 exit a
    6300 0 a>. X";

fn survey(timeline: &str) -> (Survey, ft_analysis::Rows, ft_analysis::Tally) {
    survey_of(true, timeline)
}

fn survey_of(kernel: bool, timeline: &str) -> (Survey, ft_analysis::Rows, ft_analysis::Tally) {
    let (rows, tally) = run(kernel, timeline);
    let mut s = Surveyor::default();
    named().iter().for_each(|r| s.thread(r));
    rows.thread_time.iter().for_each(|r| s.time(r));
    rows.critical_sections.iter().for_each(|r| s.hold(r));
    rows.lock_waits.iter().for_each(|r| s.wait(r));
    rows.gaps.iter().for_each(|r| s.gap(r));
    rows.runs.iter().for_each(|r| s.run(r));
    (s.finish(), rows, tally)
}

fn items(timeline: &str) -> Vec<Item> {
    items_of(true, timeline)
}

fn items_of(kernel: bool, timeline: &str) -> Vec<Item> {
    let context = Context::new(kernel, 10, &named(), &sites(), &names());
    let mut tracks = Tracks::new(context, i64::MIN..i64::MAX);
    let mut items = Vec::new();
    for event in events(timeline) {
        tracks.push(&event);
        items.extend(std::iter::from_fn(|| tracks.pop()));
    }
    tracks.end(false);
    items.extend(std::iter::from_fn(|| tracks.pop()));
    items
}

fn frame(end: i64, spans: u64) -> Frame {
    Frame { begin: 0, end, zero: 0, bound: 10, cpus: 2, spans }
}

fn build<'a>(timeline: &str, survey: &Survey, end: i64) -> Builder<'a> {
    build_of(items(timeline), survey, end)
}

fn build_of<'a>(items: Vec<Item>, survey: &Survey, end: i64) -> Builder<'a> {
    let rows = Rows::new(2, survey);
    let level = Level::new(end, rows.levels(), STATES.len());
    let windows = Windows::new(&[], None, end, 1, rows.lanes());
    let mut builder = Builder::new(rows, level, windows, survey, &|_, _| (), 0);
    items.iter().for_each(|item| builder.add(item));
    builder.finish();
    builder
}

/// The state of a part, by the tables' word; waiting for a lock is blocked there.
fn word(state: usize) -> &'static str {
    if STATES[state] == "lock" { Part::Blocked.word() } else { STATES[state] }
}

#[test]
fn buckets_and_spans_of_each_thread_sum_to_its_rows_of_the_table() {
    let (survey, rows, tally) = survey(BUSY);
    let mut expected: BTreeMap<(usize, &str), i64> = BTreeMap::new();
    let number = |tid| survey.threads.rows.iter().position(|(key, _)| key.tid == tid);
    for r in &rows.thread_time {
        *expected.entry((number(r.tid).expect("a row"), r.part.word())).or_default() += r.spent_ns;
    }
    let parts: Vec<_> = expected.keys().map(|(_, part)| *part).collect();
    for part in ["running", "preempted", "dispatch", "blocked", "vector", "softirq", "unexplained"]
    {
        assert!(parts.contains(&part), "the timeline has no {part}");
    }
    let mut built = build(BUSY, &survey, tally.last_ns);
    let (mut buckets, mut spans) = (BTreeMap::new(), BTreeMap::new());
    let lanes = built.rows.window_lanes(&[0, 1], false);
    let windows = built.take_windows();
    let [window] = &windows[..] else { panic!("{windows:?}") };
    for thread in 0..survey.threads.rows.len() {
        let row = built.rows.level_rows(&[0, 1], false)[2 + thread];
        for state in 0..STATES.len() {
            let ns = built.level.total(row, state) as i64;
            *buckets.entry((thread, word(state))).or_insert(0) += ns;
        }
        for span in window.lane(lanes[4 + 7 * thread]) {
            *spans.entry((thread, word(span.kind.into()))).or_insert(0) += span.to - span.from;
        }
    }
    buckets.retain(|_, ns| *ns > 0);
    assert_eq!(buckets, expected);
    assert_eq!(spans, expected);
}

#[test]
fn waiting_for_a_lock_is_told_from_other_sleep_and_a_lock_has_its_holder_and_its_waiters() {
    let (survey, rows, tally) = survey(BUSY);
    let built = build(BUSY, &survey, tally.last_ns);
    let levels = built.rows.level_rows(&[0, 1], false);
    let b = survey.threads.rows.iter().position(|(key, _)| key.tid.0 == i32::from(b'b'));
    let waiting = built.level.total(levels[2 + b.expect("b has a row")], 4);
    assert_eq!(waiting, 1910 - 400, "from the switch away to the waking");
    let lock = levels[2 + survey.threads.rows.len()];
    let held: Vec<_> = (0..3).map(|state| built.level.total(lock, state)).collect();
    let sums = |of: fn(&ft_trace::tables::Decomposition) -> i64| -> u64 {
        rows.critical_sections.iter().map(|r| of(&r.parts.expect("a kernel stream")) as u64).sum()
    };
    let off = sums(|p| p.runnable_ns());
    assert_eq!(held[1..], [off, sums(|p| p.blocked_ns)]);
    let all: i64 = rows.critical_sections.iter().map(|r| r.dur).sum();
    assert_eq!(held.iter().sum::<u64>() as i64, all);
    assert!(off >= 1000);
    let waits: i64 = rows.lock_waits.iter().map(|r| r.dur).sum();
    assert_eq!(built.level.total(lock, 3) as i64, waits);
}

/// What threads tell themselves.
fn without_the_kernel(timeline: &str) -> String {
    let is_kernels = |line: &str| line.contains('>') || line.contains(" wake ");
    timeline.lines().filter(|line| !is_kernels(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn without_the_kernel_who_ran_when_is_what_the_table_of_runs_says() {
    let alone = without_the_kernel(LATE_JOB);
    let (survey, rows, tally) = survey_of(false, &alone);
    assert!(rows.runs.len() > 1 && rows.thread_time.is_empty(), "{:?}", rows.runs);
    let mut built = build_of(items_of(false, &alone), &survey, tally.last_ns + 1);
    assert!(built.has_runs && built.has_gaps);
    let worker = rows.runs[0].tid;
    let thread = survey.threads.rows.iter().position(|(key, _)| key.tid == worker).expect("a row");
    let lanes = built.rows.window_lanes(&[0, 1], false);
    let levels = built.rows.level_rows(&[0, 1], false);
    let windows = built.take_windows();
    let drawn = |lane: usize| {
        let spans = windows[0].lane(lanes[lane]).iter();
        spans.map(|s| (s.from, s.to, s.kind, s.b)).collect::<Vec<_>>()
    };
    let expected = |b: &dyn Fn(i32) -> u32| {
        let runs = rows.runs.iter();
        runs.map(|r| (r.ts.0, r.ts.0 + r.dur, 0, b(r.cpu.0))).collect::<Vec<_>>()
    };
    assert_eq!(drawn(4 + 7 * thread), expected(&|cpu| cpu as u32 + 1));
    assert_eq!(drawn(0), expected(&|_| thread as u32 + 1));
    let sum: i64 = rows.runs.iter().map(|r| r.dur).sum();
    assert_eq!(
        [levels[0], levels[2 + thread]].map(|row| built.level.total(row, 0)),
        [sum as u64; 2]
    );
    // The kernel's account of the same says more, and is what is drawn.
    let (survey, _, tally) = survey_of(true, LATE_JOB);
    let built = build(LATE_JOB, &survey, tally.last_ns);
    assert!(!built.has_runs && built.has_gaps);
}

#[test]
fn a_page_says_where_the_execution_trace_is_from() {
    let alone = without_the_kernel(LATE_JOB);
    let page = |kernel| {
        let timeline = if kernel { LATE_JOB } else { &alone };
        let (survey, _, tally) = survey_of(kernel, timeline);
        let items = items_of(kernel, timeline).into_iter().map(Ok);
        let frame = frame(tally.last_ns, 100);
        let page = Timeline::draw(frame, survey, &|_, _| (), None, items);
        let page = page.expect("items without errors");
        let says = page.notes.iter().any(|note| note.contains("execution trace"));
        (page.head.runs, page.head.gaps, says)
    };
    assert_eq!([page(false), page(true)], [(true, true, true), (false, true, false)]);
}

#[test]
fn the_buckets_have_each_event_of_each_kind() {
    let mut timeline = String::from("0 0 .>a S\n");
    for i in 1..200 {
        timeline += &format!("{} fault a\n", 10 * i * i);
    }
    timeline += "400000 exit a\n500000 0 a>. X";
    let (survey, _, tally) = survey(&timeline);
    let mut built = build(&timeline, &survey, tally.last_ns + 1);
    let kinds = built.kinds.all().to_vec();
    let lanes = built.rows.window_lanes(&[0, 1], false);
    let width = built.level.width();
    let windows = built.take_windows();
    let mut found = vec![vec![0u32; built.level.count()]; kinds.len()];
    for thread in 0..survey.threads.rows.len() {
        for event in windows[0].lane(lanes[4 + 7 * thread + 5]) {
            found[event.a as usize][(event.from / width) as usize] += 1;
        }
    }
    for (kind, found) in found.iter().enumerate() {
        assert_eq!(built.counts.of(kind), found, "{}", kinds[kind].name);
        assert_eq!(found.iter().map(|n| u64::from(*n)).sum::<u64>(), kinds[kind].count);
    }
    let counts: Vec<_> = kinds.iter().map(|kind| (&*kind.name, kind.count)).collect();
    assert_eq!(counts, [("page_fault", 199), ("task exit", 1)]);
}

fn draw(timeline: &str, spans: u64) -> Timeline {
    let (survey, _, tally) = survey(timeline);
    let items = items(timeline).into_iter().map(Ok);
    let frame = frame(tally.last_ns, spans);
    Timeline::draw(frame, survey, &|_, _| (), None, items).expect("items without errors")
}

#[test]
fn holds_within_each_other_have_some_lanes_and_locks_show_them_all() {
    let mut timeline = String::from("0 0 .>a S\n");
    let locks = ["L", "M", "N", "O", "P", "Q"];
    for (n, lock) in locks.iter().enumerate() {
        timeline += &format!("{} acquire a {lock}\n", 100 + 10 * n);
    }
    for (n, lock) in locks.iter().rev().enumerate() {
        timeline += &format!("{} release a {lock}\n", 1000 + 10 * n);
    }
    timeline += "2000 0 a>. S";
    let (survey, rows, tally) = survey(&timeline);
    assert_eq!(rows.critical_sections.iter().map(|r| r.depth).max(), Some(5));
    let built = build(&timeline, &survey, tally.last_ns);
    assert_eq!(built.nesting.iter().map(|(holds, _)| *holds).max(), Some(4));
    let held: i64 = rows.critical_sections.iter().map(|r| r.dur).sum();
    let levels = built.rows.level_rows(&[0, 1], false);
    let of_locks = &levels[2 + survey.threads.rows.len()..];
    assert_eq!(of_locks.len(), locks.len());
    let shown: u64 =
        of_locks.iter().flat_map(|lock| (0..3).map(|state| built.level.total(*lock, state))).sum();
    assert_eq!(shown as i64, held);
}

#[test]
fn a_page_says_what_is_in_it_and_what_is_not() {
    let whole = draw(BUSY, 100);
    // Half open, with the last event, at 6300, in it.
    assert_eq!(whole.head.windows, [Between { from: 0, to: 6301 }]);
    assert_eq!(whole.chunks.len(), 2);
    assert!(whole.notes[0].starts_with("All of it is here"), "{:?}", whole.notes);
    // More is expected than there is room for; the incidents then span all of so short a trace.
    let many = "
        0 0 .>a S
        1000000 acquire a L
        1000100 release a L
        90000000 0 a>. S";
    let part = draw(many, 1 << 40);
    let [window] = &part.head.windows[..] else { panic!("{:?}", part.head.windows) };
    assert!(window.from > 0 && window.from < 1_000_000 && window.to < 90_000_000);
    assert!(part.notes[0].contains("Every detail of 1 window"), "{:?}", part.notes);
    assert!(part.notes[0].contains("--from"));
    assert_eq!(part.head.incidents.len(), 1);
    assert_eq!((part.head.incidents[0].from, part.head.incidents[0].to), (1_000_000, 1_000_100));
}

#[test]
fn what_is_asked_for_is_there_in_full() {
    let timeline = "
        0 0 .>a S
        10000000 acquire a L
        10000100 release a L
        50000000 irq a vector 10
        90000000 0 a>. S";
    let (survey, _, tally) = survey(timeline);
    let items = items(timeline).into_iter().map(Ok);
    let window = Some(49_000_000..51_000_000);
    let page = Timeline::draw(frame(tally.last_ns, 1 << 40), survey, &|_, _| (), window, items);
    let page = page.expect("items without errors");
    let windows = page.head.windows;
    assert_eq!(windows.len(), 2);
    assert_eq!(windows[1], Between { from: 49_000_000, to: 51_000_000 });
    assert!(page.notes[0].contains("and of the interval that was asked for"), "{:?}", page.notes);
    assert!(page.notes.iter().all(|note| !note.contains("a shorter one")), "{:?}", page.notes);
}

#[test]
fn of_an_interval_without_room_it_is_said_how_much_is_there() {
    let (survey, _, tally) = survey(BUSY);
    let built = build(BUSY, &survey, tally.last_ns);
    let (frame, asked) = (frame(tally.last_ns, 1 << 40), 1_000..5_000);
    let mut windows = Windows::new(&[], Some(asked.clone()), 6_301, 1 << 40, 1).finish();
    windows[0].at.end = 2_500;
    let notes = notes(&frame, 6_301, Some(asked), &survey, &built, &windows);
    let said = notes.iter().find(|note| note.contains("a shorter one")).expect("it is said");
    assert!(said.contains("every detail of 1.50 µs of 4.00 µs is here"), "{said}");
}

#[test]
fn losses_are_told_and_beyond_the_bound_as_one() {
    let mut timeline = String::from("0 0 .>a S\n");
    for i in 0..1100 {
        timeline += &format!("{} lose sched 5\n", 100 + 10 * i);
    }
    timeline += "20000 0 a>. S";
    let page = draw(&timeline, 100);
    assert_eq!(page.head.losses.len(), 1000);
    let said = serde_json::to_value(&page.head.losses).expect("JSON");
    assert_eq!((&said[0]["from"], &said[0]["to"]), (&100.into(), &105.into()));
    assert_eq!((&said[999]["from"], &said[999]["to"]), (&10090.into(), &11095.into()));
    assert!(
        page.notes.iter().any(|note| note.contains("1,000 hatched columns")),
        "{:?}",
        page.notes
    );
}

#[test]
fn threads_beyond_the_bound_share_a_row_that_keeps_their_sums() {
    let (mut survey, rows, tally) = survey(BUSY);
    let gone: Vec<_> = survey.threads.rows.split_off(1);
    survey.threads.more = gone.len();
    let expected: i64 = rows
        .thread_time
        .iter()
        .filter(|r| gone.iter().any(|(key, _)| key.tid == r.tid))
        .map(|r| r.spent_ns)
        .sum();
    let built = build(BUSY, &survey, tally.last_ns);
    assert!(built.has_others());
    let others = built.rows.level_rows(&[0, 1], true)[3];
    let sum: u64 = (0..STATES.len()).map(|state| built.level.total(others, state)).sum();
    assert_eq!(sum as i64, expected);
    let items = items(BUSY).into_iter().map(Ok);
    let page = Timeline::draw(frame(tally.last_ns, 9), survey, &|_, _| (), None, items);
    let page = page.expect("items without errors");
    assert_eq!(
        page.head.threads.last().expect("the others").name,
        format!("others: {} threads", gone.len())
    );
    assert!(page.notes.iter().any(|note| note.contains("share one row")), "{:?}", page.notes);
}

#[test]
fn what_a_program_calls_its_things_is_never_html() {
    let mut page = draw(BUSY, 100);
    let hostile = "</script><script>alert(1)</script><!--\u{2028}\u{202e}\"'\n";
    page.head.threads[0].name = hostile.into();
    page.head.strings.push(hostile.into());
    page.notes.push(hostile.into());
    let html = page.fragment();
    assert!(!html.contains("alert(1)</script>") && !html.contains("<!--"), "{html}");
    let head =
        html.split("class=\"tl-head\">").nth(1).and_then(|rest| rest.split("</script>").next());
    let head: serde_json::Value = serde_json::from_str(head.expect("a head")).expect("JSON");
    // What nobody sees is shown.
    let shown = "</script><script>alert(1)</script><!--\\u{2028}\\u{202e}\"'?";
    assert_eq!(head["threads"][0]["name"], shown);
    assert!(head["strings"].as_array().is_some_and(|all| all.contains(&shown.into())));
}

#[test]
fn the_script_has_no_name_twice() {
    let html = draw(BUSY, 100).fragment();
    let mut found: Vec<_> = html
        .lines()
        .filter_map(|line| {
            let line = line.strip_prefix("async ").unwrap_or(line);
            let rest =
                ["function ", "const ", "class "].iter().find_map(|w| line.strip_prefix(w))?;
            rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
        })
        .collect();
    assert!(found.len() > 40, "{found:?}");
    found.sort_unstable();
    let all = found.len();
    found.dedup();
    assert_eq!(found.len(), all);
    assert!(!html.contains("\nimport ") && !html.contains("\nexport "));
}
