//! From a timer through two threads to the event that answers it, and from a packet: whose doing each moment of it was is known,
//! and who held it up.

use std::ops::Range;
use std::path::Path;

use ft_trace::Mark;
use ft_trace::store::Trace;
use ft_trace::tables::{PathKind, SchedSwitch};
use serde_json::Value;

use crate::errors::{self, Errors};
use crate::harness::{self, Stage, assert_success};
use crate::holes::Holes;
use crate::recomputed::agrees;
use crate::relay::{LEAST, ROUNDS, SYSTEM_CALL_NS, paths};

/// Runs `report DIR reactivity` with these options.
fn report(dir: &Path, options: &[&str]) -> std::process::Output {
    let mut report = harness::agent();
    report.arg("report").arg(dir).arg("reactivity").args(options);
    report.output().expect("the agent starts")
}

/// The machine values of reactions from one to the other.
pub(crate) fn ask(dir: &Path, from: &str, to: &str) -> Value {
    let output = report(dir, &["--from", from, "--to", to, "--json"]);
    assert_success(&output);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    report["sections"]["reactivity"]["values"].clone()
}

#[test]
fn the_way_from_a_timer_to_its_answer_is_known() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let rounds = harness::rounds(ROUNDS);
    let mut errors = [
        "a timer's interrupt wakes who sleeps for it, after its time",
        "who is behind a higher priority gets its CPU, after that has gone",
        "it is handed over by a pipe, before its waking",
    ]
    .map(Errors::of);
    let (_, dir) = stage.record_until(&[], &["react", &rounds.to_string()], |truth, _| {
        let dir = stage.path("trace");
        let values = ask(&dir, "timer:ft-sensor", "event:react.*");
        judge(truth, &Trace::open(&dir).expect("a whole trace"), &mut errors);
        balances(&values);
        assert_eq!(values["kinds"][0]["kind"], "timer:ft-sensor,event:react.*");
        assert_eq!(values["kinds"][0]["requests"], values["counts"]["reactions"][0]["answered"]);
        assert_eq!(values["paths"][0]["end_comm"], "ft-actor", "{values}");
        let least = errors.iter().map(Errors::count).min().expect("some");
        least >= harness::rounds(LEAST)
    });
    errors.into_iter().for_each(|errors| errors.tell(SYSTEM_CALL_NS, harness::rounds(LEAST)));
    agrees("reactions to a timer", &dir);
    // The same interrupts by name, also those that have nothing to do with it.
    let values = ask(&dir, "irq:local_*", "event:react.*");
    balances(&values);
    assert!(values["counts"]["reactions"][0]["coalesced"].as_u64() > Some(0), "{values}");
    agrees("reactions to interrupts", &dir);
    refuses(&dir);
    // The program has such an event, and does not come by it.
    let none = report(&dir, &["--from", "timer:ft-sensor", "--to", "event:endless.step"]);
    assert_success(&none);
    let none = String::from_utf8_lossy(&none.stdout);
    assert!(none.contains("No cause was answered") && !none.contains("made of"), "{none}");
}

/// Each cause was answered, or not, for one reason.
pub(crate) fn balances(values: &Value) {
    let counts = &values["counts"]["reactions"][0];
    let count = |name: &str| counts[name].as_u64().expect("a number");
    let all = ["answered", "coalesced", "unanswered", "too_many"].map(count);
    assert_eq!(count("causes"), all.iter().sum::<u64>(), "{counts}");
}

fn judge(truth: &Value, trace: &Trace, errors: &mut [Errors; 3]) {
    let (bound, holes) = (trace.meta().clock.bound_ns, Holes::of(trace));
    let [hog, sensor, actor] = ["hog", "sensor", "actor"].map(|name| errors::tid(truth, name));
    let found = paths(trace);
    let asleep = asleep(trace, sensor);
    let rounds: Vec<[i64; 8]> = errors::rounds(truth);
    for (i, &round) in rounds.iter().enumerate() {
        let [hogs, hogged, at, awake, writes, written, answers, answered] = round;
        // On a machine that was late, somebody was not yet where the plan has him: the sensor did not sleep any more.
        if hogs >= at || awake < hogged || !asleep.iter().any(|time| time.contains(&at)) {
            continue;
        }
        // Or two rounds were under way at once, of which one answer is for both.
        let [_, _, next_at, ..] = rounds.get(i + 1).copied().unwrap_or([i64::MAX; 8]);
        let last_answered = i.checked_sub(1).map_or(i64::MIN, |last| rounds[last][7]);
        if last_answered >= at || next_at <= answered {
            continue;
        }
        // Where the hog came unseen, nobody is known to be in the way; where the waking is hidden, there is no cause.
        if holes.touch(hogs, answered) {
            continue;
        }
        let ended = answers - bound..=answered + bound;
        let ended = found.iter().find(|(r, _)| ended.contains(&(r.ts.0 + r.dur)));
        let (request, path) = ended.expect("each timer is answered");
        if !holes.judged(request.path_mark.max(request.mark), request.ts.0, request.dur) {
            continue;
        }
        assert_eq!((request.tid.0, request.end_tid.0), (sensor, actor), "{request:?}");
        assert_eq!((request.path_unknown_ns, request.parts), (Some(0), None));
        // First the sensor's: the handler of its timer, behind the hog, and its work; then the actor's.
        let [timer, delay, ..] = &path[..] else { panic!("{path:#?}") };
        assert_eq!((timer.kind, timer.mark), (PathKind::Timer, Mark::Exact), "{path:#?}");
        // The interrupt may have begun before, for another timer.
        errors[0].check(delay.ts.0, at..=hogged, bound);
        assert_eq!((delay.kind, delay.culprit_tid), (PathKind::Dispatch, Some(hog)), "{path:#?}");
        assert_eq!(delay.culprit.as_deref(), Some("ft-hog"));
        errors[1].check(delay.ts.0 + delay.dur, hogged..=awake, bound);
        let others = path.iter().position(|piece| piece.tid.0 != sensor).expect("the actor's");
        assert!(path[..others].iter().all(|piece| piece.depth == 1), "{path:#?}");
        let own = |piece: &ft_trace::tables::PathPiece| (piece.tid.0, piece.depth) == (actor, 0);
        assert!(path[others..].iter().all(own), "{path:#?}");
        errors[2].check(path[others].ts.0, writes..=written, bound);
    }
}

#[test]
fn the_way_from_a_packet_to_its_answer_is_known() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let rounds = harness::rounds(ROUNDS);
    let mut errors = [
        "a packet is brought by the softirq that who sends it runs",
        "who was woken by it gets its CPU, after the sender has gone",
        "it is answered",
    ]
    .map(Errors::of);
    let (_, dir) = stage.record_until(&[], &["packets", &rounds.to_string()], |truth, _| {
        let dir = stage.path("trace");
        let values = ask(&dir, "packet:ft-near", "event:packets.*");
        judge_packets(truth, &Trace::open(&dir).expect("a whole trace"), &mut errors);
        balances(&values);
        errors.iter().map(Errors::count).min().expect("some") >= harness::rounds(LEAST)
    });
    errors.into_iter().for_each(|errors| errors.tell(SYSTEM_CALL_NS, harness::rounds(LEAST)));
    agrees("reactions to a packet", &dir);
}

fn judge_packets(truth: &Value, trace: &Trace, errors: &mut [Errors; 3]) {
    let (bound, holes) = (trace.meta().clock.bound_ns, Holes::of(trace));
    let [far, near] = ["far", "near"].map(|name| errors::tid(truth, name));
    let found = paths(trace);
    let asleep = asleep(trace, near);
    let rounds: Vec<[i64; 6]> = errors::rounds(truth);
    for (i, &[sends, sent, kept, awake, answers, answered]) in rounds.iter().enumerate() {
        // On a machine that was late, who receives was still busy with the packet before, or the next one came meanwhile.
        let next = rounds.get(i + 1).map_or(i64::MAX, |next| next[0]);
        if awake < kept || next <= answered || !asleep.iter().any(|time| time.contains(&sends)) {
            continue;
        }
        // A packet whose waking is hidden is no cause, and of a softirq that is, it is not known.
        if holes.touch(sends, answered) {
            continue;
        }
        let ended = answers - bound..=answered + bound;
        let ended = found.iter().find(|(r, _)| ended.contains(&(r.ts.0 + r.dur)));
        let (request, path) = ended.expect("each packet is answered");
        if !holes.judged(request.path_mark.max(request.mark), request.ts.0, request.dur) {
            continue;
        }
        assert_eq!((request.tid.0, request.end_tid.0), (near, near), "{request:?}");
        assert_eq!(request.path_unknown_ns, Some(0), "{path:#?}");
        errors[0].check(request.ts.0, sends..=sent, bound);
        let delay = path.iter().find(|piece| piece.kind == PathKind::Dispatch);
        let delay = delay.unwrap_or_else(|| panic!("it was held up: {path:#?}"));
        assert_eq!((delay.tid.0, delay.culprit_tid), (near, Some(far)), "{path:#?}");
        assert_eq!(delay.culprit.as_deref(), Some("ft-far"));
        errors[1].check(delay.ts.0 + delay.dur, kept..=awake, bound);
        errors[2].check(request.ts.0 + request.dur, answers..=answered, bound);
    }
}

/// The times in which a thread slept, by the switches.
fn asleep(trace: &Trace, tid: i32) -> Vec<Range<i64>> {
    let (mut times, mut since) = (Vec::new(), None);
    for switch in trace.rows::<SchedSwitch>() {
        let switch = switch.expect("a row");
        if switch.prev_tid.0 == tid && !switch.prev_state.is_runnable() {
            since = Some(switch.ts.0);
        }
        if switch.next_tid.0 == tid {
            times.extend(since.take().map(|since| since..switch.ts.0));
        }
    }
    times
}

/// What cannot be asked is one sentence.
fn refuses(dir: &Path) {
    for (options, sentence) in [
        (&["--from", "irq:eth9", "--to", "event:react.*"][..], "no interrupt of the trace matches"),
        (&["--from", "timer:nobody", "--to", "event:react.*"], "no thread of the trace matches"),
        (&["--from", "irq:*", "--to", "event:nothing"], "no event of the trace matches"),
        (
            &["--from", "event:react.*", "--to", "event:react.answer"],
            "`react.*` is an answer by --to, and an answer is no cause",
        ),
        (&["--from", "frame:x", "--to", "event:react.*"], "`frame:x` is no cause"),
        (&["--from", "irq:*", "--to", "irq:*"], "`irq:*` is no answer"),
        (&["--from", "irq:*"], "a reaction has a cause and an answer"),
        (&["--from", "1s", "--to", "event:x"], "a reaction has a cause and an answer"),
        (&["--from", "1s"], "add --html FILE"),
        (&["--from", "irq:*", "--to", "event:react.*", "--key", "id"], "has no arguments"),
        (&["--key", "id"], "--key names an argument of the events of --request"),
    ] {
        let output = report(dir, options);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {said}");
        assert!(said.contains(sentence) && said.lines().count() == 1, "{options:?}: {said}");
    }
}
