//! Our loads beside programs of others that measure the same, by turns.

pub(crate) mod cyclictest;
pub(crate) mod deadline;
