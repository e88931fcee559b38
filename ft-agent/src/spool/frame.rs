//! What the spool is made of: frames of recorded bytes, each with a header and a checksum.
//!
//! The recording copies; it does not parse. So ring contents and kernel records stand here as they
//! were found, and everything rare is JSON. [`Frame::encode`] and [`Frame::decode`] are inverse; a
//! frame whose checksum does not match, or that is cut short, ends its file.

use ft_ebpf as kernel;
use serde::{Deserialize, Serialize};

use super::mapping::Mappings;

/// First four bytes of every frame.
pub const MAGIC: u32 = u32::from_le_bytes(*b"FTSP");

/// Version of the spool format.
pub const VERSION: u16 = 1;

/// Size of the frame header: magic, version, kind, length of the payload, CRC-32 of kind, length and payload.
pub const HEADER_BYTES: usize = 16;

/// Largest payload that is accepted.
pub const MAX_PAYLOAD_BYTES: usize = 64 << 20;

/// One frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame<'a> {
    /// First frame of the registry.
    Start(Start),
    /// A clock sample; every segment begins and ends with one.
    Clock(ClockSample),
    /// A process was registered or attached. In the registry.
    Process(Process),
    /// More of the directory of a process. In the registry.
    Directory(Directory<'a>),
    /// A thread and its name. In the registry.
    Thread(Thread),
    /// Program text of a process, when it was first seen and when it has changed. In the registry.
    Mappings(Mappings),
    /// Slots of one per-thread ring, whole events only.
    Slots(Slots<'a>),
    /// Slots of the shared ring of one process, in the order read.
    Shared(Shared<'a>),
    /// Kernel records, one after the other (their size follows from their kind).
    Kernel(&'a [u8]),
    /// Something was lost.
    Loss(Loss),
    /// The recording ended in good order. In the registry.
    End(End),
}

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
    /// CPUs that can come online.
    pub cpus: u32,
    /// The CPU says that a hypervisor is there.
    pub hypervisor: bool,
    /// Stolen from each CPU since boot, ns (/proc/stat); empty when not known.
    pub steal_ns: Vec<i64>,
    /// TSC cycles per second, as measured at the start.
    pub tsc_hz: f64,
    /// Command that is recorded, empty with `-p`.
    pub command: Vec<String>,
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
    /// Names of softirqs by number and of interrupt lines (`/proc/interrupts`).
    pub irq_names: Vec<IrqName>,
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
    /// Smallest increment of the TSC that was seen, in TSC cycles: nothing finer can be told apart.
    pub step_tsc: u32,
}

/// A process, as the kernel tells it.
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
    /// Slots per ring.
    pub ring_slots: u32,
    /// Flight-recorder mode.
    pub overwrite: bool,
    /// When it was registered, CLOCK_MONOTONIC ns.
    pub ts: i64,
}

/// A thread, as the kernel tells it.
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
    /// `ring`, `shared-ring`, `directory`, `kernel` or `agent`.
    pub origin: String,
    /// What was lost: the program's name, or a reason.
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
    /// How many.
    pub count: u64,
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
    /// Stolen from each CPU since boot, ns (/proc/stat); empty when not known.
    pub steal_ns: Vec<i64>,
}

/// Size of the kernel record of this kind, `None` when the kind is not known.
pub fn kernel_record_bytes(kind: u16) -> Option<usize> {
    use kernel::kind::*;
    Some(match kind {
        SWITCH => size_of::<kernel::Switch>(),
        WAKING | WAKEUP_NEW => size_of::<kernel::Waking>(),
        MIGRATE => size_of::<kernel::Migrate>(),
        HARDIRQ | SOFTIRQ | VECTOR => size_of::<kernel::Irq>(),
        FORK | EXEC | EXIT | RENAME => size_of::<kernel::Task>(),
        CONTENTION => size_of::<kernel::Contention>(),
        SYSCALL => size_of::<kernel::Syscall>(),
        PAGE_FAULT => size_of::<kernel::PageFault>(),
        _ => return None,
    })
}

/// Why bytes are not a frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The end of the data came first: a frame that was being written when the agent died.
    #[error("the frame is cut short")]
    Truncated,
    /// The first bytes are not [`MAGIC`].
    #[error("not a spool frame")]
    Magic,
    /// Another version.
    #[error(
        "spool version {0}; this agent reads version {VERSION}: convert with the agent that recorded it"
    )]
    Version(u16),
    /// The checksum is wrong.
    #[error("the checksum does not match")]
    Checksum,
    /// The payload does not fit its kind.
    #[error("malformed frame of kind {0}")]
    Malformed(u16),
}

mod code {
    pub(super) const START: u16 = 1;
    pub(super) const CLOCK: u16 = 2;
    pub(super) const PROCESS: u16 = 3;
    pub(super) const DIRECTORY: u16 = 4;
    pub(super) const THREAD: u16 = 5;
    pub(super) const SLOTS: u16 = 6;
    pub(super) const SHARED: u16 = 7;
    pub(super) const KERNEL: u16 = 8;
    pub(super) const LOSS: u16 = 9;
    pub(super) const END: u16 = 10;
    pub(super) const MAPPINGS: u16 = 11;
}

fn checksum(kind: u16, payload: &[u8]) -> u32 {
    let mut h = crc32fast::Hasher::new();
    h.update(&kind.to_le_bytes());
    h.update(&(payload.len() as u32).to_le_bytes());
    h.update(payload);
    h.finalize()
}

fn json<T: Serialize>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("plain structs serialise into memory");
}

/// Size of the frame at the start of `data` with its header, as the header declares it: how much must
/// be at hand before [`Frame::decode`] can succeed. `None` when `data` is shorter than a header or
/// declares more than [`MAX_PAYLOAD_BYTES`].
pub fn declared_bytes(data: &[u8]) -> Option<usize> {
    let header = data.get(..HEADER_BYTES)?;
    let payload = u32_at(header, 8) as usize;
    (payload <= MAX_PAYLOAD_BYTES).then_some(HEADER_BYTES + payload)
}

impl<'a> Frame<'a> {
    /// Appends the frame to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        let kind = match self {
            Frame::Start(v) => {
                json(out, v);
                code::START
            }
            Frame::Clock(c) => {
                out.extend_from_slice(&c.tsc.to_le_bytes());
                out.extend_from_slice(&c.mono_ns.to_le_bytes());
                out.extend_from_slice(&c.bracket_tsc.to_le_bytes());
                out.extend_from_slice(&c.realtime_offset_ns.to_le_bytes());
                out.extend_from_slice(&c.boottime_offset_ns.to_le_bytes());
                out.extend_from_slice(&c.cpu.to_le_bytes());
                out.extend_from_slice(&c.step_tsc.to_le_bytes());
                code::CLOCK
            }
            Frame::Process(v) => {
                json(out, v);
                code::PROCESS
            }
            Frame::Directory(d) => {
                out.extend_from_slice(&u64::from(d.source).to_le_bytes());
                out.extend_from_slice(d.bytes);
                code::DIRECTORY
            }
            Frame::Thread(v) => {
                json(out, v);
                code::THREAD
            }
            Frame::Mappings(v) => {
                json(out, v);
                code::MAPPINGS
            }
            Frame::Slots(s) => {
                out.extend_from_slice(&s.source.to_le_bytes());
                out.extend_from_slice(&s.ring.to_le_bytes());
                out.extend_from_slice(&s.tid.to_le_bytes());
                out.extend_from_slice(&s.generation.to_le_bytes());
                out.extend_from_slice(&s.first_index.to_le_bytes());
                out.extend_from_slice(s.bytes);
                code::SLOTS
            }
            Frame::Shared(s) => {
                out.extend_from_slice(&u64::from(s.source).to_le_bytes());
                out.extend_from_slice(s.bytes);
                code::SHARED
            }
            Frame::Kernel(bytes) => {
                out.extend_from_slice(bytes);
                code::KERNEL
            }
            Frame::Loss(v) => {
                json(out, v);
                code::LOSS
            }
            Frame::End(v) => {
                json(out, v);
                code::END
            }
        };
        let (len, crc) = {
            let payload = &out[start + HEADER_BYTES..];
            assert!(payload.len() <= MAX_PAYLOAD_BYTES, "a frame payload is bounded by its writer");
            (payload.len() as u32, checksum(kind, payload))
        };
        let header = &mut out[start..start + HEADER_BYTES];
        header[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        header[4..6].copy_from_slice(&VERSION.to_le_bytes());
        header[6..8].copy_from_slice(&kind.to_le_bytes());
        header[8..12].copy_from_slice(&len.to_le_bytes());
        header[12..16].copy_from_slice(&crc.to_le_bytes());
    }

    /// Reads the frame at the start of `data`; returns it and its size with the header.
    ///
    /// # Errors
    ///
    /// A [`FrameError`]; nothing can be read behind it.
    pub fn decode(data: &'a [u8]) -> Result<(Frame<'a>, usize), FrameError> {
        let header = data.get(..HEADER_BYTES).ok_or(FrameError::Truncated)?;
        if u32_at(header, 0) != MAGIC {
            return Err(FrameError::Magic);
        }
        let version = u16::from_le_bytes([header[4], header[5]]);
        if version != VERSION {
            return Err(FrameError::Version(version));
        }
        let kind = u16::from_le_bytes([header[6], header[7]]);
        let len = u32_at(header, 8) as usize;
        if len > MAX_PAYLOAD_BYTES {
            return Err(FrameError::Malformed(kind));
        }
        let payload = data.get(HEADER_BYTES..HEADER_BYTES + len).ok_or(FrameError::Truncated)?;
        if checksum(kind, payload) != u32_at(header, 12) {
            return Err(FrameError::Checksum);
        }
        let frame = Self::payload(kind, payload).ok_or(FrameError::Malformed(kind))?;
        Ok((frame, HEADER_BYTES + len))
    }

    fn payload(kind: u16, p: &'a [u8]) -> Option<Frame<'a>> {
        Some(match kind {
            code::START => Frame::Start(serde_json::from_slice(p).ok()?),
            code::CLOCK if p.len() == 48 => Frame::Clock(ClockSample {
                tsc: u64_at(p, 0),
                mono_ns: u64_at(p, 8) as i64,
                bracket_tsc: u64_at(p, 16),
                realtime_offset_ns: u64_at(p, 24) as i64,
                boottime_offset_ns: u64_at(p, 32) as i64,
                cpu: u32_at(p, 40),
                step_tsc: u32_at(p, 44),
            }),
            code::PROCESS => Frame::Process(serde_json::from_slice(p).ok()?),
            code::DIRECTORY if p.len() >= 8 => {
                Frame::Directory(Directory { source: u32_at(p, 0), bytes: &p[8..] })
            }
            code::THREAD => Frame::Thread(serde_json::from_slice(p).ok()?),
            code::SLOTS if p.len() >= 24 && p.len() % 32 == 24 => Frame::Slots(Slots {
                source: u32_at(p, 0),
                ring: u32_at(p, 4),
                tid: u32_at(p, 8) as i32,
                generation: u32_at(p, 12),
                first_index: u64_at(p, 16),
                bytes: &p[24..],
            }),
            code::SHARED if p.len() % 128 == 8 => {
                Frame::Shared(Shared { source: u32_at(p, 0), bytes: &p[8..] })
            }
            code::KERNEL => Frame::Kernel(p),
            code::LOSS => Frame::Loss(serde_json::from_slice(p).ok()?),
            code::MAPPINGS => Frame::Mappings(serde_json::from_slice(p).ok()?),
            code::END => Frame::End(serde_json::from_slice(p).ok()?),
            _ => return None,
        })
    }
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(b[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(b: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(b[at..at + 8].try_into().expect("eight bytes"))
}
