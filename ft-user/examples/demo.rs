//! The program that `cargo xtask run-agent` records when it is given nothing.
//!
//! A small market: traders place orders, a matcher takes them from a queue and settles them, an auditor
//! reads the books. It is made to be worth a trace:
//!
//! - *Nested locks*: a trade holds `book`, then `account`, then `journal`, and every 16th `archive` too;
//!   depth four.
//! - *Contention*: the traders share one book; the auditor takes the `limits` for writing while all
//!   others read them.
//! - *Preemption inside of critical sections*: more busy threads than processors, and every 5 ms a
//!   thread that takes a processor from whoever has it (`SCHED_FIFO` where that is permitted).
//! - *Gaps*: a polling thread shares its processor with a thread that burns it.
//!
//! ```text
//! cargo run --release --example demo -- [--seconds N]
//! ```

use std::collections::VecDeque;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

use ft_user::event;
use ft_user::gap::Poller;
use ft_user::sync::{Condvar, Mutex, RwLock};

const TRADERS: u64 = 3;
const ACCOUNTS: usize = 4;

#[derive(Clone, Copy)]
struct Order {
    id: u64,
    account: usize,
    price: i64,
}

struct Market {
    queue: Mutex<VecDeque<Order>>,
    arrived: Condvar,
    book: Mutex<Vec<Order>>,
    accounts: [Mutex<i64>; ACCOUNTS],
    journal: Mutex<u64>,
    archive: Mutex<u64>,
    limits: RwLock<i64>,
    orders: AtomicU64,
    settled: AtomicU64,
    over: AtomicBool,
}

static MARKET: Market = Market {
    queue: Mutex::named("queue", VecDeque::new()),
    arrived: Condvar::new(),
    book: Mutex::named("book", Vec::new()),
    accounts: [const { Mutex::named("account", 0) }; ACCOUNTS],
    journal: Mutex::named("journal", 0),
    archive: Mutex::named("archive", 0),
    limits: RwLock::named("limits", 1_000),
    orders: AtomicU64::new(0),
    settled: AtomicU64::new(0),
    over: AtomicBool::new(false),
};

impl Market {
    fn is_open(&self) -> bool {
        !self.over.load(Relaxed)
    }

    /// Trader: checks the limit, and puts the order into the queue, or into the book and settles the
    /// oldest there.
    fn trade(&self, trader: u64) {
        let mut dice = Dice(trader + 1);
        while self.is_open() {
            let id = self.orders.fetch_add(1, Relaxed);
            let order = Order {
                id,
                account: dice.roll(ACCOUNTS as u64) as usize,
                price: dice.roll(900) as i64,
            };
            event!(
                "order.placed", id: u64, trader: u64, price: i64 = order.price;
                "order {id} of trader {trader} at {price}"
            );
            let allowed = order.price < *self.limits.read().unwrap();
            if !allowed {
                event!("order.refused", id: u64, price: i64 = order.price);
                continue;
            }
            if id.is_multiple_of(4) {
                self.queue.lock().unwrap().push_back(order);
                self.arrived.notify_one();
            } else {
                let mut book = self.book.lock().unwrap();
                book.push(order);
                work(dice.roll(20_000));
                if book.len() >= 8 {
                    let order = book.remove(0);
                    self.settle(order);
                }
            }
            work(dice.roll(300_000));
        }
    }

    /// Inside of `book` or on its own: `account`, `journal`, sometimes `archive`.
    fn settle(&self, order: Order) {
        let mut account = self.accounts[order.account].lock().unwrap();
        *account += order.price;
        work(3_000);
        let mut journal = self.journal.lock().unwrap();
        *journal += 1;
        work(2_000);
        if order.id.is_multiple_of(16) {
            *self.archive.lock().unwrap() += *journal;
            work(5_000);
        }
        let count = self.settled.fetch_add(1, Relaxed);
        event!("order.settled", id: u64 = order.id, settled: u64 = count);
    }

    /// Matcher: waits for orders and settles them, with the book closed.
    fn match_orders(&self) {
        loop {
            let empty = |queue: &mut VecDeque<Order>| queue.is_empty() && self.is_open();
            let mut queue = self.arrived.wait_while(self.queue.lock().unwrap(), empty).unwrap();
            let Some(order) = queue.pop_front() else { return };
            drop(queue);
            let _book = self.book.lock().unwrap();
            self.settle(order);
        }
    }

    /// Auditor: reads all accounts, one lock inside of the other, and moves the limit.
    fn audit(&self) {
        while self.is_open() {
            thread::sleep(Duration::from_millis(20));
            let accounts: Vec<_> = self.accounts.iter().map(|lock| lock.lock().unwrap()).collect();
            let total: i64 = accounts.iter().map(|account| **account).sum();
            drop(accounts);
            *self.limits.write().unwrap() = 800 + total % 200;
            event!("audit.done", total: i64);
        }
    }

    /// Takes a processor for 1 ms in every 5 ms.
    fn interrupt(&self) {
        let real_time = schedule_fifo();
        event!("rival.begin", real_time: bool);
        while self.is_open() {
            thread::sleep(Duration::from_millis(4));
            let end = Instant::now() + Duration::from_millis(1);
            while Instant::now() < end {
                spin_loop();
            }
        }
    }

    /// Polls on a processor that it has to share.
    fn poll(&self) -> u64 {
        pin_to_last_cpu();
        let mut poller = Poller::new(Duration::from_micros(20));
        let mut gaps = 0;
        while self.is_open() {
            gaps += u64::from(poller.poll().is_some());
        }
        gaps
    }

    fn burn(&self) {
        pin_to_last_cpu();
        while self.is_open() {
            work(10_000);
        }
    }
}

fn main() {
    let seconds = match seconds() {
        Ok(seconds) => seconds,
        Err(usage) => {
            eprintln!("{usage}");
            std::process::exit(2);
        }
    };
    match ft_user::init() {
        Ok(status) => println!("demo: {} trace sites, {} enabled", status.sites, status.enabled),
        Err(error) => eprintln!("demo: runs untraced: {error}"),
    }
    let market = &MARKET;
    let gaps = thread::scope(|scope| {
        for trader in 0..TRADERS {
            spawn(scope, format!("trader-{trader}"), move || market.trade(trader));
        }
        spawn(scope, "matcher", || market.match_orders());
        spawn(scope, "auditor", || market.audit());
        spawn(scope, "rival", || market.interrupt());
        spawn(scope, "burner", || market.burn());
        let poller = spawn(scope, "poller", || market.poll());
        thread::sleep(Duration::from_secs_f64(seconds));
        market.over.store(true, Relaxed);
        // Under the lock, so that the matcher either sees the end or is already waiting.
        drop(market.queue.lock());
        market.arrived.notify_all();
        poller.join().unwrap()
    });
    println!(
        "demo: {} orders placed, {} settled in {seconds} s; the polling thread saw {gaps} gaps",
        market.orders.load(Relaxed),
        market.settled.load(Relaxed),
    );
}

fn seconds() -> Result<f64, &'static str> {
    const USAGE: &str = "usage: demo [--seconds N], N from 0.1 to 3600";
    let mut args = std::env::args().skip(1);
    match (args.next().as_deref(), args.next(), args.next()) {
        (None, ..) => Ok(8.0),
        (Some("--seconds"), Some(n), None) => {
            n.parse().ok().filter(|n| (0.1..=3600.0).contains(n)).ok_or(USAGE)
        }
        _ => Err(USAGE),
    }
}

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    name: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> thread::ScopedJoinHandle<'scope, T> {
    thread::Builder::new().name(name.into()).spawn_scoped(scope, work).expect("a thread")
}

/// Some arithmetic, about a nanosecond for each of `steps`.
fn work(steps: u64) {
    for step in 0..steps {
        black_box(step);
    }
}

/// Numbers that only look random (xorshift, Marsaglia 2003).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Real-time scheduling for this thread; without the right to it, it stays as it is.
fn schedule_fifo() -> bool {
    let parameters = libc::sched_param { sched_priority: 10 };
    // SAFETY: `parameters` is valid; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) == 0 }
}

fn pin_to_last_cpu() {
    // SAFETY: a set of CPUs is plain bits; both calls get its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of_val(&set), &mut set) != 0 {
            return;
        }
        let allowed = |&cpu: &usize| libc::CPU_ISSET(cpu, &set);
        if let Some(last) = (0..libc::CPU_SETSIZE as usize).rev().find(allowed) {
            libc::CPU_ZERO(&mut set);
            libc::CPU_SET(last, &mut set);
            libc::sched_setaffinity(0, size_of_val(&set), &set);
        }
    }
}
