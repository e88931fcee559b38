//! What a program without rights can have for itself: a user namespace, and in it its own mounts.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::stage::NOBODY;

fn text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("no NUL")
}

fn done(answer: i64) -> io::Result<i64> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// This process, of the attacker's user and of one thread, has its own mounts from now on. False where nobody may.
pub(crate) fn enter() -> bool {
    // SAFETY: takes a number alone.
    if unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) } != 0 {
        return false;
    }
    let itself = format!("{NOBODY} {NOBODY} 1");
    for (file, what) in [("setgroups", "deny"), ("uid_map", &itself), ("gid_map", &itself)] {
        fs::write(format!("/proc/self/{file}"), what).expect("the kernel takes it");
    }
    mount(Path::new("none"), Path::new("/"), c"none", libc::MS_REC | libc::MS_PRIVATE);
    true
}

fn mount(from: &Path, at: &Path, kind: &std::ffi::CStr, flags: u64) {
    let (from, to, none) = (text(from), text(at), std::ptr::null());
    // SAFETY: texts that end in NUL.
    let answer = unsafe { libc::mount(from.as_ptr(), to.as_ptr(), kind.as_ptr(), flags, none) };
    done(answer.into()).unwrap_or_else(|e| panic!("mount at {at:?}: {e}"));
}

/// A file system of its own, which is empty.
pub(crate) fn empty(at: &Path) {
    mount(Path::new("none"), at, c"tmpfs", 0);
}

/// What is at `from` is at `at`, too: no right to it is needed.
pub(crate) fn bind(from: &Path, at: &Path) {
    mount(from, at, c"none", libc::MS_BIND | libc::MS_REC);
}

/// Nobody finds any more what is mounted there.
pub(crate) fn detach(at: &Path) {
    // SAFETY: a text that ends in NUL.
    let answer = unsafe { libc::umount2(text(at).as_ptr(), libc::MNT_DETACH) };
    done(answer.into()).expect("it is mounted");
}

/// A descriptor of a file of any owner (`O_PATH`), whose path is `/NAME` for whoever asks while the other one is open.
pub(crate) fn renamed(file: &Path, name: &str) -> (OwnedFd, OwnedFd) {
    let folder = tempfile::tempdir().expect("a folder");
    empty(folder.path());
    let place = folder.path().join(name);
    File::create(&place).expect("a file");
    bind(file, &place);
    let clone = 1 | libc::AT_RECURSIVE | libc::O_CLOEXEC;
    let folder_text = text(folder.path());
    // SAFETY: a text that ends in NUL, and numbers (open_tree(2)).
    let tree =
        unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, folder_text.as_ptr(), clone) };
    // SAFETY: a new descriptor.
    let tree = unsafe { OwnedFd::from_raw_fd(done(tree).expect("a tree") as i32) };
    let name = CString::new(name).expect("no NUL");
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    // SAFETY: the same.
    let held = unsafe { libc::openat(tree.as_raw_fd(), name.as_ptr(), flags) };
    detach(folder.path());
    // SAFETY: the same.
    (unsafe { OwnedFd::from_raw_fd(done(held.into()).expect("it is there") as i32) }, tree)
}
