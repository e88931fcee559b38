//! The kernel side: loads the BPF programs, attaches them, and copies what they write.
//!
//! Nothing is parsed here: [`Kernel::drain`] checks the length of each record against its kind and
//! appends it, ready for a [`Frame::Kernel`](ft_trace::spool::frame::Frame::Kernel). The programs wake nobody, so
//! the caller polls. What they lose is counted where it is lost and told by [`Kernel::losses`]. Dropping a
//! [`Kernel`] detaches everything.
//!
//! Each CPU, or some neighbours, have a ring buffer ([`ring_buffers`]). The order of records is that of the buffers, and in
//! each of their reservation, which for an interrupt within a program is not exactly that of their times.

mod btf;
mod chained;
mod error;
mod events;
mod groups;
mod layout;
mod loss;
mod observed;
mod on_cpus;
mod probes;
mod rights;
mod ring_buffers;
mod unreturned;

use aya::{
    Btf as AyaBtf, Ebpf, EbpfError, EbpfLoader, Endianness,
    maps::{Map, MapError},
    programs::{BtfTracePoint, PerfEvent, ProgramError, TracePoint},
};
use aya_log::EbpfLogger;
use log::{Log, warn};
use rustix::process::geteuid;

pub(crate) use self::layout::{release, version};
use self::{
    btf::Btf,
    groups::{Hook, PROGRAMS, Program},
    loss::LostRecords,
    observed::Observed,
    on_cpus::OnCpus,
    ring_buffers::RingBuffers,
};
pub use self::{
    chained::Chained,
    error::KernelError,
    events::Events,
    groups::{Group, Missing, UnknownGroup},
    loss::{KernelLoss, LossCause},
    probes::ProbeCost,
};
use crate::{
    collect::{cgroup::Cgroup, probe::Probe},
    cpus,
};
use ft_ebpf::Chain;
use ft_trace::spool::frame::kernel_record_len;

/// The programs; empty when the agent was built without them.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/ft-ebpf.o"));

/// Where the kernel tells its types.
const VMLINUX_BTF: &str = "/sys/kernel/btf/vmlinux";

/// Longest record; [`Kernel::drain`] takes no more unless there is room for one of these.
const MAX_RECORD_BYTES: usize = size_of::<Chain>() + 8 * (Chain::MAX_USER + Chain::MAX_KERNEL);

/// What to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelOptions {
    /// Groups of programs.
    pub groups: Vec<Group>,
    /// Record what concerns any process, not only the observed ones.
    pub system_wide: bool,
    /// Record what concerns the tasks of this cgroup, too.
    pub cgroup: Option<Cgroup>,
    /// Size of the ring buffers of all CPUs together: a power of two, at least a page.
    pub ring_bytes: u32,
    /// Call chains are recorded of threads that were off the CPU for at least this long, ns.
    pub stack_min_ns: u64,
    /// Samples of a CPU in a second.
    pub sample_hz: u32,
    /// At most so many ring buffers. More than one for each CPU are of no use; fewer show what they are good for.
    pub most_ring_buffers: u32,
    /// What is probed in programs; records have the place of each in this list.
    pub probes: Vec<Probe>,
}

impl Default for KernelOptions {
    /// The default groups, observed processes only; 16 MiB, about 0.1 s of a million records per second, and 1 MiB for each
    /// CPU where there are more than 16.
    fn default() -> Self {
        Self {
            groups: Group::DEFAULT.to_vec(),
            system_wide: false,
            cgroup: None,
            ring_bytes: ring_buffers::usual_bytes(),
            stack_min_ns: 100_000,
            sample_hz: 997,
            most_ring_buffers: u32::MAX,
            probes: Vec::new(),
        }
    }
}

/// What [`Kernel::drain`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Records appended.
    pub records: u64,
    /// Records left out because their length does not fit their kind: the object is of another version.
    pub malformed: u64,
    /// It stopped because `max_bytes` were reached: the next call goes on there.
    pub more: bool,
    /// How full the fullest ring buffer was, of [`FULL`](crate::collect::user::FULL); known when a pass over all is over.
    pub fill: u32,
}

/// The attached programs.
pub struct Kernel {
    ring_buffers: RingBuffers,
    observed: Observed,
    losses: LostRecords,
    logger: Option<EbpfLogger<&'static dyn Log>>,
    attached: Vec<&'static Program>,
    /// Those of them that are attached on each CPU, and on which.
    on_cpus: Vec<OnCpus>,
    online: Vec<u32>,
    /// What each probe costs, where that is known.
    probe_costs: Vec<Option<ProbeCost>>,
    /// Whether they run at perf's events, where there is one.
    events: Events,
    /// Processes whose addresses were recorded, where any are.
    chained: Option<Chained>,
    missing: Vec<Missing>,
    system_wide: bool,
    /// Processes of others are not observed.
    own_only: bool,
    ebpf: Ebpf,
}

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
        let (attached, missing) = present.map_err(KernelError::NoTracepoint)?;
        let aya_btf = AyaBtf::parse(&data, Endianness::default()).map_err(KernelError::Btf)?;
        let _memlock = rights::Memlock::raise();
        let mut ebpf = load_object(options, own_only, &btf, &aya_btf)?;
        let observed = Observed::new(ebpf.map("OBSERVED"))
            .map_err(|source| KernelError::Map { map: "OBSERVED", source })?;
        let records = ebpf.map_mut("RECORDS").ok_or_else(|| no_map("RECORDS"))?;
        let ring_buffers =
            RingBuffers::new(records, options.ring_bytes, options.most_ring_buffers)?;
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
            online: cpus::online(),
            probe_costs: Vec::new(),
            events: Events::here(),
            chained: attached.iter().any(|program| program.has_addresses()).then(Chained::default),
            missing,
            system_wide: options.system_wide,
            own_only,
            ebpf,
        };
        for program in &attached {
            kernel
                .load_program(program, &aya_btf)
                .map_err(|error| KernelError::from_load(program.name, error))?;
        }
        kernel.attached = attached;
        if !options.probes.is_empty() {
            kernel.load_probes()?;
            kernel.probe_costs = kernel.measure_probes(&options.probes);
        }
        // All are verified before the first one runs.
        for program in kernel.attached.clone() {
            kernel
                .attach_program(program, options)
                .map_err(|source| KernelError::Program { program: program.name, source })?;
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
        let Some(mut on_cpus) = OnCpus::of(program, options.sample_hz) else {
            return <&mut BtfTracePoint>::try_from(loaded)?.attach().map(drop);
        };
        on_cpus.follow(&mut self.ebpf, &self.online)?;
        self.on_cpus.push(on_cpus);
        Ok(())
    }

    /// Takes note of CPUs that have come and gone since: samples and the ends of page faults are recorded on those that are
    /// online. One that goes and comes between two calls has neither from then on.
    pub fn follow_cpus(&mut self) {
        if self.on_cpus.is_empty() {
            return;
        }
        let online = cpus::online();
        if online == self.online {
            return;
        }
        for program in &mut self.on_cpus {
            if let Err(error) = program.follow(&mut self.ebpf, &online) {
                warn!("a CPU that has come is not recorded as the others: {error}");
            }
        }
        self.online = online;
    }

    /// Tracepoints of the chosen groups that this kernel does not have.
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// What each probe costs, as measured before anything was recorded; `None` where that could not be.
    pub fn probe_costs(&self) -> &[Option<ProbeCost>] {
        &self.probe_costs
    }

    /// The recording begins at this time, CLOCK_MONOTONIC ns: no loss begins before it.
    pub fn begin(&mut self, ns: u64) {
        self.losses.begin(ns);
    }

    /// Records what concerns a process from now on; its future children join by themselves. `pid` is that of
    /// the initial PID namespace. Without effect on a process of another user, where this one has its rights from the
    /// program's file alone.
    pub fn observe(&mut self, pid: u32) {
        if !self.own_only || rights::is_own(pid) {
            self.observed.set(pid, true);
        }
    }

    /// Ends [`Self::observe`]; children that joined stay. Without effect when the process is not observed.
    pub fn unobserve(&mut self, pid: u32) {
        self.observed.set(pid, false);
    }

    /// Whether the process is observed.
    pub fn is_observed(&self, pid: u32) -> bool {
        self.system_wide || self.observed.contains(pid)
    }

    /// Appends the records that have been written since, unparsed, up to `max_bytes` of them: in a pass over all ring
    /// buffers, that takes from each what was there when its turn came.
    pub fn drain(&mut self, out: &mut Vec<u8>, max_bytes: usize) -> Drained {
        if let Some(logger) = &mut self.logger {
            logger.flush();
        }
        let mut drained = Drained::default();
        let end = out.len().saturating_add(max_bytes);
        while let Some(buffer) = self.ring_buffers.current() {
            if out.len() + MAX_RECORD_BYTES > end {
                drained.more = true;
                return drained;
            }
            let Some(record) = buffer.next() else {
                self.ring_buffers.advance();
                continue;
            };
            if is_well_formed(&record) {
                if let Some(chained) = &mut self.chained {
                    chained.note(&record);
                }
                out.extend_from_slice(&record);
                drained.records += 1;
            } else {
                drained.malformed += 1;
            }
        }
        drained.fill = self.ring_buffers.again();
        drained
    }

    /// The processes of which addresses were recorded since the last call, and those that have executed another program;
    /// `None` where no addresses are recorded.
    pub fn take_chained(&mut self) -> Option<Chained> {
        self.chained.as_mut().map(std::mem::take)
    }

    /// Appends the system calls that have not returned, faults of which no end was seen, and waits for locks of the kernel
    /// that have not ended: for the end of a recording. `false` when they cannot be read.
    pub fn unreturned(&self, out: &mut Vec<u8>) -> bool {
        let records = |group| self.attached.iter().any(|program| program.group == group);
        let kept = unreturned::UNDER_WAY.iter().filter(|kept| records(kept.group));
        kept.fold(true, |all, kept| all & kept.append(self.ebpf.map(kept.map), out).is_ok())
    }

    /// What was lost since the last call, or since the start: records that found no room, and runs of a
    /// program that the kernel left out.
    ///
    /// # Errors
    ///
    /// [`KernelError::Map`] when the counters cannot be read.
    pub fn losses(&mut self) -> Result<Vec<KernelLoss>, KernelError> {
        let ebpf = &self.ebpf;
        let programs = self.attached.iter().map(|p| (p.name, p.in_object(self.events)));
        // Those that are not loaded have no descriptor.
        let programs = programs.chain(probes::PROGRAMS.map(|name| (name, name)));
        let programs = programs.filter_map(|(name, in_object)| {
            let fd = ebpf.program(in_object)?.fd().ok()?;
            Some((name, std::os::fd::AsFd::as_fd(fd)))
        });
        self.losses.look(programs).map_err(|source| KernelError::Map { map: "LOSS", source })
    }
}

fn is_chosen(program: &Program, options: &KernelOptions) -> bool {
    let any = !options.groups.is_empty() || !options.probes.is_empty();
    let follows = program.follows && !options.system_wide && any;
    follows || options.groups.contains(&program.group)
}

fn load_object(
    options: &KernelOptions,
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
    globals.push(("LOCKS", u32::from(options.groups.contains(&Group::Lock))));
    let preempted = layout::is_real_time() && options.groups.contains(&Group::Irq);
    globals.push(("SOFTIRQS_PREEMPTED", u32::from(preempted)));
    globals.push(("STACKS", u32::from(options.groups.contains(&Group::Stack))));
    let layout = format!("RECORD_LAYOUT_{}", ft_ebpf::VERSION);
    let mut loader = EbpfLoader::new();
    loader.btf(Some(aya_btf)).map_max_entries("RECORDS", RingBuffers::entries());
    if !options.groups.contains(&Group::Lock) {
        // Its entries are large, and made when it is.
        loader.map_max_entries(unreturned::WAITS, 1);
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

fn no_map(map: &'static str) -> KernelError {
    KernelError::Map { map, source: MapError::InvalidName { name: map.to_owned() } }
}

/// Whether the length of a record is that of its kind, and of the call chain that it says to have.
fn is_well_formed(record: &[u8]) -> bool {
    kernel_record_len(record) == Some(record.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_records_of_their_length_pass() {
        let record = |kind: u16, len: usize| {
            let mut bytes = vec![0; len];
            bytes[8..10].copy_from_slice(&kind.to_ne_bytes());
            bytes
        };
        let chain = |addresses: i32, len: usize| {
            let mut bytes = record(ft_ebpf::kind::SAMPLE, len);
            bytes[40..44].copy_from_slice(&addresses.to_ne_bytes());
            bytes
        };
        assert!(is_well_formed(&chain(2, size_of::<Chain>() + 16)));
        assert!(is_well_formed(&chain(-14, size_of::<Chain>())));
        assert!(!is_well_formed(&chain(3, size_of::<Chain>() + 16)));
        assert!(!is_well_formed(&chain(128, size_of::<Chain>() + 8 * 128)));
        assert!(is_well_formed(&record(ft_ebpf::kind::SWITCH, size_of::<ft_ebpf::Switch>())));
        assert!(is_well_formed(&record(ft_ebpf::kind::EXIT, size_of::<ft_ebpf::Task>())));
        assert!(!is_well_formed(&record(ft_ebpf::kind::SWITCH, 64)));
        assert!(!is_well_formed(&record(999, 32)));
        assert!(!is_well_formed(&[0; 9]));
    }

    #[test]
    fn no_record_is_longer_than_a_chain() {
        for kind in 0..=u16::MAX {
            let bytes = ft_trace::spool::frame::kernel_record_bytes(kind);
            assert!(bytes.is_none_or(|bytes| bytes <= MAX_RECORD_BYTES), "{kind}");
        }
    }

    #[test]
    fn a_buffer_that_is_no_power_of_two_is_refused() {
        for ring_bytes in [0, 4095, 5000, 1 << 31] {
            let options = KernelOptions { ring_bytes, ..KernelOptions::default() };
            let error = Kernel::load(&options).map(drop).unwrap_err();
            assert!(matches!(error, KernelError::RingSize(_) | KernelError::NoObject), "{error}");
        }
    }

    #[test]
    fn children_are_followed_with_any_group_unless_all_are_observed() {
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
                "fault_minor",
                "fault_major",
                "page_fault_user",
                "page_fault_kernel",
                "fault_end",
            ]
        );
        assert_eq!(chosen(&[Group::Irq], true)[0], "irq_handler_exit");
        assert!(chosen(&[], false).is_empty());
    }
}
