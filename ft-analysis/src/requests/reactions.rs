//! Reactions: from an interrupt, a timer, a packet, a waking or an event to the event that answers it.
//!
//! A reaction is a request that a [`Cause`] begins: it has a row, and a critical path from the begin of the interrupt on.
//!
//! **Rule.** By order, an answer is to all causes since the answer before it, on whatever CPU and thread they were; by key, to
//! those with its own key. The oldest of them counts, since it waited longest, and the others are counted as coalesced with
//! it. An event that is both is an answer.
//!
//! **Situations that give no row** are counted for each kind, [`Reactions`]: a cause that nothing answers, an answer without a
//! cause. A loss may have hidden causes and answers of any thread, so a reaction that one touches is a `lower bound`. So is,
//! by order, one of whose cause a loss since the answer before may have hidden an older one. What was before the trace nobody
//! knows: of each kind the first one can be longer than it says. A key is taken to be that of one cause.
//!
//! What a timer's interrupt or the softirq `NET_RX` is for, no record tells but the waking in it: a timer or a packet that wakes
//! nobody is no cause, nor is a packet for a thread that is still busy with the one before. The handler, up to the waking, is on
//! the path: the last moments of the sleep that it ends.

use super::causes::Cause;
use super::{Open, Requests};
use crate::world::{Thread, World};
use ft_trace::ids::{Cpu, Name, Pid, ThreadKey, Tid};
use ft_trace::tables::{Irq, IrqKind, IrqPurpose};
use ft_user::glob;
use serde::{Deserialize, Serialize};

/// The key of what has none: all of a kind wait for one answer.
pub(super) const NO_KEY: i64 = 0;

/// What became of the causes of one kind of reaction: each was answered, coalesced, unanswered or forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reactions {
    /// As the column `kind` of `requests` says.
    pub kind: String,
    /// Causes.
    pub causes: u64,
    /// Of these, the oldest ones that an answer was to: each has a row.
    pub answered: u64,
    /// Of these, those that came when an older one was not answered yet.
    pub coalesced: u64,
    /// Of these, the recording ended first.
    pub unanswered: u64,
    /// Of these, with other keys more were open than are kept.
    pub too_many: u64,
    /// Answers without a cause since the one before.
    pub without_cause: u64,
}

impl Reactions {
    fn unanswered(&self) -> u64 {
        self.causes - self.answered - self.coalesced - self.too_many
    }
}

impl Requests {
    /// An interrupt begins.
    pub(super) fn interrupted(&mut self, irq: &Irq, world: &World) {
        let wakes = by_waking(irq.kind, &irq.name);
        if wakes.is_some() && world.context().asked().iter().any(|kind| kind.cause == wakes) {
            self.waking = Some(irq.ts.0);
        }
        self.caused_by(Cause::Irq, &irq.name, world, |nth| Open {
            name: irq.name.clone(),
            ..Open::from_outside(irq.ts.0, nth)
        });
    }

    /// A thread is woken, on this CPU.
    pub(super) fn woken(&mut self, thread: &Thread, cpu: Cpu, world: &World) {
        if !world.context().asked().iter().any(|kind| kind.cause.is_some()) {
            return;
        }
        let name = world.context().comm(thread.key);
        let open = |ts, nth| Open {
            name: name.clone(),
            thread: thread.key,
            comm: thread.comm.clone(),
            ..Open::from_outside(ts, nth)
        };
        self.caused_by(Cause::Wake, &name, world, |nth| open(world.now(), nth));
        let Some(irq) = world.interrupts().innermost(cpu, world.now()) else { return };
        if let Some(cause) = by_waking(irq.kind, &irq.name) {
            self.caused_by(cause, &name, world, |nth| open(irq.entry, nth));
        }
    }

    /// Something of the kernel's was recorded that may be a cause; `open`: as the nth that has begun.
    fn caused_by(&mut self, cause: Cause, name: &Name, world: &World, open: impl Fn(u64) -> Open) {
        for (i, kind) in world.context().asked().iter().enumerate() {
            if kind.cause == Some(cause) && glob::matches(&kind.begin, name) {
                self.begun += 1;
                let open = Open { asked: Some(i), ..open(self.begun) };
                self.caused((i, NO_KEY), open, world);
            }
        }
    }

    /// A cause; the oldest one that waits for an answer counts.
    pub(super) fn caused(&mut self, of: (usize, i64), open: Open, world: &World) {
        let reactions = self.reactions.entry(of.0).or_default();
        reactions.causes += 1;
        if self.keyed.contains(of) {
            reactions.coalesced += 1;
        } else {
            self.push_keyed(of, open, world);
        }
    }

    /// An answer; the cause that it is to.
    pub(super) fn answered(
        &mut self,
        (kind, key): (usize, Option<i64>),
        thread: &Thread,
        world: &World,
    ) -> Option<Open> {
        let mut cause = self.keyed.take_newest((kind, key.unwrap_or(NO_KEY)), thread.key.pid);
        if key.is_none() {
            let before = self.answers.insert(kind, world.now()).unwrap_or(0);
            cause.iter_mut().for_each(|cause| cause.oldest_since = before);
        }
        let reactions = self.reactions.entry(kind).or_default();
        match cause {
            Some(_) => reactions.answered += 1,
            None => reactions.without_cause += 1,
        }
        cause
    }

    /// The counts of all kinds that were asked for.
    pub(super) fn reactions(&mut self, world: &World) -> Vec<Reactions> {
        let asked = world.context().asked().iter().enumerate();
        let asked = asked.filter(|(_, kind)| kind.cause.is_some());
        asked
            .map(|(i, kind)| {
                let counts = self.reactions.remove(&i).unwrap_or_default();
                Reactions { kind: kind.name(), unanswered: counts.unanswered(), ..counts }
            })
            .collect()
    }
}

/// What an interrupt is in which a thread is woken, where that is a cause.
fn by_waking(kind: IrqKind, name: &str) -> Option<Cause> {
    match IrqPurpose::of(kind, name) {
        IrqPurpose::LocalTimer | IrqPurpose::Timer => Some(Cause::Timer),
        IrqPurpose::Packets => Some(Cause::Packet),
        IrqPurpose::Other => None,
    }
}

impl Open {
    /// A request that no thread begins.
    fn from_outside(ts: i64, nth: u64) -> Open {
        Open {
            name: "".into(),
            asked: None,
            inner: false,
            scope: false,
            probe: None,
            in_task: false,
            thread: ThreadKey { pid: Pid(0), tid: Tid(0) },
            comm: "".into(),
            ts,
            oldest_since: ts,
            began: None,
            nth,
        }
    }
}
