//! What would have shortened the waits behind holders that could run and had no CPU: bounds, each with what it assumes.
//!
//! What they mean and why they are upper bounds, `ft-analysis/src/holds/what_if.rs` says, which makes them for each hold.
//! Here they are sums over holds; those in which records are missing are in none.

mod sums;

use std::cmp::Reverse;

use serde::Serialize;

use super::{Input, NO_SCHEDULER};
use crate::document::{Lock, N, Ns, Of, Section, See, Share, Table, Text, Word};
use crate::stats::{Groups, Marks};
use crate::text;
use ft_analysis::{Extensions, Mark, Tally};
use ft_trace::ids::{Name, Pid};
use ft_trace::store::Result;
use ft_trace::tables::{LockWait, WhatIf};
pub use sums::{Barred, ChainSums, Granted, LockSums, Sums};

use sums::GRANTS_NS;

/// Locks with a group of their own; further ones are in one of others.
///
/// Limit: as `MAX_GROUPS` of `preempted.rs`.
const MAX_GROUPS: usize = 16_384;

/// Rows of the table of locks that are shown; the machine values have all.
const SHOWN: usize = 15;

/// The report.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WhatIfReport {
    /// There is a kernel stream; without one nothing is known.
    pub kernel: bool,
    /// System calls were recorded: holds that made one have no extension.
    pub calls: bool,
    /// How many holds are exact, lower bounds (which are in no sum), censored (whose release is not recorded).
    pub marks: Marks,
    /// Of all holds, be they in the sums or not: what came of extensions that were asked for in earnest.
    #[serde(skip_serializing_if = "Extensions::is_none")]
    pub asked: Extensions,
    /// Of all that are summed.
    pub all: Sums,
    /// Of waits, through all holders of their chains.
    pub chains: ChainSums,
    /// Each lock, the longest waits behind it first.
    pub locks: Vec<LockSums>,
}

/// Makes a [`WhatIfReport`] of rows, in memory that does not grow with their number.
#[derive(Debug, Default)]
pub struct WhatIfs {
    marks: Marks,
    all: Sums,
    chains: ChainSums,
    locks: Groups<MAX_GROUPS, (Pid, Name, Name), Sums>,
}

impl WhatIfs {
    /// Counts a row.
    pub fn add(&mut self, r: &WhatIf) {
        self.marks.add(r.mark);
        // What is missing could be more time without a CPU, or more waits.
        if r.mark <= Mark::Disturbed {
            self.all.add(r);
            self.locks.entry((r.pid, r.lock_name.clone(), r.kind.clone())).add(r);
        }
    }

    /// Counts a wait.
    pub fn add_wait(&mut self, r: &LockWait) {
        self.chains.add(r);
    }

    /// Finishes the sums; `tally` says what is not in them, `calls` whether system calls were recorded.
    pub fn finish(mut self, tally: &Tally, calls: bool) -> WhatIfReport {
        self.marks.add_many(Mark::Censored, tally.unreleased_held_up);
        let locks = self.locks.into_ranked(
            |((pid, lock, kind), sums)| LockSums {
                pid: pid.0,
                lock: lock.to_string(),
                kind: kind.to_string(),
                sums,
            },
            |l| (Reverse((l.sums.waited_ns, l.sums.holds)), l.lock.clone(), l.kind.clone(), l.pid),
        );
        WhatIfReport {
            kernel: tally.kernel,
            calls,
            marks: self.marks,
            asked: tally.extensions,
            all: self.all,
            chains: self.chains,
            locks,
        }
    }
}

impl WhatIfReport {
    /// Of a trace.
    ///
    /// # Errors
    ///
    /// When the table cannot be read.
    pub fn read(input: Input<'_>) -> Result<WhatIfReport> {
        let mut what_ifs = WhatIfs::default();
        input.rows(|r: WhatIf| what_ifs.add(&r))?;
        input.rows(|r: LockWait| what_ifs.add_wait(&r))?;
        Ok(what_ifs.finish(input.tally, input.recorded("syscall")))
    }

    /// What it says.
    pub fn section(self) -> Section {
        let mut s = Section::new(
            "what-if",
            "what would have shortened the waits behind holders without a CPU, at most",
        );
        if !self.kernel {
            s.say(NO_SCHEDULER);
            return s.with(self);
        }
        self.counted(&mut s);
        self.asked(&mut s);
        if self.all.holds == 0 {
            s.say("There is no hold of a traced lock of which that is known.");
            return s.with(self);
        }
        self.behind(&mut s);
        self.grants(&mut s);
        if self.all.waiters > 0 {
            self.scheduled(&mut s);
            self.locks(&mut s);
        }
        self.chains(&mut s);
        s.with(self)
    }

    /// What is spared where holders wait for other locks themselves.
    fn chains(&self, s: &mut Section) {
        let chains = &self.chains;
        if chains.waits == 0 {
            return;
        }
        let unknown = (chains.unknown > 0)
            .then(|| text!("; {} more in which records are missing", N(chains.unknown)));
        s.say(text!(
            "A CPU of its own for each holder, and for those it waited for itself: at most {} ({}) of {} in {} for locks, {} of them \
             with several holders in a row{}. Assumes, in addition, that a holder that gets another lock earlier is done earlier by \
             as much.",
            Ns(chains.own_cpu_ns),
            Share(chains.own_cpu_ns, chains.waited_ns),
            Ns(chains.waited_ns),
            Of(chains.waits, "wait"),
            N(chains.chained),
            unknown.unwrap_or_default()
        ));
    }

    /// How many holds there are, and which are left out.
    fn counted(&self, s: &mut Section) {
        if !self.marks.any() {
            return;
        }
        let lost = (self.marks.lower_bounds > 0).then(|| {
            text!(
                "; {} with missing records not counted, because nothing bounds them from above",
                Of(self.marks.lower_bounds, "hold")
            )
        });
        let unreleased = (self.marks.censored > 0)
            .then(|| text!("; {} more whose release is not recorded", N(self.marks.censored)));
        let disturbed = (self.marks.disturbed > 0)
            .then(|| text!(", {} of them disturbed by the tracer", N(self.marks.disturbed)));
        let parts = [disturbed, lost, unreleased].map(Option::unwrap_or_default);
        let [disturbed, lost, unreleased] = parts;
        s.say(text!(
            "{} in which the holder could have run and did not{}{}{}. Each counts once, however often its holder lost the CPU, and \
             so does each of nested holds; {} counts the times instead, each once.",
            Of(self.all.holds, "hold"),
            disturbed,
            lost,
            unreleased,
            See("preempted", "")
        ));
    }

    /// What came of extensions in earnest.
    fn asked(&self, s: &mut Section) {
        let Extensions { impossible, pending, granted, over } = self.asked;
        if self.asked.is_none() {
            return;
        }
        s.say(text!(
            "Of {} whose holders ask for time-slice extensions, {} needed none; {} released the lock within one, and so are not among those below; {} lost the CPU all the same, or made a system call in one; of {} the holder could not ask.",
            Of(impossible + pending + granted + over, "hold"),
            N(pending),
            N(granted),
            N(over),
            N(impossible)
        ));
    }

    /// The waits of which something could be spared.
    fn behind(&self, s: &mut Section) {
        let all = &self.all;
        s.say(text!("They had no CPU for {}{}.", Ns(all.lost_ns), all.agent_ns.of_it(all.lost_ns)));
        if all.for_reading > 0 {
            s.say(text!(
                "Behind {} for reading nothing is counted: another reader may keep the lock.",
                N(all.for_reading)
            ));
        }
        if all.waiters == 0 {
            s.say(
                "Nobody waited for them until their release, so no wait could have been shorter.",
            );
            return;
        }
        s.say(text!(
            "{} of them had {} when they ended, which had by then waited for {} since the holder first lacked a CPU. (A wait can \
             be behind several holds, one after the other.) Each figure is the most by which these waits could have been \
             shorter if everything before had been as it was, and if the holders had slept as long as they did. Figures of \
             different changes cannot be added. The order of events that was recorded bounds neither what others gain that \
             queued behind these waiters, nor what those lose that had the CPU.",
            N(all.waited_for),
            Of(all.waiters, "waiter"),
            Ns(all.waited_ns)
        ));
    }

    fn grants(&self, s: &mut Section) {
        let all = &self.all;
        let t = Table::of(&all.grants)
            .column("extension", |g| Ns(g.grant_ns))
            .column("holds that end", |g| N(g.ended))
            .column("of all", |g| Share::of(g.ended, all.holds))
            .when(all.waiters > 0, |t| {
                t.column("spared", |g| Ns(g.spared_ns))
                    .column("of what was waited", |g| Share(g.spared_ns, all.waited_ns))
            });
        s.table(t.titled(
            "At most, with a time-slice extension, as Linux 7.0 grants it to threads that ask by rseq",
        ));
        let barred = all.barred;
        let without =
            text!("Not granted to {}", Of(barred.slept + barred.in_kernel + barred.called, "hold"))
                .reasons(&[
                    (barred.slept, "slept"),
                    (barred.in_kernel, "in the kernel when the CPU was taken"),
                    (barred.called, "made a system call then"),
                ]);
        let calls = if self.calls {
            Text::default()
        } else {
            text!(
                " System calls were not recorded: holds that made one, which ends an extension, could not be left out unless \
                 they slept in it (-k default,syscall)."
            )
        };
        s.say(text!(
            "Extensions: assumes that each hold asks for an extension, that the kernel grants it whenever it may, that the rest of the hold \
             takes no less time than it did, and that an extension that is too short for it changes nothing. {}.{}",
            without,
            calls
        ));
    }

    /// What another priority, or another place, would have done.
    fn scheduled(&self, s: &mut Section) {
        let all = &self.all;
        let spared = |ns: i64, of: i64| text!("at most {} ({})", Ns(ns), Share(ns, of));
        if all.urgent_waiters == 0 {
            s.say(
                "Inherited priority: nothing. Assumes locks that hand on the priority of a waiter (PTHREAD_PRIO_INHERIT), as \
                 Linux does for real-time priorities alone; no waiter had one higher than the holder's.",
            );
        } else {
            s.say(text!(
                "Inherited priority: {} of the {} that {} of higher real-time priority than the holder had waited. Assumes locks that \
                 hand on the priority of a waiter (PTHREAD_PRIO_INHERIT), as Linux does for real-time priorities alone, and that \
                 the holder then runs whenever a thread of lower priority than that had its CPU.",
                spared(all.inherited_ns, all.urgent_ns),
                Ns(all.urgent_ns),
                Of(all.urgent_waiters, "waiter")
            ));
        }
        s.say(text!(
            "A higher priority: {}. Assumes holders of a priority above all ordinary threads (SCHED_FIFO), which run whenever an \
             ordinary thread had their CPU, and are as late as they were where a real-time thread had it, or nobody.",
            spared(all.prioritized_ns, all.waited_ns)
        ));
        s.say(text!(
            "A CPU of its own: {}. Assumes holders that run whenever they could, and sleep and are interrupted as they were.",
            spared(all.own_cpu_ns, all.waited_ns)
        ));
    }

    fn locks(&self, s: &mut Section) {
        let [least, .., most] = GRANTS_NS;
        let t = Table::first(SHOWN, self.locks.iter())
            .column("lock", |l| Lock::named(&l.lock))
            .column("kind", |l| Word(&l.kind))
            .processes(|l| l.pid)
            .column("holds", |l| N(l.sums.holds))
            .column("waiters", |l| N(l.sums.waiters))
            .column("waited", |l| Ns(l.sums.waited_ns))
            .column("5 µs", |l| Ns(l.sums.spared_by(least)))
            .column("50 µs", |l| Ns(l.sums.spared_by(most)))
            .when(self.all.urgent_waiters > 0, |t| {
                t.column("inherited", |l| Ns(l.sums.inherited_ns))
            })
            .column("priority", |l| Ns(l.sums.prioritized_ns))
            .column("own CPU", |l| Ns(l.sums.own_cpu_ns))
            .counted("locks");
        s.table(t.titled("At most, by lock: extensions, priorities, a CPU of its own"));
    }
}
