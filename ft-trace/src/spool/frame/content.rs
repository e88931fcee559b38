//! What the frames carry. What is rare is JSON, and its fields may be missing.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::number::count;

/// Facts of the machine and of the recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Start {
    /// Version of the agent.
    pub agent_version: String,
    /// Version of the shared-memory layout.
    pub user_layout: u32,
    /// Version of the kernel record layout.
    pub kernel_layout: u32,
    /// Host name.
    pub host: String,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// `uname -r`.
    pub kernel: String,
    /// CPU model.
    pub cpu_model: String,
    /// The highest number that a CPU can have, and one.
    pub cpus: u32,
    /// The CPU says that a hypervisor is there.
    pub hypervisor: bool,
    /// Stolen from each CPU since boot, by its number, ns (/proc/stat); null where it is offline, empty when not known.
    pub steal_ns: Vec<Option<i64>>,
    /// TSC cycles per second, as measured at the start.
    pub tsc_hz: f64,
    /// Command that is recorded, empty with `-p`.
    pub command: Vec<String>,
    /// Build id of the program, in hexadecimal digits: of the file that the command means, as it was just before the
    /// recording; with `-p`, of what all those processes execute. A script has none, nor its interpreter for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// Kernel groups that are recorded; empty with `-k none`.
    pub kernel_groups: Vec<String>,
    /// Globs of enabled sites.
    pub events: Vec<String>,
    /// All threads of the system are observed (`-a`).
    pub system_wide: bool,
    /// CLOCK_MONOTONIC at the start, ns.
    pub start_ns: i64,
    /// Of a snapshot: where its window begins, CLOCK_MONOTONIC ns. What is older is left out.
    pub window_from_ns: Option<i64>,
    /// What the anchors of the spool's files have, in hexadecimal digits: where reading goes on behind damage. Empty in a spool
    /// without anchors.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// The command runs with the preload library.
    pub preload: bool,
    /// Tracepoints of `kernel_groups` that the kernel does not have: what they record is missing, and no loss counts it.
    pub missing: Vec<MissingTracepoint>,
    /// Why programs that start meanwhile cannot register, which the recorded processes may fork.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<String>,
    /// The kernel's clock source, as in `/sys/devices/system/clocksource/`; empty when not known.
    pub clock_source: String,
    /// Flags of an invariant TSC that the CPU does not announce: `constant_tsc`, `nonstop_tsc`.
    pub tsc_lacks: Vec<String>,
    /// The process that records, in its own PID namespace; with the kernel recorded, the number that the kernel's
    /// records have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_pid: Option<i32>,
    /// What an event of two words cost the agent itself at the start, ns: `ft_user`'s write into a ring of its own, with
    /// warm caches. Missing where events are counted (`counters`), which costs more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_cost_ns: Option<f64>,
    /// Call chains are recorded of threads that were off the CPU for at least this long, ns; with the group `stack`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack_min_ns: Option<i64>,
    /// Samples of a CPU in a second; with the group `profile`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_hz: Option<u32>,
    /// Counters that threads read with each event, two at most (`--counter`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<String>,
    /// They are read by a system call where the processor cannot be asked (`--counter-calls`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub counter_calls: bool,
    /// Counters that the kernel reads at switches, two at most (`--switch-counter`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub switch_counters: Vec<String>,
    /// Probes of programs, by the numbers that their records have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<Probe>,
    /// The time at which it was to begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_at: Option<StartAt>,
    /// Names of softirqs by number and of interrupt lines (`/proc/interrupts`).
    pub irq_names: Vec<IrqName>,
    /// Clocks that can be synchronised by PTP, as `/sys/class/ptp` names them: `ptp0 KVM virtual PTP`. What they show is
    /// not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ptp_clocks: Vec<String>,
}

/// When a recording was to begin, and when it did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartAt {
    /// The time as it was asked for.
    pub asked: String,
    /// That time, CLOCK_REALTIME ns.
    pub asked_ns: i64,
    /// The start of the recording, CLOCK_REALTIME ns: a moment later, or much where the machine was not ready.
    pub began_ns: i64,
}

/// A tracepoint that the kernel does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingTracepoint {
    /// Kernel group that has it.
    pub group: String,
    /// Its name.
    pub tracepoint: String,
}

/// A probe: calls of a function, or what lies between two marks of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Probe {
    /// What it is called: `redis-server:processCommand`.
    pub name: String,
    /// The file that holds it.
    pub path: String,
    /// It is between two marks (USDT), whose stack pointers need not be the same.
    pub marks: bool,
    /// What a begin and an end take of a thread's time, ns: the median of some in the agent itself, at the start of the
    /// recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_ns: Option<f64>,
    /// Of that, what lies between the times of the two, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_ns: Option<f64>,
}

/// Name of an interrupt line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IrqName {
    /// Line.
    pub number: u32,
    /// Action name, for example `virtio0-input`.
    pub name: String,
}

/// Both clocks, read together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockSample {
    /// Middle of the two TSC readings around the clock reading.
    pub tsc: u64,
    /// CLOCK_MONOTONIC, ns.
    pub mono_ns: i64,
    /// Distance of the two TSC readings, in TSC cycles.
    pub bracket_tsc: u64,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, ns.
    pub realtime_offset_ns: i64,
    /// CLOCK_BOOTTIME minus CLOCK_MONOTONIC, ns.
    pub boottime_offset_ns: i64,
    /// CPU on which it was taken.
    pub cpu: u32,
    /// Smallest increment of the TSC that was seen, in TSC cycles: nothing finer can be distinguished.
    pub step_tsc: u32,
    /// What the kernel said of its time of day, with samples that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostClock>,
}

/// What the kernel says of its time of day, as it says it (adjtimex(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostClock {
    /// What the call returned: a state from `TIME_OK` (0) to `TIME_ERROR` (5), or minus the error.
    pub result: i32,
    /// Flags `STA_…`.
    pub status: i32,
    /// TAI minus UTC, s; 0 where nobody has set it in the kernel.
    pub tai_s: i32,
    /// Correction that is still to be made, µs, or ns with the flag `STA_NANO`.
    pub offset: i64,
    /// Correction of the rate, in parts per million times 2^16.
    pub frequency: i64,
    /// Maximum error, µs.
    pub max_error_us: i64,
    /// Estimated error, µs.
    pub estimated_error_us: i64,
}

/// A process, as the kernel describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Number of this registration in the recording, from 0; what `Slots` and `Shared` refer to.
    /// `None`: a process that is observed and has no memfd.
    pub source: Option<u32>,
    /// Process id in the agent's namespace.
    pub pid: i32,
    /// Field 22 of `/proc/PID/stat`, clock ticks since boot.
    pub start_time: u64,
    /// Name.
    pub comm: String,
    /// Executable.
    pub exe: String,
    /// It has registered as a program that was executed, and waited for the answer; a forked child does not.
    pub waited: bool,
    /// No memory with which the process has registered before is mapped in it any more: it has executed another
    /// program since, or has not registered before. False where its mappings could not be read.
    pub executed: bool,
    /// It has waited in vain, and went on with its sites off.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unanswered: bool,
    /// Since when the sites of `Start::events` are on in it, CLOCK_MONOTONIC ns, if it did not wait. Missing when that is not
    /// known. A second frame of a source tells nothing but this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_ns: Option<i64>,
    /// Slots per ring.
    pub ring_slots: u32,
    /// Flight-recorder mode.
    pub overwrite: bool,
    /// When it was registered, CLOCK_MONOTONIC ns.
    pub ts: i64,
}

/// A thread, as the kernel describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Thread {
    /// Thread id in the agent's namespace.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// When this was read, CLOCK_MONOTONIC ns.
    pub ts: i64,
}

/// Bytes of a directory.
#[derive(Clone, Debug, PartialEq)]
pub struct Directory<'a> {
    /// Registration.
    pub source: u32,
    /// Whole entries ([`ft_user::layout::DirEntry`]), continuing where the frame before ended.
    pub bytes: &'a [u8],
}

/// Slots of a per-thread ring.
#[derive(Clone, Debug, PartialEq)]
pub struct Slots<'a> {
    /// Registration.
    pub source: u32,
    /// Ring number.
    pub ring: u32,
    /// Thread id of the owner in the agent's namespace.
    pub tid: i32,
    /// Claim of the ring.
    pub generation: u32,
    /// Reservation index of the first slot.
    pub first_index: u64,
    /// A multiple of 32 bytes.
    pub bytes: &'a [u8],
}

/// Slots of a shared ring.
#[derive(Clone, Debug, PartialEq)]
pub struct Shared<'a> {
    /// Registration.
    pub source: u32,
    /// A multiple of 128 bytes.
    pub bytes: &'a [u8],
}

/// A loss, with its place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Loss {
    /// A word of [`LossOrigin`](crate::tables::LossOrigin).
    pub origin: String,
    /// What was lost: the program's name, or a reason, or a site.
    pub what: String,
    /// CPU, -1 when it does not apply.
    pub cpu: i32,
    /// Process, -1 when it does not apply.
    pub pid: i32,
    /// Thread, -1 when it does not apply.
    pub tid: i32,
    /// First loss, CLOCK_MONOTONIC ns; when `is_tsc`, TSC cycles.
    pub from: i64,
    /// Last loss, inclusive, as `from`.
    pub to: i64,
    /// `from` and `to` are TSC cycles.
    pub is_tsc: bool,
    /// How many; 0 of a site, where that is not known.
    pub count: u64,
}

/// Registrations that were refused, or are recorded and not believed in all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refused {
    /// Effective user of the processes; `u32::MAX` stands for several.
    pub uid: u32,
    /// The first process, in the agent's namespace; 0 when it has no number there.
    pub pid: i32,
    /// Its name; empty when it had ended.
    pub comm: String,
    /// Why.
    pub reason: String,
    /// It is recorded, and did what none does that uses `ft-user`.
    pub is_recorded: bool,
    /// It is recorded, and an unknown number of its events was lost.
    pub has_lost: bool,
    /// Some of its addresses have no names.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_unnamed: bool,
    /// They have asked for nothing: no message of theirs was a registration.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_not_asked: bool,
    /// How many, those in earlier frames of the same user and reason included.
    pub count: u64,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.count, self.has_unnamed) {
            (1, false) => write!(f, "a process ")?,
            (n, false) => write!(f, "{} registrations ", count(n))?,
            (_, true) => write!(f, "addresses of a process ")?,
        }
        match self.uid {
            u32::MAX => write!(f, "of several users ")?,
            uid => write!(f, "of user {uid} ")?,
        }
        let first = if self.count == 1 || self.has_unnamed { "" } else { "first " };
        // A program chooses its name.
        let (pid, name) = (self.pid, self.comm.escape_debug());
        let what = match (self.has_lost, self.is_recorded) {
            _ if self.has_unnamed => "have no names",
            (true, _) => "lost an unknown number of events",
            (false, true) => "cannot be believed",
            (false, false) => "could not register",
        };
        write!(f, "{what} ({first}process {pid} '{name}'): {}", self.reason)
    }
}

/// How the recording ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// CLOCK_MONOTONIC, ns.
    pub ts: i64,
    /// `finished`, `interrupted`, `duration`, `disk full`, …
    pub reason: String,
    /// Exit code of the recorded command.
    pub exit_code: Option<i32>,
    /// Bytes written into the spool.
    pub bytes: u64,
    /// Stolen from each CPU since boot, by its number, ns (/proc/stat); null where it is offline, empty when not known.
    pub steal_ns: Vec<Option<i64>>,
    /// CPU time of all threads of the agent while it recorded, by CLOCK_PROCESS_CPUTIME_ID, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_cpu_ns: Option<i64>,
    /// Waits of observed threads for locks of the recording's own maps and ring buffers in the kernel, which have no records; with
    /// the group `lock`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_lock_waits: Option<u64>,
}
