//! The rows of a request and of the pieces of its path.

use super::Open;
use super::path::Piece;
use crate::world::{Culprit, Thread, World};
use ft_trace::Mark;
use ft_trace::ids::{Name, Nanos};
use ft_trace::tables::{PathKind, PathPiece, Request};

impl Piece {
    /// Its row.
    pub(super) fn row(self, request: i64, world: &World) -> PathPiece {
        let dur = self.len_ns();
        let (wait, waiter) = self.wait.unzip();
        PathPiece {
            ts: Nanos(self.from),
            dur,
            request,
            depth: self.depth as i32,
            pid: self.thread.pid,
            tid: self.thread.tid,
            comm: world.comm(self.thread),
            kind: self.kind,
            culprit: self.culprit.as_ref().and_then(|culprit| culprit.name()),
            culprit_tid: self.culprit.as_ref().and_then(|culprit| culprit.tid()).map(|tid| tid.0),
            wait,
            waiter_tid: waiter.map(|waiter| waiter.tid.0),
            mark: self.mark,
        }
    }
}

/// The row of a request that the thread ends now, with its number, kind and key.
pub(super) fn row(
    thread: &Thread,
    open: &Open,
    (request, kind, key): (i64, Name, Option<i64>),
    path: Option<&[Piece]>,
    world: &World,
) -> Request {
    let (end, ts) = (thread.key, open.ts);
    // A number that was given to another thread meanwhile is not the same.
    let stayed = end == open.thread && thread.spent.first() <= ts;
    let began = open.began.filter(|began| match began.task() {
        Some(task) if end.pid == open.thread.pid && !thread.polls.is_empty() => {
            thread.polls.is_in(task)
        }
        _ => stayed,
    });
    let asked = open.asked.map(|asked| &world.context().asked()[asked]);
    // Of a reaction, causes and answers of any thread may be missing.
    let cause = asked.and_then(|kind| kind.cause);
    let lost_of_anybody = cause.is_some_and(|cause| {
        world.losses().events_since(ts) || cause.may_be_lost_since(open.oldest_since, world)
    });
    let lost = [end, open.thread].iter().any(|&key| world.losses().any_since(key, ts))
        || open.probe.is_some() && world.losses().probes_since(ts)
        || lost_of_anybody
        || match began {
            Some(began) => began.is_doubtful(thread, world),
            None => thread.doubtful_since(ts),
        };
    let sum = |is: &dyn Fn(&Piece) -> bool| {
        path.map(|path| path.iter().filter(|piece| is(piece)).map(Piece::len_ns).sum())
    };
    let of = |kind: PathKind| sum(&|piece| piece.kind == kind);
    let is_agents = |piece: &Piece| match (&piece.kind, &piece.culprit) {
        (PathKind::Preempted | PathKind::Dispatch, Some(Culprit::Thread(by))) => {
            world.is_agents(by.thread)
        }
        _ => false,
    };
    let marks = path.into_iter().flatten().map(|piece| piece.mark);
    let disturbed = thread.disturbed.mark(ts);
    Request {
        ts: Nanos(ts),
        dur: world.now() - ts,
        request,
        kind,
        key,
        pid: open.thread.pid,
        tid: open.thread.tid,
        comm: open.comm.clone(),
        end_pid: end.pid,
        end_tid: end.tid,
        end_comm: thread.comm.clone(),
        parts: began.and_then(|began| began.parts(thread, world)),
        agent_ns: began.and_then(|began| began.agent_ns(thread, world)),
        path_running_ns: of(PathKind::Running),
        path_preempted_ns: of(PathKind::Preempted),
        path_dispatch_ns: of(PathKind::Dispatch),
        path_interrupt_ns: of(PathKind::Interrupt),
        path_timer_ns: of(PathKind::Timer),
        path_device_ns: of(PathKind::Device),
        path_outside_ns: of(PathKind::Outside),
        path_unknown_ns: of(PathKind::Unknown),
        path_elsewhere_ns: sum(&|piece| piece.depth > 0),
        path_agent_ns: world.context().agent.and_then(|_| sum(&is_agents)),
        path_pieces: path.map(|path| path.len() as i32),
        path_mark: marks.fold(disturbed, Mark::max),
        mark: Mark::lower_bound_if(lost).max(disturbed),
    }
}
