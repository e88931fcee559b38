//! Polls of a future that is pending, as an executor makes them: through a pointer to a future of any kind. Nanoseconds net
//! of the loop.

use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use ft_costs::cycles::{self, Loop, Plan, net};
use ft_costs::{cpu, fewer, hold, latency, step, tell};
use ft_user::task;
use tracing::Instrument;

latency!(base, |x, i| x = black_box(x));

/// What waits for something, and keeps who is to be woken for it.
#[derive(Default)]
struct Waits {
    waker: Option<Waker>,
}

impl Future for Waits {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match &self.waker {
            Some(waker) if waker.will_wake(context.waker()) => {}
            _ => self.waker = Some(context.waker().clone()),
        }
        black_box(Poll::Pending)
    }
}

/// The same, which is woken in its poll.
#[derive(Default)]
struct Woken(Waits);

impl Future for Woken {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        context.waker().wake_by_ref();
        Pin::new(&mut self.0).poll(context)
    }
}

/// What keeps nobody, so that a waker which is made for a poll goes with it.
struct Forgets;

impl Future for Forgets {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        black_box(Poll::Pending)
    }
}

/// Whom an executor wakes.
struct Executor;

impl Wake for Executor {
    fn wake(self: Arc<Self>) {}

    fn wake_by_ref(self: &Arc<Self>) {
        black_box(self);
    }
}

fn polls(future: impl Future<Output = ()>, n: u64, mut x: u64) -> u64 {
    let mut future: Pin<Box<dyn Future<Output = ()>>> = black_box(Box::pin(future));
    let waker = Waker::from(Arc::new(Executor));
    let mut context = Context::from_waker(&waker);
    for i in 0..n {
        step!(x);
        hold!(i);
        x ^= u64::from(future.as_mut().poll(&mut context).is_ready());
    }
    x
}

const SUBJECTS: [(&str, Loop); 7] = [
    ("plain", |n, x| polls(Waits::default(), n, x)),
    ("traced", |n, x| polls(task::named("costs", Waits::default()), n, x)),
    ("plain.woken", |n, x| polls(Woken::default(), n, x)),
    ("traced.woken", |n, x| polls(task::named("costs", Woken::default()), n, x)),
    ("plain.forgets", |n, x| polls(Forgets, n, x)),
    ("traced.forgets", |n, x| polls(task::named("costs", Forgets), n, x)),
    ("span", |n, x| polls(Waits::default().instrument(tracing::info_span!("costs")), n, x)),
];

/// Tells each of them; `span` is a future in a span of `tracing`.
pub(crate) fn measure(on: bool) {
    cpu::pin(cpu::measured());
    let per_ns = cycles::per_ns();
    let plan = if on { Plan { warm_up: 120, ..Plan::ON } } else { Plan::OFF };
    let plan = Plan { batches: fewer(plan.batches, 4), ..plan };
    for (name, subject) in SUBJECTS {
        tell(name, net(base, subject, plan) / per_ns);
    }
}
