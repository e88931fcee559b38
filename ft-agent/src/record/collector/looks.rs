//! Looks at the processes of a recording: when they are due, and what becomes of what they find.

use std::time::{Duration, Instant};

use super::processes::MAX_SITE_NAMES;
use super::{Collector, Recorded};
use crate::collect::inspect::{Found, Inspected};
use ft_trace::spool::WriteError;
use ft_trace::spool::frame::Frame;
use ft_user::glob;

/// From look to look at a process: how long the sites of a new library stay off.
pub(super) const LOOKS: Duration = Duration::from_secs(1);

/// Processes that one round has looked at, at most.
const LOOKS_AT_ONCE: usize = 16;

impl Collector {
    /// Has some of the processes looked at whose turn it is: what they have mapped, and which sites came with
    /// libraries that they have loaded meanwhile. Or has their sites switched on, or, at the end, off.
    pub(super) fn look_around(&mut self) {
        let now = Instant::now();
        let due = self.sources.iter_mut().filter(|recorded| recorded.next_look <= now);
        let at_once = if self.is_ending { usize::MAX } else { LOOKS_AT_ONCE };
        for recorded in due.take(at_once) {
            let (number, subject) = (recorded.source.number(), &recorded.subject);
            let globs = self.globs.clone();
            let given = if self.is_ending {
                let last = move |subject: &Inspected, files: &_| {
                    subject.disable();
                    subject.look_for(files, &globs)
                };
                self.intake.look(number, subject, last)
            } else if recorded.is_to_be_enabled {
                let triggers = recorded.source.triggers().to_vec();
                self.intake.look(number, subject, move |s, _| s.enable(&triggers, &globs))
            } else {
                self.intake.look(number, subject, move |s, files| s.look_for(files, &globs))
            };
            if given {
                if recorded.is_to_be_enabled {
                    recorded.is_being_enabled();
                }
                recorded.is_last = self.is_ending;
            }
            // Whose last look is still to come is due until then.
            if given || !self.is_ending {
                recorded.next_look = now + LOOKS;
            }
        }
    }

    /// What a look at a process has found.
    pub(super) fn found(&mut self, number: u32, mut found: Found) -> Result<(), WriteError> {
        let at = self.sources.iter().position(|recorded| recorded.source.number() == number);
        // It may have ended meanwhile.
        let Some(at) = at else { return Ok(()) };
        let mut recorded = self.sources.swap_remove(at);
        recorded.subject.end();
        recorded.is_done = recorded.is_last;
        if found.left {
            let unfinished = self.close_source(recorded, true)?;
            self.sources.extend(unfinished);
            return Ok(());
        }
        self.tell_refused(&recorded, std::mem::take(&mut found.refused));
        if recorded.source.identity().has_number() {
            self.declare(&mut recorded, &found)?;
            if let Some(error) = found.unopened.take() {
                self.refuse(recorded.source.identity(), "memfds", &error.to_string(), true);
            }
            let memfds = std::mem::take(&mut found.memfds);
            self.introduce(found)?;
            self.sources.push(recorded);
            memfds.into_iter().try_for_each(|(identity, memfd)| self.adopt(identity, &memfd))
        } else {
            self.sources.push(recorded);
            Ok(())
        }
    }

    /// Declares sites that a look has found, which are enabled as soon as somebody can do it.
    pub(super) fn declare(
        &mut self,
        recorded: &mut Recorded,
        found: &Found,
    ) -> Result<(), WriteError> {
        let writer = &mut self.writer;
        if recorded.source.declare(&found.sites, &mut |frame: &Frame<'_>| writer.push(frame))? {
            recorded.enable_soon();
        }
        // No directory has these, of which there can be very many.
        let is_wanted = |name: &String| self.globs.iter().any(|glob| glob::matches(glob, name));
        for site in found.sites.iter().filter(|site| site.sled.is_some()) {
            if is_wanted(&site.name) && self.finished.sites.len() < MAX_SITE_NAMES {
                self.finished.sites.insert(site.name.clone());
            }
        }
        Ok(())
    }
}
