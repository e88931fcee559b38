//! What a call about a futex, a system call, a page fault and a wait for a lock of the kernel cost more with the group on that
//! records them, which is one that has to be asked for.

use anyhow::Result;

use super::added::{Added, perf};
use super::kernel::tracefs;
use crate::bench::Bench;
use crate::figures::Figures;
use crate::table::{Row, number};

/// A group, a subject that does what it records, and what others record of the same.
struct Asked {
    /// What a row says is measured.
    what: &'static str,
    figure: &'static str,
    subject: &'static [&'static str],
    group: &'static str,
    /// Events of perf.
    events: &'static [&'static str],
    /// A program for bpftrace that counts them.
    counts: &'static str,
    /// The system calls that strace is to count, if it can.
    calls: Option<&'static str>,
}

impl Asked {
    fn row(&self, bench: &Bench) -> Result<Row> {
        let Asked { subject, .. } = self;
        let events = || tracefs().and_then(|()| perf(bench, &[], self.events, subject));
        let counted = || tracefs().and_then(|()| self.bpftrace(bench));
        let stopped = || self.strace(bench);
        let mut others: Vec<super::added::Other<'_>> =
            vec![("perf record", &events), ("bpftrace", &counted)];
        if self.calls.is_some() {
            others.push(("strace", &stopped));
        }
        let ours: [(&str, &[&str]); 1] = [("ours", &["-k", self.group])];
        let added = Added::to(self.figure, subject, bench, 5, &ours, &others)?;
        let row = Row::new(self.what, number(added.must("ours")?)).beside([
            ("unwatched", added.by("unwatched")),
            ("error", added.by("error")),
            ("perf record adds", added.by("perf record")),
            ("bpftrace, which counts, adds", added.by("bpftrace")),
            ("strace -c adds", added.by("strace")),
        ]);
        Ok(row.remark(&added.remarks()))
    }

    fn bpftrace(&self, bench: &Bench) -> Result<Figures> {
        let command = format!("{} {}", bench.beside("subject").display(), self.subject.join(" "));
        Figures::of(bench.program("bpftrace").args(["-e", self.counts, "-c", &command]))
    }

    fn strace(&self, bench: &Bench) -> Result<Figures> {
        let mut strace = bench.program("strace");
        strace.args(["-f", "-c", "-o", "/dev/null", "-e"]);
        strace.arg(format!("trace={}", self.calls.unwrap_or("none")));
        Figures::of(strace.arg(bench.beside("subject")).args(self.subject))
    }
}

const FUTEX: Asked = Asked {
    what: "a wake-up of nobody at a futex, our group futex, added; ns",
    figure: "wake",
    subject: &["calls", "futex"],
    group: "futex",
    events: &["syscalls:sys_enter_futex", "syscalls:sys_exit_futex"],
    counts: "tracepoint:syscalls:sys_enter_futex { @begins = count(); } \
             tracepoint:syscalls:sys_exit_futex { @ends = count(); }",
    calls: Some("futex"),
};

/// The group hooks into all system calls, to see those that it records.
const OTHER: Asked =
    Asked { what: "any other system call, the same group; ns", figure: "other", ..FUTEX };

const SYSCALL: Asked = Asked {
    what: "a system call that does next to nothing, our group syscall, added; ns",
    figure: "other",
    subject: &["calls", "other"],
    group: "syscall",
    events: &["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"],
    counts: "tracepoint:raw_syscalls:sys_enter { @begins = count(); } \
             tracepoint:raw_syscalls:sys_exit { @ends = count(); }",
    calls: Some("getppid"),
};

const FAULT: Asked = Asked {
    what: "the first write to a page, our group fault, added; ns",
    figure: "fault",
    subject: &["calls", "fault"],
    group: "fault",
    events: &["exceptions:page_fault_user"],
    counts: "tracepoint:exceptions:page_fault_user { @begins = count(); }",
    calls: None,
};

const LOCK: Asked = Asked {
    what: "a round with one wait for a lock of the kernel, our group lock, added; ns",
    figure: "round",
    subject: &["contended"],
    group: "lock",
    events: &["lock:contention_begin", "lock:contention_end"],
    counts: "tracepoint:lock:contention_begin { @begins = count(); } \
             tracepoint:lock:contention_end { @ends = count(); }",
    calls: None,
};

pub(crate) fn futex(bench: &Bench) -> Result<Vec<Row>> {
    Ok(vec![FUTEX.row(bench)?, OTHER.row(bench)?])
}

pub(crate) fn syscall(bench: &Bench) -> Result<Vec<Row>> {
    Ok(vec![SYSCALL.row(bench)?])
}

pub(crate) fn fault(bench: &Bench) -> Result<Vec<Row>> {
    Ok(vec![FAULT.row(bench)?])
}

pub(crate) fn lock(bench: &Bench) -> Result<Vec<Row>> {
    Ok(vec![LOCK.row(bench)?])
}
