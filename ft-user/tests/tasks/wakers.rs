//! The wakers that traced tasks hand on: whose they are, how long they live, and what they cost.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Poll, RawWaker, RawWakerVTable, Wake, Waker};

use ft_user::task::traced;

use crate::{Wakes, alone, poll, told, trace};

/// Counts what a thread allocates.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: as the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + 1);
        // SAFETY: as of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as of this function.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// How often `work` allocates.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATED.get();
    work();
    ALLOCATED.get() - before
}

#[test]
fn while_it_is_off_the_future_gets_the_executors_own_waker_and_nothing_is_allocated() {
    alone(|| {
        let waker = Waker::from(Arc::new(Wakes::default()));
        let allocated = allocations(|| {
            let mut task = pin!(traced(poll_fn(|context| {
                assert!(context.waker().will_wake(&waker));
                Poll::<()>::Pending
            })));
            for _ in 0..10 {
                assert!(poll(task.as_mut(), &waker).is_pending());
            }
        });
        assert_eq!(allocated, 0);
    });
}

/// The waker of an executor that does nothing with it. Its clones are equal to it wherever the compiler puts them: the
/// tables of [`Waker::noop`] and of an `Arc` may exist once in each codegen unit.
fn still(executor: &'static u8) -> Waker {
    static TABLE: RawWakerVTable =
        RawWakerVTable::new(|executor| RawWaker::new(executor, &TABLE), |_| (), |_| (), |_| ());
    // SAFETY: nothing of the table looks at the executor.
    unsafe { Waker::from_raw(RawWaker::new((&raw const *executor).cast(), &TABLE)) }
}

#[test]
fn a_waker_that_somebody_keeps_serves_the_next_poll_too() {
    static EXECUTORS: [u8; 2] = [0, 1];
    let [one, other] = EXECUTORS.each_ref().map(still);
    let kept = Mutex::new(None::<Waker>);
    let keep = poll_fn(|context| {
        *kept.lock().unwrap() = Some(context.waker().clone());
        Poll::<()>::Pending
    });
    let (_, events) = trace(|| {
        // Claims the thread's ring.
        assert!(poll(pin!(traced(pending::<()>())), &one).is_pending());
        let mut task = pin!(traced(keep));
        let mut polls = |n, waker| {
            allocations(|| (0..n).for_each(|_| assert!(poll(task.as_mut(), waker).is_pending())))
        };
        assert_eq!(polls(5, &one), 1);
        assert_eq!(polls(5, &other), 1, "the executor has another waker");
        // Nobody keeps it.
        let mut task = pin!(traced(pending::<()>()));
        let each = allocations(|| {
            (0..5).for_each(|_| assert!(poll(task.as_mut(), &one).is_pending()));
        });
        assert_eq!(each, 5);
    });
    assert!(events.len() > 30);
}

/// An executor whose tasks own their future, and whose wakers own the task.
struct Owner(Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>);

impl Wake for Owner {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_task_is_dropped_with_the_last_of_its_wakers() {
    let (_, events) = trace(|| {
        let owner = Arc::new(Owner(Mutex::new(Some(Box::pin(traced(pending()))))));
        let waker = Waker::from(owner.clone());
        let mut future = owner.0.lock().unwrap();
        assert!(poll(future.as_mut().unwrap().as_mut(), &waker).is_pending());
        drop(future);
        let lives: Weak<Owner> = Arc::downgrade(&owner);
        drop((waker, owner));
        assert_eq!(lives.strong_count(), 0);
    });
    assert_eq!(told(&events), ["new 0", "poll 0", "polled 0 pending", "drop 0"]);
}
