//! An executor with two levels, as hybrid threads have them: tasks, which it schedules, on workers, which the kernel
//! schedules (Danjean, Wacrenier and Namyst, "An Efficient Multi-level Trace Toolkit for Multi-threaded Applications", 2005,
//! section 1).
//!
//! Where it looks for the next task is what is compared: in one queue for all workers, so that a task is polled by whoever is
//! free, or in one for each worker, to which a task comes back, and of which others take only what they would be idle for.

use std::cell::Cell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use ft_user::task;

use crate::Error;

/// Where a task waits that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queues {
    /// In one queue for all workers.
    Shared,
    /// In one of the worker that polled it last.
    Own,
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A handle to spawn by.
#[derive(Clone)]
pub(super) struct Executor(Arc<Shared>);

struct Shared {
    due: Mutex<Due>,
    some: Condvar,
}

struct Due {
    /// One, or one for each worker.
    queues: Vec<VecDeque<Arc<Job>>>,
    /// Of which worker the next new task is.
    next: usize,
    is_over: bool,
}

/// What the executor keeps of a task.
struct Job {
    shared: Arc<Shared>,
    /// Before all others as soon as it is woken.
    is_urgent: bool,
    slot: Mutex<Slot>,
}

struct Slot {
    /// None while it is polled, and when it is over.
    work: Option<Work>,
    /// It is to be polled, once more if it is being polled.
    is_due: bool,
    /// The worker that polled it last, or that it was given to.
    worker: usize,
}

thread_local! {
    static WORKER: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The worker that calls this, counted from 0; of other threads a number that none has.
pub(super) fn worker() -> usize {
    WORKER.get()
}

/// Whoever panics ends the program: nothing that was locked meanwhile is looked at.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs what `main` makes, as the first task, until it is over, on `workers` threads of the name `worker-N`.
///
/// # Errors
///
/// When a thread cannot be started.
pub(super) fn run<T, F>(
    workers: usize,
    queues: Queues,
    main: impl FnOnce(Executor) -> F,
) -> Result<T, Error>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let lists = if queues == Queues::Shared { 1 } else { workers };
    let queues = (0..lists).map(|_| VecDeque::new()).collect();
    let due = Mutex::new(Due { queues, next: 0, is_over: false });
    let executor = Executor(Arc::new(Shared { due, some: Condvar::new() }));
    let mut threads = Vec::new();
    for n in 0..workers {
        let shared = executor.0.clone();
        let body = move || {
            WORKER.set(n);
            ft_user::thread_init();
            while let Some(job) = shared.next(n) {
                job.turn(n);
            }
        };
        match thread::Builder::new().name(format!("worker-{n}")).spawn(body) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                executor.end();
                return Err(Error::refused(format!(
                    "{n} of {workers} workers could be started ({error}); ask for fewer, or raise `ulimit -u`"
                )));
            }
        }
    }
    let result = Arc::new(Mutex::new(None));
    let (to, ends, work) = (result.clone(), executor.clone(), main(executor.clone()));
    executor.put(false, async move {
        *locked(&to) = Some(work.await);
        ends.end();
    });
    for thread in threads {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
    let result = locked(&result).take();
    Ok(result.expect("the workers end when it is there"))
}

impl Executor {
    /// Starts a task of this name; it is to be awaited.
    #[ft_user::function("executor::spawn")]
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Join<T> {
        self.start(false, name, work)
    }

    /// Starts one that comes before all others as soon as it is woken.
    pub(super) fn spawn_urgent<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Join<T> {
        self.start(true, name, work)
    }

    fn start<T: Send + 'static>(
        &self,
        is_urgent: bool,
        name: &'static str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Join<T> {
        let join = Join(Arc::new(Mutex::new((None, None))));
        let to = join.0.clone();
        self.put(
            is_urgent,
            task::named(name, async move {
                let result = work.await;
                let mut to = locked(&to);
                to.0 = Some(result);
                let waker = to.1.take();
                drop(to);
                waker.into_iter().for_each(Waker::wake);
            }),
        );
        join
    }

    fn put(&self, is_urgent: bool, work: impl Future<Output = ()> + Send + 'static) {
        let mut due = locked(&self.0.due);
        let worker = due.next;
        due.next = (worker + 1) % due.queues.len();
        drop(due);
        let slot = Slot { work: Some(Box::pin(work)), is_due: false, worker };
        Arc::new(Job { shared: self.0.clone(), is_urgent, slot: Mutex::new(slot) }).wake();
    }

    fn end(&self) {
        locked(&self.0.due).is_over = true;
        self.0.some.notify_all();
    }
}

impl Shared {
    #[ft_user::function("executor::push")]
    fn push(&self, job: Arc<Job>, worker: usize) {
        let mut due = locked(&self.due);
        let of = worker % due.queues.len();
        match job.is_urgent {
            true => due.queues[of].push_front(job),
            false => due.queues[of].push_back(job),
        }
        drop(due);
        self.some.notify_one();
    }

    /// The next task of a worker, as soon as there is one; none when all is over.
    fn next(&self, worker: usize) -> Option<Arc<Job>> {
        let mut due = locked(&self.due);
        while !due.is_over {
            if let Some(job) = due.take(worker) {
                return Some(job);
            }
            due = self.some.wait(due).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}

impl Due {
    /// Of its own queue, else of another one.
    #[ft_user::function("executor::take")]
    fn take(&mut self, worker: usize) -> Option<Arc<Job>> {
        let lists = self.queues.len();
        (0..lists).find_map(|n| self.queues[(worker + n) % lists].pop_front())
    }
}

impl Job {
    #[ft_user::function("executor::turn")]
    fn turn(self: Arc<Self>, worker: usize) {
        let mut slot = locked(&self.slot);
        (slot.is_due, slot.worker) = (false, worker);
        let Some(mut work) = slot.work.take() else { return };
        drop(slot);
        let waker = Waker::from(self.clone());
        if work.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            let mut slot = locked(&self.slot);
            slot.work = Some(work);
            let is_due = slot.is_due;
            drop(slot);
            if is_due {
                self.shared.push(self.clone(), worker);
            }
        }
    }
}

impl Wake for Job {
    #[ft_user::function("executor::wake")]
    fn wake(self: Arc<Self>) {
        let mut slot = locked(&self.slot);
        // Who polls it puts it into the queue then.
        let puts = slot.work.is_some() && !slot.is_due;
        slot.is_due = true;
        let worker = slot.worker;
        drop(slot);
        if puts {
            self.shared.push(self.clone(), worker);
        }
    }
}

/// A task that can be awaited.
pub(super) struct Join<T>(Arc<Mutex<(Option<T>, Option<Waker>)>>);

impl<T> Future for Join<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut of = locked(&self.0);
        match of.0.take() {
            Some(result) => Poll::Ready(result),
            None => {
                of.1 = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Lets those run that are due.
pub(super) async fn yields() {
    let mut has = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut has, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[test]
    fn every_task_is_over_before_the_first_one_is() {
        for queues in [Queues::Shared, Queues::Own] {
            for workers in [1, 2, 4] {
                let sum = run(workers, queues, |executor| async move {
                    let mut joins = Vec::new();
                    for n in 0..100_u64 {
                        joins.push(executor.spawn("adds", async move {
                            yields().await;
                            n
                        }));
                    }
                    let mut sum = 0;
                    for join in joins {
                        sum += join.await;
                    }
                    sum
                });
                assert_eq!(sum.unwrap(), 4950);
            }
        }
    }

    /// A task that is woken by another thread while it is polled is polled once more.
    #[test]
    fn no_wake_is_lost() {
        let polls = Arc::new(AtomicUsize::new(0));
        let told = polls.clone();
        let _: () = run(2, Queues::Own, |_| {
            std::future::poll_fn(move |context| {
                if told.fetch_add(1, Relaxed) == 1000 {
                    return Poll::Ready(());
                }
                let waker = context.waker().clone();
                thread::spawn(move || waker.wake()).join().expect("it wakes");
                Poll::Pending
            })
        })
        .unwrap();
        assert_eq!(polls.load(Relaxed), 1001);
    }

    /// With a queue for each, a task comes back to the worker that polled it, unless another one would be idle.
    #[test]
    fn a_task_stays_with_its_worker() {
        let list = |queues| Due { queues, next: 0, is_over: false };
        let shared = Arc::new(Shared { due: Mutex::new(list(Vec::new())), some: Condvar::new() });
        let job = |worker| {
            let slot = Slot { work: None, is_due: true, worker };
            Arc::new(Job { shared: shared.clone(), is_urgent: false, slot: Mutex::new(slot) })
        };
        let number = |job: Option<Arc<Job>>| job.map(|job| locked(&job.slot).worker);
        let mut own = list(vec![[job(0), job(0)].into(), [job(1)].into()]);
        assert_eq!(
            [1, 1, 1, 1].map(|worker| number(own.take(worker))),
            [Some(1), Some(0), Some(0), None]
        );
        let mut one = list(vec![[job(0), job(1)].into()]);
        assert_eq!([1, 0].map(|worker| number(one.take(worker))), [Some(0), Some(1)]);
    }
}
