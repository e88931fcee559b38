//! What the hypervisor took from this machine meanwhile, by the kernel's own account.

use serde::Serialize;

use crate::document::{N, Ns, Section};
use crate::text;
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

impl Steal {
    /// Says it.
    pub(super) fn say(&self, s: &mut Section) {
        let stolen = match self.stolen_ns {
            _ if !self.hypervisor => return s.say("Steal: none, because there is no hypervisor."),
            None => {
                text!("Steal: unknown, because the kernel's account was not read at both ends.")
            }
            Some(0) => text!("Steal: less than {} a CPU, by the kernel's account.", Ns(STEP_NS)),
            Some(ns) => text!(
                "Steal: {} of {} CPUs, by the kernel's account, which has steps of {}.",
                Ns(ns),
                N(self.cpus_ns.len() as u64),
                Ns(STEP_NS)
            ),
        };
        s.say(stolen.and(
            " When it happened is not known: it is part of running time, and of the unexplained time of polling threads. \
             Gaps in step with a host's tick are named by `ft-agent gaps`.",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_trace::spool::frame::{End, Start};

    fn text(steal: &Steal) -> String {
        let mut section = Section::new("time", "");
        steal.say(&mut section);
        format!("{section:200}")
    }

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
            assert_eq!(text(&steal).contains("Steal: unknown"), expected.is_none());
        };
        check(&[10_000_000, 0], Some(&[30_000_000, 10_000_000]), Some(30_000_000));
        check(&[5, 6], Some(&[5, 6]), Some(0));
        check(&[5, 6], Some(&[5]), None);
        check(&[], Some(&[]), None);
        check(&[5, 6], None, None);
        assert!(text(&Steal::default()).contains("no hypervisor"));
    }
}
