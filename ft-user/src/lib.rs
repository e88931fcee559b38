//! Feather-Trace's embeddable tracer.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod arch;
mod arg;
pub mod directory;
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(feature = "off"))))]
mod disabled;
pub mod glob;
pub mod layout;
pub mod patch;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod process;
pub mod reader;
pub mod ring;
pub mod shared_ring;
pub mod site;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod thread;
mod trigger;

pub use arg::{Arg, Tsc};
