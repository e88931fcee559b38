//! The memory of a process as who switches its sites reads and writes it.
//!
//! By a file of `/proc`, which a process cannot open for itself once it has dropped rights (it is not dumpable after setuid(2), and the
//! file is root's), or has no `/proc` (chroot(2)). Its own memory it can then still read by `process_vm_readv(2)`, which asks
//! nobody about itself, and fails where nothing is mapped.

use std::io;

use super::{PatchError, protection};
use crate::kernel::{self, File};
use crate::layout::PAGE;

#[derive(Debug)]
pub(super) enum Memory {
    /// `/proc/PID/mem`.
    File(File),
    /// The caller's, which can be read only.
    Own,
}

impl Memory {
    /// That of this process.
    pub(super) fn own() -> Result<Memory, PatchError> {
        match open("/proc/self/mem") {
            Ok(file) => Ok(Memory::File(file)),
            Err(error) => {
                let mut byte = [0];
                let readable = Memory::Own.read_at(&mut byte, open as *const () as u64);
                readable.map(|_| Memory::Own).map_err(|_| error)
            }
        }
    }

    /// The same by its file alone, without allocating.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(super) fn own_file() -> Option<Memory> {
        File::open_terminated(c"/proc/self/mem", libc::O_RDWR).ok().map(Memory::File)
    }

    /// That of another process.
    pub(super) fn of(pid: i32) -> Result<Memory, PatchError> {
        open(&format!("/proc/{pid}/mem")).map(Memory::File)
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

fn open(path: &str) -> Result<File, PatchError> {
    let file = File::open(path.as_bytes(), libc::O_RDWR);
    file.map_err(|source| PatchError::Open { path: path.to_owned(), source })
}

fn read_own(to: &mut [u8], at: u64) -> io::Result<usize> {
    kernel::read_memory(to, at).map_err(io::Error::from_raw_os_error)
}

/// The protection of the page of `address` of this process: by `/proc/self/maps`, or, where there is no `/proc`, as the object whose
/// part the page is wants it to be. `None` where nothing is mapped that is known.
pub(super) fn protection_now(address: u64) -> Option<libc::c_int> {
    match kernel::read_to_string("/proc/self/maps") {
        Ok(maps) => protection(&maps, address),
        Err(_) => of_object(address),
    }
}

/// Where a page is, and the protection that was found.
struct Wanted {
    address: u64,
    protection: Option<libc::c_int>,
}

fn of_object(address: u64) -> Option<libc::c_int> {
    let mut wanted = Wanted { address, protection: None };
    // SAFETY: `visit` gets what it expects, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut wanted).cast()) };
    wanted.protection
}

/// Looks for the page in the parts of one object that are loaded.
unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    wanted: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: `dl_iterate_phdr` passes a valid object, and `of_object` what it looks for.
    let (info, wanted) = unsafe { (&*info, &mut *wanted.cast::<Wanted>()) };
    // SAFETY: the headers are as many as the object says.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize) };
    let part = headers.iter().find(|header| {
        let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
        let is_in = (start..start.saturating_add(header.p_memsz)).contains(&wanted.address);
        header.p_type == libc::PT_LOAD && is_in
    });
    let Some(part) = part else { return 0 };
    let flags = [
        (libc::PF_R, libc::PROT_READ),
        (libc::PF_W, libc::PROT_WRITE),
        (libc::PF_X, libc::PROT_EXEC),
    ];
    let set = flags.iter().filter(|(flag, _)| part.p_flags & flag != 0);
    wanted.protection = Some(set.fold(0, |all, (_, right)| all | right));
    1
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
}
