//! Probes: their programs, and where they are attached.

mod cost;
mod links;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aya::Ebpf;
use aya::programs::uprobe::{UProbeAttachLocation, UProbeAttachPoint, UProbeLinkId, UProbeScope};
use aya::programs::{ProgramError, UProbe};

use super::{Group, Kernel, KernelError, release, version};
use crate::collect::probe::{End, Probe};
pub use cost::ProbeCost;
pub(super) use links::{Links, Programs};

/// Programs of the object, in the order in which they are attached: for a return, a mark that ends, and a begin.
pub(super) const PROGRAMS: [&str; 3] = [RETURN, MARK, BEGIN];

const BEGIN: &str = "probe_begin";
const MARK: &str = "probe_end";
const RETURN: &str = "probe_return";

/// The first kernel that tells a program at which of its places it was called (`bpf_get_attach_cookie`).
const FIRST_KERNEL: (u32, u32) = (5, 15);

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

/// Has the kernel verify the programs. `None` where aya has them, for perf events: of kernels without links.
pub(super) fn load(object: &[u8], ebpf: &mut Ebpf) -> Result<Option<Programs>, KernelError> {
    if links::are_there() {
        let programs = Programs::load(object, ebpf).map(Some);
        return programs.map_err(|(name, error)| KernelError::from_load(name, error));
    }
    for name in PROGRAMS {
        let loaded = uprobe(ebpf, name).and_then(|program| program.load());
        loaded.map_err(|error| KernelError::from_load(name, error))?;
    }
    Ok(None)
}

/// Those that are loaded, and their names.
pub(super) fn loaded<'k>(
    ebpf: &'k Ebpf,
    programs: Option<&'k Programs>,
) -> impl Iterator<Item = (&'static str, BorrowedFd<'k>)> {
    PROGRAMS.into_iter().filter_map(move |name| match programs {
        Some(programs) => Some((name, programs.program(name)?)),
        None => Some((name, ebpf.program(name)?.fd().ok()?.as_fd())),
    })
}

fn uprobe<'e>(ebpf: &'e mut Ebpf, name: &str) -> Result<&'e mut UProbe, ProgramError> {
    ebpf.program_mut(name).ok_or(ProgramError::NotLoaded)?.try_into()
}

/// Where in its file a probe calls a program.
fn offsets<'p>(probe: &'p Probe, program: &str) -> &'p [u64] {
    match (&probe.end, program) {
        (_, BEGIN) | (End::Return, RETURN) => &probe.begins,
        (End::Marks(ends), MARK) => ends,
        _ => &[],
    }
}

/// What is attached.
enum Attached {
    Links(Vec<OwnedFd>),
    Events(Vec<(&'static str, UProbeLinkId)>),
}

impl Kernel {
    /// Attaches them: an end before its begin, as all programs.
    pub(super) fn attach_probes(&mut self, probes: &[Probe]) -> Result<(), KernelError> {
        match self.attach_in(probes, None)? {
            Attached::Links(links) => {
                self.probe_links = Links::hold(links).map_err(KernelError::ProbeThreads)?;
            }
            // aya has them.
            Attached::Events(_) => (),
        }
        Ok(())
    }

    /// In one process, or in all.
    fn attach_in(
        &mut self,
        probes: &[Probe],
        process: Option<u32>,
    ) -> Result<Attached, KernelError> {
        let refused =
            |probe: &Probe, source| KernelError::Probe { name: probe.name.clone(), source };
        if let Some(programs) = &self.probe_programs {
            let links = programs.attach(probes, process);
            let links =
                links.map_err(|(probe, error)| refused(probe, ProgramError::IOError(error)))?;
            return Ok(Attached::Links(links));
        }
        let scope = match process {
            Some(_) => UProbeScope::CallingProcess,
            None => UProbeScope::AllProcesses,
        };
        let mut events = Vec::new();
        for (probe, cookie) in probes.iter().zip(0..) {
            let attached = self.attach_events(probe, cookie, scope);
            events.extend(attached.map_err(|error| refused(probe, error))?);
        }
        Ok(Attached::Events(events))
    }

    fn attach_events(
        &mut self,
        probe: &Probe,
        cookie: u64,
        scope: UProbeScope,
    ) -> Result<Vec<(&'static str, UProbeLinkId)>, ProgramError> {
        let places = PROGRAMS.into_iter().flat_map(|program| {
            offsets(probe, program).iter().map(move |&offset| (program, offset))
        });
        let attach = |(program, offset)| {
            let location = UProbeAttachLocation::AbsoluteOffset(offset);
            let point = UProbeAttachPoint { location, cookie: Some(cookie) };
            Ok((
                program,
                uprobe(&mut self.ebpf, program)?.attach(point, probe.binary.anchored(), scope)?,
            ))
        };
        places.map(attach).collect()
    }

    fn detach(&mut self, attached: Attached) -> Result<(), ProgramError> {
        match attached {
            Attached::Links(links) => drop(links),
            Attached::Events(events) => {
                for (program, event) in events {
                    uprobe(&mut self.ebpf, program)?.detach(event)?;
                }
            }
        }
        Ok(())
    }
}
