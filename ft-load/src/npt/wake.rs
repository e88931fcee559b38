//! Waking who reads the events, as a tracer does that notifies its reader of each buffer that is full.
//!
//! Feather-Trace's own programs make no system call for an event. This one does where the agent asks for it (`ft-agent record
//! --reader waking`), to show what that costs: the latencies that Beamonte and Dagenais (2015, section 5) found came from
//! such a call.

use std::env;

/// The descriptor that the agent waits for, and when it is written to.
#[derive(Debug)]
pub(super) struct Wake {
    descriptor: libc::c_int,
    /// Events from one waking to the next.
    every: u64,
    left: u64,
}

impl Wake {
    /// Where the agent asks for it; each time when an eighth of a ring of `slots` is full.
    pub(super) fn asked_for(slots: u32) -> Option<Self> {
        Self::on(&env::var("FT_WAKE").ok()?, slots)
    }

    fn on(descriptor: &str, slots: u32) -> Option<Self> {
        let descriptor = descriptor.parse().ok().filter(|descriptor| *descriptor >= 0)?;
        let every = u64::from(slots / 8).max(1);
        Some(Wake { descriptor, every, left: every })
    }

    /// An event was written, which has one slot.
    #[inline]
    pub(super) fn written(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.left = self.every;
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        let one = 1u64;
        // SAFETY: eight bytes that are there. Where nobody can be woken any more nothing happens.
        unsafe { libc::write(self.descriptor, (&raw const one).cast(), size_of_val(&one)) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, pipe};
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn each_eighth_of_a_ring_wakes_once() {
        let (mut read, write) = pipe().unwrap();
        let mut wake = Wake::on(&write.as_raw_fd().to_string(), 80).unwrap();
        (0..39).for_each(|_| wake.written());
        drop(write);
        let mut woken = Vec::new();
        read.read_to_end(&mut woken).unwrap();
        assert_eq!(woken.len(), 3 * 8);
        for wrong in ["", "x", "-1"] {
            assert!(Wake::on(wrong, 80).is_none());
        }
    }
}
