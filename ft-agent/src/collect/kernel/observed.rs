//! The set of observed processes, shared with the programs: a byte for each process id.
//! A wake-up looks at it with one load, and the set is never full.

use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use aya::maps::{Map, MapError};
use ft_ebpf::observed::{ENDED, OBSERVED, PIDS};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The map, mapped. Both sides write single bytes, so none undoes what the other does.
pub(super) struct Observed(NonNull<AtomicU8>);

// SAFETY: the memory belongs to this value, and all of it is atomic.
unsafe impl Send for Observed {}

impl Observed {
    /// Maps it.
    ///
    /// # Errors
    ///
    /// When it is not the array that it should be, or the kernel refuses.
    pub(super) fn new(map: Option<&Map>) -> Result<Observed, MapError> {
        let Some(Map::Array(data)) = map else {
            return Err(MapError::InvalidName { name: "OBSERVED".to_owned() });
        };
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let address = unsafe {
            mmap(ptr::null_mut(), PIDS, protection, MapFlags::SHARED, data.fd().as_fd(), 0)
        };
        let address = address.map_err(|error| MapError::IoError(error.into()))?;
        Ok(Observed(NonNull::new(address.cast()).expect("mmap gives no null")))
    }

    /// Has the programs record nothing from now on, but those that have begun to.
    pub(super) fn end(&self) {
        if let Some(nobody) = self.byte(0) {
            nobody.store(ENDED, Relaxed);
        }
    }

    fn byte(&self, pid: u32) -> Option<&AtomicU8> {
        // SAFETY: the index is in the mapping, which lives as long as `self`.
        ((pid as usize) < PIDS).then(|| unsafe { self.0.add(pid as usize).as_ref() })
    }

    /// Whether the process is in the set.
    pub(super) fn contains(&self, pid: u32) -> bool {
        self.byte(pid).is_some_and(|byte| byte.load(Relaxed) == OBSERVED)
    }

    /// Takes the process in or out. No process has an id beyond the set.
    pub(super) fn set(&self, pid: u32, observed: bool) {
        if let Some(byte) = self.byte(pid) {
            byte.store(if observed { OBSERVED } else { 0 }, Relaxed);
        }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        // SAFETY: as `new` has mapped it; nobody else has a reference to it.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), PIDS) };
    }
}
