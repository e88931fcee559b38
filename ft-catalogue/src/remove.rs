//! Taking traces away.

use crate::{Catalogue, Entry, Result};

impl Catalogue {
    /// Removes a trace: first its row, with which it exists; then its files.
    ///
    /// # Errors
    ///
    /// When it cannot be. Without its row it does not exist, whatever is left of it.
    pub fn remove(&self, entry: &Entry) -> Result<()> {
        match entry.key() {
            Some(key) => self.place.remove(&key),
            None => Ok(()),
        }
    }

    /// Removes what was begun a day ago and not finished: traces that were being brought or removed; how many there were.
    ///
    /// # Errors
    ///
    /// When something cannot be removed.
    pub fn sweep(&self) -> Result<u64> {
        self.place.sweep()
    }
}
