//! What the library tells: the metadata of its sites, shared by the stubs and the functions behind them.

use ft_user::layout::{Arg, SiteKind, SiteMeta};
use ft_user::site::{arg, meta};

static LOCK: [Arg; 2] = [arg::<*const ()>("lock"), arg::<*const ()>("caller")];
static CONDITION: [Arg; 3] =
    [arg::<*const ()>("lock"), arg::<*const ()>("caller"), arg::<*const ()>("condition")];

macro_rules! metas {
    ($($args:ident { $($name:ident = $kind:ident $text:literal;)+ })+) => {
        $($(
            #[doc = concat!("`", $text, "`.")]
            pub(crate) static $name: SiteMeta =
                meta(SiteKind::$kind, $text, (file!(), line!()), "", &$args);
        )+)+
    };
}

metas! {
    LOCK {
        MUTEX_WAIT = LockWait "lock.mutex_wait";
        MUTEX_ACQUIRE = LockAcquire "lock.mutex_acquire";
        MUTEX_ABANDON = LockAbandon "lock.mutex_abandon";
        MUTEX_RELEASE = LockRelease "lock.mutex_release";
        READ_WAIT = LockWait "lock.rwlock_read_wait";
        READ_ACQUIRE = LockAcquire "lock.rwlock_read_acquire";
        READ_ABANDON = LockAbandon "lock.rwlock_read_abandon";
        WRITE_WAIT = LockWait "lock.rwlock_write_wait";
        WRITE_ACQUIRE = LockAcquire "lock.rwlock_write_acquire";
        WRITE_ABANDON = LockAbandon "lock.rwlock_write_abandon";
        RWLOCK_RELEASE = LockRelease "lock.rwlock_release";
        SPIN_WAIT = LockWait "lock.spin_wait";
        SPIN_ACQUIRE = LockAcquire "lock.spin_acquire";
        SPIN_RELEASE = LockRelease "lock.spin_release";
        SEMAPHORE_WAIT = LockWait "lock.semaphore_wait";
        SEMAPHORE_ACQUIRE = LockAcquire "lock.semaphore_acquire";
        SEMAPHORE_ABANDON = LockAbandon "lock.semaphore_abandon";
        SEMAPHORE_RELEASE = LockRelease "lock.semaphore_release";
        BARRIER_WAIT = WaitBegin "lock.barrier_wait";
        BARRIER_WAKE = WaitEnd "lock.barrier_wake";
        ONCE_WAIT = WaitBegin "lock.once_wait";
        ONCE_WAKE = WaitEnd "lock.once_wake";
    }
    CONDITION {
        COND_WAIT = CondWait "lock.cond_wait";
        COND_WAKE = CondWake "lock.cond_wake";
    }
}

/// Writes an event if its site is enabled. Keeps `errno`.
macro_rules! tell {
    ($meta:ident, $lock:expr, $caller:expr) => {
        ft_user::__site!(
            $meta, lock: *const () = $lock.cast_const().cast(), caller: *const () = $caller
        )
    };
    ($meta:ident, $lock:expr, $caller:expr, $condition:expr) => {
        ft_user::__site!(
            $meta,
            lock: *const () = $lock.cast_const().cast(),
            caller: *const () = $caller,
            condition: *const () = $condition.cast_const().cast()
        )
    };
}
pub(crate) use tell;

/// One acquisition with its events: tries, and if that finds the lock taken, tells that it waits.
///
/// `$attempt` is 0 or an error number, or nothing, where `$block` is to be called at once, which returns such a number. The result is that of
/// the last one called.
macro_rules! acquire {
    (
        $lock:ident, $caller:ident, $attempt:expr, $block:expr,
        $wait:ident, $acquire:ident, $abandon:ident
    ) => {{
        let attempt: Option<core::ffi::c_int> = $attempt;
        let contended = attempt == Some(libc::EBUSY);
        if contended {
            crate::event::tell!($wait, $lock, $caller);
        }
        let result = attempt.filter(|_| !contended).unwrap_or_else($block);
        if result == 0 {
            crate::event::tell!($acquire, $lock, $caller);
        } else if contended {
            crate::event::tell!($abandon, $lock, $caller);
        }
        result
    }};
}
pub(crate) use acquire;
