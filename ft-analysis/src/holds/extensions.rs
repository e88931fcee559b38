//! What came of the time-slice extensions that holders asked for.

use ft_trace::tables::SliceOutcome;
use serde::{Deserialize, Serialize};

/// Holds whose releases report a time-slice extension (`Mutex::with_slice_extension` of `ft-user`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Extensions {
    /// The holder could not ask.
    pub impossible: u64,
    /// It had asked, and needed none.
    pub pending: u64,
    /// It released the lock within an extension.
    pub granted: u64,
    /// It was off the CPU all the same, or made a system call in an extension.
    pub over: u64,
}

impl Extensions {
    /// No release reported one.
    pub fn is_none(&self) -> bool {
        *self == Extensions::default()
    }

    pub(super) fn add(&mut self, outcome: SliceOutcome) {
        match outcome {
            SliceOutcome::None => {}
            SliceOutcome::Impossible => self.impossible += 1,
            SliceOutcome::Pending => self.pending += 1,
            SliceOutcome::Granted => self.granted += 1,
            SliceOutcome::Over => self.over += 1,
        }
    }
}
