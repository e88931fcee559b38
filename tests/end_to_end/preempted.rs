//! Known preemptions inside of holds of depth 1 to 4, and of a polling loop outside of any.

use std::collections::BTreeMap;

use ft_trace::store::Trace;
use ft_trace::tables::{CriticalSection, Gap, GapCause};
use serde_json::Value;

use crate::errors::{self, Errors};
use crate::harness::Stage;
use crate::holes::Holes;
use crate::recomputed::readable;

/// Of every length at every depth.
const REPEATS: &str = "60";
const LEAST: usize = 50;

/// Of preemptions, and of numbers of locks: 0 to 4.
const LENGTHS: usize = 4;
const DEPTHS: usize = 5;

/// What a preemption may take beyond the time between the preemptor's two clock readings: two
/// context switches, the ways out of one system call and into the next, and interrupts there. Measured: 4
/// to 14 µs with an unoptimised subject.
const SWITCHES_NS: i64 = 100_000;

#[test]
fn a_preemption_shows_how_long_and_by_whom() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let mut errors = BTreeMap::new();
    let (_, dir) = stage.record_until(&[], &["preempted", REPEATS], |truth, trace| {
        judge(truth, trace, &mut errors);
        errors.len() == LENGTHS * DEPTHS && errors.values().all(|errors| errors.count() >= LEAST)
    });
    errors.into_values().for_each(|errors| errors.tell(SWITCHES_NS, LEAST));
    readable(&dir);
}

/// Of each length and number of locks.
type All = BTreeMap<(i64, i64), Errors>;

fn judge(truth: &Value, trace: &Trace, errors: &mut All) {
    let (bound, missing) = (trace.meta().clock.bound_ns, Holes::of(trace));
    let (victim, preemptor) = (errors::tid(truth, "victim"), errors::tid(truth, "preemptor"));
    let holds = trace.rows::<CriticalSection>().map(|row| row.expect("a row"));
    let mut holds = holds.filter(|hold| hold.tid.0 == victim);
    let gaps: Vec<Gap> = trace.rows::<Gap>().map(|row| row.expect("a row")).collect();
    for [length, locks, from, to, inside_from, inside_to, lost, ran] in errors::rounds(truth) {
        let held: Vec<CriticalSection> = holds.by_ref().take(locks as usize).collect();
        assert_eq!(held.len() as i64, locks, "a hold for each acquisition");
        // A machine that is itself preempted can be late, so that the preemption is not between two readings of which the
        // victim knows; and on some, switches are missing.
        let whole = |hold: &CriticalSection| missing.judged(hold.mark, hold.ts.0, hold.dur);
        let is_known = inside_from < from && to < inside_to && to - from <= lost;
        // Where threads of a real-time class had a CPU for too long, the kernel lends it to the others, between them or within:
        // then it is not the preemptor who had most of it.
        let is_most = ran > lost / 2;
        if !(held.iter().all(whole) && is_known && is_most) {
            continue;
        }
        let what = format!("preempted for {} µs, locks held: {locks}", length / 1000);
        let errors = errors.entry((length, locks)).or_insert_with(|| Errors::of(what));
        let taken = to - from..=lost;
        // Between acquiring and its first reading, and after the last one, it may lose the CPU, too.
        let of_hold = |hold: &CriticalSection| {
            to - from..=lost + (hold.dur - (inside_to - inside_from)).max(0)
        };
        for (hold, depth) in held.iter().zip(0..) {
            assert!(inside_from - hold.ts.0 <= hold.dur && hold.ts.0 <= from, "{hold:?}");
            assert_eq!(hold.depth, depth);
            assert_eq!(hold.preemptor_comm.as_deref(), Some("ft-preemptor"));
            assert_eq!(hold.preemptor_tid, Some(preemptor));
            let preempted = hold.parts.expect("parts").preempted_ns;
            errors.within(preempted, &of_hold(hold), bound);
            // A thread of the kernel's own may have interrupted even the preemptor, for some of the time.
            let by_it = hold.preemptor_ns.expect("a preemptor");
            assert!((preempted / 2..=preempted).contains(&by_it), "{hold:?}");
        }
        if let Some(innermost) = held.last() {
            let preempted = innermost.parts.expect("parts").preempted_ns;
            errors.check(preempted, of_hold(innermost), bound);
        }
        if locks == 0 {
            let around = |g: &&Gap| g.ts.0 <= from + bound && to - bound <= g.ts.0 + g.dur;
            let gap = gaps.iter().find(around).expect("the polling thread saw the preemption");
            if !missing.judged(gap.mark, gap.ts.0, gap.dur) {
                continue;
            }
            // A machine that stood still, too: by the victim's own clock, whatever the analysis says of it.
            if lost - (to - from) > (to - from) / 2 {
                continue;
            }
            let parts = gap.parts.expect("parts");
            assert_eq!(gap.cause, Some(GapCause::SwitchedOut), "{gap:?}");
            assert_eq!(gap.culprit.as_deref(), Some("ft-preemptor"), "{gap:?}");
            assert_eq!((gap.tid.0, gap.culprit_tid), (victim, Some(preemptor)));
            errors.check(parts.preempted_ns, taken, bound);
        }
    }
    assert_eq!(holds.next(), None);
}
