//! All time of each thread by the system call in which it was, with page faults separate: the breakdown of the K42
//! paper (Figure 8).
//!
//! The sums are the world's (`world/places.rs`), which says what they mean and how threads are judged of which only part
//! was recorded. Rows are made when a thread ends.

use crate::Rows;
use crate::analysis::Analysis;
use crate::world::{At, Change, PlaceSum, Thread, World};
use ft_trace::Mark;
use ft_trace::ids::{Name, Nanos};
use ft_trace::tables::{Breakdown, Place};

/// Makes the table `breakdown`.
#[derive(Debug, Default)]
pub struct Breakdowns;

impl Analysis for Breakdowns {
    #[inline]
    fn see(&mut self, change: &Change<'_>, world: &World, rows: &mut Rows) {
        if let Change::Ended { thread, seen } = *change
            && world.knows_calls()
        {
            add(thread, seen, world, rows);
        }
    }
}

fn add(thread: &Thread, seen: bool, world: &World, rows: &mut Rows) {
    let first = thread.spent.first();
    let whole;
    let (sums, incomplete) = match &thread.places {
        Some(places) => (places.sums(), places.incomplete),
        None => {
            whole = [PlaceSum::new(At::outside(Place::Unknown), thread.account(world.now()))];
            (&whole[..], false)
        }
    };
    // A thread whose calls neither begin nor return, but that has recorded something itself, did that outside of them.
    let place = |at: &At| match at.place {
        Place::Unknown if thread.has_recorded() => Place::User,
        place => place,
    };
    let losses = world.losses();
    let lost = losses.kernel_since(first) || losses.calls_since(first);
    let mark = match () {
        () if lost || incomplete || thread.doubtful_since(first) => Mark::LowerBound,
        () if seen && thread.born => Mark::Exact,
        () => Mark::Censored,
    };
    let mark = mark.max(thread.disturbed.mark(first));
    let row = |sum: &PlaceSum| Breakdown {
        ts: Nanos(first),
        pid: thread.key.pid,
        tid: thread.key.tid,
        comm: thread.comm.clone(),
        place: place(&sum.at),
        call: sum.at.call.clone(),
        file: sum.at.file,
        waits_for: waits_for(&sum.at),
        fault: sum.at.fault,
        count: sum.count,
        unfinished: sum.unfinished,
        begun_before: sum.begun_before,
        parts: world.context().kernel.then_some(sum.parts),
        wall_ns: world.now() - first,
        mark,
    };
    let all = sums
        .iter()
        .filter(|sum| sum.parts.total_ns() != 0 || sum.count != 0 || sum.begun_before != 0);
    rows.breakdown.extend(all.map(row));
}

/// What a thread waits for that is blocked there, as far as follows from the call.
fn waits_for(at: &At) -> Option<Name> {
    if at.fault.is_some() {
        return Some("page".into());
    }
    if let Some(file) = at.file {
        return Some(file.word().into());
    }
    let what = match &**at.call.as_ref()? {
        "futex" | "futex_wait" | "futex_waitv" | "futex_requeue" => "futex",
        "nanosleep" | "clock_nanosleep" => "timer",
        "poll" | "ppoll" | "select" | "pselect6" => "descriptors",
        "wait4" | "waitid" | "vfork" => "child",
        "pause" | "rt_sigsuspend" | "rt_sigtimedwait" => "signal",
        "semop" | "semtimedop" => "semaphore",
        "msgrcv" | "msgsnd" | "mq_timedreceive" | "mq_timedsend" => "message queue",
        "open" | "openat" | "openat2" | "execve" | "execveat" | "stat" | "newfstatat"
        | "unlink" | "unlinkat" | "rename" | "renameat2" | "mkdir" | "rmdir" => "file",
        _ => return None,
    };
    Some(what.into())
}

#[cfg(test)]
mod tests;
