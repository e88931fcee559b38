//! The arguments of what is drawn: the columns of its row that explain it.

use super::packets::Notes;
use super::proto::Value;
use super::{clean, thread_name};
use crate::tracks::{Arg, Args};
use ft_analysis::Mark;
use ft_analysis::unended::Unmet;
use ft_analysis::world::Stretch;
use ft_trace::ids::{Name, Tid};
use ft_trace::tables::{
    AsyncSwitch, CriticalSection, Decomposition, DispatchLatency, Gap, LockWait, LossRow, Scope,
    UserEvent,
};

impl Notes {
    fn mark(&mut self, mark: Mark) -> &mut Notes {
        if mark == Mark::Exact { self } else { self.text("mark", mark.word()) }
    }

    fn parts(&mut self, parts: Option<Decomposition>) -> &mut Notes {
        for (name, ns) in Decomposition::NAMES.iter().zip(parts.unwrap_or_default().to_array()) {
            self.some(name, ns);
        }
        self
    }

    fn thread(&mut self, name: &str, comm: Option<&Name>, tid: Option<i32>) -> &mut Notes {
        match tid {
            Some(tid) => self.text(name, &thread_name(comm.map_or("", |comm| comm), Tid(tid))),
            None => self,
        }
    }

    fn lock(&mut self, lock: i64, name: &str, kind: &str, place: &str) -> &mut Notes {
        self.text("lock", name).add("address", Value::Pointer(lock as u64));
        self.text("kind", kind).text("place", place)
    }
}

pub(super) fn state(s: &Stretch) -> Notes {
    let mut notes = Notes::default();
    notes.mark(s.mark);
    notes
}

pub(super) fn hold(h: &CriticalSection) -> Notes {
    let mut notes = Notes::default();
    notes.lock(h.lock, &h.lock_name, &h.kind, &h.place);
    notes.int("depth", h.depth.into()).some("wait_ns", h.wait_ns).parts(h.parts);
    notes.thread("preemptor", h.preemptor_comm.as_ref(), h.preemptor_tid);
    notes.some("preemptor_ns", h.preemptor_ns.unwrap_or(0)).mark(h.mark);
    notes
}

pub(super) fn wait(w: &LockWait) -> Notes {
    let mut notes = Notes::default();
    notes.lock(w.lock, &w.lock_name, &w.kind, &w.place);
    notes.thread("holder", w.holder_comm.as_ref(), w.holder_tid);
    notes.text("holder_place", w.holder_place.as_deref().unwrap_or(""));
    notes.thread("root", w.root_comm.as_ref(), w.root_tid);
    notes.text("root_lock", w.root_lock.as_deref().unwrap_or("")).parts(w.parts).mark(w.mark);
    notes
}

pub(super) fn unmet(w: &Unmet) -> Notes {
    let mut notes = Notes::default();
    notes.lock(w.lock, &w.lock_name, &w.kind, &w.place);
    notes.some("holder_tid", w.holder.map_or(0, |tid| tid.0.into())).mark(w.mark);
    notes
}

pub(super) fn dispatch(d: &DispatchLatency) -> Notes {
    let mut notes = Notes::default();
    notes.int("waited_ns", d.dur);
    notes.thread("behind", d.running_comm.as_ref(), d.running_tid);
    notes.mark(d.mark);
    notes
}

pub(super) fn scope(s: &Scope, mut notes: Notes) -> Notes {
    notes.parts(s.parts).some("lock_wait_ns", s.lock_wait_ns);
    notes.thread("preemptor", s.preemptor_comm.as_ref(), s.preemptor_tid).mark(s.mark);
    notes
}

pub(super) fn poll(p: &AsyncSwitch) -> Notes {
    let mut notes = Notes::default();
    notes.int("task", p.task).text("ended", p.end.word()).parts(p.parts);
    notes.text("blocked_for", p.blocked_for.as_deref().unwrap_or(""));
    notes.some("queued_ns", p.queued_ns.unwrap_or(0));
    notes.thread("waker", p.waker_comm.as_ref(), p.waker_tid);
    notes.text("behind", p.behind_name.as_deref().unwrap_or(""));
    notes.text("held", p.held_lock.as_deref().unwrap_or(""));
    notes.thread("preemptor", p.preemptor_comm.as_ref(), p.preemptor_tid).mark(p.mark);
    notes
}

pub(super) fn gap(g: &Gap) -> Notes {
    let mut notes = Notes::default();
    notes.text("culprit", g.culprit.as_deref().unwrap_or("")).text("inferred", g.inferred.word());
    notes.parts(g.parts).mark(g.mark);
    notes
}

pub(super) fn loss(e: &LossRow) -> Notes {
    let mut notes = Notes::default();
    notes.int("count", e.count).int("cpu", e.cpu.0.into());
    notes.int("pid", e.pid.0.into()).int("tid", e.tid.0.into());
    notes
}

/// What an application's event says.
pub(super) fn event(args: &Args, e: &UserEvent) -> Notes {
    let mut notes = Notes::default();
    for (name, arg) in args.of(e) {
        notes.add(
            name,
            match arg {
                Arg::Absent => continue,
                Arg::Signed(n) | Arg::Time(n) => Value::Int(n),
                Arg::Unsigned(n) => Value::Uint(n),
                Arg::Pointer(n) => Value::Pointer(n),
                Arg::Bool(yes) => Value::Bool(yes),
                Arg::Float(n) => Value::Double(n),
                Arg::Text(text) => Value::String(clean(text)),
            },
        );
    }
    notes
}
