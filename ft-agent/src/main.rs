//! The `ft-agent` command.
fn main() {}
