//! Conversion behind the recording, so that neither disk nor memory grows with its length.
//!
//! A thread with the lowest priority converts each segment as it is closed and deletes it. The
//! recording never waits for it. Whoever recorded calls [`convert`](crate::convert::convert) afterwards,
//! which does what is left and finishes the trace.

use std::io;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use super::{Closed, Segments};
use crate::convert::{ConvertError, Converter};

/// Lowest priority of the ordinary scheduler (sched(7)).
const NICE: i32 = 19;

/// The conversion thread.
#[derive(Debug)]
pub struct Behind {
    thread: JoinHandle<Result<(), ConvertError>>,
}

impl Behind {
    /// Starts the thread for the trace directory `trace`, which need not exist before the first segment
    /// is closed. Give the [`Segments`] to [`record`](super::record).
    ///
    /// # Errors
    ///
    /// When no thread can be made.
    pub fn spawn(trace: PathBuf) -> io::Result<(Behind, Segments)> {
        let (sender, closed) = channel();
        // Nobody asks for snapshots.
        let (_, requests) = channel();
        let convert = move || {
            // Refused, it runs with the priority of the agent: slower for others, not wrong.
            let _ = rustix::process::setpriority_process(None, NICE);
            let mut converter = None;
            for Closed { segment, .. } in closed {
                let converter = match &mut converter {
                    Some(converter) => converter,
                    none => none.insert(Converter::new(&trace)?),
                };
                converter.segment(segment.number)?;
            }
            Ok(())
        };
        let thread = std::thread::Builder::new().name("ft-convert".into()).spawn(convert)?;
        Ok((Behind { thread }, Segments { closed: sender, requests, oldest: Arc::default() }))
    }

    /// Waits until every closed segment is converted.
    ///
    /// # Errors
    ///
    /// A [`ConvertError`]; the spool then holds what is not converted.
    pub fn finish(self) -> Result<(), ConvertError> {
        self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}
