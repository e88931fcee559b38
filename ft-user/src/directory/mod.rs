//! The directory: an append-only log in the memfd that explains the numbers in the rings.
//!
//! The writer half (in the traced process) is wait-free: one `fetch_add` reserves the bytes of an
//! entry, its size is stored, then its content, and its kind last. The reader half ([`parse`], in the
//! agent) takes a copy of the bytes and trusts none of them.
//!
//! A writer that dies in the middle of an entry hides the entries behind it. That ends with the
//! process: only an agent that comes later sees less than it could have.

mod read;
mod write;

pub use read::{Entry, Malformed, Parser, parse};
pub(crate) use write::Directory;

/// Longest string of an entry in bytes; the writer cuts at a character boundary, the reader refuses.
///
/// Limit: cut at a character, and marked with `…` in events.
/// Shown by: `long_strings_are_cut_at_a_character`, `long_text_is_cut_and_marked`.
pub const MAX_STRING_BYTES: usize = 4096;

/// Longest entry: a site with every string at its longest.
///
/// Limit: as `DIR_BYTES` of `layout.rs`.
pub const MAX_ENTRY_BYTES: usize =
    32 + (3 + crate::layout::MAX_ARGS) * (MAX_STRING_BYTES + 2) + crate::layout::MAX_ARGS;
