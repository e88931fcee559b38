//! What an application's own events mean to the analyses: that it runs, and polls.

use super::Analysis;
use super::gaps::Culprit;
use super::interval::Interval;
use super::locks::SEMAPHORE;
use super::{agreement, infer};
use ft_trace::Mark;
use ft_trace::event::LeanUserEvent;
use ft_trace::tables::SiteKind;

impl Analysis {
    pub(super) fn user(&mut self, e: &LeanUserEvent) {
        if e.pid.0 <= 0 {
            return;
        }
        let ts = self.now;
        self.context.observe(e.pid);
        self.thread(e.thread());
        let Some(thread) = self.threads.get_mut(&e.thread()) else { return };
        if self.context.kernel {
            let off_cpu = thread.account.state().is_off_cpu();
            if off_cpu && ts.saturating_sub(thread.left) > self.context.clock_bound_ns {
                // The switch to it is missing: an event of its own shows that it runs.
                self.tally.unfinished_preemptions.at_loss += u64::from(thread.is_held_up());
                thread.account.forget();
                thread.leave_queue(&mut self.cpus, ts);
                thread.dispatch.end(&mut self.tally.races);
                thread.unseen = ts;
                self.tally.ran_unseen += 1;
            }
            thread.account.seen_running(ts);
            if let Some(cpu) = thread.runs_on {
                self.cpus.shown(cpu, ts, e.tid);
            }
        }
        thread.spent.waits.own_event(None);
        let Some(site) = self.context.site(e.site) else {
            self.tally.unknown_sites += 1;
            return;
        };
        let begins = begins(site.kind, &site.lock_kind);
        match site.kind {
            SiteKind::PollBegin => {
                self.tally.pollers += u64::from(thread.begin_polling(ts, self.context.kernel));
                self.inference.polls(e.pid, e.tid, e.cpu, ts);
            }
            SiteKind::PollGap => self.gap(e),
            SiteKind::PollEnd => thread.end_polling(&mut self.agreement),
            SiteKind::Event
            | SiteKind::ScopeBegin
            | SiteKind::ScopeEnd
            | SiteKind::WaitBegin
            | SiteKind::WaitEnd
            | SiteKind::RingWait => {}
            what => {
                let kind = site.lock_kind.clone();
                self.lock(e, what, kind);
            }
        }
        if let Some(kind) = begins
            && let Some(thread) = self.threads.get_mut(&e.thread())
        {
            let name = self.context.lock_name(e.pid, e.arg[0], e.site, e.arg[1]);
            thread.spent.waits.own_event(Some((kind, name)));
        }
    }

    fn gap(&mut self, e: &LeanUserEvent) {
        let [before, after, _] = e.arg;
        let Some(interval) = Interval::told(before, after, self.now) else {
            self.tally.unaccounted.impossible += 1;
            return;
        };
        let Some(thread) = self.threads.get_mut(&e.thread()) else { return };
        self.tally.gaps += 1;
        let mut explanation = thread.history.as_mut().and_then(|h| h.explain(interval));
        if let Some(explanation) = &explanation {
            thread.spent.did_not_run(explanation.on_cpu_ns, before);
        } else if self.context.kernel {
            self.tally.unaccounted.before_history += 1;
        }
        self.tally.pollers += u64::from(thread.begin_polling(self.now, self.context.kernel));
        let seen = infer::Seen { pid: e.pid, tid: e.tid, cpu: e.cpu, interval };
        let inferred = self.inference.gap(seen);
        let lost = self.losses.any_since(e.thread(), before) || thread.doubtful_since(before);
        let lost = lost || explanation.as_ref().is_some_and(|e| e.doubtful);
        if let Some(explanation) = &mut explanation
            && !lost
        {
            self.host_tick.look(seen, explanation);
        }
        let sibling = explanation.as_ref().and_then(|e| match &e.culprit {
            Some(Culprit::Thread(o)) => self.threads.get(&o.thread),
            _ => None,
        });
        let sibling = sibling.is_some_and(|t| t.key.pid == e.pid && t.polled);
        let by_kernel = agreement::seen(explanation.as_ref(), sibling);
        self.agreement.gap(inferred, by_kernel, interval.len_ns());
        let Some(thread) = self.threads.get(&e.thread()) else { return };
        let mark = Mark::lower_bound_if(lost);
        self.rows.gaps.push(thread.gap_row(seen, explanation, inferred, mark));
    }
}

/// What an event of this kind says that its thread begins to wait for.
fn begins(kind: SiteKind, lock_kind: &str) -> Option<&'static str> {
    match kind {
        SiteKind::LockWait if lock_kind == SEMAPHORE => Some("semaphore"),
        SiteKind::LockWait => Some("lock"),
        SiteKind::CondWait => Some("condition of"),
        SiteKind::WaitBegin => Some(match lock_kind {
            "barrier" => "barrier",
            "receive" => "receive from",
            "send" => "room in",
            _ => "wait for",
        }),
        _ => None,
    }
}
