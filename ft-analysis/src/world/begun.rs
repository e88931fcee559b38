//! Whether all that a thread is in is known: what began before it could be seen is unknown, not nothing.
//!
//! **Goal.** A count of what goes on in a thread, such as its holds or its scopes, is exact only if none of it can have begun unseen.
//!
//! **Rule.** For each [`Nest`] of a thread, that is so while all of these hold; else such a count is a lower bound.
//! - Each site that told of the nest was on when the thread began ([`SiteRow::on_ns`](ft_trace::tables::SiteRow::on_ns)):
//!   since its program began to trace, or since before the kernel recorded the thread's begin or that of its program.
//!   What a program begins before it starts to trace is its own to avoid: `ft_user::init` says so.
//! - No event of the thread was lost since then.
//! - Nothing has ended in it of which the begin was not recorded: that shows that more is missing.
//!
//! Nothing that is recorded later can show that a thread is in nothing else: an end shows that there was a begin, and not that it was the
//! last. So only a begin ends the doubt: of the thread, or of a program (exec), with which all is over that went on before.
//!
//! **A forked process** begins in all that the thread was in which forked it. Its first thread is known if that one was, and in nothing.
//!
//! Of other states the same is told where they are kept: in which system call a thread is, before the first of its rows that shows
//! it ([`super::places`]); what it does, before its first switch ([`super::account`]); in which call of a function, by ends without a begin
//! (`functions.rs`); in which poll, by ends without a begin (`tasks/`). An interrupt that began before the recording has no row.

use ft_trace::Mark;

/// What begins and ends within itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nest {
    /// Holds of locks.
    Locks,
    /// Scopes.
    Scopes,
}

/// What is known of the begin of one thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Begun {
    of: [OfNest; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct OfNest {
    /// In nothing at that time; `None` where no such time is known.
    since: Option<i64>,
    seen: Seen,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Seen {
    /// No event yet.
    #[default]
    Nothing,
    /// All of it.
    All,
    /// Not all, perhaps.
    Some,
}

impl Begun {
    /// The thread begins now, or its memory is replaced.
    pub(super) fn anew(&mut self, now: i64) {
        self.of = [OfNest { since: Some(now), seen: Seen::Nothing }; 2];
    }

    /// The first thread of a process that is forked by a thread of which `parent` is known, which is in something of a nest or in `nothing`.
    pub(super) fn forked(parent: Option<&Begun>, nothing: impl Fn(Nest) -> bool) -> Begun {
        let of = |nest: Nest| {
            let is_known = parent.is_some_and(|p| p.of[nest as usize].seen == Seen::All);
            // Whatever it has inherited was on in its parent.
            OfNest { since: (is_known && nothing(nest)).then_some(i64::MAX), seen: Seen::Nothing }
        };
        Begun { of: [Nest::Locks, Nest::Scopes].map(of) }
    }

    /// Events of the thread were lost.
    pub(super) fn lose(&mut self) {
        self.of = [OfNest { since: None, seen: Seen::Some }; 2];
    }

    /// An event of a nest, whose site is on since then, if that is known.
    pub(super) fn event(&mut self, nest: Nest, on_ns: Option<i64>) {
        let of = &mut self.of[nest as usize];
        let is_known = on_ns.is_some_and(|on| on == 0 || of.since.is_some_and(|since| on <= since));
        of.seen = if is_known && of.seen != Seen::Some { Seen::All } else { Seen::Some };
    }

    /// Something of a nest has ended, and its begin was not recorded.
    pub(crate) fn ended_unseen(&mut self, nest: Nest) {
        self.of[nest as usize].seen = Seen::Some;
    }

    /// Mark of a count of what goes on in the nest.
    pub(crate) fn mark(&self, nest: Nest) -> Mark {
        Mark::lower_bound_if(self.of[nest as usize].seen == Seen::Some)
    }
}

#[cfg(test)]
mod tests;
