//! What the spool is made of: frames of recorded bytes, each with a header and a checksum.
//!
//! The recording copies; it does not parse. So ring contents and kernel records stand here as they
//! were found, and everything rare is JSON. [`Frame::encode`] and [`Frame::decode`] are inverse; a
//! frame whose checksum does not match, or that is cut short, hides those behind it up to the next anchor ([`super::anchor`]).

mod content;

use serde::Serialize;

use super::anchor::{Amounts, Anchor};
use super::mapping::Mappings;
pub use crate::convert::{kernel_record_bytes, kernel_record_len};
pub use content::{
    ClockSample, Directory, End, HostClock, IrqName, Loss, MissingTracepoint, Probe, Process,
    Refused, Shared, Slots, Start, StartAt, Thread,
};

/// First four bytes of every frame.
pub const MAGIC: u32 = u32::from_le_bytes(*b"FTSP");

/// Version of the spool format. Files of version 1 have no anchors.
pub const VERSION: u16 = 2;

/// Size of the frame header: magic, version, kind, length of the payload, CRC-32 of kind, length and payload.
pub const HEADER_BYTES: usize = 16;

/// Kind of a [`Frame::Anchor`].
pub(super) const ANCHOR: u16 = code::ANCHOR;

/// Size of an anchor with its header.
pub(super) const ANCHOR_BYTES: usize = HEADER_BYTES + 40;

/// Largest payload that is accepted.
///
/// Limit: as `MAX_RECORD_BYTES` of `kernel/mod.rs`.
pub const MAX_PAYLOAD_BYTES: usize = 64 << 20;

/// One frame.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a start is rare, and no frames are kept")]
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
    /// Registrations were refused. In the registry.
    Refused(Refused),
    /// The recording ended as it should. In the registry.
    End(End),
    /// Here a chunk begins. In each file.
    Anchor(Anchor),
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
    pub(super) const REFUSED: u16 = 12;
    pub(super) const ANCHOR: u16 = 13;
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

/// Checks the frame at the start of `data`, but for what its payload says; its kind, and its size with the header.
pub(super) fn whole(data: &[u8]) -> Result<(u16, usize), FrameError> {
    let header = data.get(..HEADER_BYTES).ok_or(FrameError::Truncated)?;
    if u32_at(header, 0) != MAGIC {
        return Err(FrameError::Magic);
    }
    let version = u16::from_le_bytes([header[4], header[5]]);
    if !(1..=VERSION).contains(&version) {
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
    Ok((kind, HEADER_BYTES + len))
}

/// Whether the frame that begins with this header is one that whoever skips frames must see: a clock sample or a loss.
/// Both are small.
pub(super) fn is_told_always(header: &[u8]) -> bool {
    let kind = header.get(6..8).map(|kind| u16::from_le_bytes([kind[0], kind[1]]));
    matches!(kind, Some(code::CLOCK | code::LOSS))
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
                if let Some(host) = &c.host {
                    for word in [host.result, host.status, host.tai_s, 0] {
                        out.extend_from_slice(&word.to_le_bytes());
                    }
                    let errors = [host.max_error_us, host.estimated_error_us];
                    for word in [host.offset, host.frequency].into_iter().chain(errors) {
                        out.extend_from_slice(&word.to_le_bytes());
                    }
                }
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
            Frame::Refused(v) => {
                json(out, v);
                code::REFUSED
            }
            Frame::End(v) => {
                json(out, v);
                code::END
            }
            Frame::Anchor(Anchor { token, before }) => {
                out.extend_from_slice(token);
                for count in [before.frames, before.events, before.records] {
                    out.extend_from_slice(&count.to_le_bytes());
                }
                code::ANCHOR
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
        let (kind, bytes) = whole(data)?;
        let frame =
            Self::of(kind, &data[HEADER_BYTES..bytes]).ok_or(FrameError::Malformed(kind))?;
        Ok((frame, bytes))
    }

    /// The frame of this kind with this payload.
    pub(super) fn of(kind: u16, p: &'a [u8]) -> Option<Frame<'a>> {
        Some(match kind {
            code::START => Frame::Start(serde_json::from_slice(p).ok()?),
            code::CLOCK if p.len() == 48 || p.len() == 96 => Frame::Clock(ClockSample {
                tsc: u64_at(p, 0),
                mono_ns: u64_at(p, 8) as i64,
                bracket_tsc: u64_at(p, 16),
                realtime_offset_ns: u64_at(p, 24) as i64,
                boottime_offset_ns: u64_at(p, 32) as i64,
                cpu: u32_at(p, 40),
                step_tsc: u32_at(p, 44),
                host: p.get(48..).filter(|host| !host.is_empty()).map(|host| HostClock {
                    result: u32_at(host, 0) as i32,
                    status: u32_at(host, 4) as i32,
                    tai_s: u32_at(host, 8) as i32,
                    offset: u64_at(host, 16) as i64,
                    frequency: u64_at(host, 24) as i64,
                    max_error_us: u64_at(host, 32) as i64,
                    estimated_error_us: u64_at(host, 40) as i64,
                }),
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
            code::REFUSED => Frame::Refused(serde_json::from_slice(p).ok()?),
            code::END => Frame::End(serde_json::from_slice(p).ok()?),
            code::ANCHOR if p.len() == 40 => Frame::Anchor(Anchor {
                token: p[..16].try_into().expect("16 bytes"),
                before: Amounts {
                    frames: u64_at(p, 16),
                    events: u64_at(p, 24),
                    records: u64_at(p, 32),
                },
            }),
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
