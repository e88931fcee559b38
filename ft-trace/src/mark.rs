//! How far a figure can be believed: the four words of the column `mark`.
//!
//! They mean the same in every table, in JSON, and beside the figures of every report:
//!
//! | mark | an interval with it | a statistic with it |
//! |---|---|---|
//! | `exact` | no loss and no edge of the trace touches it; all is right within the clock bound | is made of such intervals alone |
//! | `disturbed` | as `exact`; but the thread, or one of its process that it waited for, waited for room in the tracer's ring in it (`record --on-full wait`), so without the tracer it would have been another | contains such |
//! | `lower bound` | begin and end were recorded, so its length holds; records in between are missing, so each named part is at least what is stated, and *unexplained* at most | is at least what is stated |
//! | `censored` | its begin or its end lies outside the trace or in a loss; its length is not known beyond what is stated | leaves such intervals out, and says how many |
//!
//! Nothing censored is completed with a guess. Holds, waits and gaps that are censored have no row, and are
//! counted by reason (`Incomplete`, `Races`, `Unaccounted`); a wake-up across a loss
//! has a row, because its begin and its end are facts, and only what lies between may be two wake-ups.

use crate::words::words;

words! {
    /// A mark; the worst of several is the largest.
    pub enum Mark {
        /// Right within the clock bound.
        Exact = "exact",
        /// So it was, and the tracer itself has changed it.
        Disturbed = "disturbed",
        /// At least this.
        LowerBound = "lower bound",
        /// Not known beyond what is stated; an unknown word promises no more.
        Censored = "censored",
        _ => Censored
    }
}

#[expect(
    clippy::derivable_impls,
    reason = "the attribute of a variant would be in the way of its documentation"
)]
impl Default for Mark {
    fn default() -> Mark {
        Mark::Exact
    }
}

impl Mark {
    /// `lower bound` if it is so, else `exact`.
    pub fn lower_bound_if(touched: bool) -> Mark {
        if touched { Mark::LowerBound } else { Mark::Exact }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_several_is_the_largest() {
        assert!(Mark::Exact < Mark::Disturbed && Mark::Disturbed < Mark::LowerBound);
        assert!(Mark::LowerBound < Mark::Censored);
        assert_eq!(Mark::default(), Mark::Exact);
    }
}
