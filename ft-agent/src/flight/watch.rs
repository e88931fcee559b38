//! Looks at each closed segment for what the triggers ask for.
//!
//! The analyses are those of `ft-agent analyze` whose rows are looked at here ([`Intervals`]): their state goes on from segment to segment, so a hold
//! that spans segments is found. What a trigger sees is late by a segment and the time to decode it.
//!
//! When the recording compacts its registry, because many processes have come and gone, the analyses begin
//! anew, so that they do not grow without end either. An interval that spans this moment is not seen.

use std::path::{Path, PathBuf};

use super::away::Away;
use super::cycles::Cycles;
use super::trigger::{Hit, Trigger};
use ft_analysis::{Context, Intervals, Rows, Run};
use ft_trace::convert::{ConvertError, Followed, Follower};
use ft_trace::event::Event;
use ft_trace::spool::Segment;
use ft_trace::tables::{LossOrigin, ThreadRow};

/// The analyses of a running recording.
pub(crate) struct Live {
    dir: PathBuf,
    running: Option<(Follower, Run<Intervals>)>,
    /// Up to where it was looked at without a gap, CLOCK_MONOTONIC ns.
    covered: Option<i64>,
}

/// What they have found in what was decoded last.
pub(crate) struct Found {
    /// Intervals that ended in it.
    pub(crate) rows: Rows,
    /// Something before it, or it itself, was not looked at.
    pub(crate) missed: bool,
    /// Events and records that were decoded, also those of which not all was there to analyse them.
    pub(crate) decoded: u64,
    /// The time that they cover without gaps, ns.
    pub(crate) covered_ns: i64,
    /// What was decoded.
    events: Vec<Event>,
    /// Threads that are new, or have changed; all, where it begins anew.
    threads: Vec<ThreadRow>,
    /// What was known before is forgotten.
    begins_anew: bool,
}

impl Live {
    /// Of the recording into this directory.
    pub(crate) fn new(dir: &Path) -> Live {
        Live { dir: dir.to_owned(), running: None, covered: None }
    }

    /// Analyses what is decoded.
    pub(crate) fn look(
        &mut self,
        decode: impl FnOnce(&mut Follower) -> Result<Followed, ConvertError>,
    ) -> Result<Found, ConvertError> {
        self.running.take_if(|(follower, _)| follower.is_outdated());
        let begins_anew = self.running.is_none();
        let (follower, analysis) = match &mut self.running {
            Some(running) => running,
            none => {
                let follower = Follower::new(&self.dir)?;
                let context = Context::new(follower.records_kernel(), 0, &[], &[], &[])
                    .with_agent(follower.agent());
                none.insert((follower, Run::of(context)))
            }
        };
        let followed = decode(follower)?;
        let (threads, sites, names) = (&followed.threads, &followed.sites, &followed.names);
        analysis.learn(followed.bound_ns, threads, sites, names);
        let mut covered_ns = 0;
        for event in &followed.events {
            analysis.push(event);
            let now = event.ts().0;
            let gap = matches!(event, Event::Loss(loss) if loss.origin == LossOrigin::Agent);
            covered_ns += self.covered.map_or(0, |before| (now - before).max(0));
            self.covered = if gap { None } else { Some(now) };
        }
        let (decoded, missed) = (followed.decoded, followed.missed);
        let Followed { events, threads, .. } = followed;
        let rows = analysis.take_rows();
        Ok(Found { rows, missed, decoded, covered_ns, events, threads, begins_anew })
    }
}

/// Looks for what triggers ask for.
pub(super) struct Lookout {
    triggers: Vec<Trigger>,
    live: Live,
    away: Away,
    cycles: Cycles,
    /// Segments that were deleted before they were looked at.
    pub(super) missed: u64,
}

impl Lookout {
    pub(super) fn new(dir: &Path, triggers: Vec<Trigger>) -> Lookout {
        let (live, away, cycles) = (Live::new(dir), Away::default(), Cycles::default());
        Lookout { triggers, live, away, cycles, missed: 0 }
    }

    /// The first trigger that finds an interval which ended in this segment.
    pub(super) fn segment(&mut self, segment: &Segment) -> Result<Option<Hit>, ConvertError> {
        if self.triggers.is_empty() {
            return Ok(None);
        }
        let found = self.live.look(|follower| follower.segment(segment))?;
        self.missed += u64::from(found.missed);
        if found.begins_anew {
            (self.away, self.cycles) = (Away::default(), Cycles::default());
        }
        self.away.learn(&found.threads);
        let asks = |cycles, comm: &str| self.triggers.iter().any(|it| it.asks_for(cycles, comm));
        let mut of_threads = Vec::new();
        for event in &found.events {
            of_threads.extend(self.away.see(event, |comm| asks(false, comm)));
            of_threads.extend(self.cycles.see(event, |comm| asks(true, comm)));
        }
        Ok(self.triggers.iter().find_map(|trigger| trigger.find(&found.rows, &of_threads)))
    }
}
