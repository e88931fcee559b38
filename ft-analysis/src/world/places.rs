//! Where a thread is: in a system call, in none, in a page fault there; and its account divided by that.
//!
//! **Goal.** All time of a thread by the call in which it was, so that the parts of all sums are its account.
//!
//! **Rule.** [`Places`] receives every stretch that the account attributes, once, and cuts it at the ends of the call and
//! the fault that the thread is in: their rows come at their begin and tell their length. A fault lies within the call or
//! outside of calls; its time is its own.
//!
//! **Situations.**
//! - *A thread that is seen for the first time*: it is in a call or in none. Which, its first row says: one that only
//!   returns was under way, one that is entered shows that none was, and so does a fault of its own code.
//! - *A call that does not return* (`exit`, the one in which the thread is at the end): it lasts for the rest.
//! - *A call that goes on after a signal without a handler* (`restart_syscall`): it is the one that was interrupted. What
//!   the kernel makes anew under its own name has a row, and is a call, of its own.
//! - *A handler of a signal*: it runs when the call has returned, outside of it; `rt_sigreturn` is a call like others.
//! - *A return without an entry, of a thread that was seen outside of calls*: the entry is missing, and that time counts
//!   as outside. Such a thread is `incomplete`.
//! - *A fault without an end*: it became a signal. Its time has no place of its own.
//!
//! Kept only of threads that have such rows: what was before the first of them is the account until then.

use super::account::Stretches;
use ft_trace::event::{LeanFault, LeanSyscall};
use ft_trace::ids::Name;
use ft_trace::tables::{CallSeen, Decomposition, FaultKind, FileKind, Part, Place};

/// Places of one thread that are told apart.
///
/// Limit: one row `(others)`, for each kind of fault; sums stay exact.
/// Shown by: `calls_that_do_not_fit_share_a_row`.
const MAX_PLACES: usize = 256;

/// `-ERESTART_RESTARTBLOCK` (include/linux/errno.h): the next call of the thread may be `restart_syscall`.
const RESTARTS: i64 = -516;

/// Where a thread is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct At {
    pub(crate) place: Place,
    pub(crate) call: Option<Name>,
    pub(crate) file: Option<FileKind>,
    pub(crate) fault: Option<FaultKind>,
}

impl At {
    /// Outside of calls, or perhaps.
    pub(crate) fn outside(place: Place) -> At {
        At { place, call: None, file: None, fault: None }
    }

    /// In a call.
    fn call(e: &LeanSyscall) -> At {
        At { place: Place::Call, call: Some(e.name.clone()), file: e.file, fault: None }
    }
}

/// The time of one place.
#[derive(Clone, Debug)]
pub(crate) struct Sum {
    pub(crate) at: At,
    /// Calls that were entered, or faults.
    pub(crate) count: i64,
    pub(crate) unfinished: i64,
    pub(crate) begun_before: i64,
    pub(crate) parts: Decomposition,
}

impl Sum {
    pub(crate) fn new(at: At, parts: Decomposition) -> Sum {
        Sum { at, count: 0, unfinished: 0, begun_before: 0, parts }
    }
}

/// The places of one thread.
#[derive(Debug)]
pub(crate) struct Places {
    sums: Vec<Sum>,
    /// Which sum is that of no call, and whether that is known.
    base: usize,
    known: bool,
    /// What it is in, and until when.
    call: Option<(usize, i64)>,
    fault: Option<(usize, i64)>,
    /// A call that a signal has interrupted.
    interrupted: Option<usize>,
    /// An entry was missing.
    pub(crate) incomplete: bool,
}

impl Places {
    /// Of a thread whose account is `total` by now.
    pub(super) fn new(total: Decomposition) -> Places {
        Places {
            sums: vec![Sum::new(At::outside(Place::Unknown), total)],
            base: 0,
            known: false,
            call: None,
            fault: None,
            interrupted: None,
            incomplete: false,
        }
    }

    /// All sums.
    pub(crate) fn sums(&self) -> &[Sum] {
        &self.sums
    }

    /// Calls that were entered.
    pub(super) fn entered(&self) -> i64 {
        let own = |sum: &&Sum| sum.at.call.is_some() && sum.at.fault.is_none();
        self.sums.iter().filter(own).map(|sum| sum.count).sum()
    }

    /// Where the thread is at `t`, which is not before its newest record.
    pub(crate) fn at(&self, t: i64) -> &At {
        let open = [self.fault, self.call].into_iter().flatten().find(|(_, end)| t < *end);
        &self.sums[open.map_or(self.base, |(at, _)| at)].at
    }

    /// A row of a call; the account was advanced to its begin.
    pub(super) fn calls(&mut self, e: &LeanSyscall) {
        self.fault = None;
        self.call = None;
        if e.seen == CallSeen::Return {
            if self.known {
                self.incomplete = true;
                let at = self.find(At::call(e));
                self.sums[at].begun_before += 1;
            } else {
                self.resolve(&At::call(e));
                self.sums[0].begun_before += 1;
                self.base = self.find(At::outside(Place::User));
            }
            self.interrupted = None;
            return;
        }
        self.resolve(&At::outside(Place::User));
        let goes_on = self.interrupted.take().filter(|_| &*e.name == "restart_syscall");
        let at = goes_on.unwrap_or_else(|| {
            let at = self.find(At::call(e));
            self.sums[at].count += 1;
            at
        });
        let end = match e.seen {
            CallSeen::Entry => {
                self.sums[at].unfinished += 1;
                i64::MAX
            }
            _ => e.ts.0.saturating_add(e.dur.max(0)),
        };
        self.interrupted = (e.ret == RESTARTS && e.seen == CallSeen::Whole).then_some(at);
        self.call = Some((at, end));
    }

    /// A page fault; the account was advanced to its begin.
    pub(super) fn faults(&mut self, e: &LeanFault) {
        if !e.in_kernel {
            self.resolve(&At::outside(Place::User));
        }
        let (Some(kind), Some(dur)) = (e.kind, e.dur) else { return };
        self.fault = None;
        let at = At { fault: Some(kind), ..self.at(e.ts.0).clone() };
        let at = self.find(at);
        self.sums[at].count += 1;
        self.fault = Some((at, e.ts.0.saturating_add(dur.max(0))));
    }

    /// Where the thread was until now, unless that is known. All sums that there are until then are of that.
    fn resolve(&mut self, was: &At) {
        if !std::mem::replace(&mut self.known, true) {
            for sum in &mut self.sums {
                sum.at = At { fault: sum.at.fault, ..was.clone() };
            }
        }
    }

    /// The sum of a place, or the one that it shares with others.
    fn find(&mut self, at: At) -> usize {
        if let Some(found) = self.sums.iter().position(|sum| sum.at == at) {
            return found;
        }
        // Room is left for that of no call, and for the shared ones with each kind of fault.
        if self.sums.len() < MAX_PLACES - 2 || at.call.is_none() {
            self.sums.push(Sum::new(at, Decomposition::default()));
            return self.sums.len() - 1;
        }
        let others = At { call: Some("(others)".into()), file: None, ..at };
        self.sums.iter().position(|sum| sum.at == others).unwrap_or_else(|| {
            self.sums.push(Sum::new(others, Decomposition::default()));
            self.sums.len() - 1
        })
    }
}

impl Stretches for Places {
    fn stretch(&mut self, start: i64, end: i64, part: Part, _: Option<&Name>) {
        let mut at = start;
        while at < end {
            self.fault = self.fault.filter(|(_, end)| at < *end);
            self.call = self.call.filter(|(_, end)| at < *end);
            let (sum, until) = self.fault.or(self.call).unwrap_or((self.base, i64::MAX));
            let until = until.min(end);
            *self.sums[sum].parts.part_mut(part) += until - at;
            at = until;
        }
    }
}

impl Stretches for Option<Box<Places>> {
    #[inline]
    fn stretch(&mut self, start: i64, end: i64, part: Part, which: Option<&Name>) {
        if let Some(places) = self {
            places.stretch(start, end, part, which);
        }
    }
}
