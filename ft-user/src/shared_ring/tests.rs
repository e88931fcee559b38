use super::*;

fn ring(slots: usize) -> (SharedControl, Vec<SharedSlot>) {
    // SAFETY: all of `SharedControl` and `SharedSlot` may be zero.
    let (control, slot) =
        unsafe { (core::mem::zeroed::<SharedControl>(), || core::mem::zeroed::<SharedSlot>()) };
    control.free.store(slots as i32, Relaxed);
    (control, (0..slots).map(|_| slot()).collect())
}

fn event(words: &[u64]) -> Event<'_> {
    Event { tid: 7, key: 64, cpu: 3, words }
}

#[test]
fn event_comes_back() {
    let (control, slots) = ring(4);
    let mut reader = Reader::new(&control, &slots, 0);
    assert_eq!(reader.read(), None);
    assert!(SharedRing::new(&control, &slots).write(event(&[1, 2, 3]), || 99));
    let record = reader.read().unwrap();
    assert_eq!((record.tid, record.tsc, &record.words[..4]), (7, 99, &[1, 2, 3, 0][..]));
    assert_eq!(commit::key(record.commit), 64);
    assert_eq!(commit::cpu(record.commit), 3);
    assert_eq!(commit::continuations(record.commit), 1);
    assert_eq!(reader.read(), None);
    assert_eq!(control.free.load(Relaxed), 4);
}

#[test]
fn a_slot_that_is_used_again_has_no_words_of_the_event_before() {
    let (control, slots) = ring(1);
    let mut reader = Reader::new(&control, &slots, 0);
    for words in [&[1, 2, 3][..], &[4]] {
        assert!(SharedRing::new(&control, &slots).write(event(words), || 1));
        let record = reader.read().unwrap();
        assert_eq!(record.words[..3], [words, &[0; 2]].concat()[..3]);
    }
}

#[test]
fn long_event_is_cut_and_says_so() {
    let (control, slots) = ring(4);
    SharedRing::new(&control, &slots).write(event(&[5; 38]), || 1);
    let record = Reader::new(&control, &slots, 0).read().unwrap();
    assert_eq!(commit::continuations(record.commit), 12);
    assert_eq!(record.words, [5; SHARED_WORDS]);
}

#[test]
fn full_ring_counts_the_loss() {
    let (control, slots) = ring(4);
    let writer = SharedRing::new(&control, &slots);
    let written: Vec<_> = (10..17).map(|tsc| writer.write(event(&[tsc]), || tsc)).collect();
    assert_eq!(written, [true, true, true, true, false, false, false]);
    let mut reader = Reader::new(&control, &slots, 0);
    assert_eq!(reader.loss(), Loss { events: 3, tsc: [14, 16] });
    assert_eq!(reader.read().unwrap().tsc, 10);
    assert!(writer.write(event(&[]), || 17));
    let left: Vec<_> = std::iter::from_fn(|| reader.read()).map(|r| r.tsc).collect();
    assert_eq!(left, [11, 12, 13, 17]);
}

/// A handler interrupts the loss of an event behind the reading of its time, and loses one later.
#[test]
fn a_loss_is_from_the_earliest_to_the_latest() {
    let (control, slots) = ring(1);
    let writer = SharedRing::new(&control, &slots);
    assert!(writer.write(event(&[]), || 10));
    let interrupted = || {
        assert!(!writer.write(event(&[]), || 30));
        20
    };
    assert!(!writer.write(event(&[]), interrupted));
    let loss = Reader::new(&control, &slots, 0).loss();
    assert_eq!(loss, Loss { events: 2, tsc: [20, 30] });
}

/// All that can be read.
fn all(reader: &mut Reader<'_>) -> Vec<u64> {
    std::iter::from_fn(|| reader.read_any()).map(|record| record.tsc).collect()
}

#[test]
fn a_reader_that_follows_another_one_reads_what_that_has_passed_over() {
    let (control, slots) = ring(4);
    let writer = SharedRing::new(&control, &slots);
    (1..=3).for_each(|tsc| assert!(writer.write(event(&[]), || tsc)));
    slots[0].marker.store(marker::BUSY, Relaxed);
    assert_eq!(all(&mut Reader::new(&control, &slots, 0)), [2, 3]);
    slots[0].marker.store(marker::READY, Relaxed);
    let mut second = Reader::resume(&control, &slots);
    assert_eq!((second.passed(), all(&mut second), second.taken()), (1, vec![1], 0));
}

#[test]
fn a_slot_that_is_not_ready_holds_up_nobody_and_is_read_late() {
    let (control, slots) = ring(4);
    let writer = SharedRing::new(&control, &slots);
    (1..=2).for_each(|tsc| assert!(writer.write(event(&[]), || tsc)));
    slots[0].marker.store(marker::BUSY, Relaxed);
    let mut reader = Reader::new(&control, &slots, 0);
    assert_eq!((reader.read(), reader.passed()), (None, 0));
    assert_eq!((all(&mut reader), reader.passed(), reader.taken()), (vec![2], 1, 1));
    // Three laps go around it.
    for tsc in 3..=11 {
        assert!(writer.write(event(&[]), || tsc));
        assert_eq!((all(&mut reader), reader.passed()), (vec![tsc], 1));
    }
    // All but that slot are full.
    (12..=14).for_each(|tsc| assert!(writer.write(event(&[]), || tsc)));
    assert!(!writer.write(event(&[]), || 15));
    slots[0].marker.store(marker::READY, Relaxed);
    assert_eq!(all(&mut reader), [1, 12, 13, 14]);
    assert_eq!((reader.taken(), reader.loss().events), (0, 1));
    // And it is used again.
    (16..=19).for_each(|tsc| assert!(writer.write(event(&[]), || tsc)));
    let mut rest = all(&mut reader);
    rest.sort_unstable();
    assert_eq!(rest, [16, 17, 18, 19]);
}

#[test]
fn a_write_that_was_left_costs_its_event_and_its_slot() {
    let (control, slots) = ring(4);
    let writer = SharedRing::new(&control, &slots);
    let mut reader = Reader::new(&control, &slots, 0);
    // Between the free count and the write index, between that and the marker, and behind it.
    control.free.fetch_sub(1, Relaxed);
    control.free.fetch_sub(1, Relaxed);
    control.write.fetch_add(1, Relaxed);
    for tsc in 1..=20 {
        assert!(writer.write(event(&[]), || tsc));
        assert_eq!(all(&mut reader), [tsc]);
    }
    assert_eq!(reader.taken(), 2);
    control.free.fetch_sub(1, Relaxed);
    writer.take_slot().unwrap();
    for tsc in 21..=40 {
        assert!(writer.write(event(&[]), || tsc));
        assert_eq!(all(&mut reader), [tsc]);
    }
    assert_eq!(reader.taken(), 3);
}

#[test]
fn unfinished_slots_of_the_dead_are_passed_over() {
    let (control, slots) = ring(4);
    control.write.store(u32::MAX, Relaxed);
    let writer = SharedRing::new(&control, &slots);
    (1..=4).for_each(|tsc| assert!(writer.write(event(&[]), || tsc)));
    // Killed before the marker, while filling, and at the very end.
    for (at, unfinished) in [(3, marker::FREE), (1, marker::BUSY), (2, marker::BUSY)] {
        slots[at].marker.store(unfinished, Relaxed);
    }
    let mut reader = Reader::new(&control, &slots, u32::MAX);
    assert_eq!(reader.read(), None);
    assert_eq!((all(&mut reader), reader.taken()), (vec![2], 3));
    // A write index that no writer has made.
    control.write.store(reader.position().wrapping_add(5), Relaxed);
    assert_eq!(all(&mut reader), []);
}

/// What the next reader finds, whatever a writer is about to do.
#[test]
fn next_reader_goes_on_where_the_last_one_ended() {
    let (control, slots) = ring(4);
    let writer = SharedRing::new(&control, &slots);
    (1..=3).for_each(|tsc| assert!(writer.write(event(&[]), || tsc)));
    assert_eq!(Reader::resume(&control, &slots).read().map(|r| r.tsc), Some(1));
    // A writer between its two steps: one taken from the free count, the write index where it was.
    control.free.fetch_sub(1, Relaxed);
    let mut reader = Reader::resume(&control, &slots);
    control.free.fetch_add(1, Relaxed);
    assert!(writer.write(event(&[]), || 4));
    assert_eq!(all(&mut reader), [2, 3, 4]);
    assert_eq!(reader.position(), 4);
}

#[test]
fn indices_may_overflow() {
    let (control, slots) = ring(4);
    control.write.store(u32::MAX - 1, Relaxed);
    let mut reader = Reader::new(&control, &slots, u32::MAX - 1);
    for tsc in 1..=20 {
        assert!(SharedRing::new(&control, &slots).write(event(&[]), || tsc));
        assert_eq!(reader.read().map(|r| r.tsc), Some(tsc));
    }
    assert_eq!(reader.position(), 18);
}

#[test]
fn writers_and_reader_at_once() {
    const WRITERS: u64 = 4;
    let each = if cfg!(miri) { 20 } else { 20_000 };
    let (control, slots) = ring(64);
    // By writer, which of its events were read: where a slot is passed over, they come in another order.
    let mut seen: [_; WRITERS as usize] = std::array::from_fn(|_| vec![false; each as usize + 1]);
    let mut lost = 0;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WRITERS)
            .map(|id| {
                let writer = SharedRing::new(&control, &slots);
                scope.spawn(move || {
                    (1..=each).filter(|&n| !writer.write(event(&[id, n, !n]), || n)).count()
                })
            })
            .collect();
        let mut reader = Reader::new(&control, &slots, 0);
        let mut take = |reader: &mut Reader<'_>| {
            let mut count = 0;
            while let Some(record) = reader.read_any() {
                let [id, n, inverse, ..] = record.words;
                assert_eq!(n, !inverse, "torn");
                assert_eq!(n, record.tsc, "mixed");
                assert!(!std::mem::replace(&mut seen[id as usize][n as usize], true), "twice");
                count += 1;
            }
            count
        };
        let mut read = 0;
        while !threads.iter().all(|thread| thread.is_finished()) {
            read += take(&mut reader);
        }
        for thread in threads {
            lost += thread.join().unwrap();
        }
        read += take(&mut reader);
        assert_eq!(read + lost, (WRITERS * each) as usize);
        assert_eq!(reader.loss().events, lost as u64);
    });
}
