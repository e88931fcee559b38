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
//! 10 futex a wait L 30 done  a is in a call about futex L for 30 ns, which so returns; also wake, lock-pi, …
//! 10 fault a          a touches a page that is not there; also for how long, and minor or major; and kernel, which does it
//! 10 chain a wait 1   chain 1 of a, which has left the CPU to wait; also preempted; and wake, of a waker, and whom
//! 10 sample a 1       a is sampled in chain 1
//! 10 call-of a f 100  a calls the probed function f, with this stack pointer; also return-of; without one marks
//! 10 lose sched 5     scheduler records are lost up to 15; also irq, calls and probes; and ring, with a thread
//! 10 wait a L         a waits for lock L; also acquire, read (shared), release, park, unpark, abandon
//! 10 barrier a B      a waits at barrier B; also receive; and passed, the end of either
//! 10 acquire a L 3    the same, at place 3 of the source
//! 10 open a            a begins the scope outer; also enter, the scope inner; and close, leave, their ends
//! 10 in a F 8 5 3      a begins function F, with a frame at this height, which returns to and was told at these places; also
//! 10 out a F 8 5       its end; with 1 behind it, one that is told when the frame is gone, whose upper end is this
//! 10 into a           a begins the function parse, which has a site of its own; also out-of, its end
//! 10 begin a 5        a records http.begin of id 5; also answer, http.end
//! 10 make a 7 3       a makes task 7, at place 3 of the source
//! 10 run a 7          a begins to poll task 7; also rouse, a wakes it, and cancel, it is dropped
//! 10 ran a 7 1        that poll is over, and ready; also 0, pending, and 2, a panic
//! 10 poll a 0         a begins to poll, on CPU 0
//! 30 gap a 0 12 28    a reports the gap 12..28
//! 10 full a 30        a waits until 30 for room in its ring
//! 10 loop a 9 5 1000  a begins a loop of npt, of 9 passes, of which each takes 5 cycles of 1000 Hz; also
//! 10 peak a 7         pass 7, of which the gap before tells, took long; looped, with passes, peaks and bins: it is over
//! 10 bin a 5 6 9      9 of its passes took 5 cycles
//! 10 worker a 0 4 1   a is a worker of a load; also the other events of one, [`LoadEvent`](crate::world), with numbers
//! 10 exit a           a ends; also exec
//! 10 acquire' a L     any event of a's own with ' is one of a later process with the number of its own
//! ```

use crate::{Context, RequestKind, Rows, Run, Tally};
use ft_trace::Mark;
use ft_trace::event::{
    Event, LeanChain, LeanContention, LeanFault, LeanFutex, LeanProbe, LeanSample, LeanSyscall,
    LeanUserEvent,
};
use ft_trace::ids::{Cpu, Name, Nanos, Pid, SiteId, Tid};
use ft_trace::tables::{
    CallSeen, ChainKind, ContentionEnd, CriticalSection, FaultKind, FileKind, FutexKind,
    FutexResult, Irq, IrqKind, LossOrigin, LossRow, NameKind, NameRow, ProbeKind, SchedMigrate,
    SchedSwitch, SchedWaking, SiteKind, SiteRow, TaskEvent, TaskKind, TaskState, ThreadRow,
};
use ft_user::layout::Frame;

/// The sites of a timeline: word, kind, event.
pub const SITES: [(&str, SiteKind, &str); 34 + WORKERS] = [
    ("wait", SiteKind::LockWait, "lock.mutex_wait"),
    ("wait-read", SiteKind::LockWait, "lock.rwlock_read_wait"),
    ("abandon", SiteKind::LockAbandon, "lock.mutex_abandon"),
    ("acquire", SiteKind::LockAcquire, "lock.mutex_acquire"),
    ("read", SiteKind::LockAcquire, "lock.rwlock_read_acquire"),
    ("release", SiteKind::LockRelease, "lock.mutex_release"),
    ("park", SiteKind::CondWait, "lock.cond_wait"),
    ("unpark", SiteKind::CondWake, "lock.cond_wake"),
    ("barrier", SiteKind::WaitBegin, "lock.barrier_wait"),
    ("receive", SiteKind::WaitBegin, "lock.receive_wait"),
    ("passed", SiteKind::WaitEnd, "lock.barrier_wake"),
    ("full", SiteKind::RingWait, "trace.ring_wait"),
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
    ("begin", SiteKind::Event, "http.begin"),
    ("answer", SiteKind::Event, "http.end"),
    ("make", SiteKind::TaskNew, "async.new"),
    ("run", SiteKind::TaskPoll, "async.poll"),
    ("ran", SiteKind::TaskPolled, "async.polled"),
    ("rouse", SiteKind::TaskWake, "async.wake"),
    ("cancel", SiteKind::TaskDrop, "async.drop"),
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

fn tid(name: &str) -> Tid {
    match name {
        "." => Tid(0),
        _ => Tid(i32::from(name.as_bytes()[0])),
    }
}

fn pid(name: &str) -> Pid {
    match name.as_bytes()[0] {
        b'.' => Pid(0),
        c if c.is_ascii_lowercase() => Pid(1),
        _ => Pid(9),
    }
}

fn number(text: &str) -> i64 {
    text.parse().unwrap_or_else(|_| panic!("'{text}' is not a number"))
}

fn parse(line: &str) -> Event {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (ts, what, rest) = (Nanos(number(words[0])), words[1], &words[2..]);
    let cpu = |text: &str| Cpu(number(text) as i32);
    let name = |text: &str| -> Name { text.into() };
    if let Ok(on) = what.parse() {
        let (prev, next) = rest[0].split_once('>').expect("prev>next");
        let prio = |thread| match str::split_once(thread, '@') {
            Some((name, prio)) => (name, number(prio) as i32),
            None => (thread, 120),
        };
        let ((prev, prev_prio), (next, next_prio)) = (prio(prev), prio(next));
        return Event::Switch(SchedSwitch {
            ts,
            cpu: Cpu(on),
            prev_tid: tid(prev),
            prev_pid: pid(prev),
            prev_comm: name(prev),
            prev_prio,
            prev_state: TaskState::of(rest[1].trim_end_matches('!')),
            prev_woken: rest[1].ends_with('!'),
            next_tid: tid(next),
            next_pid: pid(next),
            next_comm: name(next),
            next_prio,
        });
    }
    match what {
        "wake" | "new" => Event::Waking(SchedWaking {
            ts,
            cpu: rest.get(3).map_or(Cpu(7), |text| cpu(text)),
            waker_tid: tid(rest[0]),
            tid: tid(rest[1]),
            pid: pid(rest[1]),
            prio: 120,
            target_cpu: cpu(rest[2]),
            is_new: what == "new",
        }),
        "move" => Event::Migrate(SchedMigrate {
            ts,
            cpu: cpu(rest[1]),
            tid: tid(rest[0]),
            pid: pid(rest[0]),
            from_cpu: cpu(rest[1]),
            to_cpu: cpu(rest[2]),
        }),
        "irq" => Event::Irq(Irq {
            ts,
            dur: number(rest[2]),
            cpu: rest.get(3).map_or(Cpu(0), |text| cpu(text)),
            kind: IrqKind::of(rest[1]),
            number: 1,
            name: rest.get(4).map_or_else(|| format!("{}-name", rest[1]).into(), |text| name(text)),
            tid: tid(rest[0]),
            pid: pid(rest[0]),
        }),
        "call" => Event::Syscall(LeanSyscall {
            ts,
            dur: number(rest[2]),
            tid: tid(rest[0]),
            pid: pid(rest[0]),
            name: name(rest[1]),
            seen: rest.get(3).map_or(CallSeen::Whole, |seen| CallSeen::of(seen)),
            file: rest.get(4).filter(|kind| **kind != "-").map(|kind| FileKind::of(kind)),
            ret: rest.get(5).map_or(0, |ret| number(ret)),
        }),
        "contend" => Event::Contention(LeanContention {
            ts,
            dur: number(rest[2]),
            tid: tid(rest[0]),
            pid: pid(rest[0]),
            lock: rest.get(3).map_or(0, |lock| i64::from(lock.as_bytes()[0])),
            name: None,
            caller: None,
            kind: name(rest[1]),
            end: rest.get(4).map_or(ContentionEnd::Acquired, |end| ContentionEnd::of(end)),
            stack: rest.get(5).map(|stack| number(stack)),
        }),
        "futex" => Event::Futex(LeanFutex {
            ts,
            dur: number(rest[3]),
            tid: tid(rest[0]),
            pid: pid(rest[0]),
            kind: FutexKind::of(rest[1]),
            address: i64::from(rest[2].as_bytes()[0]),
            word: rest.get(5).map(|word| number(word) as i32),
            timeout_ns: None,
            result: FutexResult::of(rest[4]),
        }),
        "fault" => Event::Fault(LeanFault {
            ts,
            tid: tid(rest[0]),
            pid: pid(rest[0]),
            in_kernel: rest.get(3) == Some(&"kernel"),
            dur: rest.get(1).map(|dur| number(dur)),
            kind: rest.get(2).map(|kind| FaultKind::of(kind)),
        }),
        "chain" => Event::Chain(LeanChain {
            ts,
            dur: 5,
            tid: tid(rest[0]),
            pid: pid(rest[0]),
            kind: ChainKind::of(rest[1]),
            woken_tid: rest.get(3).map(|woken| tid(woken).0),
            woken_pid: rest.get(3).map(|woken| pid(woken).0),
            stack: Some(number(rest[2])),
        }),
        "sample" => Event::Sample(LeanSample {
            ts,
            tid: tid(rest[0]),
            pid: pid(rest[0]),
            stack: Some(number(rest[1])),
        }),
        "call-of" | "return-of" => Event::Probe(LeanProbe {
            ts,
            tid: tid(rest[0]),
            pid: pid(rest[0]),
            kind: if what == "call-of" { ProbeKind::Begin } else { ProbeKind::End },
            probe: name(rest[1]),
            stack_pointer: rest.get(2).map(|pointer| number(pointer)),
        }),
        "lose" => {
            let (origin, what, thread) = match rest[0] {
                "sched" => (LossOrigin::Kernel, "sched_switch", None),
                "irq" => (LossOrigin::Kernel, "softirq_exit", None),
                "calls" => (LossOrigin::Kernel, "sys_exit", None),
                "probes" => (LossOrigin::Kernel, "probe_return", None),
                _ => (LossOrigin::Ring, "full", Some(rest[2])),
            };
            Event::Loss(LossRow {
                ts,
                dur: number(rest[1]),
                origin,
                what: name(what),
                cpu: Cpu(-1),
                pid: thread.map_or(Pid(-1), pid),
                tid: thread.map_or(Tid(-1), tid),
                count: 3,
            })
        }
        "exit" | "exec" => Event::Task(TaskEvent {
            ts,
            cpu: Cpu(0),
            kind: TaskKind::of(what),
            tid: tid(rest[0]),
            pid: pid(rest[0]),
            comm: name(rest[0]),
            parent_pid: None,
        }),
        _ => {
            let (what, of_another) = match what.strip_suffix('\'') {
                Some(what) => (what, SITES.len()),
                None => (what, 0),
            };
            let site = SITES.iter().position(|s| s.0 == what).expect("a known word");
            let (on, arg) = match what {
                "poll" => (cpu(rest[1]), [0; 3]),
                "gap" => (cpu(rest[1]), [number(rest[2]), number(rest[3]), 0]),
                "in" | "out" => {
                    let arg = |i: usize| rest.get(i).map_or(0, |text| number(text) as u64);
                    let frame = Frame::of_begin(arg(2) << 4, arg(3), arg(4)).0 as i64;
                    (Cpu(0), [i64::from(rest[1].as_bytes()[0]), frame, 0])
                }
                "end" | "open" | "close" | "enter" | "leave" | "into" | "out-of" => {
                    (Cpu(0), [0; 3])
                }
                "full" | "begin" | "answer" => (Cpu(0), [number(rest[1]), 0, 0]),
                "make" | "run" | "ran" | "rouse" | "cancel" => {
                    (Cpu(0), [number(rest[1]), rest.get(2).map_or(0, |text| number(text)), 0])
                }
                "loop" | "peak" | "looped" | "bin" => {
                    let arg = |i: usize| rest.get(i).map_or(0, |text| number(text));
                    (Cpu(0), [arg(1), arg(2), arg(3)])
                }
                _ if site + WORKERS >= SITES.len() => (
                    Cpu(0),
                    std::array::from_fn(|i| rest.get(i + 1).map_or(0, |text| number(text))),
                ),
                _ => {
                    let place = rest.get(2).map_or(0, |text| number(text));
                    (Cpu(0), [i64::from(rest[1].as_bytes()[0]), place, 0])
                }
            };
            Event::User(LeanUserEvent {
                ts,
                pid: pid(rest[0]),
                tid: tid(rest[0]),
                cpu: on,
                site: SiteId((site + of_another) as i32),
                arg,
            })
        }
    }
}

/// The table `sites`: the words above, of process 1, and of another one that has its number later.
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
            _ => "",
        }
        .into(),
        format: "".into(),
        triggers: 1,
        source: i32::from(site >= SITES.len() as i32),
        started: i64::from(site >= SITES.len() as i32),
    };
    SITES.iter().chain(&SITES).zip(0..).map(row).collect()
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

/// Runs a whole trace.
pub fn run(kernel: bool, timeline: &str) -> (Rows, Tally) {
    feed(kernel, timeline).finish()
}

/// The same, of a trace of which somebody asks for requests.
pub fn run_asking(asked: &[RequestKind], timeline: &str) -> (Rows, Tally) {
    let context = Context::new(true, 10, &threads(), &sites(), &names());
    let mut analysis = Run::new(context.with_requests(asked.to_vec(), &sites()));
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

/// Random events, most of them nonsense together.
pub fn nonsense(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % n
    };
    let mut text = String::new();
    let mut t = 0;
    for _ in 0..400 {
        t += random(20);
        let thread = |i| ["a", "b", "c"][i as usize];
        let any = |i| ["a", "b", "c", "X", "."][i as usize];
        let (a, lock) = (thread(random(3)), thread(random(3)));
        let line = match random(15) {
            14 => {
                let kind = ["wait", "wake", "lock-pi"][random(3) as usize];
                let result = ["done", "timed-out", "unfinished"][random(3) as usize];
                format!("{t} futex {a} {kind} {lock} {} {result}", random(60))
            }
            12 => {
                let (name, ns) = (["x", "y", "restart_syscall"][random(3) as usize], random(60));
                let seen = ["", " entry", " return", " whole - -516"][random(4) as usize];
                let end = ["acquired", "failed", "unfinished", "end-only"][random(4) as usize];
                match random(4) {
                    1 => format!("{t} contend {a} {name} {ns} {lock} {end}"),
                    _ => format!("{t} call {a} {name} {ns}{seen}"),
                }
            }
            13 => {
                let how = ["", " 30 minor", " 50 major", " 9 minor kernel"][random(4) as usize];
                format!("{t} fault {a}{how}")
            }
            0..=2 => {
                let state = ["R", "R+", "S", "D", "X"][random(5) as usize];
                format!("{t} {} {}>{} {state}", random(2), any(random(5)), any(random(5)))
            }
            3 => {
                let wake = ["wake", "new"][random(2) as usize];
                format!("{t} {wake} {} {a} {}", any(random(5)), random(3))
            }
            4 => format!("{t} move {a} {} {}", random(2), random(2)),
            5 | 6 => {
                let kind = ["soft", "hard", "vector"][random(3) as usize];
                format!("{t} irq {a} {kind} {}", random(60))
            }
            7 => match random(12) {
                0 => format!("{t} lose sched {}", random(50)),
                1 => format!("{t} lose irq {}", random(50)),
                2 => format!("{t} lose ring {} {a}", random(50)),
                3 => format!("{t} exit {a}"),
                _ => format!("{t} poll {a} 0"),
            },
            8 => format!("{t} gap {a} 0 {} {}", t - random(t + 1), t - random(t + 1).min(20)),
            9 => format!("{t} {} {a} {lock}", ["acquire", "read", "wait"][random(3) as usize]),
            _ => {
                format!("{t} {} {a} {lock}", ["release", "park", "unpark"][random(3) as usize])
            }
        };
        text += &line;
        text.push('\n');
    }
    text
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
        parts: None,
        preemptor_tid: None,
        preemptor_comm: None,
        preemptor_ns: None,
        agent_ns: None,
        mark: Mark::Exact,
    }
}

/// Numbers at which arithmetic breaks, and some around the time of the events.
pub const EXTREMES: [i64; 7] = [i64::MIN, -1, 0, 1, 1 << 40, i64::MAX - 1, i64::MAX];

/// Every kind of event with every combination of extremes in its payload, at times that rise from `first` by `step`.
pub fn every_payload(first: i64, step: i64) -> impl Iterator<Item = Event> {
    let sites = 0..=SITES.len() as i32;
    let payloads = EXTREMES.into_iter().flat_map(|a| {
        EXTREMES.into_iter().flat_map(move |b| EXTREMES.into_iter().map(move |c| [a, b, c]))
    });
    let events = payloads.flat_map(move |arg| sites.clone().map(move |site| (arg, site)));
    events.zip(0i64..).map(move |((arg, site), i)| {
        Event::User(LeanUserEvent {
            ts: Nanos(first + i * step),
            pid: Pid(1),
            // All events of a payload on one thread, however many sites there are.
            tid: Tid(97 + (i / (SITES.len() as i64 + 1) % 3) as i32),
            cpu: Cpu((i % 4) as i32 - 1),
            site: SiteId(site),
            arg,
        })
    })
}
