//! What comes to the collecting thread from those that look at processes, and what bounds it.
//!
//! Registrations and looks put arrivals into one queue, in which users take turns; the
//! collecting thread takes some of them in each round. The queue is bounded by what its items hold: each
//! registration one of the [`Places`], each process one look at a time.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use tokio::runtime::Handle;

use super::discover::{parent, processes, read};
use super::fair_queue::FairQueue;
use super::inspect::{BuildIds, Found, Inspected};
use super::rates::Rates;
use super::refusals::Refusals;
use super::shares::Places;
use crate::control::looks::Looks;
use crate::control::registration::Registration;
use crate::threads::Bell;
use ft_trace::owners::owner_of;
use ft_trace::spool::mapping::Mappings;

/// Registrations at once at most, those that wait and those that are recorded.
///
/// Limit: each refusal is named in a warning of the trace, with the reason; beyond 64 users and reasons, all further
/// ones as one.
/// Shown by: the tests beside each; `tests/hostile/`.
const MAX_SOURCES: usize = 16 << 10;

/// For the collecting thread.
#[derive(Debug)]
pub enum Arrival {
    /// A process to attach and to answer.
    Registration(Registration),
    /// What a look at the process of this source has found.
    Found {
        /// Number of the source.
        source: u32,
        /// What.
        found: Found,
    },
    /// Where a process of which addresses were recorded has its program text.
    Located(Mappings),
    /// All processes that there are, each with its parent.
    Parents(Vec<(i32, i32)>),
}

/// What the registration server and the collecting thread share.
#[derive(Debug)]
pub struct Intake {
    queue: Mutex<FairQueue<Arrival>>,
    collector: OnceLock<Bell>,
    /// One for each registration, until the process is not recorded any more.
    pub places: Places,
    /// Looks at processes.
    pub looks: Looks,
    /// How often they are made.
    pub rates: Rates,
    /// What they found in files.
    pub files: BuildIds,
    /// Who was sent away.
    pub refusals: Refusals,
}

impl Intake {
    /// For an agent that may open this many descriptors; looks take the blocking threads of this runtime.
    pub fn new(descriptors: usize, threads: Handle) -> Arc<Intake> {
        // A source has three: memfd, process, and the memory of the process when sites are switched from outside. The rest is for
        // files, and for those that register just now.
        let sources = (descriptors / 8 * 5 / 3).clamp(1, MAX_SOURCES);
        Arc::new(Intake {
            queue: Mutex::default(),
            collector: OnceLock::new(),
            places: Places::new(sources),
            looks: Looks::new(threads),
            rates: Rates::default(),
            files: BuildIds::default(),
            refusals: Refusals::default(),
        })
    }

    /// What is rung when something has come.
    pub fn wake(&self, collector: Bell) {
        // Set once, by who has started it.
        let _ = self.collector.set(collector);
    }

    /// Hands over what concerns a process of `user`.
    pub fn push(&self, user: u32, arrival: Arrival) {
        let user = owner_of(user);
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push(user, arrival);
        if let Some(collector) = self.collector.get() {
            collector.ring();
        }
    }

    /// The next, if something has come.
    pub fn pop(&self) -> Option<Arrival> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Has `look` done aside, whose result concerns the source with this number. Does nothing while an
    /// earlier look at this process is not done; false then, or when too many wait.
    pub fn look(
        self: &Arc<Intake>,
        source: u32,
        subject: &Arc<Inspected>,
        look: impl FnOnce(&Inspected, &BuildIds) -> Found + Send + 'static,
    ) -> bool {
        self.aside(subject, move |intake, subject| {
            let found = look(subject, &intake.files);
            intake.push(subject.user(), Arrival::Found { source, found });
        })
    }

    /// Has it looked up aside where a process has its program text, which arrives if that has changed. False as for
    /// [`Intake::look`], and where this user's processes have been looked at enough.
    pub fn locate(self: &Arc<Intake>, subject: &Arc<Inspected>) -> bool {
        self.rates.allow(subject.user(), Instant::now())
            && self.aside(subject, |intake, subject| {
                let located = subject.locate(&intake.files, |it| it.uid == subject.user());
                subject.end();
                if let Some(mappings) = located {
                    intake.push(subject.user(), Arrival::Located(mappings));
                }
            })
    }

    /// Has all processes looked at aside: who is whose child arrives.
    pub fn look_for_parents(self: &Arc<Intake>) {
        let (intake, own) = (self.clone(), rustix::process::getuid().as_raw());
        self.looks.give(own, move || {
            let parent = |pid| parent(&read(&format!("/proc/{pid}/status")));
            let all = processes().filter_map(|pid| Some((pid, parent(pid)?)));
            intake.push(own, Arrival::Parents(all.collect()));
        });
    }

    /// Looks up where a process of this user has its program text, as [`Intake::locate`] does, for a look that was not waited
    /// for: the process may have ended before the next one.
    pub fn locate_late(&self, subject: &Inspected) {
        subject.forget();
        if let Some(mappings) = subject.locate(&self.files, |it| it.uid == subject.user()) {
            self.push(subject.user(), Arrival::Located(mappings));
        }
    }

    /// Has a look at a process begun, and done by a worker.
    fn aside(
        self: &Arc<Intake>,
        subject: &Arc<Inspected>,
        look: impl FnOnce(&Intake, &Inspected) + Send + 'static,
    ) -> bool {
        if !subject.begin() {
            return false;
        }
        let (intake, looked_at) = (self.clone(), subject.clone());
        let given = self.looks.give(subject.user(), move || {
            look(&intake, &looked_at);
            intake.rates.spend(looked_at.user(), looked_at.take_cost(), Instant::now());
        });
        if !given {
            subject.end();
        }
        given
    }
}
