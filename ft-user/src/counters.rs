//! The counters of a thread: what it has done, by the processor's account or the kernel's, at each of its events.
//!
//! Only if the agent asks for it ([`Counting`]): then the thread opens the counters with its next event that finds no room,
//! which its first one is, and from then on each event takes that way (`Ring::decline`). So
//! events that are not counted cost what they always do.
//!
//! A counter is read without a system call: perf maps a page that says in which register it is, and what to add
//! (`struct perf_event_mmap_page`, include/uapi/linux/perf_event.h; perf_event_open(2), "rdpmc instruction"). What is
//! not in a register can be read by system calls, which are not made unless the agent asks for that, too.
//!
//! A counter for which the processor has no room at times counts only in between. By how much that falls short nobody knows, and
//! it is not guessed: each event names the *stretch* of counting in which it lies, and where those of two events differ, what
//! lies between is not known.

use core::cell::Cell;
use core::ptr;
use core::sync::atomic::Ordering::*;
use core::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, compiler_fence};

use self::descriptor::Descriptor;
use crate::critical::SignalsBlocked;
use crate::layout::{COUNTERS_AT_ONCE, Counter, Counting, NOT_COUNTED, PAGE};
use crate::{arch, kernel, process};

mod descriptor;

/// What an event of [`COUNTERS_KEY`](crate::layout::COUNTERS_KEY) says.
pub(crate) type Reading = [u64; 1 + COUNTERS_AT_ONCE];

/// Slots of that event.
pub(crate) const SLOTS: u64 = 2;

/// Attempts to read a page that changes meanwhile. It does so in an interrupt of this CPU: twice in a row is unlikely already.
///
/// Limit: as `COUNTERS_AT_ONCE` of `counter.rs`.
const ATTEMPTS: u32 = 4;

/// The page of a counter, as far as it is needed.
#[derive(Debug, Default)]
#[repr(C)]
struct Page {
    _versions: [u32; 2],
    /// Changes when the rest does.
    lock: AtomicU32,
    /// The register, and one; 0: in none.
    index: AtomicU32,
    /// What to add to the register.
    offset: AtomicU64,
    /// For how long it was to count, and for how long it did, ns; the difference stays as long as it is in a register.
    enabled: AtomicU64,
    running: AtomicU64,
    capabilities: AtomicU64,
    /// Bits of the register.
    width: AtomicU16,
}

/// `cap_user_rdpmc`: the instruction may be used.
const MAY_BE_READ: u64 = 1 << 2;

/// What a counter shows, and for how long it was not counting, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shown {
    value: u64,
    missed: u64,
}

impl Page {
    fn may_be_read(&self) -> bool {
        self.capabilities.load(Relaxed) & MAY_BE_READ != 0
    }

    /// What the counter shows; `None` when it is in no register now.
    fn shown(&self, register: impl Fn(u32) -> u64) -> Option<Shown> {
        for _ in 0..ATTEMPTS {
            let lock = self.lock.load(Relaxed);
            // The kernel changes the page on the CPU of the thread that reads, so nothing else need be kept in order.
            compiler_fence(SeqCst);
            let (index, width) = (self.index.load(Relaxed), self.width.load(Relaxed));
            let missed = self.enabled.load(Relaxed).wrapping_sub(self.running.load(Relaxed));
            let offset = self.offset.load(Relaxed);
            let is_readable = self.may_be_read() && index != 0 && (1..=64).contains(&width);
            let count = is_readable.then(|| {
                let unused = 64 - width;
                // As signed as it is wide.
                ((register(index - 1) << unused) as i64 >> unused) as u64
            });
            compiler_fence(SeqCst);
            if self.lock.load(Relaxed) == lock {
                return count.map(|count| Shown { value: offset.wrapping_add(count), missed });
            }
        }
        None
    }
}

/// Reads a performance counter register.
fn rdpmc(register: u32) -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: the page of a counter of this thread has said that it is in this register, and that the instruction is allowed.
    unsafe {
        core::arch::asm!(
            "rdpmc",
            in("ecx") register,
            out("rax") low,
            out("rdx") high,
            options(nomem, nostack, preserves_flags),
        );
    }
    high << 32 | low
}

/// Opens a counter of all that runs on a CPU, which counts from now on in user space.
///
/// # Errors
///
/// The number of the error of perf_event_open(2).
pub fn open_on_cpu(counter: &Counter, cpu: u32) -> Result<std::os::fd::OwnedFd, i32> {
    use std::os::fd::FromRawFd;

    let fd = perf_event_open(counter, -1, cpu as libc::c_int)?;
    // SAFETY: it was made just now, and nobody else has it.
    Ok(unsafe { std::os::fd::OwnedFd::from_raw_fd(fd) })
}

fn perf_event_open(
    counter: &Counter,
    pid: libc::pid_t,
    cpu: libc::c_int,
) -> Result<libc::c_int, i32> {
    /// The first version of `struct perf_event_attr`, which has all that is needed.
    #[repr(C)]
    struct Attributes {
        kind: u32,
        bytes: u32,
        config: u64,
        sample_period: u64,
        sample_type: u64,
        read_format: u64,
        flags: u64,
        rest: [u64; 2],
    }
    // PERF_FORMAT_TOTAL_TIME_ENABLED and _RUNNING; exclude_kernel and exclude_hv, what every user is allowed.
    let attributes = Attributes {
        kind: counter.kind,
        bytes: size_of::<Attributes>() as u32,
        config: counter.config,
        sample_period: 0,
        sample_type: 0,
        read_format: 1 | 2,
        flags: 1 << 5 | 1 << 6,
        rest: [0; 2],
    };
    // In no group; PERF_FLAG_FD_CLOEXEC.
    let place = (&raw const attributes).expose_provenance();
    let arguments = [place, pid as usize, cpu as usize, usize::MAX, 8];
    // SAFETY: the attributes are as long as they say.
    let fd = unsafe { kernel::call(libc::SYS_perf_event_open, arguments) }?;
    Ok(fd as libc::c_int)
}

/// A counter that was opened.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    /// Null where the processor cannot be asked.
    page: *const Page,
    /// `None` where the kernel is not to be asked, or can be no more.
    descriptor: Option<Descriptor>,
}

impl Open {
    /// Opens a counter of the calling thread, which counts from now on. Keeps its descriptor where it may be read `by_call`.
    ///
    /// # Errors
    ///
    /// The number of the error of perf_event_open(2): `ENOENT` where the machine has no such counter, `EACCES` or `EPERM` where
    /// the user may not, `EMFILE` where a quarter of the descriptors would not be left; where it is not to be read `by_call`, that of
    /// mmap(2), `EPERM` where the pages of all counters are too many (`perf_event_mlock_kb`), and `EOPNOTSUPP` where it can be read by
    /// a call only.
    pub fn new(counter: &Counter, by_call: bool) -> Result<Open, i32> {
        // This thread, on any CPU.
        let fd = perf_event_open(counter, 0, -1)?;
        if !by_call && !descriptor::has_room(fd) {
            descriptor::close(fd);
            return Err(libc::EMFILE);
        }
        let page = map(fd);
        let mut open = Open { page: page.unwrap_or(ptr::null()), descriptor: None };
        if !open.is_shown() {
            open.unmap();
        }
        if by_call {
            open.descriptor = Some(Descriptor::keep(fd).inspect_err(|_| open.unmap())?);
        } else {
            // The mapping keeps the counter.
            descriptor::close(fd);
            if open.page.is_null() {
                return Err(page.err().unwrap_or(libc::EOPNOTSUPP));
            }
        }
        Ok(open)
    }

    /// The processor shows it to programs.
    pub fn is_shown(&self) -> bool {
        // SAFETY: null, or a page of the kernel's that stays mapped.
        unsafe { self.page.as_ref() }.is_some_and(Page::may_be_read)
    }

    /// What it shows; from when its descriptor is the program's on, nothing that no register has.
    fn shown(&mut self) -> Option<Shown> {
        // SAFETY: as above.
        let in_register = unsafe { self.page.as_ref() }.and_then(|page| page.shown(rdpmc));
        in_register.or_else(|| {
            self.descriptor = self.descriptor.filter(|descriptor| descriptor.is_its());
            self.descriptor?.shown()
        })
    }

    /// Ends it.
    pub fn close(mut self) {
        self.unmap();
        self.close_descriptor();
    }

    fn unmap(&mut self) {
        if !self.page.is_null() {
            // SAFETY: mapped by `new`, and used no more.
            unsafe { kernel::munmap(self.page.cast_mut().cast(), PAGE) };
            self.page = ptr::null();
        }
    }

    fn close_descriptor(&mut self) {
        self.descriptor.take().into_iter().for_each(Descriptor::close);
    }
}

/// The page of a counter, or the number of the error.
fn map(fd: libc::c_int) -> Result<*const Page, i32> {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let page =
        unsafe { kernel::mmap(ptr::null_mut(), PAGE, libc::PROT_READ, libc::MAP_SHARED, fd, 0) };
    page.map(|page| page.as_ptr().cast_const().cast())
}

/// The counters of a thread.
#[derive(Clone, Copy)]
struct Own {
    /// What they were opened for, or refused.
    asked: Counting,
    /// When: distinguishes them from others of this thread, before and after.
    since: u64,
    open: [Option<Open>; COUNTERS_AT_ONCE],
}

const NONE: Own = Own { asked: Counting(0), since: 0, open: [None; COUNTERS_AT_ONCE] };

thread_local! {
    static OWN: Cell<Own> = const { Cell::new(NONE) };
    /// A reading is under way: of an event that a signal handler has interrupted, or has left by `longjmp`, of which nobody is told.
    static UNDER_WAY: Cell<bool> = const { Cell::new(false) };
}

/// Whether any were ever asked for. Before, no thread looks at its own: the C library may allocate a library's thread-locals when they are
/// looked at for the first time.
static WERE_ASKED: AtomicBool = AtomicBool::new(false);

/// What the counters of this thread show now, as its next event is to say. Opens and closes them as the agent asks. `None` where
/// nothing is asked for, or not known.
///
/// A handler may interrupt a reading anywhere, read the same counters, open others, and never come back.
pub(crate) fn read() -> Option<Reading> {
    let asked = process::counting();
    if !WERE_ASKED.load(Relaxed) {
        if asked.is_nothing() {
            return None;
        }
        WERE_ASKED.store(true, Relaxed);
    }
    if OWN.get().asked != asked
        && let Err(refused) = change(asked)
    {
        return Some(refused);
    }
    let was_under_way = UNDER_WAY.replace(true);
    // From here on no handler unmaps what this one may use.
    compiler_fence(SeqCst);
    let reading = read_own();
    compiler_fence(SeqCst);
    UNDER_WAY.set(was_under_way);
    reading
}

fn read_own() -> Option<Reading> {
    let since = OWN.get().since;
    compiler_fence(SeqCst);
    let own = OWN.get();
    compiler_fence(SeqCst);
    if OWN.get().since != since {
        // A handler has opened others in the middle of this copy.
        return None;
    }
    let mut open = own.open;
    let shown = open.each_mut().map(|open| open.as_mut().map(Open::shown));
    let descriptors = |open: &[Option<Open>]| {
        open.iter().flatten().filter(|open| open.descriptor.is_some()).count()
    };
    // In a child of `vfork` the descriptors are its own, and the rest is its parent's.
    if descriptors(&open) < descriptors(&own.open) && process::is_this() {
        let _no_handler = SignalsBlocked::new();
        if OWN.get().since == since {
            OWN.set(Own { open, ..own });
        }
    }
    reading(since, shown)
}

/// Opens what is asked for in place of what is open; or says what was refused.
#[cold]
fn change(asked: Counting) -> Result<(), Reading> {
    // So no handler meets half of it, or leaves it.
    let _no_handler = SignalsBlocked::new();
    let own = OWN.get();
    if own.asked == asked {
        return Ok(());
    }
    if UNDER_WAY.get() {
        // The pages stay mapped: one more for each counter, whenever the agent asks for others.
        own.open.into_iter().flatten().for_each(|mut open| open.close_descriptor());
    } else {
        close_all(own);
    }
    let opened = open_all(asked);
    OWN.set(Own { asked, since: arch::rdtsc(), open: opened.unwrap_or(NONE.open) });
    opened.map(|_| ())
}

/// The event of what counters show; an outer `None` is of one that is not asked for.
fn reading(since: u64, shown: [Option<Option<Shown>>; COUNTERS_AT_ONCE]) -> Option<Reading> {
    shown[0]?;
    // The time without a register grows with each gap in the counting, and changes in nothing else.
    let mut reading = [since, NOT_COUNTED, NOT_COUNTED];
    for (at, shown) in (1..).zip(shown.into_iter().flatten()) {
        let Shown { value, missed } = shown?;
        reading[at] = value;
        reading[0] = reading[0].wrapping_add(missed);
    }
    // Never negative, which means something else.
    reading[0] &= i64::MAX as u64;
    Some(reading)
}

/// Whether this thread's events are counted.
pub(crate) fn are_open() -> bool {
    WERE_ASKED.load(Relaxed) && OWN.get().open[0].is_some()
}

/// Opens what is asked for, all or nothing; else says what was refused, and why.
fn open_all(asked: Counting) -> Result<[Option<Open>; COUNTERS_AT_ONCE], Reading> {
    let mut own = Own { asked, ..NONE };
    for (at, counter) in asked.counters().into_iter().enumerate() {
        let Some(counter) = counter else { continue };
        process::describe_counters();
        match Open::new(counter, asked.by_call()) {
            Ok(open) => own.open[at] = Some(open),
            Err(errno) => {
                close_all(own);
                return Err([i64::from(-errno) as u64, at as u64, NOT_COUNTED]);
            }
        }
    }
    Ok(own.open)
}

fn close_all(own: Own) {
    own.open.into_iter().flatten().for_each(Open::close);
}

/// Ends the counters of this thread.
pub(crate) fn close() {
    if WERE_ASKED.load(Relaxed) {
        close_all(OWN.replace(NONE));
    }
}

/// In a forked child: they are the parent's, whose pages are not mapped here (`VM_DONTCOPY`). Descriptors of the parent's
/// other threads stay open.
pub(crate) fn forget() {
    if !WERE_ASKED.load(Relaxed) {
        return;
    }
    for mut open in OWN.replace(NONE).open.into_iter().flatten() {
        open.close_descriptor();
        // A handler that has interrupted a reading may fork, and return to it in the child.
        if UNDER_WAY.get() && !open.page.is_null() {
            map_nothing(open.page);
        }
    }
}

/// Maps zeros, which show nothing, where no page of a counter is mapped any more.
fn map_nothing(at: *const Page) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: this replaces no other mapping.
    let _ = unsafe { kernel::mmap(at.cast_mut().cast(), PAGE, libc::PROT_READ, flags, -1, 0) };
}

#[cfg(all(test, not(loom)))]
mod tests;
