//! Feather-Trace's embeddable tracer.

pub mod layout;
