//! Survives memory that cannot be touched.
//!
//! A map whose pages the kernel cannot give raises `SIGBUS` in whoever touches it (mmap(2)). What is attached has
//! a final size and plain pages, which leaves few reasons: a failing disk under swap, a memory error. The handler
//! puts zeroed memory of our own in the place of the whole map, marks it, and lets the access be repeated;
//! whoever reads the map asks afterwards ([`Watched::has_faulted`]). A fault elsewhere goes to the handler
//! of before, which ends the process.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize};

/// A map that is watched, or a place for one. Never freed: a handler may look at it at any time.
struct Entry {
    /// First address; 0 when the place is free, 1 while it is being filled in.
    start: AtomicUsize,
    bytes: AtomicUsize,
    faulted: AtomicBool,
    /// The place that was made before.
    next: *mut Entry,
}

const FREE: usize = 0;
const RESERVED: usize = 1;

/// The place that was made last.
static PLACES: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());

/// A map that is replaced when it faults.
pub(super) struct Watched(&'static Entry);

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").field("faulted", &self.has_faulted()).finish()
    }
}

impl Watched {
    /// Watches `bytes` bytes that are mapped at `start`.
    pub(super) fn new(start: usize, bytes: usize) -> Watched {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(install);
        let reserve =
            |place: &&Entry| place.start.compare_exchange(FREE, RESERVED, Acquire, Relaxed).is_ok();
        let place = places().find(reserve).unwrap_or_else(make);
        place.bytes.store(bytes, Relaxed);
        place.faulted.store(false, Relaxed);
        // SYNC: fault-place (with the handler: the size is in place).
        place.start.store(start, Release);
        Watched(place)
    }

    /// It has faulted, and is zeroed memory of our own.
    pub(super) fn has_faulted(&self) -> bool {
        self.0.faulted.load(Relaxed)
    }

    /// Watches it no more: it is about to be unmapped.
    pub(super) fn forget(&self) {
        self.0.start.store(FREE, Release);
    }
}

/// All places.
fn places() -> impl Iterator<Item = &'static Entry> {
    // SAFETY: places are leaked when they are made, and change by atomics only.
    let get = |at: *mut Entry| unsafe { at.as_ref() };
    // SYNC: fault-places
    std::iter::successors(get(PLACES.load(Acquire)), move |place| get(place.next))
}

/// One more place, reserved.
fn make() -> &'static Entry {
    let place = Box::leak(Box::new(Entry {
        start: AtomicUsize::new(RESERVED),
        bytes: AtomicUsize::new(0),
        faulted: AtomicBool::new(false),
        next: PLACES.load(Acquire),
    }));
    let mine = ptr::from_mut(place);
    // SYNC: fault-places (with whoever walks them: `next` is in place).
    while let Err(newest) = PLACES.compare_exchange(place.next, mine, AcqRel, Acquire) {
        place.next = newest;
    }
    place
}

/// What SIGBUS did before.
static mut BEFORE: MaybeUninit<libc::sigaction> = MaybeUninit::uninit();

fn install() {
    // SAFETY: all of `sigaction` may be zero; `BEFORE` is written here, once, before a handler of ours can read it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, ptr::null(), (&raw mut BEFORE).cast());
        libc::sigaction(libc::SIGBUS, &action, ptr::null_mut());
    }
}

/// Makes system calls and touches atomics only, as a handler must (signal-safety(7); mmap is a plain system call
/// on Linux). An access that faults is not inside of an allocation, but any code may have been interrupted.
extern "C" fn on_fault(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes what it says about the fault. From `kill` (`si_code` ≤ 0) there is no address.
    let address = unsafe { if (*info).si_code > 0 { (*info).si_addr() as usize } else { 0 } };
    // SAFETY: `errno` of this thread.
    let errno = unsafe { *libc::__errno_location() };
    let replaced = places().any(|place| {
        // SYNC: fault-place
        let start = place.start.load(Acquire);
        let bytes = place.bytes.load(Relaxed);
        start > RESERVED && address.wrapping_sub(start) < bytes && replace(place, start, bytes)
    });
    // SAFETY: `errno` of this thread.
    unsafe { *libc::__errno_location() = errno };
    if !replaced {
        // SAFETY: `install` has filled it in before this could be called.
        let before = unsafe { *(&raw const BEFORE).cast::<libc::sigaction>() };
        chain(&before, signal, info, context);
    }
}

/// Puts zeroed memory in the place of a map; whether that was done.
fn replace(place: &Entry, start: usize, bytes: usize) -> bool {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: exactly a map of ours, all of it atomics of which any bit pattern is valid.
    let at = unsafe { libc::mmap(start as *mut libc::c_void, bytes, protection, flags, -1, 0) };
    place.faulted.store(true, Relaxed);
    at != libc::MAP_FAILED
}

/// What would have happened without us.
fn chain(
    before: &libc::sigaction,
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    match before.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // The access is repeated, and ends the process. SIGBUS of a fault cannot be ignored.
            // SAFETY: the default action is no function of ours.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
            // SAFETY: takes no pointer. One that was sent is not repeated by itself.
            unsafe {
                if (*info).si_code <= 0 {
                    libc::raise(signal);
                }
            };
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
            // SAFETY: it was installed with this signature (sigaction(2), SA_SIGINFO).
            let handler = unsafe { std::mem::transmute::<usize, Handler>(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: it was installed with this signature.
            let handler =
                unsafe { std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler) };
            handler(signal);
        }
    }
}
