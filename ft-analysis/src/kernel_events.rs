//! What the kernel's records mean to the analyses: who runs, waits, is interrupted; and what was lost.

use super::Analysis;
use super::dispatch::Wake;
use super::displaced::{Shares, Unseen};
use super::ledger::{State, interrupt_part};
use super::lock_events::Over;
use super::locks::Holder;
use super::loss::Hides;
use super::preemptions::{Preemption, on_cpu_ns};
use super::thread::Thread;
use ft_trace::Mark;
use ft_trace::event::{LeanContention, LeanFault, LeanSyscall};
use ft_trace::ids::{Cpu, ThreadKey};
use ft_trace::tables::{Irq, LossRow, SchedMigrate, SchedSwitch, SchedWaking, TaskEvent, TaskKind};

impl Analysis {
    pub(super) fn switch(&mut self, e: &SchedSwitch) {
        let ts = self.now;
        let prev_observed = self.context.observes(e.prev_pid);
        let (prev, next) = (e.prev(), e.next());
        if let Some(unseen) = self.cpus.unseen(e.cpu, ts, prev) {
            if prev_observed {
                self.thread(prev).unseen = ts;
            }
            self.unseen_switch(e.cpu, unseen);
        }
        let waits = prev_observed && self.switched_out(e);
        self.cpus.switch(e.cpu, ts, next, &e.next_comm, e.next_prio);
        if prev_observed {
            match e.prev_state {
                state if state.is_dead() => self.remove(prev, true),
                _ if waits => {
                    self.cpus.wait(prev, e.cpu, ts);
                    self.thread(prev).waits_on = Some(e.cpu);
                }
                _ => {}
            }
        }
        if self.context.observes(e.next_pid) {
            self.switched_in(e);
        }
    }

    /// Switches on `cpu` were not recorded: what the account of the last that was given it says of the time since
    /// cannot be trusted, nor what was said to those that waited for it.
    fn unseen_switch(&mut self, cpu: Cpu, unseen: Unseen) {
        let ts = self.now;
        self.tally.unseen_switches += 1;
        for (key, left) in unseen.doubtful {
            self.tally.doubtful_shares += 1;
            if let Some(thread) = self.threads.get_mut(&key) {
                // Not `ts`: what it has waited for since it left that queue is not in doubt.
                thread.unsure = thread.unsure.max(left);
            }
        }
        if let Some(thread) = self.threads.get_mut(&unseen.last)
            && thread.runs_on == Some(cpu)
        {
            thread.advance(ts);
            self.tally.unfinished_preemptions.at_loss += u64::from(thread.is_held_up());
            thread.account.forget();
            thread.runs_on = None;
            thread.unseen = ts;
        }
    }

    /// Returns whether the thread that leaves waits for a CPU from now on.
    fn switched_out(&mut self, e: &SchedSwitch) -> bool {
        let ts = self.now;
        self.thread(e.prev());
        let Some(thread) = self.threads.get_mut(&e.prev()) else { return false };
        // Still waiting, although it had a CPU: the switch to it is missing.
        self.tally.unfinished_preemptions.at_loss += u64::from(thread.is_held_up());
        thread.leave_queue(&mut self.cpus, ts);
        let preempted = e.prev_state.is_runnable();
        let being_woken = e.prev_woken && !preempted;
        let woken = thread.dispatch.left(ts, being_woken, &mut self.tally.races);
        thread.runs_on = None;
        thread.left = ts;
        thread.runnable = (ts, woken);
        thread.account.enter(
            match (preempted, woken) {
                (true, _) => State::Preempted,
                (false, true) => State::Woken,
                (false, false) => State::Blocked,
            },
            ts,
        );
        thread.spent.waits.leaves(e.prev_state);
        preempted || woken
    }

    fn switched_in(&mut self, e: &SchedSwitch) {
        let ts = self.now;
        let before = self.thread(e.next()).runs_on.filter(|cpu| *cpu != e.cpu);
        if let Some(unseen) = before.and_then(|cpu| self.cpus.elsewhere(cpu, ts, e.next()))
            && let Some(cpu) = before
        {
            self.unseen_switch(cpu, unseen);
        }
        let Some(thread) = self.threads.get_mut(&e.next()) else { return };
        if thread.comm != e.next_comm {
            thread.comm = e.next_comm.clone();
        }
        let state = thread.account.state();
        let held_up = thread.is_held_up();
        if state == State::Blocked {
            // Nobody comes without having been woken: that is missing, and so is since when it could run.
            thread.unseen = ts;
        }
        let shares = thread.leave_queue(&mut self.cpus, ts);
        thread.account.enter(State::Running, ts);
        thread.spent.waits.returns();
        thread.runs_on = Some(e.cpu);
        if state == State::Preempted {
            thread.locks.displaced(&shares);
        }
        if let Some(history) = &mut thread.history {
            history.displaced(&shares);
        }
        if let Some(wake) = thread.dispatch.dispatched(state, e.cpu, &mut self.tally.races) {
            self.tally.dispatches += 1;
            // Between the two the thread may have run, slept and been woken unseen.
            let lost = self.losses.scheduling_since(wake.ts) || thread.unseen >= wake.ts;
            let doubtful = thread.unsure >= wake.ts || !shares.is_exact();
            let mark = if lost { Mark::Censored } else { Mark::lower_bound_if(doubtful) };
            self.rows.dispatch_latency.push(thread.dispatch_row(wake, &shares, e.cpu, ts, mark));
        }
        if held_up {
            self.held_up(e.next(), &shares);
        }
    }

    /// A holder of locks runs again, which could have run before.
    fn held_up(&mut self, key: ThreadKey, shares: &Shares) {
        let ts = self.now;
        let Some(thread) = self.threads.get_mut(&key) else { return };
        let (since, woken) = thread.runnable;
        let lost = self.losses.kernel_since(since) || thread.doubtful_since(since);
        let touched = lost || !shares.is_exact();
        let on_cpu_ns = on_cpu_ns(&thread.account.total());
        let mut told_early = Vec::new();
        for (i, hold) in thread.locks.locks_mut().rev().enumerate() {
            let preemption = Preemption {
                ts: since,
                end: ts,
                woken,
                by: shares.longest().cloned(),
                innermost: i == 0,
                delayed: self.locks.delayed((key.pid, hold.lock), since, ts),
                on_cpu_ns,
                touched,
            };
            if let Some(oldest) = hold.preemptions.add(preemption) {
                told_early.push((hold.clone(), oldest));
            }
        }
        self.tally.preemptions += 1;
        for (hold, oldest) in told_early {
            self.preemption_row(key, &hold, oldest, None);
        }
    }

    /// Who wakes: the one that has the waker's CPU; where that is not known, the newest thread with its number.
    fn waker(&mut self, e: &SchedWaking) -> Option<ThreadKey> {
        match self.cpus.occupant(e.cpu) {
            Some(o) if o.thread.tid == e.waker_tid => Some(o.thread),
            _ => self.context.newest(e.waker_tid),
        }
    }

    pub(super) fn waking(&mut self, e: &SchedWaking) {
        let ts = self.now;
        self.cpus.shown(e.cpu, ts, e.waker_tid);
        let waker = self.waker(e);
        if let Some(waker) = waker.and_then(|key| self.threads.get_mut(&key)) {
            waker.advance(ts);
            waker.account.seen_running(ts);
        }
        if !self.context.observes(e.pid) {
            return;
        }
        let waker_comm = match (self.cpus.occupant(e.cpu), waker) {
            (Some(o), Some(waker)) if o.thread == waker => o.comm.clone(),
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
        };
        let born = e.is_new && !self.threads.contains_key(&woken);
        self.thread(woken);
        let whole = born && !self.losses.of_events(woken, ts);
        let Some(thread) = self.threads.get_mut(&woken) else { return };
        thread.born |= born;
        if whole {
            // Whatever was lost before was not its own.
            thread.locks = Holder::default();
        }
        let state = thread.account.state();
        if thread.dispatch.woken(state, wake, &mut self.tally.races) {
            if state == State::Woken {
                // Up to here it slept, and had been taken for one that can run.
                thread.unseen = ts - 1;
            }
            thread.account.enter(State::Woken, ts);
            thread.runnable = (ts, true);
            thread.leave_queue(&mut self.cpus, ts);
            self.cpus.wait(woken, e.target_cpu, ts);
            thread.waits_on = Some(e.target_cpu);
        }
    }

    pub(super) fn migrate(&mut self, e: &SchedMigrate) {
        let moved = ThreadKey { pid: e.pid, tid: e.tid };
        let Some(thread) = self.threads.get_mut(&moved) else { return };
        if let Some(from) = thread.waits_on {
            let shares = self.cpus.migrate(moved, from, e.to_cpu, self.now);
            thread.moved.merge(&shares);
            thread.waits_on = Some(e.to_cpu);
            thread.dispatch.migrated();
        }
    }

    pub(super) fn irq(&mut self, e: &Irq) {
        self.host_tick.interrupt();
        self.cpus.shown(e.cpu, self.now, e.tid);
        if !self.context.observes(e.pid) {
            return;
        }
        let part = interrupt_part(e.kind);
        let entry = self.now;
        let exit = entry.saturating_add(e.dur.max(0));
        let thread = self.thread(ThreadKey { pid: e.pid, tid: e.tid });
        let possible = thread.account.interrupted(entry, exit, part, e.name.clone());
        self.tally.interrupts_off_cpu += u64::from(!possible);
    }

    /// The thread, if it is observed; what it does now shows that it runs.
    fn runs(&mut self, key: ThreadKey) -> Option<&mut Thread> {
        if !self.context.observes(key.pid) {
            return None;
        }
        let now = self.now;
        let thread = self.thread(key);
        thread.account.seen_running(now);
        Some(thread)
    }

    pub(super) fn syscall(&mut self, e: &LeanSyscall) {
        if let Some(thread) = self.runs(ThreadKey { pid: e.pid, tid: e.tid }) {
            thread.spent.waits.calls(e.ts.0.saturating_add(e.dur), &e.name);
        }
    }

    pub(super) fn contention(&mut self, e: &LeanContention) {
        if let Some(thread) = self.runs(ThreadKey { pid: e.pid, tid: e.tid }) {
            let end = e.ts.0.saturating_add(e.dur);
            thread.spent.waits.contends(e.ts.0, end, &e.kind);
        }
    }

    pub(super) fn fault(&mut self, e: &LeanFault) {
        if let Some(thread) = self.runs(ThreadKey { pid: e.pid, tid: e.tid }) {
            thread.spent.waits.faults();
        }
    }

    pub(super) fn task(&mut self, e: &TaskEvent) {
        let key = ThreadKey { pid: e.pid, tid: e.tid };
        match e.kind {
            // The last switch away from it, in state X or Z, removes it.
            TaskKind::Exit => {
                self.drop_locks(key, Over::Thread);
            }
            TaskKind::Exec | TaskKind::Rename => {
                if let Some(thread) = self.threads.get_mut(&key) {
                    thread.comm = e.comm.clone();
                }
                if e.kind == TaskKind::Exec {
                    // The memory that held its locks is gone.
                    self.drop_locks(key, Over::Exec);
                }
            }
            TaskKind::Fork => {}
        }
    }

    pub(super) fn loss(&mut self, e: &LossRow) {
        let end = e.ts.0.saturating_add(e.dur.max(0));
        let hides = self.losses.add(e);
        let (scheduling, interrupts) = match hides {
            Hides::Scheduling | Hides::Everything => (true, true),
            Hides::Interrupts => (false, true),
            _ => (false, false),
        };
        if scheduling {
            self.dark_until = self.dark_until.max(end);
            self.cpus.lose(self.now);
        }
        if interrupts {
            self.blind_until = self.blind_until.max(end);
        }
        let mut lost = Vec::new();
        for thread in self.threads.values_mut() {
            thread.advance(self.now);
            if scheduling {
                self.tally.unfinished_preemptions.at_loss += u64::from(thread.is_held_up());
                thread.leave_queue(&mut self.cpus, self.now);
                thread.dispatch.lose(&mut self.tally.races);
                thread.account.lose_state(end);
            }
            if interrupts {
                thread.account.lose_interrupts(end);
            }
            let user = match hides {
                Hides::Thread(key) => key == thread.key,
                Hides::Process(pid) => pid == thread.key.pid,
                other => other == Hides::Everything,
            };
            if user {
                thread.spent.waits.own_event(None);
                lost.push(thread.key);
            }
        }
        lost.into_iter().for_each(|key| self.drop_locks(key, Over::Loss));
    }
}
