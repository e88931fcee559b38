//! Tasks on an executor with one worker, whose lives are known.
//!
//! ```text
//! waker   FIFO 50                    a wakes fetch b              e wakes late f──keeps the CPU──g
//! worker  FIFO 10  polls all once, busy──────────────c│d fetch sleeps s─t│ waits for work          h late
//! ```
//!
//! Before that, `ask` waits for `answer`, which wakes it in its only poll and goes on for a while:
//!
//! ```text
//! worker  o ask pending  p answer ───── q wakes ask r ─── u  s ask
//! ```
//!
//! and a task comes and goes that hooks of its executor tell of.
//!
//! All on one CPU. The whole of `fetch` is a request, and so is that of `ask`. `lost` is dropped while it waits, and `broken` panics; `fetch` has a task within it, and `late` holds a lock
//! while it waits.

use std::collections::VecDeque;
use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use ft_user::sync;
use ft_user::task::{self, hooks};
use serde_json::json;

use crate::sched::{self, now_ns};

const ROUND_NS: i64 = 6_000_000;
/// Until when `busy` runs, and when `fetch` is woken meanwhile, since the begin of the round.
const BUSY_NS: i64 = 1_000_000;
const WAKES_NS: i64 = 500_000;
/// Until when `fetch` sleeps in its poll; when `late` is woken, and for how long the waker then keeps the CPU.
const SLEEPS_NS: i64 = 2_500_000;
const LEAST_SLEEP_NS: i64 = 500_000;
const LATE_NS: i64 = 4_000_000;
const KEEPS_NS: i64 = 300_000;

/// For how long `answer` runs, before it wakes `ask` and then.
const ANSWERS_NS: i64 = 60_000;

/// What `late` holds.
static ACROSS: sync::Mutex<()> = sync::Mutex::named("across", ());

/// What a thread must give back that has it.
struct OfOneThread<T>(T);

// SAFETY: the worker alone polls tasks, and drops them.
unsafe impl<T> Send for OfOneThread<T> {}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What an executor keeps of a task.
struct Spawned {
    future: Mutex<Option<Work>>,
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    woken: Mutex<VecDeque<Arc<Spawned>>>,
    some: Condvar,
}

impl Wake for Spawned {
    fn wake(self: Arc<Self>) {
        let queue = self.queue.clone();
        queue.woken.lock().expect("not poisoned").push_back(self);
        queue.some.notify_one();
    }
}

impl Queue {
    fn spawn(self: &Arc<Self>, future: impl Future<Output = ()> + Send + 'static) -> Arc<Spawned> {
        let future = Mutex::new(Some(Box::pin(future) as Work));
        let spawned = Arc::new(Spawned { future, queue: self.clone() });
        spawned.clone().wake();
        spawned
    }

    /// Polls the task that was woken first, as soon as there is one.
    fn turn(&self) {
        let woken = self.woken.lock().expect("not poisoned");
        let mut woken =
            self.some.wait_while(woken, |woken| woken.is_empty()).expect("not poisoned");
        let next = woken.pop_front().expect("one");
        drop(woken);
        let waker = Waker::from(next.clone());
        let mut future = next.future.lock().expect("not poisoned");
        let Some(work) = future.as_mut() else { return };
        let poll = AssertUnwindSafe(|| work.as_mut().poll(&mut Context::from_waker(&waker)));
        if !matches!(catch_unwind(poll), Ok(Poll::Pending)) {
            *future = None;
        }
    }
}

/// Something that happens once, as soon as a task waits for it.
#[derive(Default)]
struct Once {
    state: Mutex<(bool, Option<Waker>)>,
    waited_for: Condvar,
}

impl Once {
    async fn happened(&self) {
        poll_fn(|context| {
            let (happened, waker) = &mut *self.state.lock().expect("not poisoned");
            *waker = Some(context.waker().clone());
            self.waited_for.notify_one();
            if *happened { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn happens(&self) {
        // On a machine that is late the task was not polled yet.
        let state = self.state.lock().expect("not poisoned");
        let none = |(_, waker): &mut (bool, Option<Waker>)| waker.is_none();
        let mut state = self.waited_for.wait_while(state, none).expect("not poisoned");
        let (happened, waker) = &mut *state;
        *happened = true;
        waker.take().expect("it waits").wake();
    }
}

/// Prints the two threads, and for each round the moments of the figures.
pub(crate) fn run(rounds: u64) -> String {
    let start = sched::Start::of(2);
    let onces: Vec<[Arc<Once>; 2]> = (0..rounds).map(|_| Default::default()).collect();
    let (waker, worker) = thread::scope(|scope| {
        let waker = sched::on_stage(scope, "ft-waker", 50, || {
            let begin = start.wait();
            let round = |round: u64| {
                let at = begin + round as i64 * ROUND_NS;
                let [fetch, late] = &onces[round as usize];
                sched::sleep_until(at + WAKES_NS);
                let a = now_ns();
                fetch.happens();
                let b = now_ns();
                sched::sleep_until(at + LATE_NS);
                let e = now_ns();
                late.happens();
                let f = now_ns();
                sched::spin_until(f + KEEPS_NS);
                [a, b, e, f, now_ns()]
            };
            (sched::gettid(), (0..rounds).map(round).collect::<Vec<_>>())
        });
        let worker = sched::on_stage(scope, "ft-worker", 10, || {
            let begin = start.wait();
            let round = |round: u64| {
                let at = begin + round as i64 * ROUND_NS;
                sched::sleep_until(at);
                let asked = asks(round + 1);
                (asked, works(at, onces[round as usize].clone()))
            };
            (sched::gettid(), (0..rounds).map(round).collect::<Vec<_>>())
        });
        (waker.join().expect("the waker"), worker.join().expect("the worker"))
    });
    let told = waker.1.iter().zip(&worker.1);
    let told = told.map(|(w, (asked, k))| [&w[..], k, asked].concat());
    let told: Vec<Vec<i64>> = told.collect();
    json!({ "waker": waker.0, "worker": worker.0, "rounds": told }).to_string()
}

/// When `ask` began to wait, `answer` began, was about to wake it, had woken it and ended, and `ask` went on. Then the hooks
/// tell of the task of this number.
fn asks(hooked: u64) -> [i64; 6] {
    let queue = Arc::new(Queue::default());
    let told = Arc::new(Mutex::new([0; 6]));
    let tell = |told: &Mutex<[i64; 6]>, i: usize| told.lock().expect("not poisoned")[i] = now_ns();
    let answered = Arc::new(Once::default());
    let (to, waits) = (told.clone(), answered.clone());
    queue.spawn(task::named("ask", async move {
        let _request = OfOneThread(ft_user::scope!("tasks.ask"));
        tell(&to, 0);
        waits.happened().await;
        tell(&to, 5);
    }));
    let to = told.clone();
    queue.spawn(task::named("answer", async move {
        tell(&to, 1);
        sched::spin_until(now_ns() + ANSWERS_NS);
        tell(&to, 2);
        answered.happens();
        tell(&to, 3);
        sched::spin_until(now_ns() + ANSWERS_NS);
        tell(&to, 4);
    }));
    (0..3).for_each(|_| queue.turn());
    let at = Location::caller();
    hooks::made(hooked, at);
    hooks::polls(hooked, at);
    hooks::polled();
    hooks::polls(hooked, at);
    hooks::over(hooked);
    hooks::polled();
    *told.lock().expect("not poisoned")
}

/// A round of the worker: when `busy` began and ended, `fetch` was polled again, slept and had slept, and `late` was polled.
fn works(at: i64, [fetch, late]: [Arc<Once>; 2]) -> [i64; 6] {
    let queue = Arc::new(Queue::default());
    let told = Arc::new(Mutex::new([0; 6]));
    let tell = |told: &Mutex<[i64; 6]>, i: usize| told.lock().expect("not poisoned")[i] = now_ns();
    let to = told.clone();
    queue.spawn(task::named("fetch", async move {
        let _request = OfOneThread(ft_user::scope!("tasks.fetch"));
        task::named("inner", fetch.happened()).await;
        tell(&to, 2);
        tell(&to, 3);
        // On a machine that is late that time may be over.
        sched::sleep_until((at + SLEEPS_NS).max(now_ns() + LEAST_SLEEP_NS));
        tell(&to, 4);
    }));
    let to = told.clone();
    queue.spawn(task::named("late", async move {
        let held = OfOneThread(ACROSS.lock().expect("not poisoned"));
        late.happened().await;
        drop(held);
        tell(&to, 5);
    }));
    let lost = queue.spawn(task::named("lost", pending()));
    queue.spawn(task::named("broken", async { std::panic::resume_unwind(Box::new(())) }));
    let to = told.clone();
    queue.spawn(task::named("busy", async move {
        tell(&to, 0);
        sched::spin_until(at + BUSY_NS);
        tell(&to, 1);
    }));
    (0..5).for_each(|_| queue.turn());
    queue.turn();
    *lost.future.lock().expect("not poisoned") = None;
    queue.turn();
    *told.lock().expect("not poisoned")
}
