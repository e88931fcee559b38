//! Programs that perf's events call: there is an event for each CPU, and CPUs come and go.

use std::collections::BTreeMap;

use aya::{
    Ebpf,
    programs::{
        PerfEvent, ProgramError,
        perf_event::{
            PerfEventConfig, PerfEventLinkId, PerfEventScope, SamplePolicy, SoftwareEvent,
        },
    },
};

use super::groups::{Hook, Program};
use super::hotplug::Gone;

/// One of them, and where it is attached.
pub(super) struct OnCpus {
    program: &'static Program,
    event: SoftwareEvent,
    period: u64,
    links: BTreeMap<u32, PerfEventLinkId>,
}

impl OnCpus {
    /// Of a program that perf's events call; `None` of any other.
    pub(super) fn of(program: &'static Program, sample_hz: u32) -> Option<OnCpus> {
        let (event, period) = match program.hook {
            Hook::Tracepoint(_) | Hook::Enters(_) | Hook::Returns(_) => return None,
            Hook::CpuClock => (SoftwareEvent::CpuClock, 1_000_000_000 / u64::from(sample_hz)),
            Hook::MinorFault => (SoftwareEvent::PageFaultsMin, 1),
            Hook::MajorFault => (SoftwareEvent::PageFaultsMaj, 1),
        };
        Some(OnCpus { program, event, period, links: BTreeMap::new() })
    }

    /// Attaches it on each CPU that is online and where it is not yet, and detaches it where there is none any more: the
    /// event of a CPU that goes offline does not come back with it (`perf_event_exit_cpu_context`, kernel/events/core.c),
    /// even if it has come back since it was `gone`.
    ///
    /// # Errors
    ///
    /// That of one CPU where it could not be attached; it is on all others. One that is coming is online before it takes
    /// events: a later call finds it ready.
    pub(super) fn follow(
        &mut self,
        ebpf: &mut Ebpf,
        online: &[u32],
        gone: &Gone,
    ) -> Result<(), ProgramError> {
        let loaded = ebpf.program_mut(self.program.name).ok_or(ProgramError::NotLoaded)?;
        let loaded: &mut PerfEvent = loaded.try_into()?;
        let stays = |cpu: &u32| online.contains(cpu) && !gone.has(*cpu);
        let leave: Vec<u32> = self.links.keys().copied().filter(|cpu| !stays(cpu)).collect();
        let mut refused = Ok(());
        for link in leave.iter().filter_map(|cpu| self.links.remove(cpu)) {
            refused = refused.and(loaded.detach(link));
        }
        for &cpu in online {
            if !self.links.contains_key(&cpu) {
                let event = PerfEventConfig::Software(self.event);
                let scope = PerfEventScope::AllProcessesOneCpu { cpu };
                let policy = SamplePolicy::Period(self.period);
                match loaded.attach(event, scope, policy, false) {
                    Ok(link) => drop(self.links.insert(cpu, link)),
                    Err(error) => refused = Err(error),
                }
            }
        }
        refused
    }
}
