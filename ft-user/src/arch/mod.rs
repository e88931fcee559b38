//! What depends on the processor: one file per architecture, one interface.

#[cfg(all(test, not(feature = "off")))]
mod tests;
mod x86_64;

pub(crate) use x86_64::*;
