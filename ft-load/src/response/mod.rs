//! `ft-load response`: how long the jobs of a set of tasks can take at worst, by analysis.

mod analysis;
mod command;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

pub use analysis::{Response, Task, analyse, utilisation};
pub use command::run;
