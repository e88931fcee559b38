//! What to record, where to and how long.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use ft_user::layout::{COUNTERS_AT_ONCE, Counter, Counting, MAX_RING_SLOTS, MIN_RING_SLOTS, Slot};

use super::reader::{DISTANCES, Reader};
use super::{RecordError, StartAt};
use crate::collect::kernel::{Group, KernelOptions};
use crate::control::registration;
use ft_trace::spool::Limits;

/// What to record, where to and how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// Directory of the trace.
    pub output: PathBuf,
    /// Begin at this time; `None`: at once.
    pub start_at: Option<StartAt>,
    /// Stop after this time.
    pub duration: Option<Duration>,
    /// Kernel groups; empty for no kernel stream.
    pub kernel: Vec<Group>,
    /// Globs of the sites to enable.
    pub events: Vec<String>,
    /// Running processes to record.
    pub pids: Vec<i32>,
    /// Do not record what the command and these processes start, or have started.
    pub alone: bool,
    /// Cgroup of which all processes are recorded, by its directory or name.
    pub cgroup: Option<PathBuf>,
    /// Observe every thread of the system.
    pub system_wide: bool,
    /// Record every process that embeds `ft-user` and registers, whoever has started it.
    pub any: bool,
    /// Size of one ring of processes that start during the recording, bytes; `None`: their default
    /// (`ft_user::Config`).
    pub ring_bytes: Option<u64>,
    /// Size of the ring buffers of the kernel's records, bytes, those of all CPUs together.
    pub kernel_buffer_bytes: u64,
    /// Call chains are recorded of threads that were off the CPU for at least this long.
    pub stack_min: Duration,
    /// Samples of a CPU in a second.
    pub sample_hz: u32,
    /// What is probed in programs, as `--probe` says it.
    pub probes: Vec<String>,
    /// How long a thread whose ring is full waits for room before it loses an event; `None`: not at all.
    pub full_wait: Option<Duration>,
    /// Counters that threads read with each event.
    pub counters: Vec<&'static Counter>,
    /// Where the processor cannot be asked, by a system call.
    pub counter_calls: bool,
    /// Counters that the kernel reads at switches.
    pub switch_counters: Vec<&'static Counter>,
    /// How the agent comes to look at the rings.
    pub reader: Reader,
    /// When a segment is closed.
    pub segment: Limits,
    /// Command to run and record; may be empty.
    pub command: Vec<OsString>,
    /// The command and all that it has started end with the recording.
    pub ends_command: bool,
    /// Run the command under the preload library.
    pub preload: bool,
    /// It is a flight recorder: the control socket gives snapshots.
    pub snapshots: bool,
    /// The first trigger of a flight recorder ends it. Its last snapshot has what the trigger has found.
    pub ends_with_trigger: bool,
    /// Print a progress line to stderr.
    pub progress: bool,
}

impl Default for Options {
    /// The defaults of `ft-agent record`, with nothing to record yet.
    fn default() -> Options {
        let kernel = KernelOptions::default();
        Options {
            output: "trace".into(),
            start_at: None,
            duration: None,
            kernel: kernel.groups,
            events: vec!["*".into()],
            pids: Vec::new(),
            cgroup: None,
            system_wide: false,
            alone: false,
            any: false,
            ring_bytes: None,
            kernel_buffer_bytes: kernel.ring_bytes.into(),
            stack_min: Duration::from_nanos(kernel.stack_min_ns),
            sample_hz: kernel.sample_hz,
            probes: Vec::new(),
            full_wait: None,
            counters: Vec::new(),
            counter_calls: false,
            switch_counters: Vec::new(),
            reader: Reader::Adaptive,
            segment: Limits { bytes: 64 << 20, age: Duration::from_secs(30) },
            command: Vec::new(),
            ends_command: true,
            preload: false,
            snapshots: false,
            ends_with_trigger: false,
            progress: false,
        }
    }
}

impl Options {
    /// Checks what can be checked without touching the system.
    ///
    /// # Errors
    ///
    /// The first option that cannot be.
    pub(super) fn check(&self) -> Result<(), RecordError> {
        if self.ring_bytes.is_some() && self.ring_slots().is_none() {
            return Err(RecordError::RingSize);
        }
        if self.kernel_ring_bytes().is_none() {
            return Err(RecordError::KernelBuffer);
        }
        if !SAMPLE_RATES.contains(&self.sample_hz) {
            return Err(RecordError::SampleRate);
        }
        if self.full_wait.is_some_and(|wait| !FULL_WAITS.contains(&wait)) {
            return Err(RecordError::FullWait);
        }
        for counters in [&self.counters, &self.switch_counters] {
            if let [first, second, ..] = counters[..]
                && first == second
            {
                return Err(RecordError::CounterTwice(first.name));
            }
        }
        if self.counters.len() > COUNTERS_AT_ONCE {
            return Err(RecordError::TooManyCounters);
        }
        if let Some(counter) = self.counters.iter().find(|c| c.is_software() && !self.counter_calls)
        {
            return Err(RecordError::SoftwareCounter(counter.name));
        }
        if self.switch_counters.len() > COUNTERS_AT_ONCE {
            return Err(RecordError::TooManySwitchCounters);
        }
        if self.switch_counters.iter().any(|counter| counter.is_time()) {
            return Err(RecordError::TimeAtSwitches);
        }
        if !self.switch_counters.is_empty() && !self.kernel.contains(&Group::Sched) {
            return Err(RecordError::CountersWithoutSwitches);
        }
        if matches!(self.reader, Reader::Timed(distance) if !DISTANCES.contains(&distance)) {
            return Err(RecordError::ReaderTime);
        }
        if !(SMALLEST_SEGMENT..=LARGEST_SEGMENT).contains(&self.segment.bytes) {
            return Err(RecordError::SegmentSize);
        }
        if self.preload && self.command.is_empty() {
            return Err(RecordError::NothingToPreload);
        }
        if self.segment.age < Duration::from_millis(100) {
            return Err(RecordError::SegmentTime);
        }
        registration::reply(&self.events).map(drop).ok_or(RecordError::TooManyGlobs)
    }

    /// The command, as text.
    pub(super) fn words(&self) -> Vec<String> {
        self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// What threads are asked to read with each event.
    pub(super) fn counting(&self) -> Counting {
        Counting::new(&self.counters, self.counter_calls)
    }

    /// The size of the kernel's buffer rounded up to a power of two; `None` when it is out of range.
    pub(super) fn kernel_ring_bytes(&self) -> Option<u32> {
        let bytes = self.kernel_buffer_bytes.checked_next_power_of_two()?;
        u32::try_from(bytes).ok().filter(|bytes| (1 << 12..=1 << 30).contains(bytes))
    }

    /// Slots of one ring: the size rounded up to a power of two; `None` when none is asked for, or it is out
    /// of range.
    pub(super) fn ring_slots(&self) -> Option<u32> {
        let bytes = self.ring_bytes?;
        let slots = bytes.div_ceil(size_of::<Slot>() as u64).checked_next_power_of_two()?;
        u32::try_from(slots).ok().filter(|n| (MIN_RING_SLOTS..=MAX_RING_SLOTS).contains(n))
    }
}

/// How long a thread may wait for room in its ring. The agent looks every 0.1 to 1 ms, and `ft-user` waits no longer.
const FULL_WAITS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(1);

/// How often a CPU may be sampled in a second. A sample takes some microseconds.
const SAMPLE_RATES: RangeInclusive<u32> = 1..=20_000;

/// Smaller segments cost more in headers and parts than they hold.
const SMALLEST_SEGMENT: u64 = 1 << 16;

/// A segment is sorted and converted as a whole.
///
/// Limit: a larger one is refused.
/// Shown by: `what_cannot_be_is_refused`.
const LARGEST_SEGMENT: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_powers_of_two_within_the_limits() {
        let check = |bytes, expected| {
            let o = Options { ring_bytes: Some(bytes), ..Options::default() };
            assert_eq!(o.ring_slots(), expected, "{bytes}");
            assert_eq!(o.check().is_ok(), expected.is_some(), "{bytes}");
        };
        check(128 << 10, Some(4096));
        check((128 << 10) + 1, Some(8192));
        check(128 << 20, Some(1 << 22));
        check((128 << 20) + 1, None);
        check(1, None);
        check(u64::MAX, None);
        assert!(Options::default().check().is_ok());
    }

    #[test]
    fn the_buffer_of_the_kernel_is_a_power_of_two() {
        let check = |kernel_buffer_bytes, expected| {
            let options = Options { kernel_buffer_bytes, ..Options::default() };
            assert_eq!(options.kernel_ring_bytes(), Some(expected));
            assert!(options.check().is_ok());
        };
        check(4096, 4096);
        check(4097, 8192);
        check(1 << 30, 1 << 30);
        let kernel = crate::collect::kernel::KernelOptions::default().ring_bytes;
        assert_eq!(Options::default().kernel_ring_bytes(), Some(kernel));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let check = |o: Options, expected: &str| {
            let error = o.check().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        for kernel_buffer_bytes in [0, 2048, (1 << 30) + 1, u64::MAX] {
            check(Options { kernel_buffer_bytes, ..Options::default() }, "--kernel-buffer");
        }
        let segment = Options::default().segment;
        check(
            Options { segment: Limits { bytes: 1, ..segment }, ..Options::default() },
            "--segment-size",
        );
        check(
            Options { segment: Limits { bytes: 1 << 31, ..segment }, ..Options::default() },
            "--segment-size",
        );
        let age = Duration::from_millis(1);
        check(
            Options { segment: Limits { age, ..segment }, ..Options::default() },
            "--segment-time",
        );
        for wait in [Duration::from_micros(999), Duration::from_millis(1001)] {
            check(Options { full_wait: Some(wait), ..Options::default() }, "--on-full wait");
        }
        for distance in [Duration::from_micros(9), Duration::from_millis(101)] {
            let reader = Reader::Timed(distance);
            check(Options { reader, ..Options::default() }, "--reader timed");
        }
        let counters = |names: &[&str]| -> Vec<_> {
            names.iter().map(|name| Counter::named(name).unwrap()).collect()
        };
        let twice = counters(&["page-faults", "page-faults"]);
        let at_switches = Options { switch_counters: twice.clone(), ..Options::default() };
        check(at_switches, "'page-faults' twice");
        check(Options { counters: twice, ..Options::default() }, "'page-faults' twice");
        let three = counters(&["cycles", "instructions", "cache-misses"]);
        check(Options { counters: three.clone(), ..Options::default() }, "two counters at most");
        let switches = |switch_counters| Options { switch_counters, ..Options::default() };
        check(switches(three), "two counters at most");
        check(switches(counters(&["task-clock"])), "'task-clock'");
        let faults = switches(counters(&["page-faults"]));
        assert!(faults.check().is_ok());
        check(Options { kernel: vec![Group::Irq], ..faults }, "sched");
        let software = counters(&["cycles", "page-faults"]);
        let calls = Options { counters: software, ..Options::default() };
        check(calls.clone(), "'page-faults'");
        assert!(Options { counter_calls: true, ..calls }.check().is_ok());
        check(Options { preload: true, ..Options::default() }, "after --");
        check(Options { events: vec!["x".repeat(5000)], ..Options::default() }, "-e");
    }
}
