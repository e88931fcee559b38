//! Call chains and profiles of programs whose truth is known, on the running kernel.

mod gone;
mod jits;
mod locks;
mod peer;
mod shares;
mod stage;
mod tables;
mod vdso;
mod ways;

#[path = "../common/gate.rs"]
mod gate;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../common/oracle.rs"]
mod oracle;

#[path = "../common/registry.rs"]
mod registry;
