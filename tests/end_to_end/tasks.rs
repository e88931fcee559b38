//! Async tasks whose lives are known: their polls, wake-ups, a call that blocks in one, and what they were queued behind.

use std::collections::BTreeMap;
use std::path::Path;

use ft_trace::Mark;
use ft_trace::store::Trace;
use ft_trace::tables::{AsyncSwitch, AsyncTask, PathPiece, PollEnd, Request, TaskEnd};
use ft_user::layout::HOOKED_TASKS;
use serde_json::Value;

use crate::errors::{self, Errors};
use crate::harness::{self, Stage, assert_success, gate};
use crate::holes::Holes;
use crate::recomputed::{agrees, python};

/// The short form.
const ROUNDS: usize = 20;

/// Rounds that can be judged, of all recordings; in the long form as many as one has.
const LEAST: usize = 10;

/// From a reading of the clock into the kernel and to a waking, or the other way round, where nothing comes between.
const SYSTEM_CALL_NS: i64 = 100_000;

/// Tasks of each name, or place without one, in the order of their making, and the polls of each.
pub(crate) type Lives = BTreeMap<String, Vec<(AsyncTask, Vec<AsyncSwitch>)>>;

/// All tasks of a trace, of which everything sums.
pub(crate) fn lives(trace: &Trace) -> Lives {
    let mut polls: BTreeMap<i64, Vec<AsyncSwitch>> = BTreeMap::new();
    for poll in trace.rows::<AsyncSwitch>() {
        let poll = poll.expect("a row");
        assert_eq!(poll.parts.expect("a kernel stream").total_ns(), poll.dur, "{poll:?}");
        polls.entry(poll.task).or_default().push(poll);
    }
    let mut lives = Lives::new();
    for task in trace.rows::<AsyncTask>() {
        let task = task.expect("a row");
        let states = [task.unstarted_ns, task.queued_ns, task.waiting_ns, task.polled_ns];
        assert_eq!(states.iter().sum::<i64>() + task.unknown_ns, task.dur, "{task:?}");
        assert_eq!(task.parts.expect("a kernel stream").total_ns(), task.polled_ns, "{task:?}");
        let polls = polls.remove(&task.task).unwrap_or_default();
        assert_eq!(polls.len() as i64, task.polls, "{task:?}");
        assert_eq!(polls.iter().map(|poll| poll.dur).sum::<i64>(), task.polled_ns);
        lives.entry(task.label().to_string()).or_default().push((task, polls));
    }
    assert!(polls.is_empty(), "each poll is one of a task: {polls:?}");
    lives.values_mut().for_each(|tasks| tasks.sort_by_key(|(task, _)| task.ts));
    lives
}

/// `events --task NAME` has each event of a thread in a poll of a task of that name, and each that tells of one, and no other.
fn listed_by_task(dir: &Path) {
    let list = |options: &[&str]| -> Vec<Value> {
        let mut agent = harness::agent();
        let output = agent.arg("events").arg(dir).args(["--json"]).args(options).output();
        let output = output.expect("the agent starts");
        assert_success(&output);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let lives = lives(&harness::open(dir));
    let all = list(&[]);
    let mut of_kernel = 0;
    for (name, of_name) in &lives {
        let is_listed = |event: &&Value| {
            let number = |key: &str| event[key].as_i64().expect("an integer");
            let (ts, tid) = (number("ts"), number("tid"));
            let is_within = |poll: &AsyncSwitch| {
                i64::from(poll.tid.0) == tid && (poll.ts.0..=poll.ts.0 + poll.dur).contains(&ts)
            };
            let is_told = |task: i64| {
                event["event"].as_str().is_some_and(|event| event.starts_with("async."))
                    && event["args"]["task"].as_i64() == Some(task)
            };
            of_name.iter().any(|(task, polls)| is_told(task.task) || polls.iter().any(is_within))
        };
        let expected: Vec<&Value> = all.iter().filter(is_listed).collect();
        let found = list(&["--task", name]);
        assert!(!found.is_empty(), "{name}");
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{name}");
        // With the kernel's: the same, and more.
        let with_kernel = list(&["--task", name, "-k"]);
        let own: Vec<_> = with_kernel.iter().filter(|event| all.contains(event)).collect();
        assert_eq!(own, expected, "{name}");
        of_kernel += with_kernel.len() - own.len();
    }
    assert!(of_kernel > 0, "polls that block, or have no CPU");
}

/// The views have the task of each event of a thread, of programs and of the kernel.
pub(crate) fn in_task(dir: &Path) {
    let Some(found) = python("python/in_task.py", &[dir]) else { return };
    assert_success(&found);
    gate::measured(String::from_utf8_lossy(&found.stdout).trim());
}

#[test]
fn each_poll_says_who_woke_its_task_behind_what_it_was_queued_and_what_blocked_it() {
    let Some(stage) = Stage::enter_with_kernel() else { return };
    let rounds = harness::rounds(ROUNDS);
    let mut errors = [
        "a request's task is queued behind the poll of another one",
        "a request's task waits for its waker",
        "a task is queued behind the poll of another one",
        "a task is queued while its worker has no CPU",
        "a worker that was woken waits for its CPU",
        "a call blocks in a poll",
        "a request's task waits for what another one does",
        "a task is queued behind the one that woke it",
    ]
    .map(Errors::of);
    let (_, dir) = stage.record_until(&[], &["tasks", &rounds.to_string()], |truth, trace| {
        judge(truth, trace, &mut errors);
        errors.iter().all(|errors| errors.count() >= harness::rounds(LEAST))
    });
    errors.into_iter().for_each(|errors| errors.tell(SYSTEM_CALL_NS, harness::rounds(LEAST)));
    let mut report = harness::agent();
    let output = report.arg("report").arg(&dir).args(["tasks", "--json"]).output();
    let output = output.expect("the agent starts");
    assert_success(&output);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let values = &report["sections"]["tasks"]["values"];
    assert_eq!(values["counts"]["tasks"].as_u64(), Some(9 * rounds as u64), "{report}");
    assert_eq!(values["behind"][0]["behind"].as_str(), Some("busy"), "{report}");
    let held = &values["held"];
    let across = (held[0]["name"].as_str(), held[0]["lock"].as_str(), held[0]["times"].as_u64());
    assert_eq!(across, (Some("late"), Some("across"), Some(rounds as u64)), "{held}");
    assert_eq!(held.as_array().map(Vec::len), Some(1), "{held}");
    listed_by_task(&dir);
    in_task(&dir);
    agrees("tasks of an executor with one worker", &dir);
}

fn judge(truth: &Value, trace: &Trace, errors: &mut [Errors; 8]) {
    let (bound, holes) = (trace.meta().clock.bound_ns, Holes::of(trace));
    let (worker, waker) = (errors::tid(truth, "worker"), errors::tid(truth, "waker"));
    let rounds = errors::rounds::<17>(truth);
    let lives = lives(trace);
    let requests: Vec<Request> = trace.rows().map(|row| row.expect("a row")).collect();
    let of_kind = |kind: &str| -> Vec<&Request> {
        requests.iter().filter(|request| &*request.kind == kind).collect()
    };
    let (asked, requests) = (of_kind("tasks.ask"), of_kind("tasks.fetch"));
    let path: Vec<PathPiece> = trace.rows().map(|row| row.expect("a row")).collect();
    assert_eq!((requests.len(), asked.len()), (rounds.len(), rounds.len()));
    for (name, end, polls) in [
        ("fetch", TaskEnd::Ready, vec![PollEnd::Pending, PollEnd::Ready]),
        ("inner", TaskEnd::Ready, vec![PollEnd::Pending, PollEnd::Ready]),
        ("late", TaskEnd::Ready, vec![PollEnd::Pending, PollEnd::Ready]),
        ("lost", TaskEnd::Dropped, vec![PollEnd::Pending]),
        ("broken", TaskEnd::Panic, vec![PollEnd::Panic]),
        ("busy", TaskEnd::Ready, vec![PollEnd::Ready]),
        ("ask", TaskEnd::Ready, vec![PollEnd::Pending, PollEnd::Ready]),
        ("answer", TaskEnd::Ready, vec![PollEnd::Ready]),
    ] {
        let tasks = &lives[name];
        assert_eq!(tasks.len(), rounds.len(), "{name}");
        for (task, of) in tasks {
            assert_eq!((task.end, task.maker_tid), (end, Some(worker)), "{task:?}");
            assert_eq!(of.iter().map(|poll| poll.end).collect::<Vec<_>>(), polls, "{task:?}");
            assert!(of.iter().all(|poll| poll.tid.0 == worker), "{of:?}");
            assert!(task.place.contains("subject/tasks.rs:"), "{task:?}");
            assert!(of.iter().all(|poll| poll.place == task.place), "{of:?}");
            let held: Vec<_> =
                of.iter().map(|poll| (poll.held, poll.held_lock.as_deref())).collect();
            let waits_with = if name == "late" { (1, Some("across")) } else { (0, None) };
            assert_eq!(held, [&[waits_with][..], &[(0, None)]].concat()[..of.len()], "{of:?}");
        }
    }
    let hooked = lives.values().flatten().filter(|(task, _)| task.task >= HOOKED_TASKS as i64);
    let hooked: Vec<_> = hooked.collect();
    assert_eq!(hooked.len(), rounds.len());
    for (task, polls) in hooked {
        let ends: Vec<_> = polls.iter().map(|poll| poll.end).collect();
        assert_eq!(
            (task.end, &ends[..]),
            (TaskEnd::Ready, &[PollEnd::Pending, PollEnd::Ready][..])
        );
        // Nobody knows who woke it, and when.
        assert_eq!((task.mark, task.unstarted_ns, task.waiting_ns), (Mark::LowerBound, 0, 0));
        assert!(polls.iter().all(|poll| poll.queued_ns.is_none()), "{polls:?}");
    }
    for (round, [a, b, e, f, g, begun, c, d, sleeps, slept, late, o, p, q, r, u, s]) in
        rounds.into_iter().enumerate()
    {
        let [ask, answer] = ["ask", "answer"].map(|name| &lives[name][round]);
        let request = asked[round];
        if holes.judged(request.path_mark.max(request.mark), request.ts.0, request.dur) {
            let own = path.iter().filter(|p| p.request == request.request);
            let pending = own.filter(|p| p.wait.as_deref() == Some("task ask pending"));
            let pending: Vec<_> = pending.collect();
            assert!(pending.iter().all(|piece| piece.tid.0 == worker), "{pending:?}");
            errors[6].check(pending.iter().map(|p| p.dur).sum(), q - p..=r - o, bound);
        }
        let again = &ask.1[1];
        assert_eq!((ask.0.wakes, again.waker_tid), (1, Some(worker)), "{again:?}");
        assert_eq!((again.waker_task, again.behind_task), (Some(answer.0.task), again.waker_task));
        if holes.judged(again.mark, o, s - o) {
            errors[7].check(again.queued_ns.expect("it was woken"), u - r..=s - q, bound);
            errors[7].within(again.behind_ns.expect("it was behind"), &(u - r..=s - q), bound);
        }
        let [fetch, inner, of_late, busy] =
            ["fetch", "inner", "late", "busy"].map(|name| &lives[name][round]);
        assert_eq!((fetch.0.wakes, inner.0.wakes, of_late.0.wakes, busy.0.wakes), (1, 1, 1, 0));
        assert_eq!((inner.0.parent, fetch.0.parent), (Some(fetch.0.task), None));
        // On a machine that was late, somebody was not yet where the plan has him.
        if !(begun < a && b < c && slept < e) {
            continue;
        }
        let [_, second] = &fetch.1[..] else { panic!("two polls") };
        let [_, answer] = &of_late.1[..] else { panic!("two polls") };
        assert_eq!((inner.1[1].depth, inner.1[1].waker_task), (1, None), "{inner:?}");
        for poll in [second, answer] {
            assert_eq!((poll.waker_tid, poll.waker_task), (Some(waker), None), "{poll:?}");
            assert_eq!(poll.waker_comm.as_deref(), Some("ft-waker"), "{poll:?}");
        }
        let request = requests[round];
        let of_request = |what: &str| -> i64 {
            let own = path.iter().filter(|p| p.request == request.request);
            own.filter(|p| p.wait.as_deref() == Some(what)).map(|p| p.dur).sum()
        };
        if holes.judged(request.path_mark.max(request.mark), request.ts.0, request.dur) {
            errors[0].check(of_request("task fetch queued behind busy"), c - b..=d - a, bound);
            let own = path.iter().filter(|p| p.request == request.request && p.tid.0 == waker);
            let waits: i64 = own.map(|p| p.dur).sum();
            errors[1].check(waits, a - begun..=b - request.ts.0, bound);
        }
        let judged = |poll: &AsyncSwitch| {
            let from = poll.ts.0 - poll.queued_ns.unwrap_or(0);
            holes.judged(poll.mark, from, poll.ts.0 + poll.dur - from)
        };
        if judged(second) {
            let queued = second.queued_ns.expect("it was woken");
            errors[2].check(queued, c - b..=d - a, bound);
            assert_eq!((second.behind_task, second.behind_polls), (Some(busy.0.task), Some(1)));
            assert_eq!(second.behind_name.as_deref(), Some("busy"), "{second:?}");
            errors[2].within(second.behind_ns.expect("it was behind"), &(c - b..=d - a), bound);
            // Before Linux 5.15 it is not known in which call.
            let calls = [Some("system call clock_nanosleep"), Some("asleep")];
            assert!(calls.contains(&second.blocked_for.as_deref()), "{second:?}");
            let blocked = second.parts.expect("a kernel stream").blocked_ns;
            assert_eq!(second.blocked_for_ns, Some(blocked), "{second:?}");
            // It blocks behind the first reading, and is woken before the second one.
            errors[5].within(blocked, &(0..=slept - sleeps), bound);
            errors[5].check(slept - sleeps - blocked, 0..=slept - sleeps, bound);
        }
        if judged(answer) {
            let queued = answer.queued_ns.expect("it was woken");
            errors[3].check(queued, g - f..=late - e, bound);
            let dispatch = answer.queued_dispatch_ns.expect("a kernel stream");
            errors[4].check(dispatch, g - f..=late - e, bound);
            assert_eq!((answer.behind_ns, answer.behind_task), (Some(0), None), "{answer:?}");
        }
    }
}
