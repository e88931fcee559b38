//! What a user sees and can do while a trace is analysed: a line that tells how far it is, and Ctrl-C.

use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use ft_agent::signals::{self, Taken};
use ft_agent::status_line::StatusLine;
use ft_report::analyze::Progress;
use ft_report::units;

/// Shorter runs show nothing.
const PATIENCE: Duration = Duration::from_millis(500);

/// Time between two drawings.
const REFRESH: Duration = Duration::from_millis(100);

/// Watches a run for its user: SIGINT and SIGTERM end it, the second one at once.
pub(crate) struct Watch {
    /// What runs.
    what: &'static str,
    began: Instant,
    drawn: Instant,
    line: Option<StatusLine>,
    _signals: Taken,
}

impl Watch {
    /// Takes over the two signals, until it is dropped. The line is drawn on a terminal only.
    pub(crate) fn begin(what: &'static str) -> Watch {
        let now = Instant::now();
        let line = io::stderr().is_terminal().then(|| StatusLine);
        Watch {
            what,
            began: now,
            drawn: now,
            line,
            _signals: Taken::once(&[libc::SIGINT, libc::SIGTERM]),
        }
    }

    /// Shows how far the run is, and says whether it goes on.
    pub(crate) fn look(&mut self, progress: Progress) -> ControlFlow<()> {
        let now = Instant::now();
        if let Some(line) = &mut self.line
            && now - self.began > PATIENCE
            && now - self.drawn > REFRESH
        {
            line.draw(&text(self.what, progress, now - self.began));
            self.drawn = now;
        }
        match signals::came() {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }
}

fn text(what: &str, progress: Progress, age: Duration) -> String {
    let Progress { events, of } = progress;
    let (done, age) = (events as f64 / of.max(events).max(1) as f64, age.as_secs_f64());
    format!(
        "{what} {:.0} %  {} of {} events  {} events/s  {:.0} s left",
        (100.0 * done).floor(),
        units::short(events as f64),
        units::short(of as f64),
        units::short(events as f64 / age.max(1e-3)),
        (age / done.max(1e-6) - age).ceil(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_how_far_it_is_and_how_long_it_takes() {
        let check = |events, of, expected: &str| {
            assert_eq!(text("analysis", Progress { events, of }, Duration::from_secs(2)), expected);
        };
        let expected = "analysis 25 %  4.00 M of 16.0 M events  2.00 M events/s  6 s left";
        check(4_000_000, 16_000_000, expected);
        // More than the trace said that it has.
        check(2_000, 1_000, "analysis 100 %  2.00 k of 1.00 k events  1.00 k events/s  0 s left");
    }
}
