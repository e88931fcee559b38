//! What an analysis is, and which there are.

use crate::world::{Change, World};
use crate::{Rows, Tally};

/// Something that is learned from a trace: a machine that is shown each [`Change`] of the [`World`] as it happens.
///
/// It keeps its own open intervals and nothing else, since all that is common is the world's. Changes come in the order
/// of time, and every thread ends with [`Change::Ended`] before the trace does.
pub trait Analysis: Default {
    /// It is shown each piece of what threads did and who had the CPUs ([`Change::Spent`], [`Change::Occupied`]), which
    /// nobody needs for a sum.
    const DRAWS: bool = false;

    /// From the next event on, it is shown each piece of what threads did ([`Change::Spent`]).
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

pub use crate::blame::Blame;
pub use crate::breakdown::Breakdowns;
pub use crate::chains::Chains;
pub use crate::dispatch::Dispatch;
pub use crate::doubts::Doubts;
pub use crate::functions::Functions;
pub use crate::futexes::Futexes;
pub use crate::gaps::Gaps;
pub use crate::holds::{Holds, Order, Preemptions, WhatIfs};
pub use crate::kernel_locks::KernelLocks;
pub use crate::loads::Loads;
pub use crate::npt::Npt;
pub use crate::requests::Requests;
pub use crate::sampling::Sampling;
pub use crate::scopes::Scopes;
pub use crate::tasks::Tasks;
pub use crate::time::Time;
pub use crate::waits::Waits;
pub use crate::wake_pairs::WakePairs;

/// Makes one analysis of several: it shows each of them whatever it is shown.
macro_rules! analyses {
    ($(#[$doc:meta])* $set:ident { $($name:ident: $analysis:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub struct $set {
            $($name: $analysis,)*
        }

        impl Analysis for $set {
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
    /// All analyses.
    All {
        holds: Holds,
        preemptions: Preemptions,
        what_ifs: WhatIfs,
        order: Order,
        waits: Waits,
        dispatch: Dispatch,
        gaps: Gaps,
        time: Time,
        scopes: Scopes,
        functions: Functions,
        requests: Requests,
        tasks: Tasks,
        npt: Npt,
        loads: Loads,
        chains: Chains,
        futexes: Futexes,
        kernel_locks: KernelLocks,
        breakdown: Breakdowns,
        wake_pairs: WakePairs,
        blame: Blame,
        sampling: Sampling,
        doubts: Doubts,
    }
}

analyses! {
    /// Those of a recording that goes on, whose intervals somebody sees at once.
    Intervals {
        holds: Holds,
        preemptions: Preemptions,
        waits: Waits,
        dispatch: Dispatch,
        gaps: Gaps,
    }
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
