//! Exports, each read back by its own reader and compared with the tables.

#[path = "../common/gate.rs"]
mod gate;

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
