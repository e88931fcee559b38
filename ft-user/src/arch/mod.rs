//! What depends on the processor: one file per architecture, one interface.

#[cfg(test)]
mod tests;
mod x86_64;

pub(crate) use x86_64::*;
