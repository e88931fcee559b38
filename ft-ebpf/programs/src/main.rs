//! The kernel programs: what the scheduler and the interrupts did, as records in one BPF ring buffer.
//!
//! Each program is a BTF tracepoint (`tp_btf`) and bears the tracepoint's name, but for those of [`chain`] and
//! [`futex`], a second one at tracepoints that have one, for [`sample`], which a clock calls, for what ends a [`fault`], for [`probe`], which programs call, and for [`section`], at functions of the kernel. It reads the clock
//! first, decides by [`filter`] whether the record is wanted, and writes it in place into [`maps::RECORDS`];
//! what finds no room is counted in [`maps::LOSS`]. Nothing is woken: the agent polls. No field offset of
//! the kernel is built in: the agent reads them from the running kernel's BTF and sets the [`config`]
//! before loading.
#![no_std]
#![no_main]
#![feature(asm_experimental_arch)]

#[cfg(not(target_arch = "bpf"))]
compile_error!("these are BPF programs, not a program for this machine; run `cargo xtask build`");

mod chain;
mod config;
mod counter;
mod descriptor;
mod fault;
mod filter;
mod futex;
mod irq;
mod kernel;
mod lock;
mod maps;
mod number;
mod probe;
mod record;
mod sample;
mod sched;
mod section;
mod signal;
mod sleep;
mod syscall;
mod task;
mod throttle;

/// The kernel lets only programs under a GPL-compatible licence call its tracing helpers.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

/// A program cannot panic: the verifier would refuse it, so nothing that could is ever compiled in.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
