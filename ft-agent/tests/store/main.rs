//! Catalogues in an object store: a real server of Amazon's protocol on loopback, and before it a proxy that does what networks
//! and stores do on bad days. Everything here runs without rights.
#![cfg(feature = "s3")]

mod abandoned;
mod bring;
mod engines;
#[path = "../common/files.rs"]
mod files;
mod fleet;
mod memory;
mod patience;
mod proxy;
mod requests;
#[path = "../common/said.rs"]
mod said;
mod server;
mod stage;
mod tasks;
