//! Which programs the preload library cannot reach, by their files.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use rustix::fs::{Access, access};

use crate::dir::open_regular;

/// Why a command's locks will not be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// No dynamic linker runs.
    #[error("it is statically linked; link it dynamically, or embed ft-user in it")]
    Static,
    /// The dynamic linker ignores the library (ld.so(8), secure-execution mode).
    #[error("it runs with the rights of its owner or group; run it as that user")]
    SetId,
    /// Made for another processor, or for its 32-bit mode.
    #[error("it is not a 64-bit x86 program; build it as one")]
    Foreign,
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
