//! A shared library with a site of its own, for `tests/plugin.rs`.

use ft_user::event;

/// Runs through the site; returns its argument.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_run(value: u64) -> u64 {
    event!("plugin.run", value: u64, next: u64 = value + 1);
    value
}
