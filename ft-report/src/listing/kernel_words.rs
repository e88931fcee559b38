//! The kernel's events, and losses, in words.
//!
//! A line has its thread in front (see [`Entry::subject`]), so the words begin with what follows it.

use std::fmt::Write;

use serde_json::{Value, json};
use syscalls::Errno;

use super::entry::Entry;
use super::names::{Names, write_thread};
use crate::report::format::{count, dur};
use ft_trace::tables::{IrqKind, TaskKind};

/// Return values of system calls that are errors: the negated `errno` (`MAX_ERRNO`,
/// include/linux/err.h).
const ERRORS: std::ops::RangeInclusive<i64> = -4095..=-1;

/// Return values from here on are addresses.
const ADDRESS: i64 = 1 << 32;

/// Appends what the event says; nothing for an event of an application.
pub(super) fn write(entry: &Entry, names: &Names, out: &mut String) {
    // Writing into a `String` does not fail.
    let _ = match entry {
        Entry::Switch(e) => {
            let _ = write!(out, "({}) -> ", e.prev_state);
            write_thread(&e.next_comm, e.next_tid, out);
            if e.next_tid.0 == 0 { Ok(()) } else { write!(out, " prio {}", e.next_prio) }
        }
        Entry::Waking(e) => {
            out.push_str("-> ");
            names.write_thread(Some(e.pid), e.tid, out);
            write!(out, " prio {} (last on cpu {})", e.prio, e.target_cpu)
        }
        Entry::Migrate(e) => write!(out, "cpu {} -> {}", e.from_cpu, e.to_cpu),
        Entry::Irq(e) if e.kind == IrqKind::Hard => {
            write!(out, "{} {} {}", e.number, e.name, dur(e.dur))
        }
        Entry::Irq(e) => write!(out, "{} {}", e.name, dur(e.dur)),
        Entry::Task(e) => match (e.kind, e.parent_pid) {
            (TaskKind::Fork, Some(parent)) if parent == e.pid.0 => {
                write!(out, "new thread of {parent}")
            }
            (TaskKind::Fork, Some(parent)) => write!(out, "new process, child of {parent}"),
            (TaskKind::Exec | TaskKind::Rename, _) => write!(out, "is now {}", e.comm),
            _ => Ok(()),
        },
        Entry::Contention(e) => {
            write!(out, "{} {:#x} waited {}", e.kind, e.lock, dur(e.dur))
        }
        Entry::Syscall(e) => {
            let _ = match e.ret {
                ret if ERRORS.contains(&ret) => match Errno::new(-ret as i32).name() {
                    Some(name) => write!(out, "= -{name}"),
                    None => write!(out, "= {ret}"),
                },
                ret if ret >= ADDRESS => write!(out, "= {ret:#x}"),
                ret => write!(out, "= {ret}"),
            };
            write!(out, " in {}", dur(e.dur))
        }
        Entry::Fault(e) => write!(out, "{} {:#x} ({})", e.access, e.address, e.cause),
        Entry::Loss(e) => {
            let lost = count(e.count.max(0) as u64);
            write!(out, "{lost} lost within {}: {}", dur(e.dur), e.what)
        }
        Entry::User(_) => Ok(()),
    };
}

/// What the event carries, for programs: the columns of its table that a line does not have already; null
/// for an event of an application.
pub(super) fn fields(entry: &Entry) -> Value {
    match entry {
        Entry::Switch(e) => json!({
            "prev_prio": e.prev_prio, "prev_state": e.prev_state, "next_tid": e.next_tid,
            "next_pid": e.next_pid, "next_comm": &*e.next_comm, "next_prio": e.next_prio,
        }),
        Entry::Waking(e) => json!({
            "tid": e.tid, "pid": e.pid, "prio": e.prio, "target_cpu": e.target_cpu,
        }),
        Entry::Migrate(e) => json!({ "from_cpu": e.from_cpu, "to_cpu": e.to_cpu }),
        Entry::Irq(e) => json!({ "number": e.number, "name": &*e.name, "dur": e.dur }),
        Entry::Task(e) => json!({ "comm": &*e.comm, "parent_pid": e.parent_pid }),
        Entry::Contention(e) => json!({
            "kind": &*e.kind, "lock": e.lock as u64, "flags": e.flags, "dur": e.dur,
        }),
        Entry::Syscall(e) => json!({ "number": e.number, "ret": e.ret, "dur": e.dur }),
        Entry::Fault(e) => json!({
            "address": e.address as u64, "access": e.access, "cause": e.cause,
            "error": e.error,
        }),
        Entry::Loss(e) => json!({ "what": &*e.what, "count": e.count, "dur": e.dur }),
        Entry::User(_) => Value::Null,
    }
}
