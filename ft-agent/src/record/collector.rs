//! The collection thread: every source, the kernel and the clock, into the spool.
//!
//! One thread does all of it, in rounds: commands, sources, kernel, a clock sample when one is due,
//! flush, rotation. It never waits for anything but the disk and its own pauses ([`Pauses`]). It ends when it is
//! told to ([`Instruction::Stop`]) or when the spool cannot be written.

mod end;
mod kernel;
mod locate;
mod looks;
mod processes;
mod recorded;
mod scope;
mod told;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use ft_user::layout::Counting;
use tokio::sync::oneshot;

use super::ended::Ended;
use super::notice::Notice;
use super::notices::Notices;
use super::progress::Counters;
use super::reader::Pauses;
use super::{Closed, Segments, Wish, host, pace};
use crate::clock::{self, monotonic_ns};
use crate::collect::arrivals::Intake;
use crate::collect::attach::Memory;
use crate::collect::discover::{Identity, comm, start_time_of};
use crate::collect::kernel::Kernel;
use crate::collect::shares::Places;
use crate::collect::user::{FULL, Offence, Seen, Source};
use crate::collect::work::{Budgets, Work};
use crate::control::socket::Answer;
use crate::threads::{self, Pause};
use ft_trace::spool::frame::{ClockSample, Frame, Refused};
use ft_trace::spool::{WriteError, Writer};
use recorded::Recorded;
pub(super) use scope::{Scope, Strangers};

/// From clock sample to clock sample. The first distance; each is twice the one before up to the last,
/// so that a recording of a tenth of a second has enough samples for a narrow bound.
const CLOCK: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(100));

/// From question to question how well the kernel knows the time of day, which it changes its mind about once a second.
const HOST_CLOCK: Duration = Duration::from_secs(1);

/// How long one round may be busy with arrivals: nothing else is collected meanwhile.
const ARRIVALS: Duration = Duration::from_millis(2);

/// For the memory of processes that register: half of what a process can map (128 TiB, Linux's
/// `Documentation/arch/x86/x86_64/mm.rst`). A memfd can be half a tebibyte large without taking any memory.
const ADDRESSES_GIB: usize = 64 << 10;

/// An instruction to the collection thread. Ring its bell then.
pub(super) enum Instruction {
    /// Close the open segment, for a snapshot.
    Snapshot {
        /// Why.
        reason: String,
        /// Who has asked for it, and waits.
        answer: Option<oneshot::Sender<Answer>>,
    },
    /// Enable these sites, too: in all that are recorded, and in those that come.
    Enable { globs: Vec<String>, answer: oneshot::Sender<Answer> },
    /// No more: drain everything a last time and close the spool. The text is
    /// [`End::reason`](ft_trace::spool::frame::End::reason).
    Stop {
        /// Why it ends.
        reason: String,
        /// Exit code of the recorded command.
        exit_code: Option<i32>,
    },
}

/// How the collection ended.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// Bytes of the spool.
    pub(super) bytes: u64,
    /// Sites that the recorded processes declared.
    pub(super) sites: BTreeSet<String>,
    /// Processes that were recorded through a memfd.
    pub(super) sources: u32,
    /// Programs that went on before they were answered.
    pub(super) unanswered: u64,
    /// Those that have registered, and that nobody had named.
    pub(super) strangers: Strangers,
}

/// A running process that is to be recorded from the start.
pub(super) struct Attached {
    pub(super) identity: Identity,
    /// Its rings, if it embeds `ft-user`.
    pub(super) memory: Option<Memory>,
}

/// What is recorded of those that come.
pub(super) struct Wanted {
    /// Sites that are enabled.
    pub(super) globs: Vec<String>,
    /// Of which processes that register.
    pub(super) scope: Scope,
    /// How long their threads wait for room in a full ring.
    pub(super) full_wait: Option<Duration>,
    /// What these read with each event.
    pub(super) counting: Counting,
}

/// State of the collection thread.
pub(super) struct Collector {
    writer: Writer,
    kernel: Option<Kernel>,
    globs: Vec<String>,
    /// Which of those that register are recorded.
    scope: Scope,
    full_wait: Option<Duration>,
    counting: Counting,
    counters: Arc<Counters>,
    notices: Notices,
    segments: Segments,
    /// To be taken now.
    snapshot: Option<Wish>,
    sources: Vec<Recorded>,
    intake: Arc<Intake>,
    /// What was enabled from outside is being disabled.
    is_ending: bool,
    /// When it was last said that sites stay on, CLOCK_MONOTONIC ns.
    leases_ns: i64,
    budgets: Budgets,
    /// Addresses for the memory of those that register, GiB.
    addresses: Places,
    /// Threads that were seen.
    seen: Seen,
    /// Processes that are recorded by the kernel's stream alone.
    plain: Vec<i32>,
    /// Processes of which addresses were recorded.
    located: locate::Located,
    /// What the registry has of what processes have mapped.
    told: told::Told,
    next_source: u32,
    finished: Collected,
    ended: Ended,
    next_clock: Instant,
    clock_distance: Duration,
    next_host_clock: Instant,
    kernel_buffer: Vec<u8>,
    /// CPU time of the agent before it.
    cpu_before_ns: i64,
}

impl Collector {
    pub(super) fn new(
        writer: Writer,
        kernel: Option<Kernel>,
        Wanted { globs, scope, full_wait, counting }: Wanted,
        counters: Arc<Counters>,
        notices: Notices,
        segments: Segments,
        intake: Arc<Intake>,
    ) -> Collector {
        Collector {
            writer,
            kernel,
            globs,
            scope,
            full_wait,
            counting,
            counters,
            notices,
            segments,
            snapshot: None,
            sources: Vec::new(),
            intake,
            is_ending: false,
            leases_ns: monotonic_ns(),
            budgets: Budgets::default(),
            addresses: Places::new(ADDRESSES_GIB),
            seen: Seen::default(),
            plain: Vec::new(),
            located: locate::Located::default(),
            told: told::Told::default(),
            next_source: 0,
            finished: Collected::default(),
            ended: Ended::default(),
            next_clock: Instant::now() + CLOCK.0,
            clock_distance: CLOCK.0,
            next_host_clock: Instant::now() + HOST_CLOCK,
            kernel_buffer: Vec::new(),
            cpu_before_ns: host::cpu_ns(),
        }
    }

    /// Collects until it is stopped.
    ///
    /// # Errors
    ///
    /// When the spool cannot be written; what was written is whole.
    pub(super) fn run(
        mut self,
        commands: &Receiver<Instruction>,
        mut pauses: Pauses,
        mut pause: Pause,
    ) -> Result<Collected, WriteError> {
        let _raised = threads::raise();
        loop {
            if let Some((reason, exit_code)) = self.obey(commands) {
                return self.finish(reason, exit_code, &mut pause);
            }
            let began = Instant::now();
            let fill = self.round()?;
            let due = self.next_clock.saturating_duration_since(Instant::now());
            pauses.wait(&mut pause, began, fill, self.longest().min(due));
        }
    }

    /// Takes all commands that wait; returns how to stop when that is one of them.
    fn obey(&mut self, commands: &Receiver<Instruction>) -> Option<(String, Option<i32>)> {
        loop {
            match commands.try_recv() {
                Ok(Instruction::Snapshot { reason, answer }) => self.wish(reason, answer),
                Ok(Instruction::Enable { globs, answer }) => {
                    // Fails when nobody waits any more.
                    let _ = answer.send(self.enable(globs));
                }
                Ok(Instruction::Stop { reason, exit_code }) => return Some((reason, exit_code)),
                Err(TryRecvError::Empty) => return None,
                // The session is gone without a word: a panic there.
                Err(TryRecvError::Disconnected) => {
                    return Some(("interrupted".into(), None));
                }
            }
        }
    }

    /// How long a pause may be: what has a ring may fill it. Of the kernel's buffers each ends it.
    fn longest(&self) -> Duration {
        if self.sources.is_empty() { pace::LONGEST_OF_KERNEL } else { pace::LONGEST }
    }

    /// One round; how full the fullest ring was, of [`FULL`].
    fn round(&mut self) -> Result<u32, WriteError> {
        let mut fill = 0;
        if self.welcome(Instant::now() + ARRIVALS)? {
            fill = FULL;
        }
        self.extend_leases();
        self.budgets.renew();
        let mut waiting = Vec::new();
        for mut recorded in std::mem::take(&mut self.sources) {
            if self.budgets.of(recorded.source.identity().uid).is_done() {
                waiting.push(recorded);
                continue;
            }
            // First asked, then drained: nothing is written after the end.
            let ended = recorded.has_ended();
            fill = fill.max(self.drain_source(&mut recorded.source)?);
            if ended || recorded.source.is_dead() {
                waiting.extend(self.close_source(recorded, ended)?);
            } else {
                recorded.enable_declared();
                self.sources.push(recorded);
            }
        }
        if !waiting.is_empty() {
            // They are the first in the next round, which comes at once.
            fill = FULL;
            waiting.append(&mut self.sources);
            self.sources = waiting;
        }
        fill = fill.max(self.drain_kernel()?.unwrap_or(FULL));
        self.locate();
        self.look_around();
        if Instant::now() >= self.next_clock {
            self.clock_distance = CLOCK.1.min(self.clock_distance * 2);
            self.next_clock = Instant::now() + self.clock_distance;
            let sample = self.sample();
            self.writer.push(&Frame::Clock(sample))?;
            self.tell_kernel_losses(false)?;
            self.kernel.iter_mut().for_each(Kernel::follow_cpus);
            self.find_ended();
            for refused in self.intake.refusals.take_new() {
                self.notice(Notice::Unregistered(refused.clone()));
                self.writer.push(&Frame::Refused(refused))?;
            }
        }
        self.writer.flush()?;
        if self.snapshot.is_some() || self.writer.is_due() {
            self.close_segment()?;
        }
        self.show();
        Ok(fill)
    }

    /// A snapshot is to be taken in this round; one answers all that are asked for meanwhile.
    fn wish(&mut self, reason: String, answer: Option<oneshot::Sender<Answer>>) {
        let new = || Wish { reason, is_awaited: false, answers: Vec::new() };
        let wish = self.snapshot.get_or_insert_with(new);
        wish.is_awaited |= answer.is_some();
        wish.answers.extend(answer);
    }

    /// A clock sample, with the time of day when that is due.
    fn sample(&mut self) -> ClockSample {
        if Instant::now() < self.next_host_clock {
            return clock::sample();
        }
        self.next_host_clock = Instant::now() + HOST_CLOCK;
        clock::sample_with_host()
    }

    fn close_segment(&mut self) -> Result<(), WriteError> {
        let snapshot = self.snapshot.take();
        if snapshot.is_some() {
            let writer = &mut self.writer;
            for Recorded { source, .. } in &mut self.sources {
                let sink = &mut |frame: &Frame<'_>| writer.push(frame);
                source.snapshot(monotonic_ns(), &mut Work::last(), sink)?;
            }
        }
        // Each segment can be the only one of a snapshot.
        let segment = self.writer.rotate(clock::sample_with_host())?;
        self.ended.deleted_below(self.segments.oldest.load(Relaxed));
        if self.ended.any_unneeded() && self.writer.is_registry_large() {
            let sources = self.sources.iter().map(|recorded| recorded.source.identity().pid);
            let alive = sources.chain(self.plain.iter().copied()).chain(self.told.alive());
            let unneeded = self.ended.take_unneeded(alive);
            self.writer.compact(|frame| unneeded.keeps(frame))?;
            self.told.forget(&unneeded.pids);
        }
        self.segments.add_to_backlog(segment.bytes);
        // Without a conversion behind the recording nobody listens.
        let _ = self.segments.closed.send(Closed { segment, snapshot, last: false });
        Ok(())
    }

    /// Finds processes that have ended, of those of which the registry has mappings. Only where old segments are deleted does that
    /// change anything.
    fn find_ended(&mut self) {
        if self.segments.oldest.load(Relaxed) > 0 {
            let is_there = |pid| comm(pid, pid).is_some();
            for pid in self.told.ended(|pid| is_there(pid).then(|| start_time_of(pid))) {
                self.ended.push(self.writer.number(), None, pid);
            }
        }
    }

    fn drain_source(&mut self, source: &mut Source) -> Result<u32, WriteError> {
        let (writer, work) = (&mut self.writer, self.budgets.of(source.identity().uid));
        let round =
            source.drain(monotonic_ns(), work, &mut |frame: &Frame<'_>| writer.push(frame))?;
        self.counters.slots.fetch_add(round.slots, Relaxed);
        self.tell_offences(source);
        Ok(round.fill)
    }

    fn tell_offences(&self, source: &mut Source) {
        for offence in source.offences() {
            let has_lost = offence == Offence::Breakpoint;
            let recorded = Refused { is_recorded: true, has_lost, ..Refused::default() };
            self.refuse_as(source.identity(), offence.kind(), &offence.to_string(), recorded);
        }
    }

    fn show(&self) {
        // What a process says it lost is any number.
        let sum = |each: fn(&Source) -> u64| {
            self.sources.iter().map(|r| each(&r.source)).fold(0, u64::saturating_add)
        };
        let c = &self.counters;
        c.threads.store(sum(|s| s.threads() as u64), Relaxed);
        c.processes.store(self.sources.len() as u64, Relaxed);
        c.lost_alive.store(sum(Source::lost), Relaxed);
        c.bytes.store(self.writer.bytes(), Relaxed);
        c.unconverted.store(self.segments.backlog(), Relaxed);
    }

    fn notice(&self, notice: Notice) {
        self.notices.tell(notice);
    }
}

#[cfg(test)]
mod tests;
