//! Events that their thread has left or not finished, and rings that are overwritten while they are copied.

use std::ptr;
use std::sync::atomic::AtomicBool;
use std::thread;

use ft_user::layout::{MIN_RING_SLOTS, RingControl, commit};
use ft_user::reader::Reader;
use ft_user::ring::Ring;
use ft_user::shared_ring::{Event, SharedRing};

use super::tests::{Frames, claim, drain, finish, source, write};
use super::*;

const KEY: u32 = 64;
const SECOND: i64 = 1_000_000_000;

/// The thread of a ring reserves so many slots, and marks the first as that of an event of so many.
fn leave(source: &Source, index: u32, slots: u64, marked: bool) {
    let ring = source.memory.ring(index);
    let at = ring.control.head.fetch_add(slots, Relaxed);
    if marked {
        let word = commit::tag(at) << commit::TAG_SHIFT | (slots - 1) << commit::CONT_SHIFT;
        slot(ring.control, ring.len(), at).store(word | u64::from(KEY), Relaxed);
    }
}

/// The commit word of the slot of an index.
fn slot(control: &RingControl, slots: u64, index: u64) -> &std::sync::atomic::AtomicU64 {
    let at = 4096 + (index % slots) as usize * 32;
    // SAFETY: the slots follow the control page, of a page and 32 bytes each, and begin with their commit word.
    unsafe { &*ptr::from_ref(control).byte_add(at).cast() }
}

/// Losses of one round at a time: count, and length in TSC.
fn losses(source: &mut Source, now_ns: i64) -> Vec<(u64, i64)> {
    let mut losses = Vec::new();
    let mut sink = |frame: &Frame<'_>| {
        if let Frame::Loss(loss) = frame {
            assert_eq!(loss.what, LossReason::NeverCommitted.word());
            losses.push((loss.count, loss.to - loss.from));
        }
        Ok(())
    };
    source.drain(now_ns, &mut Work::last(), &mut sink).unwrap();
    losses
}

#[test]
fn an_event_that_was_left_is_passed_over_and_counted_once() {
    for (slots, marked) in [(1, true), (1, false), (3, true), (3, false), (13, false)] {
        let mut s = source(Mode::Discard, Since::Start);
        claim(&s, 0);
        write(&s, 0, 1, 3);
        assert_eq!(drain(&mut s), ["thread true", "ring 0 1..=3"]);
        leave(&s, 0, slots, marked);
        assert_eq!(losses(&mut s, SECOND), [], "its thread is at it");
        assert_eq!(losses(&mut s, 9 * SECOND), []);
        write(&s, 0, 4, 3);
        assert_eq!(losses(&mut s, 10 * SECOND), [], "a handler has interrupted it");
        assert_eq!(losses(&mut s, 11 * SECOND).iter().map(|loss| loss.0).sum::<u64>(), 1);
        write(&s, 0, 7, 1);
        assert_eq!(losses(&mut s, 12 * SECOND), []);
        assert_eq!(
            s.rings[0].as_ref().unwrap().reader.tail(),
            s.memory.ring(0).control.head.load(Relaxed)
        );
    }
}

#[test]
fn with_a_quarter_of_the_ring_behind_it_an_event_is_not_waited_for() {
    let mut s = source(Mode::Discard, Since::Start);
    claim(&s, 0);
    let quarter = u64::from(s.memory.geometry().ring_slots) / 4;
    leave(&s, 0, 1, true);
    write(&s, 0, 1, quarter - 2);
    assert_eq!(drain(&mut s), [""; 0]);
    write(&s, 0, quarter - 1, 2);
    let rest = ["thread true".to_owned(), format!("ring 0 1..={quarter}")];
    let loss = "loss ring slots never committed 1".to_owned();
    assert_eq!(drain(&mut s), [&rest[..], &[loss]].concat());
}

#[test]
fn at_the_end_of_a_recording_nothing_is_waited_for_that_something_is_behind() {
    let mut s = source(Mode::Discard, Since::Start);
    claim(&s, 0);
    leave(&s, 0, 2, true);
    write(&s, 0, 1, 2);
    // The last one is being written.
    leave(&s, 0, 1, true);
    let expected = ["thread true", "ring 0 1..=2", "loss ring slots never committed 1"];
    assert_eq!(finish(&mut s, false), expected);
}

/// A recording begins while a handler has interrupted a write, which may go on late.
#[test]
fn the_slot_of_a_write_that_an_agent_finds_unfinished_is_not_used_again_soon() {
    let old = source(Mode::Discard, Since::Start);
    claim(&old, 0);
    write(&old, 0, 1, 3);
    let left = old.memory.ring(0).control.head.load(Relaxed);
    leave(&old, 0, 1, true);
    let Source { identity, memory, .. } = old;
    let mut s = Source::new(0, identity, memory, Since::Now, Seen::default());
    let word = |s: &Source| {
        let ring = s.memory.ring(0);
        slot(ring.control, ring.len(), left).load(Relaxed)
    };
    let before = word(&s);
    for first in (0..3 * u64::from(MIN_RING_SLOTS)).step_by(1024) {
        write(&s, 0, first, 1024);
        let frames = drain(&mut s);
        assert!(!frames.iter().any(|frame| frame.starts_with("loss")), "{frames:?}");
        assert_eq!(word(&s), before, "{first}");
    }
}

/// A thread is killed within its first event, in a ring that another one had before.
#[test]
fn a_loss_is_that_of_the_owner_of_the_ring() {
    for mode in [Mode::Discard, Mode::Overwrite] {
        let mut s = source(mode, Since::Start);
        claim(&s, 0);
        write(&s, 0, 1, 3);
        s.memory.ring(0).control.state.store(ring_state::EXITED, Release);
        drain(&mut s);
        assert_eq!(s.memory.ring(0).control.state.load(Relaxed), ring_state::FREE);
        claim(&s, 0);
        // One that the kernel does not know.
        s.memory.ring(0).control.tid.store(1 << 23, Relaxed);
        leave(&s, 0, 1, true);
        let mut told = Vec::new();
        let mut sink = |frame: &Frame<'_>| {
            match frame {
                Frame::Thread(thread) => told.push(thread.tid),
                Frame::Loss(loss) => told.push(loss.tid),
                _ => {}
            }
            Ok(())
        };
        s.finish(0, true, &mut Work::last(), &mut sink).unwrap();
        let [thread, loss] = told[..] else { panic!("{told:?}") };
        assert!(thread == loss && thread != std::process::id() as i32, "{told:?}");
    }
}

/// Where a loss is told, it is from the last look before it to the first that has seen it.
#[test]
fn what_was_left_has_a_place() {
    let mut s = source(Mode::Discard, Since::Start);
    claim(&s, 0);
    write(&s, 0, 1, 3);
    let before = read_tsc() as i64;
    drain(&mut s);
    drain(&mut s);
    leave(&s, 0, 1, true);
    write(&s, 0, 4, 3);
    drain(&mut s);
    let seen = read_tsc() as i64;
    let mut places = Vec::new();
    let mut sink = |frame: &Frame<'_>| {
        if let Frame::Loss(loss) = frame {
            places.push((loss.from, loss.to));
        }
        Ok(())
    };
    s.drain(SECOND, &mut Work::last(), &mut sink).unwrap();
    let [(from, to)] = places[..] else { panic!("{places:?}") };
    assert!(before < from && from < to && to < seen, "{before} {from} {to} {seen}");
}

#[test]
fn of_the_shared_ring_each_event_behind_one_that_was_left_is_stored() {
    for ended in [true, false] {
        let mut s = source(Mode::Discard, Since::Start);
        let shared = |s: &Source, count: u64| {
            let (control, slots) = s.memory.shared();
            for n in 0..count {
                let event = Event { tid: std::process::id(), key: KEY, cpu: 0, words: &[n] };
                assert!(SharedRing::new(control, slots).write(event, read_tsc));
            }
        };
        // A thread has taken a slot, and leaves it.
        let (control, slots) = s.memory.shared();
        control.free.fetch_sub(1, Relaxed);
        let left = control.write.fetch_add(1, Relaxed) as usize;
        slots[left].marker.store(ft_user::layout::marker::BUSY, Relaxed);
        let mut stored = 0;
        for _ in 0..5 {
            shared(&s, 30);
            stored += 30;
            assert_eq!(drain(&mut s), ["shared 30"]);
        }
        assert!(stored > s.memory.shared().1.len(), "more than a lap");
        let loss = "loss shared-ring slots never committed 1";
        assert_eq!(finish(&mut s, ended), [loss]);
        assert_eq!(finish(&mut s, ended), [""; 0], "once");
    }
}

/// A thread was within a write when the recording began, and has finished it; another one never finishes its own.
#[test]
fn what_was_under_way_at_the_begin_of_a_recording_hides_no_loss() {
    use ft_user::layout::marker;
    let old = source(Mode::Discard, Since::Start);
    let take = |s: &Source| {
        let (control, slots) = s.memory.shared();
        control.free.fetch_sub(1, Relaxed);
        let taken = control.write.fetch_add(1, Relaxed) as usize;
        slots[taken].marker.store(marker::BUSY, Relaxed);
        taken
    };
    let slow = take(&old);
    let left = take(&old);
    let Source { identity, memory, .. } = old;
    let mut s = Source::new(0, identity, memory, Since::Now, Seen::default());
    s.memory.shared().1[slow].marker.store(marker::READY, Relaxed);
    assert_eq!(drain(&mut s), ["shared 1"]);
    take(&s);
    assert_eq!(drain(&mut s), [""; 0]);
    assert_eq!(finish(&mut s, true), ["loss shared-ring slots never committed 1"]);
    assert_eq!(s.memory.shared().1[left].marker.load(Relaxed), marker::BUSY, "was left before");
}

/// Events of the shared ring that there was no work left for come in a later round, and are no loss.
#[test]
fn what_is_read_in_a_later_round_is_not_lost() {
    let mut s = source(Mode::Discard, Since::Start);
    let (control, slots) = s.memory.shared();
    for n in 0..3 {
        let event = Event { tid: std::process::id(), key: KEY, cpu: 0, words: &[n] };
        assert!(SharedRing::new(control, slots).write(event, read_tsc));
    }
    let mut frames = Frames::default();
    let mut rounds = 0;
    loop {
        let mut work = Work::of(100);
        rounds += 1;
        if s.finish(0, true, &mut work, &mut frames.sink()).unwrap().1 {
            break;
        }
    }
    assert!(rounds > 1);
    assert!(frames.0.iter().all(|frame| frame.starts_with("shared ")), "{:?}", frames.0);
}

#[test]
fn a_slow_event_of_the_shared_ring_is_stored_late() {
    let mut s = source(Mode::Discard, Since::Start);
    let (control, slots) = s.memory.shared();
    let event = |n: &'static [u64]| Event { tid: std::process::id(), key: KEY, cpu: 0, words: n };
    SharedRing::new(control, slots).write(event(&[1]), read_tsc);
    SharedRing::new(control, slots).write(event(&[2]), read_tsc);
    slots[0].marker.store(ft_user::layout::marker::BUSY, Relaxed);
    assert_eq!(drain(&mut s), ["shared 1"]);
    assert_eq!(drain(&mut s), [""; 0]);
    s.memory.shared().1[0].marker.store(ft_user::layout::marker::READY, Relaxed);
    assert_eq!(drain(&mut s), ["shared 1"]);
    assert_eq!(finish(&mut s, true), [""; 0]);
}

/// The writer stores commit words alone, which is faster than any thread writes events.
#[test]
fn a_snapshot_of_a_thread_that_never_pauses_has_half_of_its_ring() {
    let mut s = source(Mode::Overwrite, Since::Start);
    claim(&s, 0);
    write(&s, 0, 1, 3);
    drain(&mut s);
    let slots = u64::from(s.memory.geometry().ring_slots);
    let control = ptr::from_ref(s.memory.ring(0).control) as usize;
    let (ends, laps) = (AtomicBool::new(false), std::sync::atomic::AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: the source, and so the ring, outlives the scope.
            let control = unsafe { &*(control as *const RingControl) };
            // SAFETY: as above; the slots follow the control page.
            assert!(unsafe { Ring::new(control, slots as u32) }.is_some());
            while !ends.load(Relaxed) {
                for _ in 0..slots {
                    let at = control.head.fetch_add(1, Relaxed);
                    let word = commit::tag(at) << commit::TAG_SHIFT | u64::from(KEY);
                    slot(control, slots, at).store(word | commit::COMMITTED, Release);
                }
                laps.fetch_add(1, Relaxed);
            }
        });
        let mut smallest = u64::MAX;
        for _ in 0..20 {
            let before = laps.load(Relaxed);
            while laps.load(Relaxed) < before + 2 {
                thread::yield_now();
            }
            let mut copied = 0;
            let mut sink = |frame: &Frame<'_>| {
                if let Frame::Slots(slots) = frame {
                    copied += slots.bytes.len() as u64 / 32;
                }
                Ok(())
            };
            s.snapshot(0, &mut Work::last(), &mut sink).unwrap();
            smallest = smallest.min(copied);
        }
        ends.store(true, Relaxed);
        assert!(smallest >= slots / 2, "{smallest} of {slots}");
    });
    assert_eq!(s.offences(), []);
}

/// A snapshot in overwrite mode: what came out.
fn snapshot(source: &mut Source) -> Vec<String> {
    let mut frames = Frames::default();
    source.snapshot(0, &mut Work::last(), &mut frames.sink()).unwrap();
    frames.0
}

/// The thread goes on with its write behind the snapshot, at whatever step it was.
#[test]
fn an_event_that_is_being_written_is_in_a_later_snapshot() {
    for (slots, marked) in [(1, true), (1, false), (3, true), (3, false)] {
        let mut s = source(Mode::Overwrite, Since::Start);
        claim(&s, 0);
        write(&s, 0, 1, 2);
        drain(&mut s);
        let at = s.memory.ring(0).control.head.load(Relaxed);
        leave(&s, 0, slots, marked);
        assert_eq!(snapshot(&mut s), ["thread true", "ring 0 1..=2"]);
        assert_eq!(snapshot(&mut s), [""; 0]);
        let (ring, tag) = (s.memory.ring(0), |at| commit::tag(at) << commit::TAG_SHIFT);
        for at in at + 1..at + slots {
            let word = tag(at) | commit::CONTINUATION | commit::COMMITTED;
            slot(ring.control, ring.len(), at).store(word, Relaxed);
        }
        let word = tag(at) | (slots - 1) << commit::CONT_SHIFT | u64::from(KEY);
        slot(ring.control, ring.len(), at).store(word | commit::COMMITTED, Relaxed);
        assert_eq!(snapshot(&mut s).len(), 1);
        write(&s, 0, 3, 2);
        assert_eq!(finish(&mut s, true), ["ring 0 3..=4"]);
    }
}

/// The slot of an event that was left is kept out of use for some laps; behind these it is the oldest of what is read.
#[test]
fn a_slot_that_is_kept_out_of_use_is_no_event_of_a_later_lap() {
    let mut s = source(Mode::Overwrite, Since::Start);
    claim(&s, 0);
    drain(&mut s);
    leave(&s, 0, 1, true);
    let len = u64::from(MIN_RING_SLOTS);
    let mut numbers = 1..;
    let mut write_on = |s: &Source| write(s, 0, numbers.next().expect("endless"), 1);
    while s.memory.ring(0).control.head.load(Relaxed) < 10 * len - 4 {
        write_on(&s);
    }
    for _ in 0..8 {
        write_on(&s);
        let told = snapshot(&mut s);
        s.rings[0].as_mut().unwrap().reader = Reader::at(0);
        assert!(!told.iter().any(|frame| frame.starts_with("loss")), "{told:?}");
    }
}

/// Its thread is within a handler that has written on, or has left it.
#[test]
fn an_event_that_is_not_finished_at_a_snapshot_and_has_others_behind_it_is_counted() {
    for (slots, marked) in [(1, true), (1, false), (3, true), (3, false)] {
        let mut s = source(Mode::Overwrite, Since::Start);
        claim(&s, 0);
        write(&s, 0, 1, 2);
        drain(&mut s);
        leave(&s, 0, slots, marked);
        write(&s, 0, 3, 2);
        let loss = "loss ring slots never committed 1";
        assert_eq!(snapshot(&mut s), ["thread true", "ring 0 1..=2", "ring 0 3..=4", loss]);
        assert_eq!(snapshot(&mut s), [""; 0]);
        write(&s, 0, 5, 1);
        // Its process is killed within the last one.
        leave(&s, 0, slots, marked);
        assert_eq!(finish(&mut s, true), ["ring 0 5..=5", loss]);
    }
}

#[test]
fn a_ring_of_a_living_thread_that_gives_nothing_is_told() {
    let mut s = source(Mode::Overwrite, Since::Start);
    claim(&s, 0);
    s.memory.populate_ring(0);
    write(&s, 0, 1, 3);
    drain(&mut s);
    // All of it is being overwritten.
    s.memory.ring(0).control.head.fetch_add(2 * s.memory.ring(0).len(), Relaxed);
    s.snapshot(0, &mut Work::last(), &mut |_: &Frame<'_>| Ok(())).unwrap();
    assert_eq!(s.offences(), [Offence::Overrun]);
}
