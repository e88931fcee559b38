//! Feather-Trace's agent: records applications and the kernel on one clock.
//!
//! The command `ft-agent` is built of this library; the grammar of its command line and the subcommands are the binary's
//! own. The library is for programs that want to record, or to switch sites of another process, without starting the
//! command. What a recording holds, what it means and how it is shown are `ft-trace`'s, `ft-analysis`'s and `ft-report`'s.
//!
//! ```
//! use ft_agent::doctor::{self, Status};
//! use ft_agent::record::Options;
//!
//! // What this machine can record, and how to get what is missing.
//! for check in doctor::run().iter().filter(|check| check.status != Status::Ok) {
//!     println!("{}: {}; {}", check.name, check.found, check.remedy);
//! #   assert!(!check.remedy.is_empty(), "{check:?}");
//! }
//!
//! // What `ft-agent record -- /bin/true` records, with the kernel's part left out: for that one needs rights.
//! let options =
//!     Options { command: vec!["/bin/true".into()], kernel: Vec::new(), ..Options::default() };
//! # assert_eq!(options.output, std::path::Path::new("trace"));
//! ```
//!
//! [`record::record`] does it, and leaves a spool, which [`ft_trace::convert::convert`] turns into a trace.
//!
//! # Where to read on
//!
//! 1. [`record`]: one recording, from its options to a complete spool.
//! 2. [`collect`]: what meets the traced processes and the kernel: who registers, rings, BPF programs, probes. Everything
//!    that a process says is checked here.
//! 3. [`flight`]: a recording that keeps a window of time, its snapshots and triggers; [`top`]: one that is looked at
//!    while it goes on.
//! 4. [`live`]: the sites of a running process, listed and switched from outside.
//! 5. [`clock`]: the two clocks, read together; [`doctor`]: what this machine lacks.
//! 6. [`control`]: the runtime on which a recording waits for what comes from outside; its control socket.
//! 7. [`threads`], [`signals`], [`inherited`]: how threads begin and end, and the signals that the agent handles.
//!
//! # Where it ends
//!
//! Linux on x86-64. The interfaces of this library are those that the command needs, and may change with any version: what
//! is stable is listed in `CHANGELOG.md`.

pub mod clock;
pub mod collect;
pub mod control;
pub mod cpus;
pub mod doctor;
pub mod flight;
pub mod inherited;
pub mod live;
pub mod logger;
pub mod record;
pub mod signals;
pub mod status_line;
pub mod threads;
pub mod top;
