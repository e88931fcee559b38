//! Rings that no `ft-user` has written: what they cost, and what is believed of them.

use std::mem::offset_of;
use std::os::fd::AsFd;

use ft_user::layout::{Header, SEALS};

use super::*;
use crate::collect::attach::tests::memfd;
use crate::collect::geometry::tests::{good, good_of};
use crate::collect::work::Budgets;

const UID: u32 = 1;

fn source(ring_slots: u32, seen: Seen) -> Source {
    let (header, bytes) = good_of(ring_slots);
    let memory = Memory::attach(memfd(&header, bytes, SEALS).as_fd()).unwrap();
    let identity = Identity::of(std::process::id() as i32).unwrap();
    Source::new(5, identity, memory, Since::Start, seen)
}

/// A ring of a thread that has reserved slots up to `head`.
fn claim(source: &Source, index: u32, head: u64, state: u32) {
    let control = source.memory.ring(index).control;
    control.tid.store(std::process::id(), Relaxed);
    control.generation.fetch_add(1, Relaxed);
    control.head.store(head, Relaxed);
    control.state.store(state, Release);
    source.memory.header().rings_used.fetch_max(index + 1, Relaxed);
}

/// A source of a user with two rings full of slots that are committed for no index, of threads that have ended; with `ended`, the
/// process has.
pub(crate) fn flooding(ring_slots: u32, uid: u32, ended: bool) -> Source {
    let mut source = source(ring_slots, Seen::default());
    source.identity.uid = uid;
    if ended {
        source.identity.pidfd = None;
    }
    let state = if ended { ring_state::LIVE } else { ring_state::EXITED };
    for index in 0..2 {
        claim(&source, index, 2 * u64::from(ring_slots), state);
        source.memory.populate_ring(index);
    }
    source
}

/// A source of a user with so many events of three slots.
pub(crate) fn honest(events: u64, uid: u32) -> Source {
    let mut source = source(4096, Seen::default());
    source.identity.uid = uid;
    claim(&source, 0, 0, ring_state::LIVE);
    source.memory.ring(0).prepare(Mode::Discard);
    for n in 0..events {
        source.memory.ring(0).write(64, 0, &[n; 9], || n);
    }
    source
}

/// Slots of its rings that nobody has read.
pub(crate) fn unread(source: &Source) -> u64 {
    let unread = |index| {
        let control = source.memory.ring(index).control;
        control.head.load(Relaxed) - control.tail.load(Relaxed)
    };
    (0..source.rings_used()).map(unread).sum()
}

/// Losses of one round.
fn drain(source: &mut Source, work: &mut Work) -> Vec<(String, u64)> {
    let mut losses = Vec::new();
    let mut sink = |frame: &Frame<'_>| {
        if let Frame::Loss(loss) = frame {
            losses.push((loss.what.clone(), loss.count));
        }
        Ok(())
    };
    source.drain(0, work, &mut sink).unwrap();
    losses
}

#[test]
fn a_head_that_is_far_ahead_costs_no_more_than_a_full_ring() {
    const SLOTS: u32 = 1 << 20;
    for state in [ring_state::LIVE, ring_state::EXITED] {
        let mut source = source(SLOTS, Seen::default());
        claim(&source, 0, u64::from(SLOTS), ring_state::LIVE);
        drain(&mut source, &mut Work::last());
        claim(&source, 0, u64::MAX - 1, state);
        let before = source.memory.resident_bytes();
        let mut budgets = Budgets::default();
        let losses = drain(&mut source, budgets.of(UID));
        assert!(!budgets.of(UID).is_done(), "{:?}", budgets.of(UID));
        assert_eq!(source.memory.resident_bytes(), before, "nothing was read where nothing is");
        assert_eq!(source.offences()[0], Offence::Ring);
        // As far as there was time for it.
        assert!(losses[0].1 < 1 << 60, "{losses:?}");
    }
}

/// Slots that are there, committed for no index: each is looked at, one by one.
#[test]
fn slots_without_events_are_work_like_others() {
    const SLOTS: u32 = 1 << 21;
    let mut source = source(SLOTS, Seen::default());
    claim(&source, 0, 2 * u64::from(SLOTS), ring_state::EXITED);
    source.memory.populate_ring(0);
    let mut budgets = Budgets::default();
    let mut rounds = 0;
    while source.memory.ring(0).control.state.load(Relaxed) == ring_state::EXITED {
        budgets.renew();
        assert!(!budgets.of(UID + 1).is_done());
        drain(&mut source, budgets.of(UID));
        rounds += 1;
        assert!(rounds < 10, "it comes to an end");
    }
    assert!(rounds > 1, "it is no work for one round");
}

/// Rings full of slots, and another process fills them on.
#[test]
fn the_last_look_is_work_like_others_and_has_an_end() {
    const SLOTS: u32 = 1 << 20;
    for (fills, rounds) in [(false, 3..6), (true, 3..100)] {
        let mut source = flooding(SLOTS, UID, true);
        let (mut budgets, mut lost, mut needed) = (Budgets::default(), Vec::new(), 0);
        let mut sink = |frame: &Frame<'_>| {
            if let Frame::Loss(loss) = frame {
                lost.push((loss.what.clone(), loss.count));
            }
            Ok(())
        };
        loop {
            budgets.renew();
            let before = budgets.of(UID).left();
            let done = source.finish(0, true, budgets.of(UID), &mut sink).unwrap().1;
            // What is done too much is one step, and paid for in the next round.
            assert!(before <= 1 << 20 && !budgets.of(UID + 1).is_done());
            needed += 1;
            if done {
                break;
            }
            assert!(budgets.of(UID).is_done(), "it goes on while there is work left");
            if fills {
                for index in 0..2 {
                    source.memory.ring(index).control.head.fetch_add(u64::from(SLOTS), Relaxed);
                }
            }
        }
        assert!(rounds.contains(&needed), "{needed} rounds");
        assert_eq!(source.offences().contains(&Offence::Endless), fills, "{lost:?}");
        assert_eq!(lost.iter().any(|(what, _)| what == LossReason::NotRead.word()), fills);
    }
}

#[test]
fn rings_that_nobody_has_claimed_are_not_touched() {
    let mut source = source(4096, Seen::default());
    source.memory.header().rings_used.store(u32::MAX, Relaxed);
    let before = source.memory.resident_bytes();
    drain(&mut source, &mut Work::last());
    source.finish(0, true, &mut Work::last(), &mut |_: &Frame<'_>| Ok(())).unwrap();
    assert_eq!(source.memory.resident_bytes(), before);
}

#[test]
fn what_is_behind_a_thread_that_never_commits_is_found() {
    let mut source = source(4096, Seen::default());
    claim(&source, 0, 0, ring_state::LIVE);
    source.memory.ring(0).prepare(Mode::Discard);
    // Reserved, not written, and in a page that does not exist: 300 slots.
    source.memory.ring(0).control.head.fetch_add(300, Relaxed);
    assert_eq!(drain(&mut source, &mut Work::last()), []);
    source.memory.ring(0).write(64, 0, &[1; 9], || 1);
    assert_eq!(drain(&mut source, &mut Work::last()), []);
    source.memory.ring(0).control.state.store(ring_state::EXITED, Relaxed);
    let losses = drain(&mut source, &mut Work::last());
    // At least so many events: one is no longer than 13 slots.
    assert_eq!(losses, [("slots never committed".to_owned(), 24)]);
}

#[test]
fn losses_are_bounded_by_the_time_that_there_was() {
    let mut source = source(4096, Seen::default());
    claim(&source, 0, 4097, ring_state::EXITED);
    source.memory.ring(0).control.lost_pending.store(u64::MAX, Relaxed);
    source.memory.ring(0).control.lost.store(u64::MAX, Relaxed);
    source.memory.shared().0.lost.store(u64::MAX, Relaxed);
    let told: u64 = drain(&mut source, &mut Work::last()).iter().map(|loss| loss.1).sum();
    let most = source.losses.possible(u64::MAX);
    assert!(0 < told && told <= most && most < 1 << 60, "{told} of {most}");
    assert!(source.lost() <= most);
    assert!(source.offences().contains(&Offence::Losses));
}

/// A thread that lives and is none of this process's, or was last seen in another.
#[test]
fn threads_of_others_are_not_taken_for_ones_own() {
    let seen = Seen::default();
    let mut other = std::process::Command::new("sleep").arg("100").spawn().unwrap();
    let pid = other.id() as i32;
    let find = |owner: i32, said: u32, now_ns: i64| {
        let memory = Memory::attach(memfd(&good().0, good().1, SEALS).as_fd()).unwrap();
        let identity = Identity::of(owner).unwrap();
        let mut source = Source::new(0, identity, memory, Since::Start, seen.clone());
        source.owners.find(&source.identity, said, now_ns, &mut Work::last())
    };
    let own = std::process::id() as i32;
    assert_eq!(find(own, own as u32, 0), own);
    assert_eq!(find(own, pid as u32, 0), -pid);
    assert_eq!(find(pid, pid as u32, 0), pid);
    let init = 1;
    assert_eq!(find(own, init, 0), -1);
    other.kill().unwrap();
    other.wait().unwrap();
    // It has ended, and belongs to nobody; it was seen, and not here.
    assert_eq!(find(own, pid as u32, 0), -pid);
    assert_eq!(find(own, 1 << 23, 0), 1 << 23, "one that nobody has seen");
}

/// Who connects and ends leaves a number, which may be a victim's meanwhile, and was one's that has been seen.
#[test]
fn a_number_that_was_used_again_is_not_that_of_the_thread_that_was_seen() {
    let seen = Seen::default();
    let mut victim = std::process::Command::new("sleep").arg("100").spawn().unwrap();
    let pid = victim.id() as i32;
    let find = |identity: Identity| {
        let (mut header, bytes) = good();
        let at = offset_of!(Header, pid);
        header[at..at + 4].copy_from_slice(&pid.to_ne_bytes());
        let memory = Memory::attach(memfd(&header, bytes, SEALS).as_fd()).unwrap();
        let mut source = Source::new(0, identity, memory, Since::Start, seen.clone());
        source.owners.find(&source.identity, pid as u32, 0, &mut Work::last())
    };
    assert_eq!(find(Identity::of(pid).unwrap()), pid);
    assert_eq!(find(Identity::ended(pid)), -pid, "the victim has it");
    victim.kill().and_then(|()| victim.wait()).unwrap();
    assert_eq!(find(Identity::ended(pid)), -pid, "the victim had it");
}

#[test]
fn a_thread_is_looked_up_once_a_second() {
    let mut source = source(4096, Seen::default());
    let mut budgets = Budgets::default();
    let work = budgets.of(UID);
    let own = std::process::id();
    let mut cost = |now_ns| {
        let before = work.left();
        source.owners.find(&source.identity, own, now_ns, work);
        before - work.left()
    };
    assert_eq!([0, 0, 999_999_999].map(&mut cost), [work::LOOK_UP, 0, 0]);
    assert_eq!([1_000_000_000, 1_000_000_001].map(&mut cost), [work::LOOK_UP, 0]);
}
