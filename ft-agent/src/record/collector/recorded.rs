//! A process that is recorded through its memfd, and when it is looked at.

use std::sync::Arc;
use std::time::Instant;

use super::looks::LOOKS;
use crate::collect::inspect::Subject;
use crate::collect::shares::Place;
use crate::collect::user::Source;

/// A process that is recorded through its memfd.
pub(super) struct Recorded {
    pub(super) source: Source,
    pub(super) subject: Arc<Subject>,
    /// When it is looked at next.
    pub(super) next_look: Instant,
    /// There are sites to be enabled from outside.
    pub(super) is_to_be_enabled: bool,
    /// The last look at it was asked for, and is done.
    pub(super) is_last: bool,
    pub(super) is_done: bool,
    /// Given back when it is not recorded any more; one that was attached has none.
    _places: Vec<Place>,
}

impl Recorded {
    pub(super) fn new(source: Source, subject: Arc<Subject>, places: Vec<Place>) -> Recorded {
        let (is_to_be_enabled, is_last, is_done) = (false, false, false);
        let next_look = Instant::now() + LOOKS;
        Recorded { source, subject, next_look, is_to_be_enabled, is_last, is_done, _places: places }
    }
}
