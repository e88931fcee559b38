//! What a trace says: reports and listings, as text and as JSON.
//!
//! [`analyze`](analyze::analyze()) runs all analyses over a trace and stores their tables in it. Each report of
//! [`sections`] reads those, makes its statistics ([`stats`]) and says what they mean with typed values, of which it formats
//! none ([`document`]); [`render`] makes text or JSON of that. [`listing`] puts every event into words. This crate
//! computes nothing that an analysis should have, and touches neither processes nor the kernel.
//!
//! ```
//! use ft_report::sections::{self, Asked};
//! use ft_report::{analyze, document::Document};
//! use ft_trace::store::Trace;
//!
//! fn print(dir: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
//!     let trace = Trace::open(dir)?;
//!     // What this version has not analysed is analysed now; who watches could draw progress, or end it.
//!     let tally = analyze::ensure(&trace, &mut |_| std::ops::ControlFlow::Continue(()))?;
//!     let document = Document::of(&trace, &tally, sections::find("locks"), Asked::default())?;
//!     println!("{document:80}");
//!     println!("{}", serde_json::to_string_pretty(&document)?);
//!     Ok(())
//! }
//!
//! let error = print("/no/such/trace".as_ref()).unwrap_err();
//! assert!(error.to_string().contains("/no/such/trace"));
//! ```

pub mod analyze;
pub mod code;
pub mod compare;
pub mod document;
pub mod export;
pub mod fleet;
pub mod listing;
pub mod render;
pub mod sections;
pub mod stats;
pub mod timeline;
pub mod tracks;
pub mod units;
