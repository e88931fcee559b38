//! Timelines in, items out.

use std::collections::BTreeMap;

use super::*;
use ft_analysis::Context;
use ft_analysis::timeline::{events, names, nonsense, run, sites, threads};
use ft_trace::ids::{ThreadKey, Tid};
use ft_trace::tables::Part;

fn tracks(kernel: bool, window: std::ops::Range<i64>, timeline: &str) -> Vec<Item> {
    let context = Context::new(kernel, 10, &threads(), &sites(), &names());
    let mut tracks = Tracks::new(context, window.clone());
    let (mut items, mut more) = (Vec::new(), false);
    for event in events(timeline) {
        if event.ts().0 >= window.end {
            more = true;
            break;
        }
        tracks.push(&event);
        items.extend(std::iter::from_fn(|| tracks.pop()));
    }
    tracks.end(more);
    items.extend(std::iter::from_fn(|| tracks.pop()));
    items
}

/// `a` of the thread whose number is that letter's.
fn letter(tid: Tid) -> char {
    if tid.0 == 0 { '.' } else { tid.0 as u8 as char }
}

fn text(item: &Item) -> Option<String> {
    let what = match &item.what {
        What::Occupied(o) => format!("cpu{} {}", o.cpu, letter(o.who.thread.tid)),
        What::State(s) => {
            let by = s.culprit.name().map_or(String::new(), |name| format!(" by {name}"));
            format!("{} {}{by}", letter(s.thread.tid), s.part)
        }
        What::Interrupt(e) => format!("irq {}", e.name),
        What::Hold(h) => format!("{} holds {}", letter(h.tid), h.lock as u8 as char),
        What::Wait(w) => {
            let holder = w.holder_tid.map_or('-', |tid| letter(Tid(tid)));
            format!("{} waits {} of {holder}", letter(w.tid), w.lock as u8 as char)
        }
        What::Unmet(w) => {
            let holder = w.holder.map_or('-', letter);
            let outcome = format!("{:?}", w.outcome).to_lowercase();
            let (tid, lock) = (letter(w.thread.tid), w.lock as u8 as char);
            format!("{tid} waits {lock} of {holder} {outcome}")
        }
        What::Dispatch(d) => format!("{} woken by {}", letter(d.tid), letter(d.waker_tid)),
        What::Scope(s) => format!("{} in {}", letter(s.tid), s.event),
        What::Poll(p) => format!("{} polls {}", letter(p.tid), p.task),
        What::Gap(g) => format!("{} gap", letter(g.tid)),
        What::Run(r) => format!("{} runs cpu{}", letter(r.tid), r.cpu),
        What::Loss(_) => "loss".into(),
        _ => return None,
    };
    let (begun, over) = (if item.begun { "" } else { "<" }, if item.over { "" } else { ">" });
    let mark = item.what.mark().filter(|mark| *mark != Mark::Exact);
    let mark = mark.map_or(String::new(), |mark| format!(" {mark}"));
    Some(format!("{begun}{}..{}{over} {what}{mark}", item.from, item.to))
}

/// Compares what is drawn of a window, instants apart.
fn check(window: std::ops::Range<i64>, timeline: &str, expected: &[&str]) {
    let found: Vec<_> = tracks(true, window, timeline).iter().filter_map(text).collect();
    assert_eq!(found, expected, "{timeline}");
}

const ALL: std::ops::Range<i64> = i64::MIN..i64::MAX;

#[test]
fn a_preempted_holder_delays_a_waiter() {
    // cpu 0: a [==|XXXXX|v|==]|....
    // cpu 1: b ==w|...........|b
    let timeline = "0 0 .>a S
         0 1 .>b S
         10 acquire a L
         15 wait b L
         20 1 b>. S
         30 0 a>X R
         70 0 X>a S
         75 irq a vector 5
         90 release a L
         92 wake a b 1
         95 1 .>b R
         99 acquire b L
         110 release b L
         120 0 a>. X";
    check(
        ALL,
        timeline,
        &[
            "0..20 b running",
            "0..20 cpu1 b",
            "0..30 a running",
            "0..30 cpu0 a",
            "30..70 cpu0 X",
            "30..70 a preempted by X",
            "75..80 irq vector-name",
            "70..75 a running",
            "75..80 a vector by vector-name",
            "10..90 a holds L",
            "20..92 b blocked by lock 0x4c",
            "20..95 cpu1 .",
            "92..95 b woken by a",
            "92..95 b dispatch by .",
            "15..99 b waits L of a",
            "99..110 b holds L",
            "80..120 a running",
            "70..120 cpu0 a",
            "95..120> b running",
            "120..120> cpu0 . censored",
            "95..120> cpu1 b censored",
        ],
    );
    // Who has what at 40 was decided before; what goes on at 85 has no known end here.
    check(
        40..85,
        timeline,
        &[
            "<40..70 cpu0 X",
            "<40..70 a preempted by X",
            "75..80 irq vector-name",
            "<40..85> a holds L censored",
            "<40..85> b waits L of a over(trace) censored",
            "70..75 a running",
            "75..80 a vector by vector-name",
            "80..85> a running",
            "<40..85> b blocked by lock 0x4c",
            "70..85> cpu0 a censored",
            "<40..85> cpu1 . censored",
        ],
    );
    // Of what was over before, nothing is left.
    check(
        115..130,
        timeline,
        &[
            "<115..120 a running",
            "<115..120 cpu0 a",
            "<115..120> b running",
            "120..120> cpu0 . censored",
            "<115..120> cpu1 b censored",
        ],
    );
}

#[test]
fn what_has_no_end_is_told_as_far_as_it_is_known() {
    check(
        ALL,
        "0 0 .>a S
         10 acquire a L
         12 open a
         15 wait b M
         20 wait b L
         30 abandon b L
         40 lose ring 5 a
         50 exit a",
        &[
            "15..20> b waits M of - unknown censored",
            "20..30 b waits L of a abandoned",
            "12..40> a in work.outer censored",
            "10..40> a holds L censored",
            "40..45 loss",
            "0..50> a running",
            "15..50> b running",
            "0..50> cpu0 a censored",
        ],
    );
}

#[test]
fn who_had_a_cpu_is_drawn_as_far_as_a_record_shows_it() {
    // The switches between a and Y are missing: a was last seen at 20.
    check(
        ALL,
        "0 0 .>a S
         20 irq a hard 5
         60 0 Y>b S
         80 0 b>. S",
        &[
            "20..25 irq hard-name",
            "0..20 a running",
            "20..25 a hardirq by hard-name lower bound",
            "25..60 a running lower bound",
            "0..20> cpu0 a censored",
            "60..80 b running",
            "60..80 cpu0 b",
            "60..80> a unexplained by no record",
            "80..80> cpu0 . censored",
        ],
    );
}

#[test]
fn without_a_kernel_stream_there_are_holds_and_no_states() {
    let found = tracks(false, ALL, "10 acquire a L\n 20 open a\n 25 close a\n 30 release a L");
    let found: Vec<_> = found.iter().filter_map(text).collect();
    assert_eq!(found, ["20..25 a in work.outer", "10..30 a holds L"]);
}

/// By thread and part, in ns.
type Sums = BTreeMap<(ThreadKey, Part), i64>;

/// The sums of the states, which do not overlap.
fn sums(items: &[Item]) -> Sums {
    let (mut sums, mut ends) = (Sums::new(), BTreeMap::new());
    for item in items {
        let What::State(s) = &item.what else { continue };
        let before = ends.insert(s.thread, item.to);
        assert!(before.is_none_or(|end| end <= item.from), "{s:?}");
        *sums.entry((s.thread, s.part)).or_default() += item.len_ns();
    }
    sums
}

#[test]
fn states_sum_to_the_time_of_each_thread_and_rows_are_those_of_the_tables() {
    for seed in 1..=100 {
        let timeline = nonsense(seed);
        let (rows, _) = run(true, &timeline);
        let items = tracks(true, ALL, &timeline);
        let mut expected = Sums::new();
        for row in &rows.thread_time {
            // What a gap denies later was running when it was drawn.
            let denied = row.culprit.as_deref() == Some("in gaps");
            let part = if denied { Part::Running } else { row.part };
            *expected.entry((ThreadKey { pid: row.pid, tid: row.tid }, part)).or_default() +=
                row.spent_ns;
        }
        assert_eq!(sums(&items), expected, "seed {seed}");
        // As they sum up, there is no hole.
        let n = |is: fn(&What) -> bool| items.iter().filter(|i| i.over && is(&i.what)).count();
        assert_eq!(n(|w| matches!(w, What::Hold(_))), rows.critical_sections.len());
        assert_eq!(n(|w| matches!(w, What::Wait(_))), rows.lock_waits.len());
        assert_eq!(n(|w| matches!(w, What::Dispatch(_))), rows.dispatch_latency.len());
        assert_eq!(n(|w| matches!(w, What::Gap(_))), rows.gaps.len());
        assert_eq!(n(|w| matches!(w, What::Scope(_))), rows.scopes.len());
    }
}

#[test]
fn a_task_is_polled_by_a_thread_until_it_is_over_or_the_trace_is() {
    let timeline = "0 0 .>a S
         5 make a 7
         10 run a 7
         20 ran a 7 0
         25 rouse b 7
         30 run a 7
         40 0 a>X R";
    let items = tracks(true, 15..35, timeline);
    let polls = items.iter().filter(|item| matches!(item.what, What::Poll(_))).filter_map(text);
    let expected = ["<15..20 a polls 7", "30..35> a polls 7 censored"];
    assert_eq!(polls.collect::<Vec<_>>(), expected);
}
