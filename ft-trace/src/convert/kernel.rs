//! Kernel records to rows.

use std::collections::HashMap;

use ft_ebpf::{self as abi, COMM_LEN, Header, kind};

use super::kernel_names as text;
use super::threads::Threads;
use crate::ids::{Cpu, Name, Nanos, Pid, Tid};
use crate::spool::frame::{IrqName, kernel_record_bytes};
use crate::tables::{
    Contention, Irq, IrqKind, PageFault, SchedMigrate, SchedSwitch, SchedWaking, Syscall,
    TaskEvent, TaskKind,
};

/// Rows of the kernel stream of one segment.
#[derive(Default)]
pub(super) struct KernelRows {
    pub(super) switches: Vec<SchedSwitch>,
    pub(super) wakings: Vec<SchedWaking>,
    pub(super) migrations: Vec<SchedMigrate>,
    pub(super) irqs: Vec<Irq>,
    pub(super) tasks: Vec<TaskEvent>,
    pub(super) contentions: Vec<Contention>,
    pub(super) syscalls: Vec<Syscall>,
    pub(super) faults: Vec<PageFault>,
    /// Frames that held something unknown; the rest of such a frame is left out.
    pub(super) rejected: u64,
}

/// Shared strings of the kernel stream.
pub(super) struct KernelNames {
    comms: HashMap<[u8; COMM_LEN], Name>,
    irqs: HashMap<(u16, u32), Name>,
    syscalls: HashMap<u32, Name>,
    fixed: HashMap<&'static str, Name>,
}

impl KernelNames {
    /// With the names of interrupt lines that the recording noted.
    pub(super) fn new(irq_names: &[IrqName]) -> KernelNames {
        let irqs = irq_names.iter().map(|i| ((kind::HARDIRQ, i.number), i.name.as_str().into()));
        KernelNames {
            comms: HashMap::new(),
            irqs: irqs.collect(),
            syscalls: HashMap::new(),
            fixed: HashMap::new(),
        }
    }

    fn comm(&mut self, comm: [u8; COMM_LEN]) -> Name {
        let make = || {
            let end = comm.iter().position(|&b| b == 0).unwrap_or(COMM_LEN);
            String::from_utf8_lossy(&comm[..end]).into()
        };
        self.comms.entry(comm).or_insert_with(make).clone()
    }

    fn irq(&mut self, kind: u16, number: u32) -> Name {
        self.irqs.entry((kind, number)).or_insert_with(|| text::irq(kind, number).into()).clone()
    }

    fn syscall(&mut self, number: u32) -> Name {
        self.syscalls.entry(number).or_insert_with(|| text::syscall(number).into()).clone()
    }

    fn fixed(&mut self, text: &'static str) -> Name {
        self.fixed.entry(text).or_insert_with(|| text.into()).clone()
    }
}

impl KernelRows {
    /// Decodes the records of one frame.
    pub(super) fn decode(
        &mut self,
        mut bytes: &[u8],
        names: &mut KernelNames,
        threads: &mut Threads,
    ) {
        while !bytes.is_empty() {
            let Some(header) = read::<Header>(bytes) else { break };
            let Some(size) = kernel_record_bytes(header.kind) else { break };
            if self.record(header, bytes, names, threads).is_none() {
                break;
            }
            bytes = &bytes[size..];
        }
        self.rejected += u64::from(!bytes.is_empty());
    }

    /// Decodes the first record of `bytes`; `None` when it is cut short.
    fn record(
        &mut self,
        header: Header,
        bytes: &[u8],
        names: &mut KernelNames,
        threads: &mut Threads,
    ) -> Option<()> {
        let ts = nanos(header.ts);
        let cpu = Cpu(i32::from(header.cpu));
        match header.kind {
            kind::SWITCH => {
                let r: abi::Switch = read(bytes)?;
                let row = SchedSwitch {
                    ts,
                    cpu,
                    prev_tid: tid(header.tid),
                    prev_pid: pid(r.prev_tgid),
                    prev_comm: names.comm(r.prev_comm),
                    prev_prio: r.prev_prio,
                    prev_state: text::state(r.prev_state & !abi::Switch::BEING_WOKEN),
                    prev_woken: r.prev_state & abi::Switch::BEING_WOKEN != 0,
                    next_tid: tid(r.next_tid),
                    next_pid: pid(r.next_tgid),
                    next_comm: names.comm(r.next_comm),
                    next_prio: r.next_prio,
                };
                threads.seen(
                    row.prev_pid,
                    row.prev_tid,
                    ts,
                    Some(&row.prev_comm),
                    Some(r.prev_prio),
                );
                threads.seen(
                    row.next_pid,
                    row.next_tid,
                    ts,
                    Some(&row.next_comm),
                    Some(r.next_prio),
                );
                self.switches.push(row);
            }
            kind::WAKING | kind::WAKEUP_NEW => {
                let r: abi::Waking = read(bytes)?;
                threads.woken(pid(r.tgid), tid(r.tid), ts, r.prio);
                self.wakings.push(SchedWaking {
                    ts,
                    cpu,
                    waker_tid: tid(header.tid),
                    tid: tid(r.tid),
                    pid: pid(r.tgid),
                    prio: r.prio,
                    target_cpu: Cpu(r.target_cpu as i32),
                    is_new: header.kind == kind::WAKEUP_NEW,
                });
            }
            kind::MIGRATE => {
                let r: abi::Migrate = read(bytes)?;
                self.migrations.push(SchedMigrate {
                    ts,
                    cpu,
                    tid: tid(r.tid),
                    pid: pid(r.tgid),
                    from_cpu: Cpu(r.from_cpu as i32),
                    to_cpu: Cpu(r.to_cpu as i32),
                });
            }
            kind::HARDIRQ | kind::SOFTIRQ | kind::VECTOR => {
                let r: abi::Irq = read(bytes)?;
                let (ts, dur) = interval(r.entry_ts, ts);
                let irq_kind = match header.kind {
                    kind::HARDIRQ => IrqKind::Hard,
                    kind::SOFTIRQ => IrqKind::Soft,
                    _ => IrqKind::Vector,
                };
                self.irqs.push(Irq {
                    ts,
                    dur,
                    cpu,
                    kind: irq_kind,
                    number: r.number as i32,
                    name: names.irq(header.kind, r.number),
                    tid: tid(header.tid),
                    pid: pid(r.tgid),
                });
            }
            kind::FORK | kind::EXEC | kind::EXIT | kind::RENAME => {
                let r: abi::Task = read(bytes)?;
                let (task_kind, parent_pid) = match header.kind {
                    kind::FORK => (TaskKind::Fork, Some(r.parent_tgid as i32)),
                    kind::EXEC => (TaskKind::Exec, None),
                    kind::EXIT => (TaskKind::Exit, None),
                    _ => (TaskKind::Rename, None),
                };
                let row = TaskEvent {
                    ts,
                    cpu,
                    kind: task_kind,
                    tid: tid(r.tid),
                    pid: pid(r.tgid),
                    comm: names.comm(r.comm),
                    parent_pid,
                };
                threads.seen(row.pid, row.tid, ts, Some(&row.comm), None);
                self.tasks.push(row);
            }
            kind::CONTENTION => {
                let r: abi::Contention = read(bytes)?;
                let (ts, dur) = interval(r.entry_ts, ts);
                self.contentions.push(Contention {
                    ts,
                    dur,
                    cpu,
                    tid: tid(header.tid),
                    pid: pid(r.tgid),
                    lock: r.lock as i64,
                    kind: names.fixed(text::lock_kind(r.flags)),
                    flags: r.flags as i32,
                });
            }
            kind::SYSCALL => {
                let r: abi::Syscall = read(bytes)?;
                let (ts, dur) = interval(r.entry_ts, ts);
                self.syscalls.push(Syscall {
                    ts,
                    dur,
                    cpu,
                    tid: tid(header.tid),
                    pid: pid(r.tgid),
                    number: r.number as i32,
                    name: names.syscall(r.number),
                    ret: r.ret,
                });
            }
            kind::PAGE_FAULT => {
                let r: abi::PageFault = read(bytes)?;
                let (access, cause) = text::fault(r.error);
                self.faults.push(PageFault {
                    ts,
                    cpu,
                    tid: tid(header.tid),
                    pid: pid(r.tgid),
                    address: r.address as i64,
                    access,
                    cause,
                    error: r.error as i32,
                });
            }
            _ => return None,
        }
        Some(())
    }
}

/// Entry and duration of what was recorded at its exit.
fn interval(entry_ts: u64, exit: Nanos) -> (Nanos, i64) {
    let entry = nanos(entry_ts);
    (entry, exit.0.saturating_sub(entry.0).max(0))
}

fn nanos(ns: u64) -> Nanos {
    Nanos(i64::try_from(ns).unwrap_or(i64::MAX))
}

fn tid(tid: u32) -> Tid {
    Tid(tid as i32)
}

fn pid(pid: u32) -> Pid {
    Pid(pid as i32)
}

/// A record that is valid whatever its bytes are.
///
/// # Safety
///
/// The type consists of integers and arrays of them, without padding.
unsafe trait Plain: Copy {}

// SAFETY: the layout crate declares them so, and asserts their sizes.
unsafe impl Plain for Header {}
// SAFETY: as above.
unsafe impl Plain for abi::Switch {}
// SAFETY: as above.
unsafe impl Plain for abi::Waking {}
// SAFETY: as above.
unsafe impl Plain for abi::Migrate {}
// SAFETY: as above.
unsafe impl Plain for abi::Irq {}
// SAFETY: as above.
unsafe impl Plain for abi::Task {}
// SAFETY: as above.
unsafe impl Plain for abi::Contention {}
// SAFETY: as above.
unsafe impl Plain for abi::Syscall {}
// SAFETY: as above.
unsafe impl Plain for abi::PageFault {}

/// The record at the start of `bytes`; `None` when it is cut short.
fn read<T: Plain>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.get(..size_of::<T>())?;
    // SAFETY: the slice is as long as `T`, which is valid for any bytes (`Plain`).
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(super) use tests::bytes as test_bytes;
