//! When to look from outside for sites of objects that a recorded process has loaded meanwhile.
//!
//! A library that is loaded with `dlopen` brings sites that nobody has declared: the process looks for
//! sites only when it switches some itself. So each process is looked at every [`DISTANCE`], and scanned
//! ([`outside`]) only when the list of its mapped files has changed, for a scan takes milliseconds in
//! which no ring is drained. Where the process may not be traced, its own declarations must do.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::collect::outside::{self, Site};

/// From look to look: how long the sites of a new library stay off.
const DISTANCE: Duration = Duration::from_secs(1);

/// What was seen at the last look.
pub(super) struct Late {
    next: Instant,
    /// Mapped files of each source, by its number.
    objects: HashMap<u32, Vec<u64>>,
}

impl Late {
    pub(super) fn new() -> Late {
        Late { next: Instant::now() + DISTANCE, objects: HashMap::new() }
    }

    /// It is time for the next look at all processes.
    pub(super) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let due = now >= self.next;
        if due {
            self.next = now + DISTANCE;
        }
        due
    }

    /// All sites of a process when its objects have changed since the last look; of one that is gone or
    /// may not be read, nothing.
    pub(super) fn look(&mut self, source: u32, pid: i32) -> Option<Vec<Site>> {
        let objects = outside::objects(pid).ok()?;
        if self.objects.get(&source) == Some(&objects) {
            return None;
        }
        let sites = outside::sites(pid).ok()?;
        self.objects.insert(source, objects);
        Some(sites)
    }

    /// The process of this source is not looked at any more.
    pub(super) fn forget(&mut self, source: u32) {
        self.objects.remove(&source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_scanned_once_for_each_list_of_objects() {
        let pid = std::process::id() as i32;
        let mut late = Late::new();
        assert!(late.look(0, pid).is_some());
        // Another thread of this test binary may map a file in between.
        while late.look(0, pid).is_some() {}
        assert!(late.look(1, pid).is_some());
        late.objects.insert(0, vec![1]);
        assert!(late.look(0, pid).is_some());
        assert!(late.look(2, -1).is_none());
    }
}
