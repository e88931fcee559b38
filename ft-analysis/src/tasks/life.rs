//! The life of a task: one state at a time.

use super::mark;
use crate::world::{Thread, World};
use ft_trace::Mark;
use ft_trace::event::LeanUserEvent;
use ft_trace::ids::{Name, Nanos, Pid, Tid};
use ft_trace::tables::{AsyncSwitch, AsyncTask, Decomposition, TaskEnd};
use ft_user::layout::HOOKED_TASKS;

/// What a task is in.
#[derive(Clone, Debug)]
enum State {
    /// Made, and neither woken nor polled.
    Unstarted,
    /// Woken, and not polled yet.
    Queued(Woken),
    /// In the poll of this number, and perhaps woken in it.
    Polled(u64, Option<Woken>),
    /// Pending, and not woken.
    Waiting,
    /// Not known.
    Unknown,
}

/// A wake-up, by the thread that recorded it.
#[derive(Clone, Debug)]
pub(super) struct Woken {
    /// When; of one in a poll, when that was over.
    pub(super) ts: i64,
    pub(super) tid: Tid,
    pub(super) comm: Name,
    /// Task whose poll that thread was in.
    pub(super) task: Option<i64>,
}

/// What a poll answers.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// The wake-up; `None`: nothing that was recorded.
    pub(super) woken: Option<Woken>,
    /// Since when the task was not polled.
    pub(super) since: i64,
}

/// A task that lives.
#[derive(Clone, Debug)]
pub(super) struct Task {
    ts: i64,
    maker: Option<(Tid, Name)>,
    parent: Option<i64>,
    pub(super) name: Name,
    pub(super) place: Name,
    state: State,
    /// Since when it is in that state.
    since: i64,
    /// Since when it was not polled, while it is not.
    unpolled: i64,
    unstarted_ns: i64,
    queued_ns: i64,
    waiting_ns: i64,
    polled_ns: i64,
    unknown_ns: i64,
    /// Nobody reports its wake-ups.
    is_hooked: bool,
    parts: Decomposition,
    /// What counters counted in its polls, as far as that is known of all.
    counter: [Option<i64>; 2],
    polls: i64,
    wakes: i64,
    longest_poll_ns: i64,
    longest_queue_ns: i64,
    mark: Mark,
}

impl Task {
    fn new(event: &LeanUserEvent, world: &World) -> Task {
        let (context, [task, word, _], now) = (world.context(), event.arg, world.now());
        let is_hooked = u64::try_from(task).is_ok_and(|task| task >= HOOKED_TASKS);
        Task {
            ts: now,
            maker: None,
            parent: None,
            name: context.task_name(event.site, word),
            place: context.place(event.pid, event.site, word),
            state: if is_hooked { State::Unknown } else { State::Unstarted },
            since: now,
            unpolled: now,
            unstarted_ns: 0,
            queued_ns: 0,
            waiting_ns: 0,
            polled_ns: 0,
            unknown_ns: 0,
            is_hooked,
            parts: Decomposition::default(),
            counter: [Some(0); 2],
            polls: 0,
            wakes: 0,
            longest_poll_ns: 0,
            longest_queue_ns: 0,
            mark: Mark::lower_bound_if(is_hooked),
        }
    }

    /// A thread makes it, in the poll of `parent`.
    pub(super) fn made(
        thread: &Thread,
        parent: Option<i64>,
        event: &LeanUserEvent,
        world: &World,
    ) -> Task {
        let maker = Some((thread.key.tid, thread.comm.clone()));
        Task { maker, parent, ..Task::new(event, world) }
    }

    /// It is polled, and its making was not recorded.
    pub(super) fn found(event: &LeanUserEvent, world: &World) -> Task {
        Task { mark: Mark::LowerBound, ..Task::new(event, world) }
    }

    /// It is in `state` from now on; what it was in before.
    fn enter(&mut self, state: State, world: &World) -> State {
        let now = world.now();
        let sum = match self.state {
            State::Unstarted => &mut self.unstarted_ns,
            State::Queued(_) => &mut self.queued_ns,
            State::Polled(..) => &mut self.polled_ns,
            State::Waiting => &mut self.waiting_ns,
            State::Unknown => &mut self.unknown_ns,
        };
        *sum += now - self.since;
        self.since = now;
        std::mem::replace(&mut self.state, state)
    }

    /// It is in the poll of this number.
    pub(super) fn is_in(&self, number: u64) -> bool {
        matches!(self.state, State::Polled(n, _) if n == number)
    }

    /// A poll begins.
    pub(super) fn begins(&mut self, number: u64, world: &World) -> Asked {
        if let State::Polled(..) = self.state {
            // Without an end that was recorded.
            self.is_lost(world);
        }
        let woken = match self.enter(State::Polled(number, None), world) {
            State::Queued(woken) => Some(woken),
            _ => None,
        };
        if let Some(woken) = &woken {
            self.longest_queue_ns = self.longest_queue_ns.max(world.now() - woken.ts);
        }
        Asked { woken, since: self.unpolled }
    }

    /// The poll in which it is ends.
    pub(super) fn ends(&mut self, row: &AsyncSwitch, world: &World) {
        self.pends(world);
        self.polls += 1;
        self.longest_poll_ns = self.longest_poll_ns.max(row.dur);
        self.mark = self.mark.max(row.mark);
        if let Some(parts) = row.parts {
            self.parts += parts;
        }
        for (sum, count) in self.counter.iter_mut().zip(row.counter) {
            *sum = sum.zip(count).and_then(|(sum, count)| sum.checked_add(count));
        }
    }

    /// A poll ends whose begin was not recorded: since its last event it may have been in anything.
    pub(super) fn ends_unseen(&mut self, world: &World) {
        self.state = State::Unknown;
        self.is_lost(world);
        self.pends(world);
    }

    fn pends(&mut self, world: &World) {
        let now = world.now();
        let unpolled = if self.is_hooked { State::Unknown } else { State::Waiting };
        if let State::Polled(_, woken) = self.enter(unpolled, world)
            && let Some(woken) = woken
        {
            self.state = State::Queued(Woken { ts: now, ..woken });
        }
        self.unpolled = now;
    }

    /// It is woken.
    pub(super) fn woken(&mut self, woken: Woken, world: &World) {
        self.wakes += 1;
        match &mut self.state {
            State::Polled(_, first) => _ = first.get_or_insert(woken),
            State::Queued(_) => {}
            _ => _ = self.enter(State::Queued(woken), world),
        }
    }

    /// What it does is not known, nor what it did since it began a poll that has no end.
    pub(super) fn is_lost(&mut self, world: &World) {
        if let State::Polled(..) = self.state {
            self.state = State::Unknown;
        }
        self.enter(State::Unknown, world);
        self.mark = self.mark.max(Mark::LowerBound);
    }

    /// Its row, if it ends now.
    pub(super) fn row(mut self, pid: Pid, task: i64, end: TaskEnd, world: &World) -> AsyncTask {
        let now = world.now();
        if let State::Polled(..) = self.state {
            // It ends in a poll without an end.
            self.is_lost(world);
        }
        self.enter(State::Unknown, world);
        let touched = world.losses().process_since(pid, self.ts);
        let own = mark(touched, end != TaskEnd::Unended).max(world.disturbed_since(pid, self.ts));
        let (maker_tid, maker_comm) = self.maker.map(|(tid, comm)| (tid.0, comm)).unzip();
        AsyncTask {
            ts: Nanos(self.ts),
            dur: now - self.ts,
            pid,
            task,
            name: self.name,
            place: self.place,
            maker_tid,
            maker_comm,
            parent: self.parent,
            end,
            unstarted_ns: self.unstarted_ns,
            queued_ns: self.queued_ns,
            waiting_ns: self.waiting_ns,
            polled_ns: self.polled_ns,
            unknown_ns: self.unknown_ns,
            parts: world.context().has_kernel().then_some(self.parts),
            counter: if self.polls > 0 { self.counter } else { [None; 2] },
            polls: self.polls,
            wakes: self.wakes,
            longest_poll_ns: self.longest_poll_ns,
            longest_queue_ns: self.longest_queue_ns,
            mark: self.mark.max(own),
        }
    }
}
