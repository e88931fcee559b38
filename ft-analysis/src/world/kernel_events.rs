//! What the kernel's records do to the world: who runs, waits, is interrupted; and what was lost.

use super::account::{State, interrupt_part};
use super::begun::{Begun, Nest};
use super::cpus::Unseen;
use super::held::Held;
use super::losses::Hides;
use super::threads::Slot;
use super::wakes::Wake;
use super::{Change, Over, World};
use crate::analysis::{Analysis, Audience};
use ft_trace::event::{LeanChain, LeanFault, LeanProbe, LeanSample, LeanSyscall};
use ft_trace::ids::{Cpu, Pid, ThreadKey, Tid};
use ft_trace::tables::{
    ChainKind, DoubtCause, Irq, LossRow, SchedMigrate, SchedSwitch, SchedWaking, Sleep, TaskEvent,
    TaskKind, TaskState, Throttle,
};

impl World {
    pub(super) fn switch<A: Analysis>(&mut self, e: &SchedSwitch, to: &mut Audience<'_, A>) {
        let ts = self.now;
        let prev = self.context.observes(e.prev_pid).then(|| self.thread_now(e.prev()));
        if let Some(unseen) = self.cpus.unseen(e.cpu, ts, e.prev()) {
            if let Some(prev) = prev {
                // Not `ts`: what it does from now on is not in doubt.
                self.threads[prev].unseen = ts - 1;
            }
            self.unseen_switch(e.cpu, unseen, to);
        } else if let Some(prev) = prev
            && self.threads[prev].comes_unseen(e.cpu)
        {
            // Who had the CPU is not known, so nobody else's time is in doubt.
            self.threads[prev].unseen = ts - 1;
            let thread = &self.threads[prev];
            let doubt = self.doubt_of_thread(thread, DoubtCause::Ran, thread.left);
            to.tell(self, Change::Missing(&doubt));
        }
        let waits = prev.is_some_and(|prev| self.switched_out(prev, e, to));
        self.cpus.switch(e.cpu, ts, e.next(), &e.next_comm, e.next_prio);
        to.tell(self, Change::Switched { cpu: e.cpu, prev: prev.map(|prev| &self.threads[prev]) });
        if let Some(prev) = prev {
            match e.prev_state {
                state if state.is_dead() => self.remove(prev, true, to),
                _ if waits => self.threads[prev].join_queue(e.cpu, &mut self.cpus, ts),
                _ => {}
            }
        }
        if self.context.observes(e.next_pid) {
            self.switched_in(e, to);
        }
    }

    /// Switches on `cpu` were not recorded: what the account of the last that was given it says of the time since
    /// cannot be trusted, nor what was said to those that waited for it.
    fn unseen_switch<A: Analysis>(&mut self, cpu: Cpu, unseen: Unseen, to: &mut Audience<'_, A>) {
        let ts = self.now;
        self.tally.unseen_switches += 1;
        to.tell(self, Change::Missing(&self.doubt_of_switch(cpu, &unseen)));
        for (key, left) in unseen.doubtful {
            self.tally.doubtful_shares += 1;
            if let Some(thread) = self.threads.get_mut(key) {
                // Not `ts`: what it has waited for since it left that queue is not in doubt.
                thread.unsure = thread.unsure.max(left);
            }
        }
        let Some(last) = self.threads.find(unseen.last) else { return };
        if self.threads[last].runs_on != Some(cpu) {
            return;
        }
        self.threads[last].advance(ts, &mut self.log);
        to.tell(self, Change::Unseen { thread: &self.threads[last] });
        let thread = &mut self.threads[last];
        thread.account.forget();
        thread.runs_on = None;
        thread.unseen = ts;
    }

    /// A thread is about to leave its CPU to wait.
    pub(super) fn sleep(&mut self, e: &Sleep) {
        if self.context.observes(e.pid) {
            let slot = self.thread_now(e.thread());
            let thread = &mut self.threads[slot];
            thread.spent.waits.sleeps(e.call.as_ref());
            thread.asleep = Some(e.clone());
        }
    }

    /// A thread is kept from its CPU by the quota of its group from now on.
    pub(super) fn throttle<A: Analysis>(&mut self, e: &Throttle, to: &mut Audience<'_, A>) {
        if let Some(thread) = self.thread(e.pid, e.tid) {
            to.tell(self, Change::Throttled { thread, throttle: e });
        }
    }

    /// Returns whether the thread that leaves waits for a CPU from now on.
    fn switched_out<A: Analysis>(
        &mut self,
        slot: Slot,
        e: &SchedSwitch,
        to: &mut Audience<'_, A>,
    ) -> bool {
        let ts = self.now;
        if self.threads[slot].account.state().is_runnable() {
            // Still waiting, although it had a CPU: the switch to it is missing.
            to.tell(self, Change::Unseen { thread: &self.threads[slot] });
        }
        let thread = &mut self.threads[slot];
        thread.leave_queue(&mut self.cpus, ts, &mut self.log);
        let preempted = e.prev_state.is_runnable();
        let being_woken = e.prev_woken && !preempted;
        let woken = thread.wakes.left(ts, being_woken, &mut self.tally.races);
        thread.runs_on = None;
        thread.counted.leaves(e.cpu, preempted);
        thread.left = ts;
        thread.runnable = (ts, woken);
        thread.prio = Some(e.prev_prio);
        // The tracepoint says that it preempts for `preempt_schedule` alone, which the kernel's own code calls; who was on
        // the way to user space, and calls `schedule`, is runnable (`__schedule`, kernel/sched/core.c).
        thread.cut_off = e.prev_state == TaskState::Preempted;
        thread.account.enter(
            match (preempted, woken) {
                (true, _) => State::Preempted,
                (false, true) => State::Woken,
                (false, false) => State::Blocked,
            },
            ts,
        );
        if thread.asleep.take_if(|sleep| sleep.ts.0 != ts).is_some() {
            thread.spent.waits.untold();
        }
        thread.spent.waits.leaves(e.prev_state);
        preempted || woken
    }

    fn switched_in<A: Analysis>(&mut self, e: &SchedSwitch, to: &mut Audience<'_, A>) {
        let ts = self.now;
        let slot = self.thread_now(e.next());
        let before = self.threads[slot].runs_on.filter(|cpu| *cpu != e.cpu);
        if let Some(cpu) = before
            && let Some(unseen) = self.cpus.elsewhere(cpu, ts, e.next())
        {
            self.unseen_switch(cpu, unseen, to);
        }
        let thread = &mut self.threads[slot];
        if thread.comm != e.next_comm {
            thread.comm = e.next_comm.clone();
        }
        let after = thread.account.state();
        // Nobody comes without having been woken: that is missing, and so is since when it could run.
        let unwoken = after == State::Blocked;
        if unwoken {
            thread.unseen = ts;
        }
        // It was moved, and since when it waited for this CPU is not recorded.
        let moved = thread.waits_on.is_some_and(|cpu| cpu != e.cpu);
        if moved {
            thread.unsure = ts - 1;
        }
        if unwoken || moved {
            let thread = &self.threads[slot];
            let doubt = self.doubt_of_thread(thread, DoubtCause::Wakeup, thread.left);
            to.tell(self, Change::Missing(&doubt));
        }
        let thread = &mut self.threads[slot];
        let shares = thread.leave_queue(&mut self.cpus, ts, &mut self.log);
        if !self.cpus.is_agents(e.next()) {
            self.cpus.share(e.cpu);
            if after.is_runnable() {
                self.overhead.waited(after, &shares, &self.cpus);
            }
        }
        thread.account.enter(State::Running, ts);
        thread.spent.waits.returns();
        thread.runs_on = Some(e.cpu);
        thread.counted.comes(e.cpu);
        if let Some(history) = &mut thread.history {
            history.displaced(&shares);
        }
        let wake = thread.wakes.dispatched(after, e.cpu, &mut self.tally.races);
        let (thread, wake) = (&self.threads[slot], wake.as_ref());
        let change = Change::Dispatched { thread, after, shares: &shares, wake, cpu: e.cpu };
        to.tell(self, change);
        let thread = &mut self.threads[slot];
        (thread.left_at, thread.asleep) = (None, None);
        thread.prio = Some(e.next_prio);
    }

    /// Who wakes: the one that has the waker's CPU; where that is not known, the newest thread with its number.
    fn waker(&mut self, e: &SchedWaking) -> Option<ThreadKey> {
        match self.cpus.occupant(e.cpu) {
            Some(o) if o.thread.tid == e.waker_tid => Some(o.thread),
            _ => self.context.newest(e.waker_tid),
        }
    }

    pub(super) fn waking<A: Analysis>(&mut self, e: &SchedWaking, to: &mut Audience<'_, A>) {
        let ts = self.now;
        self.cpus.shown(e.cpu, ts, e.waker_tid);
        let waker = self.waker(e);
        if let Some(waker) = waker.and_then(|key| self.threads.get_mut(key)) {
            waker.advance(ts, &mut self.log);
            waker.account.seen_running(ts);
        }
        if !self.context.observes(e.pid) {
            return;
        }
        let waker_comm = match (self.cpus.occupant(e.cpu), waker) {
            (Some(o), Some(waker)) if o.thread == waker => o.comm.clone(),
            // So the kernel names it (init_idle, kernel/sched/core.c), also where no switch to it was recorded.
            (_, Some(waker)) if waker.tid.0 == 0 => format!("swapper/{}", e.cpu.0).into(),
            (_, Some(waker)) => self.context.comm(waker),
            (_, None) => "".into(),
        };
        let woken = e.thread();
        let wake = Wake {
            ts,
            waker_tid: e.waker_tid,
            waker_comm,
            prio: e.prio,
            cpu: e.target_cpu,
            migrated: false,
            stack: None,
        };
        let born = e.is_new && self.threads.find(woken).is_none();
        let forked = (woken.tid.0 == woken.pid.0).then(|| self.forked_by(waker));
        let slot = self.thread_now(woken);
        let change = Change::Waking {
            thread: &self.threads[slot],
            wake: &wake,
            waker,
            cpu: e.cpu,
            birth: born,
        };
        to.tell(self, change);
        let thread = &mut self.threads[slot];
        thread.prio = Some(wake.prio);
        thread.born |= born;
        if born && !self.losses.of_events(woken, ts) {
            // Whatever was lost before was not its own.
            thread.locks = Held::default();
            match forked {
                Some(begun) => thread.begun = begun,
                None => thread.begun.anew(ts),
            }
        }
        let state = thread.account.state();
        if thread.wakes.woken(state, wake, &mut self.tally.races) {
            if state == State::Woken {
                // Up to here it slept, and had been taken for one that can run.
                thread.unseen = ts - 1;
                let thread = &self.threads[slot];
                let doubt = self.doubt_of_thread(thread, DoubtCause::Wakeup, thread.runnable.0);
                to.tell(self, Change::Missing(&doubt));
            }
            let thread = &mut self.threads[slot];
            thread.account.enter(State::Woken, ts);
            thread.runnable = (ts, true);
            thread.leave_queue(&mut self.cpus, ts, &mut self.log);
            thread.join_queue(e.target_cpu, &mut self.cpus, ts);
        }
    }

    /// What is known of the first thread of a process that this thread has forked.
    fn forked_by(&self, parent: Option<ThreadKey>) -> Begun {
        let parent = parent.and_then(|parent| self.threads.find(parent));
        let parent = parent.map(|slot| &self.threads[slot]);
        Begun::forked(parent.map(|parent| &parent.begun), |nest| match nest {
            Nest::Locks => parent.is_some_and(|parent| parent.locks.locks().next().is_none()),
            // Which scopes go on, their analysis knows.
            Nest::Scopes => false,
        })
    }

    pub(super) fn migrate(&mut self, e: &SchedMigrate) {
        let moved = ThreadKey { pid: e.pid, tid: e.tid };
        let Some(thread) = self.threads.get_mut(moved) else { return };
        if thread.waits_on.is_some() {
            thread.change_queue(e.to_cpu, &mut self.cpus, self.now);
            thread.wakes.migrated();
        }
    }

    pub(super) fn irq<A: Analysis>(&mut self, e: &Irq, to: &mut Audience<'_, A>) {
        self.interrupts.began(e);
        self.cpus.shown(e.cpu, self.now, e.tid);
        to.tell(self, Change::Interrupted(e));
        if !self.context.observes(e.pid) {
            return;
        }
        let part = interrupt_part(e.kind);
        let entry = self.now;
        let exit = entry.saturating_add(e.dur.max(0));
        let slot = self.thread_now(ThreadKey { pid: e.pid, tid: e.tid });
        let account = &mut self.threads[slot].account;
        let possible = account.interrupted(entry, exit, part, e.name.clone());
        self.tally.interrupts_off_cpu += u64::from(!possible);
    }

    /// The thread, if it is observed; what it does now shows that it runs.
    pub(super) fn runs<A: Analysis>(
        &mut self,
        key: ThreadKey,
        to: &mut Audience<'_, A>,
    ) -> Option<Slot> {
        if !self.context.observes(key.pid) {
            return None;
        }
        let slot = self.thread_now(key);
        self.shown_by_itself(slot, to);
        Some(slot)
    }

    pub(super) fn syscall<A: Analysis>(&mut self, e: &LeanSyscall, to: &mut Audience<'_, A>) {
        self.calls = true;
        if let Some(slot) = self.runs(ThreadKey { pid: e.pid, tid: e.tid }, to) {
            let thread = &mut self.threads[slot];
            thread.places(self.now).calls(e);
            thread.spent.waits.calls(e.ts.0.saturating_add(e.dur), &e.name);
        }
    }

    pub(super) fn fault<A: Analysis>(&mut self, e: &LeanFault, to: &mut Audience<'_, A>) {
        self.faults = true;
        if let Some(slot) = self.runs(ThreadKey { pid: e.pid, tid: e.tid }, to) {
            let thread = &mut self.threads[slot];
            thread.counted.faults(e.kind);
            thread.places(self.now).faults(e);
            if !e.in_kernel {
                thread.spent.waits.faults(e.dur.map(|dur| e.ts.0.saturating_add(dur.max(0))));
            }
        }
    }

    pub(super) fn task<A: Analysis>(&mut self, e: &TaskEvent, to: &mut Audience<'_, A>) {
        let key = ThreadKey { pid: e.pid, tid: e.tid };
        if e.kind == TaskKind::Exec {
            self.takes_number(key, e, to);
        }
        let Some(slot) = self.threads.find(key) else { return };
        self.threads[slot].advance(self.now, &mut self.log);
        match e.kind {
            // The last switch away from it, in state X or Z, removes it.
            TaskKind::Exit => self.drop_locks(slot, Over::Thread, to),
            TaskKind::Exec => {
                self.threads[slot].comm = e.comm.clone();
                // The memory that held its locks is gone.
                self.drop_locks(slot, Over::Exec, to);
                self.locks.executes(self.threads[slot].process);
            }
            TaskKind::Rename => self.threads[slot].comm = e.comm.clone(),
            TaskKind::Fork => {}
        }
    }

    /// A thread that has executed a program, and was not the first of its process, has the number of that one from now on, which
    /// has ended. It ends, and the one of the other number begins where it runs: no switch is between them.
    fn takes_number<A: Analysis>(
        &mut self,
        key: ThreadKey,
        e: &TaskEvent,
        to: &mut Audience<'_, A>,
    ) {
        let Some(occupant) = self.cpus.occupant(e.cpu) else { return };
        let (before, prio) = (occupant.thread, occupant.prio);
        if before.pid != key.pid || before.tid == key.tid {
            return;
        }
        let Some(slot) = self.threads.find(before) else { return };
        self.threads[slot].advance(self.now, &mut self.log);
        self.remove(slot, true, to);
        self.cpus.switch(e.cpu, self.now, key, &e.comm, prio);
        let slot = self.thread_now(key);
        let thread = &mut self.threads[slot];
        thread.account.enter(State::Running, self.now);
        thread.runs_on = Some(e.cpu);
        thread.prio = Some(prio);
        thread.counted.comes(e.cpu);
    }

    /// Of a thread that no other record names, nothing is known that could be reported.
    pub(super) fn chain<A: Analysis>(&mut self, e: &LeanChain, to: &mut Audience<'_, A>) {
        let woken = e.woken_pid.zip(e.woken_tid).filter(|_| e.kind == ChainKind::Wake);
        let woken = woken.map(|(pid, tid)| ThreadKey { pid: Pid(pid), tid: Tid(tid) });
        match (e.kind, woken) {
            (ChainKind::Wake, Some(woken)) => {
                if let Some(woken) = self.threads.get_mut(woken) {
                    woken.wakes.add_chain(e.tid, e.stack);
                }
            }
            (ChainKind::Wake, None) => {}
            (kind, _) => {
                let key = ThreadKey { pid: e.pid, tid: e.tid };
                if let (Some(thread), Some(stack)) = (self.threads.get_mut(key), e.stack) {
                    thread.left_at = Some(stack);
                    if kind == ChainKind::Wait {
                        thread.locks.slept(e.dur, stack);
                    }
                }
            }
        }
        if let Some(thread) = self.thread(e.pid, e.tid) {
            let woken = woken.and_then(|woken| self.thread(woken.pid, woken.tid));
            to.tell(self, Change::Chain { thread, chain: e, woken });
        }
    }

    pub(super) fn sample<A: Analysis>(&mut self, e: &LeanSample, to: &mut Audience<'_, A>) {
        if let Some(thread) = self.thread(e.pid, e.tid) {
            to.tell(self, Change::Sampled { thread, sample: e });
        }
    }

    pub(super) fn probe<A: Analysis>(&mut self, e: &LeanProbe, to: &mut Audience<'_, A>) {
        let Some(slot) = self.runs(ThreadKey { pid: e.pid, tid: e.tid }, to) else { return };
        if self.log.on {
            // What ends with this event is reported before it.
            self.settle(to);
        }
        to.tell(self, Change::Probed { thread: &self.threads[slot], hit: e });
    }

    pub(super) fn loss<A: Analysis>(&mut self, e: &LossRow, to: &mut Audience<'_, A>) {
        let end = e.ts.0.saturating_add(e.dur.max(0));
        let all = self.threads.slots();
        all.iter().for_each(|&slot| self.threads[slot].advance(self.now, &mut self.log));
        if self.log.on {
            // What was before the loss is not touched by it.
            self.settle(to);
        }
        let hides = self.losses.add(e);
        if let Some(doubt) = self.doubt_of_loss(e, hides) {
            to.tell(self, Change::Missing(&doubt));
        }
        if hides.scheduling() {
            self.cpus.lose(self.now, end);
        }
        for &slot in &all {
            if hides.scheduling() {
                if self.threads[slot].account.state().is_runnable() {
                    to.tell(self, Change::Unseen { thread: &self.threads[slot] });
                }
                let thread = &mut self.threads[slot];
                thread.leave_queue(&mut self.cpus, self.now, &mut self.log);
                thread.wakes.lose(&mut self.tally.races);
                thread.account.lose_state(end);
            }
            if hides.interrupts() {
                self.threads[slot].account.lose_interrupts(end);
            }
            if hides.probes() {
                to.tell(self, Change::ProbesLost { thread: &self.threads[slot] });
            }
        }
        for slot in all {
            let thread = &mut self.threads[slot];
            let user = match hides {
                Hides::Thread(key) => key == thread.key,
                Hides::Process(pid) => pid == thread.key.pid,
                other => other == Hides::Everything,
            };
            if user {
                thread.spent.waits.own_event(None);
                self.drop_locks(slot, Over::Loss, to);
            }
        }
    }
}
