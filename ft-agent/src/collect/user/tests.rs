//! Rings written and drained in one process: what goes in comes out as frames.

use std::mem::offset_of;
use std::os::fd::AsFd;

use ft_user::layout::{
    DirEntry, Header, MIN_RING_SLOTS, SEALS, SharedSlot, Slot, commit, dir_kind,
};
use ft_user::shared_ring::{Event, SharedRing};

use super::*;
use crate::collect::attach::tests::memfd;
use crate::collect::geometry::tests::good;

const KEY: u32 = 64;

/// A source of this process with two rings, of which none is claimed.
pub(super) fn source(mode: Mode, since: Since) -> Source {
    let (mut header, bytes) = good();
    let at = offset_of!(Header, mode);
    header[at..at + 4].copy_from_slice(&(mode as u32).to_ne_bytes());
    let fd = memfd(&header, bytes, SEALS);
    let memory = Memory::attach(fd.as_fd()).unwrap();
    memory.shared().0.free.store(memory.shared().1.len() as i32, Relaxed);
    let identity = Identity::of(std::process::id() as i32).unwrap();
    Source::new(5, identity, memory, since, Seen::default())
}

pub(super) fn claim(source: &Source, index: u32) {
    let ring = source.memory.ring(index);
    ring.prepare(source.memory.geometry().mode);
    ring.control.tid.store(rustix::thread::gettid().as_raw_nonzero().get() as u32, Relaxed);
    ring.control.generation.fetch_add(1, Relaxed);
    ring.control.state.store(ring_state::LIVE, Release);
    source.memory.header().rings_used.fetch_max(index + 1, Relaxed);
}

/// Writes events whose first argument counts up from `first`.
pub(super) fn write(source: &Source, index: u32, first: u64, count: u64) {
    for n in first..first + count {
        source.memory.ring(index).write(KEY, 0, &[n, 0], || n);
    }
}

/// What came out, as text; consecutive numbers of events as a range.
#[derive(Default)]
pub(super) struct Frames(pub(super) Vec<String>);

impl Frames {
    pub(super) fn sink(&mut self) -> impl Sink + '_ {
        |frame: &Frame<'_>| {
            self.0.push(match frame {
                Frame::Slots(s) => {
                    let numbers: Vec<u64> = s
                        .bytes
                        .chunks_exact(size_of::<Slot>())
                        .map(|slot| u64::from_ne_bytes(slot[16..24].try_into().unwrap()))
                        .collect();
                    assert!(numbers.is_sorted());
                    format!("ring {} {}..={}", s.ring, numbers[0], numbers[numbers.len() - 1])
                }
                Frame::Shared(s) => format!("shared {}", s.bytes.len() / size_of::<SharedSlot>()),
                Frame::Thread(t) => format!("thread {}", t.tid == gettid()),
                Frame::Loss(l) => format!("loss {} {} {}", l.origin, l.what, l.count),
                Frame::Directory(d) => format!("directory {}", d.bytes.len()),
                other => format!("{other:?}"),
            });
            Ok(())
        }
    }
}

fn gettid() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

pub(super) fn drain(source: &mut Source) -> Vec<String> {
    let mut frames = Frames::default();
    source.drain(0, &mut Work::last(), &mut frames.sink()).unwrap();
    frames.0
}

pub(super) fn finish(source: &mut Source, ended: bool) -> Vec<String> {
    let mut frames = Frames::default();
    let (_, done) = source.finish(0, ended, &mut Work::last(), &mut frames.sink()).unwrap();
    assert!(done);
    frames.0
}

#[test]
fn two_rings_are_drained_in_rounds() {
    let mut s = source(Mode::Discard, Since::Start);
    assert_eq!(drain(&mut s), [""; 0]);
    claim(&s, 0);
    claim(&s, 1);
    write(&s, 0, 1, 3);
    write(&s, 1, 10, 2);
    let first = ["thread true", "ring 0 1..=3", "thread true", "ring 1 10..=11"];
    assert_eq!(drain(&mut s), first);
    assert_eq!(drain(&mut s), [""; 0]);
    // Several laps: the rings have room again after each round.
    for lap in 0..5 {
        let from = 100 + lap * 3000;
        write(&s, 1, from, 3000);
        assert_eq!(drain(&mut s), [format!("ring 1 {from}..={}", from + 2999)]);
    }
    assert_eq!(s.threads(), 2);
}

#[test]
fn the_fullest_ring_is_told() {
    let mut s = source(Mode::Discard, Since::Start);
    claim(&s, 0);
    claim(&s, 1);
    let slots = u64::from(MIN_RING_SLOTS);
    write(&s, 0, 0, slots / 4);
    write(&s, 1, 0, slots / 2);
    let mut drain = || s.drain(0, &mut Work::last(), &mut |_: &Frame<'_>| Ok(())).unwrap();
    assert_eq!(drain(), Round { slots: slots / 4 * 3, fill: FULL / 2 });
    assert_eq!(drain(), Round { slots: 0, fill: 0 });
    let event = Event { tid: gettid() as u32, key: KEY, cpu: 0, words: &[] };
    let (control, slots) = s.memory.shared();
    (0..16).for_each(|n| _ = SharedRing::new(control, slots).write(event, || n));
    let round = s.drain(0, &mut Work::last(), &mut |_: &Frame<'_>| Ok(())).unwrap();
    assert_eq!(round, Round { slots: 16, fill: FULL / 4 });
}

#[test]
fn an_exited_ring_is_freed_and_its_next_owner_announced() {
    let mut s = source(Mode::Discard, Since::Start);
    claim(&s, 0);
    write(&s, 0, 1, 2);
    s.memory.ring(0).control.state.store(ring_state::EXITED, Release);
    assert_eq!(drain(&mut s), ["thread true", "ring 0 1..=2"]);
    assert_eq!(s.memory.ring(0).control.state.load(Relaxed), ring_state::FREE);
    assert_eq!(drain(&mut s), [""; 0]);
    claim(&s, 0);
    write(&s, 0, 7, 1);
    assert_eq!(drain(&mut s), ["thread true", "ring 0 7..=7"]);
}

#[test]
fn an_uncommitted_slot_is_waited_for_and_skipped_after_the_end() {
    let mut s = source(Mode::Discard, Since::Start);
    claim(&s, 0);
    write(&s, 0, 1, 1);
    s.memory.ring(0).control.head.fetch_add(1, Relaxed);
    write(&s, 0, 3, 1);
    assert_eq!(drain(&mut s), ["thread true", "ring 0 1..=1"]);
    let at_the_end = ["ring 0 3..=3", "loss ring slots never committed 1"];
    assert_eq!(finish(&mut s, false), at_the_end);
    assert_eq!(finish(&mut s, true), [""; 0]);
}

#[test]
fn a_slot_that_was_never_committed_is_placed_between_two_looks() {
    let mut s = source(Mode::Discard, Since::Start);
    claim(&s, 0);
    write(&s, 0, 1, 1);
    drain(&mut s);
    let before = read_tsc();
    drain(&mut s);
    let reserved = read_tsc();
    s.memory.ring(0).control.head.fetch_add(1, Relaxed);
    drain(&mut s);
    drain(&mut s);
    let mut losses = Vec::new();
    let mut sink = |frame: &Frame<'_>| {
        if let Frame::Loss(l) = frame {
            losses.push((l.from as u64, l.to as u64, l.count));
        }
        Ok(())
    };
    s.finish(0, true, &mut Work::last(), &mut sink).unwrap();
    let [(from, to, 1)] = losses[..] else { panic!("{losses:?}") };
    assert!(before <= from && from <= reserved && reserved < to, "{before} {from} {reserved} {to}");
}

#[test]
fn a_loss_that_no_event_tells_is_told_at_the_end() {
    let mut s = source(Mode::Discard, Since::Start);
    claim(&s, 0);
    write(&s, 0, 0, u64::from(MIN_RING_SLOTS));
    let frames = finish(&mut s, true);
    let lost = s.memory.ring(0).control.lost.load(Relaxed);
    assert!(lost > 0);
    assert_eq!(frames.last().unwrap(), &format!("loss ring ring full {lost}"));
}

/// Of a thread that lives, or whose end nobody has seen, also where it has left the event that was to tell.
#[test]
fn a_loss_is_told_by_one_recording() {
    for is_left in [false, true] {
        let mut s = source(Mode::Discard, Since::Start);
        claim(&s, 0);
        write(&s, 0, 0, u64::from(MIN_RING_SLOTS));
        if is_left {
            s.memory.ring(0).control.lost_pending.store(0, Relaxed);
        }
        let is_loss = |frame: &String| frame.starts_with("loss");
        assert!(finish(&mut s, false).iter().any(is_loss), "{is_left}");
        let Source { identity, memory, .. } = s;
        let mut next = Source::new(0, identity, memory, Since::Now, Seen::default());
        drain(&mut next);
        assert!(!finish(&mut next, false).iter().any(is_loss), "{is_left}");
        // What is lost from now on is told of the third alone.
        let Source { identity, memory, .. } = next;
        let mut third = Source::new(0, identity, memory, Since::Now, Seen::default());
        let before = third.memory.ring(0).control.lost.load(Relaxed);
        write(&third, 0, 0, u64::from(MIN_RING_SLOTS));
        let lost = third.memory.ring(0).control.lost.load(Relaxed) - before;
        let frames = finish(&mut third, false);
        let told = frames.iter().find(|frame| is_loss(frame)).expect("a loss");
        assert!(lost > 0 && told.ends_with(&format!(" {lost}")), "{is_left}: {told} of {lost}");
    }
}

#[test]
fn overwritten_rings_give_their_newest_at_the_end() {
    let mut s = source(Mode::Overwrite, Since::Start);
    claim(&s, 0);
    let slots = u64::from(MIN_RING_SLOTS);
    write(&s, 0, 0, 3 * slots);
    assert_eq!(drain(&mut s), [""; 0]);
    let newest = format!("ring 0 {}..={}", 2 * slots, 3 * slots - 1);
    assert_eq!(finish(&mut s, true), ["thread true".to_owned(), newest]);
}

#[test]
fn the_shared_ring_gives_events_and_losses() {
    let mut s = source(Mode::Discard, Since::Start);
    let event = Event { tid: gettid() as u32, key: KEY, cpu: 0, words: &[1] };
    for n in 0..70 {
        let (control, slots) = s.memory.shared();
        SharedRing::new(control, slots).write(event, || n);
    }
    assert_eq!(drain(&mut s), ["shared 64", "loss shared-ring shared ring full 6"]);
    assert_eq!(drain(&mut s), [""; 0]);
}

#[test]
fn an_unfinished_shared_slot_hides_nothing_after_the_end() {
    let mut s = source(Mode::Discard, Since::Start);
    let event = Event { tid: gettid() as u32, key: KEY, cpu: 0, words: &[1] };
    let (control, slots) = s.memory.shared();
    (0..3).for_each(|n| _ = SharedRing::new(control, slots).write(event, || n));
    slots[0].marker.store(ft_user::layout::marker::BUSY, Relaxed);
    assert_eq!(drain(&mut s), ["shared 2"]);
    assert_eq!(finish(&mut s, true), ["loss shared-ring slots never committed 1"]);
}

/// The last recording has read one of two events, and a writer stands between its two steps.
#[test]
fn the_next_recording_begins_where_the_last_one_ended() {
    let event = Event { tid: gettid() as u32, key: KEY, cpu: 0, words: &[1] };
    let write = |s: &Source| {
        let (control, slots) = s.memory.shared();
        SharedRing::new(control, slots).write(event, || 1)
    };
    let mut last = source(Mode::Discard, Since::Start);
    assert!(write(&last));
    assert_eq!(drain(&mut last), ["shared 1"]);
    assert!(write(&last));
    let free = &last.memory.shared().0.free;
    free.fetch_sub(1, Relaxed);
    let Source { identity, memory, .. } = last;
    let mut next = Source::new(0, identity, memory, Since::Start, Seen::default());
    assert_eq!(drain(&mut next), ["shared 1"]);
    next.memory.shared().0.free.fetch_add(1, Relaxed);
    assert!(write(&next));
    assert_eq!(drain(&mut next), ["shared 1"]);
}

#[test]
fn what_is_old_is_left_out_on_request() {
    let old = source(Mode::Discard, Since::Start);
    claim(&old, 0);
    write(&old, 0, 1, 5);
    let (control, slots) = old.memory.shared();
    let event = Event { tid: 1, key: KEY, cpu: 0, words: &[1] };
    SharedRing::new(control, slots).write(event, || 0);
    let Source { identity, memory, .. } = old;
    let mut s = Source::new(0, identity, memory, Since::Now, Seen::default());
    write(&s, 0, 6, 1);
    assert_eq!(drain(&mut s), ["thread true", "ring 0 6..=6"]);
}

#[test]
fn a_full_ring_is_waited_for_only_while_somebody_reads_it() {
    let mut s = source(Mode::Discard, Since::Start);
    let word = |s: &Source| s.memory.header().full_wait_us.load(Relaxed);
    s.wait_when_full(Some(Duration::from_millis(10)));
    assert_eq!(word(&s), 10_000);
    s.finish(0, false, &mut Work::last(), &mut Frames::default().sink()).unwrap();
    assert_eq!(word(&s), 0);
}

#[test]
fn who_cannot_be_asked_any_more_is_not_taken_for_another() {
    let pid = 1 << 22; // Beyond the highest number (proc_sys_kernel(5), pid_max).
    let owners = |own_pid: u32, tids: [u32; 2]| {
        let (mut header, bytes) = good();
        let at = offset_of!(Header, pid);
        header[at..at + 4].copy_from_slice(&own_pid.to_ne_bytes());
        let memory = Memory::attach(memfd(&header, bytes, SEALS).as_fd()).unwrap();
        let mut s = Source::new(0, Identity::ended(pid), memory, Since::Start, Seen::default());
        tids.map(|tid| s.owners.find(&s.identity, tid, 0, &mut Work::last()))
    };
    assert_eq!(owners(pid as u32, [pid as u32, 1 << 23]), [pid, 1 << 23]);
    // Of another PID namespace: the first thread is the process, others have no number of ours.
    assert_eq!(owners(7, [7, 8]), [pid, -8]);
}

#[test]
fn whole_directory_entries_are_copied() {
    let mut s = source(Mode::Discard, Since::Start);
    let header = s.memory.header();
    let words = s.memory.directory();
    // A name entry `id 1, "ab"`: 8 + 4 + 2 + 2 bytes.
    let entry = [dir_kind::NAME, 16, 1, u32::from_ne_bytes([2, 0, b'a', b'b'])];
    assert_eq!(size_of::<DirEntry>(), 8);
    for (word, value) in words.iter().zip(entry) {
        word.store(value, Relaxed);
    }
    // The next is reserved and not complete.
    header.dir_head.store(32, Release);
    assert_eq!(drain(&mut s), ["directory 16"]);
    assert_eq!(drain(&mut s), [""; 0]);
    // It is complete, and claims more than was reserved.
    s.memory.directory()[5].store(1024, Relaxed);
    s.memory.directory()[4].store(dir_kind::NAME, Release);
    drain(&mut s);
    assert!(s.directory_broken);
}

#[test]
fn any_content_is_survived() {
    let mut s = source(Mode::Discard, Since::Start);
    // A small generator (xorshift) is enough for rubbish.
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for _ in 0..200 {
        let header = s.memory.header();
        header.rings_used.store(random() as u32, Relaxed);
        header.dir_head.store(random(), Relaxed);
        header.dir_dropped.store(random() as u32, Relaxed);
        for word in &s.memory.directory()[..64] {
            word.store(random() as u32, Relaxed);
        }
        for index in 0..2 {
            let control = s.memory.ring(index).control;
            for word in [&control.head, &control.tail, &control.lost_pending, &control.name[0]] {
                word.store(random(), Relaxed);
            }
            control.state.store(random() as u32 % 4, Relaxed);
            control.tid.store(random() as u32, Relaxed);
            control.generation.store(random() as u32, Relaxed);
        }
        let (control, slots) = s.memory.shared();
        control.free.store(random() as i32, Relaxed);
        for slot in slots {
            slot.marker.store(random() as u32 % 3, Relaxed);
            slot.commit.store(random() | commit::COMMITTED, Relaxed);
        }
        drain(&mut s);
    }
    finish(&mut s, true);
}
