//! The shared multi-writer ring beside the buffer of the Feather-Trace paper, written by one thread and by
//! two at once. Nanoseconds of a write of two words and its time stamp; the buffers are emptied meanwhile.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::*};

use ft_costs::cycles::{begin, end, per_ns, rdtsc};
use ft_costs::{cpu, fewer, median, tell};
use ft_user::layout::{SharedControl, SharedSlot};
use ft_user::shared_ring::{Event, Reader, SharedRing};

const SLOTS: usize = 8192;

/// Events of a batch, of all threads; less than [`SLOTS`].
const BATCH: u64 = 8000;

/// The paper's buffer (section 2.2, figure 3): a free count and a write index, each taken by a locked
/// exchange-and-add, and a marker a slot.
struct Paper {
    free: AtomicI32,
    write: AtomicU32,
    slots: Vec<PaperSlot>,
}

#[derive(Default)]
struct PaperSlot {
    marker: AtomicU64,
    words: [AtomicU64; 3],
}

impl Paper {
    fn new() -> Paper {
        let slots = (0..SLOTS).map(|_| PaperSlot::default()).collect();
        Paper { free: AtomicI32::new(SLOTS as i32), write: AtomicU32::new(0), slots }
    }

    #[inline]
    fn write(&self, a: u64, b: u64) {
        if self.free.fetch_sub(1, AcqRel) <= 0 {
            self.free.fetch_add(1, AcqRel);
            return;
        }
        let index = self.write.fetch_add(1, AcqRel) as usize % SLOTS;
        let slot = &self.slots[index];
        slot.marker.store(1, Relaxed);
        for (word, value) in slot.words.iter().zip([rdtsc(), a, b]) {
            word.store(value, Relaxed);
        }
        slot.marker.store(2, Release);
    }

    fn empty(&self) {
        self.slots.iter().for_each(|slot| slot.marker.store(0, Relaxed));
        self.free.store(SLOTS as i32, Release);
    }
}

/// Tells `ring.1`, `ring.2`, `paper.1` and `paper.2`: nanoseconds of one thread's write.
pub(crate) fn measure() {
    // SAFETY: all of `SharedControl` and `SharedSlot` may be zero.
    let (control, slot) =
        unsafe { (std::mem::zeroed::<SharedControl>(), || std::mem::zeroed::<SharedSlot>()) };
    let slots: Vec<SharedSlot> = (0..SLOTS).map(|_| slot()).collect();
    control.free.store(SLOTS as i32, Relaxed);
    let ring = SharedRing::new(&control, &slots);
    let mut reader = Reader::new(&control, &slots, 0);
    let paper = Paper::new();
    let write_ring = |n: u64| {
        ring.write(Event { tid: 1, key: 64, cpu: 0, words: &[n, n] }, rdtsc);
    };
    let write_paper = |n: u64| paper.write(n, n);
    for threads in [1, 2] {
        tell(
            &format!("ring.{threads}"),
            time(threads, &write_ring, || while reader.read().is_some() {}),
        );
        tell(&format!("paper.{threads}"), time(threads, &write_paper, || paper.empty()));
    }
}

fn time(threads: u64, write: &(impl Fn(u64) + Sync), mut empty: impl FnMut()) -> f64 {
    let per_ns = per_ns();
    let rounds = fewer(201, 20);
    let started = Barrier::new(threads as usize);
    let each = BATCH / threads;
    let batch = || {
        started.wait();
        let start = begin();
        (0..each).for_each(|n| write(black_box(n)));
        let ns = (end() - start) as f64 / each as f64 / per_ns;
        started.wait();
        ns
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map(|_| {
                scope.spawn(|| {
                    cpu::pin(0);
                    for _ in 0..rounds {
                        batch();
                    }
                })
            })
            .collect();
        cpu::pin(cpu::measured());
        let times = (0..rounds)
            .map(|_| {
                let ns = batch();
                empty();
                ns
            })
            .collect();
        others.into_iter().for_each(|other| other.join().expect("no panic"));
        median(times)
    })
}
