//! Collection: what processes and the kernel wrote, copied to the spool.
//!
//! Nothing here parses an event. A process reaches the collection in one of two ways: it registers at
//! the socket ([`registration`](crate::control::registration)), or it already runs and is found under `/proc` ([`discover`], with -p). Both
//! end in [`attach`], which believes nothing that the process says, and in a [`user::Source`], which the
//! collection thread drains. What takes as long as a process likes is done aside ([`looks`](crate::control), [`inspect`]),
//! and what a user can have of anything is a share ([`shares`]).

pub mod arrivals;
pub mod attach;
pub mod cgroup;
pub mod discover;
pub mod fair_queue;
mod fault;
pub mod geometry;
pub mod inspect;
pub mod kernel;
pub mod late;
pub mod later;
pub mod maps;
mod numbers;
pub mod outside;
pub mod peer;
pub mod probe;
pub mod rates;
pub mod refusals;
pub mod remote;
pub mod shares;
pub mod user;
pub mod work;
