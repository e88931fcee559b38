//! A trigger that is off, between a nop and its peers. Cycles of the time stamp counter.

use std::arch::asm;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use ft_costs::cycles::{Loop, Plan, net};
use ft_costs::{cpu, fewer, hold, issue, latency, sixteen, tell};
use ft_user::event;

static FLAG: AtomicBool = AtomicBool::new(false);

#[usdt::provider]
mod costs_usdt {
    fn two_words(a: u64, b: u64) {}
}

/// A nop of five bytes: what nobody can be cheaper than.
macro_rules! nop {
    () => {
        // SAFETY: `nop dword ptr [rax + rax]`, which reads no memory.
        unsafe {
            asm!(".byte 0x0f, 0x1f, 0x44, 0x00, 0x00", options(nomem, nostack, preserves_flags))
        }
    };
}

/// The trigger of the Feather-Trace paper: `jmp` over a displacement byte, always taken.
macro_rules! paper {
    () => {
        // SAFETY: jumps to the next instruction.
        unsafe {
            asm!(
                ".byte 0xeb, 0x03",
                ".byte 0x0f, 0x1f, 0x00",
                options(nomem, nostack, preserves_flags)
            )
        }
    };
}

macro_rules! flag {
    ($x:ident, $i:ident) => {
        if FLAG.load(Ordering::Relaxed) {
            cold($x, $i);
        }
    };
}

#[cold]
#[inline(never)]
fn cold(a: u64, b: u64) {
    black_box((a, b));
}

latency!(base_latency, |x, i| hold!(i));
issue!(base_issue, |x, i| hold!(i));

/// One site in both bodies, sixteen in the one with full issue slots.
macro_rules! subject {
    ($latency:ident, $issue:ident, $sixteen:ident, |$x:ident, $i:ident| $e:expr) => {
        latency!($latency, |$x, $i| $e);
        issue!($issue, |$x, $i| $e);
        issue!($sixteen, |$x, $i| sixteen!($e));
    };
}

subject!(same_latency, same_issue, same_sixteen, |x, i| hold!(x));
subject!(nop_latency, nop_issue, nop_sixteen, |x, i| nop!());
subject!(ours_latency, ours_issue, ours_sixteen, |x, i| event!("costs.off", x: u64, i: u64));
subject!(flag_latency, flag_issue, flag_sixteen, |x, i| flag!(x, i));
subject!(paper_latency, paper_issue, paper_sixteen, |x, i| paper!());
subject!(tracing_latency, tracing_issue, tracing_sixteen, |x, i| tracing::trace!(x, i));
subject!(usdt_latency, usdt_issue, usdt_sixteen, |x, i| costs_usdt::two_words!(|| (x, i)));

type Subject = (&'static str, Loop, Loop, Loop);
const SUBJECTS: [Subject; 7] = [
    // The empty loop once more, elsewhere in memory: what the measurement itself is worth.
    ("same", same_latency, same_issue, same_sixteen),
    ("nop", nop_latency, nop_issue, nop_sixteen),
    ("ours", ours_latency, ours_issue, ours_sixteen),
    ("flag", flag_latency, flag_issue, flag_sixteen),
    ("paper", paper_latency, paper_issue, paper_sixteen),
    ("tracing", tracing_latency, tracing_issue, tracing_sixteen),
    ("usdt", usdt_latency, usdt_issue, usdt_sixteen),
];

/// Tells `NAME.latency`, `NAME.issue` and `NAME.sixteen`, each per site.
pub(crate) fn measure() {
    // Written somewhere, or the compiler knows it.
    FLAG.store(black_box(false), Ordering::Relaxed);
    cpu::pin(cpu::measured());
    usdt::register_probes().expect("the probes of usdt register");
    let plan = Plan { batches: fewer(31, 4), ..Plan::OFF };
    for (name, latency, issue, sixteen) in SUBJECTS {
        tell(&format!("{name}.latency"), net(base_latency, latency, plan));
        tell(&format!("{name}.issue"), net(base_issue, issue, plan));
        tell(&format!("{name}.sixteen"), net(base_issue, sixteen, plan) / 16.0);
    }
}
