//! How subjects are called where several are named together: by their labels, and where two have one label, by what tells
//! these apart, too. Processes that have a name in common are one: their numbers are others in every run.

use std::collections::{BTreeMap, BTreeSet};

use ft_trace::ids::Name;
use ft_user::glob;

use super::subject::Subject;

/// Which labels are those of several subjects: kinds of lock and processes, by label.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<String, [BTreeSet<Name>; 2]>);

impl Names {
    /// Of all that are named together.
    pub(super) fn of<'a>(subjects: impl IntoIterator<Item = &'a Subject>) -> Names {
        let mut names = Names::default();
        for subject in subjects {
            let [kinds, processes] = names.0.entry(subject.to_string()).or_default();
            kinds.insert(subject.kind.clone());
            processes.insert(subject.process.clone());
        }
        names
    }

    /// What this one is called: `hold book`, or `hold book (mutex) in bank`.
    pub(super) fn name(&self, subject: &Subject) -> String {
        let several = |names: &BTreeSet<Name>| names.len() > 1;
        let [kind, process] =
            self.0.get(&subject.to_string()).map_or([false; 2], |all| all.each_ref().map(several));
        name(subject, kind, process)
    }
}

/// Whether a pattern is one of the ways to call a subject, without the word of its class.
pub(super) fn matches(pattern: &str, subject: &Subject) -> bool {
    let class = subject.class.word();
    [(false, false), (true, false), (false, true), (true, true)].into_iter().any(
        |(kind, process)| {
            let name = name(subject, kind, process);
            glob::matches(pattern, name.strip_prefix(class).unwrap_or(&name).trim_start())
        },
    )
}

fn name(subject: &Subject, kind: bool, process: bool) -> String {
    let mut name = subject.to_string();
    if kind && !subject.kind.is_empty() {
        name += &format!(" ({})", subject.kind);
    }
    if process && !subject.process.is_empty() {
        name += &format!(" in {}", subject.process);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::super::subject::Class;
    use super::*;

    #[test]
    fn what_tells_subjects_of_one_label_apart_is_said() {
        let hold = |name: &str, kind: &str, process: &str| {
            let [name, kind, process] = [name, kind, process].map(Name::from);
            Subject { class: Class::Hold, name, kind, process, ..Subject::run() }
        };
        let all = [
            hold("book", "mutex", "bank"),
            hold("book", "mutex", "shop"),
            hold("log", "mutex", "bank"),
            hold("table", "rwlock-read", "bank"),
            hold("table", "rwlock-write", "bank"),
            hold("table", "rwlock-read", ""),
        ];
        let names = Names::of(&all);
        let found = all.each_ref().map(|subject| names.name(subject));
        let expected = [
            "hold book in bank",
            "hold book in shop",
            "hold log",
            "hold table (rwlock-read) in bank",
            "hold table (rwlock-write) in bank",
            "hold table (rwlock-read)",
        ];
        assert_eq!(found, expected);
        let called = |pattern: &str| all.each_ref().map(|subject| matches(pattern, subject));
        assert_eq!(called("book"), [true, true, false, false, false, false]);
        assert_eq!(called("book in shop"), [false, true, false, false, false, false]);
        assert_eq!(called("log in bank"), [false, false, true, false, false, false]);
        assert_eq!(called("table (rwlock-read)*"), [false, false, false, true, false, true]);
    }
}
