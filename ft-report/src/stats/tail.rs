//! Percentiles up to 99.99 %, as far as there are samples for them.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::{Distribution, EXACT};
use crate::document::{Of, Section};
use crate::text;

/// Percentiles of durations, nearest ranks. With too few samples (99.99 % wants 10,000, 99 % wants 100) a percentile would
/// be the maximum by another name: it is null. Without any, so are the median and the longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// There are samples.
    any: bool,
    /// Median, ns.
    pub p50_ns: i64,
    /// 90 % are not longer, ns.
    pub p90_ns: Option<i64>,
    /// 99 % are not longer, ns.
    pub p99_ns: Option<i64>,
    /// 99.9 % are not longer, ns.
    pub p999_ns: Option<i64>,
    /// 99.99 % are not longer, ns.
    pub p9999_ns: Option<i64>,
    /// Longest, ns.
    pub max_ns: i64,
    /// Percentiles are exact; else at most 0.1 % too high.
    pub percentiles_exact: bool,
}

impl Tail {
    /// Of a distribution.
    pub fn of(d: &mut Distribution) -> Tail {
        Tail {
            any: d.count() > 0,
            p50_ns: d.percentile(50.0),
            p90_ns: d.supported_percentile(90.0),
            p99_ns: d.supported_percentile(99.0),
            p999_ns: d.supported_percentile(99.9),
            p9999_ns: d.supported_percentile(99.99),
            max_ns: d.max(),
            percentiles_exact: d.exact(),
        }
    }

    /// Says how far percentiles of these can be believed, where they are not exact.
    pub(crate) fn legend<'a>(
        s: &mut Section,
        thing: &'static str,
        mut tails: impl Iterator<Item = &'a Tail>,
    ) {
        if tails.any(|tail| !tail.percentiles_exact) {
            s.say(text!(
                "Percentiles of more than {} are at most 0.1 % too high.",
                Of(EXACT as u64, thing)
            ));
        }
    }
}

impl Serialize for Tail {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let known = |ns| self.any.then_some(ns);
        let mut fields = serializer.serialize_struct("Tail", 7)?;
        fields.serialize_field("p50_ns", &known(self.p50_ns))?;
        fields.serialize_field("p90_ns", &self.p90_ns)?;
        fields.serialize_field("p99_ns", &self.p99_ns)?;
        fields.serialize_field("p999_ns", &self.p999_ns)?;
        fields.serialize_field("p9999_ns", &self.p9999_ns)?;
        fields.serialize_field("max_ns", &known(self.max_ns))?;
        fields.serialize_field("percentiles_exact", &self.percentiles_exact)?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_nothing_neither_the_median_nor_the_longest_is_known() {
        let mut d = Distribution::default();
        let json = |d: &mut Distribution| serde_json::to_value(Tail::of(d)).unwrap();
        let none = json(&mut d);
        assert!(none["p50_ns"].is_null() && none["max_ns"].is_null(), "{none}");
        d.add(0);
        assert_eq!(json(&mut d)["p50_ns"], 0);
        assert_eq!(json(&mut d)["max_ns"], 0);
    }

    #[test]
    fn a_percentile_stands_where_there_are_samples_for_it() {
        let check = |n: i64, supported: [bool; 4]| {
            let mut d = Distribution::default();
            (1..=n).for_each(|v| d.add(v));
            let t = Tail::of(&mut d);
            let found = [t.p90_ns, t.p99_ns, t.p999_ns, t.p9999_ns].map(|p| p.is_some());
            assert_eq!(found, supported, "{n}");
            let below_max = |p: Option<i64>| p.is_none_or(|p| p < t.max_ns);
            assert!([t.p90_ns, t.p99_ns, t.p999_ns, t.p9999_ns].into_iter().all(below_max), "{n}");
        };
        check(0, [false; 4]);
        check(9, [false; 4]);
        check(10, [true, false, false, false]);
        check(99, [true, false, false, false]);
        check(100, [true, true, false, false]);
        check(1_000, [true, true, true, false]);
        check(9_999, [true, true, true, false]);
        check(10_000, [true; 4]);
    }
}
