//! What stands in for time-slice extensions without the feature `slice`, and where there are none: nothing.

/// See `slice.rs`.
#[derive(Clone, Copy)]
pub(super) struct Asks;

impl Asks {
    pub(super) const NO: Asks = Asks;
    #[cfg(feature = "slice")]
    pub(super) const YES: Asks = Asks;
}

/// See `slice.rs`.
pub(super) struct Extension;

impl Extension {
    #[inline(always)]
    pub(super) fn ask(_asks: Asks) -> Extension {
        Extension
    }

    #[inline(always)]
    pub(super) fn end_in_call(self) {}
}
