//! What a probe costs on this machine.
//!
//! It is measured here, because it is half a microsecond or thirty times as much: the kernel emulates a push, and single-steps most
//! other first instructions, whose trap is expensive in a virtual machine. It is stated and not subtracted: it is known of a
//! function that does nothing, not of one whose caches the probe disturbs.

use std::arch::naked_asm;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ft_ebpf::{Probe as Record, kind, read};

use super::Kernel;
use crate::collect::maps;
use crate::collect::probe::{Binary, End, Probe};

/// Calls between two readings of the clock. Their records fit into the smallest buffer.
const CALLS: u32 = 20;

/// Records that are looked at together.
const DRAINED_BYTES: usize = 1 << 20;

/// So many times; 20 ms in all where a step takes as long as in a virtual machine.
const TIMES: usize = 25;

/// What a begin and an end of a probe take of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeCost {
    /// All of it, ns.
    pub ns: f64,
    /// Of that, what lies between their two times, ns.
    pub within_ns: f64,
}

impl Kernel {
    /// What a begin and an end of each of these cost: as much as those of a like function of this process, medians. Nothing else
    /// may be attached yet: what is recorded meanwhile is thrown away.
    pub(in crate::collect::kernel) fn measure_probes(
        &mut self,
        probes: &[Probe],
    ) -> Vec<Option<ProbeCost>> {
        let mut known: Vec<(Subject, Option<ProbeCost>)> = Vec::new();
        let of = |probe: &Probe| {
            let subject = Subject::like(probe);
            if let Some((_, cost)) = known.iter().find(|(other, _)| *other == subject) {
                return *cost;
            }
            let cost = self.measure(subject);
            known.push((subject, cost));
            cost
        };
        probes.iter().map(of).collect()
    }

    fn measure(&mut self, subject: Subject) -> Option<ProbeCost> {
        let probe = subject.probe()?;
        let (without, _) = self.time(subject);
        let own = std::process::id();
        let attached = self.attach_in(&[probe], Some(own)).ok()?;
        self.observed.set(own, true);
        let (with, mut within) = self.time(subject);
        self.observed.set(own, false);
        self.detach(attached).ok()?;
        let ns = (with - without).max(0.0);
        Some(ProbeCost { ns, within_ns: median(&mut within).filter(|within| *within <= ns)? })
    }

    /// Nanoseconds of a call, the median, so that an interruption is left out; and those between the two records of each.
    fn time(&mut self, subject: Subject) -> (f64, Vec<f64>) {
        let (mut times, mut within) = (Vec::new(), Vec::new());
        for _ in 0..TIMES {
            let began = Instant::now();
            (0..CALLS).for_each(|_| subject.call());
            times.push(began.elapsed().as_nanos() as f64 / f64::from(CALLS));
            let mut bytes = Vec::new();
            while self.drain(&mut bytes, DRAINED_BYTES).more {}
            let records = bytes.chunks_exact(size_of::<Record>()).filter_map(read::<Record>);
            let mut hits: Vec<_> = records.map(|r| (r.header.ts, r.header.kind)).collect();
            // Those of several CPUs are one after the other.
            hits.sort_unstable();
            let pairs = hits.windows(2).filter(|pair| pair[0].1 == kind::PROBE_BEGIN);
            within.extend(pairs.map(|pair| (pair[1].0 - pair[0].0) as f64));
        }
        (median(&mut times).unwrap_or(0.0), within)
    }
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// A function of this process that is probed to know the cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    /// The kernel does its first instruction itself.
    Pushes,
    /// The kernel has the CPU step through it.
    Steps,
    /// Two marks, each an instruction that does nothing.
    Marks,
    /// The same of marks that the compiler has put elsewhere.
    SteppedMarks,
}

/// Puts the return address and one word on the stack.
#[unsafe(naked)]
extern "C" fn pushes() {
    naked_asm!("push rbp", "pop rbp", "ret")
}

#[unsafe(naked)]
extern "C" fn steps() {
    naked_asm!("xor eax, eax", "ret")
}

/// Two instructions of a byte each.
#[unsafe(naked)]
extern "C" fn marks() {
    naked_asm!("nop", "nop", "ret")
}

/// Two instructions of two bytes each.
#[unsafe(naked)]
extern "C" fn stepped_marks() {
    naked_asm!("xor eax, eax", "xor ecx, ecx", "ret")
}

impl Subject {
    fn like(probe: &Probe) -> Subject {
        match (&probe.end, probe.is_stepped) {
            (End::Return, false) => Subject::Pushes,
            (End::Return, true) => Subject::Steps,
            (End::Marks(_), false) => Subject::Marks,
            (End::Marks(_), true) => Subject::SteppedMarks,
        }
    }

    fn code(self) -> extern "C" fn() {
        match self {
            Subject::Pushes => pushes,
            Subject::Steps => steps,
            Subject::Marks => marks,
            Subject::SteppedMarks => stepped_marks,
        }
    }

    #[inline(never)]
    fn call(self) {
        std::hint::black_box(self.code())();
    }

    /// A probe of it; `None` where this process's file cannot be found.
    fn probe(self) -> Option<Probe> {
        let (path, begin) = place(self.code() as usize as u64)?;
        let end = match self {
            Subject::Pushes | Subject::Steps => End::Return,
            Subject::Marks => End::Marks(vec![begin + 1]),
            Subject::SteppedMarks => End::Marks(vec![begin + 2]),
        };
        Some(Probe {
            name: "cost".to_owned(),
            binary: Binary::at(path),
            begins: vec![begin],
            end,
            is_stepped: matches!(self, Subject::Steps | Subject::SteppedMarks),
            unwinds: false,
        })
    }
}

/// The file, and the offset in it, of what this process has at an address.
fn place(address: u64) -> Option<(PathBuf, u64)> {
    let text = maps::read(i32::try_from(std::process::id()).ok()?).ok()?;
    let holds = |start: u64, end: u64| (start..end).contains(&address);
    let mapping = maps::parse(&text).find(|m| holds(m.start, m.end))?;
    let offset = address - mapping.start + mapping.offset;
    Some((Path::new(&mapping.path).to_owned(), offset))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_measured_lies_where_it_is_said_to_lie() {
        for (subject, code) in [
            (Subject::Pushes, &[0x55, 0x5d, 0xc3][..]),
            (Subject::Steps, &[0x31, 0xc0, 0xc3]),
            (Subject::Marks, &[0x90, 0x90, 0xc3]),
            (Subject::SteppedMarks, &[0x31, 0xc0, 0x31, 0xc9, 0xc3]),
        ] {
            let probe = subject.probe().expect("this file");
            assert_eq!(Subject::like(&probe), subject);
            let at = usize::try_from(probe.begins[0]).expect("an offset");
            assert_eq!(
                &fs::read(&probe.binary.path).expect("this file")[at..at + code.len()],
                code
            );
            subject.call();
        }
    }
}
