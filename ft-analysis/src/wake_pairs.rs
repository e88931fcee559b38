//! Who ends whose waits: wake-ups by the call of the waker and the call in which the woken thread was blocked, as a write
//! to a pipe ends a read.
//!
//! **Rule.** A waking of a thread that is blocked counts, for the pair of both processes and calls; and with it how long
//! the thread had been off the CPU, and how long it then waited for one. Whether an interrupt wakes in the place of the
//! thread that it struck, the interrupts of that CPU tell (`requests/wakers.rs`); where they are not recorded, no thread is sure to be
//! the waker.

use std::collections::HashMap;

use crate::analysis::Analysis;
use crate::requests::{Waker, interrupt_that_wakes};
use crate::world::{At, Change, PerThread, State, Thread, World};
use crate::{Rows, Tally};
use ft_trace::Mark;
use ft_trace::ids::{Cpu, Name, Nanos, Pid, ThreadKey, Tid};
use ft_trace::tables::{FileKind, Place, WakePair, WakerKind};

/// Pairs that are distinguished; further ones are one of an unknown waker.
///
/// Limit: one row of an unknown waker, `(others)`.
/// Shown by: `pairs_that_do_not_fit_share_a_row`.
const MAX_PAIRS: usize = 16_384;

/// Who wakes whom, and where both are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Pair {
    /// Null: not a thread.
    waker: Option<Pid>,
    /// What else it is.
    interrupt: Option<(WakerKind, Name)>,
    waker_at: (Option<Name>, Option<FileKind>),
    woken: Pid,
    woken_at: (Option<Name>, Option<FileKind>),
}

/// What is known of one.
#[derive(Debug)]
struct Sum {
    pair: Pair,
    first: i64,
    waker_name: Name,
    woken_name: Name,
    count: i64,
    blocked_ns: i64,
    longest_ns: i64,
    dispatch_ns: i64,
}

/// Makes the table `wake_pairs`.
#[derive(Debug, Default)]
pub struct WakePairs {
    known: HashMap<Pair, usize>,
    sums: Vec<Sum>,
    /// The pair that has woken a thread, which waits for a CPU since.
    woken: PerThread<Option<usize>>,
}

impl Analysis for WakePairs {
    #[inline]
    fn see(&mut self, change: &Change<'_>, world: &World, _: &mut Rows) {
        match *change {
            Change::Waking { thread, waker, cpu, .. } if world.knows_calls() => {
                self.waking(thread, waker, cpu, world);
            }
            Change::Dispatched { thread, after: State::Woken, .. } if world.knows_calls() => {
                if let Some(at) = self.woken.get(thread).and_then(Option::take) {
                    self.sums[at].dispatch_ns += world.now() - thread.runnable.0;
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, world: &World, rows: &mut Rows, _: &mut Tally) {
        let losses = world.losses();
        rows.wake_pairs.extend(self.sums.drain(..).map(|sum| {
            let lost = losses.scheduling_since(sum.first) || losses.calls_since(sum.first);
            let kind = sum.pair.interrupt.as_ref().map(|(kind, _)| *kind);
            // Without the records of interrupts it may have been one, which struck the thread.
            let is_guessed = kind.is_none() && !world.interrupts().recorded;
            WakePair {
                ts: Nanos(sum.first),
                waker: kind.unwrap_or(WakerKind::Thread),
                waker_pid: sum.pair.waker.map(|pid| pid.0),
                waker_name: sum.waker_name,
                waker_call: sum.pair.waker_at.0,
                waker_file: sum.pair.waker_at.1,
                pid: sum.pair.woken,
                name: sum.woken_name,
                call: sum.pair.woken_at.0,
                file: sum.pair.woken_at.1,
                count: sum.count,
                blocked_ns: sum.blocked_ns,
                longest_ns: sum.longest_ns,
                dispatch_ns: sum.dispatch_ns,
                mark: Mark::lower_bound_if(lost || is_guessed),
            }
        }));
    }
}

impl WakePairs {
    fn waking(&mut self, thread: &Thread, waker: Option<ThreadKey>, cpu: Cpu, world: &World) {
        if thread.state_when_woken() != State::Blocked {
            return;
        }
        let idle = waker.is_none_or(|key| key.tid.0 == 0);
        let interrupt = match interrupt_that_wakes(world, cpu, idle).0 {
            Some(Waker::Timer(name)) => Some((WakerKind::Timer, name)),
            Some(Waker::Device(name)) => Some((WakerKind::Device, name)),
            Some(Waker::Unknown(why)) => Some((WakerKind::Unknown, why.word().into())),
            Some(Waker::Thread(..) | Waker::Again(..) | Waker::Outside(..)) | None => None,
        };
        let waker = waker.filter(|_| interrupt.is_none());
        let by = waker.and_then(|key| world.thread(key.pid, key.tid));
        let pair = Pair {
            waker: waker.map(|key| key.pid),
            interrupt,
            waker_at: by.map_or_else(Default::default, |by| call(by.place(world.now()))),
            woken: thread.key.pid,
            woken_at: call(thread.place(world.now())),
        };
        let at = self.find(pair, world);
        let sum = &mut self.sums[at];
        let blocked_ns = world.now() - thread.left;
        sum.count += 1;
        sum.blocked_ns += blocked_ns;
        sum.longest_ns = sum.longest_ns.max(blocked_ns);
        *self.woken.of(thread) = Some(at);
    }

    fn find(&mut self, pair: Pair, world: &World) -> usize {
        if let Some(&at) = self.known.get(&pair) {
            return at;
        }
        let pair = match self.sums.len() < MAX_PAIRS - 1 {
            true => pair,
            false => {
                Pair { interrupt: Some((WakerKind::Unknown, "(others)".into())), ..Pair::default() }
            }
        };
        let process = |pid: Pid| world.comm(ThreadKey { pid, tid: Tid(pid.0) });
        let at = *self.known.entry(pair.clone()).or_insert(self.sums.len());
        if at == self.sums.len() {
            let interrupt = pair.interrupt.as_ref().map(|(_, name)| name.clone());
            self.sums.push(Sum {
                first: world.now(),
                waker_name: interrupt.unwrap_or_else(|| pair.waker.map_or("".into(), process)),
                woken_name: process(pair.woken),
                pair,
                count: 0,
                blocked_ns: 0,
                longest_ns: 0,
                dispatch_ns: 0,
            });
        }
        at
    }
}

/// The call of a place.
fn call(at: Option<&At>) -> (Option<Name>, Option<FileKind>) {
    at.filter(|at| at.place == Place::Call).map_or((None, None), |at| (at.call.clone(), at.file))
}
