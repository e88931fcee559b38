//! A shared library with a site and a copy of the tracer of its own, for tests.

use ft_user::event;
use ft_user::sync::Mutex;

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

/// Holds so many locks once each: `plugin 0`, `plugin 1`, …
#[unsafe(no_mangle)]
pub extern "C" fn plugin_hold(locks: u64) {
    for i in 0..locks {
        // For good: no other lock shall have its address.
        let lock = Box::leak(Box::new(Mutex::named(format!("plugin {i}").leak(), ())));
        drop(lock.lock());
    }
}
