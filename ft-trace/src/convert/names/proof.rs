//! The files that say what is at the addresses of a process: which they are, proved before they are opened.
//!
//! Their owners can put others in their place at any time, in mount namespaces of their own, too, and who converts a
//! recording is often root: names must come from the file that the process had, and never from one that its user may not
//! read.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use super::Failure;
use super::worker::MAX_FILE_BYTES;
use crate::foreign_file::ForeignFile;
use crate::ids::Pid;
use crate::mounts::Mounts;
use crate::spool::mapping::Mapping;
use crate::{build_id, look, vdso};

/// Most that is read of what a process has mapped, bytes.
///
/// Limit: the place, or the function, is an address in hexadecimal.
/// Shown by: not shown: names alone; rows keep their address.
const MAX_MAPS_BYTES: u64 = 64 << 20;

/// A file of this size may have holes without end.
const SMALL_BYTES: u64 = 64 << 20;

/// How much larger than its place on the disk a file can be that has no holes: some file systems compress.
///
/// Limit: as `MAX_MAPS_BYTES`.
const MAX_COMPRESSION: u64 = 32;

const ROOT: u32 = 0;

/// What is mounted where we look, and where the process does.
#[derive(Clone, Copy)]
pub(super) struct Mounted<'m> {
    pub(super) ours: &'m Mounts,
    pub(super) its: &'m Mounts,
}

/// The file of a mapping: the one that was mapped, whoever finds it where; else one of the same build id, of root or of the user of the
/// process: anybody can give a file a build id. The user may read it, in its place. Without a build id only the file itself counts. The
/// package of its debugging information, of the same owner, comes behind it.
pub(super) fn program(
    pid: Pid,
    user: Option<u32>,
    mapping: &Mapping,
    mounts: Mounted<'_>,
) -> Option<Vec<File>> {
    let is_its = |file: &File| {
        !mapping.build_id.is_empty()
            && build_id::of_opened(file).as_ref() == Some(&mapping.build_id)
    };
    if mapping.path == vdso::NAME {
        return Some(vec![vdso::image().filter(is_its)?]);
    }
    let is_mapped =
        |held: &ForeignFile| held.facts().is_some_and(|facts| mapping.file == Some(facts.key));
    let in_its_root = |path: &str| ForeignFile::of_process(pid.0, path, mounts.its);
    let here = |path: &str| ForeignFile::here(Path::new(path), mounts.ours);
    let its_own = in_its_root(&mapping.path).filter(is_mapped);
    let is_its_own = its_own.is_some();
    let held = its_own.or_else(|| here(&mapping.path))?;
    let facts = held.facts()?;
    let is_trusted = || {
        let owner = Some(facts.owner);
        !mapping.build_id.is_empty()
            && (owner == Some(ROOT) || owner == user)
            && may_reach(Path::new(&mapping.path), user, mounts.ours)
    };
    let may_read = match is_mapped(&held) {
        true => facts.may_be_read_by(user) || facts.is_for_its_group,
        false => facts.may_be_read_by(user) && is_trusted(),
    };
    if !may_read {
        return None;
    }
    let file = held.open().filter(|file| is_mapped(&held) || is_its(file))?;
    let is_owners = |package: &ForeignFile| {
        package.facts().is_some_and(|of_package| {
            of_package.owner == facts.owner && of_package.may_be_read_by(user)
        })
    };
    let path = format!("{}.dwp", mapping.path);
    let package = if is_its_own { in_its_root(&path) } else { here(&path) }.filter(is_owners);
    let files = [Some(file), package.and_then(|package| package.open())];
    let files: Vec<File> = files.into_iter().flatten().collect();
    files.iter().all(is_worth_reading).then_some(files)
}

/// Whether a user may look a path up, by the rights of all directories on it.
fn may_reach(path: &Path, user: Option<u32>, mounts: &Mounts) -> bool {
    let may_search = |directory: &Path| {
        let facts = ForeignFile::here(directory, mounts).and_then(|held| held.facts());
        facts.is_some_and(|facts| facts.may_be_searched_by(user))
    };
    path.ancestors().skip(1).all(may_search)
}

/// What is read of a file takes about as much memory, and a file with holes takes nothing of whoever made it.
fn is_worth_reading(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    const BLOCK_BYTES: u64 = 512;
    let Ok(metadata) = file.metadata() else { return false };
    let there = metadata.blocks().saturating_mul(BLOCK_BYTES);
    metadata.len() <= MAX_FILE_BYTES.min(SMALL_BYTES.max(there.saturating_mul(MAX_COMPRESSION)))
}

/// The map that the compiler of a process of this user has left that had mapped these: in its own root directory, under the
/// number that it has in its own namespace, while it runs; else in ours. [`Failure::Unanswered`] if it does not say what it has mapped.
pub(super) fn perf_map(
    pid: Pid,
    user: Option<u32>,
    mappings: &[Mapping],
    mounts: Mounted<'_>,
) -> Result<Option<File>, Failure> {
    let runs = runs_still(pid, mappings)?;
    let own = || {
        let number = own_number(pid).filter(|_| runs)?;
        let path = format!("/tmp/perf-{number}.map");
        let held = ForeignFile::of_process(pid.0, &path, mounts.its)?;
        may_speak(&held, user).then_some(held)
    };
    let path = format!("/tmp/perf-{pid}.map");
    let here = || {
        let held = ForeignFile::here(Path::new(&path), mounts.ours)?;
        may_speak(&held, user).then_some(held)
    };
    Ok(own().or_else(here).and_then(|held| held.open()))
}

/// Anybody can write such a file, and give a file of somebody else such a name.
fn may_speak(held: &ForeignFile, user: Option<u32>) -> bool {
    held.facts().is_some_and(|facts| user == Some(facts.owner) && facts.links == 1)
}

/// The number of a process in its own namespace, the last of its numbers (proc_pid_status(5)).
fn own_number(pid: Pid) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_ascii_whitespace().next_back()?.parse().ok()
}

/// Whether who has this number now has something mapped where the process had it, so that it is this process.
fn runs_still(pid: Pid, mappings: &[Mapping]) -> Result<bool, Failure> {
    let maps = look::at(pid.0, move || {
        let mut text = Vec::new();
        let maps = File::open(format!("/proc/{pid}/maps"));
        let _ = maps.and_then(|maps| maps.take(MAX_MAPS_BYTES).read_to_end(&mut text));
        text
    });
    let text = maps.ok_or(Failure::Unanswered)?;
    let text = String::from_utf8_lossy(&text);
    let place = |mapping: &Mapping| format!("{:08x}-{:08x} ", mapping.start, mapping.end);
    let had: HashSet<String> = mappings.iter().map(place).collect();
    Ok(text.lines().any(|line| line.find(' ').is_some_and(|at| had.contains(&line[..=at]))))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};
    use std::path::PathBuf;

    use super::*;

    fn program(pid: Pid, user: Option<u32>, mapping: &Mapping) -> Option<Vec<File>> {
        let none = Mounts::default();
        super::program(pid, user, mapping, Mounted { ours: &none, its: &none })
    }

    const OWN: fn() -> Pid = || Pid(std::process::id() as i32);

    /// A mapping of what is at `path`, which is recorded by its key.
    fn mapped(path: &Path, build_id: &str) -> Mapping {
        let file = ForeignFile::here(path, &Mounts::default())
            .and_then(|held| held.facts())
            .map(|facts| facts.key);
        let (path, build_id) = (path.to_str().unwrap().to_owned(), build_id.to_owned());
        Mapping { path, build_id, file, ..Mapping::default() }
    }

    fn user() -> Option<u32> {
        Some(rustix::process::geteuid().as_raw())
    }

    #[test]
    fn another_file_is_not_asked() {
        let own = std::env::current_exe().unwrap();
        let is_found = |mapping: &Mapping| program(OWN(), user(), mapping).is_some();
        let itself = mapped(&own, "");
        assert!(is_found(&itself), "a file without a build id, while it is the same");
        assert!(!is_found(&Mapping { file: None, ..itself.clone() }), "nothing is known of it");
        let other = Mapping { build_id: "of another build".into(), file: None, ..itself };
        assert!(!is_found(&other));
        assert!(!is_found(&mapped(Path::new("/nonexistent"), "")));
    }

    #[test]
    fn what_has_taken_the_place_of_a_file_is_known_by_its_build_id_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::copy("/bin/sleep", &path).unwrap();
        let of = |path: &Path| build_id::of_opened(&File::open(path).unwrap()).unwrap();
        let (with, without) = (mapped(&path, &of(&path)), mapped(&path, ""));
        let copy = |from: &str| {
            std::fs::remove_file(&path).unwrap();
            std::fs::copy(from, &path).unwrap();
            [&with, &without].map(|mapping| program(OWN(), user(), mapping).is_some())
        };
        assert_eq!(copy("/bin/sleep"), [true, false]);
        assert_eq!(copy("/bin/cat"), [false, false]);
    }

    /// Who forges the build id of a file that it may not read learns nothing of it.
    #[test]
    fn what_its_user_may_not_read_is_not_asked() {
        use std::os::unix::fs::PermissionsExt as _;

        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::copy("/bin/sleep", file.path()).unwrap();
        let id = build_id::of_opened(file.as_file()).unwrap();
        let elsewhere = Mapping { file: None, ..mapped(file.path(), &id) };
        for (mode, other) in [(0o644, true), (0o600, false)] {
            let rights = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(file.path(), rights).unwrap();
            let is_found = |user| program(OWN(), Some(user), &elsewhere).is_some();
            assert!(is_found(user().unwrap()));
            // In the place of another file only root's own counts for everybody.
            let other = other && rustix::process::geteuid().is_root();
            assert_eq!(is_found(user().unwrap() + 1), other, "{mode:o}");
        }
    }

    /// A program that its user may execute and not read has no names, and one for a group has.
    #[test]
    fn what_was_mapped_may_be_unreadable() {
        use std::os::unix::fs::PermissionsExt as _;

        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::copy("/bin/sleep", file.path()).unwrap();
        let is_found = |mode, user| {
            let rights = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(file.path(), rights).unwrap();
            program(OWN(), user, &mapped(file.path(), "")).is_some()
        };
        let other = user().map(|user| user + 1);
        let expected =
            [(0o755, true), (0o711, false), (0o751, false), (0o750, true), (0o700, false)];
        for (mode, may_read) in expected {
            assert_eq!(is_found(mode, other), may_read, "{mode:o}");
            assert!(is_found(mode, user()), "its owner");
        }
    }

    /// In the place of a file only its user's own counts, and root's, where its user finds it.
    #[test]
    fn anybody_can_give_a_file_a_build_id() {
        use std::os::unix::fs::{PermissionsExt as _, chown};

        if !rustix::process::geteuid().is_root() {
            println!("left out: only root can give files to others");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let open = |mode| {
            let rights = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(folder.path(), rights).unwrap();
        };
        let path = folder.path().join("program");
        std::fs::copy("/bin/sleep", &path).unwrap();
        let id = build_id::of_opened(&File::open(&path).unwrap()).unwrap();
        let is_found = |owner| {
            chown(&path, Some(owner), None).unwrap();
            let elsewhere = Mapping { file: None, ..mapped(&path, &id) };
            program(OWN(), Some(7), &elsewhere).is_some()
        };
        open(0o755);
        assert_eq!([0, 7, 8].map(is_found), [true, true, false]);
        open(0o700);
        assert_eq!([0, 7].map(is_found), [false, false], "a closed directory");
    }

    #[test]
    fn a_map_is_its_users_own_and_has_no_other_name() {
        let folder = tempfile::tempdir().unwrap();
        let [map, link, second] = ["map", "link", "second"].map(|name| folder.path().join(name));
        std::fs::write(&map, "1000 10 f\n").unwrap();
        symlink(&map, &link).unwrap();
        let speaks = |path: &PathBuf, user| {
            ForeignFile::here(path, &Mounts::default()).is_some_and(|held| may_speak(&held, user))
        };
        let owner = std::fs::metadata(&map).unwrap().uid();
        assert!(speaks(&map, Some(owner)));
        assert!(!speaks(&map, Some(owner + 1)) && !speaks(&map, None), "root's, too");
        assert!(!speaks(&link, Some(owner)));
        std::fs::hard_link(&map, &second).unwrap();
        assert!(!speaks(&map, Some(owner)));
    }

    #[test]
    fn a_process_is_known_by_what_it_has_mapped() {
        let own = OWN();
        assert_eq!(own_number(own), Some(std::process::id()), "as it calls itself");
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let text = maps.lines().find(|line| line.contains(" r-xp ")).unwrap();
        let (start, end) = text.split(' ').next().unwrap().split_once('-').unwrap();
        let number = |text| u64::from_str_radix(text, 16).unwrap();
        let (start, end) = (number(start), number(end));
        let mapping = Mapping { start, end, ..Mapping::default() };
        assert_eq!(runs_still(own, std::slice::from_ref(&mapping)), Ok(true));
        assert_eq!(runs_still(own, &[Mapping { end: end + 1, ..mapping.clone() }]), Ok(false));
        assert_eq!(runs_still(Pid(i32::MAX), &[mapping]), Ok(false));
    }

    #[test]
    fn a_file_of_holes_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(SMALL_BYTES).unwrap();
        assert!(is_worth_reading(file.as_file()));
        file.as_file().set_len(SMALL_BYTES + 1).unwrap();
        assert!(!is_worth_reading(file.as_file()));
        assert!(is_worth_reading(&File::open(std::env::current_exe().unwrap()).unwrap()));
    }
}
