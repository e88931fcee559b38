//! By what slots are judged: the sites that are known, and the times that can be.

use std::ops::Range;

use crate::clock::{ClockModel, Cursor};
use crate::convert::registry::Registry;

/// Times further from the samples are not believed.
///
/// Limit: the event is rejected, and counted in `loss`.
/// Shown by: `hostile_slots_are_counted_and_the_rest_is_used`, `nothing_happens_after_what_was_collected_later`.
pub(super) const MARGIN_NS: i64 = 3_600_000_000_000;

/// So much later than a clock sample nothing has happened that was collected before it: CPUs' counters are less far apart.
///
/// Limit: as `MARGIN_NS`.
const LATEST_NS: i64 = 1_000_000;

/// What judging needs.
pub(in crate::convert) struct Judge<'a> {
    pub(super) registry: &'a Registry,
    pub(super) model: &'a ClockModel,
    pub(super) cursor: Cursor<'a>,
    /// Times that are believed, and times between the samples.
    pub(super) believed: Range<u64>,
    pub(super) sampled: Range<u64>,
}

impl<'a> Judge<'a> {
    /// A judge by this registry and clock.
    pub(in crate::convert) fn new(registry: &'a Registry, model: &'a ClockModel) -> Judge<'a> {
        let (believed, sampled) = (model.range(MARGIN_NS), model.range(0));
        Judge { registry, model, cursor: model.cursor(), believed, sampled }
    }

    /// All that it judges was collected before the last clock sample, so nothing can have happened later, whatever a program
    /// says.
    pub(in crate::convert) fn all_before_the_last_sample(self) -> Judge<'a> {
        let believed = self.believed.start..self.model.range(LATEST_NS).end;
        Judge { believed, ..self }
    }
}
