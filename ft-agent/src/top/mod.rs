//! What goes on in a recording that runs: who waits for which lock, whose holder lost the CPU, who was woken late.
//!
//! It reads what the recording writes, as far as its share of a CPU goes (`budget.rs`), and says how far that was: the
//! newest frames of the spool's open segment ([`Tail`]) go through the analyses that a report is made of, and their rows
//! into sums over the last seconds (`window.rs`), which are shown (`view.rs`). Where frames were skipped, a loss stands for them: what spans it has no
//! row, so an interval that is longer than what is looked at in one go is not seen.

mod budget;
#[cfg(feature = "top")]
pub mod draw;
mod view;
mod window;

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::flight::Live;
use budget::Budget;
use ft_trace::convert::ConvertError;
use ft_trace::spool::{ReadError, Spool, Tail};
pub use view::{Late, LockRow, Preempted, View};
use window::{Glance, Window};

/// Why nothing more can be seen.
#[derive(Debug, thiserror::Error)]
pub enum TopError {
    /// Nobody records into the directory.
    #[error(
        "nothing is recorded into {0}; name the directory of a running `ft-agent record`, or what to record: -p PID, or a \
         command after --"
    )]
    NotRecording(PathBuf),
    /// The spool cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Nor decoded.
    #[error(transparent)]
    Decode(#[from] ConvertError),
}

/// Watches one recording.
pub struct Top {
    dir: PathBuf,
    tail: Tail,
    live: Live,
    window: Window,
    budget: Budget,
    began: Instant,
    last: Option<Instant>,
    lost: u64,
}

impl Top {
    /// Of the recording into the trace directory `dir`, with this share of one CPU.
    ///
    /// # Errors
    ///
    /// When nothing is recorded there.
    pub fn new(dir: &Path, share: f64) -> Result<Top, TopError> {
        let spool = Spool::of(dir);
        if !spool.registry().exists() || spool.segments().is_ok_and(|segments| segments.is_empty())
        {
            return Err(TopError::NotRecording(dir.to_owned()));
        }
        let now = Instant::now();
        Ok(Top {
            dir: dir.to_owned(),
            tail: Tail::new(spool),
            live: Live::new(dir),
            window: Window::default(),
            budget: Budget::new(share),
            began: now,
            last: None,
            lost: 0,
        })
    }

    /// Looks at what came since the last time.
    ///
    /// # Errors
    ///
    /// A [`TopError`]. A recording that has ended is none: nothing more comes ([`View::is_over`]).
    pub fn refresh(&mut self) -> Result<View, TopError> {
        let now = Instant::now();
        let elapsed = self.last.map_or(Duration::ZERO, |last| now - last);
        self.budget.renew(now - self.last.unwrap_or(self.began));
        self.last = Some(now);
        let budget = &self.budget;
        let news = match self.tail.read(budget.wanted(), || budget.may_skip()) {
            // It ends, and cleans up behind itself.
            Err(ReadError { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(self.over());
            }
            news => news?,
        };
        self.lost = self.lost.saturating_add(news.lost);
        let mut glance = Glance::of(elapsed, &news);
        let found = self.live.look(|follower| follower.news(&news));
        match found {
            Ok(found) => glance.take(found.rows, found.decoded, found.covered_ns),
            Err(ConvertError::Spool(ReadError { source, .. }))
                if source.kind() == io::ErrorKind::NotFound =>
            {
                return Ok(self.over());
            }
            Err(error) => return Err(error.into()),
        }
        self.window.push(glance);
        self.budget.looked_at(news.kept_bytes);
        Ok(self.view(!self.is_recorded()))
    }

    /// How long it watches.
    pub fn age(&self) -> Duration {
        self.began.elapsed()
    }

    fn over(&self) -> View {
        self.view(true)
    }

    fn view(&self, is_over: bool) -> View {
        View {
            is_over,
            age_ns: self.age().as_nanos() as u64,
            lost: self.lost,
            own_share: self.budget.used(),
            ..self.window.view()
        }
    }

    /// Somebody writes into the spool.
    fn is_recorded(&self) -> bool {
        crate::control::is_recorded(&self.dir)
    }
}
