//! Two threads that make traces of snapshots: one for those that somebody waits for, one for those of triggers.
//!
//! A trigger's snapshot has time, and must not disturb what it is to explain: its thread has the lowest priority.
//! Whoever asks for a snapshot, or for the end of the recording, waits: that thread has the priority of the agent, and
//! no trigger's snapshot is before it in a queue. At the end all are waited for.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::{FlightError, Message, snapshot};
use crate::control::socket::Answer;
use crate::threads::{self, Background, LOWEST, Leaves};

/// A snapshot whose spool is complete.
#[derive(Debug)]
pub(super) struct Order {
    /// Its number among those of its recorder.
    pub(super) number: u32,
    pub(super) dir: PathBuf,
    pub(super) reason: String,
    /// Who has asked for it.
    pub(super) answers: Vec<oneshot::Sender<Answer>>,
}

/// Tells who has asked for a snapshot that it can be read, or why there is none.
pub(super) fn answer(
    answers: Vec<oneshot::Sender<Answer>>,
    made: &Result<(), &FlightError>,
    dir: &Path,
) {
    for asked in answers {
        let answer = match made {
            Ok(()) => Answer::Snapshot(dir.to_owned()),
            Err(error) => Answer::Error(format!("the snapshot failed: {error}")),
        };
        // Whoever has gone away is told nothing.
        let _ = asked.send(answer);
    }
}

enum Task {
    Make(Order),
    Tell(FlightError),
}

/// The way to them.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    awaited: Sender<Task>,
    unhurried: Sender<Task>,
}

impl Orders {
    /// Makes a trace of a snapshot, that somebody waits for, or not.
    pub(super) fn make(&self, order: Order, is_awaited: bool) {
        let maker = if is_awaited { &self.awaited } else { &self.unhurried };
        let _ = maker.send(Task::Make(order));
    }

    /// Tells that something else has failed.
    pub(super) fn tell(&self, error: FlightError) {
        let _ = self.awaited.send(Task::Tell(error));
    }
}

/// Numbers and directories of those that are complete.
type Made = Vec<(u32, PathBuf)>;

/// The threads. They end when there are no more [`Orders`].
#[derive(Debug)]
pub(super) struct Makers {
    awaited: JoinHandle<Made>,
    unhurried: Background<Made>,
}

impl Makers {
    /// Starts them; both call `report`.
    pub(super) fn spawn(
        report: impl Fn(&Message) + Send + Sync + 'static,
    ) -> io::Result<(Makers, Orders)> {
        let report = Arc::new(report);
        let ((awaited, first), (unhurried, second)) = (channel(), channel());
        let tell = report.clone();
        let first = move || make(first, &*tell);
        let first = threads::spawn("ft-snapshot", first)?;
        let second =
            Background::spawn("ft-convert", Leaves::Most(LOWEST), move || make(second, &*report))?;
        Ok((Makers { awaited: first, unhurried: second }, Orders { awaited, unhurried }))
    }

    /// Waits until all are made; those that are complete, in the order in which they were taken.
    pub(super) fn finish(self) -> Vec<PathBuf> {
        self.unhurried.raise();
        let mut made = threads::finish(self.awaited);
        made.extend(self.unhurried.finish());
        made.sort_unstable();
        made.into_iter().map(|(_, dir)| dir).collect()
    }
}

/// What one of the threads does.
fn make(works: Receiver<Task>, report: &impl Fn(&Message)) -> Made {
    let mut made = Vec::new();
    for work in works {
        let message = match work {
            Task::Make(Order { number, dir, reason, answers }) => {
                let finished = snapshot::finish(&dir);
                answer(answers, &finished.as_ref().map(drop), &dir);
                match finished {
                    Ok(()) => {
                        made.push((number, dir.clone()));
                        Message::Taken { dir, reason }
                    }
                    Err(error) => Message::Failed(error),
                }
            }
            Task::Tell(error) => Message::Failed(error),
        };
        report(&message);
    }
    made
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use rustix::process::getpriority_process;

    use super::*;

    /// An order that fails at once.
    fn order(number: u32) -> Order {
        let (reason, answers) = (String::new(), Vec::new());
        Order { number, dir: "/dev/null/none".into(), reason, answers }
    }

    fn nice() -> i32 {
        getpriority_process(None).unwrap()
    }

    #[test]
    fn who_waits_for_a_snapshot_waits_for_no_trigger() {
        let (told, priorities) = channel();
        let (go, wait) = channel::<()>();
        let wait = Mutex::new(Some(wait));
        let (makers, orders) = Makers::spawn(move |_: &Message| {
            // The first is not made before somebody lets it.
            let first = wait.lock().unwrap().take();
            told.send(nice()).unwrap();
            if let Some(wait) = first {
                let _ = wait.recv();
            }
        })
        .unwrap();
        orders.make(order(1), false);
        orders.make(order(2), false);
        assert_eq!(priorities.recv(), Ok(LOWEST));
        orders.make(order(3), true);
        assert_eq!(priorities.recv(), Ok(nice()));
        // The second is not made yet.
        assert!(priorities.try_recv().is_err());
        drop((go, orders));
        makers.finish();
        assert_eq!(priorities.iter().count(), 1);
    }
}
