//! Who or what a thread had to wait for that could run: those that had the CPU, interrupts that struck them, and what kept it from it.

use super::spots::Seen;
use super::sums::{Behind, Key, Taker, Tids, Whole};
use super::withheld;
use super::{Back, Blame, Most};
use crate::world::{Stretch, Thread, Unknown, World};
use ft_trace::Mark;
use ft_trace::ids::{Name, ThreadKey, Tid};
use ft_trace::tables::{PathKind, Withheld};

impl Blame {
    /// A thread had no CPU in this stretch; `key` says which row it would be without those that had it. Returns the row that has most.
    pub(super) fn without_cpu(
        &mut self,
        (key, tids): (Key, Tids),
        thread: &Thread,
        back: &Back,
        (stretch, wait): (&Stretch, Whole),
        world: &World,
    ) -> Most {
        let (comm, mark) = (&thread.comm, stretch.mark);
        let mut rest = stretch.to - stretch.from;
        let mut most = Most::default();
        let kept = self.threads.of(thread).kept.clone();
        let kept_ns = kept.as_ref().map_or(0, |kept| kept.within(stretch));
        if let Some(kept) = kept.filter(|_| kept_ns > 0) {
            rest -= kept_ns;
            let key =
                Key { culprit: Some(kept.whose), withheld: Some(Withheld::Quota), ..key.clone() };
            most.put(&mut self.sums, (key, tids), comm, kept_ns, wait, mark);
        }
        if back.ts == stretch.to {
            let mut had: Vec<(Taker, i64)> = back
                .shares
                .iter()
                .map(|share| (taker(share.who.thread, world), share.ns))
                .collect();
            withheld::without(&mut had, kept_ns);
            let struck = self.struck.within(back.cpu, (stretch.from, stretch.to));
            for (share, (taker, ns)) in back.shares.iter().zip(had) {
                let mut ns = ns.min(rest);
                rest -= ns;
                let is_its = |(tid, ..): &&(Tid, Name, i64)| *tid == share.who.thread.tid;
                for (_, which, struck) in struck.iter().filter(is_its) {
                    let struck = (*struck).min(ns);
                    ns -= struck;
                    if struck > 0 {
                        let key = Key {
                            kind: PathKind::Interrupt,
                            culprit: Some(which.clone()),
                            ..key.clone()
                        };
                        most.put(&mut self.sums, (key, tids), comm, struck, wait, mark);
                    }
                }
                if ns == 0 {
                    continue;
                }
                let behind = self.had_cpu(share.who.thread, stretch, world);
                let culprit = Some(share.who.comm.clone());
                let key = Key { culprit, taker, behind, ..key.clone() };
                let tid = Some(share.who.thread.tid);
                let tids =
                    Tids { culprit: tid, behind: tid.filter(|_| key.behind.is_some()), ..tids };
                let (at, who) = ((stretch, back.cpu), (&share.who, ns));
                let why = withheld::withheld(thread, back.asleep.as_ref(), at, who, &self.denied);
                if let Some((why, withheld_ns)) = why {
                    let key = Key { withheld: Some(why), ..key.clone() };
                    most.put(&mut self.sums, (key, tids), comm, withheld_ns, wait, mark);
                    ns -= withheld_ns;
                }
                most.put(&mut self.sums, (key, tids), comm, ns, wait, mark);
            }
        }
        if rest > 0 {
            let key = Key { culprit: Some(Unknown::Occupant.word().into()), ..key };
            let mark = mark.max(Mark::LowerBound);
            most.put(&mut self.sums, (key, tids), comm, rest, wait, mark);
        }
        most
    }

    /// The thread that had the CPU meanwhile, if it is observed, and where a sample found it, or where it lost that CPU.
    fn had_cpu(&self, thread: ThreadKey, stretch: &Stretch, world: &World) -> Option<Behind> {
        let known = world.thread(thread.pid, thread.tid)?;
        let spot = self.spots.running(thread, stretch.from, stretch.to);
        let spot = spot.filter(|spot| matches!(spot.seen, Seen::Sampled | Seen::Preempted));
        Some(Behind {
            pid: thread.pid,
            comm: known.comm.clone(),
            call: None,
            file: None,
            stack: spot.and_then(|spot| spot.stack),
            sampled: spot.is_some_and(|spot| spot.seen == Seen::Sampled),
        })
    }
}

/// Of what kind a thread is that has taken the CPU from another one.
pub(super) fn taker(thread: ThreadKey, world: &World) -> Taker {
    match () {
        () if thread.tid.0 == 0 => Taker::Idle,
        () if world.is_agents(thread) => Taker::Recording,
        () => Taker::Other,
    }
}
