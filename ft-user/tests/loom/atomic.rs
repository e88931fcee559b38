//! Loom's atomics with four additions: one ordering can be weakened, words can be changed in two steps, payload can be
//! checked for races, and a signal handler can strike before any access of a thread.

use std::cell::{Cell, RefCell};

use loom::cell::UnsafeCell;
use loom::sync::atomic::Ordering;

/// What a word is to the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Contents of an event.
    Payload,
    /// Commit word of a slot.
    Commit,
    /// Next index to reserve.
    Head,
    /// What the reader has consumed.
    Tail,
    /// Marker of a slot of the shared ring.
    Marker,
    /// Free count of the shared ring.
    Free,
    /// Write index of the shared ring.
    Write,
    /// What the kernel knows of a thread.
    Kernel,
    /// State of a ring.
    State,
    /// Which claim of a ring it is.
    Generation,
    /// Place of what one thread makes for all.
    Place,
    /// Counter or table that numbers are taken from.
    Numbers,
    /// A fence, which belongs to no word.
    Fence,
    /// Anything else.
    Other,
}

/// Kind of an access; a release fence counts as a store, an acquire fence as a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Load,
    Store,
    /// Read, modify, write.
    Modify,
}

/// All accesses of one kind to words of one role get another ordering; fences go away.
pub(crate) type Weakening = (Role, Access, Ordering);

thread_local! {
    static WEAKENING: Cell<Option<Weakening>> = const { Cell::new(None) };
    static IN_STEPS: Cell<Option<Role>> = const { Cell::new(None) };
    static PAYLOAD_MAY_RACE: Cell<bool> = const { Cell::new(false) };
}

/// Weakens one ordering in the models of this test from here on, or none.
pub(crate) fn weaken(weakening: Option<Weakening>) {
    WEAKENING.set(weakening);
}

/// Has words of a role read and written in two steps where they are to be modified in one, in the models of this test from here
/// on, or none.
pub(crate) fn modify_in_steps(role: Option<Role>) {
    IN_STEPS.set(role);
}

/// Says whether payload is made of atomics, or of memory whose accesses must be ordered.
pub(crate) fn payload_may_race(may: bool) {
    PAYLOAD_MAY_RACE.set(may);
}

type Handler = Box<dyn FnOnce()>;

loom::thread_local! {
    /// Accesses before the handler strikes, and the handler.
    static PENDING: RefCell<Option<(u32, Handler)>> = RefCell::new(None);
}

/// Has `handler` interrupt the calling thread once, before its access number `accesses` from now on.
pub(crate) fn strike_after(accesses: u32, handler: impl FnOnce() + 'static) {
    PENDING.with(|pending| *pending.borrow_mut() = Some((accesses, Box::new(handler))));
}

/// Takes back a handler that has not struck. Loom wants to see it dropped within its execution.
pub(crate) fn calm() {
    PENDING.with(|pending| pending.borrow_mut().take());
}

loom::lazy_static! {
    /// Stored to before every access, and never read. Loom tries two accesses in both orders only if it
    /// sees that they depend on each other, and keeps just the last access to each word for that; a
    /// thread's own load would hide the access of another before it. This makes all depend on all.
    static ref TURN: loom::sync::atomic::AtomicU64 = loom::sync::atomic::AtomicU64::new(0);
}

/// Before an access of the calling thread: a handler may strike, others may come first.
fn step(plain: bool) {
    let due = PENDING.with(|pending| {
        let mut pending = pending.borrow_mut();
        match &mut *pending {
            Some((0, _)) => pending.take(),
            Some((left, _)) => {
                *left -= 1;
                None
            }
            None => None,
        }
    });
    if let Some((_, handler)) = due {
        handler();
    }
    if !plain {
        TURN.store(0, Ordering::Relaxed);
    }
}

fn order(role: Role, access: Access, order: Ordering) -> Ordering {
    match WEAKENING.get() {
        Some((r, a, weaker)) if (r, a) == (role, access) => weaker,
        _ => order,
    }
}

/// A fence that can be taken away.
pub(crate) fn fence(order: Ordering) {
    let access = if order == Ordering::Release { Access::Store } else { Access::Load };
    if !matches!(WEAKENING.get(), Some((Role::Fence, a, _)) if a == access) {
        loom::sync::atomic::fence(order);
    }
}

macro_rules! atomic {
    ($name:ident, $ty:ty) => {
        /// An atomic of the model.
        pub(crate) struct $name {
            role: Role,
            atomic: loom::sync::atomic::$name,
            /// Stands in for the atomic where accesses must be ordered.
            plain: UnsafeCell<$ty>,
        }

        // SAFETY: loom reports each race on `plain`, and runs one thread at a time.
        unsafe impl Sync for $name {}

        #[allow(dead_code, reason = "each type has all methods, and needs some")]
        impl $name {
            pub(crate) fn new(role: Role, value: $ty) -> $name {
                let atomic = loom::sync::atomic::$name::new(value);
                $name { role, atomic, plain: UnsafeCell::new(value) }
            }

            fn is_plain(&self) -> bool {
                self.role == Role::Payload && !PAYLOAD_MAY_RACE.get()
            }

            fn is_in_steps(&self) -> bool {
                IN_STEPS.get() == Some(self.role)
            }

            pub(crate) fn load(&self, o: Ordering) -> $ty {
                step(self.is_plain());
                if self.is_plain() {
                    // SAFETY: valid; loom checks that no write is concurrent.
                    return self.plain.with(|value| unsafe { *value });
                }
                self.atomic.load(order(self.role, Access::Load, o))
            }

            pub(crate) fn store(&self, value: $ty, o: Ordering) {
                step(self.is_plain());
                if self.is_plain() {
                    // SAFETY: valid; loom checks that no access is concurrent.
                    return self.plain.with_mut(|place| unsafe { *place = value });
                }
                self.atomic.store(value, order(self.role, Access::Store, o));
            }

            pub(crate) fn fetch_add(&self, value: $ty, o: Ordering) -> $ty {
                if self.is_in_steps() {
                    let old = self.load(Ordering::Relaxed);
                    self.store(old + value, Ordering::Relaxed);
                    return old;
                }
                step(false);
                self.atomic.fetch_add(value, order(self.role, Access::Modify, o))
            }

            pub(crate) fn fetch_sub(&self, value: $ty, o: Ordering) -> $ty {
                step(false);
                self.atomic.fetch_sub(value, order(self.role, Access::Modify, o))
            }

            pub(crate) fn fetch_min(&self, value: $ty, o: Ordering) -> $ty {
                step(false);
                self.atomic.fetch_min(value, order(self.role, Access::Modify, o))
            }

            pub(crate) fn fetch_max(&self, value: $ty, o: Ordering) -> $ty {
                step(false);
                self.atomic.fetch_max(value, order(self.role, Access::Modify, o))
            }

            pub(crate) fn swap(&self, value: $ty, o: Ordering) -> $ty {
                step(false);
                self.atomic.swap(value, order(self.role, Access::Modify, o))
            }

            pub(crate) fn compare_exchange(
                &self,
                old: $ty,
                new: $ty,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$ty, $ty> {
                if self.is_in_steps() {
                    let found = self.load(Ordering::Relaxed);
                    if found != old {
                        return Err(found);
                    }
                    self.store(new, Ordering::Relaxed);
                    return Ok(found);
                }
                step(false);
                let success = order(self.role, Access::Modify, success);
                self.atomic.compare_exchange(old, new, success, failure)
            }
        }
    };
}

atomic!(AtomicU64, u64);
atomic!(AtomicU32, u32);
atomic!(AtomicI32, i32);

/// A place for an address, which is no payload.
pub(crate) struct AtomicPtr<T>(loom::sync::atomic::AtomicPtr<T>);

impl<T> AtomicPtr<T> {
    pub(crate) fn new(address: *mut T) -> AtomicPtr<T> {
        AtomicPtr(loom::sync::atomic::AtomicPtr::new(address))
    }

    pub(crate) fn load(&self, o: Ordering) -> *mut T {
        step(false);
        self.0.load(order(Role::Place, Access::Load, o))
    }

    pub(crate) fn store(&self, address: *mut T, o: Ordering) {
        step(false);
        self.0.store(address, order(Role::Place, Access::Store, o));
    }

    pub(crate) fn compare_exchange(
        &self,
        old: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        step(false);
        self.0.compare_exchange(old, new, order(Role::Place, Access::Modify, success), failure)
    }
}
