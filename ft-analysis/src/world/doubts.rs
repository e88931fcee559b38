//! Rows of the times of which records are missing: what the marks rest on.

use super::cpus::Unseen;
use super::losses::Hides;
use super::{Thread, World};
use ft_trace::ids::{Cpu, Name, Nanos};
use ft_trace::tables::{Doubt, DoubtCause, LossRow, MissingRecords};

impl World {
    /// What a loss hides; `None`: nothing that a result rests on.
    pub(super) fn doubt_of_loss(&self, loss: &LossRow, hides: Hides) -> Option<Doubt> {
        let (missing, pid, tid) = match hides {
            Hides::Scheduling => (MissingRecords::Switches, None, None),
            Hides::Interrupts => (MissingRecords::Interrupts, None, None),
            Hides::Calls => (MissingRecords::Calls, None, None),
            Hides::Probes => (MissingRecords::Probes, None, None),
            Hides::Thread(thread) => {
                (MissingRecords::Events, Some(thread.pid.0), Some(thread.tid.0))
            }
            Hides::Process(pid) => (MissingRecords::Events, Some(pid.0), None),
            Hides::Everything => (MissingRecords::All, None, None),
            Hides::Nothing => return None,
        };
        let (why, what) = (DoubtCause::Loss, loss.what.clone());
        // A loss of one CPU's records leaves no other CPU's in doubt; but threads go from one to another, so it says so of all.
        let dur = loss.dur.max(0);
        Some(Doubt { ts: loss.ts, dur, why, missing, cpu: None, pid, tid, what })
    }

    /// Switches on a CPU that were not recorded until now.
    pub(super) fn doubt_of_switch(&self, cpu: Cpu, unseen: &Unseen) -> Doubt {
        let (pid, tid) = (Some(unseen.last.pid.0), Some(unseen.last.tid.0));
        let (why, cpu, what) = (DoubtCause::Switch, Some(cpu.0), unseen.comm.clone());
        self.doubt(unseen.since, why, (cpu, pid, tid), what)
    }

    /// What a thread did since then is in doubt, by what is known of it now.
    pub(super) fn doubt_of_thread(&self, thread: &Thread, why: DoubtCause, since: i64) -> Doubt {
        let whose = (None, Some(thread.key.pid.0), Some(thread.key.tid.0));
        self.doubt(since.max(thread.spent.first()), why, whose, thread.comm.clone())
    }

    fn doubt(
        &self,
        since: i64,
        why: DoubtCause,
        (cpu, pid, tid): (Option<i32>, Option<i32>, Option<i32>),
        what: Name,
    ) -> Doubt {
        let (ts, dur) = (Nanos(since), self.now - since);
        Doubt { ts, dur, why, missing: MissingRecords::Switches, cpu, pid, tid, what }
    }
}
