//! A trace as data: what its tables hold, how they are stored, and how they are made from a spool.
//!
//! A recording is first a *spool* ([`spool`]): what the rings of the applications and of the kernel held, unparsed.
//! [`convert`] turns it into a *trace*: a directory of Parquet tables, each declared in [`tables`]. A [`Trace`] reads
//! them back, one by one ([`Trace::rows`]) or merged into one [stream](stream::events) ordered by time.
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
pub mod clock;
#[cfg(feature = "store")]
pub mod convert;
#[cfg(feature = "store")]
pub mod dir;
#[cfg(feature = "store")]
pub mod reach;
#[cfg(feature = "store")]
pub mod spool;
#[cfg(feature = "store")]
pub mod store;
#[cfg(feature = "store")]
pub mod stream;
#[cfg(feature = "store")]
pub mod warning;

#[cfg(feature = "store")]
pub use dir::Refused;
pub use mark::Mark;
#[cfg(feature = "store")]
pub use store::Trace;
