//! Waiting for room: what a thread does before it loses an event, if the agent asks for that.
//!
//! The common case has no part in it: whether to wait is decided where an event finds the ring full, once for each loss.
//! The wait is bounded whatever happens:
//!
//! - *By time*, which the caller keeps ([`Ring::wait_for_room`], `sleep`).
//! - *Once a loss has begun*, nothing waits until it has ended: when there is room again. So a reader that is gone costs
//!   a thread one wait.
//! - *A signal handler* may have interrupted the write of an event. The reader stops there, so to wait for it would be
//!   in vain: that slot, at which the reader stands, is reserved and not committed, and only this thread writes to the ring.
//!
//! A handler may also interrupt a wait, and wait itself; both end by the rules above.
//!
//! Each wait becomes an event of its own ([`RING_WAIT_KEY`]), so that it is not taken for the program's doing. One that
//! was in vain finds no room for that, and is told when there is room again, as the loss that it did not prevent. A
//! thread that ends before that does not record it; its loss is recorded.

use core::sync::atomic::Ordering::Relaxed;

use crate::layout::{RING_WAIT_KEY, commit};
use crate::ring::Ring;

/// Slots of the event that tells of a wait.
const SLOTS: u64 = 1;

impl Ring<'_> {
    /// No wait is to be recorded.
    pub(crate) fn forget_waits(&self) {
        let [begin, end] = &self.control.vain_wait_tsc;
        begin.store(u64::MAX, Relaxed);
        end.store(0, Relaxed);
    }

    /// Waits until an event fits behind `front` slots that are written with it, as long as `sleep` lets time pass and returns that
    /// there is more of it, and tells of the wait. Does nothing when there is room, or no sense in waiting.
    ///
    /// Only the thread that owns the ring may call this, with or without signal handlers in between.
    pub fn wait_for_room(
        &self,
        front: u64,
        cpu: u64,
        clock: impl Fn() -> u64,
        mut sleep: impl FnMut() -> bool,
    ) {
        self.tell_wait_in_vain(front, cpu);
        if self.has_room_behind(front) || self.control.lost_pending.load(Relaxed) > 0 {
            return;
        }
        let begin = clock();
        let mut waited = false;
        while !self.has_room_behind(SLOTS + front) {
            if self.holds_up_the_reader() || !sleep() {
                break;
            }
            waited = true;
        }
        if !waited {
            return;
        }
        let end = clock();
        if self.has_room_behind(SLOTS + front) {
            self.put(RING_WAIT_KEY, cpu, &[end], || begin);
        } else {
            let [vain_begin, vain_end] = &self.control.vain_wait_tsc;
            vain_begin.fetch_min(begin, Relaxed);
            vain_end.fetch_max(end, Relaxed);
        }
    }

    /// Tells of waits that were in vain, if there is room by now.
    fn tell_wait_in_vain(&self, front: u64, cpu: u64) {
        let [begin, end] = &self.control.vain_wait_tsc;
        // And for the loss and the event that are written behind it.
        if end.load(Relaxed) == 0 || !self.has_room_behind(2 * SLOTS + front) {
            return;
        }
        // A handler in between tells of it, or leaves what it waited itself to the next call.
        let (begin, end) = (begin.swap(u64::MAX, Relaxed), end.swap(0, Relaxed));
        if begin < end {
            self.put(RING_WAIT_KEY, cpu, &[end], || begin);
        }
    }

    /// Whether the reader stands at a slot that this thread has reserved and not committed.
    fn holds_up_the_reader(&self) -> bool {
        let tail = self.control.tail.load(Relaxed);
        let word = self.slot(tail).commit.load(Relaxed);
        tail < self.control.head.load(Relaxed)
            && (word & commit::COMMITTED == 0 || word >> commit::TAG_SHIFT != commit::tag(tail))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::layout::{LOSS_KEY, MARGIN_SLOTS, Mode};
    use crate::reader::Uncommitted;
    use crate::ring::Written;
    use crate::test_ring::{Event, SLOTS, TestRing, drain};

    const KEY: u32 = 0x1000;

    /// A ring without room.
    fn full() -> TestRing {
        let test = TestRing::new(Mode::Discard);
        for _ in 0..SLOTS - u64::from(MARGIN_SLOTS) {
            assert_eq!(test.write(KEY, &[]), Written::Whole);
        }
        test
    }

    /// Waits with as many sleeps at most, in each of which `meanwhile` happens; returns how many there were.
    fn wait(test: &TestRing, sleeps: u32, meanwhile: impl FnMut()) -> u32 {
        wait_behind(0, test, sleeps, meanwhile)
    }

    /// [`wait`] for room behind so many slots.
    fn wait_behind(front: u64, test: &TestRing, sleeps: u32, mut meanwhile: impl FnMut()) -> u32 {
        let mut slept = 0;
        test.ring().wait_for_room(
            front,
            3,
            || test.tick(),
            || {
                slept += 1;
                meanwhile();
                slept < sleeps
            },
        );
        slept
    }

    fn drained(test: &TestRing) -> Vec<Event> {
        drain(&mut test.reader(), &test.ring(), Uncommitted::Wait).1
    }

    /// Begin and end of the waits among events.
    fn waits(events: &[Event]) -> Vec<(u64, u64)> {
        let waits = events.iter().filter(|event| event.key == RING_WAIT_KEY);
        waits.map(|event| (event.tsc, event.words[0])).collect()
    }

    #[test]
    fn with_room_nothing_waits() {
        let test = TestRing::new(Mode::Discard);
        assert_eq!(wait(&test, 9, || ()), 0);
        assert_eq!(drained(&test), []);
        let test = TestRing::new(Mode::Overwrite);
        for _ in 0..2 * SLOTS {
            test.write(KEY, &[]);
        }
        assert_eq!(wait(&test, 9, || ()), 0);
    }

    #[test]
    fn a_wait_ends_with_room_and_is_told_before_the_event() {
        let test = full();
        let (begin, mut slept) = (test.tick() + 1, 0);
        let sleeps = wait(&test, 9, || {
            slept += 1;
            if slept == 3 {
                drained(&test);
            }
        });
        assert_eq!((sleeps, test.write(KEY, &[7])), (3, Written::Whole));
        let events = drained(&test);
        assert_eq!(waits(&events), [(begin, begin + 1)]);
        assert_eq!((events.len(), events[1].key, events[1].words[0]), (2, KEY, 7));
        assert_eq!(test.ring().control.lost.load(Relaxed), 0);
    }

    #[test]
    fn room_for_one_slot_is_not_enough_for_the_wait_and_the_event() {
        let test = full();
        let mut one = test.reader();
        let sleeps = wait(&test, 9, || {
            one.drain(&test.ring(), Uncommitted::Wait, 1, &mut Vec::new());
        });
        assert_eq!((sleeps, test.write(KEY, &[])), (2, Written::Whole));
    }

    #[test]
    fn an_event_that_is_written_behind_another_one_waits_for_room_for_both() {
        let (test, front) = (full(), [1, 2, 3]);
        let mut one = test.reader();
        let sleeps = wait_behind(crate::ring::slots(&front), &test, 9, || {
            one.drain(&test.ring(), Uncommitted::Wait, 1, &mut Vec::new());
        });
        let write =
            || test.ring().write_behind((KEY, &front), KEY + 0x1000, 0, &[7], || test.tick());
        // The wait, two slots in front, and the event.
        assert_eq!((sleeps, write()), (4, Written::Whole));
        // Without room for both, the event is all there is.
        one.drain(&test.ring(), Uncommitted::Wait, 1, &mut Vec::new());
        assert_eq!((write(), write()), (Written::Whole, Written::Lost));
        let events = drained(&test);
        let keys: Vec<_> = events[events.len() - 4..].iter().map(|event| event.key).collect();
        assert_eq!(keys, [RING_WAIT_KEY, KEY, KEY + 0x1000, KEY + 0x1000]);
        let [.., front, event, _] = &events[..] else { panic!("{events:?}") };
        assert_eq!((front.tsc, test.ring().control.lost.load(Relaxed)), (event.tsc, 1));
    }

    #[test]
    fn a_wait_in_vain_is_not_repeated_and_told_with_the_loss() {
        let test = full();
        let begin = test.tick() + 1;
        assert_eq!(wait(&test, 5, || ()), 5);
        assert_eq!(test.write(KEY, &[]), Written::Lost);
        for _ in 0..3 {
            assert_eq!(wait(&test, 5, || ()), 0, "nothing waits while a loss goes on");
            assert_eq!(test.write(KEY, &[]), Written::Lost);
        }
        drained(&test);
        assert_eq!(wait(&test, 5, || ()), 0);
        assert_eq!(test.write(KEY, &[7]), Written::Whole);
        let events = drained(&test);
        assert_eq!(waits(&events), [(begin, begin + 1)]);
        let losses: Vec<_> = events.iter().filter(|event| event.key == LOSS_KEY).collect();
        assert_eq!((losses.len(), losses[0].words[1]), (1, 4));
        assert_eq!(events.len(), 3);
        // It is recorded once, and the next full ring waits again.
        for _ in 0..SLOTS {
            test.write(KEY, &[]);
        }
        drained(&test);
        test.write(KEY, &[]);
        assert_eq!(waits(&drained(&test)), []);
        while test.ring().has_room_behind(0) {
            test.write(KEY, &[]);
        }
        assert_eq!(wait(&test, 5, || ()), 5);
    }

    #[test]
    fn a_wait_in_vain_is_not_told_in_the_room_of_the_loss_and_the_event() {
        let test = full();
        let mut two = test.reader();
        let begin = test.tick() + 1;
        wait(&test, 5, || ());
        assert_eq!(test.write(KEY, &[]), Written::Lost);
        two.drain(&test.ring(), Uncommitted::Wait, 2, &mut Vec::new());
        assert_eq!((wait(&test, 5, || ()), test.write(KEY, &[])), (0, Written::Whole));
        // It is told with the next one.
        assert_eq!(wait(&test, 5, || ()), 5);
        let end = test.tick() - 1;
        drained(&test);
        wait(&test, 5, || ());
        assert_eq!(waits(&drained(&test)), [(begin, end)]);
    }

    /// The clock is read between the reservation and the commit: what it does is done by a signal handler that
    /// strikes there.
    #[test]
    fn a_handler_does_not_wait_for_the_write_that_it_interrupts() {
        let test = TestRing::new(Mode::Discard);
        let handler = || {
            while test.write(KEY, &[]) == Written::Whole {}
            // The loss has ended, as when the reader has made room in between.
            test.ring().control.lost_pending.store(0, Relaxed);
            assert_eq!(drained(&test).len(), 0, "the reader stands at the interrupted event");
            assert_eq!(wait(&test, 5, || ()), 0);
            test.tick()
        };
        test.ring().write(KEY, 0, &[], handler);
        assert_eq!(waits(&drained(&test)), []);
    }

    /// A handler that strikes before the slot is marked finds an event of an earlier lap there.
    #[test]
    fn a_handler_does_not_wait_for_a_slot_that_is_not_marked_yet() {
        let test = TestRing::new(Mode::Discard);
        for _ in 0..SLOTS {
            test.write(KEY, &[]);
            drained(&test);
        }
        test.ring().control.head.fetch_add(1, Relaxed);
        while test.write(KEY, &[]) == Written::Whole {}
        test.ring().control.lost_pending.store(0, Relaxed);
        assert_eq!((drained(&test).len(), wait(&test, 5, || ())), (0, 0));
    }

    #[test]
    fn a_handler_that_interrupts_a_wait_may_wait_too() {
        let test = full();
        let mut inner = 0;
        let outer = wait(&test, 2, || inner += wait(&test, 4, || ()));
        assert_eq!((outer, inner), (2, 8));
        let [begin, end] =
            test.ring().control.vain_wait_tsc.each_ref().map(|tsc| tsc.load(Relaxed));
        assert!(begin < end);
        drained(&test);
        wait(&test, 1, || ());
        assert_eq!(waits(&drained(&test)), [(begin, end)], "one wait with what lies in it");
    }

    #[test]
    fn a_new_owner_has_no_wait_to_tell() {
        let test = full();
        wait(&test, 2, || ());
        drained(&test);
        test.ring().prepare(Mode::Discard);
        wait(&test, 2, || ());
        assert_eq!(drained(&test), []);
    }
}
