//! The analyses of which something is drawn, and what they tell beside their rows.

use std::collections::BTreeMap;

use ft_analysis::unended::{self, Unmet};
use ft_analysis::world::{Change, Occupancy, Stretch, World};
use ft_analysis::{Analysis, Dispatch, Gaps, Holds, Loads, Rows, Scopes, Tally, Tasks, Waits};
use ft_trace::ids::ThreadKey;
use ft_trace::tables::{CriticalSection, Scope};

/// What is in no table.
#[derive(Debug)]
pub(super) enum Told {
    Occupied(Occupancy),
    State(Stretch),
    Hold(CriticalSection),
    Unmet(Unmet),
    Scope(Scope),
}

/// Runs the analyses and listens to the world.
#[derive(Debug, Default)]
pub(super) struct Listener {
    holds: Holds,
    waits: Waits,
    dispatch: Dispatch,
    gaps: Gaps,
    scopes: Scopes,
    tasks: Tasks,
    /// Of which only the runs are drawn, and they where the kernel does not tell who ran.
    loads: Loads,
    /// Of each thread, the stretch that may go on.
    open: BTreeMap<ThreadKey, Stretch>,
    /// What was not taken yet.
    pub(super) told: Vec<Told>,
}

impl Analysis for Listener {
    const DRAWS: bool = true;

    fn see(&mut self, change: &Change<'_>, world: &World, rows: &mut Rows) {
        match *change {
            Change::Occupied(occupancy) => self.occupied(occupancy),
            Change::Spent(stretch) if world.context().has_kernel() => self.spent(stretch),
            Change::HoldLost { thread, hold } => {
                self.told.extend(unended::hold(thread, hold, world).map(Told::Hold));
            }
            Change::WaitOver { thread, wait, end } => {
                self.told.extend(unended::wait(thread, wait, end, world).map(Told::Unmet));
            }
            Change::Dropping { thread, .. } => {
                let open = unended::scopes(&mut self.scopes, thread, world);
                self.told.extend(open.into_iter().map(Told::Scope));
            }
            Change::Ended { thread, .. } => self.settle(thread.key()),
            _ => {}
        }
        self.holds.see(change, world, rows);
        self.waits.see(change, world, rows);
        self.dispatch.see(change, world, rows);
        self.gaps.see(change, world, rows);
        self.scopes.see(change, world, rows);
        self.tasks.see(change, world, rows);
        if !world.context().has_kernel() {
            self.loads.see(change, world, rows);
        }
    }

    fn end(&mut self, world: &World, rows: &mut Rows, tally: &mut Tally) {
        self.holds.end(world, rows, tally);
        self.waits.end(world, rows, tally);
        self.dispatch.end(world, rows, tally);
        self.gaps.end(world, rows, tally);
        self.scopes.end(world, rows, tally);
        self.tasks.end(world, rows, tally);
        if !world.context().has_kernel() {
            self.loads.end(world, rows, tally);
        }
    }
}

impl Listener {
    /// A thread has left its CPU, so that it is known what it did there.
    fn occupied(&mut self, occupancy: &Occupancy) {
        self.settle(occupancy.who.thread);
        self.told.push(Told::Occupied(occupancy.clone()));
    }

    /// A stretch may go on with the one before.
    fn spent(&mut self, stretch: &Stretch) {
        if self.open.get_mut(&stretch.thread).is_some_and(|open| open.extend(stretch)) {
            return;
        }
        let before = self.open.insert(stretch.thread, stretch.clone());
        self.told.extend(before.map(Told::State));
    }

    /// The newest stretch of a thread is over.
    fn settle(&mut self, thread: ThreadKey) {
        self.told.extend(self.open.remove(&thread).map(Told::State));
    }
}
