//! What an event costs on this machine, as far as that can be known at the start of a recording.
//!
//! The agent writes events of two words into a ring of its own, by the routine that enabled triggers call. Caches are
//! warm, and nobody drains the ring, so it is about what the events of a busy loop cost, and less than those of a program
//! that does much else in between, or that writes text.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::time::Instant;

use ft_user::layout::{Arg, MIN_RING_SLOTS, Mode, PAGE, RingControl, SiteKind, SiteMeta, Slot};
use ft_user::ring::Ring;
use ft_user::site;
use ft_user::thread::{self, Claim};

/// Events between two readings of the clock.
const EVENTS: u64 = 512;

/// So many times; 0.1 ms in all.
const TIMES: usize = 17;

static ARGS: [Arg; 2] = [site::arg::<u64>("a"), site::arg::<u64>("b")];

/// What the events refer to. There is no trigger, so no list of sites has it.
static META: SiteMeta = site::meta(SiteKind::Event, "agent.cost", (file!(), line!()), "", &ARGS);

/// Nanoseconds of one event: the median, so that an interrupt or a preemption meanwhile is left out. `None` without
/// memory.
pub(super) fn event_ns() -> Option<f64> {
    let memory = Memory::new()?;
    // SAFETY: the memory holds a control page and as many slots, and lives longer than the ring.
    unsafe { Ring::new(memory.0, MIN_RING_SLOTS) }?.prepare(Mode::Overwrite);
    // SAFETY: only this thread writes it, until `clear`, and the memory lives longer.
    unsafe { thread::set(&*memory.0) };
    let mut times = [0.0; TIMES];
    for time in &mut times {
        let began = Instant::now();
        for n in 0..EVENTS {
            ft_user::__call_write!(META (a n) (b 1u64));
        }
        *time = began.elapsed().as_nanos() as f64 / EVENTS as f64;
    }
    // The agent records no events of its own.
    thread::clear(Claim::Over);
    times.sort_by(f64::total_cmp);
    Some(times[TIMES / 2])
}

/// Room for a ring.
struct Memory(*mut RingControl);

impl Memory {
    fn new() -> Option<Memory> {
        // SAFETY: the size is not zero.
        let memory: *mut RingControl = unsafe { alloc_zeroed(Memory::layout()) }.cast();
        if memory.is_null() {
            return None;
        }
        // SAFETY: the memory is large enough, aligned, and nobody else's.
        unsafe { (*memory).mask = u64::from(MIN_RING_SLOTS) - 1 };
        Some(Memory(memory))
    }

    fn layout() -> Layout {
        let bytes = PAGE as usize + MIN_RING_SLOTS as usize * size_of::<Slot>();
        Layout::from_size_align(bytes, PAGE as usize).expect("a valid layout")
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.0.cast(), Memory::layout()) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn an_event_takes_some_time() {
        let cost = event_ns().expect("memory");
        // A reading of the time stamp counter takes several times as long.
        assert!(cost > 1.0 && cost.is_finite(), "{cost}");
    }

    #[test]
    fn what_is_measured_are_events_that_are_written() {
        let memory = Memory::new().expect("memory");
        // SAFETY: as above.
        let ring = unsafe { Ring::new(memory.0, MIN_RING_SLOTS) }.expect("a ring");
        ring.prepare(Mode::Overwrite);
        let before = ring.control.head.load(Relaxed);
        // SAFETY: as above.
        unsafe { thread::set(ring.control) };
        for n in 0..3u64 {
            ft_user::__call_write!(META (a n) (b 1u64));
        }
        thread::clear(Claim::Over);
        assert_eq!(ring.control.head.load(Relaxed) - before, 3);
        assert_eq!(ring.control.lost.load(Relaxed), 0);
    }
}
