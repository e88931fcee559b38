//! Where in the code threads ran, by samples: of processes, threads, functions and lines, and while they held a lock.
//!
//! A share of samples is a share of time on a CPU, as far as chance allows: beside each stands the interval in which the
//! true share lies with a probability of 99 %, for samples that are independent of what the program does (Wilson's, which
//! holds for small shares, too: Brown, Cai and DasGupta, Interval Estimation for a Binomial Proportion, 2001). A program
//! that keeps step with the clock is measured wrong by any number of samples.
//!
//! Each grouping has every sample once, so its shares sum to all of them; what is shown beside them that does not (with
//! callees, held at all) says so by its title.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::Source;
use super::stacks::Quality;
use crate::code::{Code, Comms, Frame};
use crate::document::{
    Builder, Data, Id, Lock, N, Ns, Of, Place, Section, Share, Table, Thread, Word,
};
use crate::stats::{Groups, Key, OTHERS};
use crate::text;
use ft_trace::ids::{Name, Pid, Tid};
use ft_trace::store::Result;
use ft_trace::tables::{LockChain, LockChainKind, Part, Sample, ThreadTime};

/// Names of a kind with a line of their own; further ones are in one of others.
const MAX_NAMES: usize = 16_384;

/// Names that are shown beside other groupings; the machine values have all.
const SHOWN: usize = 12;

/// Names that are shown where one grouping was asked for.
const SHOWN_ALONE: usize = 50;

/// What samples that have no name are listed as, so that shares sum.
const NOT_KNOWN: &str = "(not known)";

/// What samples of threads that held no lock are listed as.
const NO_LOCK: &str = "(no lock)";

/// By what samples are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Processes of one name.
    Process,
    /// Threads.
    Thread,
    /// Functions, where the thread was itself.
    Function,
    /// Lines of the program, also where they had called the kernel or a library without lines.
    Line,
    /// The lock that the thread had acquired last and held.
    LockHeld,
}

impl By {
    /// All of them.
    pub const ALL: [By; 5] = [By::Process, By::Thread, By::Function, By::Line, By::LockHeld];

    /// As it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            By::Process => "process",
            By::Thread => "thread",
            By::Function => "function",
            By::Line => "line",
            By::LockHeld => "lock-held",
        }
    }
}

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
    /// By the lock that was acquired last, of those that were held; and without any.
    pub innermost: Vec<Row>,
    /// By lock that was held; with several, a sample counts for each.
    pub locks: Vec<Row>,
    /// By lock that was held and function that ran then; shares are of the samples of the lock.
    pub held: Vec<Row>,
    /// By call chain: functions, the outermost first, those of the kernel, too; and samples.
    pub chains: Vec<(Vec<Name>, u64)>,
    #[serde(skip)]
    by: Option<By>,
}

/// Samples of one name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// Of a process, thread, function, line or lock.
    pub name: String,
    /// Of what ran while the lock was held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Program or library of a function; function of a line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub object: String,
    /// Of a thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<i32>,
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

/// Functions of a chain, the outermost first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Inwards(Vec<Name>);

impl Key for Inwards {
    fn others(&self) -> Inwards {
        Inwards(vec![OTHERS.into()])
    }
}

type Counts = Groups<MAX_NAMES, Named, u64>;

#[derive(Default)]
struct Profile {
    samples: u64,
    in_kernel: u64,
    quality: Quality,
    processes: Counts,
    threads: Groups<MAX_NAMES, (Pid, Tid, Name), u64>,
    functions: Counts,
    with_callees: Counts,
    lines: Counts,
    innermost: Counts,
    locks: Counts,
    held: Counts,
    chains: Groups<MAX_NAMES, Inwards, u64>,
}

/// Where a thread was, in a word.
fn function(chain: &[&Frame]) -> Named {
    match chain.first() {
        Some(frame) => Named(frame.label.clone(), frame.object.clone()),
        None => Named(NOT_KNOWN.into(), "".into()),
    }
}

impl Profile {
    fn add(&mut self, r: &Sample, chain: &[&Frame], process: Name, thread: Name) {
        self.samples += 1;
        self.in_kernel += u64::from(r.in_kernel);
        self.quality.add(chain, r.cut, r.user);
        *self.processes.entry(Named(process, "".into())) += 1;
        *self.threads.entry((r.pid, r.tid, thread)) += 1;
        *self.functions.entry(function(chain)) += 1;
        let inwards = chain.iter().rev().map(|frame| frame.label.clone());
        *self.chains.entry(Inwards(inwards.collect())) += 1;
        let mut met = HashSet::new();
        for frame in chain {
            let name = Named(frame.label.clone(), frame.object.clone());
            // Once, however often a function has called itself.
            if met.insert(name.clone()) {
                *self.with_callees.entry(name) += 1;
            }
        }
        // The line of the program, also where it has called the kernel or a library without lines.
        let line = chain.iter().find(|frame| !frame.place.is_empty());
        let line = line.map(|frame| Named(frame.place.clone(), frame.label.clone()));
        *self.lines.entry(line.unwrap_or_else(|| Named(NOT_KNOWN.into(), "".into()))) += 1;
    }

    /// A lock that was held at a sample.
    fn add_held(&mut self, lock: Name, is_innermost: bool, chain: &[&Frame]) {
        let Named(function, _) = function(chain);
        if is_innermost {
            *self.innermost.entry(Named(lock.clone(), "".into())) += 1;
        }
        *self.locks.entry(Named(lock.clone(), "".into())) += 1;
        *self.held.entry(Named(lock, function)) += 1;
    }

    /// The report, as far as samples tell.
    fn rank(self, by: Option<By>) -> ProfileReport {
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
        let thread = |((_, Tid(tid), name), n)| Row {
            tid: (tid != 0).then_some(tid),
            ..row(name, "".into(), n, of)
        };
        let threads = self.threads.into_ranked(thread, |r| (Reverse(r.samples), r.tid));
        let mut innermost = rows(self.innermost);
        let held_any: u64 = innermost.iter().map(|row| row.samples).sum();
        if !innermost.is_empty() && held_any < of {
            innermost.push(row(NO_LOCK.into(), "".into(), of - held_any, of));
            innermost.sort_by_key(|row| Reverse(row.samples));
        }
        let locks = rows(self.locks);
        let of_lock: HashMap<&str, u64> =
            locks.iter().map(|r| (r.name.as_str(), r.samples)).collect();
        let held = |(Named(lock, function), n): (Named, u64)| {
            let of = of_lock.get(&*lock).copied().unwrap_or(n);
            Row { function: Some(function.to_string()), ..row(lock, "".into(), n, of) }
        };
        let held = self.held.into_ranked(held, |r| (Reverse(r.samples), r.name.clone()));
        let chains = self.chains.into_ranked(
            |(Inwards(chain), n)| (chain, n),
            |(chain, n)| (Reverse(*n), chain.clone()),
        );
        ProfileReport {
            hz: None,
            samples: of,
            in_kernel: self.in_kernel,
            scheduled_ns: None,
            quality: self.quality,
            processes: rows(self.processes),
            threads,
            functions,
            lines: rows(self.lines),
            innermost,
            locks,
            held,
            chains,
            by,
        }
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
                        profile.add_held(r.lock_name, r.innermost, &code.chain(r.stack));
                    }
                })?;
            }
        }
        let mut report = profile.rank(source.asked.by);
        report.hz = source.trace.meta().start.sample_hz;
        report.quality.read(source)?;
        if source.tally.kernel {
            source.rows(|r: ThreadTime| {
                let on_cpu = [Part::Running, Part::Hardirq, Part::Softirq, Part::Vector];
                if on_cpu.contains(&r.part) {
                    *report.scheduled_ns.get_or_insert(0) += r.spent_ns;
                }
            })?;
        }
        Ok(report)
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
        let all = self.all();
        match self.by {
            Some(By::LockHeld) if self.locks.is_empty() => s.say(
                "No sample met a thread that held a lock: locks are those of ft_user::sync, or of pthread by --preload.",
            ),
            Some(by) => self.tables(by, SHOWN_ALONE, Some(&all), period).for_each(|t| s.table(t)),
            None => {
                for by in By::ALL.into_iter().filter(|by| self.rows(*by).len() > 1) {
                    self.tables(by, SHOWN, None, period).for_each(|t| s.table(t));
                }
                let time = |n: u64| period.saturating_mul(n.try_into().unwrap_or(i64::MAX));
                let chains = self.chains.iter().map(|(chain, n)| (chain.clone(), time(*n)));
                s.figure("Time on a CPU", Data::Flames { chains: chains.collect() });
            }
        }
    }

    /// The rows of a grouping, whose samples are all of them.
    fn rows(&self, by: By) -> &[Row] {
        match by {
            By::Process => &self.processes,
            By::Thread => &self.threads,
            By::Function => &self.functions,
            By::Line => &self.lines,
            By::LockHeld => &self.innermost,
        }
    }

    /// All samples as a row.
    fn all(&self) -> Row {
        Row {
            with_callees: Some(self.samples),
            ..row("all".into(), "".into(), self.samples, self.samples)
        }
    }

    /// What a grouping has to show, with a row of all its samples if it is given.
    fn tables<'a>(
        &'a self,
        by: By,
        shown: usize,
        all: Option<&'a Row>,
        period: i64,
    ) -> impl Iterator<Item = Table> {
        let first = |rows: &'a [Row]| Table::first(shown, rows);
        let rows = first(self.rows(by)).total(all);
        let table = match by {
            By::Process => {
                shares(rows.counted("names"), "process", period).titled("By name of the process")
            }
            By::Thread => {
                let t = rows.counted("threads").column("thread", |r| Thread::named(&r.name));
                figures(t.column("tid", |r| r.tid.map(Id)), period).titled("By thread")
            }
            By::Function => shares(rows.counted("functions"), "function", period)
                .column("with callees", |r| r.with_callees.map(|n| Share::of(n, r.of)))
                .column("in", |r| Place(&r.object))
                .titled("By function"),
            By::Line => figures(rows.counted("lines").column("line", |r| Place(&r.name)), period)
                .column("in", |r| Word(&r.object))
                .titled("By line"),
            By::LockHeld => {
                let t = rows.counted("locks").column("lock", |r| Lock::named(&r.name));
                let whole = |r: &&Row| self.locks.iter().find(|lock| lock.name == r.name);
                let whole = move |r: &&Row| whole(r).map(|lock| Share::of(lock.samples, lock.of));
                figures(t, period)
                    .column("held at all", whole)
                    .titled("By the lock that was acquired last and held")
            }
        };
        let held = (by == By::LockHeld).then(|| {
            let t = first(&self.held).counted("functions").column("lock", |r| Lock::named(&r.name));
            let t = t.column("function", |r| Word(r.function.as_deref().unwrap_or_default()));
            figures(t, period).titled("What ran while it was held, of that time")
        });
        [table].into_iter().chain(held)
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
    use ft_trace::ids::{Cpu, Nanos};

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

    /// Samples of two threads, in one function or none, in code with a line or without, holding no lock or up to two.
    #[test]
    fn each_grouping_has_every_sample_once() {
        let place = |n: usize| if n % 4 == 1 { "" } else { "a.c:1" };
        let frame = |n: usize| Frame {
            label: format!("f{}", n % 5).into(),
            place: place(n).into(),
            object: "".into(),
            kernel: n.is_multiple_of(7),
            named: true,
        };
        let mut profile = Profile::default();
        for n in 0..100 {
            let frame = frame(n);
            let chain: &[&Frame] = if n.is_multiple_of(9) { &[] } else { &[&frame] };
            let sample = Sample {
                ts: Nanos(n as i64),
                cpu: Cpu(0),
                tid: Tid(1 + (n % 2) as i32),
                pid: Pid(1),
                stack: None,
                user: 1,
                in_kernel: false,
                cut: false,
            };
            profile.add(&sample, chain, "process".into(), "thread".into());
            for (i, lock) in ["inner", "outer"].into_iter().take(n % 3).enumerate() {
                profile.add_held(lock.into(), i == 0, chain);
            }
        }
        let report = profile.rank(None);
        for by in By::ALL {
            let rows = report.rows(by);
            assert!(rows.len() > 1 || by == By::Process, "{by:?}");
            assert_eq!(rows.iter().map(|row| row.samples).sum::<u64>(), 100, "{by:?}");
            assert!(rows.iter().all(|row| row.of == 100), "{by:?}");
            let all = report.all();
            let tables: Vec<Table> = report.tables(by, SHOWN_ALONE, Some(&all), 1).collect();
            assert!(tables[0].rows.last().is_some_and(|row| row.total), "{by:?}");
        }
        let none = report.innermost.iter().find(|row| row.name == NO_LOCK).expect("a row");
        assert_eq!(none.samples, 34);
        for lock in &report.locks {
            let of_lock = report.held.iter().filter(|row| row.name == lock.name);
            assert_eq!(of_lock.map(|row| row.samples).sum::<u64>(), lock.samples, "{}", lock.name);
        }
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
