//! What is compared: a quantity of a subject, which means the same in every trace.
//!
//! Numbers of processes and threads and addresses of locks are other ones in every run. So a subject is made of names and
//! source places alone, and what has neither is no subject (`Namer::lock`).

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use ft_trace::ids::{Name, Pid, Tid};
use ft_trace::tables::ThreadRow;
use serde::Serialize;

/// What kind of interval a subject has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The recording as a whole.
    Run,
    /// Holds of a lock.
    Hold,
    /// Waits for a lock.
    Wait,
    /// Wake-ups of a thread: from waking to running.
    Dispatch,
    /// Gaps of a polling thread.
    Gap,
    /// Scopes of a name.
    Scope,
    /// All the time of a thread.
    Time,
}

impl Class {
    /// All of them.
    pub const ALL: [Class; 7] = [
        Class::Run,
        Class::Hold,
        Class::Wait,
        Class::Dispatch,
        Class::Gap,
        Class::Scope,
        Class::Time,
    ];

    /// Its word in conditions, in JSON and in the first column.
    pub fn word(self) -> &'static str {
        match self {
            Class::Run => "run",
            Class::Hold => "hold",
            Class::Wait => "wait",
            Class::Dispatch => "dispatch",
            Class::Gap => "gap",
            Class::Scope => "scope",
            Class::Time => "time",
        }
    }

    /// What is compared of it.
    pub fn quantities(self) -> &'static [Quantity] {
        use Quantity::*;
        match self {
            Class::Run => &[Length],
            Class::Time => &[Running, Preempted, Dispatch, Blocked, Interrupts, Unexplained],
            _ => &[Median, P99, Mean, Sum, Rate],
        }
    }

    /// It is made of events of the program, not of records of the kernel.
    pub(super) fn is_of_user_events(self) -> bool {
        matches!(self, Class::Hold | Class::Wait | Class::Gap | Class::Scope)
    }
}

/// What is compared of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quantity {
    /// Length of the recording, ns.
    Length,
    /// Median of the lengths, ns.
    Median,
    /// What 99 % of the lengths do not exceed, ns; of 100 and more.
    P99,
    /// Average of the lengths, ns.
    Mean,
    /// Sum of the lengths over a recording, ns.
    Sum,
    /// How many in a second of the recording.
    Rate,
    /// Share of a thread's time on a CPU, outside interrupts.
    Running,
    /// Share off the CPU while runnable, because it had to leave it.
    Preempted,
    /// Share off the CPU, woken and not yet dispatched.
    Dispatch,
    /// Share off the CPU, waiting for something.
    Blocked,
    /// Share on the CPU in interrupts.
    Interrupts,
    /// Share covered by no record.
    Unexplained,
}

/// In what a compared value is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ValueUnit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Ns,
    /// How many in a second.
    #[serde(rename = "per second")]
    PerSecond,
    /// A part of a whole, from 0 to 1.
    #[serde(rename = "share")]
    Share,
}

impl Quantity {
    /// How many there are.
    pub const COUNT: usize = 12;

    /// Its word in conditions, in JSON and in tables.
    pub fn word(self) -> &'static str {
        match self {
            Quantity::Length => "length",
            Quantity::Median => "median",
            Quantity::P99 => "p99",
            Quantity::Mean => "mean",
            Quantity::Sum => "sum",
            Quantity::Rate => "rate",
            Quantity::Running => "running",
            Quantity::Preempted => "preempted",
            Quantity::Dispatch => "dispatch",
            Quantity::Blocked => "blocked",
            Quantity::Interrupts => "interrupts",
            Quantity::Unexplained => "unexplained",
        }
    }

    /// In what it is measured.
    pub fn unit(self) -> ValueUnit {
        match self {
            Quantity::Rate => ValueUnit::PerSecond,
            Quantity::Length
            | Quantity::Median
            | Quantity::P99
            | Quantity::Mean
            | Quantity::Sum => ValueUnit::Ns,
            Quantity::Running
            | Quantity::Preempted
            | Quantity::Dispatch
            | Quantity::Blocked
            | Quantity::Interrupts
            | Quantity::Unexplained => ValueUnit::Share,
        }
    }

    /// It grows with each interval, so a lost one makes it less; the others are of those that are known.
    pub(super) fn is_total(self) -> bool {
        matches!(self, Quantity::Sum | Quantity::Rate)
    }
}

/// Whom or what intervals have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject {
    /// What kind of intervals.
    pub class: Class,
    /// Name of the process; empty where every trace is of one program.
    pub process: Name,
    /// Name of the lock, of the thread or of the scope; empty for locks without one, which are known by their place.
    pub name: Name,
    /// `mutex`, `rwlock-read`, …; empty where it is about no lock.
    pub kind: Name,
    /// Source place of the acquisition; empty: all places.
    pub place: Name,
    /// Who held or waited; empty: all threads.
    pub thread: Name,
}

impl Subject {
    /// Of the whole recording.
    pub(super) fn run() -> Subject {
        let none: Name = "".into();
        let [process, name, kind, place] = std::array::from_fn(|_| none.clone());
        Subject { class: Class::Run, process, name, kind, place, thread: none }
    }

    /// Whether it is all intervals of its name: neither of one place nor of one thread only.
    pub fn is_whole(&self) -> bool {
        self.thread.is_empty() && (self.place.is_empty() || self.name.is_empty())
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.class.word())?;
        if !self.name.is_empty() {
            write!(f, " {}", self.name)?;
        }
        if !self.place.is_empty() {
            write!(f, " at {}", self.place.rsplit('/').next().unwrap_or(&self.place))?;
        }
        if !self.thread.is_empty() {
            write!(f, " by {}", self.thread)?;
        }
        Ok(())
    }
}

/// Whether a name is an address, which is another one in every run.
fn is_address(name: &str) -> bool {
    let digits = name.strip_prefix("0x");
    digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Makes subjects of the rows of one trace.
#[derive(Debug, Default)]
pub(super) struct Namer {
    processes: HashMap<Pid, Name>,
    threads: HashMap<(Pid, Tid), Name>,
    none: Name,
}

impl Namer {
    /// Learns the names of a thread.
    pub(super) fn learn(&mut self, row: &ThreadRow) {
        if row.observed {
            self.processes.insert(row.pid, row.process.clone());
            self.threads.insert((row.pid, row.tid), row.name.clone());
        }
    }

    /// Names of the processes that were recorded.
    pub(super) fn processes(&self) -> BTreeSet<Name> {
        self.processes.values().cloned().collect()
    }

    fn process(&self, pid: Pid) -> Name {
        self.processes.get(&pid).unwrap_or(&self.none).clone()
    }

    /// The newest name of a thread.
    fn thread(&self, pid: Pid, tid: Tid) -> Name {
        self.threads.get(&(pid, tid)).unwrap_or(&self.none).clone()
    }

    /// All of one name: a thread's wake-ups, gaps or time, or scopes.
    pub(super) fn named(&self, class: Class, pid: Pid, name: &Name) -> Subject {
        let none = || self.none.clone();
        let process = self.process(pid);
        Subject { class, process, name: name.clone(), kind: none(), place: none(), thread: none() }
    }

    /// All of a lock, of the lock at a place, and of the lock by a thread. A lock without a name is known by the place
    /// alone; without either there is nothing to know it by.
    pub(super) fn lock(
        &self,
        class: Class,
        (pid, tid): (Pid, Tid),
        [lock, kind, place]: [&Name; 3],
    ) -> Vec<Subject> {
        let named = !is_address(lock) && !lock.is_empty();
        let placed = !is_address(place) && !place.is_empty();
        let name = if named { lock.clone() } else { self.none.clone() };
        let all = Subject { kind: kind.clone(), ..self.named(class, pid, &name) };
        let at = Subject { place: place.clone(), ..all.clone() };
        match (named, placed) {
            (false, false) => Vec::new(),
            (false, true) => vec![at],
            (true, _) => {
                let by = Subject { thread: self.thread(pid, tid), ..all.clone() };
                let parts = [placed.then_some(at), (!by.thread.is_empty()).then_some(by)];
                [all].into_iter().chain(parts.into_iter().flatten()).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_known_by_its_name_or_its_place_and_never_by_its_address() {
        let mut namer = Namer::default();
        let row = |name: &str| ThreadRow {
            ts: ft_trace::ids::Nanos(0),
            tid: Tid(7),
            pid: Pid(1),
            name: name.into(),
            process: "bank".into(),
            prio: None,
            observed: true,
        };
        namer.learn(&row("teller"));
        let check = |lock: &str, place: &str, expected: &[&str]| {
            let names = [lock, "mutex", place].map(Name::from);
            let [lock, kind, place] = &names;
            let found = namer.lock(Class::Hold, (Pid(1), Tid(7)), [lock, kind, place]);
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{lock} {place}");
        };
        let all = ["hold book", "hold book at a.rs:1", "hold book by teller"];
        check("book", "src/a.rs:1", &all);
        check("book", "0x55f89d844220", &["hold book", "hold book by teller"]);
        check("0x55f89d844220", "src/a.rs:1", &["hold at a.rs:1"]);
        check("0x55f89d844220", "0x7f0012", &[]);
        check("0xbook", "", &["hold 0xbook", "hold 0xbook by teller"]);
    }
}
