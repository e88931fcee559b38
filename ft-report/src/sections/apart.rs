//! Names where there is no room for a column that tells them apart: threads of one name, and locks of one name in several
//! processes, or held to read and to write.

use std::collections::{BTreeMap, BTreeSet};

/// Names, and the numbers of those that have them. Number 0 is none.
#[derive(Debug)]
pub(super) struct Names<'a> {
    numbers: BTreeMap<&'a str, BTreeSet<i32>>,
    /// What the numbers are.
    word: &'static str,
}

impl<'a> Names<'a> {
    /// Of all these.
    pub(super) fn of(all: impl Iterator<Item = (&'a str, i32)>, word: &'static str) -> Names<'a> {
        let mut numbers = BTreeMap::<&str, BTreeSet<i32>>::new();
        for (name, number) in all {
            numbers.entry(name).or_default().insert(number);
        }
        Names { numbers, word }
    }

    /// The name, with its number behind it where another one has the same.
    pub(super) fn name(&self, name: &str, number: i32) -> String {
        let several = self.numbers.get(name).is_some_and(|numbers| numbers.len() > 1);
        match several && number != 0 {
            true => format!("{name} {}{number}", self.word),
            false => name.to_owned(),
        }
    }
}

/// [`Names::name`] of each.
pub(super) fn apart<'a>(
    all: impl Iterator<Item = (&'a str, i32)>,
    word: &'static str,
) -> Vec<String> {
    let all: Vec<_> = all.collect();
    let names = Names::of(all.iter().copied(), word);
    all.into_iter().map(|(name, number)| names.name(name, number)).collect()
}

/// The same of locks by name, kind and process: with the kind where a process has several of one name.
pub(super) fn locks_apart<'a>(all: impl Iterator<Item = (&'a str, &'a str, i32)>) -> Vec<String> {
    let all: Vec<_> = all.collect();
    let mut kinds = BTreeMap::<(&str, i32), BTreeSet<&str>>::new();
    for &(name, kind, pid) in &all {
        kinds.entry((name, pid)).or_default().insert(kind);
    }
    let with_kind = |&(name, kind, pid): &(&str, &str, i32)| match kinds[&(name, pid)].len() {
        1 => name.to_owned(),
        _ => format!("{name} ({kind})"),
    };
    let names: Vec<String> = all.iter().map(with_kind).collect();
    apart(names.iter().map(String::as_str).zip(all.iter().map(|&(.., pid)| pid)), "pid ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_one_name_have_their_numbers() {
        let threads = [("all", 0), ("poller", 7), ("writer", 8), ("poller", 9), ("all", 3)];
        assert_eq!(
            apart(threads.into_iter(), ""),
            ["all", "poller 7", "writer", "poller 9", "all 3"]
        );
        let locks = [("book", 7), ("book", 8), ("jobs", 7), ("jobs", 7)];
        assert_eq!(apart(locks.into_iter(), "pid "), ["book pid 7", "book pid 8", "jobs", "jobs"]);
    }

    #[test]
    fn locks_of_one_name_have_their_kinds_and_their_processes() {
        let (read, write) = ("rwlock-read", "rwlock-write");
        let locks = [("limits", read, 7), ("limits", write, 7), ("book", "mutex", 7)];
        let names = ["limits (rwlock-read)", "limits (rwlock-write)", "book"];
        assert_eq!(locks_apart(locks.into_iter()), names);
        let locks =
            [("limits", read, 7), ("limits", read, 8), ("limits", write, 8), ("all", "", 0)];
        let names = ["limits", "limits (rwlock-read)", "limits (rwlock-write)", "all"];
        assert_eq!(locks_apart(locks.into_iter()), names);
    }
}
