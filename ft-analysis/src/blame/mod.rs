//! What every thread lost its time to: all time in which it did not run, by what it waited for and by what others did meanwhile.
//!
//! **Goal.** Sums from which one reads who lost time, behind whom, at what, and where in both programs; the rows of a thread and its
//! *running* sum to its wall time, to the nanosecond.
//!
//! **Rule.** A thread that had no CPU lost the time to whoever had its CPU, as the world shares that out. One that slept lost it to
//! the thread that woke it, as long as that ran; while that had no CPU itself, to who had that; while that slept, to the one that woke
//! it, and so on. This is the walk of requests ([`walk`]) over each wait, made when the thread has a CPU again, for by then all is settled
//! that happened meanwhile. What it waited for until then, it also waited for while it was on its way to a CPU.
//!
//! Of who had its CPU, what interrupts took is theirs. Where the CPU was withheld, or a timer came late, the row says that ([`withheld`]).
//!
//! **Situations.**
//! - *A wait that is cut by an unneeded wake-up*: each part is a wait. Those that a timer of the waiter has cut are one ([`again`]).
//! - *A waker that was asleep until just before*: its own wait is walked through in the same way.
//! - *A wait that has not ended when the thread or the trace ends*: unknown, *censored*.
//! - *Too many pieces*: beyond [`PER_PIECE`] times those of all threads, a wait is one piece of the thread that ended it.
//! - *Woken along with others, and back to sleep*: for nothing ([`herds`]).
//! - *A wait for one that sleeps by its own choice*: the row says whether it was asked ([`talks`]), and who waited between.
//! - *What happened long ago*: the history keeps the newest [`MAX_REMEMBERED`] pieces; before them it is unknown.

mod again;
mod asleep;
mod cpu;
mod herds;
mod once;
mod spots;
mod struck;
mod sums;
mod talks;
#[cfg(test)]
mod tests;
mod withheld;
mod words;

use crate::analysis::Analysis;
use crate::requests::{History, Past, Piece, Tasks, Waker, walk, who_wakes};
use crate::world::{Change, Culprit, PerThread, Shares, State, Stretch, Thread, Unknown, World};
use crate::{Rows, Tally};
use again::Cut;
use asleep::{is_lock, joins, waited_for};
use cpu::taker;
use ft_trace::Mark;
use ft_trace::ids::{Cpu, Name, Pid, ThreadKey, Tid};
use ft_trace::tables::{ChainKind, Part, PathKind, Sleep, Withheld};
use herds::{Called, Herds};
use once::{Once, Places};
use spots::{Seen, Spot, Spots};
use std::collections::VecDeque;
use struck::Struck;
use sums::{Behind, By, For, Key, Sums, Taker, Tids, Whole};
use talks::{Place, Talks};
use withheld::{Denied, Kept};

/// Pieces of threads' time, and wake-ups, that are kept.
///
/// Limit: the older half of that time is forgotten; what a wait of others leads to there is *unknown: not kept*, a
/// `lower bound`.
/// Shown by: `what_is_not_kept_is_unknown_and_says_so` (the same history).
const MAX_REMEMBERED: usize = 1 << 18;

/// Waits from which on a row says no more than that there are so many.
///
/// Limit: more are 3; the sums are exact.
/// Shown by: none: the number is a word for *more*.
const MAX_DEPTH: i32 = 3;

/// Pieces of waits that are looked at for each piece of a thread's time.
const PER_PIECE: u64 = 8;

/// The chain of a waker is of the wake-up that was recorded so long before.
const CHAIN_AFTER_NS: i64 = 100_000;

/// Pieces of waits that are looked at in any case.
const FREE_PIECES: u64 = if cfg!(test) { 1 << 12 } else { 1 << 20 };

/// Makes the table `blame`.
#[derive(Debug)]
pub struct Blame {
    history: History,
    /// None: threads are followed, whatever they poll.
    tasks: Tasks,
    spots: Spots,
    talks: Talks,
    herds: Herds,
    once: Once,
    threads: PerThread<Now>,
    denied: Denied,
    struck: Struck,
    sums: Sums,
    /// Pieces of waits that were looked at.
    walked: u64,
    /// Nothing is known of what threads did.
    without_kernel: bool,
}

impl Default for Blame {
    fn default() -> Self {
        Blame {
            history: History::new(MAX_REMEMBERED),
            tasks: Tasks::default(),
            spots: Spots::default(),
            talks: Talks::default(),
            herds: Herds::default(),
            once: Once::default(),
            threads: PerThread::default(),
            denied: Denied::default(),
            struck: Struck::default(),
            sums: Sums::default(),
            walked: 0,
            without_kernel: false,
        }
    }
}

/// What is known of a thread that is not settled yet.
#[derive(Debug, Default)]
struct Now {
    /// It sleeps, or has slept and is on its way.
    sleeps: Option<Whole>,
    mark: Mark,
    /// What has struck it, or is not explained, and may go on.
    struck: Option<Stretch>,
    /// It sleeps until another thread has ended.
    joins: bool,
    /// The quota of its group keeps it from its CPU, or has done so last.
    kept: Option<Kept>,
    /// When it was woken last, and where in its code the waker was.
    woken: (i64, Option<i64>),
    /// Where it has waited.
    places: Places,
    /// Parts of its wait that a timer has ended.
    parts: VecDeque<Cut>,
    /// The call of a herd by which its sleep ends.
    called: Option<Called>,
    /// The same of the last one that is over, with the row of that and where it slept; forgotten when it sleeps elsewhere.
    came: Option<(Called, usize, For)>,
    /// How it came to its CPU last.
    back: Back,
}

/// A wait that is over.
#[derive(Clone, Debug)]
struct Wait {
    of: For,
    waker: Option<(By, ThreadKey)>,
    /// It had asked the waker.
    asked: bool,
    /// This part of it was ended by a timer, and it went on.
    again: bool,
    whole: Whole,
    mark: Mark,
}

/// How a thread came to a CPU.
#[derive(Debug, Default)]
struct Back {
    ts: i64,
    shares: Shares,
    asleep: Option<Sleep>,
    left_at: Option<i64>,
    cpu: Cpu,
}

impl Analysis for Blame {
    #[inline]
    fn follows(&self) -> bool {
        !self.without_kernel
    }

    #[inline]
    fn see(&mut self, change: &Change<'_>, world: &World, _: &mut Rows) {
        if !world.context().has_kernel() {
            self.without_kernel = true;
            return;
        }
        match *change {
            Change::Spent(stretch) => self.spent(stretch, world),
            Change::Waking { thread, wake, cpu, waker, birth } => {
                let wake = who_wakes((wake, cpu, waker, birth), world);
                self.threads.of(thread).woken = (world.now(), None);
                self.hears(thread, &wake.waker);
                if let Waker::Thread(waker) = wake.waker {
                    self.talk(waker, thread, birth, world);
                }
                self.history.woken(thread.key, wake, i64::MIN);
            }
            Change::Throttled { thread, throttle } => {
                self.threads.of(thread).kept = Some(Kept::of(throttle));
            }
            Change::Dispatched { thread, after, shares, cpu, .. } => {
                let now = self.threads.of(thread);
                now.back = Back {
                    ts: world.now(),
                    shares: shares.clone(),
                    asleep: thread.asleep.clone(),
                    left_at: thread.left_at,
                    cpu,
                };
                if after == State::Blocked || thread.runnable.0 < world.now() {
                    return;
                }
                self.over(thread, None, world);
            }
            Change::Switched { cpu, prev } => {
                self.denied.switched(cpu, prev, world);
                let Some(thread) = prev.filter(|thread| thread.is_blocked()) else { return };
                let asleep = thread.asleep.as_ref();
                let seen = Seen::Slept(
                    asleep.and_then(|sleep| sleep.call.clone()),
                    asleep.and_then(|sleep| sleep.file),
                    asleep.is_some_and(is_lock),
                );
                self.herds.sleeps(thread.key);
                // By the end of its wait that one may have ended.
                self.threads.of(thread).joins = joins(thread, world);
                let spot = Spot { ts: thread.left, seen, stack: thread.left_at };
                self.spots.add(thread.key, spot);
            }
            Change::Chain { thread, chain, .. } if chain.kind == ChainKind::Wake => {
                let whom = chain.woken_pid.zip(chain.woken_tid);
                let whom = whom.and_then(|(pid, tid)| world.thread(Pid(pid), Tid(tid)));
                let mut ts = world.now();
                if let Some(whom) = whom {
                    let woken = &mut self.threads.of(whom).woken;
                    // Taken a moment later than the wake-up was recorded.
                    ts = if ts - woken.0 < CHAIN_AFTER_NS { woken.0 } else { ts };
                    woken.1 = chain.stack;
                }
                self.spots.add(thread.key, Spot { ts, seen: Seen::Woke, stack: chain.stack });
            }
            Change::Chain { thread, chain, .. } if chain.kind == ChainKind::Preempted => {
                let spot = Spot { ts: thread.left, seen: Seen::Preempted, stack: chain.stack };
                self.spots.add(thread.key, spot);
            }
            // Taken a moment later than the switch was recorded.
            Change::Chain { thread, chain, .. } => self.spots.slept_at(thread.key, chain.stack),
            Change::Interrupted(irq) => self.struck.add(irq),
            Change::Sampled { thread, sample } => {
                let spot = Spot { ts: world.now(), seen: Seen::Sampled, stack: sample.stack };
                self.spots.add(thread.key, spot);
            }
            Change::Ended { thread, .. } => self.ended(thread, world),
            _ => {}
        }
    }

    fn end(&mut self, _: &World, rows: &mut Rows, _: &mut Tally) {
        rows.blame = self.sums.rows(&self.once);
    }
}

impl Blame {
    /// A piece of a thread's time is settled.
    fn spent(&mut self, stretch: &Stretch, world: &World) {
        self.history.add(stretch, i64::MIN);
        let Some(thread) = world.thread(stretch.thread.pid, stretch.thread.tid) else { return };
        let whole = Whole { from: stretch.from, to: stretch.to };
        if self.struck(thread, Some(stretch)) {
            return;
        }
        match stretch.part {
            Part::Blocked => {
                let now = self.threads.of(thread);
                let goes_on = now.sleeps.filter(|sleeps| sleeps.to == stretch.from);
                now.sleeps = Some(Whole { from: goes_on.map_or(whole.from, |s| s.from), ..whole });
                let before = if goes_on.is_some() { now.mark } else { Mark::Exact };
                now.mark = before.max(stretch.mark);
            }
            Part::Dispatch => self.over(thread, Some(stretch), world),
            Part::Preempted => {
                self.over(thread, None, world);
                let now = self.threads.of(thread);
                let back = std::mem::take(&mut now.back);
                // One that yields until its next period is in a call.
                let call = back.asleep.as_ref().and_then(|asleep| asleep.call.clone());
                let of = For { call, stack: back.left_at, ..For::default() };
                let key = Key { of, ..Key::own(thread.key, Part::Preempted, PathKind::Preempted) };
                let key = (key, Tids::default());
                let most = self.without_cpu(key, thread, &back, (stretch, whole), world);
                most.over(&mut self.sums);
            }
            Part::Hardirq | Part::Softirq | Part::Vector | Part::Unexplained => {
                self.over(thread, None, world);
                // It may come in pieces, cut where others did something.
                self.threads.of(thread).struck = Some(stretch.clone());
            }
            Part::Running => {
                self.over(thread, None, world);
                self.threads.of(thread).places.works(stretch.to - stretch.from);
            }
        }
    }

    /// What a thread was struck by is over, unless `next` goes on with it; returns whether it does.
    fn struck(&mut self, thread: &Thread, next: Option<&Stretch>) -> bool {
        let struck = &mut self.threads.of(thread).struck;
        if let (Some(struck), Some(next)) = (struck.as_mut(), next)
            && struck.extend(next)
        {
            return true;
        }
        let Some(struck) = struck.take() else { return false };
        let (kind, mark) = match struck.part {
            Part::Unexplained => (PathKind::Unknown, struck.mark.max(Mark::LowerBound)),
            _ => (PathKind::Interrupt, struck.mark),
        };
        let key = Key::own(thread.key, struck.part, kind);
        let key = (Key { culprit: struck.culprit.name(), ..key }, Tids::default());
        let whole = Whole { from: struck.from, to: struck.to };
        self.sums.add(key, &thread.comm, whole.to - whole.from, whole, mark);
        false
    }

    /// A thread that has slept does so no longer, and waited for a CPU for `dispatch` since.
    fn over(&mut self, thread: &Thread, dispatch: Option<&Stretch>, world: &World) {
        let now = self.threads.of(thread);
        let Some(slept) = now.sleeps.take() else {
            let Some(dispatch) = dispatch else { return };
            // Woken on its way off the CPU: it has not slept.
            let back = std::mem::take(&mut now.back);
            let key = Key::own(thread.key, Part::Dispatch, PathKind::Dispatch);
            let whole = Whole { from: dispatch.from, to: dispatch.to };
            let key = (key, Tids::default());
            let most = self.without_cpu(key, thread, &back, (dispatch, whole), world);
            most.over(&mut self.sums);
            return;
        };
        let (back, mark, join) = (std::mem::take(&mut now.back), now.mark, now.joins);
        let woken_at = now.woken.1.filter(|_| now.woken.0 == slept.to);
        let whole = Whole { from: slept.from, to: dispatch.map_or(slept.to, |d| d.to) };
        let of = waited_for(thread, &back, world);
        let turns = of.futex().is_some_and(|futex| self.talks.ends(thread.key, futex));
        let of = For { join, turns, ..of };
        let waker = self.waker(thread.key, woken_at, slept.to, world);
        let waker_key = waker.as_ref().map(|(_, key)| *key);
        let at = Place::of(of.call.as_deref());
        let asked = waker_key.is_some_and(|waker| self.asks(thread.key, waker, at, world));
        let asleep = back.asleep.clone();
        let is_cut = !join && self.is_cut(thread.key, asleep.as_ref(), slept.to);
        let goes_on = |part: &Cut| part.of.is_at(&of) && (is_cut || waker_key.is_some());
        if !self.threads.of(thread).parts.front().is_some_and(goes_on) {
            self.apart(thread, world);
        }
        let mut wait = Wait { of, waker, asked, again: false, whole, mark };
        let mut most = Most::default();
        if let Some(waker) = waker_key {
            (wait.whole.from, most) = self.joined(thread, &wait, waker, world);
        }
        if !is_cut {
            self.waited(thread, &wait, asleep.as_ref(), slept);
            let pieces = self.pieces(thread.key, slept);
            most = most.max(self.blocked(thread, &wait, &pieces, asleep.as_ref(), world));
        }
        if let Some(dispatch) = dispatch {
            // Of a sleep until a time, what lies behind that is too much.
            let too_long = too_long(asleep.as_ref(), slept, whole);
            let key = Key::own(thread.key, Part::Dispatch, PathKind::Dispatch);
            let waker = wait.waker.as_ref().map(|(by, _)| by.clone());
            let key = (
                Key { of: wait.of.clone(), waker, asked, ..key },
                Tids { waker: waker_key.map(|waker| waker.tid), ..Tids::default() },
            );
            let share = self.without_cpu(key, thread, &back, (dispatch, too_long), world);
            most = most.max(share);
        }
        if is_cut {
            self.herd(thread, wait.of.clone(), None);
            return self.cut(thread, (slept, whole.to), (wait.of, mark), most, world);
        }
        self.herd(thread, wait.of, most.0.map(|(_, at)| at));
        most.over(&mut self.sums);
    }

    /// Sums what others did while a thread slept, in these pieces; `asleep`: in what, if that may have been too long.
    fn blocked(
        &mut self,
        thread: &Thread,
        wait: &Wait,
        pieces: &[Piece],
        asleep: Option<&Sleep>,
        world: &World,
    ) -> Most {
        let (by, waker) = wait.waker.as_ref().map(|(by, key)| (by, key.tid)).unzip();
        let mut most = Most::default();
        for piece in pieces {
            let mark = wait.mark.max(piece.mark);
            let ns = piece.len_ns();
            let culprit = piece.culprit.as_ref().and_then(Culprit::tid);
            let own = piece.depth == 0 && piece.kind == PathKind::Timer;
            let span = (piece.from, piece.to);
            let late = withheld::late(asleep.filter(|_| own), piece.culprit.as_ref(), span);
            let behind = (piece.depth > 0).then_some(piece.thread.tid);
            let tids = Tids { waker, culprit, behind };
            let key = self.key(thread.key, &wait.of, by, piece, world);
            let key = Key { asked: wait.asked, again: wait.again, ..key };
            let late_ns = late.map_or(0, |since| piece.to - since);
            let (sums, comm) = (&mut self.sums, &thread.comm);
            if late_ns > 0 {
                let late = Key { withheld: Some(Withheld::Late), ..key.clone() };
                let slept = Whole { from: wait.whole.from, to: piece.to };
                let too_long = too_long(asleep, slept, wait.whole);
                most.put(sums, (late, tids), comm, late_ns, too_long, mark);
            }
            most.put(sums, (key, tids), comm, ns - late_ns, wait.whole, mark);
        }
        most
    }

    /// A wait is over: was it the only one there?
    fn waited(&mut self, thread: &Thread, wait: &Wait, asleep: Option<&Sleep>, slept: Whole) {
        let waker = wait.waker.as_ref().map(|(_, waker)| *waker);
        let other = waker.filter(|by| by.pid == thread.key.pid && by.tid != thread.key.tid);
        let by_maker = other.map(|by| self.talks.has_made(by, thread.key));
        let places = &mut self.threads.of(thread).places;
        if asleep.is_some_and(|asleep| asleep.until.is_some()) {
            places.works(slept.to - slept.from);
        }
        places.waited(&wait.of, by_maker);
        if let (Some(by), Some(futex)) = (other, wait.of.futex())
            && self.talks.has_made(thread.key, by)
        {
            self.once.told(by, thread.key, futex, slept.to);
        }
    }

    /// A wait that has most in this row is over: was the one before it for nothing?
    fn herd(&mut self, thread: &Thread, of: For, at: Option<usize>) {
        let now = self.threads.of(thread);
        if of.lock {
            return;
        }
        let called = now.called.take();
        let of = For { turns: false, holder: None, ..of };
        let came = now.came.take();
        if let Some((called, before, _)) = came.filter(|(_, _, slept)| slept.is_at(&of))
            && self.herds.goes_back(called)
        {
            self.sums.vain(before);
        }
        now.came = called.zip(at).map(|(called, at)| (called, at, of));
    }

    /// What others did while a thread slept.
    fn pieces(&mut self, thread: ThreadKey, slept: Whole) -> Vec<Piece> {
        if self.is_too_much() {
            let why = Culprit::Unknown(Unknown::TooManyPieces);
            return vec![Piece {
                from: slept.from,
                to: slept.to,
                depth: 0,
                thread,
                by: None,
                kind: PathKind::Unknown,
                culprit: Some(why),
                wait: None,
                mark: Mark::LowerBound,
            }];
        }
        let pieces = walk(self.past(), thread, None, slept.from, slept.to);
        self.walked += pieces.len() as u64 + 1;
        pieces
    }

    fn past(&self) -> Past<'_> {
        Past { history: &self.history, tasks: &self.tasks, of_tasks: Mark::Exact }
    }

    /// Whether more pieces were looked at than what threads did is worth.
    fn is_too_much(&self) -> bool {
        self.walked > FREE_PIECES + PER_PIECE * self.history.told
    }

    /// The thread that has ended a sleep at `t`, and where it was.
    fn waker(
        &self,
        thread: ThreadKey,
        at: Option<i64>,
        t: i64,
        world: &World,
    ) -> Option<(By, ThreadKey)> {
        match self.history.of(thread)?.wake(t)?.waker {
            Waker::Thread(waker) => {
                Some((By { pid: waker.pid, comm: world.comm(waker), stack: at }, waker))
            }
            _ => None,
        }
    }

    fn key(
        &self,
        who: ThreadKey,
        of: &For,
        waker: Option<&By>,
        piece: &Piece,
        world: &World,
    ) -> Key {
        let behind = (piece.depth > 0).then(|| self.behind(piece, world));
        let by = match &piece.culprit {
            Some(Culprit::Thread(occupant)) => taker(occupant.thread, world),
            _ => Taker::Other,
        };
        Key {
            who,
            part: Part::Blocked,
            of: of.clone(),
            waker: waker.cloned(),
            asked: false,
            again: false,
            depth: (piece.depth as i32).min(MAX_DEPTH),
            through: piece.by.filter(|_| piece.depth > 1).map(|by| self.through(by, piece, world)),
            behind,
            kind: piece.kind,
            culprit: piece.culprit.as_ref().and_then(Culprit::name),
            taker: by,
            withheld: None,
        }
    }

    /// The thread whose time a piece is, and where that one was.
    fn behind(&self, piece: &Piece, world: &World) -> Behind {
        let thread = piece.thread;
        let (pid, comm) = (thread.pid, world.comm(thread));
        let nowhere = Behind { pid, comm, call: None, file: None, stack: None, sampled: false };
        let spot = match piece.kind {
            PathKind::Timer | PathKind::Device | PathKind::Outside | PathKind::Unknown => {
                self.spots.asleep(thread, piece.to)
            }
            _ => self.spots.running(thread, piece.from, piece.to),
        };
        match spot.cloned() {
            Some(Spot { seen: Seen::Slept(call, file, _), stack, .. }) => {
                Behind { call, file, stack, ..nowhere }
            }
            Some(Spot { seen, stack, .. }) => {
                Behind { stack, sampled: seen == Seen::Sampled, ..nowhere }
            }
            None => nowhere,
        }
    }

    /// A thread, or the trace, has ended; all of its time is settled.
    fn ended(&mut self, thread: &Thread, world: &World) {
        self.struck(thread, None);
        self.apart(thread, world);
        self.not_over(thread, world);
        let places = std::mem::take(&mut self.threads.of(thread).places);
        let ran = |since| self.history.of(thread.key).map_or(0, |past| past.ran_since(since));
        self.once.ended(thread.key, places, ran);
    }

    /// A thread ends, or the trace does, in a sleep.
    fn not_over(&mut self, thread: &Thread, world: &World) {
        let now = self.threads.of(thread);
        let Some(slept) = now.sleeps.take() else { return };
        let back = Back {
            asleep: thread.asleep.clone(),
            left_at: thread.left_at,
            ..std::mem::take(&mut now.back)
        };
        let (mark, now_joins) = (now.mark.max(Mark::Censored), now.joins);
        let of = For { join: now_joins, ..waited_for(thread, &back, world) };
        self.threads.of(thread).places.waited(&of, None);
        let key = Key {
            of,
            culprit: Some("not over".into()),
            ..Key::own(thread.key, Part::Blocked, PathKind::Unknown)
        };
        let key = (key, Tids::default());
        self.sums.add(key, &thread.comm, slept.to - slept.from, slept, mark);
    }
}

/// What of a sleep, and of the way to a CPU behind it, lies behind the time until which it was.
fn too_long(asleep: Option<&Sleep>, slept: Whole, whole: Whole) -> Whole {
    let due = asleep.and_then(|asleep| asleep.until);
    let from = due.map_or(whole.from, |due| due.clamp(slept.from, slept.to));
    Whole { from, ..whole }
}

/// The row that has most of a wait, and how much, ns.
#[derive(Debug, Default)]
struct Most(Option<(i64, usize)>);

impl Most {
    /// Adds so much to a row, if it is anything, which then is one of those.
    fn put(
        &mut self,
        sums: &mut Sums,
        key: (Key, Tids),
        comm: &Name,
        ns: i64,
        wait: Whole,
        mark: Mark,
    ) {
        if ns > 0 {
            self.add(ns, sums.add(key, comm, ns, wait, mark));
        }
    }

    fn add(&mut self, ns: i64, at: usize) {
        if self.0.is_none_or(|(most, _)| ns > most) {
            self.0 = Some((ns, at));
        }
    }

    fn max(mut self, other: Most) -> Most {
        other.0.into_iter().for_each(|(ns, at)| self.add(ns, at));
        self
    }

    fn over(self, sums: &mut Sums) {
        self.0.into_iter().for_each(|(_, at)| sums.over(at));
    }
}
