//! Calls of functions that are probed, and what lies between two marks of a program, as requests.
//!
//! **Rule.** A call and its return have the same stack pointer, so an end takes the newest begin of its name with its own.
//! Between marks there is no such place: there an end takes the newest begin of its name.
//!
//! **Calls that are left.** A stack grows downwards. When a function is called, or returns, above the place of a call that
//! goes on, that one was left without a return: by `longjmp`, or it was deeper than the kernel follows returns (64 calls,
//! `MAX_URETPROBE_DEPTH` in include/linux/uprobes.h). It has no row, and is counted, [`RequestCounts::left`]. The kernel
//! judges by the same rule whom it calls when a function returns (`arch_uretprobe_is_alive`, arch/x86/kernel/uprobes.c). A
//! last call that became a jump has the place of its caller, so what lies at the same place stays, unless the same function
//! is called there: then it was left, too.
//!
//! [`RequestCounts::left`]: super::RequestCounts::left

use super::{Open, Requests};
use crate::Rows;
use crate::world::{Over, Thread, World};
use ft_trace::event::LeanProbe;
use ft_trace::tables::ProbeKind;

/// Where a call of a probed function lies in the stack; `None` between marks.
pub(super) type Probed = Option<u64>;

impl Requests {
    /// A thread has come to a place that is probed.
    pub(super) fn probed(
        &mut self,
        thread: &Thread,
        hit: &LeanProbe,
        world: &World,
        rows: &mut Rows,
    ) {
        let place = hit.stack_pointer.map(|pointer| pointer as u64);
        match hit.kind {
            ProbeKind::Begin => {
                let again = |open: &Open| open.probe == Some(place) && open.name == hit.probe;
                self.left(thread, |open, call| Some(call) < place || again(open));
                let open = self.begins(thread, &hit.probe, None, world);
                self.push(thread, Open { probe: Some(place), ..open }, world);
            }
            ProbeKind::End => {
                let is = |open: &Open| open.probe == Some(place) && open.name == hit.probe;
                let found = self.threads.of(thread).iter().rposition(is);
                let Some(at) = found else {
                    self.counts.unpaired.end_only += 1;
                    return;
                };
                let open = self.threads.of(thread).remove(at);
                // Those that it has called are over, too.
                let within =
                    |o: &Open, call| Some(call) < place || Some(call) == place && o.nth > open.nth;
                self.left(thread, within);
                self.over(thread, open, None, world, rows);
            }
        }
    }

    /// Forgets the calls of a thread of which `is` says, also by their place, that they were left.
    fn left(&mut self, thread: &Thread, is: impl Fn(&Open, u64) -> bool) {
        let gone = |open: &Open| open.probe.flatten().is_some_and(|call| is(open, call));
        for open in self.remove(thread, gone) {
            self.counts.left += 1;
            self.forget(&open);
        }
    }

    /// Which calls the thread is in is not known any more.
    pub(super) fn probes_lost(&mut self, thread: &Thread) {
        for open in self.remove(thread, |open| open.probe.is_some()) {
            self.counts.unpaired.dropped(1, Over::Loss);
            self.forget(&open);
        }
    }
}
