//! The ring of the calling thread, and what happens when it has none.

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

use crate::arch::{self, Word};
use crate::counters;
use crate::fork;
use crate::kernel::{self, monotonic_ns};
use crate::layout::{self, Arg, COUNTERS_KEY, RingControl, SHARED_WORDS};
use crate::lease;
use crate::process;
use crate::ring::{MAX_WORDS, Ring, Written};
use crate::text::{self, Pair};

/// Whether a thread without a ring may claim one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Claim {
    /// At its next event.
    Allowed = 0,
    /// It is ending and has given its ring back: its last events go to the shared ring.
    Over = 1,
    /// It forks, and has set its ring aside: its events go to the shared ring until it has forked.
    Forks = 2,
}

/// Makes `ring` the ring of the calling thread.
///
/// # Safety
///
/// The calling thread is the only writer, and the ring stays mapped until [`clear`].
pub unsafe fn set(ring: &'static RingControl) {
    // SAFETY: the caller vouches for the ring; a control page is followed by its slots.
    unsafe { arch::tls_set_ring(ring, arch::rseq(arch::RSEQ_CPU_END)) };
}

/// Takes the ring from the calling thread: when it ends, and in the child after a fork.
pub fn clear(claim: Claim) {
    // SAFETY: null is always allowed.
    unsafe { arch::tls_set_ring(ptr::null(), None) };
    arch::tls_set(Word::Claim, claim as u32);
}

/// The ring of the calling thread, if it has one.
pub(crate) fn ring() -> Option<&'static RingControl> {
    // SAFETY: null, or a ring that was set and not cleared.
    unsafe { arch::tls_ring().as_ref() }
}

/// Whether events of this process are recorded: an agent is there, or none has come yet and sites are on.
pub fn is_recorded() -> bool {
    process::memfd().is_some_and(|memfd| match memfd.header().lease.load(Relaxed) {
        layout::lease::NONE => memfd.header().sites_enabled.load(Relaxed) > 0,
        _ => !lease::is_over(&memfd),
    })
}

/// Number of the calling thread, by a system call.
pub fn number() -> u32 {
    kernel::gettid()
}

/// The scheduling policy of the calling thread, as sched_getscheduler(2) says it; `None` where that is forbidden.
pub fn policy() -> Option<core::ffi::c_int> {
    // SAFETY: takes no pointer; 0 is the calling thread.
    unsafe { kernel::call(libc::SYS_sched_getscheduler, [0]) }.ok().map(|policy| policy as _)
}

/// The ring of the calling thread, claimed now if it has none and may have one.
pub(crate) fn attach() -> Option<&'static RingControl> {
    fork::look();
    if arch::tls_ring().is_null()
        && arch::tls_get(Word::Claim) == Claim::Allowed as u32
        && let Some(ring) = process::claim_ring()
    {
        // SAFETY: the ring was claimed for this thread, and is released only through `clear`.
        unsafe { set(ring) };
    }
    ring()
}

/// Writes an event to the ring of the calling thread, claims one first if it has none, or falls back
/// to the shared ring. Runs behind the thunk, on a thread's first event and when its ring is full.
pub(crate) fn write(key: u32, words: &[u64]) {
    write_to(attach(), key, words);
}

/// [`write()`] of an event with text; also when it is to be cut.
///
/// # Safety
///
/// As for [`text::encode`].
pub(crate) unsafe fn write_text(key: u32, args: &[Arg], pairs: &[Pair]) {
    let ring = attach();
    let mut words = [0; MAX_WORDS];
    let room = if ring.is_some() { MAX_WORDS } else { SHARED_WORDS };
    // SAFETY: the caller vouches for the texts.
    let used = unsafe { text::encode(args, pairs, &mut words[..room]) };
    write_to(ring, key, &words[..used]);
}

/// Opens the counters that the agent asks for, if any, before the first event.
pub(crate) fn begin_counting(control: &'static RingControl) {
    if process::counting().is_nothing() {
        return;
    }
    // SAFETY: as for an event.
    if let Some(ring) = unsafe { Ring::new(control, (control.mask + 1) as u32) } {
        if let Some(reading) = counters::read() {
            ring.write(COUNTERS_KEY, arch::tls_cpu(), &reading, arch::rdtsc);
        }
        if counters::are_open() {
            ring.decline();
        }
    }
}

fn write_to(ring: Option<&'static RingControl>, key: u32, words: &[u64]) {
    let Some(control) = ring else { return process::shared_write(key, words) };
    // SAFETY: a claimed ring is mapped with its slots; its mask is their number less one.
    if let Some(ring) = unsafe { Ring::new(control, (control.mask + 1) as u32) } {
        if let Some(limit) = process::full_wait() {
            let counted = !process::counting().is_nothing();
            wait_for_room(&ring, if counted { counters::SLOTS } else { 0 }, limit);
        }
        let written = match counters::read() {
            None => ring.write(key, arch::tls_cpu(), words, arch::rdtsc),
            Some(reading) => {
                let front = (COUNTERS_KEY, &reading[..]);
                ring.write_behind(front, key, arch::tls_cpu(), words, arch::rdtsc)
            }
        };
        if counters::are_open() {
            ring.decline();
        }
        if written == Written::Lost {
            lease::after_losses(control.lost.load(Relaxed));
        } else if ring.overwrites() {
            lease::look();
        }
    }
}

/// Waits for room in the ring of this thread, for an event behind `front` slots and for `limit` at most.
fn wait_for_room(ring: &Ring<'_>, front: u64, limit: Duration) {
    let mut end = None;
    ring.wait_for_room(front, arch::tls_cpu(), arch::rdtsc, || {
        let now = monotonic_ns();
        let end = *end.get_or_insert_with(|| {
            process::describe_waits();
            now.saturating_add(limit.as_nanos() as u64)
        });
        if now < end {
            pause();
        }
        now < end
    });
}

/// Sleeps for half of the shortest time between two looks of the agent. No cancellation point, as nanosleep(3) is one;
/// a signal ends it early.
fn pause() {
    let time = libc::timespec { tv_sec: 0, tv_nsec: 50_000 };
    let place = (&raw const time).expose_provenance();
    // SAFETY: `time` is valid, and where the rest would go may be null.
    let _ = unsafe { kernel::call(libc::SYS_nanosleep, [place, 0]) };
}
