//! Whether samples account for the time that threads had CPUs.
//!
//! **Goal.** A sample that the kernel did not take is known: it takes none while another BPF program runs on that CPU by way of perf
//! (`bpf_overflow_handler` in kernel/events/core.c), and counts that nowhere; and none while a virtual machine stands still.
//!
//! **Rule.** On each CPU, the time of observed threads divided by the period is the number of samples that are expected. Each stretch of
//! a thread on a CPU has one sample more or less than that, by chance, so the sum is off by the root of a quarter of their number; and by
//! no more than the root of the samples that are expected. What is missing beyond [`SIGMAS`] of that, and [`FEW`], is told. Where
//! switches or samples are lost, and counted, nothing is.

use crate::Rows;
use crate::Tally;
use crate::analysis::Analysis;
use crate::world::{Change, PerCpu, World};
use ft_trace::ids::ThreadKey;

/// Deviations by chance that are not told.
const SIGMAS: f64 = 5.0;

/// Samples whose lack says nothing: of the first and the last period.
const FEW: f64 = 4.0;

/// Counts in the [`Tally`] what is missing.
#[derive(Debug, Default)]
pub struct Sampling {
    cpus: PerCpu<OfCpu>,
    /// Samples of threads of which it is not known that they had that CPU.
    unplaced: u64,
}

#[derive(Debug, Default)]
struct OfCpu {
    /// Who has it, and since when.
    thread: Option<(ThreadKey, i64)>,
    ran_ns: i64,
    stretches: u64,
    samples: u64,
}

impl OfCpu {
    fn leave(&mut self, now: i64) {
        if let Some((_, since)) = self.thread.take() {
            self.ran_ns += now - since;
            self.stretches += 1;
        }
    }

    /// Samples that are missing and those that are expected, with one each `period_ns`.
    fn missing(&self, period_ns: i64) -> (u64, u64) {
        let expected = self.ran_ns as f64 / period_ns as f64;
        let missing = expected - self.samples as f64;
        let chance = expected.min(self.stretches as f64 / 4.0).sqrt();
        let is_told = missing > FEW + SIGMAS * chance;
        (if is_told { missing as u64 } else { 0 }, expected as u64)
    }
}

impl Analysis for Sampling {
    #[inline]
    fn see(&mut self, change: &Change<'_>, world: &World, _: &mut Rows) {
        if world.context().sample_ns.is_none() {
            return;
        }
        let now = world.now();
        match *change {
            Change::Dispatched { thread, cpu, .. } => {
                if let Some(of) = self.cpus.of(cpu) {
                    of.leave(now);
                    of.thread = Some((thread.key, now));
                }
            }
            Change::Switched { cpu, prev } => {
                let Some(of) = self.cpus.of(cpu) else { return };
                // The one that comes may have been told before.
                let is_left = |(key, since)| prev.map_or(since < now, |prev| prev.key == key);
                if of.thread.is_some_and(is_left) {
                    of.leave(now);
                }
            }
            Change::Sampled { thread, sample } => {
                let has = |of: &&mut OfCpu| of.thread.is_some_and(|(key, _)| key == thread.key);
                match self.cpus.of(sample.cpu).filter(has) {
                    Some(of) => of.samples += 1,
                    None => self.unplaced += 1,
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, world: &World, _: &mut Rows, tally: &mut Tally) {
        let Some(period_ns) = world.context().sample_ns else { return };
        if tally.lost_kernel_records > 0 {
            return;
        }
        let now = world.now();
        for of in self.cpus.iter_mut() {
            of.leave(now);
            let (missing, expected) = of.missing(period_ns);
            tally.samples.missing += missing;
            tally.samples.expected += expected;
        }
        tally.samples.missing = tally.samples.missing.saturating_sub(self.unplaced);
    }
}

#[cfg(test)]
mod tests {
    use crate::timeline::run_sampled;

    /// Samples that are missing of a trace in which `a` has CPU 0 for 100 periods of 1 ms, in stretches of `stretch` of them, and is
    /// sampled in each period that `is_taken`.
    fn missing(stretch: u64, is_taken: impl Fn(u64) -> bool, more: &str) -> u64 {
        let mut text = String::from("0 0 .>a S\n");
        for n in 0..100u64 {
            let ms = 1_000_000;
            if n > 0 && n % stretch == 0 {
                let (at, next) = (n * ms, n * ms + 1);
                text += &format!("{at} 0 a>. R+\n{next} 0 .>a S\n");
            }
            if is_taken(n) {
                text += &format!("{} sample a 1\n", n * ms + ms / 2);
            }
        }
        text += "100000000 0 a>. S\n";
        text += more;
        run_sampled(1000, &text).1.samples.missing
    }

    #[test]
    fn samples_that_were_not_taken_are_known() {
        assert_eq!(missing(100, |_| true, ""), 0);
        assert_eq!(missing(100, |n| n % 10 != 0, ""), 10);
        assert_eq!(missing(100, |n| n < 30, ""), 70);
        assert_eq!(missing(100, |_| false, ""), 100);
    }

    #[test]
    fn chance_hides_as_many_as_there_are_stretches() {
        // Of a hundred stretches of one period each: five deviations are 25.
        assert_eq!(missing(1, |n| n % 5 != 0, ""), 0);
        assert_eq!(missing(1, |n| n % 2 != 0, ""), 49);
    }

    #[test]
    fn what_is_counted_as_a_loss_is_not_counted_twice() {
        assert_eq!(missing(100, |n| n < 30, "100000001 lose sched 5\n"), 0);
    }

    #[test]
    fn samples_of_a_thread_without_a_known_cpu_are_not_missing() {
        let unplaced = "100000050 0 .>b S\n100000060 0 b>. S\n".to_owned();
        let unplaced = unplaced + &"100000100 sample b 1\n".repeat(20);
        assert_eq!(missing(100, |n| n < 90, &unplaced), 0);
    }
}
