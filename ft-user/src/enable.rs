//! Which sites are on: by glob, from the application, the environment and the agent.

use core::sync::atomic::Ordering::*;

use crate::patch::Text;
use crate::process::{self, LOCK};
use crate::{glob, sites};

/// Enables the sites whose name matches `glob` ([`crate::glob`]), in every loaded object, and returns
/// how many match and are on now.
///
/// Starts tracing if [`init`](crate::init) was not called. Sites of a library that is loaded later are
/// off until the next call. Not for signal handlers.
///
/// ```
/// let sites = ft_user::enable("order.*");
/// ```
pub fn enable(glob: &str) -> usize {
    process::init().ok();
    set(glob, true)
}

/// Disables the sites whose name matches `glob`, and returns how many match and are off now.
///
/// A thread that is just passing a trigger may still write its event. Not for signal handlers.
pub fn disable(glob: &str) -> usize {
    set(glob, false)
}

pub(crate) fn set(glob: &str, on: bool) -> usize {
    let Some(segment) = process::segment() else { return 0 };
    let held = LOCK.hold();
    let Ok(mut text) = Text::own() else { return 0 };
    let mut done = 0;
    let count = sites::for_each(&segment.directory(), &held, |site| {
        // A site that cannot be patched does not count.
        if glob::matches(glob, site.meta.name()) && text.set(site.trigger as u64, on).is_ok() {
            done += 1;
        }
    });
    drop(text);
    segment.header().sites_enabled.store(count.enabled as u32, Relaxed);
    done
}
