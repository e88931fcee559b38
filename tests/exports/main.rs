//! Exports, each read back by its own reader and compared with the tables.

use ft_tests::gate;

mod chains;
mod ctf;
mod firefox;
mod hostile;
mod judge;
mod locks;
mod paje;
mod perfetto;
#[path = "../stored/stage.rs"]
#[allow(dead_code, reason = "unpacks only")]
mod stage;
mod vite;
