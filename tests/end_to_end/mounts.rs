//! File systems of a test's own; they need root.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// Gives the calling thread, and what it starts from now on, mounts that nobody else sees.
pub(crate) fn make_private() -> io::Result<()> {
    let everything = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: all strings end in NUL.
    unsafe {
        check(libc::unshare(libc::CLONE_NEWNS))?;
        check(libc::mount(ptr::null(), c"/".as_ptr(), ptr::null(), everything, ptr::null()))
    }
}

/// Has the calling thread, and what it starts from now on, see the kernel's tracepoints.
pub(crate) fn tracefs() -> io::Result<()> {
    const TRACEFS: &str = "/sys/kernel/tracing";
    if Path::new(TRACEFS).join("events/sched").exists() {
        return Ok(());
    }
    make_private()?;
    let (kind, path) = (c"tracefs", c_path(Path::new(TRACEFS)));
    // SAFETY: all strings end in NUL and live longer than the call.
    check(unsafe { libc::mount(kind.as_ptr(), path.as_ptr(), kind.as_ptr(), 0, ptr::null()) })
}

/// Mounts a tmpfs of this size; with `MS_REMOUNT`, changes its size.
pub(crate) fn tmpfs(path: &Path, size: &str, flags: libc::c_ulong) -> io::Result<()> {
    let (kind, options) = (c"tmpfs", CString::new(format!("size={size}")).expect("no NUL"));
    let (path, options) = (c_path(path), options.as_ptr().cast());
    // SAFETY: all strings end in NUL and live longer than the call.
    check(unsafe { libc::mount(kind.as_ptr(), path.as_ptr(), kind.as_ptr(), flags, options) })
}

/// Unmounts; lazily, so that an open file does not keep it.
pub(crate) fn remove(path: &Path) {
    // SAFETY: a path that ends in NUL.
    unsafe { libc::umount2(c_path(path).as_ptr(), libc::MNT_DETACH) };
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("no NUL")
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
