//! Traces written as text, for tests of the whole machine: one event a line.
//!
//! Threads are letters: lower case belong to the observed process 1, upper case to process 9, which is not
//! observed, `.` is idle. Locks are names. Times are ns. [`run_by_agent`] takes process 9 for the agent that recorded.
//!
//! ```text
//! 10 0 .>a S          on CPU 0, from idle to a; state of the one that leaves; `S!`: it is being woken already; `a@49`: a
//!                      has that kernel priority, and not 120
//! 10 wake X a 0       X wakes a, which last ran on CPU 0; also new, the first waking of a; and with the CPU of the waker
//! 10 move a 0 1       a is moved from CPU 0 to 1
//! 10 irq a soft 5     a softirq of 5 ns strikes a; also hard, vector; and with its CPU and its name
//! 10 call a read 5     a is in a system call for 5 ns; also what was seen of it, what its descriptor is of (or -), and
//!                      what it returned
//! 10 contend a mutex 5 L failed 1  a waits 5 ns for the kernel's lock L, of that kind; how it ends, and its chain
//! 10 futex a wait L 30 done  a is in a call about futex L for 30 ns, which so returns; also wake, lock-pi, …; `done 77 15`: its
//!                           value is 77 (`-`: not known), and it would wait for 15 ns
//! 10 fault a          a touches a page that is not there; also for how long, and minor or major; and kernel, which does it
//! 10 chain a wait 1   chain 1 of a, which has left the CPU to wait; also preempted; and wake, of a waker, and whom
//! 10 asleep a read 1 b 90  a leaves its CPU in this call, of this first argument; b (`-`: nobody) holds it, and a sleeps until 90
//! 10 throttle a 30    the quota of its group keeps a from its CPU for 30 ns
//! 10 sample a 1       a is sampled on CPU 0 in chain 1
//! 10 call-of a f 100  a calls the probed function f, with this stack pointer; also return-of; without one marks
//! 10 lose sched 5     scheduler records are lost up to 15; also irq, calls and probes; and ring, with a thread
//! 10 wait a L         a waits for lock L; also acquire, read (shared), release, park, unpark, abandon; and take and post, of
//!                      a semaphore
//! 10 barrier a B      a waits at barrier B; also receive; and passed, the end of either
//! 10 acquire a L 3    the same, at place 3 of the source
//! 10 release a L 0 2  the same, and what came of a time-slice extension (`ft_user::layout::Slice`)
//! 10 open a            a begins the scope outer; also enter, the scope inner; and close, leave, their ends
//! 10 in a F 8 5 3      a begins function F, with a frame at this height, which returns to and was told at these places; also
//! 10 out a F 8 5       its end; with 1 behind it, one that is told when the frame is gone, whose upper end is this
//! 10 into a           a begins the function parse, which has a site of its own; also out-of, its end
//! 10 begin a 5        a records http.begin of id 5; also answer, http.end
//! 10 make a 7 3       a makes task 7, at place 3 of the source
//! 10 run a 7          a begins to poll task 7; also rouse, a wakes it, and cancel, it is dropped
//! 10 fiber a 7        a runs task 7 from now on, a fiber; 0: none
//! 10 ran a 7 1        that poll is over, and ready; also 0, pending, and 2, a panic
//! 10 poll a 0         a begins to poll, on CPU 0
//! 30 gap a 0 12 28    a reports the gap 12..28
//! 10 full a 30        a waits until 30 for room in its ring
//! 10 count a 5 70 9   counters of a show 70 and 9 at its event of the same time, in stretch 5 of counting; -13: they are refused
//! 10 loop a 9 5 1000  a begins a loop of npt, of 9 passes, of which each takes 5 cycles of 1000 Hz; also
//! 10 peak a 7         pass 7, of which the gap before tells, took long; looped, with passes, peaks and bins: it is over
//! 10 bin a 5 6 9      9 of its passes took 5 cycles
//! 10 worker a 0 4 1   a is a worker of a load; also the other events of one, [`LoadEvent`](crate::world), with numbers
//! 10 exit a           a ends; also exec
//! 10 acquire' a L     any event of a's own with ' is one of a later process with the number of its own; with * one of
//!                      the program that its process executes
//! ```

mod nonsense;
mod parse;

use crate::{Context, RequestKind, Rows, Run, Tally};
use ft_trace::Mark;
use ft_trace::event::Event;
use ft_trace::ids::{Nanos, Pid, SiteId, Tid};
use ft_trace::tables::{
    CriticalSection, NameKind, NameRow, SiteKind, SiteRow, SliceOutcome, ThreadRow,
};
pub use nonsense::{EXTREMES, every_payload, nonsense, random};
use parse::parse;

/// The sites of a timeline: word, kind, event.
pub const SITES: [(&str, SiteKind, &str); 39 + WORKERS] = [
    ("wait", SiteKind::LockWait, "lock.mutex_wait"),
    ("wait-read", SiteKind::LockWait, "lock.rwlock_read_wait"),
    ("abandon", SiteKind::LockAbandon, "lock.mutex_abandon"),
    ("acquire", SiteKind::LockAcquire, "lock.mutex_acquire"),
    ("read", SiteKind::LockAcquire, "lock.rwlock_read_acquire"),
    ("release", SiteKind::LockRelease, "lock.mutex_release"),
    ("take", SiteKind::LockAcquire, "lock.semaphore_acquire"),
    ("post", SiteKind::LockRelease, "lock.semaphore_release"),
    ("park", SiteKind::CondWait, "lock.cond_wait"),
    ("unpark", SiteKind::CondWake, "lock.cond_wake"),
    ("barrier", SiteKind::WaitBegin, "lock.barrier_wait"),
    ("receive", SiteKind::WaitBegin, "lock.receive_wait"),
    ("passed", SiteKind::WaitEnd, "lock.barrier_wake"),
    ("full", SiteKind::RingWait, "trace.ring_wait"),
    ("count", SiteKind::Counters, "trace.counters"),
    ("poll", SiteKind::PollBegin, "gap.begin"),
    ("gap", SiteKind::PollGap, "gap.gap"),
    ("end", SiteKind::PollEnd, "gap.end"),
    ("open", SiteKind::ScopeBegin, "work.outer"),
    ("close", SiteKind::ScopeEnd, "work.outer"),
    ("enter", SiteKind::ScopeBegin, "work.inner"),
    ("leave", SiteKind::ScopeEnd, "work.inner"),
    ("in", SiteKind::FunctionEnter, "fn.instrumented"),
    ("out", SiteKind::FunctionExit, "fn.instrumented"),
    ("into", SiteKind::FunctionEnter, "fn.parse"),
    ("out-of", SiteKind::FunctionExit, "fn.parse"),
    ("called", SiteKind::FunctionCalled, "fn.instrumented"),
    ("begin", SiteKind::Event, "http.begin"),
    ("answer", SiteKind::Event, "http.end"),
    ("make", SiteKind::TaskNew, "async.new"),
    ("run", SiteKind::TaskPoll, "async.poll"),
    ("ran", SiteKind::TaskPolled, "async.polled"),
    ("rouse", SiteKind::TaskWake, "async.wake"),
    ("cancel", SiteKind::TaskDrop, "async.drop"),
    ("fiber", SiteKind::TaskSwitch, "async.switch"),
    ("loop", SiteKind::Event, "npt.begin"),
    ("peak", SiteKind::Event, "npt.peak"),
    ("looped", SiteKind::Event, "npt.end"),
    ("bin", SiteKind::Event, "npt.bin"),
    ("worker", SiteKind::Event, "hourglass.worker"),
    ("class", SiteKind::Event, "hourglass.class"),
    ("reserved", SiteKind::Event, "hourglass.reserved"),
    ("span", SiteKind::Event, "hourglass.span"),
    ("demand", SiteKind::Event, "hourglass.demand"),
    ("bound", SiteKind::Event, "hourglass.bound"),
    ("first", SiteKind::Event, "hourglass.first"),
    ("last", SiteKind::Event, "hourglass.last"),
    ("job", SiteKind::ScopeBegin, "hourglass.job"),
    ("over", SiteKind::ScopeEnd, "hourglass.job"),
    ("finish", SiteKind::Event, "hourglass.finish"),
    ("sleep", SiteKind::Event, "hourglass.sleep"),
    ("woke", SiteKind::Event, "hourglass.woke"),
    ("yield", SiteKind::Event, "hourglass.yield"),
    ("done", SiteKind::Event, "hourglass.done"),
];

/// Of these, those of workers of loads, the last ones.
const WORKERS: usize = 15;

/// The table `sites`: the words above, of process 1, of another one that has its number later, and of a program that the
/// first one executes.
pub fn sites() -> Vec<SiteRow> {
    let row = |((_, kind, event), site): (&(&str, SiteKind, &str), i32)| SiteRow {
        site: SiteId(site),
        pid: Pid(1),
        event: (*event).into(),
        category: "".into(),
        kind: *kind,
        file: "".into(),
        line: 0,
        args: match *event {
            "fn.instrumented" => "function:pointer, frame:unsigned",
            http if http.starts_with("http.") => "id:unsigned",
            task if task.starts_with("async.") && *kind != SiteKind::TaskSwitch => {
                "task:unsigned, place:unsigned"
            }
            _ => "",
        }
        .into(),
        format: "".into(),
        triggers: 1,
        source: site / SITES.len() as i32,
        started: i64::from(site / SITES.len() as i32 == 1),
        program: i32::from(site / SITES.len() as i32 == 2),
        on_ns: Some(0),
    };
    SITES.iter().chain(&SITES).chain(&SITES).zip(0..).map(row).collect()
}

/// The table `threads`: process 1 is observed.
pub fn threads() -> Vec<ThreadRow> {
    vec![ThreadRow {
        ts: Nanos(0),
        tid: Tid(1),
        pid: Pid(1),
        name: "main".into(),
        process: "main".into(),
        prio: None,
        observed: true,
    }]
}

/// The table `names`: places 1 to 9.
pub fn names() -> Vec<NameRow> {
    let row = |line| NameRow {
        pid: Pid(1),
        source: 0,
        id: line,
        kind: NameKind::Place,
        text: "x.rs".into(),
        line,
        column: 1,
    };
    (1..10).map(row).collect()
}

/// The events of a trace.
pub fn events(timeline: &str) -> impl Iterator<Item = Event> {
    timeline.lines().map(str::trim).filter(|l| !l.is_empty()).map(parse)
}

/// Runs a trace, up to what its last event leaves open.
pub fn feed(kernel: bool, timeline: &str) -> Run {
    let mut analysis = Run::new(Context::new(kernel, 10, &threads(), &sites(), &names()));
    events(timeline).for_each(|event| analysis.push(&event));
    analysis
}

/// Runs a whole trace whose sites are on since then, CLOCK_MONOTONIC ns, if that is known.
pub fn run_on_since(on_ns: Option<i64>, kernel: bool, timeline: &str) -> (Rows, Tally) {
    let sites: Vec<SiteRow> = sites().into_iter().map(|site| SiteRow { on_ns, ..site }).collect();
    let mut analysis = Run::new(Context::new(kernel, 10, &threads(), &sites, &names()));
    events(timeline).for_each(|event| analysis.push(&event));
    analysis.finish()
}

/// Runs a whole trace.
pub fn run(kernel: bool, timeline: &str) -> (Rows, Tally) {
    feed(kernel, timeline).finish()
}

/// The same, of a trace of which somebody asks for requests; its threads a to c are called so.
pub fn run_asking(asked: &[RequestKind], timeline: &str) -> (Rows, Tally) {
    run_recorded(None, asked, timeline)
}

/// The same of a trace that this process has recorded, if it is known.
pub fn run_recorded(by: Option<Pid>, asked: &[RequestKind], timeline: &str) -> (Rows, Tally) {
    let named =
        |name: &str| ThreadRow { tid: parse::tid(name), name: name.into(), ..threads().remove(0) };
    let context = Context::new(true, 10, &["a", "b", "c"].map(named), &sites(), &names());
    let context = context.with_agent(by).with_requests(asked.to_vec(), &sites());
    let mut analysis = Run::new(context);
    events(timeline).for_each(|event| analysis.push(&event));
    analysis.finish()
}

/// The same of a trace of which each CPU was sampled so often in a second.
pub fn run_sampled(hz: u32, timeline: &str) -> (Rows, Tally) {
    let context = Context::new(true, 10, &threads(), &sites(), &names()).with_samples(Some(hz));
    let mut analysis = Run::new(context);
    events(timeline).for_each(|event| analysis.push(&event));
    analysis.finish()
}

/// The same of a trace that process 9 has recorded.
pub fn run_by_agent(timeline: &str) -> (Rows, Tally) {
    let context = Context::new(true, 10, &threads(), &sites(), &names()).with_agent(Some(Pid(9)));
    let mut analysis = Run::new(context);
    events(timeline).for_each(|event| analysis.push(&event));
    analysis.finish()
}

/// A row of a hold of `dur` ns of the mutex `queue` by thread 7, exact and not nested, for tests of what reads such rows.
pub fn hold(dur: i64) -> CriticalSection {
    CriticalSection {
        ts: Nanos(5),
        dur,
        pid: Pid(1),
        tid: Tid(7),
        lock: 64,
        lock_name: "queue".into(),
        kind: "mutex".into(),
        site: SiteId(0),
        place: "".into(),
        depth: 0,
        depth_mark: Mark::Exact,
        wait_ns: 0,
        condition: false,
        slice: SliceOutcome::None,
        parts: None,
        counts: None,
        counter: [None; 2],
        preemptor_tid: None,
        preemptor_comm: None,
        preemptor_ns: None,
        agent_ns: None,
        mark: Mark::Exact,
    }
}

/// Two jobs of a worker, of which the first is late: X has its CPU for 800 ns, until the second is released.
pub const LATE_JOB: &str = "
        0 0 .>a S
        10 worker a 3 4 1
        12 span a 1000 3000 0
        13 demand a 300 1000
        14 bound a 300
        20 0 a>. S
        1030 wake . a 0
        1050 0 .>a S
        1060 poll a 0
        1060 first a 1060
        1070 job a 0 1070 1000
        1100 0 a>X R
        1900 0 X>a S
        1900 gap a 0 1100 1900
        2170 finish a 0 2170
        2170 over a
        2170 job a 1 2170 2000
        2500 finish a 1 2500
        2500 over a
        2600 last a 2600
        2700 done a 2 2 0";
