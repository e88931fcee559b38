//! Conversion behind the recording, so that neither disk nor memory grows with its length.
//!
//! A thread that leaves the CPU to all others converts each segment as it is closed and deletes it. The
//! recording never waits for it. Whoever recorded calls [`convert`](ft_trace::convert::convert) afterwards,
//! which does what is left and finishes the trace.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use tokio::sync::mpsc::unbounded_channel;

use super::{Closed, Segments};
use crate::threads::{Background, Leaves};
use ft_trace::convert::{ConvertError, Converter};

/// The conversion thread.
#[derive(Debug)]
pub struct Behind {
    thread: Background<Result<(), ConvertError>>,
    /// Hangs up when the thread ends.
    ended: Receiver<()>,
    backlog: Arc<AtomicU64>,
}

/// From look to look how far it is.
const LOOK: Duration = Duration::from_millis(200);

impl Behind {
    /// Starts the thread for the trace directory `trace`, which need not exist before the first segment
    /// is closed. Give the [`Segments`] to [`record`](super::record).
    ///
    /// # Errors
    ///
    /// When no thread can be made.
    pub fn spawn(trace: PathBuf) -> io::Result<(Behind, Segments)> {
        let (sender, closed) = channel();
        let (running, ended) = channel();
        let backlog = Arc::new(AtomicU64::new(0));
        let left = backlog.clone();
        let convert = move || {
            let _running = running;
            let mut converter = None;
            for Closed { segment, .. } in closed {
                let converter = match &mut converter {
                    Some(converter) => converter,
                    none => none.insert(Converter::new(&trace)?),
                };
                converter.segment(segment.number)?;
                left.fetch_sub(segment.bytes, Relaxed);
            }
            Ok(())
        };
        let thread = Background::spawn("ft-convert", Leaves::All, convert)?;
        let segments = Segments {
            closed: sender,
            // Nobody asks for snapshots.
            triggers: unbounded_channel().1,
            backlog: Some(backlog.clone()),
            oldest: Arc::default(),
        };
        Ok((Behind { thread, ended, backlog }, segments))
    }

    /// Waits until every closed segment is converted, with the priority of the caller from now on, as far as that
    /// is allowed. `progress` is told from time to time how many bytes of them are not.
    ///
    /// # Errors
    ///
    /// A [`ConvertError`]; the spool then holds what is not converted.
    pub fn finish(self, mut progress: impl FnMut(u64)) -> Result<(), ConvertError> {
        self.thread.raise();
        while let Err(RecvTimeoutError::Timeout) = self.ended.recv_timeout(LOOK) {
            progress(self.backlog.load(Relaxed));
        }
        self.thread.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_trace::convert::synthetic::{file, registry, sample};
    use ft_trace::spool::frame::Frame;
    use ft_trace::spool::{Segment, Spool};

    #[test]
    fn what_waits_for_its_conversion_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        registry(dir.path(), &[], true);
        let clocks = [1_000_000, 2_000_000].map(|ns| Frame::Clock(sample(ns)));
        file(&Spool::of(dir.path()).segment(0), &clocks);
        let (behind, segments) = Behind::spawn(dir.path().to_owned()).unwrap();
        let backlog = segments.backlog.clone().unwrap();
        segments.add_to_backlog(100);
        assert_eq!(segments.backlog(), 100);
        let segment = Segment { number: 0, from_ns: 1_000_000, to_ns: 2_000_000, bytes: 100 };
        segments.closed.send(Closed { segment, snapshot: None, last: true }).unwrap();
        drop(segments);
        behind.finish(|_| {}).unwrap();
        assert_eq!(backlog.load(Relaxed), 0);
    }
}
