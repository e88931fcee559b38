//! Catalogues in an object store: a real server of Amazon's protocol on loopback, and before it a proxy that does what networks
//! and stores do on bad days. Everything here runs without rights.

mod abandoned;
mod bring;
mod engines;
use ft_tests::files;
mod fleet;
mod liar;
mod lies;
mod memory;
mod patience;
mod proxy;
mod requests;
use ft_tests::said;
mod server;
mod stage;
mod tasks;
