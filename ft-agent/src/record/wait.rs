//! Waiting for the time at which a recording is to begin.
//!
//! A recording that waits is prepared twice. What can fail (rights, names, programs that the kernel refuses) is reported at once.
//! Programs that waited in the kernel would delay every switch and fill their buffers, so all is released, and prepared
//! again five seconds before the time (`READY`).

use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::{Options, RecordError, StartAt};
use crate::collect::kernel::Kernel;
use crate::control::Signals;
use crate::status_line::StatusLine;
use ft_report::units;

/// How long before the time the recording is made ready, if there is so much. Loading and measuring all programs of the
/// kernel takes less.
pub(super) const READY: Duration = Duration::from_secs(5);

/// From look to look at the clock, which somebody may set meanwhile.
const TICK: Duration = Duration::from_millis(500);

/// The same when the kernel records already: its buffers must not fill.
const DISCARD: Duration = Duration::from_millis(5);

/// Bytes of the kernel's records that are thrown away at once.
const DISCARD_BYTES: usize = 1 << 20;

/// Waits until so long before the time. What the kernel has recorded by then is thrown away, with its losses.
///
/// # Errors
///
/// [`RecordError::CalledOff`] on a signal that ends recordings.
pub(super) async fn until(
    start_at: &StartAt,
    before: Duration,
    options: &Options,
    signals: &mut Signals,
    mut kernel: Option<&mut Kernel>,
) -> Result<(), RecordError> {
    let mut line = options.progress.then_some(StatusLine);
    let (mut drawn, mut buffer) = (None, Vec::new());
    loop {
        let left = start_at.left();
        let pause = left.saturating_sub(before);
        if pause.is_zero() {
            break;
        }
        if let Some(line) = &mut line
            && drawn.is_none_or(|drawn: Instant| drawn.elapsed() >= TICK)
        {
            drawn = Some(Instant::now());
            line.draw(&format!("begins in {}", units::short_ns(left.as_nanos() as f64)));
        }
        let tick = if kernel.is_some() { DISCARD } else { TICK };
        if timeout(pause.min(tick), signals.next()).await.is_ok() {
            return Err(RecordError::CalledOff);
        }
        kernel.iter_mut().for_each(|kernel| discard(kernel, &mut buffer));
    }
    // Whatever was not read is not known to be missing either.
    kernel.iter_mut().for_each(|kernel| drop(kernel.losses()));
    Ok(())
}

fn discard(kernel: &mut Kernel, buffer: &mut Vec<u8>) {
    let mut more = true;
    while more {
        buffer.clear();
        more = kernel.drain(buffer, DISCARD_BYTES).more;
    }
    drop(kernel.take_chained());
}
