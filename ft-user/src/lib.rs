//! Feather-Trace's embeddable tracer.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod arch;
mod arg;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod claim;
mod config;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod critical;
pub mod directory;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(feature = "off"))))]
mod disabled;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod enable;
mod error;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod fork;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod gap;
pub mod glob;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod intern;
pub mod layout;
pub mod patch;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod process;
pub mod reader;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod register;
pub mod ring;
pub mod shared_ring;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod shm;
pub mod site;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod sites;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod sync;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod thread;
mod trigger;

pub use arg::{Arg, Tsc};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use claim::thread_init;
pub use config::Config;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use enable::{disable, enable};
pub use error::InitError;
pub use layout::Mode;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use process::{Status, init, init_with};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use register::Agent;
