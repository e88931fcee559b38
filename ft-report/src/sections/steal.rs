//! What the hypervisor took from this machine meanwhile, by the kernel's own account.

use std::num::NonZeroU64;

use serde::Serialize;

use crate::document::{N, Ns, Section, See};
use crate::text;
use ft_trace::store::Meta;

/// Step of the account: USER_HZ is 100 on x86-64 (proc_stat(5)).
///
/// Limit: part of the kernel's account (`USER_HZ`): where it has nothing, *less than 10 ms*.
/// Shown by: not shown: a sentence, no figure.
const STEP_NS: i64 = 10_000_000;

/// Stolen time during the recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Steal {
    /// The CPU says that a hypervisor is there.
    pub hypervisor: bool,
    /// Stolen from all CPUs together that were online at both ends, ns; null when the account was not read there.
    pub stolen_ns: Option<i64>,
    /// The same of each CPU, by its number.
    pub cpus_ns: Vec<Option<i64>>,
    /// CPUs that were online at one end only, if any were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<NonZeroU64>,
}

impl Steal {
    /// Of a trace.
    pub(super) fn of(meta: &Meta) -> Steal {
        let (start, end) = (&meta.start.steal_ns, meta.end.as_ref().map(|end| &end.steal_ns));
        let end = end.map_or(&[][..], Vec::as_slice);
        let of = |account: &[Option<i64>], cpu| account.get(cpu).copied().flatten();
        let pairs = (0..start.len().max(end.len())).map(|cpu| (of(start, cpu), of(end, cpu)));
        let cpus_ns: Vec<Option<i64>> = pairs.clone().map(|(from, to)| Some(to? - from?)).collect();
        let stolen_ns = cpus_ns.iter().any(Option::is_some).then(|| cpus_ns.iter().flatten().sum());
        let left_out = pairs.filter(|(from, to)| from.is_some() != to.is_some()).count() as u64;
        Steal {
            hypervisor: meta.start.hypervisor,
            stolen_ns,
            left_out: stolen_ns.and(NonZeroU64::new(left_out)),
            cpus_ns: if stolen_ns.is_some() { cpus_ns } else { Vec::new() },
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
                N(self.cpus_ns.iter().flatten().count() as u64),
                Ns(STEP_NS)
            ),
        };
        let left_out = match self.left_out {
            None => text!(""),
            Some(count) => text!(
                " CPUs that were online at one end only, and are not counted: {}.",
                N(count.get())
            ),
        };
        s.say(stolen.and(left_out).and(text!(
            " When it happened is not known: it is part of running time, and of the unexplained time of polling threads. \
             Gaps in step with a host's tick are named by {}.",
            See("gaps", "")
        )));
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
        let check = |start: &[Option<i64>], end: Option<&[Option<i64>]>, expected: (_, u64)| {
            let meta = Meta {
                start: Start { hypervisor: true, steal_ns: start.to_vec(), ..Start::default() },
                end: end.map(|ns| End { steal_ns: ns.to_vec(), ..End::default() }),
                ..Meta::default()
            };
            let steal = Steal::of(&meta);
            let left_out = steal.left_out.map_or(0, NonZeroU64::get);
            assert_eq!((steal.stolen_ns, left_out), expected);
            assert_eq!(text(&steal).contains("Steal: unknown"), steal.stolen_ns.is_none());
            assert_eq!(text(&steal).contains("at one end only"), left_out > 0);
        };
        let [a, b, c] = [10_000_000, 30_000_000, 0].map(Some);
        check(&[a, c], Some(&[b, a]), (b, 0));
        check(&[a, b], Some(&[a, b]), (c, 0));
        check(&[a, b], Some(&[a]), (c, 1));
        check(&[], Some(&[]), (None, 0));
        // CPU 1 has been offline all the time, 2 has come, 3 has gone.
        check(&[a, None, None, c], Some(&[b, None, b]), (Some(20_000_000), 2));
        check(&[a, b], None, (None, 0));
        assert!(text(&Steal::default()).contains("no hypervisor"));
    }
}
