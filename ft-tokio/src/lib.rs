//! Every task of a [tokio](https://docs.rs/tokio) runtime in Feather-Trace, wrapped or not: by the hooks that tokio has
//! where a program is built with `RUSTFLAGS="--cfg tokio_unstable"`.
//!
//! ```
//! # #[cfg(tokio_unstable)]
//! # fn main() -> std::io::Result<()> {
//! let mut builder = tokio::runtime::Builder::new_current_thread();
//! let runtime = ft_tokio::follow(&mut builder).build()?;
//! runtime.block_on(async {
//!     tokio::spawn(async { /* … */ }).await.ok();
//! });
//! # Ok(())
//! # }
//! # #[cfg(not(tokio_unstable))]
//! # fn main() {}
//! ```
//!
//! Its events are those of [`ft_user::task`], off until they are asked for: `ft-agent record -e 'async.*' …`. A task has
//! tokio's number for it with 10^15 added, and is called by the place where it was spawned.
//!
//! # What the hooks do not report
//!
//! - *Wake-ups.* Between two polls nobody knows whether a task waits or is queued, nor who woke it. That time is *unknown* in
//!   reports, and tasks are marked `lower bound`; their polls are exact. Wrap those that matter with
//!   [`ft_user::task::named`], which records wake-ups: they are then a task within the one of tokio.
//! - *How a task ends.* A panic, and an `abort`, look as if the task were ready. One that ends with its runtime is dropped.
//! - *The future of `block_on`*, tasks of a `LocalSet` and closures of `spawn_blocking`: the first two are no tasks to the
//!   hooks, and of the last ones only the end is recorded, which reports leave out.
//!
//! A builder has room for one closure of each hook: who sets hooks of its own calls `spawned`, `polls`, `polled` and
//! `over` in them.
//!
//! Tokio may change these hooks in any release.

#[cfg(tokio_unstable)]
mod runtime;

#[cfg(tokio_unstable)]
pub use runtime::{follow, over, polled, polls, spawned};
