//! What the programs could not record, as differences between two looks.

use std::{
    fs,
    os::fd::{AsRawFd, BorrowedFd},
};

use aya::maps::{MapData, MapError, PerCpuArray};
use ft_ebpf::{Loss, program};
use ft_trace::tables::LossOrigin;

use crate::{clock::monotonic_ns, cpus};

/// Why a record was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// The buffer was full.
    Full,
    /// The kernel did not run the program, because it was running already on that CPU: in a task that was
    /// preempted within it, or beneath an interrupt (`__bpf_prog_enter_recur` in kernel/bpf/trampoline.c, which tests
    /// `prog->active`). No buffer is large enough for that.
    Skipped,
}

impl LossCause {
    /// The origin under which the loss stands in the table `loss`.
    pub fn origin(self) -> LossOrigin {
        match self {
            LossCause::Full => LossOrigin::Kernel,
            LossCause::Skipped => LossOrigin::KernelSkipped,
        }
    }
}

/// Records of one program that were lost since the look before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLoss {
    /// Program, named like its tracepoint.
    pub program: &'static str,
    /// Why.
    pub cause: LossCause,
    /// CPU; `None` when the kernel does not tell.
    pub cpu: Option<u32>,
    /// How many.
    pub count: u64,
    /// The first was lost at this time or later, CLOCK_MONOTONIC ns.
    pub from_ns: u64,
    /// The last was lost at this time or before, CLOCK_MONOTONIC ns.
    pub to_ns: u64,
}

/// From question to question how often the programs were skipped.
const MISSES_EVERY_NS: u64 = 1_000_000_000;

/// What the programs have lost on a CPU ([`ft_ebpf::Losses`]), in words.
pub(super) type Words = [[u64; 3]; program::NAMES.len()];

/// Remembers what was reported.
pub(super) struct LostRecords {
    map: PerCpuArray<MapData, Words>,
    /// Numbers of the CPUs, in the order of the map's values: those that can run, whose numbers may have holes.
    cpus: Vec<u32>,
    /// By program, then by CPU.
    seen: Vec<Vec<Loss>>,
    looked_ns: u64,
    /// By program, in the order of attachment.
    misses: Vec<u64>,
    misses_looked_ns: u64,
    /// Nothing is lost before.
    begin_ns: u64,
}

impl LostRecords {
    pub(super) fn new(map: PerCpuArray<MapData, Words>) -> Self {
        let seen = vec![Vec::new(); program::NAMES.len()];
        let (cpus, looked_ns) = (cpus::possible(), monotonic_ns() as u64);
        let (misses, misses_looked_ns) = (Vec::new(), looked_ns);
        Self { map, cpus, seen, looked_ns, misses, misses_looked_ns, begin_ns: 0 }
    }

    /// No loss begins before this time, CLOCK_MONOTONIC ns.
    pub(super) fn begin(&mut self, ns: u64) {
        self.begin_ns = ns;
    }

    /// What is new. `programs` are those that are attached, always in the same order. How often they were skipped is asked once a
    /// second, and when `all` is to be told: the kernel tells it in a file for each program alone, whose reading takes locks of the kernel
    /// that a recording may be of.
    pub(super) fn look<'p>(
        &mut self,
        all: bool,
        programs: impl Iterator<Item = (&'static str, BorrowedFd<'p>)>,
    ) -> Result<Vec<KernelLoss>, MapError> {
        // Read before the counters: what they do not have yet is later than this.
        let now_ns = monotonic_ns() as u64;
        let mut found = Vec::new();
        // In one system call: the agent looks ten times a second.
        let of_cpus = self.map.get(&0, 0)?;
        for (index, name) in program::NAMES.iter().enumerate() {
            let values = of_cpus.iter().map(|losses| losses[index]);
            let losses = differences(&mut self.seen[index], values, &self.cpus, self.looked_ns);
            found.extend(losses.map(|loss| KernelLoss { program: name, ..loss }));
        }
        if all || now_ns.saturating_sub(self.misses_looked_ns) >= MISSES_EVERY_NS {
            found.extend(self.skipped(programs));
            self.misses_looked_ns = now_ns;
        }
        self.looked_ns = now_ns;
        found.iter_mut().for_each(|loss| loss.not_before(self.begin_ns));
        Ok(found)
    }

    /// Runs of programs that were skipped since they were asked for the last time.
    fn skipped<'p>(
        &mut self,
        programs: impl Iterator<Item = (&'static str, BorrowedFd<'p>)>,
    ) -> Vec<KernelLoss> {
        let mut found = Vec::new();
        for (index, (name, fd)) in programs.enumerate() {
            let misses = misses(fd);
            if self.misses.len() <= index {
                self.misses.push(0);
            }
            let count = misses.saturating_sub(self.misses[index]);
            if count > 0 {
                self.misses[index] = misses;
                let (from_ns, to_ns) = (self.misses_looked_ns, monotonic_ns() as u64);
                let cause = LossCause::Skipped;
                found.push(KernelLoss { program: name, cause, cpu: None, count, from_ns, to_ns });
            }
        }
        found
    }
}

/// What came to the counters of a program, in the order of the CPUs, since they were `seen`.
fn differences(
    seen: &mut Vec<Loss>,
    values: impl ExactSizeIterator<Item = [u64; 3]>,
    cpus: &[u32],
    looked_ns: u64,
) -> impl Iterator<Item = KernelLoss> {
    seen.resize(values.len(), Loss::default());
    let pairs = seen.iter_mut().zip(values).enumerate();
    pairs.filter_map(move |(i, (seen, [count, first_ts, last_ts]))| {
        let new = Loss { count, first_ts, last_ts };
        let loss = difference(*seen, new, looked_ns)?;
        *seen = new;
        Some(KernelLoss { cpu: cpus.get(i).copied(), ..loss })
    })
}

/// What came to a counter since it was `old`, which was read at `looked_ns` or later.
fn difference(old: Loss, new: Loss, looked_ns: u64) -> Option<KernelLoss> {
    let count = new.count.checked_sub(old.count).filter(|count| *count > 0)?;
    // The counter keeps the first of all; of the later ones only this is known.
    let from_ns = if old.count == 0 { new.first_ts } else { looked_ns.max(old.last_ts) };
    // The counter may be read while the program writes it.
    let to_ns = new.last_ts.max(from_ns);
    Some(KernelLoss { program: "", cause: LossCause::Full, cpu: None, count, from_ns, to_ns })
}

impl KernelLoss {
    /// The programs run before the recording begins.
    fn not_before(&mut self, begin_ns: u64) {
        self.from_ns = self.from_ns.max(begin_ns);
        self.to_ns = self.to_ns.max(self.from_ns);
    }
}

/// How often the kernel did not run a program because it was running already on that CPU
/// (`recursion_misses`, counted since Linux 5.12).
fn misses(program: BorrowedFd<'_>) -> u64 {
    let path = format!("/proc/self/fdinfo/{}", program.as_raw_fd());
    fs::read_to_string(path).map_or(0, |text| parse_misses(&text))
}

fn parse_misses(fdinfo: &str) -> u64 {
    fdinfo
        .lines()
        .find_map(|line| line.strip_prefix("recursion_misses:"))
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_the_narrowest_range_that_is_known() {
        let loss = |count, first_ts, last_ts| Loss { count, first_ts, last_ts };
        let check = |old, new, looked, expected: Option<(u64, u64, u64)>| {
            let found = difference(old, new, looked).map(|d| (d.count, d.from_ns, d.to_ns));
            assert_eq!(found, expected);
        };
        check(loss(0, 0, 0), loss(0, 0, 0), 5, None);
        check(loss(0, 0, 0), loss(3, 10, 20), 5, Some((3, 10, 20)));
        check(loss(3, 10, 20), loss(3, 10, 20), 30, None);
        check(loss(3, 10, 20), loss(4, 10, 50), 30, Some((1, 30, 50)));
        check(loss(3, 10, 35), loss(4, 10, 50), 30, Some((1, 35, 50)));
    }

    #[test]
    fn a_loss_is_that_of_its_cpu_where_numbers_have_holes() {
        let mut seen = Vec::new();
        let mut look = |values: &[[u64; 3]]| -> Vec<_> {
            let found = differences(&mut seen, values.iter().copied(), &[0, 1, 64, 66], 0);
            found.map(|loss| (loss.cpu, loss.count)).collect()
        };
        assert_eq!(look(&[[0; 3], [0; 3], [2, 5, 6], [0; 3]]), [(Some(64), 2)]);
        let more = look(&[[1, 7, 7], [0; 3], [2, 5, 6], [4, 7, 9]]);
        assert_eq!(more, [(Some(0), 1), (Some(66), 4)]);
    }

    #[test]
    fn no_loss_begins_before_the_recording() {
        let check = |from, to, begin, expected| {
            let (cause, from_ns, to_ns) = (LossCause::Skipped, from, to);
            let mut loss =
                KernelLoss { program: "sys_exit", cause, cpu: None, count: 1, from_ns, to_ns };
            loss.not_before(begin);
            assert_eq!((loss.from_ns, loss.to_ns), expected);
        };
        check(10, 30, 20, (20, 30));
        check(10, 30, 5, (10, 30));
        check(10, 15, 20, (20, 20));
    }

    #[test]
    fn misses_are_read_from_fdinfo() {
        assert_eq!(parse_misses("pos:\t0\nrecursion_misses:\t17\nverified_insns:\t9\n"), 17);
        assert_eq!(parse_misses("pos:\t0\n"), 0);
    }
}
