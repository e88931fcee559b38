//! Which subject of B is which of A.
//!
//! By name: of the lock, the thread, the scope; by the place of the acquisition, for places and for locks without a
//! name; and by the process. Two subjects are taken for the same although they are called differently, which is stated:
//!
//! - where every recording is of one program, that program, whatever its file is called (`bank-old`, `bank-new`), and
//!   with it the threads that have its name;
//! - places of one lock in one file whose lines differ but are as many: the first is the first, and so on. A version of a
//!   program has its lines elsewhere, seldom in another order.
//!
//! Places and threads of a lock that has only one give no rows of their own: those would say the same again, and each row
//! makes it harder to show that another differs.

use std::collections::{BTreeMap, BTreeSet};

use ft_trace::ids::Name;

use super::lengths::Cell;
use super::measure::Run;
use super::subject::{Class, Subject};

/// What is known of the subjects in one unit.
pub(super) type Unit = BTreeMap<Subject, Cell>;

/// Subjects that A and B have, and what is known of them, by side.
pub(super) struct Matched {
    /// Those that both have.
    pub(super) subjects: BTreeSet<Subject>,
    /// Units, by side.
    pub(super) units: [Vec<Unit>; 2],
    /// What is known of whole recordings alone, by side.
    pub(super) whole: [Vec<Unit>; 2],
    /// Subjects that only one side has, and how many intervals of each.
    pub(super) unmatched: [Vec<(Subject, u64)>; 2],
    /// Places of A, and of B that are taken for them.
    pub(super) moved: Vec<(String, String)>,
    /// The program, where A and B call it differently.
    pub(super) program: Option<(Name, Name)>,
}

/// Matches the subjects of two sides.
pub(super) fn matched(a: &[Run], b: &[Run]) -> Matched {
    let program = program([a, b]);
    let mut units = [a, b].map(|runs| of(runs, |run| &run.units, program.as_ref()));
    let mut whole =
        [a, b].map(|runs| of(runs, |run| std::slice::from_ref(&run.whole), program.as_ref()));
    let moved = Moved::between(&units);
    moved.rename(&mut units[1]);
    let have = [0, 1].map(|side| -> BTreeSet<&Subject> {
        units[side].iter().chain(&whole[side]).flat_map(Unit::keys).collect()
    });
    let redundant = redundant(have[0].union(&have[1]).copied());
    // A lock that is there and that nobody had to wait for had no waits, which is a figure.
    let has = |side: usize, subject: &Subject| {
        let held = || Subject { class: Class::Hold, ..subject.clone() };
        have[side].contains(subject) || subject.class == Class::Wait && have[side].contains(&held())
    };
    let all: BTreeSet<&Subject> =
        have[0].union(&have[1]).copied().filter(|subject| !redundant.contains(subject)).collect();
    let subjects: BTreeSet<Subject> =
        all.iter().filter(|s| has(0, s) && has(1, s)).map(|s| (*s).clone()).collect();
    let unmatched = [0, 1].map(|side| {
        let alone = all.iter().filter(|s| have[side].contains(**s) && !subjects.contains(**s));
        // Of a lock that the other side does not have, its places and threads need not be listed.
        let told = alone.filter(|s| s.is_whole() || subjects.contains(&all_of(s)));
        told.map(|s| ((*s).clone(), count(units[side].iter().chain(&whole[side]), s))).collect()
    });
    whole.iter_mut().chain(&mut units).flatten().for_each(|unit| {
        unit.retain(|subject, _| subjects.contains(subject));
    });
    let program = program.filter(|(a, b)| a != b);
    Matched { subjects, units, whole, unmatched, moved: moved.told, program }
}

/// All intervals of the lock of which this is one place or thread.
fn all_of(subject: &Subject) -> Subject {
    let none: Name = "".into();
    Subject { place: none.clone(), thread: none, ..subject.clone() }
}

fn count<'a>(units: impl Iterator<Item = &'a Unit>, subject: &Subject) -> u64 {
    units.filter_map(|unit| unit.get(subject)).map(|cell| cell.count).sum()
}

/// The one program of each side, where there is but one.
fn program(sides: [&[Run]; 2]) -> Option<(Name, Name)> {
    let one = |runs: &[Run]| {
        let names: BTreeSet<&Name> = runs.iter().flat_map(|run| &run.processes).collect();
        match names.len() {
            1 => names.into_iter().next().cloned(),
            _ => None,
        }
    };
    Some((one(sides[0])?, one(sides[1])?))
}

/// The units of a side, with the program's name taken out.
fn of<'a>(
    runs: &'a [Run],
    units: impl Fn(&'a Run) -> &'a [Unit],
    program: Option<&(Name, Name)>,
) -> Vec<Unit> {
    let rename = |subject: &Subject| match program {
        None => subject.clone(),
        Some((a, b)) => {
            // A thread that has no name of its own has the program's.
            let known = |name: &Name| if name == b { a.clone() } else { name.clone() };
            let is_thread = matches!(subject.class, Class::Dispatch | Class::Gap | Class::Time);
            Subject {
                process: "".into(),
                name: if is_thread { known(&subject.name) } else { subject.name.clone() },
                thread: known(&subject.thread),
                ..subject.clone()
            }
        }
    };
    let renamed = |unit: &Unit| unit.iter().map(|(s, cell)| (rename(s), cell.clone())).collect();
    runs.iter().flat_map(units).map(renamed).collect()
}

/// Of which place of A a place of B is, where the lines of a file have moved.
#[derive(Default)]
struct Moved {
    /// By lock and place of B.
    places: BTreeMap<(Name, Name, Name, Name), Name>,
    told: Vec<(String, String)>,
}

/// A lock in a file: process, name, kind, and the file.
type InFile = (Name, Name, Name, String);

impl Moved {
    fn between(units: &[Vec<Unit>; 2]) -> Moved {
        let [a, b] = [0, 1].map(|side| lines(&units[side]));
        let mut moved = Moved::default();
        for (key, of_a) in a {
            let Some(of_b) = b.get(&key).filter(|of_b| **of_b != of_a && of_b.len() == of_a.len())
            else {
                continue;
            };
            let (process, name, kind, file) = key;
            for (line_a, line_b) in of_a.iter().zip(of_b).filter(|(a, b)| a != b) {
                let [a, b] = [line_a, line_b].map(|line| format!("{file}:{line}"));
                let of_b = (process.clone(), name.clone(), kind.clone(), b.as_str().into());
                moved.places.insert(of_b, a.as_str().into());
                moved.told.push((a, b));
            }
        }
        moved.told.sort();
        moved.told.dedup();
        moved
    }

    fn rename(&self, units: &mut [Unit]) {
        if self.places.is_empty() {
            return;
        }
        for unit in units {
            let renamed = std::mem::take(unit).into_iter().map(|(subject, cell)| {
                let Subject { process, name, kind, place, .. } = &subject;
                let key = (process.clone(), name.clone(), kind.clone(), place.clone());
                match self.places.get(&key) {
                    Some(place) => (Subject { place: place.clone(), ..subject }, cell),
                    None => (subject, cell),
                }
            });
            *unit = renamed.collect();
        }
    }
}

/// The lines of each file in which a lock is acquired.
fn lines(units: &[Unit]) -> BTreeMap<InFile, BTreeSet<u32>> {
    let mut lines: BTreeMap<InFile, BTreeSet<u32>> = BTreeMap::new();
    for Subject { process, name, kind, place, .. } in units.iter().flat_map(Unit::keys) {
        let Some((file, line)) = place.rsplit_once(':') else { continue };
        let Ok(line) = line.parse() else { continue };
        let key = (process.clone(), name.clone(), kind.clone(), file.to_owned());
        lines.entry(key).or_default().insert(line);
    }
    lines
}

/// Places and threads of locks that have only one.
fn redundant<'a>(subjects: impl Iterator<Item = &'a Subject>) -> BTreeSet<Subject> {
    let mut parts: BTreeMap<(Subject, bool), Vec<&Subject>> = BTreeMap::new();
    for subject in subjects.filter(|subject| !subject.is_whole()) {
        parts.entry((all_of(subject), subject.thread.is_empty())).or_default().push(subject);
    }
    parts.into_values().filter(|parts| parts.len() == 1).flatten().cloned().collect()
}

#[cfg(test)]
mod tests;
