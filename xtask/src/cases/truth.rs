//! What a case says about itself: `TRUTH who=teller- what=mutex behind=auditor where=audit lost_ms=1025.0 unsure_ms=0.4`.

use std::fmt;

use anyhow::{Context, Result, bail};

/// The truth of a case, as it measured it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Truth {
    /// Who lost the time, or who is idle: a name, or what several names begin with.
    pub(super) who: Words,
    /// At what kind of thing. Not asked for.
    pub(super) what: String,
    pub(super) behind: Option<Words>,
    /// The function where that one was.
    pub(super) place: Option<Words>,
    pub(super) amount: Option<Amount>,
    /// Nobody has lost anything.
    pub(super) is_idle: bool,
    /// What a screen may say instead: the loss is of these, which nobody sees who looks from the kernel.
    pub(super) unseen: Option<Words>,
}

/// How much it was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Amount {
    /// Milliseconds, of which the last may be counted elsewhere: ready threads without a CPU.
    Lost { ms: f64, unsure_ms: f64 },
    /// How often something was for nothing.
    Count(f64),
}

/// `a+b|c`: `a`, and one of `b` and `c`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Words(Vec<Vec<String>>);

impl Words {
    fn parse(text: &str) -> Words {
        Words(text.split('+').map(|one| one.split('|').map(str::to_owned).collect()).collect())
    }

    /// Whether a predicate holds for all of them.
    pub(super) fn all(&self, mut is_named: impl FnMut(&str) -> bool) -> bool {
        self.0.iter().all(|any| any.iter().any(|word| is_named(word)))
    }
}

impl Truth {
    /// Reads what stands behind `TRUTH`.
    ///
    /// # Errors
    ///
    /// When there is a word that is none of these, a number that is none, or nobody.
    pub(super) fn parse(line: &str) -> Result<Truth> {
        let mut truth = Truth::default();
        let (mut lost, mut unsure_ms, mut count) = (None, 0.0, None);
        for word in line.split_whitespace() {
            if word == "idle" {
                truth.is_idle = true;
                continue;
            }
            let (key, value) =
                word.split_once('=').with_context(|| format!("`{word}` in a truth"))?;
            let number = || value.parse::<f64>().with_context(|| format!("`{word}` has no number"));
            match key {
                "who" => truth.who = Words::parse(value),
                "what" => value.clone_into(&mut truth.what),
                "unseen" => truth.unseen = Some(Words::parse(value)),
                "behind" => truth.behind = Some(Words::parse(value)),
                "where" => truth.place = Some(Words::parse(value)),
                "lost_ms" => lost = Some(number()?),
                "unsure_ms" => unsure_ms = number()?,
                "count" => count = Some(number()?),
                _ => bail!("`{word}` in a truth"),
            }
        }
        if truth.who == Words::default() {
            bail!("a truth of nobody: {line}");
        }
        truth.amount = lost.map(|ms| Amount::Lost { ms, unsure_ms }).or(count.map(Amount::Count));
        Ok(truth)
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<_> = self.0.iter().map(|any| any.join(" or ")).collect();
        f.write_str(&all.join(" and "))
    }
}

impl fmt::Display for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_idle {
            write!(f, "{} idle", self.who)?;
        } else {
            write!(f, "{}: {}", self.who, self.what)?;
        }
        match self.amount {
            Some(Amount::Lost { ms, unsure_ms }) => {
                write!(f, ", {ms:.0} ms (unsure {unsure_ms:.0})")?
            }
            Some(Amount::Count(count)) => write!(f, ", {count:.0} times")?,
            None => {}
        }
        if let Some(behind) = &self.behind {
            write!(f, ", behind {behind}")?;
        }
        if let Some(place) = &self.place {
            write!(f, ", in {place}")?;
        }
        if let Some(unseen) = &self.unseen {
            write!(f, "; or {unseen} are not seen")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_truth() {
        let truth = Truth::parse(
            "who=front what=mutex behind=middle+back where=a|b lost_ms=541.3 unsure_ms=2.0",
        )
        .unwrap();
        assert_eq!(
            truth.to_string(),
            "front: mutex, 541 ms (unsure 2), behind middle and back, in a or b"
        );
        let behind = truth.behind.unwrap();
        assert!(behind.all(|word| ["middle", "back"].contains(&word)));
        assert!(!behind.all(|word| word == "back"));
        assert!(truth.place.unwrap().all(|word| word == "b"));
        let herd = Truth::parse("who=heron- what=herd count=12").unwrap();
        assert_eq!(herd.amount, Some(Amount::Count(12.0)));
        let goroutines = Truth::parse("who=a what=b unseen=goroutines").unwrap();
        assert_eq!(goroutines.to_string(), "a: b; or goroutines are not seen");
        let idle = Truth::parse("idle who=server where=epoll_wait").unwrap();
        assert!(idle.is_idle && idle.amount.is_none() && idle.behind.is_none());
    }

    #[test]
    fn what_is_none_is_refused() {
        for line in ["", "what=mutex", "who=a lost_ms=much", "who=a when=now", "who=a nothing"] {
            assert!(Truth::parse(line).is_err(), "{line}");
        }
    }
}
