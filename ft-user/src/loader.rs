//! The dynamic linker's list of objects.

use core::ffi::c_void;

/// Calls `f`; no object is unloaded meanwhile, by any thread: the linker has the lock of its list as long as somebody goes through it
/// (dl_iterate_phdr(3); glibc, `_dl_close_worker`), and the same thread may do so again within. musl unloads nothing.
///
/// Nobody who has that lock waits for the process lock, so `f` may be called with it. It allocates nothing: an allocator may wait for the
/// linker in another thread, with a lock of its own, or here for its other lock (`dladdr`), which whoever loads an object has.
pub(crate) fn without_unloading<R>(f: impl FnOnce() -> R) -> R {
    let (mut f, mut result) = (Some(f), None);
    find(|_| {
        result = f.take().map(|f| f());
        true
    });
    // The program itself is loaded, so there is a first object.
    result.expect("an object is loaded")
}

/// How many objects have come, and how many have gone.
#[cfg(all(feature = "sleds", not(ft_off)))]
pub(crate) fn changes() -> (u64, u64) {
    let mut changes = (0, 0);
    find(|info| {
        changes = (info.dlpi_adds, info.dlpi_subs);
        true
    });
    changes
}

/// Calls `f` with each object, until it says that it has found what it looks for; it allocates nothing, as above.
pub(crate) fn find<F: FnMut(&libc::dl_phdr_info) -> bool>(mut f: F) {
    unsafe extern "C" fn call<F: FnMut(&libc::dl_phdr_info) -> bool>(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        f: *mut c_void,
    ) -> libc::c_int {
        // SAFETY: `dl_iterate_phdr` passes a valid object, and `find` its function.
        unsafe { (*f.cast::<F>())(&*info).into() }
    }
    // SAFETY: `call` gets what it expects, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(call::<F>), (&raw mut f).cast()) };
}

/// Whether this library is among the objects of the program, and not in a namespace of its own (dlmopen(3)). Such a one has a C library
/// of its own, whose keys are numbered anew in the places where the program has its own (`struct pthread` of glibc), and which does not
/// hear of the program's forks. Where it cannot be known it is taken for one of the program's.
pub(crate) fn is_of_program() -> bool {
    // SAFETY: it takes no pointer.
    let program = unsafe { libc::getauxval(libc::AT_PHDR) };
    let (mut has_program, mut is_first_named) = (program == 0, None);
    find(|info| {
        // glibc gives the program no name, and the first of another namespace that of its file.
        // SAFETY: a name is null or ends with a NUL.
        let named = || !info.dlpi_name.is_null() && unsafe { *info.dlpi_name } != 0;
        is_first_named.get_or_insert_with(named);
        has_program |= info.dlpi_phdr as u64 == program;
        has_program
    });
    has_program || is_first_named == Some(false)
}

/// The program headers of an object.
pub(crate) fn headers(info: &libc::dl_phdr_info) -> &[libc::Elf64_Phdr] {
    // SAFETY: they are as many as the object says, and stay as long as it.
    unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) }
}
