//! What lost the time: the first screen. Threads of one role that waited for one thing are a finding; those that lost most come
//! first, and what had nothing to do is one line.
//!
//! **Rule.** Rows of `blame` are grouped by the role of the thread, what it waited for, and the lock if it is one. A wait is *lost* where
//! the thread had work to do (a lock, a CPU, a page, a file, room in a pipe); a *handover* where another thread was to give it something,
//! and was at work meanwhile; *idle* where it waited for a time of its own choice, for a descriptor of an event loop, for the end of a
//! thread, or for one that had nothing to do itself. For a semaphore and for a child one waits whatever those do that keep it.

mod disk;
mod group;
mod herd;
mod kind;
mod locks;
mod make;
mod names;
mod pattern;
mod places;
mod role;
mod runtime;
mod say;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;

use super::Input;
use super::head::Head;
use crate::code::{Code, Frame};
use crate::document::Section;
use ft_trace::Mark;
use ft_trace::ids::Name;
use ft_trace::store::Result;
use ft_trace::tables::{
    Blame, FileKind, Part, PathKind, Sleep, SymbolKind, SymbolRow, ThreadRow, ThreadTime, Withheld,
};
use group::{Called, Group, Key, MAX_FOUND, by_lock};
use herd::Herds;
pub use kind::{Class, Kind};
pub use locks::LockSum;
use make::finding;
use names::{Census, Newest};
pub use pattern::Pattern;
use pattern::Priorities;
pub use role::Role;
use role::role;
use runtime::Runtime;

/// Findings that are shown.
const SHOWN: usize = 5;

/// What is less than one in so many of the wall time of its threads is no finding.
const WORTH_ONE_IN: i64 = 200;

/// The same of the wall time of all threads.
const WORTH_OF_ALL_ONE_IN: i64 = 4000;

/// The same of interrupts, which strike everybody.
const WORTH_OF_INTERRUPTS: i64 = 50;

/// What is less than one in so many of it comes behind all handovers.
const LITTLE_ONE_IN: i64 = 50;

/// Where no timer was later than that, it comes behind all handovers, too, ns.
const LITTLE_LATE_NS: i64 = 1_000_000;

/// Sleeps outside of a call that are kept; waits that began with further ones are taken for ones that nothing is known of.
///
/// Limit: waits that began with a later one, and have no call chain with a fault, stand as *idle*.
/// Shown by: not shown.
const MAX_FAULTS: usize = 1 << 20;

/// A call with less than one in so many of the time in which threads had nothing to do is not told.
const CALLS_ONE_IN: i64 = 4;

/// The report.
#[derive(Debug, Serialize)]
pub struct FindingsReport {
    /// Version of these values: 1.
    pub version: u32,
    /// Wall time of all threads together, ns.
    pub wall_ns: i64,
    /// Of this, what ran, ns.
    pub running_ns: i64,
    /// Threads.
    pub threads: u64,
    /// The findings, the first one first.
    pub findings: Vec<Finding>,
    /// What had nothing to do, most first.
    pub idle: Vec<Idle>,
    /// Without the kernel's records, waits for traced locks, most first; else empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<LockSum>,
    /// It is a program in Go: its goroutines are not threads, and what they wait for is not seen.
    pub goroutines: bool,
    /// Functions of these have no names.
    #[serde(skip)]
    unmapped: BTreeSet<Runtime>,
    /// Begin of the recording, CLOCK_MONOTONIC ns.
    #[serde(skip)]
    begin_ns: i64,
    /// Switches were recorded.
    #[serde(skip)]
    has_switches: bool,
    #[serde(skip)]
    head: Head,
    #[serde(skip)]
    warnings: Vec<String>,
    #[serde(skip)]
    lacks: Vec<&'static str>,
}

/// Threads of one role lost time at one thing.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The same for the same finding in another recording of the program.
    pub id: String,
    /// Whether the time is lost.
    pub class: Class,
    /// What it was lost to.
    pub kind: Kind,
    /// Of what kind a descriptor is, or which call, where `kind` does not say it; else empty.
    pub what: String,
    /// Address of the lock, where it is one.
    pub object: Option<i64>,
    /// Name of the lock: of the variable that it is, or lies in; null where it is in none.
    pub lock: Option<String>,
    /// Who lost it.
    pub who: Role,
    /// How much, ns: until the threads had a CPU again.
    pub lost_ns: i64,
    /// Of this, the threads had been woken and had no CPU yet, ns.
    pub dispatch_ns: i64,
    /// Wall time of these threads, ns.
    pub wall_ns: i64,
    /// What engineers call it, if that is known.
    pub pattern: Option<Pattern>,
    /// Waits.
    pub waits: i64,
    /// Of these, for nothing.
    pub vain: i64,
    /// Where they waited, the innermost function first.
    pub at: Vec<String>,
    /// Who held the lock, if it is one.
    pub holder: Option<Role>,
    /// Those who ended the waits.
    pub wakers: Vec<String>,
    /// Who is behind it, most first.
    pub behind: Vec<BehindIt>,
    /// Others that the same disk has served meanwhile: threads, and where they were.
    pub also: Option<(Role, Vec<String>)>,
    /// The longest wait.
    pub longest: Option<LongestWait>,
    /// How far it can be believed.
    pub mark: Mark,
}

/// Who is behind a finding.
#[derive(Clone, Debug, Serialize)]
pub struct BehindIt {
    /// Threads; empty: nobody.
    pub who: Role,
    /// Those who waited for them meanwhile, and for whom these waited, most first.
    pub through: Vec<String>,
    /// How much of the time, ns.
    pub ns: i64,
    /// What they did meanwhile, most first.
    pub did: Vec<Did>,
    /// Where they were, the innermost function first.
    pub at: Vec<String>,
    /// They slept there; else they ran, or lost their CPU.
    #[serde(skip)]
    at_sleep: bool,
}

/// What somebody did.
#[derive(Clone, Debug, Serialize)]
pub struct Did {
    /// As in `blame`.
    pub kind: PathKind,
    /// System call in which they slept.
    pub call: Option<String>,
    /// What its descriptor is of.
    pub file: Option<FileKind>,
    /// Who or what did that to them.
    pub culprit: Option<String>,
    /// How long, ns.
    pub ns: i64,
}

/// The longest wait of a finding.
#[derive(Clone, Debug, Serialize)]
pub struct LongestWait {
    /// How long, ns.
    pub ns: i64,
    /// Its begin, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Thread.
    pub comm: String,
    /// Its process.
    pub pid: i32,
    /// Its number.
    pub tid: i32,
    /// What it is called, with its number.
    #[serde(skip)]
    name: String,
}

/// Threads that had nothing to do.
#[derive(Clone, Debug, Serialize)]
pub struct Idle {
    /// Threads.
    pub who: Role,
    /// For how long, ns.
    pub ns: i64,
    /// Of this, until other threads ended, ns.
    pub ends_ns: i64,
    /// In which calls, most first: those with at least a quarter of it.
    pub calls: Vec<String>,
}

impl FindingsReport {
    pub(super) fn read(input: Input<'_>) -> Result<FindingsReport> {
        let code = input.code()?;
        let (names, prios) = threads(input)?;
        let (faults, locks) = (Some(faults(input)?), lock_names(input)?);
        let mut all = All { prios, faults, locks, ..All::default() };
        input.rows(|mut row: ThreadTime| {
            names.rename(row.pid.0, row.tid.0, &mut row.comm);
            all.walls.add(&row);
        })?;
        input.rows(|mut row: Blame| {
            names.rename_all(&mut row);
            all.add(&row, code);
        })?;
        let has = |group| input.recorded(group);
        let lacks = [("stack", "where in the code"), ("profile", "what ran")];
        let head = Head::read(input)?;
        let duration_ns = head.duration_ns.unwrap_or(0);
        Ok(FindingsReport {
            begin_ns: input.trace.meta().start.start_ns,
            has_switches: has("sched"),
            locks: if has("sched") { Vec::new() } else { locks::waits(input)? },
            head,
            warnings: input.trace.meta().warnings.iter().map(ToString::to_string).collect(),
            lacks: lacks.iter().filter(|(group, _)| !has(group)).map(|(_, what)| *what).collect(),
            ..all.over(code, duration_ns)
        })
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new("findings", "");
        say::all(&self, &mut s);
        s.with(self)
    }
}

/// When threads went to sleep outside of a call, as in page faults: thread and time.
fn faults(input: Input<'_>) -> Result<HashSet<(i32, i64)>> {
    let mut faults = HashSet::new();
    input.rows(|row: Sleep| {
        if row.call.is_none() && faults.len() < MAX_FAULTS {
            faults.insert((row.tid.0, row.ts.0));
        }
    })?;
    Ok(faults)
}

/// Names of locks, by process and address.
type Locks = HashMap<(i32, i64), Name>;

fn lock_names(input: Input<'_>) -> Result<Locks> {
    let mut locks = Locks::new();
    input.rows(|row: SymbolRow| {
        if row.kind == SymbolKind::Lock {
            locks.insert((row.pid.0, row.address), row.symbol);
        }
    })?;
    Ok(locks)
}

/// The newest names and priorities of all threads.
fn threads(input: Input<'_>) -> Result<(Newest, Priorities)> {
    let (mut names, mut prios) = (Newest::default(), Priorities::default());
    input.rows(|row: ThreadRow| {
        prios.add(&row);
        if !row.name.is_empty() {
            names.add(row.pid.0, row.tid.0, row.name);
        }
    })?;
    Ok((names, prios))
}

/// Wall times.
#[derive(Debug, Default)]
struct Walls {
    wall_ns: i64,
    running_ns: i64,
    /// By thread and first sight.
    threads: HashSet<(i32, i64)>,
    roles: HashMap<String, i64>,
    /// By number.
    own: HashMap<i32, i64>,
    census: Census,
}

impl Walls {
    fn add(&mut self, row: &ThreadTime) {
        if self.threads.insert((row.tid.0, row.ts.0)) {
            self.wall_ns += row.wall_ns;
            self.census.add(row);
            *self.own.entry(row.tid.0).or_default() += row.wall_ns;
            *self.roles.entry(role(&row.comm).to_owned()).or_default() += row.wall_ns;
        }
        if row.part == Part::Running {
            self.running_ns += row.spent_ns;
        }
    }

    /// That of threads: of one its own, of several that of all of their role.
    fn of(&self, who: &Role, role: &str) -> i64 {
        let own = who.only().and_then(|(_, tid)| self.own.get(&tid));
        own.or_else(|| self.roles.get(role)).copied().unwrap_or(0)
    }
}

/// Whether a thread has lost the time in which it waited for another one, whatever that did: it has asked that one, or what it waits
/// for is kept by that one, or by another for which that one waits.
fn needs(row: &Blame, kind: Kind, code: &Code) -> bool {
    let is_kept = |kind: Kind, turns: bool| match kind {
        Kind::Child => true,
        // Of those of the kernel nothing more is known.
        Kind::Semaphore => turns || row.call.as_deref().is_some_and(|call| call.starts_with("sem")),
        Kind::Turns => true,
        kind => kind.is_held(),
    };
    let asks =
        row.asked && !matches!(kind, Kind::End | Kind::Sleep | Kind::Goroutines | Kind::Unknown);
    if asks || is_kept(kind, row.turns) {
        return true;
    }
    let at_queue = matches!(kind, Kind::Condition | Kind::Futex | Kind::Semaphore);
    if row.through_comm.is_none() || kind.class() != Class::Handover || at_queue {
        return false;
    }
    let (call, lock) = (row.through_call.clone(), row.through_needs);
    let through = Blame { call, lock, file: None, join: false, ..row.clone() };
    lock || is_kept(Kind::of(&through, &code.chain(row.through_stack)), false)
}

/// What had nothing to do.
#[derive(Debug, Default)]
struct IdleSum {
    who: Role,
    ns: i64,
    /// Of this, until threads ended.
    ends_ns: i64,
    calls: BTreeMap<String, i64>,
}

impl IdleSum {
    fn over(mut self, census: &Census) -> Idle {
        census.tell(&mut self.who);
        let mut calls: Vec<_> =
            self.calls.into_iter().filter(|(_, ns)| *ns >= self.ns / CALLS_ONE_IN).collect();
        calls.sort_by_key(|(_, ns)| Reverse(*ns));
        let calls = calls.into_iter().map(|(call, _)| call).collect();
        Idle { who: self.who, ns: self.ns, ends_ns: self.ends_ns, calls }
    }

    /// Takes in what others gave to threads now and then.
    fn merge(&mut self, group: Group) {
        self.who.merge(group.who);
        self.ns += group.lost_ns;
        for (call, ns) in group.calls {
            *self.calls.entry(call).or_default() += ns;
        }
    }
}

/// All rows, by what they have in common.
#[derive(Debug, Default)]
struct All {
    groups: HashMap<Key, Group>,
    herds: Herds,
    idle: BTreeMap<String, IdleSum>,
    walls: Walls,
    prios: Priorities,
    /// Sleeps outside of a call, if that is known. Of what slept when the recording began, no call is known either.
    faults: Option<HashSet<(i32, i64)>>,
    locks: Locks,
    /// A thread waited for goroutines that can run.
    goroutines: bool,
}

impl All {
    /// Puts a row where it belongs.
    fn add(&mut self, row: &Blame, code: &Code) {
        let chain = code.chain(row.stack);
        let mut kind = Kind::of(row, &chain);
        let is_seen = |faults: &HashSet<_>| faults.contains(&(row.tid.0, row.ts.0));
        let is_known =
            |chain: &[&Frame]| chain.iter().any(|f| f.kernel && f.label.contains("fault"));
        if kind == Kind::Fault && !self.faults.as_ref().is_none_or(is_seen) && !is_known(&chain) {
            kind = Kind::Unknown;
        }
        self.goroutines |= kind == Kind::Goroutines;
        let needs = needs(row, kind, code);
        if matches!(kind, Kind::Condition | Kind::Semaphore | Kind::Futex) {
            self.herds.add(row);
        }
        // Whoever is woken for nothing that it was kept from, and has no CPU, waits for one; so does one for which there is room, if it is
        // another than who has made the room that has the CPU.
        let is_others = row.culprit_tid.is_some_and(|tid| tid != 0 && row.waker_tid != Some(tid));
        let is_kept = kind.class() == Class::Lost && (kind != Kind::Room || !is_others);
        let was_kept = is_kept || needs;
        if row.part == Part::Dispatch && !was_kept {
            kind = Kind::Cpu;
            if row.culprit_tid == Some(0) {
                return self.rests(row, kind);
            }
        }
        // Who waits for one that waits for a time has no work, unless it has asked that one, or that one keeps what it needs.
        let does = !matches!(row.kind, PathKind::Timer | PathKind::Unknown);
        // Who looks after a time whether there is anything has none to do, whoever brings something at last.
        if row.again && !was_kept {
            return self.rests(row, kind);
        }
        let is_lost = match kind.class() {
            Class::Lost => true,
            Class::Handover => {
                needs && row.part == Part::Dispatch || row.depth > 0 && (does || needs)
            }
            Class::Idle => needs && (row.part == Part::Dispatch || row.depth > 0),
        };
        if !is_lost {
            return self.rests(row, kind);
        }
        let what = match (kind, row.file, &row.call) {
            (Kind::Room | Kind::Data, Some(file), _) => file.word().to_owned(),
            (Kind::Call | Kind::Sync | Kind::File | Kind::AddressSpace, _, Some(call)) => {
                call.to_string()
            }
            (Kind::AddressSpace, _, None) => "page faults".to_owned(),
            (Kind::Throttled, ..) => throttled(row),
            _ => String::new(),
        };
        let is_futex = row.call.as_deref().is_some_and(|call| call.starts_with("futex"));
        // Other things have several addresses, as a condition has. A lock that processes share has one, where they were forked.
        let object = row.object.filter(|_| is_futex).and_then(|futex| kind.object(futex));
        let lock = object.and(row.object).and_then(|at| self.locks.get(&(row.pid.0, at)));
        let key = Key { role: role(&row.comm).to_owned(), kind, object, what };
        if self.groups.len() < MAX_FOUND || self.groups.contains_key(&key) {
            let is_inverted = self.prios.is_inverted(row);
            let group = self.groups.entry(key).or_default();
            group.add(row, kind, needs);
            group.lock.merge(lock.map_or(Called::Unknown, |name| Called::by(kind, name)));
            group.inverted_ns += if is_inverted { row.ns } else { 0 };
        }
    }

    fn rests(&mut self, row: &Blame, kind: Kind) {
        let name = role(&row.comm).to_owned();
        if self.idle.len() >= MAX_FOUND && !self.idle.contains_key(&name) {
            return;
        }
        let sum = self.idle.entry(name).or_default();
        sum.who.add(&row.comm, Some(row.pid.0), Some(row.tid.0));
        sum.ns += row.ns;
        sum.ends_ns += if kind == Kind::End { row.ns } else { 0 };
        if let Some(call) = &row.call {
            *sum.calls.entry(call.to_string()).or_default() += row.ns;
        }
    }

    /// Nothing more comes; the recording took so long.
    fn over(self, code: &Code, duration_ns: i64) -> FindingsReport {
        let All { groups, herds, mut idle, walls, goroutines, .. } = self;
        let least = walls.wall_ns / WORTH_OF_ALL_ONE_IN;
        let is_worth =
            |f: &Finding| f.wall_ns > 0 && f.lost_ns > (f.wall_ns / worth(f.kind)).max(least);
        let mut findings = Vec::new();
        for (key, group) in by_lock(groups) {
            // One that is given something now and then has no work between. At a futex nobody says that it was asked for.
            let is_asked = 2 * group.needed_ns > group.lost_ns
                && !matches!(key.kind, Kind::Condition | Kind::Futex | Kind::Semaphore);
            let is_given = key.kind.class() == Class::Handover && !is_asked;
            if is_given && group.waits < OFTEN {
                idle.entry(key.role).or_default().merge(group);
                continue;
            }
            findings.push(finding(key, group, code, &walls));
        }
        let mut findings: Vec<Finding> = findings
            .into_iter()
            .filter(is_worth)
            .chain(herds.findings(code, &walls.census))
            .collect();
        let shared: Vec<_> = findings.iter().map(|f| disk::shared(f, &findings)).collect();
        findings.iter_mut().zip(shared).for_each(|(finding, also)| finding.also = also);
        findings.sort_by_key(|f| (rank(f, duration_ns), Reverse(f.lost_ns), f.id.clone()));
        let mut idle: Vec<Idle> = idle.into_values().map(|idle| idle.over(&walls.census)).collect();
        idle.sort_by_key(|idle| (Reverse(idle.ns - idle.ends_ns), idle.who.name.clone()));
        for finding in &mut findings {
            finding.pattern = finding.pattern.or_else(|| pattern::of_loop(finding, &idle));
        }
        let shown = &findings[..findings.len().min(SHOWN)];
        FindingsReport {
            version: 1,
            unmapped: runtime::unmapped(shown, code),
            wall_ns: walls.wall_ns,
            running_ns: walls.running_ns,
            threads: walls.threads.len() as u64,
            findings,
            idle,
            locks: Vec::new(),
            goroutines,
            begin_ns: 0,
            has_switches: false,
            head: Head::default(),
            warnings: Vec::new(),
            lacks: Vec::new(),
        }
    }
}

/// Waits for what one is given unasked that are a finding.
const OFTEN: i64 = 5;

fn worth(kind: Kind) -> i64 {
    if kind == Kind::Interrupt { WORTH_OF_INTERRUPTS } else { WORTH_ONE_IN }
}

/// What it is that a CPU is withheld for.
fn throttled(row: &Blame) -> String {
    match row.withheld {
        Some(Withheld::Quota) => {
            let whose = row.culprit.as_deref().unwrap_or("a cgroup");
            format!("by the CPU quota of {whose}")
        }
        Some(Withheld::Budget) => "by its budget of SCHED_DEADLINE".to_owned(),
        _ => "as real-time threads had used up their share (sched_rt_runtime_us, fair server)"
            .to_owned(),
    }
}

/// What is lost comes first, then handovers, then what is little: of the time of its threads, or of the recording, where these lived
/// shorter.
fn rank(finding: &Finding, duration_ns: i64) -> u8 {
    // Every timer is late by a little.
    let each_little = finding.kind == Kind::Late
        && finding.longest.as_ref().is_none_or(|longest| longest.ns < LITTLE_LATE_NS);
    let little = each_little || finding.lost_ns <= finding.wall_ns.max(duration_ns) / LITTLE_ONE_IN;
    match finding.class {
        Class::Lost if !little => 0,
        _ if !little => 1,
        Class::Lost => 2,
        _ => 3,
    }
}
