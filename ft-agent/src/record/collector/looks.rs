//! Looks at the processes of a recording: when they are due, and what becomes of what they find.

use std::time::{Duration, Instant};

use super::processes::MAX_SITE_NAMES;
use super::{Collector, Recorded};
use crate::clock::monotonic_ns;
use crate::collect::inspect::{Changed, ChangedSite, Found};
use ft_trace::spool::WriteError;
use ft_trace::spool::frame::{Frame, Loss, Refused};
use ft_trace::tables::LossOrigin;
use ft_user::glob;

/// From look to look at a process: how long the sites of a new library stay off.
pub(super) const LOOKS: Duration = Duration::from_secs(1);

/// Why a process has switched off its sites.
const STOOD_STILL: &str = "the agent stood still for some seconds, so the process switched its sites off until it went on; let the agent have \
                           its CPU and its disk, and do not stop it";

/// What was changed, and what to do about it.
fn reason(sites: &[ChangedSite], others: usize) -> String {
    let one = |site: &ChangedSite| {
        let (name, address) = (site.name.escape_debug(), site.address);
        let what = if site.is_breakpoint { "a breakpoint stands on" } else { "other code is at" };
        format!("{what} its site {name} at {address:#x}")
    };
    let named: Vec<String> = sites.iter().map(one).collect();
    let more = if others > 0 { format!(", and on {others} more") } else { String::new() };
    format!("{}{more}; remove the probe, or detach the debugger", named.join(", "))
}

/// Processes that one round has looked at, at most.
///
/// Limit: nothing: the others have their turn in the next one.
/// Shown by: no figure: their turn comes.
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
                self.intake.look(number, subject, move |s, files| s.look_last(files, &globs))
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

    /// Says that sites stay on. Has those switched on again that a process has switched off because that was not said in time.
    pub(super) fn extend_leases(&mut self) {
        let before_ns = std::mem::replace(&mut self.leases_ns, monotonic_ns());
        for recorded in &mut self.sources {
            if !recorded.source.extend_lease() && !self.is_ending {
                recorded.source.wait_when_full(self.full_wait);
                recorded.source.count_with_events(self.counting);
                recorded.taken_back_ns.get_or_insert(before_ns);
                recorded.enable_from_outside();
            }
        }
    }

    /// Says that events of a process are missing which had switched off its sites, once these are on again or it is the end.
    pub(super) fn tell_taken_back(&mut self, recorded: &mut Recorded) -> Result<(), WriteError> {
        let Some(from) = recorded.taken_back_ns.take() else { return Ok(()) };
        let identity = recorded.source.identity();
        let (origin, pid) = (LossOrigin::Site.word().into(), identity.pid);
        let (what, to) = ("all that were on for the recording".into(), monotonic_ns());
        let loss = Loss { origin, what, cpu: -1, pid, tid: -1, from, to, ..Loss::default() };
        self.writer.push(&Frame::Loss(loss))?;
        let has_lost = Refused { is_recorded: true, has_lost: true, ..Refused::default() };
        self.refuse_as(identity, "lease", STOOD_STILL, has_lost);
        Ok(())
    }

    /// What a look at a process has found.
    pub(super) fn found(&mut self, number: u32, mut found: Found) -> Result<(), WriteError> {
        let at = self.sources.iter().position(|recorded| recorded.source.number() == number);
        // It may have ended meanwhile.
        let Some(at) = at else { return Ok(()) };
        let mut recorded = self.sources.swap_remove(at);
        recorded.subject.end();
        recorded.is_done = recorded.is_last;
        if !recorded.is_to_be_enabled {
            self.tell_taken_back(&mut recorded)?;
        }
        if found.left {
            let unfinished = self.close_source(recorded, true)?;
            self.sources.extend(unfinished);
            return Ok(());
        }
        self.tell_refused(&recorded, std::mem::take(&mut found.refused));
        if recorded.source.identity().has_number() {
            self.declare(&mut recorded, &found)?;
            if let Some(changed) = found.changed.take() {
                self.tell_changed(&mut recorded, changed)?;
            }
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

    /// Says that events of sites are missing which something else has changed, and once of a process which sites these are.
    fn tell_changed(
        &mut self,
        recorded: &mut Recorded,
        changed: Changed,
    ) -> Result<(), WriteError> {
        let Changed { from_ns: from, to_ns: to, mut sites, others } = changed;
        // Of that the process has told.
        let told = recorded.source.hidden_site();
        sites.retain(|site| told != Some(&site.name));
        if sites.is_empty() && others == 0 {
            return Ok(());
        }
        let identity = recorded.source.identity();
        let rest = (others > 0).then(|| format!("{others} more"));
        let named = sites.iter().map(|site| site.name.escape_debug().to_string()).chain(rest);
        for what in named {
            let (origin, pid) = (LossOrigin::Site.word().into(), identity.pid);
            let loss = Loss { origin, what, cpu: -1, pid, tid: -1, from, to, ..Loss::default() };
            self.writer.push(&Frame::Loss(loss))?;
        }
        if !std::mem::replace(&mut recorded.is_told_of_changes, true) {
            let hidden = Refused { is_recorded: true, has_lost: true, ..Refused::default() };
            let reason = reason(&sites, others);
            self.refuse_as(recorded.source.identity(), "sites", &reason, hidden);
        }
        Ok(())
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
