//! The dynamic linker's list of objects.

use core::ffi::c_void;

type Visitor =
    unsafe extern "C" fn(*mut libc::dl_phdr_info, libc::size_t, *mut c_void) -> libc::c_int;

/// Calls `f`; no object is unloaded meanwhile, by any thread: the linker has the lock of its list as long as somebody goes through it
/// (dl_iterate_phdr(3); glibc, `_dl_close_worker`), and the same thread may do so again within. musl unloads nothing.
///
/// Nobody who has that lock waits for the process lock, so `f` may be called with it. It allocates nothing: an allocator may wait for the
/// linker in another thread, with a lock of its own.
pub(crate) fn without_unloading<R>(f: impl FnOnce() -> R) -> R {
    let (mut f, mut result) = (Some(f), None);
    let mut first = || result = f.take().map(|f| f());
    visit(&mut first);
    // The program itself is loaded, so there is a first object.
    result.expect("an object is loaded")
}

/// How many objects have come, and how many have gone.
#[cfg(all(feature = "sleds", not(ft_off)))]
pub(crate) fn changes() -> (u64, u64) {
    unsafe extern "C" fn first(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        changes: *mut c_void,
    ) -> libc::c_int {
        // SAFETY: `dl_iterate_phdr` passes a valid object, and `changes` a pair.
        unsafe { *changes.cast() = ((*info).dlpi_adds, (*info).dlpi_subs) };
        1
    }
    let mut changes = (0u64, 0u64);
    // SAFETY: `first` gets what it expects, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut changes).cast()) };
    changes
}

fn visit<F: FnMut()>(first: &mut F) {
    unsafe extern "C" fn call<F: FnMut()>(
        _: *mut libc::dl_phdr_info,
        _: libc::size_t,
        first: *mut c_void,
    ) -> libc::c_int {
        // SAFETY: `visit` passes it, and waits.
        unsafe { (*first.cast::<F>())() };
        // No further one.
        1
    }
    let call: Visitor = call::<F>;
    // SAFETY: `call` gets what it expects, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(call), core::ptr::from_mut(first).cast()) };
}
