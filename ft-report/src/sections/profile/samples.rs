//! Samples by what they have in common.
//!
//! A chain is looked at once, with the number of its samples: there are as many chains as the program has ways, and as many
//! samples as it ran long.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::{ProfileReport, Row, row};
use crate::code::{Comms, Frame};
use crate::sections::Input;
use crate::sections::stacks::Quality;
use crate::stats::{Groups, Key, OTHERS};
use ft_trace::ids::{Name, Pid, Tid};
use ft_trace::store::Result;
use ft_trace::tables::{LockChain, LockChainKind, Sample};

/// Names of a kind with a line of their own; further ones are in one of others.
///
/// Limit: as `MAX_CHAINS` of `stacks.rs`.
const MAX_NAMES: usize = 16_384;

/// What samples that have no name are listed as, so that shares sum.
const NOT_KNOWN: &str = "(not known)";

/// What samples of threads that held no lock are listed as.
pub(super) const NO_LOCK: &str = "(no lock)";

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

type ByName = Groups<MAX_NAMES, Named, u64>;

/// What is recorded of a sample's chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Taken {
    stack: Option<i64>,
    user: i32,
    in_kernel: bool,
    cut: bool,
}

impl From<&Sample> for Taken {
    fn from(r: &Sample) -> Taken {
        Taken { stack: r.stack, user: r.user, in_kernel: r.in_kernel, cut: r.cut }
    }
}

#[derive(Default)]
struct Samples {
    samples: u64,
    in_kernel: u64,
    own: Option<u64>,
    quality: Quality,
    processes: ByName,
    threads: Groups<MAX_NAMES, (Pid, Tid, Name), u64>,
    functions: ByName,
    with_callees: ByName,
    lines: ByName,
    innermost: ByName,
    locks: ByName,
    held: ByName,
    chains: Groups<MAX_NAMES, Inwards, u64>,
}

/// The report on the samples of a trace.
pub(super) fn read(input: Input<'_>) -> Result<ProfileReport> {
    if !input.trace.has::<Sample>() {
        return Ok(ProfileReport::default());
    }
    let code = input.code()?;
    let names = Comms::read(input.trace)?;
    let mut threads: BTreeMap<(Pid, Tid), u64> = BTreeMap::new();
    let mut chains: BTreeMap<Taken, u64> = BTreeMap::new();
    input.rows(|r: Sample| {
        *threads.entry((r.pid, r.tid)).or_default() += 1;
        *chains.entry(Taken::from(&r)).or_default() += 1;
    })?;
    let mut samples = Samples { own: input.agent().map(|_| 0), ..Samples::default() };
    for ((pid, tid), n) in threads {
        if Some(pid) == input.agent() {
            *samples.own.get_or_insert(0) += n;
        }
        samples.add_thread((pid, tid), names.of(Tid(pid.0)), names.of(tid), n);
    }
    let mut ran = HashMap::new();
    for (taken, n) in chains {
        let chain = code.sampled(taken.stack);
        samples.add(&chain, taken, n);
        ran.insert(taken.stack, function(&chain).0);
    }
    if input.trace.has::<LockChain>() {
        input.rows(|r: LockChain| {
            if r.kind == LockChainKind::Runs
                && let Some(function) = ran.get(&r.stack)
            {
                samples.add_held(r.lock_name, r.innermost, function.clone());
            }
        })?;
    }
    Ok(samples.rank())
}

/// Where a thread was, in a word.
fn function(chain: &[&Frame]) -> Named {
    match chain.first() {
        Some(frame) => Named(frame.label.clone(), frame.object.clone()),
        None => Named(NOT_KNOWN.into(), "".into()),
    }
}

impl Samples {
    /// Counts samples of a thread.
    fn add_thread(&mut self, (pid, tid): (Pid, Tid), process: Name, thread: Name, n: u64) {
        *self.processes.entry(Named(process, "".into())) += n;
        *self.threads.entry((pid, tid, thread)) += n;
    }

    /// Counts samples of a chain.
    fn add(&mut self, chain: &[&Frame], taken: Taken, n: u64) {
        self.samples += n;
        self.in_kernel += if taken.in_kernel { n } else { 0 };
        self.quality.add(chain, taken.cut, taken.user, n);
        *self.functions.entry(function(chain)) += n;
        let inwards = chain.iter().rev().map(|frame| frame.label.clone());
        *self.chains.entry(Inwards(inwards.collect())) += n;
        let mut met = HashSet::new();
        for frame in chain {
            let name = Named(frame.label.clone(), frame.object.clone());
            // Once, however often a function has called itself.
            if met.insert(name.clone()) {
                *self.with_callees.entry(name) += n;
            }
        }
        // The line of the program, also where it has called the kernel or a library without lines.
        let line = chain.iter().find(|frame| !frame.place.is_empty());
        let line = line.map(|frame| Named(frame.place.clone(), frame.label.clone()));
        *self.lines.entry(line.unwrap_or_else(|| Named(NOT_KNOWN.into(), "".into()))) += n;
    }

    /// A lock that was held at a sample.
    fn add_held(&mut self, lock: Name, is_innermost: bool, function: Name) {
        if is_innermost {
            *self.innermost.entry(Named(lock.clone(), "".into())) += 1;
        }
        *self.locks.entry(Named(lock.clone(), "".into())) += 1;
        *self.held.entry(Named(lock, function)) += 1;
    }

    /// The report, as far as samples tell.
    fn rank(self) -> ProfileReport {
        let of = self.samples;
        let callees: HashMap<Named, u64> =
            self.with_callees.into_ranked(|group| group, |g| Reverse(g.1)).into_iter().collect();
        let rows = |counts: ByName| {
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
            samples: of,
            in_kernel: self.in_kernel,
            of_recording: self.own,
            quality: self.quality,
            processes: rows(self.processes),
            threads,
            functions,
            lines: rows(self.lines),
            innermost,
            locks,
            held,
            chains,
            ..ProfileReport::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{By, SHOWN_ALONE};
    use super::*;
    use crate::document::Table;

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
        let mut samples = Samples::default();
        for n in 0..100 {
            let frame = frame(n);
            let chain: &[&Frame] = if n.is_multiple_of(9) { &[] } else { &[&frame] };
            // As many of a chain as come at once.
            let times = 1 + (n % 2) as u64;
            samples.add(chain, Taken { user: 1, ..Taken::default() }, times);
            let thread = (Pid(1), Tid(times as i32));
            samples.add_thread(thread, "process".into(), "thread".into(), times);
            for (i, lock) in ["inner", "outer"].into_iter().take(n % 3).enumerate() {
                for _ in 0..times {
                    samples.add_held(lock.into(), i == 0, function(chain).0);
                }
            }
        }
        let report = samples.rank();
        assert_eq!((report.samples, report.quality.chains), (150, 150));
        for by in By::ALL {
            let rows = report.rows(by);
            assert!(rows.len() > 1 || by == By::Process, "{by:?}");
            assert_eq!(rows.iter().map(|row| row.samples).sum::<u64>(), 150, "{by:?}");
            assert!(rows.iter().all(|row| row.of == 150), "{by:?}");
            let all = report.all();
            let tables: Vec<Table> = report.tables(by, SHOWN_ALONE, Some(&all), 1).collect();
            assert!(tables[0].rows.last().is_some_and(|row| row.total), "{by:?}");
        }
        // Every third holds none: 0, 3, 6 …, of which each second counts twice.
        let none = report.innermost.iter().find(|row| row.name == NO_LOCK).expect("a row");
        assert_eq!(none.samples, 17 + 2 * 17);
        for lock in &report.locks {
            let of_lock = report.held.iter().filter(|row| row.name == lock.name);
            assert_eq!(of_lock.map(|row| row.samples).sum::<u64>(), lock.samples, "{}", lock.name);
        }
    }
}
