//! Feather-Trace's embeddable tracer: events, locks and gaps of an application, for the agent to put on
//! one clock with what the kernel did.
//!
//! ```
//! use ft_user::event;
//! use ft_user::sync::Mutex;
//!
//! static ACCOUNTS: Mutex<[i64; 8]> = Mutex::named("accounts", [100; 8]);
//!
//! fn deposit(account: usize, amount: i64) {
//!     event!("bank.deposit", account: usize, amount: i64; "{amount} to {account}");
//!     ACCOUNTS.lock().unwrap()[account] += amount;
//! }
//!
//! ft_user::init().ok();
//! deposit(3, 50);
//! ```
//!
//! - [`event!`] is a trigger: one nop while it is off, a write to the thread's own ring while it
//!   is on. Its arguments are evaluated only then. [`scope!`] records a begin and an end.
//! - [`sync`] has the locks of `std` that record who waited, who held, how deep and where, and its barrier and channels.
//! - [`#[function]`](macro@function) records each call of a function: how often, and where its time went.
//! - [`task`] follows async tasks, on any executor: their polls, who wakes them, how they end.
//! - [`gap::Poller`] finds the times in which a polling thread did not run.
//! - [`init`] makes the buffers and meets the agent. [`enable()`] and [`disable()`] switch sites by glob;
//!   the agent does so too, also while the program runs.
//!
//! # What it promises its host
//!
//! - It starts no thread, and installs no signal handler. Dropping or ignoring any result is harmless.
//! - An event makes no system call, takes no lock, does not allocate and does not wait; its steps are
//!   bounded. The exception is a thread's first event, which claims a ring with a few system calls
//!   ([`thread_init`] does that ahead of time), and a thread without a ring, which asks for its id once. Only if the agent was
//!   asked to (`record --counter`), a thread opens, maps, unmaps and closes counters with an event, then and whenever what is asked for
//!   changes, and with `--counter-calls` each event reads them by system calls.
//! - Events may be written anywhere: in signal handlers, allocators and destructors of thread-locals.
//!   `errno` and all registers stay as they are.
//! - A full buffer loses events, never delays: losses are counted, with the place where they happened. Only if the agent was
//!   asked to (`record --on-full wait`), a thread waits for room, for a bounded time, and records that it did.
//! - A site that an agent has switched on goes off with it. Where it was killed, a thread notices that loses an event some seconds later,
//!   and switches these sites off, which takes a few microseconds each, once. What the program has switched on stays on.
//! - Program text changes by one byte per site, and only where a trigger stands; no page is ever
//!   writable and executable at once.
//! - Without an agent nothing happens behind [`init`]. An agent that dies, hangs or answers nonsense costs
//!   half a second at the start at most, five where `FT_SOCKET` names the agent ([`Agent`]).
//! - What was committed survives the process, however it ends, as long as an agent holds the memfd.
//!
//! # What it costs
//!
//! | | | row of `cargo xtask bench` |
//! |---|---|---|
//! | a site that is off | one nop | `off` |
//! | an event | about one reading of the time stamp counter | `on` |
//! | an event with text | 1.1 to 2.3 times that with 16 bytes; half a microsecond when it must be cut | `on` |
//! | [`init`] | 34 to 100 µs in a small program, 67 to 212 µs with 500 sites | `startup` |
//! | memory | 32 bytes per slot, backed when first used: at most 8 MiB per thread, and some 100 KiB | [`Config`] |
//!
//! # Async code
//!
//! [`event!`] works in any `async` code: it is recorded for the thread that polls. [`scope!`] and the guards of
//! [`sync`] belong to a thread, so they are not [`Send`], as `std`'s guards are not: a task that may move between threads
//! does not compile with one of them across an `.await`. Where it does compile, on one thread, other tasks run in
//! between, and the end of one scope would be taken for that of another: keep them within a block without `.await`.
//!
//! A task itself is followed by [`task`]: where it was polled, for how long, and why it was not.
//!
//! ```
//! // What an executor with several threads asks for.
//! fn spawn(_: impl Future + Send) {}
//! spawn(ft_user::task::named("request", async {
//!     {
//!         let _parse = ft_user::scope!("request.parse");
//!         // … nothing waits here …
//!     }
//!     std::future::ready(()).await;
//! }));
//! ```
//!
//! An async lock (`tokio::sync::Mutex`) blocks no thread, so it is none of [`sync`]; events before and after its
//! `lock().await` show it.
//!
//! # Limits
//!
//! - Six arguments per event, 304 bytes in all; longer text is cut and marked. The shared ring keeps 96
//!   bytes.
//! - Rings for 256 threads at once ([`Config::rings`]); further threads share one ring of 8192 events. The
//!   ring of a thread that has ended is free again when the agent has read it.
//! - A thread's first event, and one that its ring has no room for, takes some 4 KB of the thread's stack, 6 where it is
//!   unoptimised: a signal stack (`sigaltstack`) of the least size has no room for that. The first one calls getpid, gettid, prctl, mmap,
//!   mremap and rt_sigprocmask, and a forked child memfd_create, prlimit64, ftruncate, fcntl, fstat, munmap,
//!   madvise, faccessat, socket, connect, sendmsg and close: a seccomp filter must not answer these by killing. [`thread_init`] does what the
//!   first event does ahead of time. When an agent was killed, a thread that loses events for it asks by prctl whether a seccomp filter is
//!   in force, and only if there is none, opens and writes /proc/self/mem to switch sites off: with a filter they stay on until the
//!   next recording ends, or the program switches them off.
//! - A signal that strikes while an event is written finds nothing there by which to unwind: what its handler makes of the
//!   stack (`backtrace`) may end at the event. Frame pointers are as they were.
//! - A child of `fork` starts a memfd of its own, wherever the fork came from, a signal handler that has interrupted an event, too. What
//!   other threads and children of `vfork` write in it while fork handlers that are older than tracing run is counted as lost. One of
//!   `_Fork` or a bare `clone` must not write events, nor one whose fork had begun when tracing was started and whose thread has written
//!   events since: it would write to its parent's rings, and both would lose some. A thread that leaves a fork by `longjmp` from a fork
//!   handler writes to the shared ring until it forks again, from no deeper in its stack.
//! - A thread may be cancelled at any instruction (`PTHREAD_CANCEL_ASYNCHRONOUS`) of an event, too, but for its rare path, behind which it is.
//!   With `mlockall(MCL_FUTURE)` a thread's first event takes all of its ring, which takes milliseconds; without it, events take its
//!   pages one by one until the ring has gone round. Call [`thread_init`] ahead.
//! - No descriptor is kept while an agent has the process; without one, one that the program may close.
//! - Each executable or library that embeds the crate has its own buffers, and calls [`init`] itself. It must
//!   not be unloaded (`dlclose`) once a thread has written an event.
//! - Where the program's allocator asks the loader where its caller is (`dladdr`), a library's constructor must not call [`init`], [`enable()`]
//!   or [`disable()`] while another thread may do so: the two can wait for each other without end. The constructor of the C header waits
//!   for nobody so.
//! - The locks of `std` itself, of `parking_lot` and of C libraries are not seen, only those of [`sync`] and
//!   those that are wrapped (features `lock_api`, `lock_api_0_4`). There is no traced `Once`.
//!   What blocks elsewhere shows in the kernel's stream, as time in which the thread did not run.
//! - Sites exist on x86-64 Linux. For other Linux targets everything compiles as with `--cfg ft_off`.
//!
//! # Features
//!
//! Each of them only adds: whoever does not use what a feature adds runs as without it, although cargo builds the crate once for
//! a whole program, with the features that any of its crates asks for.
//!
//! - `lock_api` adds wrappers for the locks of `parking_lot` 0.13 and others that are built on `lock_api` 0.5;
//!   `lock_api_0_4` those for `parking_lot` 0.12 and `lock_api` 0.4.
//! - `dynamic` adds sites that are made at run time (`dynamic`), on which the crate `ft-tracing` rests.
//! - `slice` adds mutexes whose holders ask for time-slice extensions, `Mutex::with_slice_extension` of [`sync`].
//! - `sleds` adds `find_sleds`, by which functions of C and C++ that were compiled for it are sites.
//! - `downgrade` adds `sync::RwLockWriteGuard::downgrade`, for which Rust 1.92 is needed.
//!
//! # Building without sites
//!
//! `--cfg ft_off` compiles every site out. Arguments are still type-checked, [`init`] does nothing, and locks and tasks are those
//! that they wrap. It is set by whoever builds the final program, for all crates in it, and by no crate for another one:
//!
//! ```sh
//! RUSTFLAGS="--cfg ft_off" cargo build --release
//! ```
//!
//! or, to keep it with the program, in its `.cargo/config.toml`:
//!
//! ```toml
//! [build]
//! rustflags = ["--cfg", "ft_off"]
//! ```
//!
//! A library never has to mention it: it writes its sites, and its users choose. In C and C++ it is `-DFT_OFF`.
//!
//! # Minimum Rust
//!
//! The minimum Rust is 1.88: lints hold the interfaces of `std` that are used to it, but no build with 1.88 has been
//! tried. A feature needs what its dependencies need: `lock_api` 0.5 declares 1.95.
//!
//! # Environment
//!
//! | variable | meaning |
//! |---|---|
//! | `FT_ENABLE` | globs of what is on from the start, separated by commas: `order.*,lock.*` |
//! | `FT_PATCHABLE` | 1: functions of C and C++ are compiled with gcc's `-fpatchable-function-entry=11`, and are to be switched by these nops |
//! | `FT_SOCKET` | the agent's socket, instead of `/run/feather-trace/agent.sock` |
//! | `FT_RING_SLOTS`, `FT_RINGS` | sizes, see [`Config`] |
//! | `FT_MODE` | `discard` (default) or `overwrite` |
//!
//! A program that runs with more rights than its user (set-user-id) ignores all of them.

// Modules that are public and hidden are what macros expand to, and what the agent reads with: no promise to
// programs, and of one version with the agent.

// Where sites exist, everything here is used; elsewhere much of it only has to compile.
#![cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    allow(dead_code, reason = "the tracer is compiled out on this target")
)]

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod arch;
mod arg;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod at_fork;
mod atomic;
mod claim;
mod config;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[doc(hidden)]
pub mod counters;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod critical;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod described;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod descriptor;
#[doc(hidden)]
pub mod directory;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(ft_off))))]
mod disabled;
#[cfg(feature = "dynamic")]
pub mod dynamic;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod enable;
mod error;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod fork;
#[doc(hidden)]
pub mod function;
pub mod gap;
pub mod glob;
mod guard;
#[doc(hidden)]
pub mod handover;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod intern;
#[cfg_attr(
    any(ft_off, not(feature = "sleds"), not(target_arch = "x86_64")),
    allow(dead_code, reason = "what is left out needs some of them")
)]
mod kernel;
#[doc(hidden)]
pub mod layout;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod lease;
mod loader;
#[cfg(feature = "lock_api")]
pub mod lock_api;
#[cfg(feature = "lock_api_0_4")]
pub mod lock_api_0_4;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod looked;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod mapped;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod memfd;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod own_memory;
#[doc(hidden)]
pub mod patch;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod portable;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod process;
mod publish;
#[doc(hidden)]
pub mod reader;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod register;
#[doc(hidden)]
pub mod ring;
mod scope;
#[doc(hidden)]
pub mod shared_ring;
#[doc(hidden)]
pub mod site;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod sites;
#[cfg(all(feature = "sleds", target_arch = "x86_64", target_os = "linux", not(ft_off)))]
mod sled;
mod status;
pub mod sync;
pub mod task;
#[cfg(test)]
mod test_ring;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod text;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[doc(hidden)]
pub mod thread;
mod trigger;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod tsc;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod unfinished;
#[doc(hidden)]
pub mod wait;

pub use arg::{Arg, Tsc};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use claim::thread_init;
pub use config::Config;
#[cfg(all(feature = "sleds", target_arch = "x86_64", target_os = "linux"))]
pub use enable::find_sleds;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use enable::{__loaded, disable, enable, switch};
pub use error::InitError;
pub use function::function;
pub use layout::{ArgType, Mode};
pub use patch::PatchError;
#[cfg(all(feature = "sleds", not(all(target_arch = "x86_64", target_os = "linux"))))]
pub use portable::find_sleds;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub use portable::{__loaded, disable, enable, init, init_with, switch, thread_init};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use process::{init, init_with};
pub use status::{Agent, Status, Switched};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[doc(hidden)]
pub use trigger::{__order, __pair, __vector};
