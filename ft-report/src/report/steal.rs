//! What the hypervisor took from this machine meanwhile, by the kernel's own account.

use std::fmt;

use serde::Serialize;

use super::format::dur;
use ft_trace::store::Meta;

/// Step of the account: USER_HZ is 100 on x86-64 (proc_stat(5)).
const STEP_NS: i64 = 10_000_000;

/// Stolen time during the recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Steal {
    /// The CPU says that a hypervisor is there.
    pub hypervisor: bool,
    /// Stolen from all CPUs together, ns; null when the account was not read at both ends.
    pub stolen_ns: Option<i64>,
    /// The same of each CPU.
    pub cpus_ns: Vec<i64>,
}

impl Steal {
    /// Of a trace.
    pub(super) fn of(meta: &Meta) -> Steal {
        let (start, end) = (&meta.start.steal_ns, meta.end.as_ref().map(|end| &end.steal_ns));
        let pairs = end.filter(|end| !start.is_empty() && end.len() == start.len());
        let cpus_ns: Option<Vec<i64>> =
            pairs.map(|end| std::iter::zip(start, end).map(|(from, to)| to - from).collect());
        Steal {
            hypervisor: meta.start.hypervisor,
            stolen_ns: cpus_ns.as_ref().map(|cpus| cpus.iter().sum()),
            cpus_ns: cpus_ns.unwrap_or_default(),
        }
    }
}

impl fmt::Display for Steal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Steal: ")?;
        match self.stolen_ns {
            _ if !self.hypervisor => return write!(f, "none: no hypervisor was seen"),
            None => write!(f, "not known, the kernel's account was not read at both ends.")?,
            Some(0) => {
                write!(f, "less than {} a CPU by the kernel's account.", dur(STEP_NS))?;
            }
            Some(ns) => {
                let cpus = self.cpus_ns.len();
                write!(f, "{} of {cpus} CPUs by the kernel's account, ", dur(ns))?;
                write!(f, "in steps of {}.", dur(STEP_NS))?;
            }
        }
        write!(
            f,
            "\n  The kernel does not know when: it is in running, and in a polling thread's unexplained.\n  \
             Gaps in step with a host's tick are named (`ft-agent gaps`)."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_trace::spool::frame::{End, Start};

    #[test]
    fn steal_is_a_difference_or_not_known() {
        let check = |start: &[i64], end: Option<&[i64]>, expected: Option<i64>| {
            let meta = Meta {
                start: Start { hypervisor: true, steal_ns: start.to_vec(), ..Start::default() },
                end: end.map(|ns| End { steal_ns: ns.to_vec(), ..End::default() }),
                ..Meta::default()
            };
            let steal = Steal::of(&meta);
            assert_eq!(steal.stolen_ns, expected);
            assert_eq!(steal.to_string().contains("not known"), expected.is_none());
        };
        check(&[10_000_000, 0], Some(&[30_000_000, 10_000_000]), Some(30_000_000));
        check(&[5, 6], Some(&[5, 6]), Some(0));
        check(&[5, 6], Some(&[5]), None);
        check(&[], Some(&[]), None);
        check(&[5, 6], None, None);
        assert!(Steal::default().to_string().contains("no hypervisor"));
    }
}
