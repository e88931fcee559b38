//! The walk itself: events in, items out.

use std::collections::VecDeque;
use std::ops::Range;

use ft_analysis::{Context, Rows, Run};
use ft_trace::event::Event;
use ft_trace::store::{Result, Trace};
use ft_trace::stream::{self, Merged};
use ft_trace::tables::{PollEnd, SiteRow};

use super::told::{Listener, Told};
use super::{Item, What};
use crate::analyze;
use crate::listing::entry::{Entry, Streams, entries};

/// Makes items of events, wherever those come from.
pub struct Tracks {
    run: Run<Listener>,
    window: Range<i64>,
    /// Time of the newest event.
    now: i64,
    items: VecDeque<Item>,
}

impl Tracks {
    /// Of what lies in `window` (CLOCK_MONOTONIC ns).
    pub fn new(context: Context, window: Range<i64>) -> Tracks {
        Tracks { run: Run::of(context), window, now: i64::MIN, items: VecDeque::new() }
    }

    /// Takes the next event, in the order of time. Those before the window are to be passed in, too; those behind it are
    /// not.
    pub fn push(&mut self, event: &Event) {
        let ts = event.ts().0;
        self.now = self.now.max(ts);
        self.run.push(event);
        self.collect(None);
        let until = |dur: i64| ts.saturating_add(dur.max(0));
        let (to, what) = match event {
            Event::Switch(e) => (ts, What::Switch(e.clone())),
            Event::Waking(e) => (ts, What::Waking(e.clone())),
            Event::Migrate(e) => (ts, What::Migrate(e.clone())),
            Event::Task(e) => (ts, What::Task(e.clone())),
            Event::Fault(e) => (ts, What::Fault(*e)),
            Event::Irq(e) => (until(e.dur), What::Interrupt(e.clone())),
            Event::Syscall(e) => (until(e.dur), What::Syscall(e.clone())),
            Event::Contention(e) => (until(e.dur), What::Contention(e.clone())),
            Event::Loss(e) => (until(e.dur), What::Loss(e.clone())),
            // Those who have only this much of it have its meaning; chains are no track.
            Event::User(_)
            | Event::Chain(_)
            | Event::Sleep(_)
            | Event::Throttle(_)
            | Event::Sample(_)
            | Event::Futex(_)
            | Event::Probe(_) => return,
        };
        self.add(ts, to, true, what);
    }

    /// Ends the trace with its newest event; or, when there are events behind the window, at its end.
    pub fn end(&mut self, more: bool) {
        self.run.end(if more { self.window.end } else { i64::MIN });
        self.collect(Some(if more { self.window.end } else { self.now }));
    }

    /// The next item.
    pub fn pop(&mut self) -> Option<Item> {
        self.items.pop_front()
    }

    /// Adds an item, as much of it as lies in the window.
    fn add(&mut self, from: i64, to: i64, over: bool, what: What) {
        let window = &self.window;
        let ends_in = if from == to { from >= window.start } else { to > window.start };
        if !ends_in || from >= window.end {
            return;
        }
        self.items.push_back(Item {
            from: from.max(window.start),
            to: to.min(window.end),
            begun: from >= window.start,
            over: over && to <= window.end,
            what,
        });
    }

    /// Takes what the analyses have found; what lasts until `end` is over only because nothing follows.
    fn collect(&mut self, end: Option<i64>) {
        let told = std::mem::take(&mut self.run.analysis_mut().told);
        for told in told {
            match told {
                Told::Occupied(o) => self.add(o.from, o.to, o.seen, What::Occupied(o)),
                Told::State(s) => self.add(s.from, s.to, end != Some(s.to), What::State(s)),
                Told::Hold(h) => self.add(h.ts.0, h.ts.0 + h.dur, false, What::Hold(h)),
                Told::Unmet(w) => {
                    let over = w.outcome == ft_analysis::world::Outcome::Abandoned;
                    self.add(w.from, w.to, over, What::Unmet(w));
                }
                Told::Scope(s) => self.add(s.ts.0, s.ts.0 + s.dur, false, What::Scope(s)),
            }
        }
        if self.run.pending() == 0 {
            return;
        }
        let Rows {
            critical_sections,
            lock_waits,
            dispatch_latency,
            scopes,
            async_switches,
            gaps,
            runs,
            ..
        } = self.run.take_rows();
        for hold in critical_sections {
            self.add(hold.ts.0, hold.ts.0 + hold.dur, true, What::Hold(hold));
        }
        for wait in lock_waits {
            self.add(wait.ts.0, wait.ts.0 + wait.dur, true, What::Wait(wait));
        }
        for wake in dispatch_latency {
            self.add(wake.ts.0, wake.ts.0 + wake.dur, true, What::Dispatch(wake));
        }
        for scope in scopes {
            self.add(scope.ts.0, scope.ts.0 + scope.dur, true, What::Scope(scope));
        }
        for poll in async_switches {
            let over = poll.end != PollEnd::Unended;
            self.add(poll.ts.0, poll.ts.0 + poll.dur, over, What::Poll(poll));
        }
        for run in runs {
            self.add(run.ts.0, run.ts.0 + run.dur, true, What::Run(run));
        }
        for gap in gaps {
            self.add(gap.ts.0, gap.ts.0 + gap.dur, true, What::Gap(gap));
        }
    }
}

/// Makes items of a stored trace: an iterator. After an error it ends.
pub struct Walk {
    tracks: Tracks,
    /// What lies before the window.
    before: Option<Merged<Event>>,
    entries: Option<Merged<Entry>>,
    /// What lies behind it.
    after: Option<Merged<Event>>,
    read: u64,
}

impl Walk {
    /// Walks over what lies in `window` (CLOCK_MONOTONIC ns; see [`window`](crate::listing::window)).
    ///
    /// # Errors
    ///
    /// When the tables that events refer to cannot be read.
    pub fn new(trace: &Trace, window: Range<i64>) -> Result<Walk> {
        let before = (window.start > i64::MIN)
            .then(|| stream::events_within(trace, &(i64::MIN..window.start)));
        let sites: Vec<SiteRow> = trace.rows().collect::<Result<_>>()?;
        Ok(Walk {
            before,
            entries: Some(entries(trace, Streams::Both, window.clone())),
            after: Some(stream::events_within(trace, &(window.end..i64::MAX))),
            tracks: Tracks::new(analyze::context(trace, &sites)?, window),
            read: 0,
        })
    }

    /// Events that were read so far, of about [`stream::count`].
    pub fn events(&self) -> u64 {
        self.read
    }

    /// Reads the next event; whether there was one.
    fn step(&mut self) -> Result<bool> {
        self.read += 1;
        if let Some(before) = &mut self.before {
            match before.next().transpose()? {
                Some(event) => self.tracks.push(&event),
                None => self.before = None,
            }
            return Ok(true);
        }
        let Some(entries) = &mut self.entries else { return Ok(false) };
        match entries.next().transpose()? {
            Some(entry) => self.tell(entry),
            None => {
                self.entries = None;
                let after = self.after.take().and_then(|mut after| after.next()).transpose()?;
                self.tracks.end(after.is_some());
            }
        }
        Ok(true)
    }

    fn tell(&mut self, entry: Entry) {
        if let Some(event) = entry.lean() {
            self.tracks.push(&event);
        }
        match entry {
            Entry::User(e) => self.tracks.add(e.ts.0, e.ts.0, true, What::Event(e)),
            Entry::Signal(e) => self.tracks.add(e.ts.0, e.ts.0, true, What::Signal(e)),
            _ => {}
        }
    }
}

impl Iterator for Walk {
    type Item = Result<Item>;

    fn next(&mut self) -> Option<Result<Item>> {
        loop {
            if let Some(item) = self.tracks.pop() {
                return Some(Ok(item));
            }
            match self.step() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    (self.before, self.entries) = (None, None);
                    return Some(Err(error));
                }
            }
        }
    }
}
