//! A trace as data: what its tables hold, how they are stored, and how they are made from a spool.
//!
//! A recording is first a *spool* ([`spool`]): what the rings of the applications and of the kernel held, unparsed.
//! [`convert`] turns it into a *trace*: a directory of Parquet tables, each declared in [`tables`]. A [`Trace`] reads
//! them back, one by one ([`Trace::rows`]) or merged into one [stream](stream::events) ordered by time.
//!
//! ```
//! use ft_trace::Trace;
//! use ft_trace::event::Event;
//! use ft_trace::stream;
//! use ft_trace::tables::ThreadRow;
//!
//! # use ft_trace::ids::{Cpu, Nanos, Pid, Tid};
//! # use ft_trace::store::{Footer, Meta, SCHEMA_VERSION, TableWriter};
//! # use ft_trace::tables::SchedMigrate;
//! # let folder = tempfile::tempdir()?;
//! # let dir = folder.path();
//! # let (ts, tid, pid) = (Nanos(5), Tid(7), Pid(6));
//! # let (name, process) = ("worker".into(), "server".into());
//! # let mut threads = TableWriter::create(dir, Footer::default())?;
//! # threads.push(ThreadRow { ts, tid, pid, name, process, prio: None, observed: true })?;
//! # threads.finish()?;
//! # let mut moves = TableWriter::create(dir, Footer::default())?;
//! # moves.push(SchedMigrate { ts, cpu: Cpu(0), tid, pid, from_cpu: Cpu(0), to_cpu: Cpu(1) })?;
//! # moves.finish()?;
//! # Meta { schema_version: SCHEMA_VERSION, ..Meta::default() }.write(dir)?;
//! # let mut found = Vec::new();
//! let trace = Trace::open(dir)?;
//! for thread in trace.rows::<ThreadRow>() {
//!     let thread = thread?;
//!     println!("thread {} of {} is called {}", thread.tid, thread.process, thread.name);
//! }
//! for event in stream::events(&trace) {
//!     if let Event::Migrate(moved) = event? {
//!         println!("{} ns: thread {} goes to CPU {}", moved.ts, moved.tid, moved.to_cpu);
//! #         found.push((moved.ts.0, moved.to_cpu.0));
//!     }
//! }
//! # assert_eq!(found, [(5, 1)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where to read on
//!
//! 1. [`ids`]: what must not be mixed up: threads, processes, CPUs, two clocks.
//! 2. [`tables`]: every table, declared once; [`words`] for columns of a few words, [`Mark`] for how far a figure can
//!    be believed. [`store::catalogue`] says the same to programs, and the page `TABLES.md` to people.
//! 3. [`event`] and [`stream`]: all tables of events as one stream, and the rule for events of equal time.
//! 4. [`store`]: how rows become Parquet and come back, and what a half-written trace looks like.
//! 5. [`spool`], [`clock`], [`convert`]: what was recorded, the line from the time stamp counter to CLOCK_MONOTONIC,
//!    and the way from a spool to tables, which can be interrupted anywhere.
//! 6. [`warning`]: what a reader should know of the quality of a trace, each with its remedy.
//!
//! # Where it ends
//!
//! This crate knows neither how anything was captured nor what anything means: the one is `ft-agent`'s part, the
//! other `ft-analysis`'s, which needs only [`ids`], [`tables`] and [`event`], and so builds without the feature
//! `store`.

pub mod event;
pub mod ids;
mod mark;
pub mod tables;
pub mod words;

#[cfg(feature = "store")]
pub mod build_id;
#[cfg(feature = "store")]
pub mod bytes;
#[cfg(feature = "store")]
pub mod calendar;
#[cfg(feature = "store")]
pub mod clock;
#[cfg(feature = "store")]
pub mod convert;
#[cfg(feature = "store")]
pub mod demangle;
#[cfg(feature = "store")]
pub mod dir;
#[cfg(feature = "store")]
pub mod foreign_file;
#[cfg(feature = "store")]
pub mod helper;
#[cfg(feature = "store")]
pub mod legible;
#[cfg(feature = "store")]
pub mod look;
#[cfg(feature = "store")]
pub mod mounts;
#[cfg(feature = "store")]
pub mod number;
#[cfg(feature = "store")]
pub mod owners;
#[cfg(feature = "store")]
pub mod reach;
#[cfg(feature = "store")]
pub mod spool;
#[cfg(feature = "store")]
pub mod store;
#[cfg(feature = "store")]
pub mod stream;
#[cfg(feature = "store")]
pub mod vdso;
#[cfg(feature = "store")]
pub mod warning;
#[cfg(feature = "store")]
pub mod whole_dir;
#[cfg(feature = "store")]
pub mod whole_file;

#[cfg(feature = "store")]
pub use dir::Refused;
pub use mark::Mark;
#[cfg(feature = "store")]
pub use store::Trace;
