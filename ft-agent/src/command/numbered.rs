//! Directories of traces that nobody has named: `trace`, `trace-2`, `trace-3` and so on, in the working directory.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::CommandError;

const FIRST: &str = "trace";

/// The directory of the next recording.
pub(super) fn next() -> PathBuf {
    after(Path::new("."), rustix::process::geteuid().as_raw())
}

/// The directory of the newest recording of this user.
///
/// # Errors
///
/// When there is none.
pub(super) fn newest() -> Result<PathBuf, CommandError> {
    last(Path::new("."), rustix::process::geteuid().as_raw()).ok_or(CommandError::NoTrace)
}

fn after(within: &Path, user: u32) -> PathBuf {
    let is_empty = |name: &str| {
        fs::read_dir(within.join(name)).is_ok_and(|mut entries| entries.next().is_none())
    };
    // Others may take numbers, too; the largest is not for them to say.
    let own = numbers(within, |entry| is_of(entry, user)).max().unwrap_or(0);
    if own <= 1 && is_empty(FIRST) {
        return FIRST.into();
    }
    let is_free = |number: &u32| fs::symlink_metadata(within.join(name(*number))).is_err();
    let next = (own..=u32::MAX).skip(1).find(is_free).unwrap_or(u32::MAX);
    name(next).into()
}

fn is_of(entry: &fs::DirEntry, user: u32) -> bool {
    entry.metadata().is_ok_and(|entry| entry.uid() == user)
}

fn last(within: &Path, user: u32) -> Option<PathBuf> {
    // What another user has put there is no recording of this one.
    let own = |entry: &fs::DirEntry| {
        entry.metadata().is_ok_and(|entry| entry.is_dir() && entry.uid() == user)
    };
    numbers(within, own).max().map(|number| name(number).into())
}

fn name(number: u32) -> String {
    if number == 1 { FIRST.to_owned() } else { format!("{FIRST}-{number}") }
}

/// The numbers that are taken.
fn numbers(within: &Path, counts: impl Fn(&fs::DirEntry) -> bool) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(within).into_iter().flatten().flatten();
    entries.filter(move |entry| counts(entry)).filter_map(|entry| {
        let taken = entry.file_name();
        let number = match taken.to_str()?.strip_prefix(FIRST)? {
            "" => 1,
            rest => rest.strip_prefix('-')?.parse().ok()?,
        };
        // Not `trace-1`, `trace-02` or `trace-+2`.
        (name(number).as_str() == taken).then_some(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_recording_has_the_next_number_and_the_newest_the_largest() {
        let dir = tempfile::tempdir().unwrap();
        let user = fs::metadata(dir.path()).unwrap().uid();
        let check = |next: &str, newest: Option<&str>| {
            assert_eq!(after(dir.path(), user), PathBuf::from(next));
            assert_eq!(last(dir.path(), user), newest.map(PathBuf::from));
        };
        let make = |name: &str| fs::create_dir(dir.path().join(name)).unwrap();
        check("trace", None);
        make("trace");
        check("trace", Some("trace"));
        fs::write(dir.path().join("trace/meta.json"), "").unwrap();
        check("trace-2", Some("trace"));
        ["trace-2", "trace-10", "trace-010", "trace-1", "traces", "trace-x"]
            .iter()
            .for_each(|name| make(name));
        check("trace-11", Some("trace-10"));
        fs::write(dir.path().join("trace-12"), "").unwrap();
        check("trace-13", Some("trace-10"));
        // Those of another user are passed over.
        let other = user.wrapping_add(1);
        assert_eq!(after(dir.path(), other), PathBuf::from("trace-3"));
        assert_eq!(last(dir.path(), other), None);
        make("trace-4294967295");
        check("trace-4294967295", Some("trace-4294967295"));
    }
}
