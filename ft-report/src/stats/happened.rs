//! How often something happened to threads, in all intervals of a kind.

use serde::Serialize;

use crate::document::{Builder, N, Section};
use ft_trace::tables::Counts;

/// Sums of what is known; missing is what is known of none of them: all without a kernel stream, page faults where the group
/// `fault` was not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Happened {
    /// Times that the thread left its CPU to wait for something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleeps: Option<u64>,
    /// Times that it left its CPU although it could run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switches: Option<u64>,
    /// Times that it came to another CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moves: Option<u64>,
    /// Page faults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<u64>,
    /// Of these, major ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub major_faults: Option<u64>,
}

impl Happened {
    /// Adds those of a row.
    pub(crate) fn add(&mut self, counts: Option<Counts>) {
        let counts = counts.map_or([None; 5], Counts::to_array);
        let sums = [
            &mut self.sleeps,
            &mut self.switches,
            &mut self.moves,
            &mut self.faults,
            &mut self.major_faults,
        ];
        for (sum, count) in sums.into_iter().zip(counts) {
            if let Some(count) = count.and_then(|count| u64::try_from(count).ok()) {
                *sum = Some(sum.unwrap_or(0).saturating_add(count));
            }
        }
    }

    fn is_something(self) -> bool {
        [self.sleeps, self.switches, self.moves, self.faults].iter().any(|n| n.unwrap_or(0) > 0)
    }
}

/// Adds the table of what happened, if anything did; `t` has the names of the rows.
pub(crate) fn table<T>(
    s: &mut Section,
    t: Builder<T>,
    title: &'static str,
    of: impl Fn(&T) -> Happened + Copy,
) {
    let is_something = t.any(|item| of(item).is_something());
    if is_something {
        let t = t
            .notes("slept", |item| of(item).sleeps.map(N))
            .notes("lost the CPU", |item| of(item).switches.map(N))
            .notes("moved", |item| of(item).moves.map(N))
            .notes("faults", |item| of(item).faults.map(N))
            .notes("major", |item| of(item).major_faults.map(N));
        s.table(t.titled(title));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_summed_and_what_is_not_is_missing() {
        let mut sum = Happened::default();
        sum.add(None);
        assert_eq!(sum, Happened::default());
        let counts = Counts { sleeps: 1, switches: 2, moves: 3, faults: None };
        sum.add(Some(counts));
        assert_eq!((sum.sleeps, sum.moves, sum.faults), (Some(1), Some(3), None));
        assert!(
            sum.is_something()
                && !Happened { sleeps: Some(0), ..Happened::default() }.is_something()
        );
        sum.add(Some(Counts { faults: Some([5, 1]), ..counts }));
        assert_eq!((sum.switches, sum.faults, sum.major_faults), (Some(4), Some(5), Some(1)));
    }
}
