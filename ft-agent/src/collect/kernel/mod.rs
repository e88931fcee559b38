//! The kernel side: loads the BPF programs, attaches them, and copies what they write.
//!
//! Nothing is parsed here: [`Kernel::drain`] checks the length of each record against its kind and
//! appends it, ready for a [`Frame::Kernel`](ft_trace::spool::frame::Frame::Kernel). The programs wake nobody, so
//! the caller polls. What they lose is counted where it is lost and reported by [`Kernel::losses`]. Dropping a
//! [`Kernel`] detaches everything.
//!
//! Each CPU, or some neighbours, have a ring buffer (`ring_buffers.rs`). The order of records is that of the buffers, and in
//! each of their reservation, which for an interrupt within a program is not exactly that of their times.

mod bpf;
mod btf;
mod chained;
mod cpu_counters;
mod error;
mod events;
mod groups;
mod hotplug;
mod layout;
mod load;
mod loss;
mod observed;
mod on_cpus;
mod probes;
mod rights;
mod ring_buffers;
mod sections;
mod unreturned;

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use aya::{
    Ebpf,
    maps::{MapData, PerCpuArray},
};
use aya_log::EbpfLogger;
use log::{Log, warn};

pub(crate) use self::layout::{release, version};
pub use self::{
    chained::Chained,
    error::KernelError,
    events::Events,
    groups::{Group, Missing, UnknownGroup},
    loss::{KernelLoss, LossCause},
    probes::ProbeCost,
    rights::usual_groups,
};
use self::{
    groups::Program,
    hotplug::Hotplug,
    loss::LostRecords,
    observed::Observed,
    on_cpus::OnCpus,
    probes::{Links, Programs},
    ring_buffers::RingBuffers,
    unreturned::{Kept, PLACES, PLACES_MADE, Until},
};
use crate::{
    clock::monotonic_ns,
    collect::{cgroup::Cgroup, probe::Probe},
    cpus,
};
use ft_ebpf::Chain;
use ft_trace::spool::frame::kernel_record_len;
use ft_user::layout::Counter;

/// Longest record; [`Kernel::drain`] takes no more unless there is room for one of these.
///
/// Limit: cannot be reached: the longest call chain, 64 frames of a round; a longer one is damaged and counted.
/// Shown by: `what_is_unknown_or_cut_ends_its_frame`.
const MAX_RECORD_BYTES: usize = size_of::<Chain>() + Chain::MAX_TAIL;

/// A CPU that comes takes events within so many calls of [`Kernel::follow_cpus`].
///
/// Limit: the agent says on stderr that this CPU is not recorded as the others, and goes on trying; the trace does not
/// say so.
/// Shown by: not shown: it takes a kernel that refuses one CPU.
const REFUSALS: u32 = 10;

/// How long programs that have begun when the recording ends are given to end.
///
/// Limit: what one of them does later, which would be preempted or held up by the host for so long, can be missing at
/// the end.
/// Shown by: `no_call_is_lost_between_the_rings_and_what_is_under_way`.
const IN_FLIGHT: Duration = Duration::from_micros(200);

/// What to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelOptions {
    /// Groups of programs.
    pub groups: Vec<Group>,
    /// Record what concerns any process, not only the observed ones.
    pub system_wide: bool,
    /// What an observed process has started is not observed because of that.
    pub alone: bool,
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
    /// Entries of each table of what is under way: system calls, futexes, page faults, waits for locks of the kernel, threads
    /// off the CPU, softirqs; of the group `section` what is open at once, the threads, and the callers. `None`: as many as the
    /// programs declare; fewer show what becomes of the others.
    pub most_under_way: Option<u32>,
    /// Softirqs are taken for such as can be preempted, as on a real-time kernel they always are; each then has an entry in such a
    /// table. Right on any kernel, at a higher price.
    pub preempted_softirqs: bool,
    /// Where threads were that have left the CPU is kept in entries that are made beforehand, as on kernels before 6.1 it always is:
    /// fewer, and of memory that is taken at once.
    pub places_are_made: bool,
    /// Counters of each CPU that are read when a thread leaves it, with the group `sched`; two at most.
    pub counters: Vec<&'static Counter>,
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
            alone: false,
            cgroup: None,
            ring_bytes: ring_buffers::usual_bytes(),
            stack_min_ns: 100_000,
            sample_hz: 97,
            most_ring_buffers: u32::MAX,
            most_under_way: None,
            preempted_softirqs: false,
            places_are_made: false,
            counters: Vec::new(),
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
    hotplug: Hotplug,
    /// The CPUs on which all of them are.
    followed: Vec<u32>,
    /// Calls of [`Kernel::follow_cpus`] in a row in which one could not be attached.
    refusals: u32,
    /// Where probes are attached; before the programs, so that it is gone before them.
    probe_links: Links,
    /// Their programs, where the kernel has links.
    probe_programs: Option<Programs>,
    /// What each probe costs, where that is known.
    probe_costs: Vec<Option<ProbeCost>>,
    /// Whether they run at perf's events, where there is one.
    events: Events,
    /// Processes whose addresses were recorded, where any are.
    chained: Option<Chained>,
    missing: Vec<Missing>,
    system_wide: bool,
    /// Chains of threads that were off the CPU for less are not recorded, ns.
    stack_min_ns: u64,
    /// Which of two tables has where threads were.
    places_are_made: bool,
    /// When nothing was recorded any more.
    ended_ns: Option<u64>,
    /// Processes of others are not observed.
    own_only: bool,
    ebpf: Ebpf,
}

impl Kernel {
    /// Takes note of CPUs that have come and gone since: samples and the ends of page faults are recorded on those that are
    /// online. Between a CPU's coming and this call it has neither. Where the kernel does not tell of CPUs that go, one
    /// that goes and comes between two calls has neither from then on.
    pub fn follow_cpus(&mut self) {
        if self.on_cpus.is_empty() {
            return;
        }
        // First who went, then who is there: one that goes in between is reported the next time.
        let gone = self.hotplug.gone();
        let online = cpus::online();
        if gone.is_nobody() && online == self.followed {
            return;
        }
        let mut refused = None;
        for program in &mut self.on_cpus {
            refused = program.follow(&mut self.ebpf, &online, &gone).err().or(refused);
        }
        let Some(error) = refused else {
            (self.followed, self.refusals) = (online, 0);
            return;
        };
        // Once more the next time, whatever it is.
        self.followed.clear();
        self.refusals += 1;
        if self.refusals == REFUSALS {
            warn!("a CPU that has come is not recorded as the others: {error}");
        }
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
            if let Some(chained) = &mut self.chained {
                // It may hang from beginning to end, where its chains are the last records.
                chained.processes.insert(pid);
            }
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

    /// Buffers that have something new to be read when they have come to be an eighth full, or when addresses are of a process that has
    /// begun just now.
    pub fn ring_buffers(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.ring_buffers.descriptors()
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

    /// Ends the recording: nothing is recorded from the returned time on, CLOCK_MONOTONIC ns. What is under way stays as it is
    /// then, so that each call has its return in a ring buffer, or is still among [`Self::unreturned`].
    pub fn end(&mut self) -> u64 {
        if let Some(ended) = self.ended_ns {
            return ended;
        }
        self.observed.end();
        // Programs that have begun go on; they are not preempted, and take microseconds.
        std::thread::sleep(IN_FLIGHT);
        *self.ended_ns.insert(monotonic_ns() as u64)
    }

    /// Appends the system calls that have not returned, faults of which no end was seen, waits for locks of the kernel
    /// that have not ended, chains of threads that are off the CPU, and what was counted of sections under such locks: for the end of
    /// a recording. `false` when they cannot be read.
    pub fn unreturned(&self, out: &mut Vec<u8>) -> bool {
        let until = Until {
            ns: self.ended_ns.unwrap_or_else(|| monotonic_ns() as u64),
            stack_min_ns: self.stack_min_ns,
        };
        let map = |kept: &Kept| self.ebpf.map(self.in_object(kept.map));
        let records = |group| self.attached.iter().any(|program| program.group == group);
        let kept = unreturned::UNDER_WAY.iter().filter(|kept| records(kept.group));
        let all = kept.fold(true, |all, kept| all & kept.append(map(kept), until, out).is_ok());
        all & (!records(Group::Section)
            || sections::append(self.ebpf.map(sections::COUNTS), out).is_ok())
    }

    /// Waits of observed threads for locks of the programs' maps and ring buffers, which have no records; `None` without the group
    /// `lock`, or when they cannot be read.
    pub fn own_lock_waits(&self) -> Option<u64> {
        let counted = self.attached.iter().any(|program| program.group == Group::Lock);
        let map = self.ebpf.map("OWN_WAITS").filter(|_| counted)?;
        let of_cpus: PerCpuArray<&MapData, u64> = map.try_into().ok()?;
        Some(of_cpus.get(&0, 0).ok()?.iter().sum())
    }

    /// The map of the object that is this table.
    fn in_object(&self, table: &'static str) -> &'static str {
        if table == PLACES && self.places_are_made { PLACES_MADE } else { table }
    }

    /// The threads of which the programs keep something: calls, calls about futexes, page faults, places. None is left of a
    /// thread that has ended; for tests of that.
    pub fn kept(&self) -> [(&'static str, Vec<u32>); 4] {
        let tables = ["CALLS", "FUTEX_CALLS", "FAULTS", "PLACES"];
        tables
            .map(|table| (table, unreturned::threads(table, self.ebpf.map(self.in_object(table)))))
    }

    /// What was lost since the last call, or since the start: records that found no room, and runs of a
    /// program that the kernel left out.
    ///
    /// # Errors
    ///
    /// [`KernelError::Map`] when the counters cannot be read.
    pub fn losses(&mut self) -> Result<Vec<KernelLoss>, KernelError> {
        self.lost(true)
    }

    /// The same, but for runs that were left out in the last second: a later call tells them.
    ///
    /// # Errors
    ///
    /// As [`Kernel::losses`].
    pub fn losses_so_far(&mut self) -> Result<Vec<KernelLoss>, KernelError> {
        self.lost(false)
    }

    fn lost(&mut self, all: bool) -> Result<Vec<KernelLoss>, KernelError> {
        let ebpf = &self.ebpf;
        let programs = self.attached.iter().map(|p| (p.name, p.in_object(self.events)));
        let programs = programs.filter_map(|(name, in_object)| {
            let fd = ebpf.program(in_object)?.fd().ok()?;
            Some((name, fd.as_fd()))
        });
        let programs = programs.chain(probes::loaded(ebpf, self.probe_programs.as_ref()));
        self.losses.look(all, programs).map_err(|source| KernelError::Map { map: "LOSS", source })
    }
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
}
