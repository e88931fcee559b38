//! Group `signal`: signals that are sent, and signals that a thread takes.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use ft_ebpf::{Signal, kind, program};

use crate::{
    filter::current,
    kernel::TaskStruct,
    record::{header, now, write},
};

/// `(int sig, kernel_siginfo *info, task_struct *task, int group, int result)`.
#[btf_tracepoint(function = "signal_generate")]
fn signal_generate(ctx: BtfTracePointContext) -> i32 {
    let sender = current();
    let receiver = TaskStruct::new(ctx.arg(2));
    if sender.is_observed() || receiver.is_observed() {
        let ts = now();
        write(const { program::index("signal_generate") }, ts, || Signal {
            header: header(ts, kind::SIGNAL_GENERATE, sender.tid),
            sender_tgid: sender.tgid,
            tid: receiver.tid(),
            tgid: receiver.tgid(),
            number: ctx.arg(0),
            group: ctx.arg(3),
            result: ctx.arg(4),
        });
    }
    0
}

/// `(int sig, kernel_siginfo *info, k_sigaction *ka)`: the current thread takes it.
#[btf_tracepoint(function = "signal_deliver")]
fn signal_deliver(ctx: BtfTracePointContext) -> i32 {
    let receiver = current();
    if receiver.is_observed() {
        let ts = now();
        write(const { program::index("signal_deliver") }, ts, || Signal {
            header: header(ts, kind::SIGNAL_DELIVER, receiver.tid),
            sender_tgid: 0,
            tid: receiver.tid,
            tgid: receiver.tgid,
            number: ctx.arg(0),
            group: 0,
            result: 0,
        });
    }
    0
}
