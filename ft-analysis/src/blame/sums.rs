//! What is summed: the rows of `blame`, by all that distinguishes them.

use std::collections::HashMap;

use super::once::Once;

use ft_trace::Mark;
use ft_trace::ids::{Name, Nanos, Pid, ThreadKey, Tid};
use ft_trace::tables::{self, FileKind, Part, PathKind, Withheld};

/// Rows that are distinguished by all there is. Of further ones, those are one that differ in call chains and addresses alone; of
/// twice as many, those of one thread, part and call.
///
/// Limit: further ones that differ in call chains and addresses alone are one; of twice as many, those of one thread,
/// part and call; sums stay exact.
/// Shown by: `rows_that_do_not_fit_are_one`.
const MAX_BLAMED: usize = 1 << 16;

/// What a thread waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct For {
    pub(super) call: Option<Name>,
    pub(super) file: Option<FileKind>,
    pub(super) object: Option<i64>,
    pub(super) operation: Option<i32>,
    pub(super) lock: bool,
    pub(super) join: bool,
    /// It also ends waits at this futex, or has waited there once, in the midst of its work.
    pub(super) turns: bool,
    pub(super) holder: Option<i32>,
    pub(super) stack: Option<i64>,
}

impl For {
    /// Whether a thread slept at the same place: of a condition the futex changes.
    pub(super) fn is_at(&self, other: &For) -> bool {
        let place = |of: &For| of.stack.or(of.object);
        self.call == other.call && place(self) == place(other)
    }

    /// Address of the futex, if it is one.
    pub(super) fn futex(&self) -> Option<i64> {
        self.object.filter(|_| self.file.is_none())
    }
}

/// Threads of one name that wait for the one behind a wait.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Through {
    pub(super) comm: Name,
    pub(super) call: Option<Name>,
    /// They wait for a lock, or for an answer.
    pub(super) needs: bool,
    pub(super) stack: Option<i64>,
}

/// Threads of one name and process that ended a wait.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct By {
    pub(super) pid: Pid,
    pub(super) comm: Name,
    pub(super) stack: Option<i64>,
}

/// Threads of one name and process for which another one waited at last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Behind {
    pub(super) pid: Pid,
    pub(super) comm: Name,
    pub(super) call: Option<Name>,
    pub(super) file: Option<FileKind>,
    pub(super) stack: Option<i64>,
    pub(super) sampled: bool,
}

/// What distinguishes two rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) who: ThreadKey,
    pub(super) part: Part,
    pub(super) of: For,
    pub(super) waker: Option<By>,
    /// It had asked the waker.
    pub(super) asked: bool,
    /// A timer has ended this part of the wait, which went on.
    pub(super) again: bool,
    pub(super) depth: i32,
    pub(super) through: Option<Through>,
    pub(super) behind: Option<Behind>,
    pub(super) kind: PathKind,
    pub(super) culprit: Option<Name>,
    pub(super) taker: Taker,
    pub(super) withheld: Option<Withheld>,
}

/// Of what kind the culprit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Taker {
    #[default]
    Other,
    /// The idle task.
    Idle,
    /// A thread of the agent that recorded.
    Recording,
}

/// Numbers of threads of a row: of each the first, and whether there were others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tids {
    pub(super) waker: Option<Tid>,
    pub(super) behind: Option<Tid>,
    pub(super) culprit: Option<Tid>,
}

impl Tids {
    /// What both have in common.
    fn common(self, other: Tids) -> Tids {
        let same = |a: Option<Tid>, b| a.filter(|_| a == b);
        Tids {
            waker: same(self.waker, other.waker),
            behind: same(self.behind, other.behind),
            culprit: same(self.culprit, other.culprit),
        }
    }
}

impl Key {
    /// A thread did not run, for no reason that others have.
    pub(super) fn own(who: ThreadKey, part: Part, kind: PathKind) -> Key {
        Key {
            who,
            part,
            of: For::default(),
            waker: None,
            asked: false,
            again: false,
            depth: 0,
            through: None,
            behind: None,
            kind,
            culprit: None,
            taker: Taker::Other,
            withheld: None,
        }
    }

    /// The same without what there can be any number of.
    fn without_chains(mut self) -> Key {
        (self.of.stack, self.of.object) = (None, None);
        if let Some(waker) = &mut self.waker {
            waker.stack = None;
        }
        if let Some(through) = &mut self.through {
            through.stack = None;
        }
        if let Some(behind) = &mut self.behind {
            (behind.stack, behind.sampled) = (None, false);
        }
        self
    }

    /// The same without others.
    fn alone(self) -> Key {
        let of = For { call: self.of.call, file: self.of.file, ..For::default() };
        Key { of, withheld: self.withheld, ..Key::own(self.who, self.part, self.kind) }
    }
}

/// A wait as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    pub(super) from: i64,
    pub(super) to: i64,
}

#[derive(Debug)]
struct Sum {
    comm: Name,
    tids: Tids,
    first: i64,
    ns: i64,
    pieces: i64,
    waits: i64,
    vain: i64,
    longest: Whole,
    mark: Mark,
}

/// All rows.
#[derive(Debug, Default)]
pub(super) struct Sums {
    known: HashMap<Key, usize>,
    sums: Vec<Sum>,
}

impl Sums {
    /// Adds a piece of a wait, of a thread of this name; returns its row.
    pub(super) fn add(
        &mut self,
        (key, tids): (Key, Tids),
        comm: &Name,
        ns: i64,
        wait: Whole,
        mark: Mark,
    ) -> usize {
        let at = self.find(key);
        if at == self.sums.len() {
            self.sums.push(Sum {
                comm: comm.clone(),
                tids,
                first: wait.from,
                ns: 0,
                pieces: 0,
                waits: 0,
                vain: 0,
                longest: wait,
                mark,
            });
        }
        let sum = &mut self.sums[at];
        sum.tids = sum.tids.common(tids);
        if sum.comm != *comm {
            sum.comm = comm.clone();
        }
        sum.ns += ns;
        sum.pieces += 1;
        if wait.to - wait.from > sum.longest.to - sum.longest.from {
            sum.longest = wait;
        }
        sum.mark = sum.mark.max(mark);
        at
    }

    /// Where the row of a key is, or the one that it shares with others.
    fn find(&mut self, key: Key) -> usize {
        let next = self.sums.len();
        if next < MAX_BLAMED {
            return *self.known.entry(key).or_insert(next);
        }
        if let Some(at) = self.known.get(&key) {
            return *at;
        }
        let key = key.without_chains();
        if next < 2 * MAX_BLAMED {
            return *self.known.entry(key).or_insert(next);
        }
        match self.known.get(&key) {
            Some(at) => *at,
            None => *self.known.entry(key.alone()).or_insert(next),
        }
    }

    /// A wait is over, of which this row has most.
    pub(super) fn over(&mut self, at: usize) {
        self.sums[at].waits += 1;
    }

    /// A wait that was over in this row was for nothing.
    pub(super) fn vain(&mut self, at: usize) {
        self.sums[at].vain += 1;
    }

    /// The rows, in the order in which they began.
    pub(super) fn rows(&mut self, once: &Once) -> Vec<tables::Blame> {
        let mut all: Vec<_> = self.known.drain().collect();
        all.sort_unstable_by_key(|(_, at)| *at);
        let sums = std::mem::take(&mut self.sums);
        // Who waits at each futex of a process; none: several.
        let mut waiters = HashMap::<(Pid, i64), Option<Tid>>::new();
        for (key, _) in &all {
            let Some(futex) = key.of.futex() else { continue };
            let waiter = waiters.entry((key.who.pid, futex)).or_insert(Some(key.who.tid));
            *waiter = waiter.filter(|tid| *tid == key.who.tid);
        }
        let turns = |mut key: Key| {
            let others = |futex| waiters.get(&(key.who.pid, futex)).is_some_and(Option::is_none);
            key.of.turns |= once.is(key.who, &key.of, others);
            key
        };
        let mut rows: Vec<_> =
            all.into_iter().zip(sums).map(|((key, _), sum)| row(turns(key), sum)).collect();
        rows.sort_by_key(|row| row.ts);
        rows
    }
}

fn row(key: Key, sum: Sum) -> tables::Blame {
    let Key { who, part, of, waker, asked, again, depth, through, behind, kind, culprit, .. } = key;
    let (taker, withheld) = (key.taker, key.withheld);
    let waker_pid = waker.as_ref().map(|by| by.pid.0);
    let behind_pid = behind.as_ref().map(|behind| behind.pid.0);
    let (waker_comm, waker_stack) = waker.map_or((None, None), |by| (Some(by.comm), by.stack));
    let sampled = behind.as_ref().is_some_and(|behind| behind.sampled);
    let (behind_comm, behind_call, behind_file, behind_stack) = match behind {
        Some(behind) => (Some(behind.comm), behind.call, behind.file, behind.stack),
        None => (None, None, None, None),
    };
    tables::Blame {
        ts: Nanos(sum.first),
        pid: who.pid,
        tid: who.tid,
        comm: sum.comm,
        part,
        call: of.call,
        file: of.file,
        object: of.object,
        operation: of.operation,
        lock: of.lock,
        join: of.join,
        turns: of.turns,
        holder_tid: of.holder,
        stack: of.stack,
        waker_tid: sum.tids.waker.map(|tid| tid.0),
        waker_pid,
        waker_comm,
        waker_stack,
        asked,
        again,
        depth,
        through_comm: through.as_ref().map(|through| through.comm.clone()),
        through_call: through.as_ref().and_then(|through| through.call.clone()),
        through_needs: through.as_ref().is_some_and(|through| through.needs),
        through_stack: through.and_then(|through| through.stack),
        behind_tid: sum.tids.behind.map(|tid| tid.0),
        behind_pid,
        behind_comm,
        kind,
        culprit,
        culprit_tid: sum.tids.culprit.map(|tid| tid.0),
        recording: taker == Taker::Recording,
        withheld,
        behind_call,
        behind_file,
        behind_stack,
        sampled,
        ns: sum.ns,
        pieces: sum.pieces,
        waits: sum.waits,
        vain: sum.vain,
        longest_ns: sum.longest.to - sum.longest.from,
        longest_ts: Nanos(sum.longest.from),
        mark: sum.mark,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_do_not_fit_are_one() {
        let mut sums = Sums::default();
        let who = ThreadKey { pid: Pid(1), tid: Tid(1) };
        let own = || Key::own(who, Part::Blocked, PathKind::Running);
        let wait = Whole { from: 0, to: 5 };
        let mut add = |key| {
            sums.add((key, Tids::default()), &"a".into(), 1, wait, Mark::Exact);
        };
        let most = MAX_BLAMED as i64;
        let stack = |stack| Key { of: For { stack: Some(stack), ..For::default() }, ..own() };
        (0..2 * most).for_each(|n| add(stack(n)));
        let depth = |depth| Key { depth, ..own() };
        (1..2 * most as i32).for_each(|n| add(depth(n)));
        add(stack(0));
        let rows = sums.rows(&Once::default());
        assert_eq!(rows.iter().map(|row| row.ns).sum::<i64>(), 4 * most);
        // Those with chains; the one without; those of each depth; and one for what is left.
        assert_eq!(rows.len(), 2 * MAX_BLAMED);
        let of_first = rows.iter().find(|row| row.stack == Some(0)).map(|row| row.ns);
        assert_eq!(of_first, Some(2), "one that has a row keeps it");
        let without = rows.iter().find(|row| row.stack.is_none() && row.depth == 0);
        assert_eq!(without.map(|row| row.ns), Some(2 * most));
    }
}
