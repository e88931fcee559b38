//! A process that is recorded through its memfd, and when it is looked at.

use std::sync::Arc;
use std::time::Instant;

use super::looks::LOOKS;
use crate::collect::inspect::Inspected;
use crate::collect::shares::Place;
use crate::collect::user::Source;

/// A process that is recorded through its memfd.
pub(super) struct Recorded {
    pub(super) source: Source,
    pub(super) subject: Arc<Inspected>,
    /// When it is looked at next.
    pub(super) next_look: Instant,
    /// There are sites to be enabled from outside.
    pub(super) is_to_be_enabled: bool,
    /// Triggers that were there when it was last asked for that; `None` in a process that does it itself, as it was
    /// told when it registered.
    enabled: Option<usize>,
    /// The last look at it was asked for, and is done.
    pub(super) is_last: bool,
    pub(super) is_done: bool,
    /// The last look at its rings has begun: it has ended, or executed another program.
    pub(super) is_over: bool,
    /// It has switched off its sites, for the agent had not run: when that had last run, CLOCK_MONOTONIC ns.
    pub(super) taken_back_ns: Option<i64>,
    /// It was said that something else has changed its sites.
    pub(super) is_told_of_changes: bool,
    /// Given back when it is not recorded any more; one that was attached has none.
    _places: Vec<Place>,
}

impl Recorded {
    pub(super) fn new(source: Source, subject: Arc<Inspected>, places: Vec<Place>) -> Recorded {
        Recorded {
            source,
            subject,
            next_look: Instant::now() + LOOKS,
            is_to_be_enabled: false,
            enabled: None,
            is_last: false,
            is_done: false,
            is_over: false,
            taken_back_ns: None,
            is_told_of_changes: false,
            _places: places,
        }
    }

    /// One that does not know of the agent: whatever sites it declares are enabled from outside, now and later.
    pub(super) fn unaware(mut self) -> Recorded {
        self.enabled = Some(0);
        self
    }

    /// Sites are to be enabled of which it was not told when it registered.
    pub(super) fn enable_from_outside(&mut self) {
        self.enabled = Some(0);
        self.enable_soon();
    }

    /// Nothing more is written: the process has ended, or executed another program.
    pub(super) fn has_ended(&self) -> bool {
        self.is_over || self.source.identity().has_ended()
    }

    /// Has sites enabled from outside as soon as somebody can do it.
    pub(super) fn enable_soon(&mut self) {
        self.is_to_be_enabled = true;
        self.next_look = Instant::now();
    }

    /// Has those enabled that a process has declared which does not know of the agent.
    pub(super) fn enable_declared(&mut self) {
        let has_more = |enabled| enabled < self.source.triggers().len();
        // Once: to ask costs a copy of their names.
        if !self.is_to_be_enabled && self.enabled.is_some_and(has_more) {
            self.enable_soon();
        }
    }

    /// Somebody enables what is there.
    pub(super) fn is_being_enabled(&mut self) {
        self.is_to_be_enabled = false;
        if let Some(enabled) = &mut self.enabled {
            *enabled = self.source.triggers().len();
        }
    }
}
