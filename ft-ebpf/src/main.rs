//! The kernel programs: what the scheduler and the interrupts did, as records in one BPF ring buffer.
//!
//! Each program is a BTF tracepoint (`tp_btf`) and bears the tracepoint's name, but for those of [`chain`] and
//! [`futex`], a second one at tracepoints that have one, for [`sample`], which a clock calls, for what ends a [`fault`], for [`probe`], which programs call, and for [`section`], at functions of the kernel. It reads the clock
//! first, decides by [`filter`] whether the record is wanted, and writes it in place into [`maps::RECORDS`];
//! what finds no room is counted in [`maps::LOSS`]. Nothing is woken: the agent polls. No field offset of
//! the kernel is built in: the agent reads them from the running kernel's BTF and sets the [`config`]
//! before loading.
#![cfg_attr(target_arch = "bpf", no_std, no_main, feature(asm_experimental_arch))]

#[cfg(not(target_arch = "bpf"))]
compile_error!("these are BPF programs, not a program for this machine; run `cargo xtask build`");

#[cfg(target_arch = "bpf")]
mod chain;
#[cfg(target_arch = "bpf")]
mod config;
#[cfg(target_arch = "bpf")]
mod counter;
#[cfg(target_arch = "bpf")]
mod descriptor;
#[cfg(target_arch = "bpf")]
mod fault;
#[cfg(target_arch = "bpf")]
mod filter;
#[cfg(target_arch = "bpf")]
mod futex;
#[cfg(target_arch = "bpf")]
mod irq;
#[cfg(target_arch = "bpf")]
mod kernel;
#[cfg(target_arch = "bpf")]
mod lock;
#[cfg(target_arch = "bpf")]
mod maps;
#[cfg(target_arch = "bpf")]
mod probe;
#[cfg(target_arch = "bpf")]
mod record;
#[cfg(target_arch = "bpf")]
mod sample;
#[cfg(target_arch = "bpf")]
mod sched;
#[cfg(target_arch = "bpf")]
mod section;
#[cfg(target_arch = "bpf")]
mod signal;
#[cfg(target_arch = "bpf")]
mod syscall;
#[cfg(target_arch = "bpf")]
mod task;

/// The kernel lets only programs under a GPL-compatible licence call its tracing helpers.
#[cfg(target_arch = "bpf")]
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

/// A program cannot panic: the verifier would refuse it, so nothing that could is ever compiled in.
#[cfg(target_arch = "bpf")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
