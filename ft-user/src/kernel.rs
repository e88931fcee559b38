//! System calls, made straight.
//!
//! The C library's functions have names that ISO C leaves to programs: one that has a function `access` or `connect` of its own would be
//! called by a library that means the C library's. None of these touches `errno`, and none is a cancellation point.

use core::ffi::{CStr, c_int, c_long, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::time::Duration;
use std::ffi::CString;
use std::io;

/// What the kernel returns, or the number of its error.
pub(crate) type Result<T> = core::result::Result<T, c_int>;

/// Numbers from here on are errors, negated (`MAX_ERRNO`, include/linux/err.h).
const FIRST_ERROR: usize = usize::MAX - 4094;

/// A system call with these arguments.
///
/// # Safety
///
/// As for the call.
#[inline]
pub(crate) unsafe fn call<const N: usize>(number: c_long, arguments: [usize; N]) -> Result<usize> {
    const { assert!(N <= 6) };
    let mut all = [0; 6];
    all[..N].copy_from_slice(&arguments);
    // SAFETY: as the caller says.
    let returned = unsafe { raw(number, all) };
    if returned >= FIRST_ERROR { Err(returned.wrapping_neg() as c_int) } else { Ok(returned) }
}

#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn raw(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> usize {
    let returned;
    // SAFETY: as the caller says; the kernel changes these registers and no other (syscall(2)).
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number as usize => returned,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            in("r9") f,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    returned
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn raw(number: c_long, [a, b, c, d, e, f]: [usize; 6]) -> usize {
    // SAFETY: as the caller says; the place of `errno` is the thread's own.
    unsafe {
        let errno = *libc::__errno_location();
        let mut returned = libc::syscall(number, a, b, c, d, e, f) as usize;
        if returned == usize::MAX {
            returned = (*libc::__errno_location() as usize).wrapping_neg();
        }
        *libc::__errno_location() = errno;
        returned
    }
}

/// Maps memory: an address that is not null.
///
/// # Safety
///
/// As for mmap(2): what is mapped at a fixed address may be replaced.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) unsafe fn mmap(
    at: *mut c_void,
    bytes: u64,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: u64,
) -> Result<ptr::NonNull<u8>> {
    let numbers = [protection as usize, flags as usize, fd as usize, offset as usize];
    let [protection, flags, fd, offset] = numbers;
    let arguments = [at.expose_provenance(), bytes as usize, protection, flags, fd, offset];
    // SAFETY: as the caller says.
    let at = unsafe { call(libc::SYS_mmap, arguments) }?;
    ptr::NonNull::new(ptr::with_exposed_provenance_mut(at)).ok_or(libc::ENOMEM)
}

/// A core dump leaves this memory out: what is in rings lies with the agent, and would make a dump larger by 8 MiB for each thread.
/// An error does no harm.
pub(crate) fn keep_out_of_dumps(at: ptr::NonNull<u8>, bytes: u64) {
    let arguments = [at.as_ptr().addr(), bytes as usize, libc::MADV_DONTDUMP as usize];
    // SAFETY: this changes no memory.
    let _ = unsafe { call(libc::SYS_madvise, arguments) };
}

/// # Safety
///
/// As for munmap(2).
pub(crate) unsafe fn munmap(at: *mut c_void, bytes: u64) {
    // SAFETY: as the caller says. What it is told is mapped, so that it does not fail.
    let _ = unsafe { call(libc::SYS_munmap, [at.addr(), bytes as usize]) };
}

/// # Safety
///
/// As for mprotect(2).
pub(crate) unsafe fn mprotect(at: *mut c_void, bytes: u64, protection: c_int) -> Result<()> {
    // SAFETY: as the caller says.
    unsafe { call(libc::SYS_mprotect, [at.addr(), bytes as usize, protection as usize]) }.map(drop)
}

/// Number of this process; 0 where a filter of system calls refuses to say.
pub(crate) fn getpid() -> u32 {
    // SAFETY: takes no argument, and cannot fail.
    unsafe { call(libc::SYS_getpid, []) }.unwrap_or_default() as u32
}

/// Number of this thread.
pub(crate) fn gettid() -> u32 {
    // SAFETY: as above.
    unsafe { call(libc::SYS_gettid, []) }.unwrap_or_default() as u32
}

/// Whether a filter of system calls may be in the way of this thread, or end it for one that it has not made before.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) fn may_be_filtered() -> bool {
    // SAFETY: takes no pointer.
    let mode = unsafe { call(libc::SYS_prctl, [libc::PR_GET_SECCOMP as usize, 0, 0, 0, 0]) };
    // A kernel without filters says EINVAL, and so may a filter.
    mode != Ok(0)
}

/// Whether this thread is on the stack that it has set aside for signal handlers.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) fn is_on_signal_stack() -> bool {
    let mut stack = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: 0, ss_size: 0 };
    let place = (&raw mut stack).expose_provenance();
    // SAFETY: a valid place for the answer; nothing is set.
    let _ = unsafe { call(libc::SYS_sigaltstack, [0, place]) };
    stack.ss_flags & libc::SS_ONSTACK != 0
}

/// The soft limit of a resource; none if the kernel does not say.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) fn limit(resource: usize) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    let place = (&raw mut limit).expose_provenance();
    // SAFETY: a valid place for the answer; nothing is set.
    let _ = unsafe { call(libc::SYS_prlimit64, [0, resource, 0, place]) };
    limit.rlim_cur
}

/// The time of CLOCK_MONOTONIC, ns; where a filter of system calls refuses to say, one that is behind every other.
pub(crate) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let place = (&raw mut time).expose_provenance();
    // SAFETY: a valid place for the answer.
    let said = unsafe { call(libc::SYS_clock_gettime, [libc::CLOCK_MONOTONIC as usize, place]) };
    if said.is_err() {
        return u64::MAX;
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A time of CLOCK_MONOTONIC, ns.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(u64);

impl Deadline {
    pub(crate) fn after(time: Duration) -> Deadline {
        Deadline(monotonic_ns().saturating_add(time.as_nanos() as u64))
    }

    /// How long it is until then, if it is not over.
    pub(crate) fn left(self) -> Option<Duration> {
        self.0.checked_sub(monotonic_ns()).map(Duration::from_nanos)
    }
}

/// Closes a descriptor that is ours.
pub(crate) fn close(fd: c_int) {
    // SAFETY: the caller opened it, and uses it no more.
    let _ = unsafe { call(libc::SYS_close, [fd as usize]) };
}

/// What fstat(2) says. Not by value, which takes its size of the stack several times where nothing is optimised.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) fn fstat(fd: c_int, file: &mut MaybeUninit<libc::stat>) -> Result<&libc::stat> {
    // SAFETY: a valid place for the answer, which is there where the call succeeds.
    unsafe {
        call(libc::SYS_fstat, [fd as usize, file.as_mut_ptr().expose_provenance()])?;
        Ok(file.assume_init_ref())
    }
}

/// What stat(2) says.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) fn stat(path: &CStr) -> Result<libc::stat> {
    let mut file = MaybeUninit::<libc::stat>::uninit();
    let (path, place) = (path.as_ptr().expose_provenance(), file.as_mut_ptr().expose_provenance());
    // SAFETY: as above; the path ends with a NUL.
    unsafe {
        call(libc::SYS_newfstatat, [libc::AT_FDCWD as usize, path, place, 0])?;
        Ok(file.assume_init())
    }
}

/// Reads memory of this process that need not be mapped; bytes that were read.
pub(crate) fn read_memory(to: &mut [u8], at: u64) -> Result<usize> {
    let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let remote = libc::iovec { iov_base: at as *mut c_void, iov_len: to.len() };
    // SAFETY: `to` is valid for writes of its length; what is read is checked by the kernel.
    unsafe { of_memory(libc::SYS_process_vm_readv, &local, &remote) }
}

/// Writes to memory of this process that need not be mapped, or writable; bytes that were written.
///
/// # Safety
///
/// What is written may be.
pub(crate) unsafe fn write_memory(bytes: &[u8], at: u64) -> Result<usize> {
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: at as *mut c_void, iov_len: bytes.len() };
    // SAFETY: `local` is only read; as the caller says.
    unsafe { of_memory(libc::SYS_process_vm_writev, &local, &remote) }
}

unsafe fn of_memory(number: c_long, local: &libc::iovec, remote: &libc::iovec) -> Result<usize> {
    let [local, remote] = [local, remote].map(|part| ptr::from_ref(part).expose_provenance());
    // SAFETY: as the caller says.
    unsafe { call(number, [getpid() as usize, local, 1, remote, 1, 0]) }
}

/// A file that is open.
#[derive(Debug)]
pub(crate) struct File(c_int);

impl File {
    /// Opens what is there; `flags` are those of open(2), without `O_CLOEXEC`, which is set.
    pub(crate) fn open(path: &[u8], flags: c_int) -> io::Result<File> {
        File::open_terminated(&CString::new(path)?, flags).map_err(io::Error::from_raw_os_error)
    }

    /// The same, without allocating.
    pub(crate) fn open_terminated(path: &CStr, flags: c_int) -> Result<File> {
        let (at, flags) = (path.as_ptr().expose_provenance(), flags | libc::O_CLOEXEC);
        // SAFETY: the path ends with a NUL; nothing is made.
        let fd =
            unsafe { call(libc::SYS_openat, [libc::AT_FDCWD as usize, at, flags as usize, 0]) };
        fd.map(|fd| File(fd as c_int))
    }

    /// What fstat(2) says.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(crate) fn facts(&self) -> Result<libc::stat> {
        fstat(self.0, &mut MaybeUninit::uninit()).copied()
    }

    /// Reads from an offset on; the bytes that were read.
    pub(crate) fn read_at(&self, to: &mut [u8], at: u64) -> io::Result<usize> {
        let place = to.as_mut_ptr().expose_provenance();
        let arguments = [self.0 as usize, place, to.len(), at as usize];
        // SAFETY: `to` is valid for writes of its length.
        unsafe { call(libc::SYS_pread64, arguments) }.map_err(io::Error::from_raw_os_error)
    }

    /// Reads as much as there is room.
    pub(crate) fn read_exact_at(&self, mut to: &mut [u8], mut at: u64) -> io::Result<()> {
        while !to.is_empty() {
            match self.read_at(to, at) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => (to, at) = (&mut to[read..], at + read as u64),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all of it.
    pub(crate) fn write_all_at(&self, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let from = bytes.as_ptr().expose_provenance();
            let arguments = [self.0 as usize, from, bytes.len(), at as usize];
            // SAFETY: `bytes` are valid for reads of their length.
            match unsafe { call(libc::SYS_pwrite64, arguments) } {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => (bytes, at) = (&bytes[written..], at + written as u64),
                Err(libc::EINTR) => {}
                Err(error) => return Err(io::Error::from_raw_os_error(error)),
            }
        }
        Ok(())
    }

    /// How many entries a directory has, with itself and its parent: of more than fit into 4 KiB, those that do.
    pub(crate) fn entries(&self) -> Result<usize> {
        let mut entries = [0u64; 512];
        let place = entries.as_mut_ptr().expose_provenance();
        let arguments = [self.0 as usize, place, size_of_val(&entries)];
        // SAFETY: a valid place of so many bytes.
        let bytes = unsafe { call(libc::SYS_getdents64, arguments) }?;
        let (mut at, mut found) = (0, 0);
        while at < bytes {
            // `struct linux_dirent64` (getdents(2)): inode, offset, length, type, name; aligned to eight bytes.
            let length = (entries[at / 8 + 2] & 0xffff) as usize;
            if length == 0 {
                break;
            }
            at += length;
            found += 1;
        }
        Ok(found)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        close(self.0);
    }
}

/// All of a file of /proc, as text.
pub(crate) fn read_to_string(path: &str) -> io::Result<String> {
    const STEP: usize = 16 << 10;
    let file = File::open(path.as_bytes(), libc::O_RDONLY)?;
    let mut text = Vec::new();
    loop {
        let before = text.len();
        text.resize(before + STEP, 0);
        let read = file.read_at(&mut text[before..], before as u64)?;
        text.truncate(before + read);
        if read == 0 {
            return String::from_utf8(text).map_err(|_| io::ErrorKind::InvalidData.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_what_the_standard_library_says() {
        assert_eq!(getpid(), std::process::id());
        let path = "/proc/self/status";
        let text = read_to_string(path).unwrap();
        assert!(text.contains(&format!("\nPid:\t{}\n", getpid())), "{text}");
        let exe = std::fs::read("/proc/self/exe").unwrap();
        let file = File::open(b"/proc/self/exe", libc::O_RDONLY).unwrap();
        assert_eq!(file.facts().unwrap().st_size as usize, exe.len());
        let mut part = vec![0; 1 << 20];
        file.read_exact_at(&mut part, 77).unwrap();
        assert!(part == exe[77..77 + part.len()]);
        assert!(file.read_exact_at(&mut part, exe.len() as u64 - 1).is_err());
        assert!(file.write_all_at(b"x", 0).is_err(), "it is open for reading");
        let of_path = stat(c"/proc/self/exe").unwrap();
        assert_eq!(of_path.st_ino, file.facts().unwrap().st_ino);
    }

    #[test]
    fn errors_have_their_numbers_and_errno_is_left_alone() {
        // SAFETY: the place of `errno` is the thread's own.
        unsafe { *libc::__errno_location() = 77 };
        assert_eq!(stat(c"/no/such/file").err(), Some(libc::ENOENT));
        assert_eq!(fstat(-1, &mut MaybeUninit::uninit()).err(), Some(libc::EBADF));
        assert_eq!(read_memory(&mut [0; 8], 8), Err(libc::EFAULT));
        // SAFETY: as above.
        assert_eq!(unsafe { *libc::__errno_location() }, 77);
    }

    #[test]
    fn entries_of_a_directory_are_counted() {
        let dir = std::env::temp_dir().join(format!("ft-kernel-{}", getpid()));
        std::fs::create_dir(&dir).unwrap();
        let open = || File::open(dir.to_str().unwrap().as_bytes(), libc::O_RDONLY).unwrap();
        assert_eq!(open().entries(), Ok(2));
        std::fs::write(dir.join("one"), "").unwrap();
        assert_eq!(open().entries(), Ok(3));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
