//! `libfeather_trace`: what `ft-user/include/feather_trace.h` calls.
//!
//! The sites are in the C program, the write, the rings and the thread-local block here. Inside of a Rust
//! program the write is a hidden symbol of each object; [`ft_event_v1_0`] and its like are the same under
//! names that other objects can refer to. They only jump, so stack and registers reach the write as the
//! site has left them. The number in the name is that of the protocol between site and write: a library
//! that changes it keeps the old names too.
//!
//! Programs that are compiled with `-finstrument-functions` find the hooks of the compiler here, too (`ft-hooks`), and the sleds
//! of clang (`-fxray-instrument`) and of gcc (`-fpatchable-function-entry=11`) what they call.

use std::ffi::{CStr, c_char, c_int};

use ft_hooks as _;
use ft_user::{InitError, PatchError};

/// Starts tracing; see the header.
#[unsafe(no_mangle)]
pub extern "C" fn ft_init() -> c_int {
    ft_user::find_sleds();
    match ft_user::init() {
        Ok(_) => 0,
        Err(InitError::System(_, errno)) => errno,
        Err(InitError::FileSizeLimit(_)) => libc::EFBIG,
        Err(_) => libc::EINVAL,
    }
}

/// Enables sites; see the header.
///
/// # Safety
///
/// `glob` is null or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ft_enable(glob: *const c_char) -> usize {
    // It starts tracing if nobody has.
    ft_user::find_sleds();
    // SAFETY: the caller vouches for it.
    switch(unsafe { text(glob) }, true)
}

/// Disables sites; see the header.
///
/// # Safety
///
/// `glob` is null or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ft_disable(glob: *const c_char) -> usize {
    // SAFETY: the caller vouches for it.
    switch(unsafe { text(glob) }, false)
}

/// How many match and are as they should be; `errno` says why others are not.
fn switch(glob: Option<&str>, on: bool) -> usize {
    let switched = glob.map(|glob| ft_user::switch(glob, on)).unwrap_or_default();
    let errno = match switched.refused {
        None => 0,
        Some(PatchError::Open { source, .. } | PatchError::Write { source, .. }) => {
            source.raw_os_error().unwrap_or(libc::EIO)
        }
        Some(PatchError::Unprepared { .. } | PatchError::Executed { .. }) => libc::ENOEXEC,
        // Something else has changed it.
        Some(_) => libc::EBUSY,
    };
    // SAFETY: the pointer that `__errno_location` returns is valid on the thread that asks.
    unsafe { *libc::__errno_location() = errno };
    switched.done
}

/// Called by the constructor that the header puts into each object: the sites of a library that is loaded
/// while the process is traced are switched as those of the others were.
#[unsafe(no_mangle)]
pub extern "C" fn ft_loaded_v1() {
    ft_user::__loaded();
}

/// Gives the calling thread its ring; see the header.
#[unsafe(no_mangle)]
pub extern "C" fn ft_thread_init() {
    ft_user::thread_init();
}

/// Null and what is not UTF-8 match no name.
///
/// # Safety
///
/// `text` is null or ends with a NUL, and lives as long as what is returned.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller vouches for it.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// Exports a write. Where there are no sites, the header calls none.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
macro_rules! export {
    ($($name:ident => $write:literal;)*) => {$(
        /// The write that sites of C programs call, as `ft_user::arch::x86_64` describes it.
        ///
        /// # Safety
        ///
        /// Not by the C calling convention: only for the assembly of the header.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(".cfi_startproc", concat!("jmp ", $write), ".cfi_endproc")
        }
    )*};
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
export! {
    ft_event_v1_0 => "ft_user_v1_write_0";
    ft_event_v1_1 => "ft_user_v1_write_1";
    ft_event_v1_2 => "ft_user_v1_write_2";
    ft_event_v1_3 => "ft_user_v1_write_3";
    ft_event_v1_4 => "ft_user_v1_write_4";
    ft_event_v1_5 => "ft_user_v1_write_5";
    ft_event_v1_6 => "ft_user_v1_write_6";
    ft_event_v1_text => "ft_user_v1_write_text";
}
