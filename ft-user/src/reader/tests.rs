use super::*;
use crate::layout::{LOSS_KEY, Mode};
use crate::test_ring::{SLOTS, TestRing, drain, events};

const KEY: u32 = 0x1000;

/// A ring with three events of one, two and one slots, from index `SLOTS` on.
fn three() -> TestRing {
    let test = TestRing::new(Mode::Discard);
    for words in [&[1][..], &[2, 2, 2], &[3]] {
        test.write(KEY, words);
    }
    test
}

/// Damages the ring, drains it, and compares: first word of each event, slots left out, more.
fn check(uncommitted: Uncommitted, damage: impl Fn(&Ring<'_>), expected: (&[u64], u64, bool)) {
    let test = three();
    damage(&test.ring());
    let (drained, events) = drain(&mut test.reader(), &test.ring(), uncommitted);
    let words: Vec<u64> = events.iter().map(|event| event.words[0]).collect();
    assert_eq!((&words[..], drained.skipped, drained.more), expected);
}

fn damage(index: u64, change: impl Fn(u64) -> u64) -> impl Fn(&Ring<'_>) {
    move |ring| {
        let commit = &ring.slot(SLOTS + index).commit;
        commit.store(change(commit.load(Relaxed)), Relaxed);
    }
}

#[test]
fn nothing_is_damaged() {
    check(Uncommitted::Wait, |_| (), (&[1, 2, 3], 0, false));
}

#[test]
fn slot_that_is_being_written() {
    let busy = |index| damage(index, |word| word & !commit::COMMITTED);
    check(Uncommitted::Wait, busy(0), (&[], 0, false));
    check(Uncommitted::Wait, busy(1), (&[1], 0, false));
    check(Uncommitted::Skip, busy(0), (&[2, 3], 1, false));
    // The run ends before the hole; the next call leaves the hole out.
    check(Uncommitted::Skip, busy(1), (&[1], 0, true));
}

#[test]
fn slot_of_another_lap() {
    let older = |index| damage(index, |word| word.wrapping_sub(1 << commit::TAG_SHIFT));
    check(Uncommitted::Wait, older(0), (&[], 0, false));
    check(Uncommitted::Skip, older(0), (&[2, 3], 1, false));
}

#[test]
fn continuation_without_its_first_slot() {
    let orphan = damage(0, |word| word | commit::CONTINUATION);
    check(Uncommitted::Wait, orphan, (&[2, 3], 1, false));
}

#[test]
fn event_with_a_slot_that_is_not_a_continuation() {
    check(Uncommitted::Wait, damage(2, |word| word & !commit::CONTINUATION), (&[1], 0, true));
}

#[test]
fn count_of_continuations_is_bounded() {
    for count in [3, 12, 13, 15] {
        let long = damage(0, |word| word | count << commit::CONT_SHIFT);
        check(Uncommitted::Wait, long, (&[2, 3], 1, false));
    }
}

#[test]
fn hole_is_left_out_by_the_next_call() {
    let test = three();
    damage(1, |word| word & !commit::COMMITTED)(&test.ring());
    let mut reader = test.reader();
    drain(&mut reader, &test.ring(), Uncommitted::Skip);
    let (drained, events) = drain(&mut reader, &test.ring(), Uncommitted::Skip);
    assert_eq!((drained.first_index, drained.slots, drained.skipped), (SLOTS + 3, 1, 2));
    assert_eq!(events[0].words[0], 3);
}

#[test]
fn head_is_not_believed() {
    for head in [0, SLOTS - 1, u64::MAX] {
        let test = three();
        test.ring().control.head.store(head, Relaxed);
        let mut reader = test.reader();
        let (drained, _) = drain(&mut reader, &test.ring(), Uncommitted::Wait);
        let read = if head < SLOTS { 0 } else { 4 };
        assert_eq!((drained.slots, reader.tail()), (read, SLOTS + read), "head {head}");
    }
    let test = three();
    test.ring().control.head.store(u64::MAX, Relaxed);
    let mut reader = test.reader();
    while drain(&mut reader, &test.ring(), Uncommitted::Skip).0.more {}
    assert_eq!(reader.tail(), 2 * SLOTS + 4);
}

#[test]
fn a_slot_that_speaks_of_more_than_there_is_ends_at_the_head() {
    let test = three();
    let ring = test.ring();
    let slot = ring.slot(SLOTS);
    slot.words[2].store(u64::MAX, Relaxed);
    damage(0, |word| word | commit::PASSED)(&ring);
    let mut reader = test.reader();
    let (drained, events) = drain(&mut reader, &ring, Uncommitted::Wait);
    assert_eq!((drained.passed, events.len()), (4, 0));
    test.write(KEY, &[4]);
    let (_, events) = drain(&mut reader, &ring, Uncommitted::Wait);
    assert_eq!(events.iter().map(|event| event.words[0]).collect::<Vec<_>>(), [4]);
}

#[test]
fn budget_ends_between_events() {
    let test = three();
    let (mut reader, mut bytes) = (test.reader(), Vec::new());
    let drained = reader.drain(&test.ring(), Uncommitted::Wait, 2, &mut bytes);
    assert_eq!((drained.slots, drained.more), (3, true));
    let drained = reader.drain(&test.ring(), Uncommitted::Wait, 2, &mut bytes);
    assert_eq!((drained.first_index, drained.slots, drained.more), (SLOTS + 3, 1, false));
    assert_eq!(events(&bytes).len(), 3);
}

#[test]
fn slots_that_are_left_out_are_work() {
    let test = TestRing::new(Mode::Discard);
    test.ring().control.head.store(2 * SLOTS, Relaxed);
    let (mut reader, mut bytes) = (test.reader(), Vec::new());
    let drained = reader.drain(&test.ring(), Uncommitted::Skip, 100, &mut bytes);
    // Eight events of unknown length.
    assert_eq!((drained.slots, drained.skipped, drained.more), (0, 104, true));
    assert_eq!(drained.lost, 8);
}

#[test]
fn slots_that_are_passed_over_are_work() {
    let (test, mut bytes) = (three(), Vec::new());
    // All but the last event.
    test.ring().slot(SLOTS).words[2].store(2, Relaxed);
    damage(0, |word| word | commit::PASSED)(&test.ring());
    let drained = test.reader().drain(&test.ring(), Uncommitted::Wait, 3, &mut bytes);
    assert_eq!((drained.slots, drained.passed, drained.more), (0, 3, true));
}

#[test]
fn an_event_that_reaches_beyond_the_end_is_left_for_later() {
    let (test, mut bytes) = (three(), Vec::new());
    let (mut reader, ring) = (test.reader(), test.ring());
    let drained = reader.drain_below(&ring, SLOTS + 2, Uncommitted::Skip, u64::MAX, &mut bytes);
    assert_eq!((drained.slots, drained.skipped, drained.more), (1, 0, false));
    let drained = reader.drain_below(&ring, SLOTS + 3, Uncommitted::Skip, u64::MAX, &mut bytes);
    assert_eq!((drained.first_index, drained.slots, drained.skipped), (SLOTS + 1, 2, 0));
}

#[test]
fn writer_may_go_on_after_a_drain() {
    let test = three();
    let mut reader = test.reader();
    drain(&mut reader, &test.ring(), Uncommitted::Wait);
    assert_eq!(test.ring().control.tail.load(Relaxed), reader.tail());
    for _ in 0..SLOTS - MARGIN_SLOTS as u64 {
        assert_eq!(test.write(KEY, &[]), crate::ring::Written::Whole);
    }
}

/// Whatever stands in a ring, the reader ends, and hands out whole events only.
#[test]
fn any_bytes_are_survived() {
    // A linear congruential generator: the same bytes each time (Knuth, MMIX).
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 11
    };
    for _ in 0..if cfg!(miri) { 1 } else { 50 } {
        let test = TestRing::new(Mode::Discard);
        let ring = test.ring();
        ring.control.head.store(SLOTS + next() % (2 * SLOTS), Relaxed);
        for i in 0..SLOTS {
            // Three in four slots are plausible: the right tag, committed or not.
            let tag = commit::tag(SLOTS + i) << commit::TAG_SHIFT;
            let noise = next() << 11 & !(commit::TAG_MASK << commit::TAG_SHIFT) | next() & 3;
            ring.slot(i).commit.store(if next() % 4 > 0 { tag | noise } else { next() }, Relaxed);
        }
        let mut reader = test.reader();
        let mut total = 0;
        loop {
            let (drained, events) = drain(&mut reader, &ring, Uncommitted::Skip);
            let slots: usize = events.iter().map(|event| 1 + (event.words.len() - 2) / 3).sum();
            assert_eq!(slots as u64, drained.slots);
            total += drained.slots + drained.skipped + drained.passed;
            if !drained.more {
                break;
            }
        }
        assert_eq!(total, reader.tail() - SLOTS);
    }
}

/// Drains, and passes over what is unfinished in front of something committed; returns first words, and events and slots that were
/// passed over.
fn drain_on(reader: &mut Reader, ring: &Ring<'_>) -> (Vec<u64>, u64, u64) {
    let (mut words, mut events, mut passed) = (Vec::new(), 0, 0);
    loop {
        let (drained, some) = drain(reader, ring, Uncommitted::Wait);
        words.extend(some.iter().map(|event| event.words[0]));
        assert_eq!(drained.lost, 0);
        if drained.more {
            continue;
        }
        let Some(slots) = reader.unfinished(ring, u64::MAX) else { break };
        events += reader.pass_unfinished(ring, slots);
        passed += slots;
    }
    (words, events, passed)
}

/// A reservation that is left, after it has marked its first slot or before.
fn leave(ring: &Ring<'_>, slots: u64, marked: bool) {
    let index = ring.control.head.fetch_add(slots, Relaxed);
    if marked {
        let word = commit::tag(index) << commit::TAG_SHIFT | (slots - 1) << commit::CONT_SHIFT;
        ring.slot(index).commit.store(word | u64::from(KEY), Relaxed);
    }
}

#[test]
fn a_write_that_is_not_finished_is_waited_for_until_something_is_behind_it() {
    for marked in [false, true] {
        let test = TestRing::new(Mode::Discard);
        let (ring, mut reader) = (test.ring(), test.reader());
        leave(&ring, 3, marked);
        assert_eq!(reader.unfinished(&ring, u64::MAX), None);
        test.write(KEY, &[1]);
        assert_eq!(reader.unfinished(&ring, SLOTS + 3), None, "not to be looked at");
        assert_eq!(drain_on(&mut reader, &ring), (vec![1], 1, 3));
    }
}

#[test]
fn each_event_that_was_left_counts_once() {
    let test = TestRing::new(Mode::Discard);
    let (ring, mut reader) = (test.ring(), test.reader());
    // Two in a row whose lengths are known, and one of which nothing is known but that it has begun.
    leave(&ring, 2, true);
    leave(&ring, 1, true);
    leave(&ring, 13, false);
    test.write(KEY, &[1]);
    assert_eq!(drain_on(&mut reader, &ring), (vec![1], 3, 16));
    assert_eq!(ring.control.passed_at.load(Relaxed), SLOTS + 16);
    // Of a process that has ended they count as often.
    ring.control.tail.store(SLOTS, Relaxed);
    let (drained, _) = drain(&mut test.reader(), &ring, Uncommitted::Skip);
    assert_eq!((drained.skipped, drained.lost), (16, 3));
}

/// What it was to tell is told at the end.
#[test]
fn one_that_was_to_tell_of_losses_is_no_event_that_is_lost() {
    let test = TestRing::new(Mode::Discard);
    let (ring, mut reader) = (test.ring(), test.reader());
    let index = ring.control.head.fetch_add(1, Relaxed);
    let word = commit::tag(index) << commit::TAG_SHIFT | u64::from(LOSS_KEY);
    ring.slot(index).commit.store(word, Relaxed);
    leave(&ring, 1, true);
    test.write(KEY, &[1]);
    assert_eq!(drain_on(&mut reader, &ring), (vec![1], 1, 2));
    ring.control.tail.store(SLOTS, Relaxed);
    let (drained, _) = drain(&mut test.reader(), &ring, Uncommitted::Skip);
    assert_eq!((drained.skipped, drained.lost), (2, 1));
}

#[test]
fn what_looks_unfinished_without_end_is_passed_over_in_parts() {
    let test = TestRing::new(Mode::Discard);
    test.ring().control.head.store(3 * SLOTS, Relaxed);
    let (mut reader, mut passed) = (test.reader(), 0);
    while let Some(slots) = reader.unfinished(&test.ring(), 2 * SLOTS) {
        assert!(slots <= u64::from(MARGIN_SLOTS));
        reader.pass_unfinished(&test.ring(), slots);
        passed += slots;
    }
    assert!((SLOTS - u64::from(MARGIN_SLOTS)..=SLOTS).contains(&passed), "{passed}");
}
