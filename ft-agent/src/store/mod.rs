//! The store: a trace as a directory of Parquet tables.

pub mod rows;
