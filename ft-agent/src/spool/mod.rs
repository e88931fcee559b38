//! The spool: what a recording writes and a conversion reads.
//!
//! `DIR/spool/registry.ft` holds what all segments refer to (start, processes, directories, threads,
//! end) and stays until the last segment is converted. `DIR/spool/segment-NNNNNN.ft` holds the rest;
//! each begins and ends with a clock sample, so that it can be converted by itself. Both are plain
//! sequences of [`frame::Frame`]s. Segment N becomes part N of every table.

pub mod frame;
