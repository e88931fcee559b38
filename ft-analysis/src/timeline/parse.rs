//! A line as an event.

use ft_trace::event::{
    Event, LeanChain, LeanContention, LeanFault, LeanFutex, LeanProbe, LeanSample, LeanSyscall,
    LeanUserEvent,
};
use ft_trace::ids::{Cpu, Name, Nanos, Pid, SiteId, Tid};
use ft_trace::tables::{
    CallSeen, ChainKind, ContentionEnd, FaultKind, FileKind, FutexKind, FutexResult, Irq, IrqKind,
    LossOrigin, LossRow, ProbeKind, SchedMigrate, SchedSwitch, SchedWaking, Sleep, TaskEvent,
    TaskKind, TaskState, Throttle,
};
use ft_user::layout::Frame;

use super::{SITES, WORKERS};

pub(super) fn tid(name: &str) -> Tid {
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

pub(super) fn parse(line: &str) -> Event {
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
            word: rest.get(5).filter(|word| **word != "-").map(|word| number(word) as i32),
            timeout_ns: rest.get(6).map(|timeout| number(timeout)),
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
        // TS asleep THREAD CALL [ADDRESS] [OWNER] [UNTIL] [EXPECTED]
        "asleep" => Event::Sleep(Sleep {
            ts,
            cpu: Cpu(0),
            tid: tid(rest[0]),
            pid: pid(rest[0]),
            call: rest
                .get(1)
                .filter(|call| **call != "-")
                .map(|call| name(if *call == "read-timerfd" { "read" } else { call })),
            file: match rest.get(1).copied() {
                Some("read") => Some(FileKind::Pipe),
                Some("read-timerfd") => Some(FileKind::Timerfd),
                _ => None,
            },
            argument: [
                rest.get(2).map(|first| number(first)),
                Some(128),
                Some(rest.get(5).map_or(2, |expected| number(expected))),
                Some(0),
            ],
            until: rest.get(4).filter(|until| **until != "-").map(|until| number(until)),
            word: Some(2),
            owner: rest.get(3).filter(|owner| **owner != "-").map(|owner| tid(owner).0),
        }),
        // TS throttle THREAD DURATION
        "throttle" => Event::Throttle(Throttle {
            ts,
            dur: number(rest[1]),
            cpu: Cpu(0),
            tid: tid(rest[0]),
            pid: pid(rest[0]),
            cgroup: Some("web".into()),
            cgroup_id: Some(1),
            quota_ns: Some(20_000_000),
            period_ns: Some(100_000_000),
            measured: true,
            since_left: true,
        }),
        "sample" => Event::Sample(LeanSample {
            ts,
            cpu: Cpu(0),
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
            cpu: rest.get(1).map_or(Cpu(0), |text| cpu(text)),
            kind: TaskKind::of(what),
            tid: tid(rest[0]),
            pid: pid(rest[0]),
            comm: name(rest[0]),
            parent_pid: None,
        }),
        _ => {
            let (what, of_another) = match what.split_at(what.len() - 1) {
                (what, "'") => (what, SITES.len()),
                (what, "*") => (what, 2 * SITES.len()),
                _ => (what, 0),
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
                "make" | "run" | "ran" | "rouse" | "cancel" | "fiber" => {
                    (Cpu(0), [number(rest[1]), rest.get(2).map_or(0, |text| number(text)), 0])
                }
                "count" | "loop" | "peak" | "looped" | "bin" => {
                    let arg = |i: usize| rest.get(i).map_or(0, |text| number(text));
                    (Cpu(0), [arg(1), arg(2), arg(3)])
                }
                _ if site + WORKERS >= SITES.len() => (
                    Cpu(0),
                    std::array::from_fn(|i| rest.get(i + 1).map_or(0, |text| number(text))),
                ),
                _ => {
                    let arg = |i: usize| rest.get(i).map_or(0, |text| number(text));
                    (Cpu(0), [i64::from(rest[1].as_bytes()[0]), arg(2), arg(3)])
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
