//! What the tests share: the programs that they run, whether the kernel can be recorded here, and what a test says of itself.

pub mod accept;
pub mod built;
pub mod files;
pub mod gate;
pub mod oracle;
pub mod pytest;
pub mod registry;
pub mod said;
pub mod signal;

pub use accept::accepts;
pub use built::agent;
