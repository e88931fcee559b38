//! How far a figure can be believed: the three words of the column `mark`.
//!
//! They mean the same in every table, in JSON, and beside the figures of every report:
//!
//! | mark | an interval with it | a statistic with it |
//! |---|---|---|
//! | `exact` | no loss and no edge of the trace touches it; all is right within the clock bound | is made of such intervals alone |
//! | `lower bound` | begin and end were recorded, so its length holds; records in between are missing, so each named part is at least what is stated, and *unexplained* at most | is at least what is stated |
//! | `censored` | its begin or its end lies outside the trace or in a loss; its length is not known beyond what is stated | leaves such intervals out, and tells how many |
//!
//! Nothing censored is completed with a guess. Holds, waits and gaps that are censored have no row, and are
//! counted by reason (`Incomplete`, `Races`, `Unaccounted`); a wake-up across a loss
//! has a row, because its begin and its end are facts, and only what lies between may be two wake-ups.

use std::sync::LazyLock;

use crate::ids::Name;

/// A mark; the worst of several is the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub enum Mark {
    /// Right within the clock bound.
    #[default]
    #[serde(rename = "exact")]
    Exact,
    /// At least this.
    #[serde(rename = "lower bound")]
    LowerBound,
    /// Not known beyond what is stated.
    #[serde(rename = "censored")]
    Censored,
}

impl Mark {
    /// The word in tables and reports.
    pub fn word(self) -> &'static str {
        match self {
            Mark::Exact => "exact",
            Mark::LowerBound => "lower bound",
            Mark::Censored => "censored",
        }
    }

    /// The mark of a row; a word that is not known promises nothing.
    pub fn of(word: &str) -> Mark {
        match word {
            "exact" => Mark::Exact,
            "lower bound" => Mark::LowerBound,
            _ => Mark::Censored,
        }
    }

    /// `lower bound` if it is so, else `exact`.
    pub fn lower_bound_if(touched: bool) -> Mark {
        if touched { Mark::LowerBound } else { Mark::Exact }
    }
}

impl From<Mark> for Name {
    /// The same three allocations every time: each row has a mark or two, and equal addresses are equal words to whoever
    /// writes the column.
    fn from(mark: Mark) -> Name {
        static WORDS: LazyLock<[Name; 3]> = LazyLock::new(|| {
            [Mark::Exact, Mark::LowerBound, Mark::Censored].map(|mark| mark.word().into())
        });
        WORDS[mark as usize].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_and_unknown_ones_promise_nothing() {
        for mark in [Mark::Exact, Mark::LowerBound, Mark::Censored] {
            assert_eq!(Mark::of(mark.word()), mark);
            assert_eq!(&*Name::from(mark), mark.word());
            assert_eq!(serde_json::to_value(mark).unwrap(), mark.word());
        }
        assert_eq!(Mark::of("no such mark"), Mark::Censored);
        assert!(Mark::Exact < Mark::LowerBound && Mark::LowerBound < Mark::Censored);
    }
}
