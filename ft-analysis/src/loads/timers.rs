//! Why a worker that slept ran later than it wanted to (Hourglass, section 5.3): a late timer, a late interrupt, a late
//! dispatch, separately.
//!
//! **Rule.** A sleep lasts from the worker's word that it goes to sleep to its reading of the clock. Its last waking counts,
//! and the interrupt in which that was done, the innermost one that the waker's CPU was in. What was told in between divides
//! the time since it was due: until the interrupt, to the waking, to the switch that let it run, to the reading.
//!
//! **Situations.**
//! - *Woken on its way to sleep*: it has not left its CPU, or is switched to at once; the time until it runs is dispatch.
//! - *Not woken at all*: it was too late to sleep; there are no parts.
//! - *Woken by a thread*, as some kernels run timers: no interrupt is named, and until the waking all is the timer.
//! - *An interrupt that began before it was due*: the timer is not late.
//! - *Woken before it was due*, by a tick of a timer that has no finer ones: neither the timer nor the interrupt is late. If it
//!   still has no CPU when it is due, or has had one and loses it again, the time since it was due is dispatch until it
//!   runs. Who had the CPU meanwhile is told for as long as he surely had it since then.
//! - *Back to sleep* from there: only the next waking counts; without one, a record is missing, and there are no parts.
//! - *Preempted or asleep behind its reading of the clock*, which it tells later: that counts no more. What came before is kept
//!   of one such time; behind several, it is not known any more, and there are no parts.

use super::{Impossible, Moment, Plan};
use crate::world::{Shares, World};
use ft_trace::ids::{Cpu, Name, Nanos};
use ft_trace::tables::TimerLatency;

/// A waking of a worker that sleeps.
#[derive(Clone, Debug)]
struct Woken {
    ts: i64,
    interrupt: Option<(i64, Name)>,
    /// Since when it waits for a CPU: since it was woken, or since it lost the CPU again before it was due.
    waits: i64,
    /// When it ran again, where, and who had run meanwhile.
    ran: Option<(i64, Cpu, Shares)>,
    /// It went back to sleep.
    is_over: bool,
}

/// The sleeps of one worker.
#[derive(Debug, Default)]
pub(super) struct Timers {
    /// Until when it sleeps.
    until: Option<i64>,
    woken: Option<Woken>,
    /// What that was before it waited for a CPU or was woken once more, perhaps behind its reading of the clock.
    before: Option<Woken>,
    pub(super) count: i64,
}

impl Timers {
    /// It goes to sleep until it is `due`.
    pub(super) fn sleeps(&mut self, due: i64) {
        (self.until, self.woken, self.before) = (Some(due), None, None);
    }

    /// It is woken on `cpu`.
    pub(super) fn wakes(&mut self, cpu: Cpu, world: &World) {
        // A second waking before it runs wakes nobody.
        let awake = self.woken.as_ref().is_some_and(|woken| woken.ran.is_none());
        if self.until.is_some() && !awake {
            let (ts, irq) = (world.now(), world.interrupts().innermost(cpu, world.now()));
            let interrupt = irq.map(|irq| (irq.entry, irq.name.clone()));
            // Of who went back to sleep after it was due that was kept then.
            if self.before.is_none() || !self.woken.as_ref().is_some_and(|woken| woken.is_over) {
                self.before = self.woken.take();
            }
            self.woken = Some(Woken { ts, interrupt, waits: ts, ran: None, is_over: false });
        }
    }

    /// It has a CPU.
    pub(super) fn runs(&mut self, cpu: Cpu, shares: &Shares, now: i64) {
        if let (Some(woken), Some(due)) = (&mut self.woken, self.until)
            && (woken.ran.is_none() || woken.is_early(due))
        {
            woken.ran = Some((now, cpu, shares.clone()));
        }
    }

    /// It leaves its CPU: it waits for something, or could go on.
    pub(super) fn leaves(&mut self, blocked: bool, now: i64) {
        if let (Some(woken), Some(due)) = (&mut self.woken, self.until)
            && woken.is_early(due)
        {
            self.before = (now >= due).then(|| woken.clone());
            woken.waits = now;
            woken.is_over |= blocked;
        }
    }

    /// It was to sleep until `due`, and read the clock at `read`.
    pub(super) fn over(
        &mut self,
        plan: &Plan,
        moment: Moment<'_>,
        due: i64,
        read: i64,
    ) -> Result<TimerLatency, Impossible> {
        let asleep = self.until.take().is_some();
        let (last, before) = (self.woken.take(), self.before.take());
        let has_before = before.is_some();
        let woken = [last, before].into_iter().flatten().find(|woken| woken.waits <= read);
        // It reads another clock than the one by which its events are timed.
        let latest = moment.now().saturating_add(moment.world.context().clock_bound_ns);
        if !asleep || due < 0 || !(due..=latest).contains(&read) {
            return Err(Impossible);
        }
        self.count += 1;
        let thread = moment.thread;
        let ran = woken.as_ref().and_then(|woken| woken.ran.as_ref());
        let parts = woken.as_ref().and_then(|woken| parts(due, woken, read));
        let shares = ran.map(|(.., shares)| shares);
        let before = woken.as_ref().map_or(0, |woken| woken.waited_before(due));
        let longest = shares.and_then(|shares| shares.longest()).map(|s| (s, s.ns - before));
        let longest = longest.filter(|(_, ns)| *ns > 0);
        // Woken and not to be divided: a record is missing, or what it said was not kept.
        let unclear = (woken.is_some() || has_before) && parts.is_none();
        // Several had the CPU, before it was due and after.
        let had = longest.map_or(0, |(_, ns)| ns);
        let mixed = before > 0 && parts.is_some_and(|[_, _, dispatch, _]| had < dispatch);
        let doubtful = unclear || mixed || shares.is_some_and(|shares| !shares.is_exact());
        let since = woken.as_ref().map_or(due, |woken| woken.ts.min(due));
        let part = |i: usize| parts.map(|parts| parts[i]);
        Ok(TimerLatency {
            ts: Nanos(due),
            dur: read - due,
            pid: thread.key.pid,
            tid: thread.key.tid,
            comm: thread.comm.clone(),
            worker: plan.number,
            timer: plan.timer,
            cpu: ran.map(|(_, cpu, _)| cpu.0),
            timer_ns: part(0),
            interrupt_ns: part(1),
            dispatch_ns: part(2),
            return_ns: part(3),
            interrupt: woken.as_ref().and_then(|w| w.interrupt.as_ref().map(|i| i.1.clone())),
            running_tid: longest.map(|(s, _)| s.who.thread.tid.0),
            running_comm: longest.map(|(s, _)| s.who.comm.clone()),
            running_ns: longest.map(|(_, ns)| ns),
            mark: moment.mark(since, doubtful || thread.doubtful_since(since)),
        })
    }
}

impl Woken {
    /// When it ran again; as soon as it could, if no switch says otherwise.
    fn ran(&self) -> i64 {
        self.ran.as_ref().map_or(self.waits, |(ran, ..)| *ran)
    }

    /// It has run before it was due.
    fn is_early(&self, due: i64) -> bool {
        self.ran.as_ref().is_some_and(|(ran, ..)| *ran < due)
    }

    /// How long it waited for the CPU before it was due.
    fn waited_before(&self, due: i64) -> i64 {
        (self.ran().min(due) - self.waits).max(0)
    }
}

/// Timer, interrupt, dispatch and return; `None` where their order is not what it must be.
fn parts(due: i64, woken: &Woken, read: i64) -> Option<[i64; 4]> {
    let entry = woken.interrupt.as_ref().map_or(woken.ts, |(entry, _)| *entry);
    let times = [entry, woken.ts, woken.waits, woken.ran()].map(|time| time.max(due));
    let [entry, woke, waits, ran] = times;
    let is_known = !woken.is_over && woken.waits <= woken.ran();
    (is_known && times.is_sorted() && ran <= read)
        .then(|| [entry - due, woke - entry, ran - waits, (waits - woke) + (read - ran)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_since_it_was_due_is_divided_or_not_known() {
        let check = |entry: Option<i64>, ts, ran: Option<i64>, expected| {
            let interrupt = entry.map(|entry| (entry, "timer".into()));
            let ran = ran.map(|ran| (ran, Cpu(0), Shares::default()));
            let woken = Woken { ts, interrupt, waits: ts, ran, is_over: false };
            assert_eq!(parts(100, &woken, 150), expected, "{entry:?} {ts}");
        };
        check(Some(103), 105, Some(120), Some([3, 2, 15, 30]));
        check(Some(90), 105, Some(120), Some([0, 5, 15, 30]));
        check(None, 105, Some(120), Some([5, 0, 15, 30]));
        // It was woken before it had left its CPU.
        check(Some(103), 105, None, Some([3, 2, 0, 45]));
        // Before its time: it was not late until then.
        check(Some(97), 99, Some(120), Some([0, 0, 20, 30]));
        check(None, 99, Some(99), Some([0, 0, 0, 50]));
        // After it had read the clock.
        check(None, 105, Some(151), None);
        // Not in the order of time.
        check(Some(106), 105, Some(120), None);
    }
}
