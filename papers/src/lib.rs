//! The experiments of the papers that Feather-Trace rests on, done again by one command.
//!
//! Each experiment is a file: it runs what its paper ran, as far as this machine can, and tells *paper | ours | why they
//! differ*. What all of them share stands here: how long each runs ([`Lab`]), the load beside them ([`load`]), statistics,
//! tables of values, drawings, and the page that collects it all ([`page`]).
//!
//! Nothing here adjusts a figure to that of a paper: what a row says of ours is computed from the run, and the values
//! that it was computed from lie beside it as CSV.
//!
//! A crate of its own, so that the drawing library is built neither with `xtask` nor with the loads.

mod csv;
pub mod experiment;
mod feather_trace;
mod hourglass;
mod lab;
mod load;
mod multilevel;
mod npt;
pub mod page;
mod peers;
mod plot;
mod quantity;
mod recorded;
mod stats;
mod trace;

pub use experiment::{EXPERIMENTS, Experiment, Finding, Row};
pub use lab::Lab;
