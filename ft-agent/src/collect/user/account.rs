//! Property: in discard mode, *written = stored + lost*, whatever threads do with the rings and whenever these are
//! read. In overwrite mode nothing is reported as lost; what comes out are whole events, each once, and the newest.

use std::mem::offset_of;
use std::os::fd::AsFd;

use ft_user::layout::{Header, LOSS_KEY, MAX_RING_SLOTS, MIN_RING_SLOTS, SEALS, Slot, commit};
use ft_user::ring::Written;
use ft_user::shared_ring::{Event, SharedRing};
use proptest::prelude::*;

use super::*;
use crate::collect::attach::tests::memfd;
use crate::collect::geometry::tests::good_of;

const KEY: u32 = 64;

/// What happens to the rings.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A thread claims a ring, if it is free.
    Claim(u32),
    /// The owner of a ring writes so many events of so many words.
    Write(u32, u64, usize),
    /// The owner of a ring ends.
    Exit(u32),
    /// The owner of a ring leaves the event that tells its losses in the middle.
    Leave(u32),
    /// A thread without a ring writes so many events.
    Shared(u64),
    Drain,
    Snapshot,
}

fn step() -> impl Strategy<Value = Step> {
    let ring = 0..2u32;
    prop_oneof![
        2 => ring.clone().prop_map(Step::Claim),
        4 => (ring.clone(), 1..6_000u64, 0..9usize).prop_map(|(r, n, w)| Step::Write(r, n, w)),
        2 => ring.clone().prop_map(Step::Exit),
        1 => ring.prop_map(Step::Leave),
        1 => (1..100u64).prop_map(Step::Shared),
        3 => Just(Step::Drain),
        1 => Just(Step::Snapshot),
    ]
}

/// A process with two rings, as the library moves their states (`ft-user`, `claim.rs`).
struct Owner {
    source: Source,
    alive: [bool; 2],
    /// Events that were written, by all threads.
    written: u64,
    stored: Vec<u64>,
    /// Counts of losses: those that events tell, and those that frames do.
    lost: u64,
}

impl Owner {
    fn new(mode: Mode, ring_slots: u32) -> Owner {
        let (mut header, bytes) = good_of(ring_slots);
        let at = offset_of!(Header, mode);
        header[at..at + 4].copy_from_slice(&(mode as u32).to_ne_bytes());
        let memory = Memory::attach(memfd(&header, bytes, SEALS).as_fd()).unwrap();
        memory.shared().0.free.store(memory.shared().1.len() as i32, Relaxed);
        let identity = Identity::of(std::process::id() as i32).unwrap();
        let source = Source::new(0, identity, memory, Since::Start, Seen::default());
        Owner { source, alive: [false; 2], written: 0, stored: Vec::new(), lost: 0 }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Claim(index) => {
                let memory = &self.source.memory;
                let control = memory.ring(index).control;
                if !self.alive[index as usize] && control.state.load(Relaxed) == ring_state::FREE {
                    memory.ring(index).prepare(memory.geometry().mode);
                    control.tid.store(std::process::id(), Relaxed);
                    control.generation.fetch_add(1, Relaxed);
                    control.state.store(ring_state::LIVE, Release);
                    memory.header().rings_used.fetch_max(index + 1, Relaxed);
                    self.alive[index as usize] = true;
                }
            }
            Step::Write(index, count, words) if self.alive[index as usize] => {
                let ring = self.source.memory.ring(index);
                for _ in 0..count {
                    self.written += 1;
                    let mut content = [0; 9];
                    content[0] = self.written;
                    let words = &content[..words.max(1)];
                    let written = ring.write(KEY, 0, words, read_tsc);
                    assert!(matches!(written, Written::Whole | Written::Lost));
                }
            }
            Step::Exit(index) if std::mem::take(&mut self.alive[index as usize]) => {
                let control = self.source.memory.ring(index).control;
                let all_read = control.tail.load(Relaxed) == control.head.load(Relaxed)
                    && control.told.load(Relaxed) == control.lost.load(Relaxed);
                let state = if all_read { ring_state::FREE } else { ring_state::EXITED };
                control.state.store(state, Release);
            }
            // A handler has left its loss event in the middle, which is told by nobody now.
            Step::Leave(index) if self.alive[index as usize] => {
                let control = self.source.memory.ring(index).control;
                control.loss_begin_tsc.store(u64::MAX, Relaxed);
                control.lost_pending.store(0, Relaxed);
            }
            Step::Write(..) | Step::Leave(_) | Step::Exit(_) => {}
            Step::Shared(count) => {
                let (control, slots) = self.source.memory.shared();
                for _ in 0..count {
                    self.written += 1;
                    let words = &[self.written];
                    let event = Event { tid: std::process::id(), key: KEY, cpu: 0, words };
                    SharedRing::new(control, slots).write(event, read_tsc);
                }
            }
            Step::Drain => {
                self.read(|source, work, mut sink| source.drain(0, work, &mut sink).map(drop))
            }
            Step::Snapshot => {
                self.read(|source, work, mut sink| source.snapshot(0, work, &mut sink))
            }
        }
    }

    fn read(
        &mut self,
        how: impl FnOnce(
            &mut Source,
            &mut Work,
            &mut dyn FnMut(&Frame<'_>) -> Result<(), WriteError>,
        ) -> Result<(), WriteError>,
    ) {
        let (stored, lost) = (&mut self.stored, &mut self.lost);
        let mut sink = |frame: &Frame<'_>| {
            match frame {
                Frame::Slots(slots) => {
                    for slot in slots.bytes.chunks_exact(size_of::<Slot>()) {
                        let word = |n: usize| {
                            u64::from_ne_bytes(slot[8 * n..8 * n + 8].try_into().unwrap())
                        };
                        match word(0) {
                            first if first & commit::CONTINUATION != 0 => {}
                            first if commit::key(first) == LOSS_KEY => *lost += word(3),
                            _ => stored.push(word(2)),
                        }
                    }
                }
                Frame::Shared(shared) => {
                    for slot in shared.bytes.chunks_exact(128) {
                        stored.push(u64::from_ne_bytes(slot[24..32].try_into().unwrap()));
                    }
                }
                Frame::Loss(loss) => *lost += loss.count,
                _ => {}
            }
            Ok(())
        };
        how(&mut self.source, &mut Work::last(), &mut sink).unwrap();
    }

    fn finish(&mut self, ended: bool) {
        self.read(|source, _, mut sink| {
            source.finish(0, ended, &mut Work::last(), &mut sink).map(drop)
        });
        self.stored.sort_unstable();
        assert!(self.stored.is_sorted_by(|a, b| a < b), "an event is stored twice");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_written_is_stored_or_lost(
        steps in prop::collection::vec(step(), 1..40),
        // Of the largest rings no step fills one: see the test below.
        ring_slots in prop_oneof![
            4 => Just(MIN_RING_SLOTS),
            4 => (MIN_RING_SLOTS.ilog2()..18).prop_map(|log| 1 << log),
            1 => (18..=MAX_RING_SLOTS.ilog2()).prop_map(|log| 1 << log),
        ],
        ended: bool,
    ) {
        let mut subject = Owner::new(Mode::Discard, ring_slots);
        steps.into_iter().for_each(|step| subject.take(step));
        subject.finish(ended);
        prop_assert_eq!(subject.stored.len() as u64 + subject.lost, subject.written);
    }

    #[test]
    fn overwriting_tells_of_no_loss_and_gives_the_newest(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let mut subject = Owner::new(Mode::Overwrite, 4096);
        for step in steps {
            if !matches!(step, Step::Shared(_)) {
                subject.take(step);
            }
        }
        let last = subject.alive.contains(&true).then_some(subject.written);
        subject.finish(true);
        prop_assert_eq!(subject.lost, 0);
        // The newest event of a thread that lives at the end has been overwritten by nobody.
        if let Some(last) = last && subject.source.rings.iter().flatten().count() == 1 {
            prop_assert!(last == 0 || subject.stored.contains(&last));
        }
    }
}

/// Rings of all sizes are full at once, by two threads that end, and by those that use the rings next.
#[test]
fn a_full_ring_of_any_size_loses_what_does_not_fit() {
    for ring_slots in [MIN_RING_SLOTS, 1 << 16, MAX_RING_SLOTS] {
        let mut subject = Owner::new(Mode::Discard, ring_slots);
        // Four slots an event.
        let more_than_fit = u64::from(ring_slots) / 4 + 1000;
        for ring in [0, 1, 0] {
            subject.take(Step::Claim(ring));
            subject.take(Step::Write(ring, more_than_fit, 9));
            subject.take(Step::Exit(ring));
            if ring == 1 {
                subject.take(Step::Drain);
            }
        }
        subject.finish(true);
        assert!(subject.lost >= 3000, "{ring_slots} slots: {} lost", subject.lost);
        assert_eq!(subject.stored.len() as u64 + subject.lost, subject.written, "{ring_slots}");
    }
}
