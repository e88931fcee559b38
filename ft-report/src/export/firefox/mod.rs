//! The processed format of the Firefox Profiler (<https://profiler.firefox.com>), by its published types
//! (`src/types/profile.ts` of github.com/firefox-devtools/profiler).
//!
//! A sample here is not a look at what a thread did: it is a stretch of its time, with the length as its weight
//! (`tracing-ms`), and its stack is the part and the culprit. So the viewer's call tree says where the time of a thread
//! went, as the report does, and its activity graph when it ran. Holds, waits, wake-ups, scopes, gaps and events are
//! markers with a schema each. CPUs are threads of a process of their own, as is what was lost.
//!
//! Times are from the begin of the recording (of its first event, where that is older), or of the part of it that is
//! written. What goes on at the end of the window ends there.
//!
//! Memory: for each thread the names of its culprits and markers and some KiB of its columns, and what
//! [`Sorted`](super::sorted::Sorted) holds.

mod profile;
mod schema;

use std::collections::HashMap;
use std::io::{self, Write};

use ft_analysis::world::Outcome;
use ft_trace::ids::{Cpu, Name, Pid, Tid};
use ft_trace::tables::{GapCause, Part, SiteKind, ThreadRow};

use super::text::thread;
use super::{Job, Result};
use crate::tracks::{Args, Item, What};
use profile::{Profile, Track};
use schema::{Category, Length};

/// Writes a trace.
///
/// # Errors
///
/// When it cannot be read, or `out` or `TMPDIR` cannot be written to.
pub(super) fn write(job: &mut Job<'_>, out: &mut dyn Write) -> Result<()> {
    let mut processes = HashMap::new();
    for thread in job.trace.rows::<ThreadRow>() {
        let ThreadRow { pid, process, .. } = thread?;
        processes.insert(pid, process);
    }
    let begin = job.begin()?;
    let args = Args::read(job.trace)?;
    let (tracks, profile) = (HashMap::new(), Profile::new());
    let mut firefox = Firefox { args, processes, begin, tracks, profile };
    let start = begin.saturating_add(job.trace.meta().clock.realtime_offset_ns);
    for item in job.items()? {
        firefox.item(&item?)?;
    }
    Ok(firefox.profile.write(start as f64 / 1e6, out)?)
}

/// What a track shows.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Of {
    Thread(Pid, Tid),
    Cpu(Cpu),
    Recording,
}

struct Firefox {
    args: Args,
    processes: HashMap<Pid, Name>,
    begin: i64,
    tracks: HashMap<Of, usize>,
    profile: Profile,
}

impl Firefox {
    fn item(&mut self, item: &Item) -> io::Result<()> {
        match &item.what {
            What::State(s) => {
                let culprit = s.culprit.name().unwrap_or_default();
                let stack = [s.part.word(), &culprit];
                let (time, runs) = (self.time(item), s.part == Part::Running);
                let track = self.track(Of::Thread(s.thread.pid, s.thread.tid));
                self.profile.state(track, time, &stack, s.part.into(), runs)
            }
            What::Occupied(o) => {
                let who = self.thread(Some(o.who.thread.pid), o.who.thread.tid);
                let idle = o.who.thread.tid.0 == 0;
                let category = if idle { Category::Idle } else { Category::Running };
                let (time, track) = (self.time(item), self.track(Of::Cpu(o.cpu)));
                self.profile.state(track, time, &[&who], category, !idle)
            }
            What::Interrupt(e) => {
                let marker = schema::Interrupt { kind: e.kind.word() };
                self.interval(item, Of::Cpu(e.cpu), &e.name, &marker)
            }
            What::Hold(h) => {
                let parts = h.parts.unwrap_or_default();
                let hold = schema::Hold {
                    lock: &format!("{:#x}", h.lock),
                    kind: &h.kind,
                    place: &h.place,
                    depth: h.depth,
                    waited: Length(h.wait_ns),
                    preempted: Length(parts.preempted_ns),
                    blocked: Length(parts.blocked_ns),
                    preemptor: h.preemptor_comm.as_deref().unwrap_or_default(),
                    mark: h.mark.word(),
                };
                self.interval(item, Of::Thread(h.pid, h.tid), &h.lock_name, &hold)
            }
            What::Wait(w) => {
                let wait = schema::Wait {
                    lock: &format!("{:#x}", w.lock),
                    kind: &w.kind,
                    place: &w.place,
                    holder: &w.holder_tid.map_or("".into(), |tid| self.thread(None, Tid(tid))),
                    holder_place: w.holder_place.as_deref().unwrap_or_default(),
                    outcome: "acquired",
                    mark: w.mark.word(),
                };
                self.interval(item, Of::Thread(w.pid, w.tid), &waiting(&w.lock_name), &wait)
            }
            What::Unmet(w) => {
                let wait = schema::Wait {
                    lock: &format!("{:#x}", w.lock),
                    kind: &w.kind,
                    place: &w.place,
                    holder: &w.holder.map_or("".into(), |tid| self.thread(None, tid)),
                    holder_place: "",
                    outcome: match w.outcome {
                        Outcome::Abandoned => "given up",
                        _ => "not known",
                    },
                    mark: w.mark.word(),
                };
                let of = Of::Thread(w.thread.pid, w.thread.tid);
                self.interval(item, of, &waiting(&w.lock_name), &wait)
            }
            What::Dispatch(d) => {
                let dispatch = schema::Dispatch {
                    waker: &thread(d.waker_tid, &d.waker_comm),
                    behind: d.running_comm.as_deref().unwrap_or_default(),
                    cpu: d.cpu.0,
                    migrated: if d.migrated { "yes" } else { "no" },
                    mark: d.mark.word(),
                };
                self.interval(item, Of::Thread(d.pid, d.tid), "wake-up", &dispatch)
            }
            What::Scope(s) => {
                let parts = s.parts.unwrap_or_default();
                let scope = schema::Scope {
                    preempted: Length(parts.preempted_ns),
                    blocked: Length(parts.blocked_ns),
                    mark: s.mark.word(),
                };
                self.interval(item, Of::Thread(s.pid, s.tid), &s.event, &scope)
            }
            What::Gap(g) => {
                let gap = schema::Gap {
                    cause: g.cause.map_or("", GapCause::word),
                    culprit: g.culprit.as_deref().unwrap_or_default(),
                    inferred: g.inferred.word(),
                    mark: g.mark.word(),
                };
                self.interval(item, Of::Thread(g.pid, g.tid), "gap", &gap)
            }
            What::Event(e) if e.kind == SiteKind::Event => {
                let mut text = String::new();
                self.args.write_words(e, &mut text);
                let event = schema::Event { text: &text };
                self.instant(item, Of::Thread(e.pid, e.tid), &e.event, &event)
            }
            What::Task(e) => {
                let name = format!("task.{}", e.kind);
                let event = schema::Event { text: &e.comm };
                self.instant(item, Of::Thread(e.pid, e.tid), &name, &event)
            }
            What::Loss(e) => {
                let thread = match e.tid.0 {
                    0.. => self.thread(Some(e.pid), e.tid),
                    _ => String::new(),
                };
                let loss = schema::Loss { what: &e.what, count: e.count, thread: &thread };
                self.interval(item, Of::Recording, e.origin.word(), &loss)
            }
            // Of other events there is what came of them.
            _ => Ok(()),
        }
    }

    /// From when to when, from the begin.
    fn time(&self, item: &Item) -> (i64, i64) {
        (item.from.saturating_sub(self.begin), item.to.saturating_sub(self.begin))
    }

    fn interval(
        &mut self,
        item: &Item,
        of: Of,
        name: &str,
        marker: &impl schema::Marker,
    ) -> io::Result<()> {
        let ((from, to), track) = (self.time(item), self.track(of));
        self.profile.marker(track, (from, Some(to)), name, marker)
    }

    fn instant(
        &mut self,
        item: &Item,
        of: Of,
        name: &str,
        marker: &impl schema::Marker,
    ) -> io::Result<()> {
        let ((from, _), track) = (self.time(item), self.track(of));
        self.profile.marker(track, (from, None), name, marker)
    }

    /// Name and number of a thread.
    fn thread(&self, pid: Option<Pid>, tid: Tid) -> String {
        thread(tid, self.args.thread(pid, tid))
    }

    fn track(&mut self, of: Of) -> usize {
        if let Some(&track) = self.tracks.get(&of) {
            return track;
        }
        let number = self.profile.track(match of {
            Of::Thread(pid, tid) => {
                let process = self.processes.get(&pid).map_or("", |name| name);
                let name = self.args.thread(Some(pid), tid).to_owned();
                Track::new(name, process.to_owned(), pid.to_string(), tid.to_string())
            }
            Of::Cpu(cpu) => {
                let name = format!("CPU {cpu}");
                Track::new(name.clone(), "CPUs".into(), "CPUs".into(), name)
            }
            Of::Recording => {
                let name = || "recording".to_owned();
                Track::new(name(), name(), name(), name())
            }
        });
        self.tracks.insert(of, number);
        number
    }
}

/// Name of the markers of waits; those of holds are called like the lock.
fn waiting(lock: &str) -> String {
    format!("wait for {lock}")
}
