//! Looks at each closed segment for what the triggers ask for.
//!
//! The analyses are the ones of `ft-agent analyze`: their state goes on from segment to segment, so a hold
//! that spans segments is found. What a trigger sees is late by a segment and the time to decode it.
//!
//! When the recording compacts its registry, because many processes have come and gone, the analyses begin
//! anew, so that they do not grow without end either. An interval that spans this moment is not seen.

use std::path::{Path, PathBuf};

use super::trigger::{Hit, Trigger};
use ft_analysis::{Context, Run};
use ft_trace::convert::{ConvertError, Follower};
use ft_trace::spool::Segment;

/// The analyses of a running recording.
pub(super) struct Lookout {
    dir: PathBuf,
    triggers: Vec<Trigger>,
    running: Option<(Follower, Run)>,
    /// Segments that were deleted before they were looked at.
    pub(super) missed: u64,
}

impl Lookout {
    pub(super) fn new(dir: &Path, triggers: Vec<Trigger>) -> Lookout {
        Lookout { dir: dir.to_owned(), triggers, running: None, missed: 0 }
    }

    /// The first trigger that finds an interval which ended in this segment.
    pub(super) fn segment(&mut self, segment: &Segment) -> Result<Option<Hit>, ConvertError> {
        if self.triggers.is_empty() {
            return Ok(None);
        }
        self.running.take_if(|(follower, _)| follower.is_outdated());
        let (follower, analysis) = match &mut self.running {
            Some(running) => running,
            none => {
                let follower = Follower::new(&self.dir)?;
                let context = Context::new(follower.records_kernel(), 0, &[], &[], &[])
                    .with_agent(follower.agent());
                none.insert((follower, Run::new(context)))
            }
        };
        let followed = follower.segment(segment)?;
        self.missed += u64::from(followed.missed);
        let (threads, sites, names) = (&followed.threads, &followed.sites, &followed.names);
        analysis.learn(followed.bound_ns, threads, sites, names);
        followed.events.iter().for_each(|event| analysis.push(event));
        let rows = analysis.take_rows();
        Ok(self.triggers.iter().find_map(|trigger| trigger.find(&rows)))
    }
}
