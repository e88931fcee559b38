//! Where each ring is mapped, and how that is done without a descriptor.
//!
//! `mremap(2)` with an old size of 0 makes a second mapping of what is mapped already, of any length. So a ring is mapped from its
//! control page, which is the last page of what is mapped for the ring before it; that of the first ring is the last page of the first
//! mapping. A ring takes addresses when a thread first claims it, and keeps them: a process that bounds its addresses
//! (`RLIMIT_AS`), or locks its memory (`mlockall(MCL_FUTURE)`), pays for the rings that it uses, not for all. In the second case that is the
//! whole ring, at once, and for a moment those between it and the last one that is mapped, too.
//!
//! Where that is refused (valgrind; a seccomp filter) all rings are mapped at the start, at the price of the addresses of all.

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};

use crate::layout::{MAX_RINGS, PAGE, RingControl};
use crate::memfd::{Memfd, RINGS_OFFSET, stride};
use crate::{kernel, publish};

/// The rings that were claimed at least once. While a thread maps one: [`MAPPING`], then the address that it has set aside, plus one.
static MAPPED: [AtomicPtr<RingControl>; MAX_RINGS as usize] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MAX_RINGS as usize];

/// Stands in [`MAPPED`] for a ring whose place is not known yet. Odd, as is that of each ring that is being mapped.
const MAPPING: *mut RingControl = ptr::without_provenance_mut(1);

/// Whether rings can be mapped one by one: 0 not known, 1 yes, 2 no.
static ONE_BY_ONE: AtomicU32 = AtomicU32::new(0);

/// Whether all rings are mapped with the first mapping. Asked when the first page of a memfd is mapped at `base`; the answer is the same
/// as long as the process lives.
pub(crate) fn at_once(base: NonNull<u8>) -> bool {
    if ONE_BY_ONE.load(Relaxed) == 0 {
        let again = duplicate(base.as_ptr(), PAGE, None);
        again.inspect(|&again| unmap(again.as_ptr(), PAGE));
        ONE_BY_ONE.store(if again.is_some() { 1 } else { 2 }, Relaxed);
    }
    ONE_BY_ONE.load(Relaxed) == 2
}

/// Bytes of the first mapping, without rings that are mapped with it.
pub(crate) fn first_bytes_alone() -> u64 {
    RINGS_OFFSET + if is_at_once() { 0 } else { PAGE }
}

/// Bytes that are mapped for a ring: itself, and the control page of the next.
fn bytes(memfd: &Memfd) -> u64 {
    let next = if is_at_once() { 0 } else { PAGE };
    stride(memfd.config().ring_slots) + next
}

fn is_at_once() -> bool {
    ONE_BY_ONE.load(Relaxed) == 2
}

fn is_there(ring: *mut RingControl) -> bool {
    !ring.is_null() && ring.addr() & 1 == 0
}

/// The ring with this number, if it is mapped.
pub(crate) fn at(number: u32) -> Option<&'static RingControl> {
    let ring = publish::see(&MAPPED[number as usize]);
    // SAFETY: mapped, initialised, and never unmapped while a thread could see it.
    if is_there(ring) { unsafe { ring.as_ref() } } else { None }
}

/// Maps the ring with this number and has it prepared before anybody else sees it. `None` when another thread is at it or has
/// done it, and when there are no addresses left. The caller's signals are blocked.
pub(crate) fn map(
    memfd: &Memfd,
    number: u32,
    prepare: impl FnOnce(NonNull<RingControl>) -> &'static RingControl,
) -> Option<&'static RingControl> {
    let place = &MAPPED[number as usize];
    publish::take(place, MAPPING).then_some(())?;
    let ring = map_at(memfd, number, place).map(|ring| prepare(ring.cast()));
    publish::publish(place, ring.map_or(ptr::null_mut(), |ring| ptr::from_ref(ring).cast_mut()));
    ring
}

fn map_at(memfd: &Memfd, number: u32, place: &AtomicPtr<RingControl>) -> Option<NonNull<u8>> {
    let stride = stride(memfd.config().ring_slots);
    let first = memfd.base().as_ptr().wrapping_add(RINGS_OFFSET as usize);
    if is_at_once() {
        return NonNull::new(first.wrapping_add((u64::from(number) * stride) as usize));
    }
    let bytes = bytes(memfd);
    // Known to a child of another thread's fork before anything of the memfd is there.
    let aside = set_aside(bytes)?;
    publish::mark(place, aside.as_ptr().cast::<RingControl>().wrapping_byte_add(1));

    // The one before may be about to be mapped by another thread, which is not waited for.
    let before = (0..number).rev().find_map(|before| Some((before, at(before)?)));
    let (passed, control_page) = match before {
        None => (u64::from(number), first),
        Some((before, ring)) => {
            let end = ptr::from_ref(ring).cast_mut().cast::<u8>().wrapping_add(stride as usize);
            (u64::from(number - before - 1), end)
        }
    };
    let passed = passed * stride;
    let mapped = if passed == 0 {
        duplicate(control_page, bytes, Some(aside))
    } else {
        duplicate(control_page, passed + bytes, None).and_then(|longer| {
            let ring = longer.as_ptr().wrapping_add(passed as usize);
            let moved = remap(ring, bytes, bytes, Some(aside));
            unmap(longer.as_ptr(), if moved.is_some() { passed } else { passed + bytes });
            moved
        })
    };
    if mapped.is_none() {
        unmap(aside.as_ptr(), bytes);
    }
    mapped
}

/// In a forked child: no ring is mapped any more. Those of the parent are unmapped, but that of this thread, `own`.
///
/// # Safety
///
/// The calling thread is the only one, and `memfd` is the parent's.
pub(crate) unsafe fn forget(memfd: &Memfd, own: Option<NonNull<RingControl>>) {
    let bytes = bytes(memfd);
    let base = memfd.base().as_ptr();
    // With all others, or alone.
    let all = if is_at_once() { RINGS_OFFSET..memfd.total_bytes() } else { 0..0 };
    let offset = |ring: *mut RingControl| (ring.addr() as u64).wrapping_sub(base.addr() as u64);
    for place in &MAPPED {
        let ring = place.swap(ptr::null_mut(), Relaxed);
        let is_alone = !ring.is_null() && ring != MAPPING && !all.contains(&offset(ring));
        if is_alone && NonNull::new(ring) != own {
            unmap(ring.map_addr(|address| address & !1).cast(), bytes);
        }
    }
    let own = own.map(|own| offset(own.as_ptr())).filter(|own| all.contains(own));
    let own = own.unwrap_or(all.end)..own.map_or(all.end, |own| own + bytes);
    for part in [all.start..own.start, own.end..all.end] {
        unmap(base.wrapping_add(part.start as usize), part.end - part.start);
    }
}

/// In a forked child: maps the first ring of `memfd`, whose descriptor is `fd`, where the parent's ring of this thread was, and has it
/// prepared. So an event that a handler with a fork in it has interrupted goes on in the child's own ring. False where that cannot be
/// done.
///
/// # Safety
///
/// As for [`forget`]; `ring` was mapped for a ring of the same size.
pub(crate) unsafe fn replace(
    memfd: &Memfd,
    fd: libc::c_int,
    ring: NonNull<RingControl>,
    prepare: impl FnOnce(NonNull<RingControl>) -> &'static RingControl,
) -> bool {
    let bytes = bytes(memfd);
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_FIXED;
    // SAFETY: what is replaced is ours, and writes to it find as much there as before.
    let mapped =
        unsafe { kernel::mmap(ring.as_ptr().cast(), bytes, protection, flags, fd, RINGS_OFFSET) };
    let is_mapped = mapped == Ok(ring.cast());
    if is_mapped {
        kernel::keep_out_of_dumps(ring.cast(), bytes);
        publish::publish(&MAPPED[0], ptr::from_ref(prepare(ring)).cast_mut());
    }
    is_mapped
}

/// The same as [`abandon`] for a ring of the parent's.
pub(crate) fn abandon_ring(memfd: &Memfd, ring: NonNull<RingControl>) {
    abandon(ring.cast(), bytes(memfd));
}

/// In a forked child: what the calling thread may be writing to goes nowhere from now on. The addresses stay in use until some later
/// forks.
pub(crate) fn abandon(at: NonNull<u8>, bytes: u64) {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: what is replaced is ours, and accesses to it find as much there as before.
    let _ = unsafe { kernel::mmap(at.as_ptr().cast(), bytes, protection, flags, -1, 0) };
    let number = ABANDONED.forks.fetch_add(1, Relaxed) as usize % GENERATIONS;
    let oldest = ABANDONED.at[number].swap(at.as_ptr(), Relaxed);
    if !oldest.is_null() {
        unmap(oldest, u64::from(ABANDONED.pages[number].load(Relaxed)) * PAGE);
    }
    ABANDONED.pages[number].store((bytes / PAGE) as u32, Relaxed);
}

/// Handlers that have each interrupted an event and forked, and whose child has done so again, without one of them having returned:
/// there are not so many.
///
/// Limit: as `RUNS` of `described.rs`.
const GENERATIONS: usize = 4;

/// What [`abandon`] has left, of a process and those from which it was forked.
struct Abandoned {
    forks: AtomicU32,
    at: [AtomicPtr<u8>; GENERATIONS],
    pages: [AtomicU32; GENERATIONS],
}

static ABANDONED: Abandoned = Abandoned {
    forks: AtomicU32::new(0),
    at: [const { AtomicPtr::new(ptr::null_mut()) }; GENERATIONS],
    pages: [const { AtomicU32::new(0) }; GENERATIONS],
};

/// Addresses at which nothing is.
fn set_aside(bytes: u64) -> Option<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    unsafe { kernel::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) }.ok()
}

/// Maps `bytes` of the file from where `at` shows it once more.
fn duplicate(at: *mut u8, bytes: u64, to: Option<NonNull<u8>>) -> Option<NonNull<u8>> {
    remap(at, 0, bytes, to)
}

fn remap(at: *mut u8, old: u64, new: u64, to: Option<NonNull<u8>>) -> Option<NonNull<u8>> {
    let fixed = if to.is_some() { libc::MREMAP_FIXED } else { 0 };
    let to = to.map_or(0, |to| to.as_ptr().expose_provenance());
    let flags = (libc::MREMAP_MAYMOVE | fixed) as usize;
    let arguments = [at.expose_provenance(), old as usize, new as usize, flags, to];
    // SAFETY: `at` is in a mapping of ours, and `to` is set aside by the caller.
    let moved = unsafe { kernel::call(libc::SYS_mremap, arguments) }.ok()?;
    NonNull::new(ptr::with_exposed_provenance_mut(moved))
}

fn unmap(at: *mut u8, bytes: u64) {
    if bytes > 0 {
        // SAFETY: the caller has mapped it, and nobody uses it any more.
        unsafe { kernel::munmap(at.cast(), bytes) };
    }
}
