//! A request that goes through three threads: the first one hands it to the second one by a condition, which needs a lock
//! that somebody else holds who sleeps and then works; the third one gets it through a pipe.
//!
//! ```text
//! stage CPU    front    begin─works┐notify
//!              worker              └works──waits for the lock──────────┐works─writes┐
//!              keeper   holds the lock, sleeps───────────until its timer┘works┘      │
//!              back                                                                 └works─end
//! ```
//!
//! All have one real-time priority on one CPU, so that nobody comes before the one before has gone.

use std::io::{Read, Write, pipe};
use std::thread::scope;

use ft_user::sync::{Condvar, Mutex};

use crate::sched::{self, now_ns};

const ROUND_NS: i64 = 12_000_000;
/// When the keeper takes its lock, before the request begins, and how long after that begin it sleeps.
const AHEAD_NS: i64 = 4_000_000;
const ASLEEP_NS: i64 = 2_000_000;
/// What each one works.
const FRONT_NS: i64 = 300_000;
const WORKER_NS: [i64; 2] = [400_000, 200_000];
const KEEPER_NS: i64 = 500_000;
const BACK_NS: i64 = 250_000;

static JOBS: Mutex<Vec<u64>> = Mutex::named("jobs", Vec::new());
static ARRIVED: Condvar = Condvar::new();
static STOCK: Mutex<u64> = Mutex::named("stock", 0);

fn works(ns: i64) {
    sched::spin_until(now_ns() + ns);
}

/// Prints the four threads, and for each round the readings of the clock around what each of them does: around the begin
/// and the notification; before the lock is asked for; when the keeper has woken, and around its release; around the
/// write; around the end.
pub(crate) fn run(rounds: u64) -> String {
    let start = sched::Start::of(4);
    let (mut from_worker, mut to_back) = pipe().expect("a pipe");
    let at = |begin: i64, round: u64| begin + AHEAD_NS + round as i64 * ROUND_NS;
    let (front, worker, keeper, back) = scope(|scope| {
        let front = sched::on_stage(scope, "ft-front", 10, || {
            let begin = start.wait();
            let round = |id: u64| {
                sched::sleep_until(at(begin, id));
                let before = now_ns();
                ft_user::event!("relay.begin", id: u64);
                let begun = now_ns();
                works(FRONT_NS);
                JOBS.lock().expect("not poisoned").push(id);
                let notifies = now_ns();
                ARRIVED.notify_one();
                [before, begun, notifies, now_ns()]
            };
            (sched::gettid(), (0..rounds).map(round).collect::<Vec<_>>())
        });
        let worker = sched::on_stage(scope, "ft-worker", 10, || {
            start.wait();
            let round = |_| {
                let jobs = JOBS.lock().expect("not poisoned");
                let mut jobs =
                    ARRIVED.wait_while(jobs, |jobs| jobs.is_empty()).expect("not poisoned");
                let id = jobs.remove(0);
                drop(jobs);
                works(WORKER_NS[0]);
                let asks = now_ns();
                *STOCK.lock().expect("not poisoned") += 1;
                works(WORKER_NS[1]);
                let writes = now_ns();
                to_back.write_all(&id.to_ne_bytes()).expect("a pipe");
                [asks, writes, now_ns()]
            };
            (sched::gettid(), (0..rounds).map(round).collect::<Vec<_>>())
        });
        let keeper = sched::on_stage(scope, "ft-keeper", 10, || {
            let begin = start.wait();
            let round = |id: u64| {
                sched::sleep_until(at(begin, id) - AHEAD_NS / 2);
                let held = STOCK.lock().expect("not poisoned");
                sched::sleep_until(at(begin, id) + ASLEEP_NS);
                let awake = now_ns();
                works(KEEPER_NS);
                let releases = now_ns();
                drop(held);
                [awake, releases, now_ns()]
            };
            (sched::gettid(), (0..rounds).map(round).collect::<Vec<_>>())
        });
        let back = sched::on_stage(scope, "ft-back", 10, || {
            start.wait();
            let round = |_| {
                let mut id = [0; 8];
                from_worker.read_exact(&mut id).expect("a pipe");
                works(BACK_NS);
                let id = u64::from_ne_bytes(id);
                let before = now_ns();
                ft_user::event!("relay.end", id: u64);
                [before, now_ns()]
            };
            (sched::gettid(), (0..rounds).map(round).collect::<Vec<_>>())
        });
        (
            front.join().expect("the front"),
            worker.join().expect("the worker"),
            keeper.join().expect("the keeper"),
            back.join().expect("the back"),
        )
    });
    let rows: Vec<String> = (0..rounds as usize)
        .map(|i| {
            let all = [&front.1[i][..], &worker.1[i], &keeper.1[i], &back.1[i]].concat();
            format!("[{}]", all.iter().map(i64::to_string).collect::<Vec<_>>().join(","))
        })
        .collect();
    format!(
        "{{\"front\":{},\"worker\":{},\"keeper\":{},\"back\":{},\"rounds\":[{}]}}",
        front.0,
        worker.0,
        keeper.0,
        back.0,
        rows.join(",")
    )
}
