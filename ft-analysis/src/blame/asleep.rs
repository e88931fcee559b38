//! What a thread sleeps for, by the call in which it does.

use super::Back;
use super::sums::For;
use super::talks::Place;
use crate::world::{Thread, World};
use ft_ebpf::Futex;
use ft_trace::ids::Tid;
use ft_trace::tables::{FileKind, Sleep};

/// What a futex has that is taken and waited for, in glibc (sysdeps/nptl/lowlevellock.h) and Rust's standard library.
const CONTENDED: i64 = 2;

/// Of a futex with priority inheritance, who holds it (include/uapi/linux/futex.h).
const FUTEX_TID_MASK: i32 = 0x3fff_ffff;

/// Whether another thread can say something to one that sleeps so.
pub(super) fn hears(sleep: &Sleep) -> bool {
    sleep.is_at_futex()
        || Place::of(sleep.call.as_deref()) == Place::Poll
        || matches!(sleep.file, Some(FileKind::Pipe | FileKind::Socket | FileKind::Eventfd))
}

/// Whether a sleep is for a lock, of a file or of memory.
pub(super) fn is_lock(sleep: &Sleep) -> bool {
    match sleep.call.as_deref() {
        Some("flock" | "fcntl") => true,
        _ => sleep.is_at_futex() && (has_owner(sleep) || is_contended(sleep)),
    }
}

/// Operation of a call of `futex`.
fn operation(sleep: &Sleep) -> Option<u32> {
    sleep.argument[1].map(|operation| operation as u32 & !Futex::OP_FLAGS)
}

/// Whether a futex has the number of who holds it, by the operation.
fn has_owner(sleep: &Sleep) -> bool {
    matches!(operation(sleep), Some(Futex::OP_LOCK_PI | Futex::OP_LOCK_PI2))
}

/// Whether a futex is that of a lock, by the value that is expected of it.
fn is_contended(sleep: &Sleep) -> bool {
    sleep.argument[2] == Some(CONTENDED)
}

/// Whether a number is that of another thread of the same process.
fn is_another(tid: i32, thread: &Thread, world: &World) -> bool {
    tid != thread.key.tid.0 && world.thread(thread.key.pid, Tid(tid)).is_some()
}

/// Whether a thread that has gone to sleep does so until another one of its process has ended (`pthread_join`): the kernel then sets
/// the futex to 0, which has that one's number until then.
pub(super) fn joins(thread: &Thread, world: &World) -> bool {
    let Some(sleep) = &thread.asleep else { return false };
    let expected = sleep.argument[2].and_then(|value| i32::try_from(value).ok());
    sleep.call.as_deref() == Some("futex")
        && expected.is_some_and(|tid| is_another(tid, thread, world))
}

/// What a thread slept for, by the call in which it did.
pub(super) fn waited_for(thread: &Thread, back: &Back, world: &World) -> For {
    let stack = back.left_at;
    let Some(sleep) = &back.asleep else { return For { stack, ..For::default() } };
    let call = sleep.call.clone();
    if !sleep.is_at_futex() {
        let object = sleep.argument[0].filter(|_| sleep.file.is_some());
        return For { call, file: sleep.file, object, stack, ..For::default() };
    }
    let holder = match has_owner(sleep) {
        true => sleep.word.map(|word| word & FUTEX_TID_MASK),
        false => sleep.owner.filter(|_| is_contended(sleep)),
    };
    For {
        call,
        file: None,
        object: sleep.argument[0],
        operation: operation(sleep).map(|operation| operation as i32),
        lock: is_lock(sleep),
        join: false,
        turns: false,
        // Whatever stands there.
        holder: holder.filter(|tid| is_another(*tid, thread, world)),
        stack,
    }
}
