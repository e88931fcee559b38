use super::*;
use crate::reader::{Reader, Uncommitted};
use crate::test_ring::{Event, SLOTS, TestRing, drain};

const KEY: u32 = 0x1000;
/// Slots that discard mode fills.
const CAPACITY: u64 = SLOTS - MARGIN_SLOTS as u64;

fn event(key: u32, tsc: u64, words: &[u64]) -> Event {
    Event { key, tsc, words: words.to_vec() }
}

#[test]
fn events_of_every_length_come_back() {
    let test = TestRing::new(Mode::Discard);
    let words: Vec<u64> = (1..=MAX_WORDS as u64).collect();
    let mut reader = test.reader();
    for n in 0..=MAX_WORDS {
        assert_eq!(test.write(KEY, &words[..n]), Written::Whole);
        let (drained, events) = drain(&mut reader, &test.ring(), Uncommitted::Wait);
        let slots = 1 + n.saturating_sub(2).div_ceil(3);
        let mut padded = words[..n].to_vec();
        padded.resize(2 + 3 * (slots - 1), 0);
        assert_eq!((drained.slots, drained.skipped), (slots as u64, 0));
        assert_eq!(events, [event(KEY, n as u64 + 1, &padded)]);
    }
}

#[test]
fn words_beyond_the_maximum_are_dropped() {
    let test = TestRing::new(Mode::Discard);
    test.write(KEY, &[1; MAX_WORDS + 1]);
    let (drained, _) = drain(&mut test.reader(), &test.ring(), Uncommitted::Wait);
    assert_eq!(drained.slots, MAX_EVENT_SLOTS as u64);
}

#[test]
fn laps_keep_order_and_indices() {
    let test = TestRing::new(Mode::Discard);
    let mut reader = test.reader();
    let mut next = SLOTS;
    for i in 0..SLOTS {
        // Two slots, and then three: events lie across the end of the ring.
        let words = [i; 6];
        test.write(KEY, &words[..if i % 2 == 0 { 5 } else { 6 }]);
        if i % 100 == 99 {
            let (drained, events) = drain(&mut reader, &test.ring(), Uncommitted::Wait);
            assert_eq!((drained.first_index, drained.slots), (next, 250));
            assert!(events.iter().map(|event| event.words[0]).eq(i - 99..=i));
            next += 250;
        }
    }
    assert!(next > 3 * SLOTS);
}

#[test]
fn loss_is_told_before_the_first_event_that_fits() {
    let test = TestRing::new(Mode::Discard);
    let mut reader = test.reader();
    for _ in 0..CAPACITY {
        assert_eq!(test.write(KEY, &[]), Written::Whole);
    }
    for _ in 0..3 {
        assert_eq!(test.write(KEY, &[]), Written::Lost);
    }
    let (drained, _) = drain(&mut reader, &test.ring(), Uncommitted::Wait);
    assert_eq!(drained.slots, CAPACITY);
    test.write(KEY, &[7]);
    test.write(KEY, &[8]);
    let (_, events) = drain(&mut reader, &test.ring(), Uncommitted::Wait);
    // The clock was read for each event: CAPACITY + 1 is the first that was lost.
    let told = &events[0];
    assert_eq!((told.key, &told.words[..]), (LOSS_KEY, &[CAPACITY + 1, 3][..]));
    let kept: Vec<_> = events[1..].iter().map(|event| event.words[0]).collect();
    assert_eq!(kept, [7, 8]);
    assert!(told.tsc < events[1].tsc);
    assert_eq!(test.ring().control.lost.load(Relaxed), 3);
}

#[test]
fn every_loss_is_told_once() {
    let test = TestRing::new(Mode::Discard);
    let mut reader = test.reader();
    let (mut told, mut whole) = (0, 0);
    for _ in 0..3 {
        for _ in 0..CAPACITY + 5 {
            whole += u64::from(test.write(KEY, &[]) == Written::Whole);
        }
        let (_, events) = drain(&mut reader, &test.ring(), Uncommitted::Wait);
        told += events.iter().filter(|e| e.key == LOSS_KEY).map(|e| e.words[1]).sum::<u64>();
    }
    let control = test.ring().control;
    assert_eq!(told + control.lost_pending.load(Relaxed), control.lost.load(Relaxed));
    assert_eq!(whole + control.lost.load(Relaxed), 3 * (CAPACITY + 5));
}

/// The clock is read between the reservation and the commit: a clock that writes is a signal
/// handler that strikes there, to any depth.
#[test]
fn handler_between_reservation_and_commit() {
    fn strike(test: &TestRing, depth: u64) -> u64 {
        if depth > 0 {
            test.ring().write(KEY, 0, &[depth; 6], || strike(test, depth - 1));
        }
        test.tick()
    }
    let test = TestRing::new(Mode::Discard);
    strike(&test, 10);
    let (drained, events) = drain(&mut test.reader(), &test.ring(), Uncommitted::Wait);
    assert_eq!(drained.slots, 30);
    // Reserved from the outermost to the innermost, timed the other way.
    let order: Vec<_> = events.iter().map(|event| (event.words[0], event.tsc)).collect();
    assert!(order.into_iter().eq((1..=10).rev().map(|depth| (depth, depth))));
}

#[test]
fn nested_handlers_at_the_limit_stay_within_the_margin() {
    let test = TestRing::new(Mode::Discard);
    let ring = test.ring();
    for _ in 0..CAPACITY - 1 {
        test.write(KEY, &[]);
    }
    // 64 handlers have found room and then been interrupted, each by the next.
    assert!(ring.has_room());
    for _ in 0..64 {
        ring.put(KEY, 0, &[9; MAX_WORDS], || 0);
    }
    let used = ring.control.head.load(Relaxed) - ring.control.tail.load(Relaxed);
    assert!(used <= SLOTS, "{used} slots overrun the reader");
    assert_eq!(test.write(KEY, &[]), Written::Lost);
}

#[test]
fn tail_beyond_the_head_is_not_believed() {
    let test = TestRing::new(Mode::Discard);
    test.ring().control.tail.store(u64::MAX, Relaxed);
    let written = (0..2 * SLOTS).filter(|_| test.write(KEY, &[]) == Written::Whole).count();
    assert!(written > 0);
    assert!(
        test.ring().control.limit.load(Relaxed) <= test.ring().control.head.load(Relaxed) + SLOTS
    );
}

#[test]
fn overwriting_keeps_the_newest() {
    let test = TestRing::new(Mode::Overwrite);
    for i in 0..3 * SLOTS {
        assert_eq!(test.write(KEY, &[i]), Written::Whole);
    }
    let ring = test.ring();
    let (drained, events) = drain(&mut Reader::newest(&ring), &ring, Uncommitted::Skip);
    assert_eq!((drained.slots, drained.skipped), (SLOTS, 0));
    assert!(events.iter().map(|event| event.words[0]).eq(2 * SLOTS..3 * SLOTS));
}

#[test]
fn a_new_owner_starts_without_a_loss() {
    let test = TestRing::new(Mode::Discard);
    for _ in 0..CAPACITY + 1 {
        test.write(KEY, &[]);
    }
    let mut reader = test.reader();
    drain(&mut reader, &test.ring(), Uncommitted::Wait);
    test.ring().prepare(Mode::Discard);
    test.write(KEY, &[]);
    let (_, events) = drain(&mut reader, &test.ring(), Uncommitted::Wait);
    assert!(events.iter().all(|event| event.key == KEY));
}

#[test]
fn reader_and_writer_at_once() {
    const EVENTS: u64 = if cfg!(miri) { 5_000 } else { 300_000 };
    let test = TestRing::new(Mode::Discard);
    let (ring, mut reader) = (test.ring(), test.reader());
    let (mut read, mut told, mut last) = (0, 0, 0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            for i in 0..EVENTS {
                let words = [i; 9];
                ring.write(KEY, 0, &words[..i as usize % 10], || i + 1);
            }
        });
        loop {
            // Asked before the drain: what was written before the end is then there to be read.
            let ended = writer.is_finished();
            let (drained, events) = drain(&mut reader, &test.ring(), Uncommitted::Wait);
            assert_eq!((drained.skipped, drained.more), (0, false));
            for event in events {
                if event.key == LOSS_KEY {
                    assert!(last < event.words[0] && event.words[0] <= event.tsc);
                    told += event.words[1];
                    continue;
                }
                let (i, n) = (event.tsc - 1, (event.tsc - 1) as usize % 10);
                assert!(last < event.tsc, "time goes backwards");
                assert!(event.words.iter().take(n).all(|&word| word == i), "torn: {event:?}");
                last = event.tsc;
                read += 1;
            }
            if ended && drained.slots == 0 {
                break;
            }
        }
    });
    let pending = test.ring().control.lost_pending.load(Relaxed);
    assert_eq!(read + told + pending, EVENTS);
}

/// An event of one lap is interrupted when its slot is marked; the handler writes `between` events, and then it goes on.
fn lapped(test: &TestRing, between: u64, look: impl Fn()) {
    let handler = || {
        for n in 0..between {
            assert_eq!(test.write(KEY + 8, &[n, n]), Written::Whole);
        }
        // The resumed write stores its time, its words, and its commit word behind this.
        look();
        test.tick()
    };
    test.ring().put(KEY, 0, &[u64::MAX, u64::MAX], handler);
}

/// Events of the slots as they are in this moment, by index.
fn snapshot(ring: &Ring<'_>) -> Vec<Event> {
    let mut reader = Reader::newest(ring);
    let (mut bytes, mut events) = (Vec::new(), Vec::new());
    loop {
        bytes.clear();
        let drained = reader.drain(ring, Uncommitted::Skip, u64::MAX, &mut bytes);
        events.extend(crate::test_ring::events(&bytes));
        if !drained.more {
            return events;
        }
    }
}

#[test]
fn overwriting_leaves_out_the_slot_of_a_write_that_is_not_finished() {
    for laps in [1, 2, 5] {
        let test = TestRing::new(Mode::Overwrite);
        (0..10).for_each(|n| _ = test.write(KEY + 8, &[n, n]));
        let interrupted = test.ring().control.head.load(Relaxed);
        let slot = test.ring().slot(interrupted);
        lapped(&test, laps * SLOTS, || {
            let word = slot.commit.load(Relaxed);
            assert_eq!(word >> commit::TAG_SHIFT, commit::tag(interrupted), "used again");
            assert_eq!(word & commit::COMMITTED, 0);
            // What the write is about to store is in no event of a later lap.
            slot.words.iter().for_each(|word| word.store(u64::MAX, Relaxed));
            let events = snapshot(&test.ring());
            assert!(events.iter().all(|event| event.words[0] != u64::MAX), "torn");
            assert!(events.len() as u64 > SLOTS - 2 * u64::from(MARGIN_SLOTS), "{}", events.len());
            assert_eq!(events.last().map(|event| event.words[0]), Some(laps * SLOTS - 1));
        });
        // The slot is used again, and everything goes on.
        (0..2 * SLOTS).for_each(|n| assert_eq!(test.write(KEY, &[n]), Written::Whole));
        assert_eq!(snapshot(&test.ring()).len() as u64, SLOTS);
    }
}

#[test]
fn the_slot_of_a_write_that_was_left_is_used_again_in_the_end() {
    let test = TestRing::new(Mode::Overwrite);
    for _ in 0..100 {
        let index = test.ring().control.head.fetch_add(1, Relaxed);
        begin(test.ring().slot(index), commit::tag(index) << commit::TAG_SHIFT | u64::from(KEY));
        test.write(KEY, &[]);
    }
    (0..(crate::guard::MAX_LAPS + 2) * SLOTS).for_each(|n| _ = test.write(KEY, &[n]));
    assert_eq!(snapshot(&test.ring()).len() as u64, SLOTS);
}

/// The reader has passed over an interrupted write, and its thread writes on; then it finishes after all.
#[test]
fn a_write_that_was_passed_over_may_go_on_late() {
    for marked in [true, false] {
        let test = TestRing::new(Mode::Discard);
        let (ring, mut reader) = (test.ring(), test.reader());
        test.write(KEY, &[0]);
        let index = ring.control.head.fetch_add(1, Relaxed);
        let word = commit::tag(index) << commit::TAG_SHIFT | u64::from(KEY);
        if marked {
            begin(ring.slot(index), word);
        }
        let (mut written, mut seen, mut lost, mut passed) = (1, Vec::new(), 0, 0);
        for _ in 0..12 {
            for _ in 0..SLOTS / 4 {
                assert_eq!(test.write(KEY, &[written]), Written::Whole);
                written += 1;
            }
            loop {
                let (drained, events) = drain(&mut reader, &ring, Uncommitted::Wait);
                seen.extend(events.iter().map(|event| event.words[0]));
                passed += drained.passed;
                if drained.more {
                    continue;
                }
                let Some(slots) = reader.unfinished(&ring, u64::MAX) else { break };
                lost += reader.pass_unfinished(&ring, slots);
            }
        }
        assert!(passed >= 2, "its slot was not used again, in two laps");
        // It goes on, and is none of what comes.
        begin(ring.slot(index), word);
        ring.slot(index).words.iter().for_each(|word| word.store(u64::MAX, Relaxed));
        ring.slot(index).commit.store(word | commit::COMMITTED, Release);
        for _ in 0..8 {
            for _ in 0..SLOTS / 4 {
                assert_eq!(test.write(KEY, &[written]), Written::Whole);
                written += 1;
            }
            let (drained, events) = drain(&mut reader, &ring, Uncommitted::Wait);
            assert_eq!((drained.lost, reader.unfinished(&ring, u64::MAX)), (0, None));
            seen.extend(events.iter().map(|event| event.words[0]));
            while reader.tail() < ring.control.head.load(Relaxed) {
                let (_, events) = drain(&mut reader, &ring, Uncommitted::Wait);
                seen.extend(events.iter().map(|event| event.words[0]));
            }
        }
        assert!(seen.into_iter().eq(0..written), "each once");
        assert_eq!(lost, 1);
        assert_eq!(ring.control.lost.load(Relaxed), 0);
    }
}

/// A handler has forked between the steps of telling a loss: in the child, whose ring has none, it is none.
#[test]
fn a_loss_of_the_parents_is_none_of_the_child() {
    let test = TestRing::new(Mode::Discard);
    let ring = test.ring();
    ring.control.lost_pending.store(5, Relaxed);
    ring.control.lost.store(3, Relaxed);
    ring.write(64, 0, &[1], || 7);
    let count = |index| ring.slot(index).words[2].load(Relaxed);
    let first = ring.len();
    assert_eq!(commit::key(ring.slot(first).commit.load(Relaxed)), LOSS_KEY);
    assert_eq!(count(first), 3);
    assert_eq!(ring.control.head.load(Relaxed), first + 2);
}
