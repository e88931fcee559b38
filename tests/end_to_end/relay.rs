//! A request that goes through three threads and a pipe: whose doing each moment of it was is known.

use std::collections::BTreeMap;
use std::path::Path;

use ft_trace::Mark;
use ft_trace::store::Trace;
use ft_trace::tables::{PathKind, PathPiece, Request};
use serde_json::Value;

use crate::errors::{self, Errors};
use crate::harness::{self, Stage, assert_success};
use crate::holes::Holes;
use crate::recomputed::agrees;

/// The short form.
pub(crate) const ROUNDS: usize = 20;

/// Requests that can be judged, of all recordings; in the long form as many as one has.
pub(crate) const LEAST: usize = 10;

/// From a reading of the clock into the kernel and to a waking, or the other way round, where nothing comes between.
pub(crate) const SYSTEM_CALL_NS: i64 = 100_000;

/// Analyses a trace with requests from one event to the other, which move.
fn ask(dir: &Path) -> Value {
    let mut report = harness::agent();
    report.arg("report").arg(dir).args(["requests", "--request", "relay.begin,relay.end"]);
    let output = report.args(["--key", "id", "--json"]).output().expect("the agent starts");
    assert_success(&output);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The path of each request, oldest piece first; each tiles its request.
pub(crate) fn paths(trace: &Trace) -> Vec<(Request, Vec<PathPiece>)> {
    let mut paths: BTreeMap<i64, Vec<PathPiece>> = BTreeMap::new();
    for piece in trace.rows::<PathPiece>() {
        let piece = piece.expect("a row");
        paths.entry(piece.request).or_default().push(piece);
    }
    let requests = trace.rows::<Request>().map(|row| row.expect("a row"));
    let of = |request: Request| {
        let mut path = paths.remove(&request.request).unwrap_or_default();
        path.sort_by_key(|piece| piece.ts);
        let mut at = request.ts.0;
        for piece in &path {
            assert_eq!(piece.ts.0, at, "{piece:?} of {request:?}");
            at += piece.dur;
        }
        assert!(path.is_empty() || at == request.ts.0 + request.dur, "{request:?}");
        (request, path)
    };
    requests.map(of).collect()
}

#[test]
fn each_moment_of_a_request_is_the_doing_of_who_had_it() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let rounds = harness::rounds(ROUNDS);
    let mut errors = [
        "a request is handed over by a condition, before its waking",
        "its next thread begins to wait for a lock, after it is asked for",
        "the holder's timer wakes it, before it can say so",
        "the lock is released, before its waking",
        "it is handed over by a pipe, before its waking",
    ]
    .map(Errors::of);
    let (_, dir) = stage.record_until(&[], &["relay", &rounds.to_string()], |truth, _| {
        let dir = stage.path("trace");
        let report = ask(&dir);
        judge(truth, &Trace::open(&dir).expect("a whole trace"), &mut errors);
        let kinds = &report["sections"]["requests"]["values"]["kinds"];
        assert_eq!(kinds[0]["requests"].as_u64(), Some(rounds as u64), "{report}");
        let least = errors.iter().map(Errors::count).min().expect("some");
        least >= harness::rounds(LEAST)
    });
    errors.into_iter().for_each(|errors| errors.tell(SYSTEM_CALL_NS, harness::rounds(LEAST)));
    agrees("requests that move between threads", &dir);
}

fn judge(truth: &Value, trace: &Trace, errors: &mut [Errors; 5]) {
    let (bound, holes) = (trace.meta().clock.bound_ns, Holes::of(trace));
    let tid = |name: &str| errors::tid(truth, name);
    let [front, worker, keeper, back] = ["front", "worker", "keeper", "back"].map(tid);
    let rounds = errors::rounds::<12>(truth);
    let found = paths(trace);
    assert_eq!(found.len(), rounds.len());
    for ((request, path), (round, times)) in found.iter().zip(rounds.into_iter().enumerate()) {
        let [
            before,
            begun,
            notifies,
            notified,
            asks,
            writes,
            written,
            awake,
            releases,
            released,
            ends,
            ended,
        ] = times;
        assert_eq!(
            (request.key, request.tid.0, request.end_tid.0),
            (Some(round as i64), front, back)
        );
        let end = request.ts.0 + request.dur;
        assert!((before - bound..=begun + bound).contains(&request.ts.0), "{request:?}");
        assert!((ends - bound..=ended + bound).contains(&end), "{request:?}");
        assert!(request.parts.is_none());
        if !holes.judged(request.path_mark.max(request.mark), request.ts.0, request.dur) {
            continue;
        }
        // On a machine that was late, somebody was not yet where the plan has him.
        let planned = notified < asks && asks + SYSTEM_CALL_NS < awake && released < writes;
        if !planned {
            continue;
        }
        assert_eq!((request.path_unknown_ns, request.path_outside_ns), (Some(0), Some(0)));
        let whose: Vec<(i32, i64, i64)> = path.iter().fold(Vec::new(), |mut all, piece| {
            let (tid, to) = (piece.tid.0, piece.ts.0 + piece.dur);
            match all.last_mut() {
                Some((last, _, until)) if *last == tid => *until = to,
                _ => all.push((tid, piece.ts.0, to)),
            }
            all
        });
        let tids: Vec<i32> = whose.iter().map(|(tid, ..)| *tid).collect();
        assert_eq!(tids, [front, worker, keeper, worker, back], "{path:#?}");
        let [_, to_worker, to_keeper, from_keeper, to_back] = [0, 1, 2, 3, 4].map(|i| whose[i].1);
        errors[0].check(to_worker, notifies..=notified, bound);
        errors[1].check(to_keeper, asks..=awake, bound);
        errors[3].check(from_keeper, releases..=released, bound);
        errors[4].check(to_back, writes..=written, bound);
        let timer: Vec<_> = path.iter().filter(|p| p.kind == PathKind::Timer).collect();
        let [timer] = timer[..] else { panic!("the keeper's timer alone: {path:#?}") };
        assert_eq!((timer.tid.0, timer.ts.0, timer.mark), (keeper, to_keeper, Mark::Exact));
        let woken = timer.ts.0 + timer.dur;
        errors[2].check(awake - woken, 0..=awake - to_keeper, bound);
        // Who waits for what, and through how many waits that is on the path.
        for piece in path {
            let (depth, wait) = (piece.depth, piece.wait.as_deref());
            match piece.tid.0 {
                tid if tid == back => assert_eq!((depth, wait), (0, None), "{piece:?}"),
                tid if tid == worker => {
                    assert_eq!((depth, piece.waiter_tid), (1, Some(back)), "{piece:?}")
                }
                tid if tid == front => {
                    assert_eq!((depth, piece.waiter_tid), (2, Some(worker)), "{piece:?}");
                    assert_eq!(wait, Some("condition of jobs"), "{piece:?}");
                }
                _ if piece.kind == PathKind::Timer => {
                    assert_eq!((depth, piece.waiter_tid), (2, Some(keeper)), "{piece:?}");
                }
                _ => {
                    assert_eq!((depth, wait), (2, Some("lock stock")), "{piece:?}");
                    assert_eq!(piece.waiter_tid, Some(worker), "{piece:?}");
                }
            }
        }
    }
}
