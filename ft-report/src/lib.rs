//! What a trace says: reports and listings, as text and as JSON.
//!
//! [`analyze`](analyze::analyze()) runs all analyses over a trace and stores their tables in it; each report of
//! [`report`] reads those and makes its figures; [`listing`] puts every event into words.

pub mod analyze;
pub mod document;
pub mod listing;
pub mod render;
pub mod sections;
pub mod stats;
pub mod units;
