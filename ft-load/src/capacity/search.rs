//! The search: the highest rate at which nothing is lost, of a load that can be run at any rate.

/// The search ends when a rate without loss and one with loss are this close.
const CLOSE: f64 = 1.04;

/// From rate to rate while nothing is lost.
const STEP: f64 = 1.5;

/// Runs that reach a rate without a loss and so confirm it: the edge is not sharp. After as many that do not reach it, it is
/// given up.
pub const CONFIRMED: usize = 3;

/// A run that reaches less than this share of the rate that it was asked for shows nothing of that rate.
const REACHED: f64 = 0.97;

/// Runs below their rate that are this close to each other, and not below what was reached before, are as fast as the
/// program goes. Others did not have their CPU.
const ALIKE: f64 = 1.1;

/// Rates between which is searched, events a second of each thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The search begins here.
    pub first: f64,
    /// What loses events here has no capacity.
    pub least: f64,
    /// The search goes no higher.
    pub most: f64,
}

impl Default for Range {
    fn default() -> Self {
        Range { first: 4e6, least: 1e3, most: 2e8 }
    }
}

/// What one run has shown.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Trial {
    /// Events a second that each thread was asked for.
    pub asked: f64,
    /// Events a second that each thread reached.
    pub reached: f64,
    /// How many were lost, by the account of who recorded them.
    pub lost: u64,
}

/// Why the rate is not higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// Events are lost at higher rates.
    Loss,
    /// The threads can go no faster.
    Program,
    /// The threads did not reach higher rates, now by more and now by less: other programs had their CPU.
    Starved,
    /// Nobody has looked beyond [`Range::most`].
    Search,
}

/// The highest rate without loss.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Capacity {
    /// What each thread was asked for, events a second.
    pub asked: f64,
    /// What each thread reached, events a second: the median of the confirming runs.
    pub reached: f64,
    /// Why it is not higher.
    pub limit: Limit,
    /// All runs, in their order; [`CONFIRMED`] of the last, all at this rate, confirm it.
    pub trials: Vec<Trial>,
}

impl Trial {
    fn is_slow(&self) -> bool {
        self.lost == 0 && self.reached < REACHED * self.asked
    }
}

/// The rate of a program that is as fast as it goes, if these runs below their rate show that: it reached `before`, too.
fn fastest(slow: &[f64], before: f64) -> Option<f64> {
    let least = slow.iter().copied().fold(f64::INFINITY, f64::min);
    let most = slow.iter().copied().fold(0.0, f64::max);
    (least >= REACHED * before && most <= ALIKE * least).then_some(least)
}

/// Finds it: upwards in steps until something is lost or the load goes no faster, then by halving the distance between
/// the highest rate without and the lowest with loss (as ratios), then downwards until [`CONFIRMED`] runs have reached it
/// without a loss.
///
/// `None` when even the least rate loses events, or is not reached.
///
/// # Errors
///
/// Those of `run`, which runs the load at a rate, events a second of each thread.
pub fn highest<E>(
    range: Range,
    mut run: impl FnMut(f64) -> Result<Trial, E>,
) -> Result<Option<Capacity>, E> {
    let mut trials = Vec::new();
    let (mut lossless, mut lossy, mut rate) = (0.0, None, range.first);
    let mut slow = Vec::new();
    // What a run must reach to confirm a rate that the program is not as fast as.
    let mut at_least = 0.0;
    let mut limit = loop {
        let trial = run(rate)?;
        trials.push(trial);
        if trial.is_slow() {
            slow.push(trial.reached);
            if slow.len() < CONFIRMED {
                continue;
            }
            if let Some(fastest) = fastest(&slow, lossless) {
                (lossless, at_least) = (rate, fastest / ALIKE);
                break Limit::Program;
            }
            if lossless > 0.0 || rate <= range.least {
                break Limit::Starved;
            }
            rate = (rate / STEP).max(range.least);
            slow.clear();
            continue;
        }
        slow.clear();
        match trial.lost {
            0 => lossless = rate,
            _ => lossy = Some(rate),
        }
        rate = match lossy {
            None if lossless >= range.most => break Limit::Search,
            None => (STEP * lossless).min(range.most),
            Some(lossy) if lossless == 0.0 && lossy <= range.least => return Ok(None),
            Some(lossy) if lossless == 0.0 => (lossy / 2.0).max(range.least),
            Some(lossy) if lossy / lossless <= CLOSE => break Limit::Loss,
            Some(lossy) => (lossy * lossless).sqrt(),
        };
    };
    while lossless >= range.least {
        let (mut reached, mut slow, mut loses) = (Vec::new(), 0, false);
        while reached.len() < CONFIRMED && slow < CONFIRMED && !loses {
            let trial = run(lossless)?;
            trials.push(trial);
            let is_slow = match limit {
                Limit::Program => trial.reached < at_least,
                _ => trial.is_slow(),
            };
            match trial.lost {
                0 if is_slow => slow += 1,
                0 => reached.push(trial.reached),
                _ => loses = true,
            }
        }
        if reached.len() == CONFIRMED {
            reached.sort_by(f64::total_cmp);
            let reached = reached[CONFIRMED / 2];
            return Ok(Some(Capacity { asked: lossless, reached, limit, trials }));
        }
        (limit, lossless) = match loses {
            true => (Limit::Loss, lossless / CLOSE),
            false => (Limit::Starved, lossless / STEP),
        };
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    /// A machine that loses events beyond `edge` and goes no faster than `fastest`.
    fn found(edge: f64, fastest: f64) -> Option<Capacity> {
        let run = |asked: f64| {
            let reached = asked.min(fastest);
            let lost = if reached > edge { (reached - edge) as u64 + 1 } else { 0 };
            Ok::<_, Infallible>(Trial { asked, reached, lost })
        };
        let Ok(capacity) = highest(Range::default(), run);
        capacity
    }

    proptest! {
        /// The rate is within 4 % of the edge, below it, and confirmed; and few runs find it.
        #[test]
        fn the_edge_is_found(edge in 1e3..2e8) {
            let capacity = found(edge, f64::INFINITY).unwrap();
            prop_assert!(capacity.asked <= edge && edge / capacity.asked <= CLOSE * 1.000_001);
            prop_assert_eq!((capacity.reached, capacity.limit), (capacity.asked, Limit::Loss));
            let last = &capacity.trials[capacity.trials.len() - CONFIRMED..];
            prop_assert!(last.iter().all(|t| t.lost == 0 && t.asked == capacity.asked));
            prop_assert!(capacity.trials.len() < 40, "{}", capacity.trials.len());
        }

        #[test]
        fn a_program_that_goes_no_faster_limits_it(fastest in 1e4..1e8, spare in 1.0..10.0) {
            let capacity = found(fastest * spare, fastest).unwrap();
            prop_assert_eq!(capacity.limit, Limit::Program);
            prop_assert_eq!(capacity.reached, fastest);
        }

        /// Where the edge is not sharp, what is found has held in all runs that confirm it.
        #[test]
        fn an_edge_that_is_not_sharp_is_stepped_down_from(
            edge in 1e5..1e8, noise in prop::collection::vec(0.5..1.0, 200),
        ) {
            let mut noise = noise.into_iter().cycle();
            let run = |asked: f64| {
                let lost = u64::from(asked > edge * noise.next().unwrap_or(1.0));
                Ok::<_, Infallible>(Trial { asked, reached: asked, lost })
            };
            let Ok(capacity) = highest(Range::default(), run);
            let capacity = capacity.unwrap();
            prop_assert!(capacity.asked <= edge && capacity.asked >= edge / 4.0);
            let last = &capacity.trials[capacity.trials.len() - CONFIRMED..];
            prop_assert!(last.iter().all(|t| t.lost == 0 && t.asked == capacity.asked));
        }
    }

    proptest! {
        /// What a run that had no CPU reached is nothing that a recording could keep or not: it is neither the rate that is
        /// found, nor called the program's own.
        #[test]
        fn a_writer_without_a_cpu_bounds_nothing(
            first in prop::collection::vec(0.1..1.0, 50), slow in 0.0..0.7,
        ) {
            let mut noise = first.iter().copied().cycle();
            let mut next = || noise.next().unwrap_or(1.0);
            let run = |asked: f64| {
                let (share, is_slow): (f64, bool) = (next(), next() < slow);
                let reached = if is_slow { asked * share.min(0.9) } else { asked };
                Ok::<_, Infallible>(Trial { asked, reached, lost: 0 })
            };
            let Ok(capacity) = highest(Range::default(), run);
            if let Some(Capacity { asked, reached, limit, .. }) = capacity {
                match limit {
                    Limit::Program => prop_assert!(reached >= asked * 0.1 / ALIKE),
                    _ => prop_assert!(reached >= REACHED * asked),
                }
                prop_assert!(limit != Limit::Loss);
            }
        }
    }

    #[test]
    fn three_slow_runs_are_the_program_only_if_they_are_alike() {
        // As a busy machine showed it: up to 13.5 M/s well, then, of 20.25, these.
        let limited = |slow: [f64; 3]| {
            let mut runs = 0;
            let run = |asked: f64| {
                let reached = if asked < 2e7 { asked } else { slow[runs % 3] };
                runs += usize::from(asked >= 2e7);
                Ok::<_, Infallible>(Trial { asked, reached, lost: 0 })
            };
            let Ok(found) = highest(Range::default(), run);
            found.map(|found| (found.limit, found.asked, found.reached))
        };
        let found = limited([6.5e6, 15.7e6, 12.9e6]);
        assert_eq!(found, Some((Limit::Starved, 13.5e6, 13.5e6)));
        // It has been faster than that.
        assert_eq!(limited([11e6, 11.01e6, 11e6]), Some((Limit::Starved, 13.5e6, 13.5e6)));
        let found = limited([15.7e6, 15.2e6, 15.5e6]);
        assert_eq!(found, Some((Limit::Program, 20.25e6, 15.5e6)));
    }

    #[test]
    fn there_may_be_no_such_rate_and_no_bound() {
        assert_eq!(found(0.0, f64::INFINITY), None);
        assert_eq!(found(900.0, f64::INFINITY), None);
        let all = found(f64::INFINITY, f64::INFINITY).unwrap();
        assert_eq!((all.asked, all.limit), (Range::default().most, Limit::Search));
        // Loses something now and then at any rate.
        let mut n = 0;
        let sometimes = |asked: f64| {
            n += 1;
            Ok::<_, Infallible>(Trial { asked, reached: asked, lost: u64::from(n % 3 == 0) })
        };
        assert_eq!(highest(Range::default(), sometimes), Ok(None));
    }

    #[test]
    fn what_fails_ends_the_search() {
        let mut runs = 0;
        let failed = highest(Range::default(), |asked| {
            runs += 1;
            if runs < 3 { Ok(Trial { asked, reached: asked, lost: 0 }) } else { Err("no space") }
        });
        assert_eq!((failed, runs), (Err("no space"), 3));
    }
}
