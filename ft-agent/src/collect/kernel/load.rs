//! Loads the programs with what they must know of this kernel, and attaches them.

use aya::{
    Btf as AyaBtf, Ebpf, EbpfError, EbpfLoader, Endianness,
    maps::{Map, MapError},
    programs::{BtfTracePoint, FEntry, FExit, PerfEvent, ProgramError, TracePoint},
};
use aya_log::EbpfLogger;
use ft_ebpf::kept;
use log::warn;
use rustix::process::geteuid;

use super::{
    Chained, Events, Group, Kernel, KernelError, KernelOptions,
    btf::Btf,
    cpu_counters,
    groups::{self, Hook, PROGRAMS, Program},
    hotplug::{Gone, Hotplug},
    layout,
    loss::LostRecords,
    observed::Observed,
    on_cpus::OnCpus,
    probes, rights,
    ring_buffers::{Plan, RingBuffers},
    sections, unreturned,
};
use crate::cpus;

/// The programs; empty when the agent was built without them.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/ft-ebpf.o"));

/// Where the kernel tells its types.
const VMLINUX_BTF: &str = "/sys/kernel/btf/vmlinux";

impl Kernel {
    /// Loads and attaches the programs of the chosen groups. From here on switches are recorded; what is
    /// filtered waits for [`Self::observe`].
    ///
    /// Tracepoints that this kernel does not have are left out ([`Self::missing`]), but for `sched_switch` and
    /// `sched_waking`.
    ///
    /// # Errors
    ///
    /// A [`KernelError`]; nothing is attached then.
    pub fn load(options: &KernelOptions) -> Result<Self, KernelError> {
        if OBJECT.is_empty() {
            return Err(KernelError::NoObject);
        }
        if !options.ring_bytes.is_power_of_two() || !(4096..=1 << 30).contains(&options.ring_bytes)
        {
            return Err(KernelError::RingSize(options.ring_bytes));
        }
        rights::check_namespace()?;
        rights::check()?;
        let own_only = rights::are_lent();
        if own_only {
            rights::check_lent(options)?;
        }
        if !options.probes.is_empty() {
            probes::check(&options.groups)?;
        }
        let data = std::fs::read(VMLINUX_BTF).map_err(KernelError::NoBtf)?;
        let btf = Btf::parse(&data)?;
        let chosen = PROGRAMS.iter().filter(|program| is_chosen(program, options));
        let present = groups::present(chosen, |name| btf.has_tracepoint(name));
        let (mut attached, mut missing) = present.map_err(KernelError::NoTracepoint)?;
        let aya_btf = AyaBtf::parse(&data, Endianness::default()).map_err(KernelError::Btf)?;
        if options.groups.contains(&Group::Section) {
            // `bpf_get_func_ip`.
            if layout::version(&layout::release()).is_some_and(|version| version < (5, 17)) {
                return Err(KernelError::NoSections("older than Linux 5.17".to_owned()));
            }
            let (found, lacks) = sections::present(&aya_btf);
            attached.extend(found);
            missing.extend(lacks);
        }
        let _memlock = rights::Memlock::raise();
        let plan = Plan::of_machine(options.ring_bytes, options.most_ring_buffers);
        let mut ebpf = load_object(options, &plan, own_only, &btf, &aya_btf)?;
        let probe_programs = match options.probes.is_empty() {
            true => None,
            false => probes::load(OBJECT, &mut ebpf)?,
        };
        let observed = Observed::new(ebpf.map("OBSERVED"))
            .map_err(|source| KernelError::Map { map: "OBSERVED", source })?;
        let records = ebpf.map_mut("RECORDS").ok_or_else(|| no_map("RECORDS"))?;
        let ring_buffers = RingBuffers::new(records, plan)?;
        let followed = cpus::online();
        cpu_counters::open(&ebpf, &options.counters, &followed)?;
        let losses = LostRecords::new(take_map(&mut ebpf, "LOSS")?);
        let logger = EbpfLogger::init(&mut ebpf)
            .inspect_err(|error| warn!("messages of the BPF programs will not be shown: {error}"))
            .ok();

        let mut kernel = Self {
            ring_buffers,
            observed,
            losses,
            logger,
            attached: Vec::new(),
            on_cpus: Vec::new(),
            hotplug: Hotplug::default(),
            followed,
            refusals: 0,
            probe_links: probes::Links::default(),
            probe_programs,
            probe_costs: Vec::new(),
            events: Events::here(),
            chained: attached.iter().any(|program| program.has_addresses()).then(Chained::default),
            missing,
            system_wide: options.system_wide,
            stack_min_ns: options.stack_min_ns,
            places_are_made: places_are_made(options),
            ended_ns: None,
            own_only,
            ebpf,
        };
        for program in &attached {
            kernel.load_program(program, &aya_btf).map_err(|error| match program.group {
                Group::Section => KernelError::from_section_load(program.name, error),
                _ => KernelError::from_load(program.name, error),
            })?;
        }
        kernel.attached = attached;
        if !options.probes.is_empty() {
            kernel.probe_costs = kernel.measure_probes(&options.probes);
        }
        // All are verified before the first one runs.
        for program in kernel.attached.clone() {
            kernel.attach_program(program, options).map_err(|source| match program.group {
                Group::Section => KernelError::no_sections(&source),
                _ => KernelError::Program { program: program.name, source },
            })?;
        }
        kernel.attach_probes(&options.probes)?;
        Ok(kernel)
    }

    fn load_program(&mut self, program: &Program, btf: &AyaBtf) -> Result<(), ProgramError> {
        let name = program.in_object(self.events);
        let loaded = self.ebpf.program_mut(name).ok_or(ProgramError::NotLoaded)?;
        if program.event(self.events).is_some() {
            return <&mut TracePoint>::try_from(loaded)?.load();
        }
        match program.hook {
            Hook::Tracepoint(tracepoint) => {
                <&mut BtfTracePoint>::try_from(loaded)?.load(tracepoint, btf)
            }
            Hook::Enters(function) => <&mut FEntry>::try_from(loaded)?.load(function, btf),
            Hook::Returns(function) => <&mut FExit>::try_from(loaded)?.load(function, btf),
            _ => <&mut PerfEvent>::try_from(loaded)?.load(),
        }
    }

    fn attach_program(
        &mut self,
        program: &'static Program,
        options: &KernelOptions,
    ) -> Result<(), ProgramError> {
        let name = program.in_object(self.events);
        let loaded = self.ebpf.program_mut(name).ok_or(ProgramError::NotLoaded)?;
        if let Some(event) = program.event(self.events) {
            let tracepoint: &mut TracePoint = loaded.try_into()?;
            return tracepoint.attach(event.category, event.name).map(drop);
        }
        match program.hook {
            Hook::Enters(_) => return <&mut FEntry>::try_from(loaded)?.attach().map(drop),
            Hook::Returns(_) => return <&mut FExit>::try_from(loaded)?.attach().map(drop),
            _ => {}
        }
        let Some(mut on_cpus) = OnCpus::of(program, options.sample_hz) else {
            return <&mut BtfTracePoint>::try_from(loaded)?.attach().map(drop);
        };
        if self.on_cpus.is_empty() {
            self.hotplug = Hotplug::listen();
        }
        on_cpus.follow(&mut self.ebpf, &self.followed, &Gone::default())?;
        self.on_cpus.push(on_cpus);
        Ok(())
    }
}

fn is_chosen(program: &Program, options: &KernelOptions) -> bool {
    let any = !options.groups.is_empty() || !options.probes.is_empty();
    let follows = program.follows && any && (!options.system_wide || kept(options) != 0);
    follows || options.groups.contains(&program.group)
}

/// Whether entries of places are made beforehand; see `PLACES_MADE` of the programs.
fn places_are_made(options: &KernelOptions) -> bool {
    let needed = layout::version(&layout::release()).is_some_and(|version| version < (6, 1));
    needed || options.places_are_made
}

/// The tables by thread that the chosen programs keep.
fn kept(options: &KernelOptions) -> u32 {
    let of = |group, table| if options.groups.contains(&group) { table } else { 0 };
    of(Group::Syscall, kept::CALLS)
        | of(Group::Futex, kept::FUTEX_CALLS)
        | of(Group::Fault, kept::FAULTS)
        | of(Group::Stack, kept::PLACES)
}

fn load_object(
    options: &KernelOptions,
    plan: &Plan,
    own_only: bool,
    btf: &Btf<'_>,
    aya_btf: &AyaBtf,
) -> Result<Ebpf, KernelError> {
    let mut globals = layout::globals(btf)?;
    if own_only {
        globals.extend(layout::owner_globals(btf, geteuid().as_raw())?);
    }
    if let Some(cgroup) = &options.cgroup {
        globals.extend(layout::cgroup_globals(btf)?);
        globals.push(("CGROUP_LEVEL", cgroup.level));
    }
    globals.push(("SYSTEM_WIDE", u32::from(options.system_wide)));
    globals.push(("ALONE", u32::from(options.alone)));
    globals.push(("AGENT", std::process::id()));
    globals.push(("RING_MARK", plan.mark()));
    let locks = |group: &Group| matches!(group, Group::Lock | Group::Section);
    globals.push(("LOCKS", u32::from(options.groups.iter().any(locks))));
    globals.push(("KEPT", kept(options)));
    globals.push(("PLACES_ARE_MADE", u32::from(places_are_made(options))));
    let preempted = (layout::is_real_time() || options.preempted_softirqs)
        && options.groups.contains(&Group::Irq);
    globals.push(("SOFTIRQS_PREEMPTED", u32::from(preempted)));
    globals.push(("COUNTERS", options.counters.len() as u32));
    globals.push(("STACKS", u32::from(options.groups.contains(&Group::Stack))));
    globals.extend(sections::globals(options.most_under_way));
    let layout = format!("RECORD_LAYOUT_{}", ft_ebpf::VERSION);
    let mut loader = EbpfLoader::new();
    loader.btf(Some(aya_btf)).map_max_entries("RECORDS", RingBuffers::entries());
    for map in cpu_counters::MAPS {
        loader.map_max_entries(map, RingBuffers::entries());
    }
    if !options.groups.contains(&Group::Lock) {
        // Its entries are large, and made when it is.
        loader.map_max_entries(unreturned::WAITS, 1);
    }
    if !options.groups.contains(&Group::Section) {
        for map in sections::MAPS {
            loader.map_max_entries(map, 1);
        }
    }
    if options.groups.contains(&Group::Stack) && places_are_made(options) {
        loader.map_max_entries(unreturned::PLACES, 1);
        loader.map_max_entries(
            unreturned::PLACES_MADE,
            options.most_under_way.unwrap_or(unreturned::MADE),
        );
    }
    if let Some(most) = options.most_under_way {
        for table in unreturned::TABLES {
            loader.map_max_entries(table, most);
        }
    }
    loader.override_global(&layout, &ft_ebpf::VERSION, true);
    let cgroup = options.cgroup.as_ref().map_or(0, |cgroup| cgroup.id);
    loader.override_global("CGROUP_ID", &cgroup, true);
    loader.override_global("CHAIN_MIN_NS", &options.stack_min_ns, true);
    for (name, value) in &globals {
        loader.override_global(name, value, true);
    }
    loader.load(OBJECT).map_err(|error| match error {
        // Among others, a global that it should have and does not.
        error @ EbpfError::ParseError(_) => KernelError::UnfitObject(error),
        error => KernelError::Object(error),
    })
}

/// A map of the object, as its own type.
fn take_map<M>(ebpf: &mut Ebpf, name: &'static str) -> Result<M, KernelError>
where
    M: TryFrom<Map, Error = MapError>,
{
    let map = ebpf.take_map(name).ok_or_else(|| no_map(name))?;
    M::try_from(map).map_err(|source| KernelError::Map { map: name, source })
}

/// That the object lacks a map.
pub(super) fn no_map(map: &'static str) -> KernelError {
    KernelError::Map { map, source: MapError::InvalidName { name: map.to_owned() } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_is_no_power_of_two_is_refused() {
        for ring_bytes in [0, 4095, 5000, 1 << 31] {
            let options = KernelOptions { ring_bytes, ..KernelOptions::default() };
            let error = Kernel::load(&options).map(drop).unwrap_err();
            assert!(matches!(error, KernelError::RingSize(_) | KernelError::NoObject), "{error}");
        }
    }

    #[test]
    fn children_are_followed_with_any_group_unless_all_are_observed_and_nothing_is_kept_of_them() {
        let chosen = |groups: &[Group], system_wide| -> Vec<&str> {
            let options =
                KernelOptions { groups: groups.to_vec(), system_wide, ..KernelOptions::default() };
            let chosen = PROGRAMS.iter().filter(|program| is_chosen(program, &options));
            chosen.map(|program| program.name).collect()
        };
        assert_eq!(
            chosen(&[Group::Fault], false),
            [
                "sched_process_fork",
                "sched_process_exit",
                "sched_process_exec",
                "fault_minor",
                "fault_major",
                "page_fault_user",
                "page_fault_kernel",
            ]
        );
        assert_eq!(chosen(&[Group::Irq], true)[0], "irq_handler_exit");
        assert!(chosen(&[], false).is_empty());
        // Whoever is observed, numbers of threads are used again.
        assert_eq!(chosen(&[Group::Fault], true)[..3], chosen(&[Group::Fault], false)[..3]);
    }
}
