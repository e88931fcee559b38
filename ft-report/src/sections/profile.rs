//! Where in the code threads ran, by samples: of processes, threads, functions and lines, and while they held a lock.
//!
//! A share of samples is a share of time on a CPU, as far as chance allows: beside each stands the interval in which the
//! true share lies with a probability of 99 %, for samples that are independent of what the program does (Wilson's, which
//! holds for small shares, too: Brown, Cai and DasGupta, Interval Estimation for a Binomial Proportion, 2001). A program
//! that keeps step with the clock is measured wrong by any number of samples.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::Source;
use super::stacks::Quality;
use crate::code::{Code, Comms, Frame};
use crate::document::{Builder, Lock, N, Ns, Of, Place, Section, Share, Table, Thread, Word};
use crate::stats::{Groups, Key, OTHERS};
use crate::text;
use ft_trace::ids::{Name, Pid, Tid};
use ft_trace::store::Result;
use ft_trace::tables::{LockChain, LockChainKind, Part, Sample, ThreadTime};

/// Names of a kind with a line of their own; further ones are in one of others.
const MAX_NAMES: usize = 16_384;

/// Names that are shown; the machine values have all.
const SHOWN: usize = 12;

/// The quantile of the normal distribution that belongs to an interval of 99 %.
const Z: f64 = 2.575_829_303_548_900_4;

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct ProfileReport {
    /// Samples of a CPU in a second; `None`: there are none.
    pub hz: Option<u32>,
    /// Samples of threads that were recorded.
    pub samples: u64,
    /// Of these, in the kernel.
    pub in_kernel: u64,
    /// Time on a CPU of these threads by the scheduler's account, ns; `None` without one.
    pub scheduled_ns: Option<i64>,
    /// How far the chains can be believed.
    pub quality: Quality,
    /// By process.
    pub processes: Vec<Row>,
    /// By thread.
    pub threads: Vec<Row>,
    /// By function.
    pub functions: Vec<Row>,
    /// By line.
    pub lines: Vec<Row>,
    /// By lock that was held.
    pub locks: Vec<Row>,
    /// By lock that was held and function that ran then; shares are of the samples of the lock.
    pub held: Vec<Row>,
}

/// Samples of one name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// Of a process, thread, function, line or lock.
    pub name: String,
    /// Of what ran while the lock was held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Program or library of a function.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub object: String,
    /// Samples in it.
    pub samples: u64,
    /// Samples in it and in what it had called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with_callees: Option<u64>,
    /// Of so many samples.
    pub of: u64,
    /// The least share that is likely.
    pub at_least: f64,
    /// The largest share that is likely.
    pub at_most: f64,
}

/// The interval in which a share lies with a probability of 99 %, of which `n` of `of` samples were met.
pub fn interval(n: u64, of: u64) -> (f64, f64) {
    if of == 0 {
        return (0.0, 1.0);
    }
    let (p, of) = (n as f64 / of as f64, of as f64);
    let denominator = 1.0 + Z * Z / of;
    let centre = p + Z * Z / (2.0 * of);
    let half = Z * (p * (1.0 - p) / of + Z * Z / (4.0 * of * of)).sqrt();
    (((centre - half) / denominator).max(0.0), ((centre + half) / denominator).min(1.0))
}

/// A name and what it is in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Named(Name, Name);

impl Key for Named {
    fn others(&self) -> Named {
        Named(OTHERS.into(), "".into())
    }
}

type Counts = Groups<MAX_NAMES, Named, u64>;

#[derive(Default)]
struct Profile {
    samples: u64,
    in_kernel: u64,
    quality: Quality,
    processes: Counts,
    threads: Counts,
    functions: Counts,
    with_callees: Counts,
    lines: Counts,
    locks: Counts,
    held: Counts,
}

/// Where a thread was, in a word.
fn function(chain: &[&Frame]) -> Named {
    match chain.first() {
        Some(frame) => Named(frame.label.clone(), frame.object.clone()),
        None => Named("(not known)".into(), "".into()),
    }
}

impl Profile {
    fn add(&mut self, r: &Sample, chain: &[&Frame], process: Name, thread: Name) {
        self.samples += 1;
        self.in_kernel += u64::from(r.in_kernel);
        self.quality.add(chain, r.cut, r.user);
        *self.processes.entry(Named(process, "".into())) += 1;
        *self.threads.entry(Named(thread, "".into())) += 1;
        *self.functions.entry(function(chain)) += 1;
        let mut met = HashSet::new();
        for frame in chain {
            let name = Named(frame.label.clone(), frame.object.clone());
            // Once, however often a function has called itself.
            if met.insert(name.clone()) {
                *self.with_callees.entry(name) += 1;
            }
        }
        // The line of the program, also where it has called the kernel or a library without lines.
        if let Some(frame) = chain.iter().find(|frame| !frame.place.is_empty()) {
            *self.lines.entry(Named(frame.place.clone(), frame.label.clone())) += 1;
        }
    }

    fn finish(self, source: Source<'_>) -> Result<ProfileReport> {
        let of = self.samples;
        let callees: HashMap<Named, u64> =
            self.with_callees.into_ranked(|group| group, |g| Reverse(g.1)).into_iter().collect();
        let rows = |counts: Counts| {
            let row = |(Named(name, object), n): (Named, u64)| row(name, object, n, of);
            counts.into_ranked(row, |r| (Reverse(r.samples), r.name.clone()))
        };
        let mut functions = rows(self.functions);
        for row in &mut functions {
            let name = Named(row.name.as_str().into(), row.object.as_str().into());
            row.with_callees = callees.get(&name).copied();
        }
        let locks = rows(self.locks);
        let of_lock: HashMap<&str, u64> =
            locks.iter().map(|r| (r.name.as_str(), r.samples)).collect();
        let held = |(Named(lock, function), n): (Named, u64)| {
            let of = of_lock.get(&*lock).copied().unwrap_or(n);
            Row { function: Some(function.to_string()), ..row(lock, "".into(), n, of) }
        };
        let held = self.held.into_ranked(held, |r| (Reverse(r.samples), r.name.clone()));
        let mut quality = self.quality;
        quality.read(source)?;
        let mut scheduled_ns = None;
        if source.tally.kernel {
            source.rows(|r: ThreadTime| {
                let on_cpu = [Part::Running, Part::Hardirq, Part::Softirq, Part::Vector];
                if on_cpu.contains(&r.part) {
                    *scheduled_ns.get_or_insert(0) += r.spent_ns;
                }
            })?;
        }
        Ok(ProfileReport {
            hz: source.trace.meta().start.sample_hz,
            samples: of,
            in_kernel: self.in_kernel,
            scheduled_ns,
            quality,
            processes: rows(self.processes),
            threads: rows(self.threads),
            functions,
            lines: rows(self.lines),
            held,
            locks,
        })
    }
}

fn row(name: Name, object: Name, samples: u64, of: u64) -> Row {
    let (at_least, at_most) = interval(samples, of);
    let (name, object) = (name.to_string(), object.to_string());
    Row { name, object, samples, of, at_least, at_most, ..Row::default() }
}

impl ProfileReport {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn read(source: Source<'_>) -> Result<ProfileReport> {
        let mut profile = Profile::default();
        if source.trace.has::<Sample>() {
            let code = Code::read(source.trace)?;
            let names = Comms::read(source.trace)?;
            let of_process = |pid: Pid| names.of(Tid(pid.0));
            source.rows(|r: Sample| {
                let chain = code.chain(r.stack);
                profile.add(&r, &chain, of_process(r.pid), names.of(r.tid));
            })?;
            if source.trace.has::<LockChain>() {
                source.rows(|r: LockChain| {
                    if r.kind == LockChainKind::Runs {
                        let Named(function, _) = function(&code.chain(r.stack));
                        *profile.locks.entry(Named(r.lock_name.clone(), "".into())) += 1;
                        *profile.held.entry(Named(r.lock_name, function)) += 1;
                    }
                })?;
            }
        }
        profile.finish(source)
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new("profile", "where in the code threads ran");
        match self.hz {
            None => {
                s.say("No samples: record with the kernel group `profile` (`-k default,profile`).")
            }
            Some(_) if self.samples == 0 => s.say("No sample met a thread that was recorded."),
            Some(hz) => self.say(&mut s, hz),
        }
        s.with(self)
    }

    fn say(&self, s: &mut Section, hz: u32) {
        let period = 1_000_000_000 / i64::from(hz.max(1));
        let time = period.saturating_mul(self.samples.try_into().unwrap_or(i64::MAX));
        s.say(text!(
            "{} of a thread on a CPU, one every {}: {} of time; {} of them in the kernel.",
            Of(self.samples, "sample"),
            Ns(period),
            Ns(time),
            Share::of(self.in_kernel, self.samples)
        ));
        if let Some(scheduled) = self.scheduled_ns {
            s.say(text!(
                "By the scheduler's account these threads had a CPU for {}.",
                Ns(scheduled)
            ));
        }
        s.say("Beside each share: where the true one lies in 99 of 100 cases, unless the program keeps step with the clock.");
        self.quality.say(s);
        if self.processes.len() > 1 {
            let t = shares(
                Table::first(SHOWN, &self.processes).counted("processes"),
                "process",
                period,
            );
            s.table(t.titled("By process"));
        }
        if self.threads.len() > 1 {
            let t = Table::first(SHOWN, &self.threads).counted("threads");
            let t = t.column("thread", |r| Thread::named(&r.name));
            s.table(figures(t, period).titled("By thread name"));
        }
        let t =
            shares(Table::first(SHOWN, &self.functions).counted("functions"), "function", period)
                .column("with callees", |r| r.with_callees.map(|n| Share::of(n, r.of)))
                .column("in", |r| Place(&r.object));
        s.table(t.titled("By function"));
        if !self.lines.is_empty() {
            let t = Table::first(SHOWN, &self.lines).counted("lines");
            let t = figures(t.column("line", |r| Place(&r.name)), period);
            s.table(t.column("in", |r| Word(&r.object)).titled("By line"));
        }
        if !self.locks.is_empty() {
            let t = Table::first(SHOWN, &self.locks).counted("locks");
            let t = figures(t.column("lock", |r| Lock::named(&r.name)), period);
            s.table(t.titled("While a lock was held; with several, each counts"));
            let t = Table::first(SHOWN, &self.held).counted("functions");
            let t = t.column("lock", |r| Lock::named(&r.name));
            let t = t.column("function", |r| Word(r.function.as_deref().unwrap_or_default()));
            s.table(figures(t, period).titled("What ran while it was held, of that time"));
        }
    }
}

fn shares<'a>(t: Builder<&'a Row>, title: &str, period: i64) -> Builder<&'a Row> {
    figures(t.column(title, |r| Word(&r.name)), period)
}

/// Share, its interval, and the time that it stands for.
fn figures(t: Builder<&Row>, period: i64) -> Builder<&Row> {
    const WHOLE: i64 = 1_000_000_000;
    let share = |part: f64| Share((part * WHOLE as f64).round() as i64, WHOLE);
    t.column("share", |r| Share::of(r.samples, r.of))
        .column("at least", move |r| share(r.at_least))
        .column("at most", move |r| share(r.at_most))
        .column("time", move |r| Ns(period.saturating_mul(r.samples as i64)))
        .column("samples", |r| N(r.samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the figures of Brown, Cai and DasGupta's formula, computed with another program.
    #[test]
    fn an_interval_holds_the_share_and_narrows_with_samples() {
        let check = |n, of, least: f64, most: f64| {
            let (a, b) = interval(n, of);
            assert!((a - least).abs() < 5e-5 && (b - most).abs() < 5e-5, "{n} of {of}: {a} {b}");
        };
        check(0, 100, 0.0, 0.06222);
        check(25, 100, 0.15643, 0.37468);
        check(250, 1000, 0.21645, 0.28684);
        check(100, 100, 0.93778, 1.0);
        assert_eq!(interval(0, 0), (0.0, 1.0));
    }

    /// With the truth known, 99 of 100 intervals must have it; the seed is fixed.
    #[test]
    fn intervals_are_as_right_as_they_say() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut right = 0;
        const ROUNDS: u32 = 2000;
        for _ in 0..ROUNDS {
            let n = (0..500).filter(|_| random.f64() < 0.3).count() as u64;
            let (least, most) = interval(n, 500);
            right += u32::from(least <= 0.3 && 0.3 <= most);
        }
        let share = f64::from(right) / f64::from(ROUNDS);
        assert!((0.98..=0.998).contains(&share), "{share}");
    }
}
