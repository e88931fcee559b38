//! Nobody's events change another's rows.
//!
//! Process 1 is recorded alone, and beside process 2, which writes any events, under any thread numbers: those of
//! process 1, too. Its rings lose events, of any thread that it names, and its threads make any calls, end and execute
//! programs. Of what the kernel says of process 2, who has a CPU and who is woken is left out: that is everybody's affair.
//!
//! All tables of results are compared but for what is of all processes by its meaning:
//!
//! - `requests` and `critical_path`: numbers of requests are in the order of all their ends, and what has a key may end
//!   in another process (`requests/mod.rs`), so process 2 uses keys of its own. Reactions, which are to whatever came
//!   before, are not asked for. What a thread does is kept while any request goes on, in pieces that are joined with the
//!   worse mark; so where a thread waited for room in its ring, another's request can make more of a path *disturbed*, and
//!   never less: that mark is not compared.
//!   Of a task that two threads poll at once, which no program does, one poll is followed; and which that is depends on
//!   what is kept, so here process 1 has tasks of each thread.
//! - `histograms` is left out: a row counts all intervals of the same names, whatever process they are of.
//!
//! Bounds that all processes share (LIMITS.md) are beyond the events that are made here.

use proptest::prelude::*;

use super::simulated::Machine;
use super::timelines::{CHAIN, TURNS};
use crate::timeline::{SITES, events, names, sites, threads};
use crate::{Context, RequestKind, Rows, Run};
use ft_trace::Mark;
use ft_trace::event::{
    Event, LeanContention, LeanFault, LeanFutex, LeanProbe, LeanSyscall, LeanUserEvent,
};
use ft_trace::ids::{Cpu, Nanos, Pid, SiteId, Tid};
use ft_trace::result_tables;
use ft_trace::tables::{
    CallSeen, ContentionEnd, FaultKind, FutexKind, FutexResult, LossOrigin, LossRow, ProbeKind,
    TaskEvent, TaskKind,
};

const HONEST: Pid = Pid(1);
const HOSTILE: Pid = Pid(2);

/// Longer than what [`Machine`] makes.
const END: i64 = 60_000;

/// Longer than the other timelines.
const SOON: i64 = 500;

/// Beside [`CHAIN`]: a wait that does not end, scopes, requests, and tasks.
const OWN: &str = "
    5 open a
    6 begin a 7
    16 chain b wait 3
    20 chain a preempted 4
    90 answer a 7
    95 close a
    100 make a 7 3
    110 run a 7
    112 in a F 8 5 3
    115 run b 8
    120 rouse b 7
    124 ran b 8 0
    125 out a F 8 5
    126 into b
    128 out-of b
    130 ran a 7 0
    140 run a 7
    150 ran a 7 1
    155 fiber b 9
    160 fiber b 0
    170 begin b 5
    171 begin b 6
    180 answer a 5
    185 answer b 6
    190 wait a L
    400 0 a>X S";

/// System calls, futexes, locks of the kernel, page faults and probes.
const CALLS: &str = "
    0 0 .>a S
    0 7 .>b S
    5 call-of a f 100
    10 futex a wait L 90 done
    10 call a futex 90
    15 0 a>X S
    40 futex b wake L 10 done
    40 call b futex 10
    42 wake b a 0
    70 0 X>a R
    110 contend a mutex 90 M acquired 3
    110 call a write 95
    125 0 a>X D
    160 wake b a 0
    170 0 X>a R
    210 return-of a f 100
    220 fault a 30 minor
    255 call b read 10
    400 0 a>X S";

/// Beside [`TURNS`]: jobs of one of its workers, how both go on, and a loop with two peaks.
const LOADS: &str = "
    30 job b 0 28 100
    90 finish b 0 90
    91 over b
    200 wake . b 0
    205 0 a>b R
    208 woke b 200 207
    209 gap b 0 94 208
    300 0 b>c R
    301 poll c 0
    310 loop c 9 5 1000000000
    320 irq c soft 30
    355 gap c 0 316 354
    356 peak c 0
    360 0 c>X R
    390 0 X>c R
    396 gap c 0 358 395
    397 peak c 1
    410 looped c 9 2 1
    411 bin c 5 6 9
    420 last a 420
    421 last b 421";

/// A worker with a period that does one job.
const JOBS: &str = "
    0 0 .>a S
    10 worker a 0 4 1
    11 class a 1 40 0
    12 span a 100 400 0
    13 demand a 30 100
    14 bound a 30
    20 0 a>. S
    103 wake . a 0
    105 0 .>a S
    107 first a 107
    109 job a 0 108 100
    120 0 a>X R
    130 0 X>a S
    133 gap a 0 119 132
    153 finish a 0 152
    154 over a
    270 last a 270
    271 end a 0";

/// Each group of the kernel has been recorded before process 2 begins.
const GROUPS: &str = "
    0 call X read 1
    0 futex X wake Z 1 done
    0 contend X mutex 1 Z
    0 fault X 1 minor
    0 call-of X g 100
    ";

fn argument() -> impl Strategy<Value = i64> {
    // The locks of process 1, its tasks and keys, times of the trace, and whatever.
    prop_oneof![Just(75), Just(76), Just(77), 0..10i64, 0..SOON, 0..END, any::<i64>()]
}

fn time() -> impl Strategy<Value = i64> {
    prop_oneof![0..SOON, 0..END]
}

/// An event that a program can write of itself.
fn user(pid: Pid) -> impl Strategy<Value = Event> {
    let cpu = prop_oneof![-1..4, any::<i32>()];
    let arg = prop::array::uniform3(argument());
    (time(), 97..102, cpu, -1..SITES.len() as i32, arg).prop_map(
        move |(ts, tid, cpu, site, mut arg)| {
            let what = SITES.get(site as usize);
            if pid == HOSTILE && what.is_some_and(|what| what.2.starts_with("http.")) {
                arg[0] = arg[0] & 7 | 1 << 32;
            }
            if pid == HONEST && what.is_some_and(|what| what.1.is_of_task()) {
                arg[0] = arg[0] & 7 | i64::from(tid) << 8;
            }
            Event::User(LeanUserEvent {
                ts: Nanos(ts),
                pid,
                tid: Tid(tid),
                cpu: Cpu(cpu),
                site: SiteId(site),
                arg,
            })
        },
    )
}

/// A loss that concerns the hostile process, which tells the thread and the count.
fn loss() -> impl Strategy<Value = Event> {
    (time(), 0..END, prop_oneof![Just(-1), 97..102], any::<i64>()).prop_map(
        |(ts, dur, tid, count)| {
            Event::Loss(LossRow {
                ts: Nanos(ts),
                dur,
                origin: LossOrigin::Ring,
                what: "ring full".into(),
                cpu: Cpu(-1),
                pid: HOSTILE,
                tid: Tid(tid),
                count,
            })
        },
    )
}

/// What the kernel tells of a thread of the hostile process, whose number is no other's.
fn kernel() -> impl Strategy<Value = Event> {
    let (pid, end) = (HOSTILE, [TaskKind::Exit, TaskKind::Exec]);
    (0..6, 1..SOON, 1..SOON, 200..203, 75i64..78).prop_map(move |(what, ts, dur, tid, address)| {
        let (ts, tid) = (Nanos(ts), Tid(tid));
        match what {
            0 => Event::Syscall(LeanSyscall {
                ts,
                dur,
                tid,
                pid,
                name: "futex".into(),
                seen: CallSeen::Whole,
                file: None,
                ret: 0,
            }),
            1 => Event::Futex(LeanFutex {
                ts,
                dur,
                tid,
                pid,
                kind: if dur % 2 == 0 { FutexKind::Wake } else { FutexKind::Wait },
                address,
                word: None,
                timeout_ns: None,
                result: FutexResult::Done,
            }),
            2 => Event::Contention(LeanContention {
                ts,
                dur,
                tid,
                pid,
                lock: address,
                name: None,
                caller: None,
                kind: "mutex".into(),
                end: ContentionEnd::Acquired,
                stack: None,
            }),
            3 => Event::Fault(LeanFault {
                ts,
                tid,
                pid,
                in_kernel: false,
                dur: Some(dur),
                kind: Some(FaultKind::Minor),
            }),
            4 => Event::Probe(LeanProbe {
                ts,
                tid,
                pid,
                kind: if dur % 2 == 0 { ProbeKind::Begin } else { ProbeKind::End },
                probe: "f".into(),
                stack_pointer: Some(100),
            }),
            _ => Event::Task(TaskEvent {
                ts,
                cpu: Cpu(3),
                kind: end[dur as usize % 2],
                tid,
                pid,
                comm: "hostile".into(),
                parent_pid: None,
            }),
        }
    })
}

/// Whose a row is.
#[derive(PartialEq)]
struct Of(Option<i32>);

impl From<Pid> for Of {
    fn from(pid: Pid) -> Of {
        Of(Some(pid.0))
    }
}

impl From<Option<i32>> for Of {
    fn from(pid: Option<i32>) -> Of {
        Of(pid)
    }
}

/// Declares what is compared of each table.
macro_rules! compared {
    ($($table:ident: $row:ident,)*) => {
        /// Keeps the rows of process 1.
        fn keep_honest(rows: &mut Rows) {
            $(rows.$table.retain(|r| Of::from(r.pid) == Of(Some(HONEST.0)));)*
        }

        /// Tables whose rows are not the same, with the first that is not.
        fn differ(alone: &Rows, beside: &Rows) -> Vec<String> {
            let mut differ = Vec::new();
            $({
                let (a, b) = (&alone.$table, &beside.$table);
                let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
                if a != b {
                    let (a, b) = (a.get(same), b.get(same));
                    differ.push(format!("{}: {a:?} and {b:?}", stringify!($table)));
                }
            })*
            differ
        }

        /// Tables without a row in any of these.
        fn empty(all: &[Rows]) -> Vec<&'static str> {
            let mut empty = Vec::new();
            $(if all.iter().all(|rows| rows.$table.is_empty()) {
                empty.push(stringify!($table));
            })*
            empty
        }
    };
}

result_tables!(compared);

/// The rows of process 1, but for those of `histograms`; requests have numbers of their own.
fn rows(mut events: Vec<Event>) -> Rows {
    events.sort_by_key(|e| (e.ts(), e.rank()));
    let context = Context::new(true, 10, &threads(), &sites(), &names());
    let asked = [("http.begin,http.end", Some("id")), ("work.inner", None)];
    let asked = asked.map(|(events, key)| RequestKind::parse(events, key).expect("a request"));
    let mut analysis = Run::new(context.with_requests(asked.to_vec(), &sites()));
    events.iter().for_each(|event| analysis.push(event));
    let (mut rows, _) = analysis.finish();
    keep_honest(&mut rows);
    rows.histograms.clear();
    let numbers: Vec<i64> = rows.requests.iter().map(|r| r.request).collect();
    let own = |number| numbers.iter().position(|&n| n == number).expect("a request") as i64;
    rows.requests.iter_mut().for_each(|r| r.request = own(r.request));
    rows.critical_path.retain(|p| numbers.contains(&p.request));
    rows.critical_path.iter_mut().for_each(|p| p.request = own(p.request));
    let marks = rows.critical_path.iter_mut().map(|p| &mut p.mark);
    let marks = marks.chain(rows.requests.iter_mut().map(|r| &mut r.path_mark));
    marks.filter(|mark| **mark == Mark::Disturbed).for_each(|mark| *mark = Mark::Exact);
    rows
}

/// What process 1 does.
fn honest(seed: u64) -> [Vec<Event>; 5] {
    let machine = Machine::new(seed).run().0;
    // So that each recording ends at the same time, whoever has the last word.
    let end = format!("\n{END} wake X a 0");
    let whole = |timeline: &str| events(&(GROUPS.to_owned() + timeline + &end)).collect();
    let (own, loads) = (CHAIN.to_owned() + OWN, TURNS.to_owned() + LOADS);
    [&machine, &own, CALLS, &loads, JOBS].map(whole)
}

#[test]
fn what_is_compared_has_rows() {
    let all = honest(1).map(rows);
    assert_eq!(empty(&all), ["histograms"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn nobodys_events_change_anothers_rows(
        seed in 1u64..1_000_000,
        more in prop::collection::vec(user(HONEST), 0..60),
        hostile in prop::collection::vec(
            prop_oneof![7 => user(HOSTILE), 1 => loss(), 3 => kernel()], 1..120),
    ) {
        for mut alone in honest(seed) {
            alone.extend_from_slice(&more);
            let beside = [&alone[..], &hostile[..]].concat();
            prop_assert_eq!(differ(&rows(alone), &rows(beside)), Vec::<String>::new());
        }
    }
}
