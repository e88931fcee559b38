//! What an application's own events do to the world: they show that it runs, polls, and takes locks.

use super::begun::Nest;
use super::blocked::BlockedOn;
use super::change::Over;
use super::context::Program;
use super::held::SEMAPHORE;
use super::interval::Interval;
use super::load_event::LoadEvent;
use super::threads::{Slot, Thread};
use super::{Change, World};
use crate::analysis::{Analysis, Audience};
use ft_trace::event::LeanUserEvent;
use ft_trace::tables::{DoubtCause, SiteKind};

impl World {
    pub(super) fn user<A: Analysis>(&mut self, e: &LeanUserEvent, to: &mut Audience<'_, A>) {
        if e.pid.0 <= 0 {
            return;
        }
        let slot = match self.threads.find(e.thread()) {
            Some(slot) => slot,
            None => {
                self.context.observe(e.pid);
                self.appear(e.thread())
            }
        };
        let program = self.context.site(e.site).map(|site| site.program);
        let slot = match program {
            Some(program) if Some(program) > self.threads[slot].program => {
                self.of_program(slot, program, to)
            }
            _ => slot,
        };
        self.threads[slot].advance(self.now, &mut self.log);
        if self.context.kernel {
            self.shown_by_itself(slot, to);
        }
        if self.log.on {
            // What ends with this event is reported before it.
            self.settle(to);
        }
        let Some(mut site) = self.context.site(e.site) else {
            self.threads[slot].spent.waits.own_event(None);
            self.tally.unknown_sites += 1;
            return;
        };
        if site.kind == SiteKind::RingWait {
            return self.ring_wait(slot, e);
        }
        if site.kind == SiteKind::Counters {
            return self.counters(slot, e);
        }
        let thread = &mut self.threads[slot];
        thread.spent.waits.own_event(None);
        thread.disturbed.own_event(self.now);
        if site.kind.is_of_task() {
            self.task_event(slot, e, (site.kind, site.source), to);
            site = self.context.site(e.site).expect("it was there");
        }
        let (what, kind, load) = (site.kind, &site.lock_kind, site.load);
        match what {
            SiteKind::ScopeBegin | SiteKind::ScopeEnd => {
                self.threads[slot].begun.event(Nest::Scopes, site.on_ns);
            }
            what if what.has_lock() && kind.as_ref() != SEMAPHORE => {
                self.threads[slot].begun.event(Nest::Locks, site.on_ns);
            }
            _ => {}
        }
        let begins = begins(what, kind);
        to.tell(self, Change::Own { thread: &self.threads[slot], event: e, site });
        match what {
            SiteKind::PollBegin => {
                self.begin_polling(slot);
                to.tell(self, Change::Polls { thread: &self.threads[slot], cpu: e.cpu });
            }
            SiteKind::PollGap => self.gap(slot, e, to),
            SiteKind::PollEnd => self.end_polling(slot, to),
            SiteKind::Event if load == Some(LoadEvent::Worker) && self.context.kernel => {
                self.threads[slot].keep_history(self.now);
            }
            SiteKind::Event
            | SiteKind::ScopeBegin
            | SiteKind::ScopeEnd
            | SiteKind::WaitBegin
            | SiteKind::WaitEnd
            | SiteKind::RingWait
            | SiteKind::Counters
            | SiteKind::FunctionEnter
            | SiteKind::FunctionExit
            | SiteKind::FunctionCalled
            | SiteKind::TaskNew
            | SiteKind::TaskPoll
            | SiteKind::TaskPolled
            | SiteKind::TaskWake
            | SiteKind::TaskDrop
            | SiteKind::TaskSwitch => {}
            what => {
                let kind = kind.clone();
                self.lock(slot, e, what, kind, to);
            }
        }
        if let Some(kind) = begins {
            let name = self.context.lock_name(e.pid, e.arg[0], e.site, e.arg[1]);
            self.threads[slot].spent.waits.own_event(Some((kind, name)));
        }
    }

    /// The thread runs this program, and no earlier one of its process's number: whatever those held and waited for is
    /// over, whether their end was recorded or not. Where the process is another one, so are its threads.
    fn of_program<A: Analysis>(
        &mut self,
        slot: Slot,
        program: Program,
        to: &mut Audience<'_, A>,
    ) -> Slot {
        let Thread { key, process, program: before, .. } = self.threads[slot];
        let is_first = self.locks.begins(process, program);
        if is_first {
            for other in self.threads.slots() {
                let thread = &self.threads[other];
                let is_earlier = thread.program.is_some_and(|then| then < program);
                if other != slot && thread.process == process && is_earlier {
                    self.remove(other, false, to);
                }
            }
        }
        match before {
            Some(before) if before.started != program.started => self.remove(slot, false, to),
            Some(_) if is_first => self.drop_locks(slot, Over::Exec, to),
            Some(_) | None => {}
        }
        if is_first {
            self.locks.forget(process);
        }
        let slot = self.threads.find(key).unwrap_or_else(|| self.appear(key));
        self.threads[slot].program = Some(program);
        slot
    }

    /// The thread begins to wait for room in its ring.
    fn ring_wait(&mut self, slot: Slot, e: &LeanUserEvent) {
        let [until, ..] = e.arg;
        let thread = &mut self.threads[slot];
        thread.disturbed.waits(self.now, until, &mut self.tally.ring_waits);
        thread.spent.waits.full_ring(until);
        let latest = self.disturbed.entry(e.pid).or_insert(until);
        *latest = until.max(*latest);
    }

    /// What the thread's counters show at its next event, or that it may not have them.
    fn counters(&mut self, slot: Slot, e: &LeanUserEvent) {
        let [stretch, ..] = e.arg;
        let counting = &mut self.tally.counting;
        if stretch >= 0 {
            counting.threads += u64::from(self.threads[slot].counted.reads(self.now, e.arg));
        } else {
            counting.refused += 1;
            counting.errno = i32::try_from(stretch.unsigned_abs()).unwrap_or(i32::MAX);
        }
    }

    /// An event of its own, a call, a fault shows that the thread runs.
    pub(super) fn shown_by_itself<A: Analysis>(&mut self, slot: Slot, to: &mut Audience<'_, A>) {
        let ts = self.now;
        let thread = &self.threads[slot];
        let off_cpu = thread.account.state().is_off_cpu();
        if off_cpu && ts.saturating_sub(thread.left) > self.context.clock_bound_ns {
            // The switch to it is missing.
            to.tell(self, Change::Unseen { thread });
            to.tell(
                self,
                Change::Missing(&self.doubt_of_thread(thread, DoubtCause::Ran, thread.left)),
            );
            let thread = &mut self.threads[slot];
            thread.account.forget();
            let shares = thread.leave_queue(&mut self.cpus, ts, &mut self.log);
            if let Some(history) = &mut thread.history {
                history.displaced(&shares);
            }
            thread.wakes.end(&mut self.tally.races);
            thread.unseen = ts;
            self.tally.ran_unseen += 1;
        }
        let thread = &mut self.threads[slot];
        thread.account.seen_running(ts);
        if let Some(cpu) = thread.runs_on {
            self.cpus.shown(cpu, ts, thread.key.tid);
        }
    }

    fn begin_polling(&mut self, slot: Slot) {
        let new = self.threads[slot].begin_polling(self.now, self.context.kernel);
        self.tally.pollers += u64::from(new);
    }

    /// The thread polls no more.
    pub(super) fn end_polling<A: Analysis>(&mut self, slot: Slot, to: &mut Audience<'_, A>) {
        if let Some(history) = self.threads[slot].history.take() {
            let (thread, missed) = (&self.threads[slot], &history.end());
            to.tell(self, Change::PollingOver { thread, missed });
        }
    }

    fn gap<A: Analysis>(&mut self, slot: Slot, e: &LeanUserEvent, to: &mut Audience<'_, A>) {
        let [before, after, _] = e.arg;
        let Some(interval) = Interval::told(before, after, self.now) else {
            self.tally.unaccounted.impossible += 1;
            return;
        };
        let thread = &mut self.threads[slot];
        let past = thread.past(interval);
        match &past {
            Some(past) => thread.spent.did_not_run(past.parts.running_ns, before),
            None => self.tally.unaccounted.before_history += u64::from(self.context.kernel),
        }
        self.begin_polling(slot);
        let (thread, past) = (&self.threads[slot], past.as_ref());
        to.tell(self, Change::Gap { thread, cpu: e.cpu, interval, past });
        if let Some(history) = &mut self.threads[slot].history {
            history.tell(interval);
        }
    }
}

/// What an event of this kind says that its thread begins to wait for.
fn begins(kind: SiteKind, lock_kind: &str) -> Option<BlockedOn> {
    match kind {
        SiteKind::LockWait if lock_kind == SEMAPHORE => Some(BlockedOn::Semaphore),
        SiteKind::LockWait => Some(BlockedOn::Lock),
        SiteKind::CondWait => Some(BlockedOn::Condition),
        SiteKind::WaitBegin => Some(match lock_kind {
            "barrier" => BlockedOn::Barrier,
            "receive" => BlockedOn::Value,
            "send" => BlockedOn::Room,
            _ => BlockedOn::Other,
        }),
        _ => None,
    }
}
