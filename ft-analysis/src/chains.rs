//! What call chains and samples have to do with locks: where in the code a lock was waited for, and what its holder did.
//!
//! **Goal.** For each chain of a thread that waited for a lock or held one, and each sample of a holder, a row for each
//! such lock.
//!
//! **Rule.** What counts is what the thread waited for and held at the time of the chain, which is when it left the CPU.
//! The chain of a waker says nothing of the waker's locks and has no row. A semaphore is known to be a lock only when it is
//! posted, and has none either.

use crate::Rows;
use crate::analysis::Analysis;
use crate::world::{Change, Hold, Thread, World};
use ft_trace::ids::Nanos;
use ft_trace::tables::{ChainKind, LockChain, LockChainKind};

/// Makes the table `lock_chains`.
#[derive(Debug, Default)]
pub struct Chains;

impl Analysis for Chains {
    #[inline]
    fn see(&mut self, change: &Change<'_>, world: &World, rows: &mut Rows) {
        match *change {
            Change::Chain { thread, chain, .. } => {
                let kind = match chain.kind {
                    ChainKind::Wait => LockChainKind::Sleeps,
                    ChainKind::Preempted => LockChainKind::Preempted,
                    ChainKind::Wake => return,
                };
                let taken = Taken { dur: chain.dur, stack: chain.stack };
                if let (ChainKind::Wait, Some(wait)) = (chain.kind, thread.locks.queued()) {
                    let (pid, context) = (thread.key.pid, world.context());
                    rows.lock_chains.push(LockChain {
                        kind: LockChainKind::Waits,
                        lock: wait.lock,
                        lock_name: context.lock_name(pid, wait.lock, wait.site, wait.word),
                        place: context.place(pid, wait.site, wait.word),
                        innermost: true,
                        ..taken.row(thread, world)
                    });
                }
                holds(thread, kind, taken, world, rows);
            }
            Change::Sampled { thread, sample } => {
                let taken = Taken { dur: 0, stack: sample.stack };
                holds(thread, LockChainKind::Runs, taken, world, rows);
            }
            _ => {}
        }
    }
}

/// What was taken of a thread.
#[derive(Clone, Copy)]
struct Taken {
    dur: i64,
    stack: Option<i64>,
}

impl Taken {
    /// A row without a lock.
    fn row(self, thread: &Thread, world: &World) -> LockChain {
        LockChain {
            ts: Nanos(world.now()),
            dur: self.dur,
            pid: thread.key.pid,
            tid: thread.key.tid,
            comm: thread.comm.clone(),
            kind: LockChainKind::Runs,
            lock: 0,
            lock_name: "".into(),
            place: "".into(),
            innermost: false,
            stack: self.stack,
        }
    }
}

/// A row for each lock that a thread holds.
fn holds(thread: &Thread, kind: LockChainKind, taken: Taken, world: &World, rows: &mut Rows) {
    let (pid, context) = (thread.key.pid, world.context());
    for (i, hold) in thread.locks.locks().rev().enumerate() {
        let Hold { lock, site, word, .. } = *hold;
        rows.lock_chains.push(LockChain {
            kind,
            lock,
            lock_name: context.lock_name(pid, lock, site, word),
            place: context.place(pid, site, word),
            innermost: i == 0,
            ..taken.row(thread, world)
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::timeline::run;
    use ft_trace::tables::LockChainKind::{self, *};

    /// Kind, lock, innermost and chain of each row.
    fn check(timeline: &str, expected: &[(LockChainKind, &str, bool, i64)]) {
        let (rows, _) = run(true, timeline);
        let row = |r: &ft_trace::tables::LockChain| {
            (r.kind, char::from(r.lock as u8).to_string(), r.innermost, r.stack.unwrap())
        };
        let found: Vec<_> = rows.lock_chains.iter().map(row).collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|&(kind, lock, last, n)| (kind, lock.to_owned(), last, n))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_sample_belongs_to_every_lock_that_is_held_then() {
        check(
            "
            0 0 .>a S
            10 acquire a L
            20 sample a 1
            30 acquire a M
            40 sample a 2
            50 release a M
            60 sample a 3
            70 release a L
            80 sample a 4",
            &[
                (Runs, "L", true, 1),
                (Runs, "M", true, 2),
                (Runs, "L", false, 2),
                (Runs, "L", true, 3),
            ],
        );
    }

    /// The chains that waits, wake-ups and preempted holders have in their own tables.
    #[test]
    fn waits_wakeups_and_preempted_holders_have_their_chains() {
        let (rows, _) = run(
            true,
            "
            0 0 .>b S
            10 acquire b M
            20 wait b L
            30 0 b>a S
            31 chain b wait 1
            32 acquire a L
            35 0 a>X R
            36 chain a preempted 2
            40 0 X>a R
            50 wake a b 0
            51 chain a wake 3 b
            60 0 a>b S
            70 0 b>a S
            71 chain b wait 4
            72 release a L
            80 wake X b 0
            90 0 a>b S
            95 acquire b L
            96 release b M",
        );
        // Both sleeps are as long, by the timeline: the first stays.
        let stacks: Vec<_> = rows.lock_waits.iter().map(|r| r.stack).collect();
        assert_eq!(stacks, [Some(1)]);
        let wakes: Vec<_> =
            rows.dispatch_latency.iter().map(|r| (r.waker_tid == r.tid, r.stack)).collect();
        assert_eq!(wakes, [(false, Some(3)), (false, None)]);
        let preempted: Vec<_> = rows.lock_preemptions.iter().map(|r| (r.cause, r.stack)).collect();
        use ft_trace::tables::PreemptionCause::{Preempted, Woken};
        assert_eq!(preempted, [(Preempted, Some(2)), (Woken, Some(1)), (Woken, Some(4))]);
    }

    #[test]
    fn who_waits_and_who_holds_meanwhile_are_told_apart() {
        check(
            "
            0 0 .>a S
            10 acquire a L
            20 0 a>b R
            21 chain a preempted 1
            30 acquire b M
            40 wait b L
            50 0 b>a S
            51 chain b wait 2
            60 chain a wake 3
            70 release a L",
            &[(Preempted, "L", true, 1), (Waits, "L", true, 2), (Sleeps, "M", true, 2)],
        );
    }
}
