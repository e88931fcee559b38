//! A shared library with a site and a copy of the tracer of its own, for tests.

use ft_user::event;

/// Starts the library's own copy of the tracer.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_start() {
    ft_user::init().ok();
}

/// Runs through the site; returns its argument.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_run(value: u64) -> u64 {
    event!("plugin.run", value: u64, next: u64 = value + 1);
    value
}
