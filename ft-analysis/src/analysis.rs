//! What an analysis is, and which there are.

use crate::world::{Change, World};
use crate::{Rows, Tally};

/// Something that is learned from a trace: a machine that is shown each [`Change`] of the [`World`] as it happens.
///
/// It keeps its own open intervals and nothing else, since all that is common is the world's. Changes come in the order
/// of time, and every thread ends with [`Change::Ended`] before the trace does.
pub trait Analysis: Default {
    /// It is told each piece of what threads did and who had the CPUs ([`Change::Spent`], [`Change::Occupied`]), which
    /// nobody needs for a sum.
    const DRAWS: bool = false;

    /// From the next event on, it is told each piece of what threads did ([`Change::Spent`]).
    #[inline]
    fn follows(&self) -> bool {
        Self::DRAWS
    }

    /// `change` has just happened, unless it says that it is about to; `world` is as it is then. Rows of intervals that
    /// are over go to `rows`.
    fn see(&mut self, change: &Change<'_>, world: &World, rows: &mut Rows);

    /// The trace is over: what is left goes to `rows`, what gave no row to `tally`.
    fn end(&mut self, world: &World, rows: &mut Rows, tally: &mut Tally) {
        let _ = (world, rows, tally);
    }
}

/// Registers the analyses: [`All`] shows each of them whatever it is shown.
macro_rules! analyses {
    ($($name:ident: $($path:ident)::+,)*) => {
        $(pub use crate::$($path)::+;)*

        /// All analyses.
        #[derive(Debug, Default)]
        pub struct All {
            $($name: crate::$($path)::+,)*
        }

        impl Analysis for All {
            #[inline]
            fn see(&mut self, change: &Change<'_>, world: &World, rows: &mut Rows) {
                $(self.$name.see(change, world, rows);)*
            }

            #[inline]
            fn follows(&self) -> bool {
                false $(|| self.$name.follows())*
            }

            fn end(&mut self, world: &World, rows: &mut Rows, tally: &mut Tally) {
                $(self.$name.end(world, rows, tally);)*
            }
        }
    };
}

analyses! {
    holds: holds::Holds,
    preemptions: holds::Preemptions,
    order: holds::Order,
    waits: waits::Waits,
    dispatch: dispatch::Dispatch,
    gaps: gaps::Gaps,
    time: time::Time,
    scopes: scopes::Scopes,
    requests: requests::Requests,
    npt: npt::Npt,
    loads: loads::Loads,
    chains: chains::Chains,
    futexes: futexes::Futexes,
}

/// The analyses and where their rows go.
pub(crate) struct Audience<'a, A> {
    pub(crate) analysis: &'a mut A,
    pub(crate) rows: &'a mut Rows,
}

impl<A: Analysis> Audience<'_, A> {
    /// Shows a change.
    #[inline]
    pub(crate) fn tell(&mut self, world: &World, change: Change<'_>) {
        self.analysis.see(&change, world, self.rows);
    }
}
