//! The C library's own functions: where they are, found once, without a lock.
//!
//! Each has a place that a stub jumps through. At first the place leads to the resolver, so that calls
//! from other libraries' constructors, which may come before ours, work; [`resolve`] fills in all places.
//! Several threads may do so at once: they store the same.

use core::arch::{asm, naked_asm};
use core::ffi::{CStr, c_int, c_void};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering::*};
use core::{mem, ptr};

use crate::stub::real::{ALL, pthread_mutex_lock, pthread_mutex_trylock, pthread_mutex_unlock};

/// The address of a function of type `F`.
#[repr(transparent)]
pub(crate) struct Real<F> {
    // Relaxed everywhere: the address is all there is, what it points to is there since the start.
    address: AtomicPtr<c_void>,
    function: PhantomData<F>,
}

impl<F: Copy> Real<F> {
    /// A function that is not found yet: `first_call` takes its calls.
    pub(crate) const fn new(first_call: *mut c_void) -> Self {
        Real { address: AtomicPtr::new(first_call), function: PhantomData }
    }

    /// A function that is not found yet, and is called by [`Real::find`] only.
    pub(crate) const fn unknown() -> Self {
        Real::new(ptr::null_mut())
    }

    /// The function, which is found now if it was not.
    pub(crate) fn find(&self) -> F {
        if self.address.load(Relaxed).is_null() {
            resolve();
        }
        self.get()
    }

    /// The function.
    #[inline(always)]
    pub(crate) fn get(&self) -> F {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let address = self.address.load(Relaxed);
        // SAFETY: the place holds the function of this type, or a stand-in that jumps to it.
        unsafe { mem::transmute_copy(&address) }
    }

    /// The place of the address.
    pub(crate) const fn address(&self) -> &AtomicPtr<c_void> {
        &self.address
    }
}

/// How a function is found, and where its address goes.
pub(crate) struct Entry {
    pub(crate) name: &'static CStr,
    /// Symbol version, where the default may not be the right one.
    pub(crate) version: Option<&'static CStr>,
    pub(crate) address: &'static AtomicPtr<c_void>,
}

static HAS_THREAD_SANITIZER: AtomicBool = AtomicBool::new(false);

/// Whether ThreadSanitizer watches the program.
#[inline(always)]
pub(crate) fn has_thread_sanitizer() -> bool {
    HAS_THREAD_SANITIZER.load(Relaxed)
}

/// Finds all functions behind this library in the search order, so that other preload libraries that come
/// later keep their turn.
///
/// `dlsym` takes the dynamic linker's own lock only. It allocates where it finds nothing, and the allocator of the program may then come
/// back here by whatever it locks with. So what may be missing is looked for last; glibc's aliases of the mutex need no search.
pub(crate) fn resolve() {
    let [lock, trylock, unlock, sanitizer] = aliases();
    for (place, alias) in [
        (pthread_mutex_lock.address(), lock),
        (pthread_mutex_trylock.address(), trylock),
        (pthread_mutex_unlock.address(), unlock),
    ] {
        if !alias.is_null() {
            place.store(alias, Relaxed);
        }
    }
    HAS_THREAD_SANITIZER.store(!sanitizer.is_null(), Relaxed);
    let entries = || ALL.iter().chain(&crate::ready::ALL);
    let may_be_missing =
        |entry: &&Entry| entry.name.to_bytes().windows(5).any(|word| word == b"clock");
    for entry in entries().filter(|it| !may_be_missing(it)).chain(entries().filter(may_be_missing))
    {
        // SAFETY: the name ends with a NUL.
        let next = unsafe { libc::dlsym(libc::RTLD_NEXT, entry.name.as_ptr()) };
        let found = entry.version.map_or(next, |version| of_version(next, entry.name, version));
        let found = if found.is_null() { missing as *mut c_void } else { found };
        entry.address.store(found, Relaxed);
    }
}

/// The function of this name and version, where the `next` one is another version of it; but that, where it is another library's, which
/// may have no versions.
fn of_version(next: *mut c_void, name: &CStr, version: &CStr) -> *mut c_void {
    // SAFETY: name and version end with NULs.
    let found = unsafe { libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), version.as_ptr()) };
    let object = |at: *mut c_void| {
        let mut info = mem::MaybeUninit::<libc::Dl_info>::uninit();
        // SAFETY: a valid place for the answer, which is there where the call succeeds.
        unsafe { (libc::dladdr(at, info.as_mut_ptr()) != 0).then(|| info.assume_init().dli_fbase) }
    };
    if next.is_null() || object(next) == object(found) { found } else { next }
}

/// Stands in for a function that the C library does not have (the `clock` ones came with glibc 2.30).
unsafe extern "C-unwind" fn missing() -> c_int {
    libc::ENOSYS
}

/// glibc's second names for locking, trying and unlocking a mutex, and ThreadSanitizer's start; null where there is none.
fn aliases() -> [*mut c_void; 4] {
    let (lock, trylock, unlock, sanitizer);
    // SAFETY: loads four addresses that the dynamic linker filled in.
    unsafe {
        asm!(
            ".weak __pthread_mutex_lock",
            ".weak __pthread_mutex_trylock",
            ".weak __pthread_mutex_unlock",
            ".weak __tsan_init",
            "mov {lock}, qword ptr [rip + __pthread_mutex_lock@GOTPCREL]",
            "mov {trylock}, qword ptr [rip + __pthread_mutex_trylock@GOTPCREL]",
            "mov {unlock}, qword ptr [rip + __pthread_mutex_unlock@GOTPCREL]",
            "mov {sanitizer}, qword ptr [rip + __tsan_init@GOTPCREL]",
            lock = out(reg) lock,
            trylock = out(reg) trylock,
            unlock = out(reg) unlock,
            sanitizer = out(reg) sanitizer,
            options(nostack, preserves_flags, pure, readonly),
        );
    }
    [lock, trylock, unlock, sanitizer]
}

/// [`resolve`] for the first call of a function: keeps the registers that hold its arguments.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn resolve_keeping_arguments() {
    unsafe extern "C" fn resolve_all() {
        resolve();
    }
    // At entry the stack is aligned to 16 bytes: two return addresses are on it since the caller's call.
    naked_asm!(
        ".cfi_startproc",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "push rdx",
        ".cfi_adjust_cfa_offset 8",
        "push rcx",
        ".cfi_adjust_cfa_offset 8",
        "push r8",
        ".cfi_adjust_cfa_offset 8",
        "push r9",
        ".cfi_adjust_cfa_offset 8",
        "call {resolve_all}",
        "pop r9",
        ".cfi_adjust_cfa_offset -8",
        "pop r8",
        ".cfi_adjust_cfa_offset -8",
        "pop rcx",
        ".cfi_adjust_cfa_offset -8",
        "pop rdx",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "ret",
        ".cfi_endproc",
        resolve_all = sym resolve_all,
    )
}
