//! From what was so to what is drawn: each item goes to the buckets, and to the lanes of the windows that it touches.

use std::collections::HashMap;

use ft_analysis::unended::Unmet;
use ft_analysis::world::{Culprit, Occupancy, Stretch};
use ft_trace::Mark;
use ft_trace::ids::{Cpu, Pid, ThreadKey, Tid};
use ft_trace::tables::{
    CriticalSection, Decomposition, DispatchLatency, Gap, GapCause, Irq, LoadRun, LossRow, Part,
    Scope, SiteKind, UserEvent,
};
use ft_trace::words::Word;
use serde::Serialize;

use super::density::Density;
use super::encode::Span;
use super::kinds::Kinds;
use super::level::Level;
use super::names::{Names, cut};
use super::polling::{Piece, Polling};
use super::rows::{CPU_LANES, Lane, Rows};
use super::states::kind_of;
use super::survey::Survey;
use super::windows::{Window, Windows};
use crate::render::number::count;
use crate::tracks::{Item, What};

/// Losses that are told apart.
///
/// Limit: the last stands for all that follow.
/// Shown by: `losses_are_told_and_beyond_the_bound_as_one`.
const MAX_LOSSES: usize = 1000;

/// Lanes for locks held at once, and for scopes in each other.
///
/// Limit: deeper ones are not drawn; the rows of their locks show them.
/// Shown by: `holds_within_each_other_have_some_lanes_and_locks_show_them_all`.
pub(super) const MAX_NESTING: i32 = 4;

/// Where records were lost.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Loss {
    from: i64,
    to: i64,
    says: String,
}

/// Puts what an event says behind a text.
pub(super) type Words<'a> = &'a dyn Fn(&UserEvent, &mut String);

/// What is being built.
pub(super) struct Builder<'a> {
    pub(super) rows: Rows,
    pub(super) level: Level,
    pub(super) counts: Density,
    pub(super) windows: Windows,
    pub(super) names: Names,
    pub(super) kinds: Kinds,
    words: Words<'a>,
    begin: i64,
    /// Of each thread, how many locks it held and scopes it was in at once, as far as there are lanes.
    pub(super) nesting: Vec<(i32, i32)>,
    pollers: HashMap<ThreadKey, Polling>,
    /// On which CPU each thread runs.
    cpus: HashMap<ThreadKey, i32>,
    /// Spans of CPUs beyond the bound.
    pub(super) other_cpus: u64,
    /// Events whose words had no room.
    pub(super) unsaid: u64,
    pub(super) losses: Vec<Loss>,
    /// Threads have seen gaps in their own time; and runs between them are drawn.
    pub(super) has_gaps: bool,
    pub(super) has_runs: bool,
    /// Something was reported of a thread without a row.
    others: bool,
    now: i64,
    pieces: Vec<Piece>,
    text: String,
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        rows: Rows,
        level: Level,
        windows: Windows,
        survey: &Survey,
        words: Words<'a>,
        begin: i64,
    ) -> Self {
        let pollers = survey.pollers.iter().map(|&key| (key, Polling::default())).collect();
        let nesting = vec![(0, 0); rows.threads()];
        Builder {
            rows,
            counts: Density::new(&level),
            level,
            windows,
            names: Names::default(),
            kinds: Kinds::default(),
            words,
            begin,
            nesting,
            pollers,
            cpus: HashMap::new(),
            other_cpus: 0,
            unsaid: 0,
            losses: Vec::new(),
            has_gaps: false,
            has_runs: false,
            others: false,
            now: 0,
            pieces: Vec::new(),
            text: String::new(),
        }
    }

    /// Takes the next item of the walk.
    pub(super) fn add(&mut self, item: &Item) {
        let (from, to) = (item.from - self.begin, item.to - self.begin);
        // What tells its own length comes at its begin, all else when it is over.
        self.now = self.now.max(match item.what {
            What::Interrupt(_) | What::Syscall(_) | What::Contention(_) | What::Loss(_) => from,
            _ => to,
        });
        match &item.what {
            What::Occupied(o) => self.occupied(o, from, to),
            What::State(s) => self.state(s, from, to),
            What::Interrupt(e) => self.interrupt(e, from, to),
            What::Hold(h) => self.hold(h, from, to),
            What::Wait(w) => {
                let place = self.names.number(&w.place);
                self.wait(w.pid, w.tid, (w.lock, &w.lock_name, &w.kind), place, w.mark, from, to);
            }
            What::Unmet(w) => self.unmet(w, from, to),
            What::Dispatch(d) => self.dispatch(d, from, to),
            What::Scope(s) => self.scope(s, from, to),
            What::Gap(g) => self.gap(g, from, to),
            What::Run(r) => self.run(r, from, to),
            What::Event(e) => self.event(e, from),
            What::Switch(e) => {
                self.cpus.insert(e.next(), e.cpu.0);
                if e.prev_state.is_dead() {
                    self.cpus.remove(&e.prev());
                }
            }
            What::Task(e) => self.happened(e.pid, e.tid, from, "task", e.kind.word(), &e.comm),
            What::Signal(e) => self.happened(e.pid, e.tid, from, "signal", e.kind.word(), &e.name),
            What::Syscall(e) => self.happened(e.pid, e.tid, from, "syscall", &e.name, ""),
            What::Contention(e) => self.happened(e.pid, e.tid, from, "contention", &e.kind, ""),
            What::Fault(e) => self.happened(e.pid, e.tid, from, "page_fault", "", ""),
            What::Migrate(e) => self.happened(e.pid, e.tid, from, "migrate", "", ""),
            // A task has no row of its own, and its thread those of its time.
            What::Waking(_) | What::Poll(_) => {}
            What::Loss(e) => self.loss(e, from, to),
        }
    }

    /// Losses are never left out: beyond the bound one stands for all that follow it.
    fn loss(&mut self, e: &LossRow, from: i64, to: i64) {
        if self.losses.len() < MAX_LOSSES {
            let says = format!("{} lost ({}): {}", count(e.count.unsigned_abs()), e.origin, e.what);
            self.losses.push(Loss { from, to, says: cut(&says).into() });
        } else if let Some(last) = self.losses.last_mut() {
            last.to = last.to.max(to);
            last.says = "losses without number, one after the other".into();
        }
    }

    /// Nothing more is to come.
    pub(super) fn finish(&mut self) {
        for (thread, mut polling) in std::mem::take(&mut self.pollers) {
            polling.end(&mut self.pieces);
            self.settle(thread);
        }
    }

    fn keep(&mut self, thread: usize, lane: Lane, span: Span) {
        self.others |= thread + 1 == self.rows.threads();
        self.windows.add(self.rows.lane(thread, lane), span, self.now);
    }

    fn occupied(&mut self, o: &Occupancy, from: i64, to: i64) {
        if o.who.thread.tid.0 != 0 {
            let mark = if o.seen { Mark::Exact } else { Mark::Censored };
            self.on_cpu(o.cpu, o.who.thread, &o.who.comm, mark, from, to);
        }
    }

    fn on_cpu(&mut self, cpu: Cpu, who: ThreadKey, name: &str, mark: Mark, from: i64, to: i64) {
        let Some(cpu) = usize::try_from(cpu.0).ok().filter(|&cpu| cpu < self.rows.cpus) else {
            self.other_cpus += 1;
            return;
        };
        let b = self.rows.reference(who.pid, who.tid);
        let kind = u8::from(b == 0);
        self.level.add(cpu, kind.into(), from, to);
        let a = self.names.number(name);
        self.windows.add(CPU_LANES * cpu, Span { from, to, kind, mark, a, b }, self.now);
    }

    fn interrupt(&mut self, e: &Irq, from: i64, to: i64) {
        let Some(cpu) = usize::try_from(e.cpu.0).ok().filter(|&cpu| cpu < self.rows.cpus) else {
            self.other_cpus += 1;
            return;
        };
        let a = self.names.number(&e.name);
        let span = Span { from, to, kind: 0, mark: Mark::Exact, a, b: 0 };
        self.windows.add(CPU_LANES * cpu + 1, span, self.now);
    }

    fn state(&mut self, s: &Stretch, from: i64, to: i64) {
        if s.part == Part::Running {
            let cpu = self.cpus.get(&s.thread).copied().unwrap_or(-1);
            let piece = Piece { from, to, mark: s.mark, cpu, ran: true };
            match self.pollers.get_mut(&s.thread) {
                Some(polling) => polling.ran(piece, &mut self.pieces),
                None => self.pieces.push(piece),
            }
            self.settle(s.thread);
            return;
        }
        let name = s.culprit.name();
        let a = name.map_or(0, |name| self.names.number(&name));
        let b = match &s.culprit {
            Culprit::Thread(o) => self.rows.reference(o.thread.pid, o.thread.tid),
            _ => 0,
        };
        let kind = kind_of(s);
        self.stretch(s.thread, Span { from, to, kind, mark: s.mark, a, b });
    }

    /// Draws the pieces of running that are settled.
    fn settle(&mut self, thread: ThreadKey) {
        for piece in std::mem::take(&mut self.pieces) {
            let Piece { from, to, mark, cpu, ran } = piece;
            let (kind, a, b) = match ran {
                true => (0, 0, u32::try_from(cpu + 1).unwrap_or(0)),
                false => (8, self.names.number("in gaps"), 0),
            };
            self.stretch(thread, Span { from, to, kind, mark, a, b });
        }
    }

    fn stretch(&mut self, thread: ThreadKey, span: Span) {
        let row = self.rows.thread(thread.pid, thread.tid);
        let level = self.rows.level_of_thread(row);
        self.level.add(level, span.kind.into(), span.from, span.to);
        self.others |= row + 1 == self.rows.threads();
        // The others are many: of their states there are sums alone.
        if row + 1 < self.rows.threads() {
            self.keep(row, Lane::State, span);
        }
    }

    /// The number of a lock that has a row, or beyond those of its name.
    fn lock(&mut self, pid: Pid, lock: i64, name: &str) -> (Option<usize>, u32) {
        match self.rows.locks.get(&(pid.0, lock)) {
            Some(&row) => (Some(row), row as u32),
            None => (None, self.rows.locks() as u32 + self.names.number(name)),
        }
    }

    fn hold(&mut self, h: &CriticalSection, from: i64, to: i64) {
        let (row, a) = self.lock(h.pid, h.lock, &h.lock_name);
        if let Some(row) = row {
            let level = self.rows.level_of_lock(row);
            let whole = Decomposition { running_ns: to - from, ..Decomposition::default() };
            // Of a hold that is cut its parts are not known of the rest.
            let p = h.parts.filter(|p| p.total_ns() == to - from).unwrap_or(whole);
            let off = p.runnable_ns();
            self.level.spread(level, 1, from, to, off);
            self.level.spread(level, 2, from, to, p.blocked_ns);
            self.level.spread(level, 0, from, to, to - from - off - p.blocked_ns);
        }
        let thread = self.rows.thread(h.pid, h.tid);
        let nesting = &mut self.nesting[thread].0;
        *nesting = (*nesting).max(h.depth.saturating_add(1).clamp(1, MAX_NESTING));
        let kind = u8::from(h.kind.contains("read"));
        let b = self.names.number(&h.place);
        self.keep(thread, Lane::Holds, Span { from, to, kind, mark: h.mark, a, b });
    }

    #[expect(clippy::too_many_arguments, reason = "two kinds of rows are waits")]
    fn wait(
        &mut self,
        pid: Pid,
        tid: Tid,
        (lock, name, kind): (i64, &str, &str),
        place: u32,
        mark: Mark,
        from: i64,
        to: i64,
    ) {
        let (row, a) = self.lock(pid, lock, name);
        if let Some(row) = row {
            self.level.add(self.rows.level_of_lock(row), 3, from, to);
        }
        let thread = self.rows.thread(pid, tid);
        let kind = u8::from(kind.contains("read"));
        self.keep(thread, Lane::Waits, Span { from, to, kind, mark, a, b: place });
    }

    fn unmet(&mut self, w: &Unmet, from: i64, to: i64) {
        let place = self.names.number(&w.place);
        let lock = (w.lock, &*w.lock_name, &*w.kind);
        self.wait(w.thread.pid, w.thread.tid, lock, place, w.mark, from, to);
    }

    fn dispatch(&mut self, d: &DispatchLatency, from: i64, to: i64) {
        let thread = self.rows.thread(d.pid, d.tid);
        let a = self.names.number(&d.waker_comm);
        // The table tells the waker's number alone; most wake threads of their own process.
        let b = self.rows.reference(d.pid, d.waker_tid);
        self.keep(thread, Lane::Wakes, Span { from, to, kind: 0, mark: d.mark, a, b });
    }

    fn scope(&mut self, s: &Scope, from: i64, to: i64) {
        let thread = self.rows.thread(s.pid, s.tid);
        let nesting = &mut self.nesting[thread].1;
        *nesting = (*nesting).max(s.depth.saturating_add(1).clamp(1, MAX_NESTING));
        let a = self.names.number(&s.event);
        let b = u32::try_from(s.depth).unwrap_or(0);
        self.keep(thread, Lane::Scopes, Span { from, to, kind: 0, mark: s.mark, a, b });
    }

    fn gap(&mut self, g: &Gap, from: i64, to: i64) {
        let key = ThreadKey { pid: g.pid, tid: g.tid };
        if g.parts.is_some()
            && let Some(polling) = self.pollers.get_mut(&key)
        {
            polling.gap(from, to, &mut self.pieces);
            self.settle(key);
        }
        let thread = self.rows.thread(g.pid, g.tid);
        let kind = g.cause.map_or(GapCause::ALL.len(), Word::index) as u8;
        let a = g.culprit.as_ref().map_or(0, |name| self.names.number(name));
        self.has_gaps = true;
        self.keep(thread, Lane::Gaps, Span { from, to, kind, mark: g.mark, a, b: 0 });
    }

    /// What a worker tells of its own time, where the kernel does not: it had a CPU.
    fn run(&mut self, r: &LoadRun, from: i64, to: i64) {
        self.has_runs = true;
        let thread = ThreadKey { pid: r.pid, tid: r.tid };
        let b = u32::try_from(r.cpu.0.saturating_add(1)).unwrap_or(0);
        self.stretch(thread, Span { from, to, kind: 0, mark: r.mark, a: 0, b });
        self.on_cpu(r.cpu, thread, &r.comm, r.mark, from, to);
    }

    fn event(&mut self, e: &UserEvent, at: i64) {
        let kind = self.kinds.of_site(e.site, &e.event, e.kind == SiteKind::Event);
        self.counts.add(kind, at);
        if !self.windows.has(at) {
            return;
        }
        self.text.clear();
        (self.words)(e, &mut self.text);
        let b = self.windows.word(at, &self.text);
        self.instant(e.pid, e.tid, at, kind, b);
    }

    /// Something that the kernel recorded of a thread.
    fn happened(&mut self, pid: Pid, tid: Tid, at: i64, what: &str, which: &str, says: &str) {
        let thread = self.rows.thread(pid, tid);
        if !self.rows.threads.contains_key(&ThreadKey { pid, tid }) {
            return;
        }
        let kind = self.kinds.of_kernel(what, which);
        self.counts.add(kind, at);
        if self.windows.has(at) {
            let b = if says.is_empty() { 0 } else { self.windows.word(at, says) };
            let span = Span { from: at, to: at, kind: 0, mark: Mark::Exact, a: kind, b };
            self.keep(thread, Lane::Events, span);
        }
    }

    fn instant(&mut self, pid: Pid, tid: Tid, at: i64, kind: u32, b: u32) {
        let thread = self.rows.thread(pid, tid);
        let span = Span { from: at, to: at, kind: 0, mark: Mark::Exact, a: kind, b };
        self.keep(thread, Lane::Events, span);
    }

    /// The windows, once all has come.
    pub(super) fn take_windows(&mut self) -> Vec<Window> {
        let none = Windows::new(&[], None, 1, 0, 0);
        let windows = std::mem::replace(&mut self.windows, none);
        self.unsaid = windows.unsaid;
        windows.finish()
    }

    /// CPUs on which anything ran.
    pub(super) fn cpus_in_use(&self) -> Vec<usize> {
        (0..self.rows.cpus).filter(|&cpu| self.level.is_used(cpu)).collect()
    }

    /// There is anything in the row of the threads that have none of their own.
    pub(super) fn has_others(&self) -> bool {
        self.others
    }
}
