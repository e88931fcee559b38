use super::super::super::timeline::{run, run_on_since};
use ft_trace::Mark;

/// Depths of holds, then of scopes, with their marks, of a trace whose sites are on since then.
fn depths(on_ns: Option<i64>, timeline: &str) -> Vec<String> {
    let (rows, _) = run_on_since(on_ns, true, timeline);
    let text = |depth, mark| format!("{}{depth}", if mark == Mark::Exact { "" } else { ">=" });
    let holds = rows.critical_sections.iter().map(|h| (h.depth, h.depth_mark));
    let scopes = rows.scopes.iter().map(|s| (s.depth, s.depth_mark));
    holds.chain(scopes).map(|(depth, mark)| text(depth, mark)).collect()
}

/// A hold and a scope of a.
const BOTH: &str = "30 acquire a L\n 32 open a\n 34 close a\n 36 release a L";

#[test]
fn what_may_have_begun_before_its_site_was_on_is_unknown() {
    for (on_ns, before, expected) in [
        // Since the program began to trace; at a time, at which the thread was there; at no known time.
        (Some(0), "", "0"),
        (Some(20), "", ">=0"),
        (None, "", ">=0"),
        // The thread, or its program, began when the site was on, or before that.
        (Some(20), "25 0 .>X S\n 26 new X a 0", "0"),
        (Some(28), "25 0 .>X S\n 26 new X a 0", ">=0"),
        (None, "25 0 .>X S\n 26 new X a 0", ">=0"),
        (Some(20), "25 exec a", ">=0"),
        (Some(20), "24 0 .>a S\n 25 exec a", "0"),
        // Lost before it was seen, and in its life.
        (Some(0), "25 lose ring 2 a", ">=0"),
        (Some(20), "24 0 .>a S\n 25 exec a\n 26 lose ring 2 a", ">=0"),
    ] {
        let timeline = format!("{before}\n{BOTH}");
        assert_eq!(depths(on_ns, &timeline), [expected; 2], "{on_ns:?} {before}");
    }
}

#[test]
fn an_end_without_a_begin_shows_that_more_is_missing() {
    // Switched off and on again in between, say.
    let holds = depths(
        Some(0),
        "10 acquire a K\n 11 release a K\n 20 release a M\n 30 acquire a L\n 31 release a L",
    );
    assert_eq!(holds, ["0", ">=0"]);
    let scopes = depths(Some(0), "10 open a\n 11 close a\n 20 leave a\n 30 open a\n 31 close a");
    assert_eq!(scopes, ["0", ">=0"]);
    // What another thread has acquired, and this one gives back, was seen.
    let handed =
        depths(Some(0), "10 acquire b K\n 11 release a K\n 30 acquire a L\n 31 release a L");
    assert_eq!(handed, ["0"]);
}

#[test]
fn what_is_acquired_in_a_doubtful_order_may_have_a_gate() {
    let order = |on_ns| {
        let nested = "10 acquire a K\n 11 acquire a L\n 12 release a L\n 13 release a K";
        let (rows, _) = run_on_since(on_ns, true, nested);
        rows.lock_order.iter().map(|edge| edge.mark).collect::<Vec<_>>()
    };
    assert_eq!((order(Some(0)), order(None)), (vec![Mark::Exact], vec![Mark::LowerBound]));
    // Once is enough.
    let (rows, _) = run(
        true,
        "10 acquire a K\n 11 acquire a L\n 12 release a L\n 13 release a K\n 14 lose ring 1 a
         20 acquire a K\n 21 acquire a L\n 22 release a L\n 23 release a K",
    );
    assert_eq!((rows.lock_order[0].count, rows.lock_order[0].mark), (2, Mark::LowerBound));
}

#[test]
fn a_forked_process_is_in_what_its_parent_was_in() {
    let forked = |parent: Option<super::Begun>, nothing| {
        let mut begun = super::Begun::forked(parent.as_ref(), |_| nothing);
        begun.event(super::Nest::Locks, Some(100));
        begun.mark(super::Nest::Locks)
    };
    let mut parent = super::Begun::default();
    assert_eq!(forked(Some(parent), true), Mark::LowerBound, "nothing was seen of it");
    parent.event(super::Nest::Locks, Some(0));
    assert_eq!((forked(Some(parent), true), forked(None, true)), (Mark::Exact, Mark::LowerBound));
    assert_eq!(forked(Some(parent), false), Mark::LowerBound, "it held something");
    parent.lose();
    assert_eq!(forked(Some(parent), true), Mark::LowerBound);
}
