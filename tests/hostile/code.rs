//! Functions that keep a CPU, of files that an attacker has made, and of none.

use std::ffi::c_void;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::ptr;
use std::time::{Duration, Instant};

use ft_trace::convert::synthetic::program::{CODE, named};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};

/// Calls a function, once at least, until that has taken so long. Each call takes some 0.1 s, in which an agent takes some samples.
pub(crate) fn call(function: *mut c_void, long: Duration) {
    // SAFETY: there is a function, which takes and returns nothing, and keeps to the convention.
    let function: extern "C" fn() = unsafe { std::mem::transmute(function) };
    let since = Instant::now();
    function();
    while since.elapsed() < long {
        function();
    }
}

/// Executes the function of a file for so long. The file stays mapped.
pub(crate) fn run(path: &Path, long: Duration) {
    call(map(path), long);
}

/// Where the function of a file is mapped, which stays.
pub(crate) fn map(path: &Path) -> *mut c_void {
    let file = File::open(path).expect("a file");
    let protection = ProtFlags::READ | ProtFlags::EXEC;
    let bytes = CODE as usize + 0x1000;
    // SAFETY: a new mapping, which stays.
    let begin =
        unsafe { mmap(ptr::null_mut(), bytes, protection, MapFlags::PRIVATE, file.as_fd(), 0) };
    begin.expect("a mapping").wrapping_byte_add(CODE as usize)
}

/// Executes for so long a function that is in no file.
pub(crate) fn run_compiled(long: Duration) {
    let content = named(b"f");
    let code = &content[CODE as usize..][..16];
    let protection = ProtFlags::READ | ProtFlags::WRITE | ProtFlags::EXEC;
    // SAFETY: a new mapping, which stays.
    let begin = unsafe { mmap_anonymous(ptr::null_mut(), 0x1000, protection, MapFlags::PRIVATE) };
    let begin = begin.expect("a mapping");
    // SAFETY: it is larger.
    unsafe { ptr::copy_nonoverlapping(code.as_ptr(), begin.cast(), code.len()) };
    call(begin, long);
}
