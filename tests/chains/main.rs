//! Call chains and profiles of programs whose truth is known, on the running kernel.

mod gone;
mod jits;
mod killed;
mod locks;
mod peer;
mod pprof;
mod shares;
mod shortly;
mod stage;
mod tables;
mod unframed;
mod vdso;
mod ways;

use ft_tests::gate;
#[allow(dead_code, reason = "each test binary uses its own part")]
use ft_tests::oracle;

use ft_tests::registry;
