//! What a recording has of a load: each worker, run, job, sleep and latency, from its events alone.

mod common;
#[path = "../../ft-user/tests/common/mod.rs"]
mod recording;

use std::collections::HashMap;

use ft_user::layout::SiteKind;
use recording::{Event, Memory};

fn of<'a>(events: &'a [Event], name: &str, tid: u32) -> Vec<&'a Event> {
    events.iter().filter(|e| e.name == name && e.tid == tid).collect()
}

/// The events say what the program itself says, worker by worker, run by run, job by job.
#[test]
fn a_recording_has_every_run_job_and_latency() {
    recording::start(ft_user::Config { rings: 8, ..Default::default() });
    assert!(ft_user::enable("*") > 0);
    let outcome = common::played(
        "-n 4 -d 100ms -t 0 -w PERIODIC 1ms 10ms -i HR -t 1 -w CPU_YIELD 1ms -t 2 -w CPU_PERIODIC 2ms 20ms -t 3 -w LAT 5ms",
    );
    let events = Memory::own().take();
    assert!(events.iter().all(|event| event.name != "loss"));

    let zero: Vec<_> = events.iter().filter(|e| e.name == "hourglass.zero").collect();
    assert_eq!(zero.len(), 1);
    assert_eq!(zero[0].words[..2], [outcome.zero_ns, 4]);

    for (n, thread) in outcome.threads.iter().enumerate() {
        let is_worker = |e: &&Event| e.name == "hourglass.worker" && e.words[0] == n as u64;
        let announced: Vec<_> = events.iter().filter(is_worker).collect();
        assert_eq!(announced.len(), 1, "worker {n}");
        let tid = announced[0].tid;
        let span = of(&events, "hourglass.span", tid)[0];
        assert_eq!(span.words[..2], [outcome.zero_ns, outcome.zero_ns + 100_000_000]);
        let done = of(&events, "hourglass.done", tid)[0];
        let runs = thread.time.map_or(0, |time| time.runs);
        let sleeps = of(&events, "hourglass.sleep", tid).len() as u64;
        assert_eq!(done.words[..3], [runs, thread.jobs.len() as u64, sleeps]);

        // Runs: what lies between the gaps of the worker's own thread.
        let seen: Vec<_> = events.iter().filter(|e| e.name == "gap.seen" && e.tid == tid).collect();
        let own: Vec<_> = outcome.runs.iter().filter(|run| run.thread == n as u32).collect();
        assert_eq!(seen.len() + usize::from(thread.time.is_some()), own.len(), "worker {n}");
        for (gap, pair) in seen.iter().zip(own.windows(2)) {
            assert_eq!(gap.words[..2], [pair[0].end_tsc, pair[1].start_tsc]);
        }
        let readings = ["first", "last"].map(|end| of(&events, &format!("hourglass.{end}"), tid));
        if let [first, .., last] | [first @ last] = own[..] {
            let [[begin], [end]] = readings.each_ref().map(|events| &events[..]) else {
                panic!("{readings:?}")
            };
            assert_eq!((begin.words[0], end.words[0]), (first.start_tsc, last.end_tsc));
        }

        // Jobs: release and due of the begin, and a finish for those that had their time.
        let jobs = of(&events, "hourglass.job", tid);
        let begun: Vec<_> = jobs.iter().filter(|e| e.kind == SiteKind::ScopeBegin).collect();
        assert_eq!(begun.len(), thread.jobs.len(), "worker {n}");
        let finishes = of(&events, "hourglass.finish", tid);
        let finished: HashMap<u64, u64> =
            finishes.iter().map(|e| (e.words[0], e.words[1])).collect();
        for (event, job) in begun.iter().zip(&thread.jobs) {
            assert_eq!(event.words[0], job.number);
            assert_eq!(outcome.ns(event.words[1]), job.start_ns);
            // One that is released by its start says so.
            let told = match n {
                0 => [job.release_ns, job.due_ns].map(|ns| outcome.zero_ns + ns as u64),
                _ => [0, 0],
            };
            assert_eq!(event.words[2..4], told);
            let finish = finished.get(&job.number).map(|tsc| outcome.ns(*tsc));
            assert_eq!(finish, job.finish_ns);
        }
        let ends = jobs.iter().filter(|e| e.kind == SiteKind::ScopeEnd).count()
            + events.iter().filter(|e| e.kind == SiteKind::ScopeEnd && e.tid == tid).count();
        assert!(ends >= begun.len(), "every job ends, if only with its thread");

        // Sleeps and latencies.
        let (slept, woke) =
            (of(&events, "hourglass.sleep", tid), of(&events, "hourglass.woke", tid));
        assert_eq!(slept.len(), woke.len());
        assert!(slept.iter().zip(&woke).all(|(s, w)| s.words[0] == w.words[0] && s.tsc < w.tsc));
        if n == 3 {
            let told: Vec<(u64, u64)> = woke.iter().map(|e| (e.words[0], e.words[1])).collect();
            let own: Vec<_> = thread.samples.iter().map(|s| (s.due_ns, s.woke_ns)).collect();
            assert_eq!(told, own);
        }
    }
    let yields = events.iter().filter(|e| e.name == "hourglass.yield").count();
    let seen =
        outcome.runs.iter().filter(|r| r.ended == ft_load::hourglass::Ended::Yielded).count();
    assert!(yields >= seen, "{yields} yields, {seen} of them long enough to be seen");
}
