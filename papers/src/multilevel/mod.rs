//! Danjean, Wacrenier and Namyst, "An Efficient Multi-level Trace Toolkit for Multi-threaded Applications" (2005), sections 2.3
//! and 3.3.
//!
//! Its hybrid threads are async tasks here: scheduled by an executor on its workers, as they were by Marcel on its LWPs.

pub(crate) mod fig2;
pub(crate) mod fig3;
mod recording;
pub(crate) mod table1;
pub(crate) mod table2;

/// Executors that are compared: what `--queues` of `ft-load tasks` is for each, and what it does.
const EXECUTORS: [(&str, &str); 2] =
    [("shared", "one queue, which ignores affinity"), ("own", "a queue for each worker")];
