//! A row: a quantity of a subject on both sides, its difference, and how sure that is.

use ft_analysis::Mark;

use super::lengths::{Cell, Recording};
use super::matching::Matched;
use super::measure::Run;
use super::permute::{self, Chance, Difference, difference};
use super::subject::{Class, Quantity, Subject};

/// One in so many: a unit of which more intervals are left out, or were lost, has no value.
///
/// Limit: the row has no value for that recording; if half of them have no value, it is shown and not tested, with the
/// reason.
/// Shown by: `what_losses_and_the_tracer_have_touched_is_shown_and_not_tested`.
const MOST_LEFT_OUT: u64 = 1_000;

/// Why a row is shown and not tested: fewer than half of the units of a side have a value, most of the others because
/// of this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Untested {
    /// They have too few intervals for the quantity.
    TooFew,
    /// Too many of their intervals are disturbed or censored; of a thread's time, records of it were lost.
    LeftOut,
    /// Events were lost, which could change it.
    Lost,
    /// It is known of whole recordings alone, of which there are too few.
    Whole,
}

impl Untested {
    /// In a few words.
    pub fn word(self) -> &'static str {
        match self {
            Untested::TooFew => "too few intervals",
            Untested::LeftOut => "disturbed or censored",
            Untested::Lost => "events were lost",
            Untested::Whole => "too few recordings",
        }
    }
}

/// A row of a comparison.
#[derive(Clone, Debug)]
pub struct Row {
    /// Of what.
    pub subject: Subject,
    /// Which quantity.
    pub quantity: Quantity,
    /// Mean over the units of A and of B that have a value, in the quantity's unit, without a fifth at each end where there are
    /// enough of them ([`permute::TRIMMED_FROM`]): geometric on a logarithmic scale. None of nothing.
    pub sides: [Option<f64>; 2],
    /// B is larger than A by this part of A; infinite when A is 0.
    pub change: Option<f64>,
    /// Between these the changes of all rows lie together, in all but 5 % of comparisons. None where A is 0, where the row
    /// was not tested, or where there are too few units.
    pub interval: Option<[f64; 2]>,
    /// How likely chance makes a difference as large in any of the rows.
    pub p: Option<f64>,
    /// The difference in its standard errors.
    pub t: Option<f64>,
    /// It differs by more than chance makes: `p` is at most 5 %.
    pub differs: bool,
    /// It was compared by logarithms.
    pub logarithmic: bool,
    /// Why it was not tested.
    pub untested: Option<Untested>,
    /// Units of each side that have a value.
    pub units: [usize; 2],
    /// Intervals of each side; of the time of threads, nanoseconds.
    pub counts: [u64; 2],
    /// Of these, how many are left out.
    pub left_out: [u64; 2],
    /// The worst mark of the others.
    pub mark: Mark,
    /// How long threads of the agent had the CPU in the time of each side's intervals, and that time.
    pub(super) recording: [Recording; 2],
}

impl Row {
    /// As a condition names it.
    pub fn label(&self) -> String {
        self.subject.to_string()
    }

    /// The size of the difference that was seen: of a ratio, its logarithm, so that half and double are alike.
    pub(super) fn size(&self) -> f64 {
        self.change.map_or(0.0, size)
    }

    /// The least size that the difference has; 0 when it may be none.
    pub(super) fn surely(&self) -> f64 {
        match (self.differs, self.interval) {
            (false, _) => 0.0,
            (true, Some(ends)) => {
                ends.map(size).into_iter().fold(f64::INFINITY, f64::min).max(1e-9)
            }
            // From nothing.
            (true, None) => f64::INFINITY,
        }
    }
}

fn size(change: f64) -> f64 {
    (1.0 + change).max(1e-9).ln().abs()
}

/// The values of a row in all units.
pub(super) struct Values {
    pub(super) subject: Subject,
    pub(super) quantity: Quantity,
    /// By side, one for each unit; not a number where it has none.
    sides: [Vec<f64>; 2],
    pub(super) untested: Option<Untested>,
    counts: [u64; 2],
    left_out: [u64; 2],
    mark: Mark,
    recording: [Recording; 2],
    /// Smallest distance of two times, ns.
    step_ns: f64,
}

/// All rows of what was matched.
pub(super) fn values(matched: &Matched, runs: &[Vec<Run>; 2]) -> Vec<Values> {
    let step_ns = runs.iter().flatten().map(|run| run.step_ns).fold(1.0, f64::max);
    let rows = matched.subjects.iter().flat_map(|subject| {
        subject.class.quantities().iter().map(move |quantity| (subject, *quantity))
    });
    let row = |(subject, quantity): (&Subject, Quantity)| {
        let is_whole = matches!(subject.class, Class::Run | Class::Time);
        let from = if is_whole { &matched.whole } else { &matched.units };
        let cells = |side: usize| from[side].iter().filter_map(|unit| unit.get(subject));
        let sum = |of: fn(&Cell) -> u64| [0, 1].map(|side| cells(side).map(of).sum::<u64>());
        let slices = matched.units[0].len() / runs[0].len().max(1);
        let known: [Vec<_>; 2] = [0, 1].map(|side| {
            let run_of = |unit: usize| &runs[side][if is_whole { unit } else { unit / slices }];
            let units = from[side].iter().enumerate();
            units
                .map(|(i, unit)| known(unit.get(subject), quantity, lost(run_of(i), subject.class)))
                .collect()
        });
        let untested = match () {
            () if is_whole && slices > 1 => Some(Untested::Whole),
            () => known.iter().find_map(|units| unknown(units)),
        };
        Values {
            subject: subject.clone(),
            quantity,
            sides: known.map(|units| units.into_iter().map(|v| v.unwrap_or(f64::NAN)).collect()),
            untested,
            counts: sum(|cell| cell.count),
            left_out: sum(|cell| cell.left_out),
            mark: [0, 1]
                .into_iter()
                .flat_map(cells)
                .map(|cell| cell.mark)
                .max()
                .unwrap_or_default(),
            recording: [0, 1].map(|side| {
                cells(side).fold(Recording::default(), |mut all, cell| {
                    all.add(cell.recording.own.0, cell.recording.of_ns);
                    all
                })
            }),
            step_ns,
        }
    };
    rows.map(row).collect()
}

/// The value of a quantity in a unit, in whose recording so many events were lost, or why it has none. Where nothing
/// happened, that is how much there was of it.
fn known(cell: Option<&Cell>, quantity: Quantity, lost: u64) -> Result<f64, Untested> {
    let none = Cell::default();
    let (cell, absent) = (cell.unwrap_or(&none), cell.is_none());
    let too_many = |n: u64| n.saturating_mul(MOST_LEFT_OUT) > cell.count;
    match cell.get(quantity) {
        _ if quantity.is_total() && lost > 0 && too_many(lost) => Err(Untested::Lost),
        _ if quantity != Quantity::Rate && too_many(cell.left_out) => Err(Untested::LeftOut),
        None if absent && quantity.is_total() => Ok(0.0),
        None => Err(Untested::TooFew),
        Some(value) => Ok(value),
    }
}

/// Why too many units of a side have no value; none where at least half of them have.
fn unknown(units: &[Result<f64, Untested>]) -> Option<Untested> {
    let mut why: Vec<Untested> = units.iter().filter_map(|unit| unit.err()).collect();
    why.sort_unstable();
    let most = why.get(why.len() / 2).copied();
    most.filter(|_| 2 * why.len() > units.len())
}

/// Events of which intervals of this class are made, and that were lost.
fn lost(run: &Run, class: Class) -> u64 {
    match class {
        Class::Run => 0,
        class if class.is_of_user_events() => run.lost_user_events,
        _ => run.lost_kernel_records,
    }
}

impl Values {
    /// What is known, of both sides.
    fn all(&self) -> impl Iterator<Item = f64> + Clone {
        self.sides.iter().flatten().copied().filter(|value| !value.is_nan())
    }

    /// All values are above 0, so that their ratios can be compared.
    pub(super) fn is_logarithmic(&self) -> bool {
        self.all().all(|value| value > 0.0)
    }

    /// Units of each side that have a value.
    pub(super) fn units(&self) -> [usize; 2] {
        self.sides.each_ref().map(|side| side.iter().filter(|value| !value.is_nan()).count())
    }

    /// On the scale on which differences are taken.
    pub(super) fn scaled(&self) -> permute::Row {
        let mean = self.all().sum::<f64>() / self.all().count().max(1) as f64;
        // Percentiles come from a histogram with three digits, of times that have steps.
        let relative = match self.quantity {
            Quantity::Median | Quantity::P99 => (1e-3f64).max(self.step_ns / mean.max(1.0)),
            _ => 1e-6,
        };
        let values = self.sides.iter().flatten();
        match self.is_logarithmic() {
            true => permute::Row { values: values.map(|v| v.ln()).collect(), resolution: relative },
            false => permute::Row {
                values: values.copied().collect(),
                resolution: relative * mean.abs().max(f64::MIN_POSITIVE),
            },
        }
    }

    /// Trimmed mean over the units of a side that have a value.
    pub(super) fn mean(&self, side: usize) -> Option<f64> {
        let values = self.sides[side].iter().copied().filter(|value| !value.is_nan());
        match self.is_logarithmic() {
            true => permute::mean(values.map(f64::ln).collect()).map(f64::exp),
            false => permute::mean(values.collect()),
        }
    }

    /// The difference that was seen, on the scale; none without values on both sides.
    pub(super) fn seen(&self) -> Option<Difference> {
        self.units().iter().all(|n| *n > 0).then(|| difference(&self.scaled(), self.sides[0].len()))
    }

    /// What a difference on the scale is as a part of A.
    pub(super) fn change(&self, by: f64) -> Option<f64> {
        match (self.is_logarithmic(), self.mean(0)?) {
            (true, _) => Some(by.exp() - 1.0),
            (false, 0.0) if by == 0.0 => Some(0.0),
            (false, 0.0) => Some(by.signum() * f64::INFINITY),
            // Nothing falls below nothing.
            (false, a) => Some((by / a).max(-1.0)),
        }
    }

    /// Judges the row by what chance makes of all.
    pub(super) fn judge(&self, chance: &Chance) -> Row {
        let seen = self.seen();
        let tested = seen.filter(|_| self.untested.is_none());
        let critical = chance.critical();
        let interval = |d: Difference| {
            let half = critical * d.error;
            let ends = [self.change(d.by - half)?, self.change(d.by + half)?];
            ends.iter().all(|end| end.is_finite()).then_some(ends)
        };
        Row {
            subject: self.subject.clone(),
            quantity: self.quantity,
            sides: [self.mean(0), self.mean(1)],
            change: seen.and_then(|d| self.change(d.by)),
            interval: tested.filter(|_| critical.is_finite()).and_then(interval),
            p: tested.map(|d| chance.p(d.t())),
            t: tested.map(Difference::t),
            differs: tested.is_some_and(|d| d.t().abs() > critical),
            logarithmic: self.is_logarithmic(),
            untested: self.untested,
            units: self.units(),
            counts: self.counts,
            left_out: self.left_out,
            mark: self.mark,
            recording: self.recording,
        }
    }
}
