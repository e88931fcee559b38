//! The attacks, one a file.

mod descriptors;
mod huge_pages;

use crate::Attack;

/// All, in the order in which they run.
pub(crate) const ALL: &[&Attack] = &[&descriptors::ATTACK, &huge_pages::ATTACK];
