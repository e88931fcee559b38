//! Regehr, "Inferring Scheduling Behavior with Hourglass" (USENIX 2002), sections 3 and 5.
//!
//! Its machine had one CPU, so what it ran runs here on one of ours.

pub(crate) mod fig3;
pub(crate) mod fig4;
pub(crate) mod fig5;
pub(crate) mod reservations;
pub(crate) mod responses;
pub(crate) mod table1;
pub(crate) mod table2;
