//! Conditions under which a comparison fails: `hold book p99 > +10%`.
//!
//! ```text
//! CONDITION = CLASS [SUBJECT] QUANTITY ('>' | '<') CHANGE '%'
//! CLASS     = run | hold | wait | dispatch | gap | scope | time
//! SUBJECT   = as a row of the comparison calls it: book, book at main.rs:93, book by teller, book in bank (a process),
//!             table (rwlock-read); `*` and `?` stand for others; without it, every lock, thread or scope as a whole
//! QUANTITY  = median | p99 | mean | sum | rate; of run: length;
//!             of time: running | preempted | dispatch | blocked | interrupts | unexplained
//! CHANGE    = +10, -2.5, 10: of B against A, in percent of A
//! ```
//!
//! A condition is met when it is *shown*: when B is beyond the limit by more than chance makes of it (one side, 5 % for
//! all conditions of a command together; the values of B are taken back by the limit first, and then compared as ever).
//! One that the data cannot decide is not met, but a condition on what is not there, or was not tested, is *not judged*,
//! which is an outcome of its own: a lock that was renamed must not look like one that is fast.

use std::str::FromStr;

use super::names::{self, Names};
use super::permute::{self, Chance, Sides, difference};
use super::row::{Untested, Values};
use super::subject::{Class, Quantity};

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    class: Class,
    subject: Option<String>,
    quantity: Quantity,
    /// It is met when B is larger; else when it is smaller.
    larger: bool,
    /// Change from A, a part of A: 0.1 is 10 %.
    limit: f64,
}

/// What came of a condition.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// As it was written.
    pub condition: String,
    /// Whether it is met.
    pub verdict: Verdict,
    /// What it is about: what is nearest to meeting it first.
    pub of: Vec<Judged>,
}

/// Whether a condition is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The change is beyond the limit.
    Met,
    /// That is not shown.
    NotShown,
    /// Nothing that the condition names is on both sides.
    NothingNamed,
    /// Some of it could not be tested.
    NotTested(Untested),
    /// There are too few units to show anything.
    TooFew,
}

/// A subject of a condition.
#[derive(Clone, Debug)]
pub struct Judged {
    /// As rows call it.
    pub label: String,
    /// A, B and the change, as in [`Row`](super::Row).
    pub sides: [Option<f64>; 2],
    /// B is larger than A by this part of A.
    pub change: Option<f64>,
    /// The change is at least this, or of a condition with `<` at most.
    pub bound: Option<f64>,
    /// It meets the condition.
    pub met: bool,
}

impl Verdict {
    /// Met or not, it could be judged.
    pub fn is_judged(self) -> bool {
        matches!(self, Verdict::Met | Verdict::NotShown)
    }

    /// In a few words.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::NotShown => "not shown",
            Verdict::NothingNamed => "not judged: not on both sides",
            Verdict::NotTested(Untested::TooFew) => "not judged: too few intervals",
            Verdict::NotTested(Untested::LeftOut) => "not judged: disturbed or censored",
            Verdict::NotTested(Untested::Lost) => "not judged: events were lost",
            Verdict::NotTested(Untested::Whole) | Verdict::TooFew => {
                "not judged: too few recordings"
            }
        }
    }
}

impl Condition {
    fn is_about(&self, row: &Values) -> bool {
        let named = || match &self.subject {
            None => row.subject.is_whole(),
            Some(subject) => names::matches(subject, &row.subject),
        };
        row.subject.class == self.class && row.quantity == self.quantity && named()
    }

    /// The row, turned and moved so that the condition is met if B is larger.
    fn moved(&self, row: &Values, units_of_a: usize) -> permute::Row {
        let limit = self.limit_of(row);
        let mut moved = row.scaled();
        for (unit, value) in moved.values.iter_mut().enumerate() {
            *value = self.sign() * (*value - if unit < units_of_a { 0.0 } else { limit });
        }
        moved
    }

    fn sign(&self) -> f64 {
        if self.larger { 1.0 } else { -1.0 }
    }

    /// The limit on the scale of a row.
    fn limit_of(&self, row: &Values) -> f64 {
        match (row.is_logarithmic(), row.mean(0)) {
            (true, _) => (1.0 + self.limit).max(f64::MIN_POSITIVE).ln(),
            (false, a) => self.limit * a.unwrap_or(0.0),
        }
    }
}

/// Judges all conditions together, of rows of which the first units are those of A.
pub(super) fn outcomes(
    conditions: &[Condition],
    rows: &[Values],
    units_of_a: usize,
    names: &Names,
) -> Vec<Outcome> {
    let about: Vec<Vec<&Values>> =
        conditions.iter().map(|c| rows.iter().filter(|row| c.is_about(row)).collect()).collect();
    let pairs = conditions.iter().zip(&about);
    let family: Vec<permute::Row> = pairs
        .clone()
        .flat_map(|(c, rows)| rows.iter().map(move |row| (c, row)))
        .filter(|(_, row)| row.untested.is_none())
        .map(|(c, row)| c.moved(row, units_of_a))
        .collect();
    let chance = Chance::of(&family, units_of_a, Sides::Larger);
    pairs.map(|(condition, rows)| outcome(condition, rows, units_of_a, &chance, names)).collect()
}

fn outcome(
    c: &Condition,
    rows: &[&Values],
    units_of_a: usize,
    chance: &Chance,
    names: &Names,
) -> Outcome {
    let critical = chance.critical();
    let judge = |row: &&Values| -> (f64, Judged) {
        let tested = row.untested.is_none() && critical.is_finite();
        let d = tested.then(|| difference(&c.moved(row, units_of_a), units_of_a));
        // Back from the row that was turned and moved.
        let back = |by: f64| row.change(c.sign() * by + c.limit_of(row));
        let judged = Judged {
            label: names.name(&row.subject),
            sides: [row.mean(0), row.mean(1)],
            change: row.seen().and_then(|d| row.change(d.by)),
            bound: d.and_then(|d| back(d.by - critical * d.error)).filter(|b| b.is_finite()),
            met: d.is_some_and(|d| d.t() > critical),
        };
        (d.map_or(f64::NEG_INFINITY, |d| d.t()), judged)
    };
    let mut of: Vec<(f64, Judged)> = rows.iter().map(judge).collect();
    of.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let of: Vec<Judged> = of.into_iter().map(|(_, judged)| judged).collect();
    let untested = rows.iter().find_map(|row| row.untested);
    let verdict = match () {
        () if of.iter().any(|judged| judged.met) => Verdict::Met,
        () if rows.is_empty() => Verdict::NothingNamed,
        () if untested.is_some() => untested.map_or(Verdict::NotShown, Verdict::NotTested),
        () if critical.is_infinite() => Verdict::TooFew,
        () => Verdict::NotShown,
    };
    Outcome { condition: c.text.clone(), verdict, of }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Condition, String> {
        let form =
            "write for example 'hold book p99 > +10%', 'wait sum > 20%' or 'run length < -5%'";
        let wrong = |what: String| format!("{what}; {form}");
        let at = text
            .rfind(['>', '<'])
            .ok_or_else(|| wrong(format!("'{text}' compares nothing with '>' or '<'")))?;
        let larger = text[at..].starts_with('>');
        let (left, limit) = (text[..at].trim(), text[at + 1..].trim());
        let number = limit
            .strip_suffix('%')
            .ok_or_else(|| wrong(format!("'{limit}' is no change in percent")))?;
        let percent: f64 = number
            .trim_end()
            .parse()
            .map_err(|_| wrong(format!("'{limit}' is no change in percent")))?;
        if !(-100.0..=1e6).contains(&percent) || (percent == -100.0 && !larger) {
            return Err(wrong(format!("'{limit}' is no change that can be")));
        }
        let (class, rest) = left.split_once(char::is_whitespace).unwrap_or((left, ""));
        let class =
            Class::ALL.into_iter().find(|known| known.word() == class).ok_or_else(|| {
                let words = Class::ALL.map(Class::word).join(", ");
                wrong(format!("'{class}' is none of {words}"))
            })?;
        let rest = rest.trim();
        let (subject, quantity) = match rest.rsplit_once(char::is_whitespace) {
            Some((subject, quantity)) => (Some(subject.trim().to_owned()), quantity),
            None => (None, rest),
        };
        let known = class.quantities();
        let quantity = known.iter().find(|known| known.word() == quantity).ok_or_else(|| {
            let words: Vec<&str> = known.iter().map(|quantity| quantity.word()).collect();
            let (words, class) = (words.join(", "), class.word());
            wrong(format!("'{quantity}' is no quantity of '{class}', which has {words}"))
        })?;
        Ok(Condition {
            text: text.trim().to_owned(),
            class,
            subject,
            quantity: *quantity,
            larger,
            limit: percent / 100.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read() {
        let check = |text: &str, class, subject: Option<&str>, quantity, larger, limit: f64| {
            let c: Condition = text.parse().unwrap();
            let found = (c.class, c.subject.as_deref(), c.quantity, c.larger);
            assert_eq!(found, (class, subject, quantity, larger), "{text}");
            assert!((c.limit - limit).abs() < 1e-12, "{text}: {}", c.limit);
        };
        check("hold book p99 > +10%", Class::Hold, Some("book"), Quantity::P99, true, 0.1);
        check("  wait sum>20 %  ", Class::Wait, None, Quantity::Sum, true, 0.2);
        check("run length < -2.5%", Class::Run, None, Quantity::Length, false, -0.025);
        check(
            "time my worker  blocked > 0%",
            Class::Time,
            Some("my worker"),
            Quantity::Blocked,
            true,
            0.0,
        );
        check(
            "hold a > b at x.rs:1 mean < 3%",
            Class::Hold,
            Some("a > b at x.rs:1"),
            Quantity::Mean,
            false,
            0.03,
        );
    }

    #[test]
    fn what_is_no_condition_is_explained_in_a_sentence_with_an_example() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<Condition>().unwrap_err();
            assert!(error.contains(expected) && error.contains("write for example '"), "{error}");
        };
        check("", "compares nothing");
        check("hold book p99 +10%", "compares nothing");
        check("hold book p99 > 10", "'10' is no change in percent");
        check("hold book p99 > 1ms", "'1ms' is no change in percent");
        check("hold book p99 > %", "'%' is no change in percent");
        check("hold book p99 > NaN%", "no change that can be");
        check("hold book p99 > inf%", "no change that can be");
        check("hold book p99 < -100%", "no change that can be");
        check("held book p99 > 10%", "'held' is none of run, hold");
        check("> 10%", "'' is none of");
        check("hold > 10%", "'' is no quantity of 'hold', which has median, p99");
        check("hold book p98 > 10%", "'p98' is no quantity");
        check("time worker p99 > 10%", "'p99' is no quantity of 'time', which has running");
    }
}
