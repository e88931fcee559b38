//! Sites that are on for an agent go off when it is gone.
//!
//! An agent that ends switches off what it has switched on. One that is killed does not, and each event of these sites would be lost in
//! a full ring from then on, for the rest of the program's life. So the agent says again and again until when its sites stay on
//! ([`Header::lease`](crate::layout::Header)), and a thread that loses events looks whether that is over. What is on for an agent
//! shows in the trigger itself ([`TRIGGER_LENT`](crate::layout::TRIGGER_LENT)), so what the program or its user has switched on stays.
//!
//! The look is a part of an event: it takes no lock that is held, allocates nothing, and switches all sites off by system calls that
//! an event makes nowhere else, once for each agent that goes without a word. A filter of system calls may kill for these. So where
//! there is one the sites stay on, and lose events as cheaply as they can, until the next agent comes.

use core::sync::atomic::Ordering::Relaxed;

use crate::arch::rdtsc;
use crate::described::DESCRIBED;
use crate::kernel;
use crate::layout::lease::{NONE, TAKEN_BACK};
use crate::memfd::Memfd;
use crate::patch::Text;
use crate::process::{self, LOCK};

/// Events that a ring loses from look to look: a power of two.
pub(crate) const LOSSES: u64 = 1024;

/// Whether an agent was there, and is gone.
pub(crate) fn is_over(memfd: &Memfd) -> bool {
    match memfd.header().lease.load(Relaxed) {
        NONE => false,
        TAKEN_BACK => true,
        until => rdtsc() > until,
    }
}

/// Looks at times whether the agent is gone: with the first of each [`LOSSES`] of a ring, which has lost so many by now.
pub(crate) fn after_losses(lost: u64) {
    if lost % LOSSES == 1 {
        look();
    }
}

/// Switches off what is on for an agent that is gone.
pub(crate) fn look() {
    let is_left =
        |memfd: &Memfd| is_over(memfd) && memfd.header().lease.load(Relaxed) != TAKEN_BACK;
    if process::memfd().is_some_and(|memfd| is_left(&memfd)) {
        take_back();
    }
}

#[cold]
fn take_back() {
    // Whoever has it switches sites, or forks: one of the next losses comes later.
    let Some(held) = LOCK.try_hold() else { return };
    let Some(memfd) = process::memfd() else { return };
    let header = memfd.header();
    let until = header.lease.load(Relaxed);
    if kernel::may_be_filtered() || !is_over(&memfd) {
        return;
    }
    let Some(mut text) = Text::own_within_event() else { return };
    // An agent that goes on says so by this word, before it switches sites on again.
    if header.lease.compare_exchange(until, TAKEN_BACK, Relaxed, Relaxed).is_err() {
        return;
    }
    let is_gone = || header.lease.load(Relaxed) == TAKEN_BACK;
    DESCRIBED.for_each_trigger(&memfd.directory(), &held, |trigger| {
        if is_gone() && text.take_back(trigger).is_ok_and(|was_on| was_on) {
            header.sites_enabled.fetch_sub(1, Relaxed);
        }
    });
    #[cfg(all(feature = "sleds", not(ft_off)))]
    crate::sled::take_back(text, |name| {
        !is_gone() || crate::enable::is_wanted_by_program(name, &held)
    });
    if is_gone() {
        header.full_wait_us.store(0, Relaxed);
        header.counting.store(0, Relaxed);
    }
}
