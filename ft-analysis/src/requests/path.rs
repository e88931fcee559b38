//! The critical path of a request: what it waited for last, at each moment.
//!
//! **Goal.** Pieces that tile the request to the nanosecond. While its thread ran, was interrupted, or waited for a CPU,
//! that is a piece; while it slept, what whoever woke it did meanwhile, and so on, until something ran, a timer or a
//! device was waited for, or nobody knows.
//!
//! **Rule.** From the end of the request back in time, on one thread at a time. A thread that sleeps was woken by another
//! at the end of its sleep: the walk goes on there, and comes back when it has reached the begin of the sleep. Whoever sleeps
//! wakes nobody, so the threads between which the walk goes back and forth are different ones, at most as many as there
//! are; they lie on a list, not on the stack. Each moment is told once, so the cost is that of the pieces, and of a search
//! in the waker's past for each wait.
//!
//! This is the backward walk over the graph of execution of Yang and Miller (*Critical path analysis for the execution of
//! parallel and distributed programs*, ICDCS 1988), on the kernel's wake-ups as in Giraldeau and Dagenais (*Wait analysis
//! of distributed systems using kernel tracing*, IEEE TPDS 27(8), 2016): of a wait, only what the waker did within it is
//! looked at.
//!
//! **Situations.**
//! - *Woken by an interrupt*: the whole sleep is the timer's, or the device's.
//! - *Woken by a thread that is not observed*: of that one only its wake-ups of others are known. The whole sleep is its own.
//! - *A waker that was born within the wait*: before that, the thread that made it.
//! - *No record*, *no waking*, *a waker that is not known*, or one that slept itself by its records: unknown.
//! - *The request's end lies in a sleep* (of an event, by the error of the clock): unknown; who ends it is not recorded yet.

use super::history::{History, Wake, Waker};
use crate::world::{Culprit, Stretch};
use ft_trace::Mark;
use ft_trace::ids::{Name, ThreadKey};
use ft_trace::tables::{Part, PathKind};

/// Waits through which a walk goes at once. As many threads sleep, each for the next; of more the last one is not
/// looked into.
const MAX_DEPTH: usize = 256;

/// Pieces of one path; what lies before is one piece that is unknown.
const MAX_PIECES: usize = 1 << 16;

/// A piece of a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) depth: usize,
    pub(super) thread: ThreadKey,
    pub(super) kind: PathKind,
    pub(super) culprit: Option<Culprit>,
    /// What is waited for in the innermost wait that it is part of, and by whom.
    pub(super) wait: Option<(Name, ThreadKey)>,
    pub(super) mark: Mark,
}

/// A wait into which the walk has gone.
#[derive(Debug)]
struct Wait {
    /// Who waits.
    thread: ThreadKey,
    /// Since when, or since the begin of the wait around it.
    since: i64,
    what: Name,
    mark: Mark,
}

/// The path that ends in `thread` at `to` and goes back to `from`; the oldest piece first.
pub(super) fn walk(history: &History, thread: ThreadKey, from: i64, to: i64) -> Vec<Piece> {
    let mut walk = Walk { history, from, t: to, thread, waits: Vec::new(), pieces: Vec::new() };
    while walk.t > from {
        if walk.pieces.len() >= MAX_PIECES {
            // Whose it is inside of a wait is not known; all of it is of the thread that waits.
            if let Some(outermost) = walk.waits.drain(..).next() {
                walk.thread = outermost.thread;
            }
            walk.unknown(from, "too many pieces", None);
        } else {
            walk.step();
        }
    }
    walk.pieces.reverse();
    walk.pieces
}

struct Walk<'a> {
    history: &'a History,
    from: i64,
    /// All behind is told.
    t: i64,
    /// Where it is.
    thread: ThreadKey,
    waits: Vec<Wait>,
    pieces: Vec<Piece>,
}

impl Walk<'_> {
    /// Until when the walk may go on in this thread.
    fn floor(&self) -> i64 {
        self.waits.last().map_or(self.from, |wait| wait.since)
    }

    fn step(&mut self) {
        let floor = self.floor();
        if self.t <= floor
            && let Some(wait) = self.waits.pop()
        {
            self.thread = wait.thread;
            return;
        }
        let past = self.history.of(self.thread);
        let step = past.map_or(Err(i64::MIN), |past| past.before(self.t));
        let wake = past.and_then(|past| past.wake(self.t));
        let step = match step {
            Ok(step) => step,
            Err(_) if wake.is_some_and(|wake| wake.birth) => {
                return self.follow(floor, "its birth".into(), Mark::Exact, wake);
            }
            Err(before) => {
                let from = before.max(floor);
                let why = if from < self.history.since { "not kept" } else { "no record" };
                return self.unknown(from, why, None);
            }
        };
        let kind = match step.part {
            Part::Running => PathKind::Running,
            Part::Preempted => PathKind::Preempted,
            Part::Dispatch => PathKind::Dispatch,
            Part::Hardirq | Part::Softirq | Part::Vector => PathKind::Interrupt,
            Part::Unexplained => PathKind::Unknown,
            Part::Blocked => {
                let since = past.map_or(floor, |past| past.blocked_since(self.t, floor));
                let what = step.culprit.name().unwrap_or_default();
                // In the middle of a sleep: its end is another moment.
                let wake = wake.filter(|_| step.to == self.t);
                return self.follow(since, what, step.mark, wake);
            }
        };
        let culprit = known(step);
        let mark = step.mark.max(Mark::lower_bound_if(kind == PathKind::Unknown));
        self.tell(step.from.max(floor), kind, culprit, None, mark);
    }

    /// The thread sleeps since then, until now, when `wake` ends it.
    fn follow(&mut self, since: i64, what: Name, mark: Mark, wake: Option<&Wake>) {
        let mark = mark.max(wake.map_or(Mark::Exact, |wake| wake.mark));
        let interrupt = |which: &Name| Some(Culprit::Interrupt(which.clone()));
        let why = match wake.map(|wake| &wake.waker) {
            Some(Waker::Timer(which)) => {
                return self.tell(since, PathKind::Timer, interrupt(which), Some(what), mark);
            }
            Some(Waker::Device(which)) => {
                return self.tell(since, PathKind::Device, interrupt(which), Some(what), mark);
            }
            Some(Waker::Outside(comm, tid)) => {
                let who = Culprit::outside(comm.clone(), *tid);
                return self.tell(since, PathKind::Outside, Some(who), Some(what), mark);
            }
            Some(Waker::Thread(waker)) if self.waits.len() < MAX_DEPTH => {
                let sleeps = *waker == self.thread || self.waits.iter().any(|w| w.thread == *waker);
                if !sleeps {
                    let mark = self.waits.last().map_or(mark, |around| around.mark.max(mark));
                    let wait = Wait { thread: self.thread, since, what, mark };
                    self.waits.push(wait);
                    self.thread = *waker;
                    return;
                }
                "woken by one that sleeps"
            }
            Some(Waker::Thread(_)) => "too many waits",
            Some(Waker::Unknown(why)) => why,
            None => "no waking",
        };
        self.unknown(since, why, Some(what));
    }

    fn unknown(&mut self, from: i64, why: &'static str, wait: Option<Name>) {
        let why = Some(Culprit::Cause(why, None));
        self.tell(from, PathKind::Unknown, why, wait, Mark::LowerBound);
    }

    /// Tells a piece up to now; `wait`: what the thread itself waits for in it.
    fn tell(
        &mut self,
        from: i64,
        kind: PathKind,
        culprit: Option<Culprit>,
        wait: Option<Name>,
        mark: Mark,
    ) {
        let around = self.waits.last();
        let piece = Piece {
            from,
            to: self.t,
            depth: self.waits.len(),
            thread: self.thread,
            kind,
            culprit,
            mark: around.map_or(mark, |wait| wait.mark.max(mark)),
            wait: wait
                .map(|what| (what, self.thread))
                .or_else(|| around.map(|wait| (wait.what.clone(), wait.thread))),
        };
        self.t = from;
        match self.pieces.last_mut() {
            Some(later) if later.goes_on(&piece) => later.from = from,
            _ => self.pieces.push(piece),
        }
    }
}

impl Piece {
    pub(super) fn len_ns(&self) -> i64 {
        self.to - self.from
    }

    /// The other one, which lies before it, is the same but for its time.
    fn goes_on(&self, before: &Piece) -> bool {
        self.from == before.to
            && (self.depth, self.thread, self.kind, self.mark)
                == (before.depth, before.thread, before.kind, before.mark)
            && self.culprit == before.culprit
            && self.wait == before.wait
    }
}

/// Who or what took a piece of a thread's time, where that is somebody.
fn known(step: &Stretch) -> Option<Culprit> {
    match &step.culprit {
        Culprit::Nobody => None,
        Culprit::Cause(..) if step.part != Part::Unexplained => None,
        culprit => Some(culprit.clone()),
    }
}
