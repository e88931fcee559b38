//! The memory of a process as who switches its sites reads and writes it.
//!
//! By a file of `/proc`, which a process cannot open for itself once it has dropped rights (it is not dumpable after setuid(2), and the
//! file is root's), or has no `/proc` (chroot(2)). Its own memory it can then still read by `process_vm_readv(2)`, which asks
//! nobody about itself, and fails where nothing is mapped.

use core::ffi::CStr;
use std::io;

use super::{PatchError, protection};
use crate::kernel::{self, File};
use crate::layout::PAGE;
use crate::loader;

/// The file of the caller's own.
const OWN_FILE: &CStr = c"/proc/self/mem";

#[derive(Debug)]
pub(super) enum Memory {
    /// `/proc/PID/mem`.
    File(File),
    /// The caller's, which can be read only.
    Own,
}

impl Memory {
    /// That of this process. Allocates nothing.
    pub(super) fn own() -> Result<Memory, PatchError> {
        Memory::own_file().or_else(|errno| {
            let mut byte = [0];
            let readable = Memory::Own.read_at(&mut byte, open as *const () as u64);
            let path = OWN_FILE.to_str().unwrap_or_default().into();
            let source = io::Error::from_raw_os_error(errno);
            readable.map(|_| Memory::Own).map_err(|_| PatchError::Open { path, source })
        })
    }

    /// The same by its file alone.
    pub(super) fn own_file() -> kernel::Result<Memory> {
        File::open_terminated(OWN_FILE, libc::O_RDWR).map(Memory::File)
    }

    /// That of another process.
    pub(super) fn of(pid: i32) -> Result<Memory, PatchError> {
        open(format!("/proc/{pid}/mem")).map(Memory::File)
    }

    pub(super) fn read_at(&self, to: &mut [u8], at: u64) -> io::Result<usize> {
        match self {
            Memory::File(file) => file.read_at(to, at),
            Memory::Own => {
                let in_page = (PAGE - at % PAGE).min(to.len() as u64) as usize;
                read_own(to, at).or_else(|_| read_own(&mut to[..in_page], at))
            }
        }
    }

    pub(super) fn read_exact_at(&self, to: &mut [u8], at: u64) -> io::Result<()> {
        match self {
            Memory::File(file) => file.read_exact_at(to, at),
            Memory::Own if read_own(to, at)? == to.len() => Ok(()),
            Memory::Own => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    pub(super) fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        match self {
            Memory::File(file) => file.write_all_at(bytes, at),
            Memory::Own => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }
}

fn open(path: String) -> Result<File, PatchError> {
    let file = File::open(path.as_bytes(), libc::O_RDWR);
    file.map_err(|source| PatchError::Open { path: path.into(), source })
}

fn read_own(to: &mut [u8], at: u64) -> io::Result<usize> {
    kernel::read_memory(to, at).map_err(io::Error::from_raw_os_error)
}

/// The protection of the page of `address` of this process, without allocating: by `/proc/self/maps`, or, where there is no `/proc`, as the object whose
/// part the page is wants it to be. `None` where nothing is mapped that is known.
pub(super) fn protection_now(address: u64) -> Option<libc::c_int> {
    by_maps(address).unwrap_or_else(|_| of_object(address))
}

/// Bytes of `/proc/self/maps` that are read at once: more than a line has, with its path.
const MAPS_BYTES: usize = 8 << 10;

fn by_maps(address: u64) -> io::Result<Option<libc::c_int>> {
    let maps = File::open_terminated(c"/proc/self/maps", libc::O_RDONLY);
    let maps = maps.map_err(io::Error::from_raw_os_error)?;
    let (mut part, mut at) = ([0; MAPS_BYTES], 0);
    loop {
        let read = maps.read_at(&mut part, at)?;
        let Some(last) = part[..read].iter().rposition(|&byte| byte == b'\n') else {
            return Ok(None);
        };
        let lines = core::str::from_utf8(&part[..=last]);
        let found = protection(lines.map_err(|_| io::ErrorKind::InvalidData)?, address);
        if found.is_some() {
            return Ok(found);
        }
        at += last as u64 + 1;
    }
}

fn of_object(address: u64) -> Option<libc::c_int> {
    let mut protection = None;
    loader::find(|info| {
        let part = loader::headers(info).iter().find(|header| {
            let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
            let is_in = (start..start.saturating_add(header.p_memsz)).contains(&address);
            header.p_type == libc::PT_LOAD && is_in
        });
        let flags = [
            (libc::PF_R, libc::PROT_READ),
            (libc::PF_W, libc::PROT_WRITE),
            (libc::PF_X, libc::PROT_EXEC),
        ];
        protection = part.map(|part| {
            let set = flags.iter().filter(|(flag, _)| part.p_flags & flag != 0);
            set.fold(0, |all, (_, right)| all | right)
        });
        protection.is_some()
    });
    protection
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_is_read_without_a_file() {
        let text = Box::new(*b"something to read");
        let at = text.as_ptr() as u64;
        let mut found = [0; 9];
        Memory::Own.read_exact_at(&mut found, at).unwrap();
        assert_eq!(&found, b"something");
        assert!(Memory::Own.read_exact_at(&mut found, 8).is_err(), "nothing is mapped there");
        assert!(Memory::Own.write_all_at(b"x", at).is_err());
        // The stack has an end, and a large window reaches beyond it.
        let (on_stack, mut window) = (7u8, vec![0; 1 << 30]);
        let read = Memory::Own.read_at(&mut window, &raw const on_stack as u64).unwrap();
        assert!(read > 0 && window[0] == 7);
    }

    #[test]
    fn objects_say_how_they_are_protected() {
        static DATA: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
        let code = objects_say_how_they_are_protected as *const () as u64;
        assert_eq!(of_object(code), Some(libc::PROT_READ | libc::PROT_EXEC));
        assert_eq!(of_object(code), protection_now(code));
        let data = DATA.as_ptr() as u64;
        assert_eq!(of_object(data), Some(libc::PROT_READ | libc::PROT_WRITE));
        assert_eq!(of_object(8), None);
    }

    #[test]
    fn maps_are_read_to_their_end() {
        // In another part of them than the program, which is at their begin.
        let stack = [0u8; 1];
        let at = stack.as_ptr() as u64;
        assert_eq!(by_maps(at).unwrap(), Some(libc::PROT_READ | libc::PROT_WRITE));
        assert_eq!(by_maps(u64::MAX).unwrap(), None);
    }
}
