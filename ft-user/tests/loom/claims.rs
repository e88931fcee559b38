//! The hand-over of a ring: from a thread to the agent and to the next thread, also where a thread ends without a word.

use std::sync::Arc;

use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::atomic::{Access, AtomicU32, Role};
use crate::layout::{Memory, Mode, SLOTS, commit, ring_state};
use crate::reader::{Reader, Uncommitted};
use crate::ring::Ring;
use crate::{explore, fails, handover};

fn ring(memory: &Memory) -> Ring<'_> {
    // SAFETY: the slots follow the control page at the distance that the model's layout says.
    unsafe { Ring::new(&raw const memory.control, SLOTS as u32) }.expect("a valid number of slots")
}

/// Makes thread number `tid` the owner of the ring, which it has claimed, and writes one event, which says `tid`.
fn own_and_write(memory: &Memory, tid: u32) {
    ring(memory).prepare(Mode::Discard);
    handover::own(&memory.control, tid, [tid.into(); 2]);
    ring(memory).write(tid << 3, 0, &[], || tid.into());
}

/// What the agent has seen.
struct Agent {
    reader: Reader,
    events: Vec<u32>,
}

impl Agent {
    fn new() -> Agent {
        Agent { reader: Reader::at(SLOTS as u64), events: Vec::new() }
    }

    /// One round, in the order of `ft-agent`.
    fn look(&mut self, memory: &Memory) {
        let state = handover::state(&memory.control);
        if state == ring_state::FREE {
            return;
        }
        let (ring, mut bytes) = (ring(memory), Vec::new());
        let drained = self.reader.drain_below(&ring, u64::MAX, Uncommitted::Wait, 9, &mut bytes);
        if drained.slots > 0 {
            let (_, tid) = handover::owner(&memory.control);
            let name = memory.control.name.each_ref().map(|word| word.load(Relaxed));
            for slot in bytes.chunks(32) {
                let word = u64::from_ne_bytes(slot[..8].try_into().unwrap());
                let writer = commit::key(word) >> 3;
                assert_eq!((tid, name), (writer, [writer.into(); 2]), "another's event");
                self.events.push(writer);
            }
        }
        self.reader.consume(&ring);
        if state == ring_state::EXITED {
            handover::set_free(&memory.control);
        }
    }

    /// The last round: each thread that has claimed the ring has its event there, once.
    fn end(mut self, memory: &Memory, mut claimed: Vec<u32>) {
        self.look(memory);
        self.events.sort_unstable();
        claimed.sort_unstable();
        assert_eq!(self.events, claimed);
    }
}

/// Two threads that want the ring, and end; and the agent.
fn two_owners_and_agent() {
    explore(2, || {
        let memory = Arc::new(Memory::new());
        let threads = [1, 2].map(|tid| {
            let memory = memory.clone();
            loom::thread::spawn(move || {
                let claimed = handover::claim(&memory.control);
                if claimed {
                    own_and_write(&memory, tid);
                    handover::give_back(&memory.control);
                }
                claimed.then_some(tid)
            })
        });
        let mut agent = Agent::new();
        agent.look(&memory);
        let claimed = threads.map(|thread| thread.join().unwrap());
        agent.end(&memory, claimed.into_iter().flatten().collect());
    });
}

/// A thread that ends without a word, or `says_so` and is followed by another owner; one that looks whether it is gone; and the agent.
fn gone_owner(says_so: bool) {
    explore(2, move || {
        let memory = Arc::new(Memory::new());
        // What the kernel knows. It orders what a thread has done before what is done when the thread is seen to be gone.
        let gone = Arc::new(AtomicU32::new(Role::Kernel, 0));
        assert!(handover::claim(&memory.control));
        let first = loom::thread::spawn({
            let (memory, gone) = (memory.clone(), gone.clone());
            move || {
                own_and_write(&memory, 1);
                if says_so {
                    handover::give_back(&memory.control);
                }
                gone.store(1, Release);
            }
        });
        let looks = loom::thread::spawn({
            let (memory, gone) = (memory.clone(), gone.clone());
            // Thread 3 lives.
            let is_gone = move |tid| tid == 1 && gone.load(Acquire) == 1;
            move || handover::give_back_for(&memory.control, is_gone)
        });
        let mut agent = Agent::new();
        agent.look(&memory);
        let followed = says_so && handover::claim(&memory.control);
        if followed {
            own_and_write(&memory, 3);
        }
        first.join().unwrap();
        let taken = looks.join().unwrap();
        let is_live = memory.control.state.load(Relaxed) == ring_state::LIVE;
        assert!(is_live || !followed, "a living one's ring");
        assert!(!is_live || followed || !taken, "it was given back");
        agent.end(&memory, if followed { vec![1, 3] } else { vec![1] });
    });
}

#[test]
fn no_event_is_lost_or_taken_for_anothers() {
    two_owners_and_agent();
}

#[test]
fn the_ring_of_a_thread_that_ended_without_a_word_is_given_back() {
    gone_owner(false);
}

#[test]
fn the_ring_of_its_next_owner_is_not_taken() {
    gone_owner(true);
}

#[test]
fn each_ordering_is_needed() {
    for weakening in [
        (Role::State, Access::Store, Relaxed),
        (Role::State, Access::Load, Relaxed),
        (Role::State, Access::Modify, Relaxed),
    ] {
        assert!(fails(weakening, two_owners_and_agent), "{weakening:?} makes no difference");
    }
    for weakening in [(Role::State, Access::Store, Relaxed), (Role::State, Access::Load, Relaxed)] {
        assert!(fails(weakening, || gone_owner(true)), "{weakening:?} makes no difference");
    }
}

/// Whose an event is, its commit word orders already.
#[test]
fn spare_ordering_of_the_generation() {
    assert!(!fails((Role::Generation, Access::Modify, Relaxed), two_owners_and_agent));
}
