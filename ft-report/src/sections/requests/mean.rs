//! What the critical paths of requests are made of on average.

use serde::Serialize;

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
}

impl Mean {
    /// Adds a request, if it has a path.
    pub(in crate::sections) fn add(&mut self, r: &Request) {
        let Some(elsewhere) = r.path_elsewhere_ns else { return };
        self.requests += 1;
        self.dur_ns += r.dur as f64;
        self.elsewhere_ns += elsewhere as f64;
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
        (self.requests > 0).then_some(self)
    }

    /// What these have more than others.
    pub(super) fn minus(mut self, mut other: Mean) -> Mean {
        self.all_mut().into_iter().zip(other.all_mut()).for_each(|(mine, its)| *mine -= *its);
        self
    }
}
