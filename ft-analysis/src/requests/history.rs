//! What threads did and who woke them, kept as far back as a request that goes on may need it.

use std::collections::{HashMap, VecDeque};

use crate::world::{Stretch, Unknown};
use ft_trace::Mark;
use ft_trace::ids::{Name, ThreadKey, Tid};
use ft_trace::tables::Part;

/// Pieces of threads' time, and wake-ups, that are kept at once. Of more, the older half of the time that they cover is
/// forgotten: a path that leads there ends in a piece that is unknown.
///
/// Limit: the older half of that time is forgotten; a critical path that leads there ends in a piece *unknown: not
/// kept*, a `lower bound`.
/// Shown by: `what_is_not_kept_is_unknown_and_says_so`.
const MAX_REMEMBERED: usize = 1 << 19;

/// How often at least what no request needs is forgotten, in pieces.
const SWEEP: usize = 4096;

/// Who or what woke a thread.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Waker {
    /// A thread that is observed.
    Thread(ThreadKey),
    /// A timer; but it went on to sleep for the same, until that thread ended it.
    Again(ThreadKey),
    /// A timer's interrupt.
    Timer(Name),
    /// Another interrupt.
    Device(Name),
    /// A thread that is not observed.
    Outside(Name, Tid),
    /// It is not known, for a reason.
    Unknown(Unknown),
}

/// A thread was woken.
#[derive(Clone, Debug)]
pub(crate) struct Wake {
    pub(crate) ts: i64,
    pub(crate) waker: Waker,
    /// It is its birth.
    pub(crate) birth: bool,
    pub(crate) mark: Mark,
}

/// What one thread did.
#[derive(Debug, Default)]
pub(crate) struct Past {
    steps: VecDeque<Stretch>,
    wakes: VecDeque<Wake>,
}

impl Past {
    /// The piece that ends at `t` or goes on there; else, when the last one before it ended.
    pub(crate) fn before(&self, t: i64) -> Result<&Stretch, i64> {
        let after = self.steps.partition_point(|step| step.from < t);
        match after.checked_sub(1).map(|i| &self.steps[i]) {
            Some(step) if step.to >= t => Ok(step),
            Some(step) => Err(step.to),
            None => Err(i64::MIN),
        }
    }

    /// Since when it is blocked without having been woken, of a piece that ends at `t`; at least `floor`.
    pub(crate) fn blocked_since(&self, t: i64, floor: i64) -> i64 {
        let after = self.steps.partition_point(|step| step.from < t);
        let mut since = t;
        for step in self.steps.range(..after).rev() {
            let goes_on = step.part == Part::Blocked && (since == t || step.to == since);
            if !goes_on || since <= floor || (since < t && self.wake(since).is_some()) {
                break;
            }
            since = step.from;
        }
        since.max(floor)
    }

    /// Who ended the sleep in which it is at `t`, if that is known by now.
    pub(crate) fn wake_after(&self, t: i64) -> Option<&Wake> {
        let mut at = self.steps.partition_point(|step| step.from < t).checked_sub(1)?;
        let mut to = self.steps.get(at)?.to;
        while self.wake(to).is_none() {
            at += 1;
            let next = self.steps.get(at)?;
            if next.part != Part::Blocked || next.from != to {
                return None;
            }
            to = next.to;
        }
        self.wake(to)
    }

    /// Who woke it at `t`.
    pub(crate) fn wake(&self, t: i64) -> Option<&Wake> {
        let at = self.wakes.partition_point(|wake| wake.ts < t);
        self.wakes.get(at).filter(|wake| wake.ts == t)
    }

    /// Its birth, at `t` or later.
    pub(crate) fn birth(&self, t: i64) -> Option<&Wake> {
        self.wakes.front().filter(|wake| wake.birth && wake.ts >= t)
    }

    /// Since when it is known, and for how long it has run, or slept until a time, until `t`.
    pub(crate) fn worked(&self, t: i64) -> (i64, i64) {
        let timed = |step: &Stretch| {
            let wake = self.wake(step.to);
            wake.is_some_and(|wake| matches!(wake.waker, Waker::Timer(_)))
        };
        let works = |step: &&Stretch| match step.part {
            Part::Running => true,
            Part::Blocked => timed(step),
            _ => false,
        };
        let known: i64 = self.steps.iter().filter(works).map(|step| step.to - step.from).sum();
        let ends = |step: Option<&Stretch>| step.map_or(t, |step| step.to);
        let since = self.steps.front().map_or(t, |step| step.from);
        (since, known + (t - ends(self.steps.back())).max(0))
    }

    /// For how long since `t` it could have run, and had no CPU.
    pub(crate) fn kept_since(&self, t: i64) -> i64 {
        let since = self.steps.iter().rev().take_while(|step| step.to > t);
        let kept = since.filter(|step| matches!(step.part, Part::Preempted | Part::Dispatch));
        kept.map(|step| step.to - step.from.max(t)).sum()
    }

    /// For how long it has run since `t`.
    pub(crate) fn ran_since(&self, t: i64) -> i64 {
        let since = self.steps.iter().rev().take_while(|step| step.to > t);
        let ran = since.filter(|step| step.part == Part::Running);
        ran.map(|step| step.to - step.from.max(t)).sum()
    }

    /// When the last of it was over.
    fn end(&self) -> i64 {
        let step = self.steps.back().map_or(i64::MIN, |step| step.to);
        self.wakes.back().map_or(step, |wake| wake.ts.max(step))
    }

    fn len(&self) -> usize {
        self.steps.len() + self.wakes.len()
    }

    fn forget(&mut self, before: i64) {
        while self.steps.pop_front_if(|step| step.to <= before).is_some() {}
        while self.wakes.pop_front_if(|wake| wake.ts <= before).is_some() {}
    }
}

/// What all threads did.
#[derive(Debug)]
pub(crate) struct History {
    threads: HashMap<ThreadKey, Past>,
    /// How much there is.
    kept: usize,
    /// How much there may be before it is swept.
    until: usize,
    /// What was before is forgotten although a request may need it.
    pub(crate) since: i64,
    /// Pieces that were reported so far.
    pub(crate) told: u64,
    most: usize,
}

impl Default for History {
    fn default() -> Self {
        History::new(MAX_REMEMBERED)
    }
}

impl History {
    /// One that keeps so much.
    pub(crate) fn new(most: usize) -> History {
        let threads = HashMap::new();
        History { threads, kept: 0, until: SWEEP, since: i64::MIN, told: 0, most }
    }

    /// What a thread did.
    pub(crate) fn of(&self, thread: ThreadKey) -> Option<&Past> {
        self.threads.get(&thread)
    }

    /// A piece of a thread's time is over; `needed`: since when requests go on.
    pub(crate) fn add(&mut self, stretch: &Stretch, needed: i64) {
        self.told += 1;
        let past = self.threads.entry(stretch.thread).or_default();
        if let Some(last) = past.steps.back_mut()
            // What was reported twice, or in another order, comes from damaged data.
            && (stretch.from < last.to || last.extend(stretch))
        {
            return;
        }
        past.steps.push_back(stretch.clone());
        self.grew(needed, stretch.to);
    }

    /// A thread is woken.
    pub(crate) fn woken(&mut self, thread: ThreadKey, wake: Wake, needed: i64) {
        let ts = wake.ts;
        let past = self.threads.entry(thread).or_default();
        // Of two at one time, the first has woken it.
        if past.wakes.back().is_none_or(|last| last.ts < ts) {
            past.wakes.push_back(wake);
            self.grew(needed, ts);
        }
    }

    /// A sleep that a timer has ended goes on until a thread ends it.
    pub(crate) fn goes_on(&mut self, thread: ThreadKey, t: i64, until: ThreadKey) {
        let Some(past) = self.threads.get_mut(&thread) else { return };
        let at = past.wakes.partition_point(|wake| wake.ts < t);
        if let Some(wake) = past.wakes.get_mut(at).filter(|wake| wake.ts == t) {
            wake.waker = Waker::Again(until);
        }
    }

    fn grew(&mut self, needed: i64, now: i64) {
        self.kept += 1;
        if self.kept < self.until {
            return;
        }
        self.forget(needed);
        let pasts = || self.threads.values();
        let first = pasts().filter_map(|past| past.steps.front()).map(|step| step.from).min();
        let last = pasts().map(Past::end).max().unwrap_or(now);
        let mut before = first.unwrap_or(last).max(needed).min(last);
        // A half of the time that is left, each round: a piece that began before all others may be the last to end.
        while self.kept > self.most / 2 {
            before += last.saturating_sub(before) / 2 + 1;
            self.since = before.max(self.since);
            self.forget(before);
        }
        self.until = (2 * self.kept).max(SWEEP + self.threads.len()).min(self.most);
    }

    /// Forgets what was over before.
    pub(crate) fn forget(&mut self, before: i64) {
        self.threads.retain(|_, past| {
            past.forget(before);
            past.len() > 0
        });
        self.kept = self.threads.values().map(Past::len).sum();
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.threads.clear();
        (self.kept, self.until) = (0, SWEEP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Culprit;
    use ft_trace::ids::Pid;

    fn stretch(tid: i32, from: i64, to: i64) -> Stretch {
        let thread = ThreadKey { pid: Pid(1), tid: Tid(tid) };
        let culprit = Culprit::Nobody;
        Stretch { thread, from, to, part: Part::Blocked, culprit, mark: Mark::Exact }
    }

    /// However long the piece is that began first, and whatever is later than the piece that was added last.
    #[test]
    fn half_of_what_is_kept_is_forgotten_at_once() {
        const MOST: usize = 64;
        let mut history = History::new(MOST);
        history.add(&stretch(1, 0, 2_000_000), i64::MIN);
        for n in 0..20_000 {
            let (tid, from) = (2 + (n % 2) as i32, 1_000_000 + 10 * n);
            history.add(&stretch(tid, from, from + 5), i64::MIN);
            if n % 3 == 0 {
                let wake = Wake {
                    ts: from + 100,
                    waker: Waker::Timer("".into()),
                    birth: false,
                    mark: Mark::Exact,
                };
                history.woken(stretch(4, 0, 0).thread, wake, i64::MIN);
            }
            assert!(history.kept < SWEEP + MOST);
        }
        let kept: usize = history.threads.values().map(Past::len).sum();
        assert_eq!(kept, history.kept);
        assert!(history.since > 1_000_000 && history.of(stretch(1, 0, 0).thread).is_some());
    }
}
