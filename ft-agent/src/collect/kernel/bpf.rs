//! The calls of bpf(2) for which aya has no function.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use aya_obj::generated::{bpf_attr, bpf_cmd};

/// What a command makes whose result is a descriptor.
///
/// # Errors
///
/// Those of bpf(2).
///
/// # Safety
///
/// The addresses that `attr` has for this command are those of memory that it may read, or write, as much as it is told.
pub(super) unsafe fn make(command: bpf_cmd, attr: &bpf_attr) -> io::Result<OwnedFd> {
    // SAFETY: the caller's.
    let fd = unsafe { call(command, attr) };
    match libc::c_int::try_from(fd) {
        // SAFETY: it was made just now, and nobody else has it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Puts a value into a map whose keys and values are as large as these.
///
/// # Errors
///
/// Those of bpf(2).
pub(super) fn update<K, V>(map: BorrowedFd<'_>, key: &K, value: &V) -> io::Result<()> {
    let mut attr = no_attr();
    // SAFETY: the members of the command are numbers.
    let element = unsafe { &mut attr.__bindgen_anon_2 };
    element.map_fd = map.as_raw_fd() as u32;
    element.key = (&raw const *key).addr() as u64;
    element.__bindgen_anon_1.value = (&raw const *value).addr() as u64;
    // SAFETY: the kernel reads a key and a value, and writes nothing.
    match unsafe { call(bpf_cmd::BPF_MAP_UPDATE_ELEM, &attr) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// # Safety
///
/// As of [`make`].
unsafe fn call(command: bpf_cmd, attr: &bpf_attr) -> libc::c_long {
    // SAFETY: the call reads so many bytes of a union that is initialised; for what it points to the caller stands.
    unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_int,
            &raw const *attr,
            size_of::<bpf_attr>(),
        )
    }
}

/// Nothing asked for. It is filled member by member: a whole structure of a command would bring bytes between its members that
/// are not zero, and newer kernels have members there.
pub(super) fn no_attr() -> bpf_attr {
    // SAFETY: it has numbers only, for each of which zero is a value.
    unsafe { std::mem::zeroed() }
}

/// A name as the kernel shows it, 15 bytes at most.
pub(super) fn name(name: &str) -> [libc::c_char; 16] {
    let mut bytes = [0; 16];
    for (byte, of_name) in bytes.iter_mut().zip(name.bytes().take(15)) {
        *byte = of_name as libc::c_char;
    }
    bytes
}
