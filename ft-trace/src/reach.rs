//! Which programs the preload library cannot reach: by their files before they run, and by what the kernel has told them when they run.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};

use crate::dir::open_regular;

/// Why a command's locks will not be seen.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error,
)]
#[serde(rename_all = "kebab-case")]
pub enum Unreachable {
    /// No dynamic linker runs.
    #[error("it is statically linked; link it dynamically, or embed ft-user in it")]
    Static,
    /// The dynamic linker ignores the library (ld.so(8), secure-execution mode).
    #[error(
        "it runs with the rights of its owner or group, or with capabilities of its file; run it as a user who has them"
    )]
    SetId,
    /// Made for another processor, or for its 32-bit mode.
    #[error("it is not a 64-bit x86 program; build it as one")]
    Foreign,
}

/// Whether the dynamic linker of a running program loads the library, if the environment names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loading {
    /// It does.
    Done,
    /// It does not.
    Not(Unreachable),
}

impl Loading {
    /// By the begin of `/proc/PID/auxv` (getauxval(3)); `None` where that is none.
    pub fn of(auxv: &[u8]) -> Option<Loading> {
        const PAGE_SIZE: u64 = 6;
        const INTERPRETER: u64 = 7;
        const SECURE: u64 = 23;
        let words =
            |auxv: &[u8]| auxv.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect();
        let short = |auxv: &[u8]| {
            auxv.as_chunks::<4>().0.iter().map(|w| u64::from(u32::from_le_bytes(*w))).collect()
        };
        let value = |words: &Vec<u64>, kind| {
            words.as_chunks::<2>().0.iter().find(|[key, _]| *key == kind).map(|[_, value]| *value)
        };
        let has_pages = |words: &Vec<u64>| value(words, PAGE_SIZE) == Some(4096);
        let words: Vec<u64> = words(auxv);
        if !has_pages(&words) {
            return has_pages(&short(auxv)).then_some(Loading::Not(Unreachable::Foreign));
        }
        Some(match (value(&words, INTERPRETER)?, value(&words, SECURE)?) {
            (0, _) => Loading::Not(Unreachable::Static),
            (_, 0) => Loading::Done,
            _ => Loading::Not(Unreachable::SetId),
        })
    }
}

/// Why the library does not reach this command; `None` when it does, or when that cannot be known: the
/// command is a script, or is not found here.
pub fn why_not(command: impl AsRef<OsStr>) -> Option<Unreachable> {
    let path = find(command)?;
    let metadata = fs::metadata(&path).ok()?;
    let mut head = Vec::new();
    // Program headers stand at the begin of all programs that linkers make.
    open_regular(&path).ok()?.take(16 << 10).read_to_end(&mut head).ok()?;
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    let mode = metadata.permissions().mode();
    let gains = mode & 0o4000 != 0 && metadata.uid() != user
        || mode & 0o2000 != 0 && metadata.gid() != group;
    if gains { Some(Unreachable::SetId) } else { judge(&head) }
}

/// The file that `execvp` would take.
pub fn find(command: impl AsRef<OsStr>) -> Option<PathBuf> {
    let command = command.as_ref();
    if command.as_bytes().contains(&b'/') {
        return Some(command.into());
    }
    find_in(&std::env::var_os("PATH")?, command)
}

/// The first that may be executed: `execvp` goes on after one that may not.
fn find_in(path: &OsStr, command: &OsStr) -> Option<PathBuf> {
    let is_taken = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    std::env::split_paths(path).map(|directory| directory.join(command)).find(is_taken)
}

/// Judges the begin of a file (elf(5)). Short or damaged ones are left to the kernel.
fn judge(head: &[u8]) -> Option<Unreachable> {
    const INTERPRETER: u32 = 3;
    const X86_64: u16 = 62;
    let half = |at: usize| Some(u16::from_le_bytes(*head.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u32::from_le_bytes(*head.get(at..)?.first_chunk()?));
    if !head.starts_with(b"\x7fELF") {
        return None;
    }
    // Class 2: 64-bit; data 1: little-endian.
    if head.get(4..6)? != [2, 1] || half(18)? != X86_64 {
        return Some(Unreachable::Foreign);
    }
    let start = usize::try_from(u64::from_le_bytes(*head.get(32..)?.first_chunk()?)).ok()?;
    let (size, count) = (usize::from(half(54)?), usize::from(half(56)?));
    for n in 0..count {
        if word(start.checked_add(n * size)?)? == INTERPRETER {
            return None;
        }
    }
    Some(Unreachable::Static)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with these program headers.
    fn program(class: u8, machine: u16, headers: &[u32]) -> Vec<u8> {
        let mut head = vec![0; 64];
        head[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1]);
        head[18..20].copy_from_slice(&machine.to_le_bytes());
        head[32] = 64;
        head[54] = 56;
        head[56] = headers.len() as u8;
        for kind in headers {
            head.extend(kind.to_le_bytes());
            head.extend([0; 52]);
        }
        head
    }

    #[test]
    fn programs_are_told_apart() {
        assert_eq!(judge(&program(2, 62, &[6, 3, 1])), None);
        assert_eq!(judge(&program(2, 62, &[1, 1])), Some(Unreachable::Static));
        assert_eq!(judge(&program(1, 3, &[3])), Some(Unreachable::Foreign));
        assert_eq!(judge(&program(2, 183, &[3])), Some(Unreachable::Foreign));
        assert_eq!(judge(b"#!/bin/sh\n"), None);
        assert_eq!(judge(b""), None);
        // Cut anywhere, it is no reason for a panic.
        let whole = program(2, 62, &[6, 3]);
        for length in 0..whole.len() {
            let _ = judge(&whole[..length]);
        }
    }

    /// What the kernel tells a program, in words of this many bytes.
    fn told(bytes: usize, base: u64, secure: u64) -> Vec<u8> {
        let pairs = [[33, 0x7ffe_0000], [6, 4096], [7, base], [23, secure], [0, 0]];
        pairs.iter().flatten().flat_map(|word: &u64| word.to_le_bytes()[..bytes].to_vec()).collect()
    }

    #[test]
    fn a_running_program_is_judged_by_what_the_kernel_has_told_it() {
        use Unreachable::*;
        assert_eq!(Loading::of(&told(8, 0x7f00, 0)), Some(Loading::Done));
        assert_eq!(Loading::of(&told(8, 0, 0)), Some(Loading::Not(Static)));
        assert_eq!(
            Loading::of(&told(8, 0x7f00, 1)),
            Some(Loading::Not(SetId)),
            "whoever is its user"
        );
        assert_eq!(Loading::of(&told(4, 0x7f00, 0)), Some(Loading::Not(Foreign)));
        for length in 0..told(8, 1, 0).len() {
            let cut = Loading::of(&told(8, 1, 0)[..length]);
            assert!(cut.is_none() || length >= 64, "{length}: {cut:?}");
        }
        let own = std::fs::read("/proc/self/auxv").unwrap();
        assert_eq!(Loading::of(&own), Some(Loading::Done));
    }

    #[test]
    fn a_command_is_the_first_file_that_may_be_executed() {
        let dir = tempfile::tempdir().unwrap();
        let places = ["copy", "installed"].map(|name| dir.path().join(name));
        for (place, mode) in places.iter().zip([0o644, 0o755]) {
            std::fs::create_dir(place).unwrap();
            std::fs::write(place.join("served"), "").unwrap();
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(place.join("served"), mode).unwrap();
        }
        let path = std::env::join_paths(&places).unwrap();
        assert_eq!(find_in(&path, "served".as_ref()), Some(places[1].join("served")));
        assert_eq!(find_in(&path, "absent".as_ref()), None);
    }

    #[test]
    fn this_program_can_be_reached() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(why_not(own.to_str().unwrap()), None);
        assert_eq!(why_not("no-such-command"), None);
    }
}
