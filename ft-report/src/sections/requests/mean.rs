//! What the critical paths of requests are made of on average.

use serde::Serialize;

use crate::stats::Own;
use ft_trace::tables::Request;

/// Averages of requests: their lengths, and what their critical paths are made of, which sums to that.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Mean {
    /// Requests with a path.
    pub requests: u64,
    /// Their length, ns.
    pub dur_ns: f64,
    /// Threads on the path ran, ns.
    pub running_ns: f64,
    /// They were preempted.
    pub preempted_ns: f64,
    /// They had been woken, and waited for a CPU.
    pub dispatch_ns: f64,
    /// They were interrupted.
    pub interrupt_ns: f64,
    /// They slept until a timer woke them.
    pub timer_ns: f64,
    /// They slept until another interrupt woke them.
    pub device_ns: f64,
    /// They slept until a thread woke them that is not observed.
    pub outside_ns: f64,
    /// No record says what it was.
    pub unknown_ns: f64,
    /// Of all these, in other threads, for which the one waited that ended the request.
    pub elsewhere_ns: f64,
    /// Of all these, threads of the agent had the CPU; null where it is not known which these are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_ns: Option<f64>,
}

impl Mean {
    /// Adds a request, if it has a path.
    pub(in crate::sections) fn add(&mut self, r: &Request) {
        let Some(elsewhere) = r.path_elsewhere_ns else { return };
        self.requests += 1;
        self.dur_ns += r.dur as f64;
        self.elsewhere_ns += elsewhere as f64;
        if let Some(agent_ns) = r.path_agent_ns {
            *self.agent_ns.get_or_insert(0.0) += agent_ns as f64;
        }
        for (sum, ns) in [
            (&mut self.running_ns, r.path_running_ns),
            (&mut self.preempted_ns, r.path_preempted_ns),
            (&mut self.dispatch_ns, r.path_dispatch_ns),
            (&mut self.interrupt_ns, r.path_interrupt_ns),
            (&mut self.timer_ns, r.path_timer_ns),
            (&mut self.device_ns, r.path_device_ns),
            (&mut self.outside_ns, r.path_outside_ns),
            (&mut self.unknown_ns, r.path_unknown_ns),
        ] {
            *sum += ns.unwrap_or(0) as f64;
        }
    }

    /// What of it the recording is to blame for, and its length.
    pub(in crate::sections) fn own(&self) -> (Own, i64) {
        (Own(self.agent_ns.map(|ns| ns as i64)), self.dur_ns as i64)
    }

    fn all_mut(&mut self) -> [&mut f64; 10] {
        [
            &mut self.dur_ns,
            &mut self.running_ns,
            &mut self.preempted_ns,
            &mut self.dispatch_ns,
            &mut self.interrupt_ns,
            &mut self.timer_ns,
            &mut self.device_ns,
            &mut self.outside_ns,
            &mut self.unknown_ns,
            &mut self.elsewhere_ns,
        ]
    }

    /// Averages, of sums.
    pub(in crate::sections) fn finish(mut self) -> Option<Mean> {
        let n = self.requests as f64;
        self.all_mut().into_iter().for_each(|sum| *sum /= n);
        self.agent_ns = self.agent_ns.map(|sum| sum / n);
        (self.requests > 0).then_some(self)
    }

    /// What these have more than others.
    pub(super) fn minus(mut self, mut other: Mean) -> Mean {
        self.all_mut().into_iter().zip(other.all_mut()).for_each(|(mine, its)| *mine -= *its);
        self.agent_ns = self.agent_ns.zip(other.agent_ns).map(|(mine, its)| mine - its);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_analysis::RequestKind;
    use ft_analysis::timeline::run_recorded;
    use ft_trace::ids::Pid;

    /// The reaction of a to a timer, 80 ns, of which X has the CPU for 46; the same again without X.
    const TIMELINE: &str = "
        0 0 a>X S
        40 irq X vector 6 0 local_timer
        44 wake X a 0 0
        90 0 X>a S
        120 answer a 7
        200 0 a>. S
        240 irq . vector 6 0 local_timer
        244 wake . a 0 0
        250 0 .>a S
        260 answer a 7";

    #[test]
    fn what_of_paths_is_the_recordings_own_is_averaged_too() {
        let asked = RequestKind::reaction("timer:a", "event:http.end", None).expect("a reaction");
        let mean = |by: Option<Pid>| {
            let (rows, _) = run_recorded(by, std::slice::from_ref(&asked), TIMELINE);
            assert_eq!(rows.requests.iter().map(|r| r.dur).collect::<Vec<_>>(), [80, 20]);
            let mut mean = Mean::default();
            rows.requests.iter().for_each(|r| mean.add(r));
            mean.finish().expect("both have a path")
        };
        assert_eq!(mean(Some(Pid(9))).own(), (Own(Some(23)), 50));
        assert_eq!(mean(None).own(), (Own(None), 50));
    }
}
