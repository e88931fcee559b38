//! Probes: their programs, where they are attached, and what one of them costs on this machine.

use std::arch::naked_asm;
use std::path::{Path, PathBuf};
use std::time::Instant;

use aya::programs::uprobe::{UProbeAttachLocation, UProbeAttachPoint, UProbeLinkId, UProbeScope};
use aya::programs::{ProgramError, UProbe};
use ft_ebpf::{Probe as Record, kind, read};

use super::{Group, Kernel, KernelError, release, version};
use crate::collect::maps;
use crate::collect::probe::{End, Probe};

/// Programs of the object: for a begin, a mark that ends, and a return.
pub(super) const PROGRAMS: [&str; 3] = [BEGIN, MARK, RETURN];

const BEGIN: &str = "probe_begin";
const MARK: &str = "probe_end";
const RETURN: &str = "probe_return";

/// The first kernel that tells a program at which of its places it was called (`bpf_get_attach_cookie`).
const FIRST_KERNEL: (u32, u32) = (5, 15);

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

/// Checks that this kernel has what probes need, and that nothing else is recorded that their programs cannot be beside: those
/// of the group `lock` must know which waits are our own, and where a program is preempted by another of its kind they do not.
pub(super) fn check(groups: &[Group]) -> Result<(), KernelError> {
    if groups.contains(&Group::Lock) {
        return Err(KernelError::ProbesAndLocks);
    }
    let release = release();
    match version(&release).is_none_or(|version| version >= FIRST_KERNEL) {
        true => Ok(()),
        false => Err(KernelError::NoProbes(release)),
    }
}

impl Kernel {
    /// Has the kernel verify the programs.
    pub(super) fn load_probes(&mut self) -> Result<(), KernelError> {
        PROGRAMS.iter().try_for_each(|&name| {
            let load = |program: &mut UProbe| program.load();
            self.uprobe(name).and_then(load).map_err(|error| KernelError::from_load(name, error))
        })
    }

    /// Attaches them: an end before its begin, as all programs.
    pub(super) fn attach_probes(&mut self, probes: &[Probe]) -> Result<(), KernelError> {
        for (probe, number) in probes.iter().zip(0..) {
            let everywhere = UProbeScope::AllProcesses;
            self.attach_probe(probe, number, everywhere)
                .map_err(|source| KernelError::Probe { name: probe.name.clone(), source })?;
        }
        Ok(())
    }

    fn attach_probe(
        &mut self,
        probe: &Probe,
        number: u64,
        scope: UProbeScope,
    ) -> Result<Vec<(&'static str, UProbeLinkId)>, ProgramError> {
        let (end, ends) = match &probe.end {
            End::Return => (RETURN, &probe.begins),
            End::Marks(ends) => (MARK, ends),
        };
        let ends = ends.iter().map(|&offset| (end, offset));
        let begins = probe.begins.iter().map(|&offset| (BEGIN, offset));
        let attach = |(program, offset)| {
            let location = UProbeAttachLocation::AbsoluteOffset(offset);
            let point = UProbeAttachPoint { location, cookie: Some(number) };
            Ok((program, self.uprobe(program)?.attach(point, &probe.path, scope)?))
        };
        ends.chain(begins).map(attach).collect()
    }

    fn uprobe(&mut self, name: &str) -> Result<&mut UProbe, ProgramError> {
        self.ebpf.program_mut(name).ok_or(ProgramError::NotLoaded)?.try_into()
    }

    /// What a begin and an end of each of these cost: as much as those of a like function of this process, medians. Nothing else
    /// may be attached yet: what is recorded meanwhile is thrown away.
    pub(super) fn measure_probes(&mut self, probes: &[Probe]) -> Vec<Option<ProbeCost>> {
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
        let links = self.attach_probe(&probe, 0, UProbeScope::CallingProcess).ok()?;
        let own = std::process::id();
        self.observed.set(own, true);
        let (with, mut within) = self.time(subject);
        self.observed.set(own, false);
        for (program, link) in links {
            self.uprobe(program).and_then(|program| program.detach(link)).ok()?;
        }
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
            path,
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
    let (mapping, _) = maps::parse(&text).find(|(m, _)| holds(m.start, m.end))?;
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
            assert_eq!(&fs::read(&probe.path).expect("this file")[at..at + code.len()], code);
            subject.call();
        }
    }
}
