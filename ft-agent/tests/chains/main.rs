//! Call chains and profiles of programs whose truth is known, on the running kernel.

mod jits;
mod locks;
mod shares;
mod stage;
mod ways;

#[path = "../common/gate.rs"]
mod gate;
