//! Waits at futexes and semaphores whose kind, waker, timeout and end are known, and between which times of the clock they
//! lie. No event of the tracer takes part.

use std::io;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use crate::sched::{gettid, now_ns};

/// A futex that is a variable with a name.
static NAMED_FUTEX: AtomicU32 = AtomicU32::new(0);

/// Another one, to which waiters are moved.
static SECOND_FUTEX: AtomicU32 = AtomicU32::new(0);

/// A lock of the standard library.
static STD_MUTEX: Mutex<u32> = Mutex::new(0);

/// A condition of the standard library.
static STD_CONDITION: Condvar = Condvar::new();

const WAIT: i32 = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
const WAKE: i32 = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;

/// A wait, as the table should have it.
struct Truth {
    tid: i32,
    kind: &'static str,
    end: &'static str,
    address: i64,
    waker: i32,
    call: &'static str,
    timeout_ns: i64,
    owner: i32,
    /// Just outside of the wait.
    around: [i64; 2],
    /// Around the call that woke it; 0 where there was none.
    wakes: [i64; 2],
    /// Since when it slept for sure; 0 where it did not.
    asleep: i64,
}

impl Truth {
    fn json(&self) -> String {
        let Truth { tid, kind, end, address, waker, call, timeout_ns, owner, asleep, .. } = self;
        let ([t0, t1], [w0, w1]) = (self.around, self.wakes);
        format!(
            "{{\"tid\":{tid},\"kind\":\"{kind}\",\"end\":\"{end}\",\"address\":{address},\"waker\":{waker},\
             \"call\":\"{call}\",\"timeout_ns\":{timeout_ns},\"owner\":{owner},\"asleep\":{asleep},\
             \"around\":[{t0},{t1}],\"wakes\":[{w0},{w1}]}}"
        )
    }
}

fn futex(at: &AtomicU32, op: i32, value: u32, timeout: Option<Duration>) -> io::Result<i64> {
    let time = timeout.map(|t| libc::timespec {
        tv_sec: t.as_secs() as i64,
        tv_nsec: i64::from(t.subsec_nanos()),
    });
    let time = time.as_ref().map_or(null_mut(), |t| std::ptr::from_ref(t).cast_mut());
    // SAFETY: futex and time live longer than the call; the kernel checks all else.
    let found = unsafe { libc::syscall(libc::SYS_futex, at, op, value, time, 0, u32::MAX) };
    if found < 0 { Err(io::Error::last_os_error()) } else { Ok(found) }
}

/// In which system call a thread sleeps: one is told of a thread that is off the CPU (`task_current_syscall`,
/// lib/syscall.c), where its state is set before that; `-1` of one that is in none.
fn call_of(tid: i32) -> Option<libc::c_long> {
    let call = std::fs::read_to_string(format!("/proc/self/task/{tid}/syscall")).expect("call");
    let number = call.split_whitespace().next().and_then(|number| number.parse().ok());
    number.filter(|number| *number >= 0)
}

/// Waits until a thread sleeps; returns when that is so for sure.
pub(crate) fn asleep(tid: i32) -> i64 {
    while call_of(tid).is_none() {
        thread::sleep(Duration::from_micros(200));
    }
    now_ns()
}

fn address<T>(of: &T) -> i64 {
    std::ptr::from_ref(of) as i64
}

/// One thread calls `wait`, this one calls `wake` when it sleeps. Both return what they did.
fn pair(wait: impl FnOnce() + Send, wake: impl FnOnce(i32), truth: Truth) -> Truth {
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            tell.send(gettid()).expect("a listener");
            let before = now_ns();
            BEGUN.store(1, SeqCst);
            wait();
            [before, now_ns()]
        });
        let tid = told.recv().expect("a thread");
        while BEGUN.load(SeqCst) == 0 {
            thread::sleep(Duration::from_micros(100));
        }
        let asleep = asleep(tid);
        thread::sleep(Duration::from_millis(1));
        let before = now_ns();
        wake(tid);
        let wakes = [before, now_ns()];
        let around = waiter.join().expect("the waiter");
        BEGUN.store(0, SeqCst);
        Truth { tid, waker: gettid(), around, wakes, asleep, ..truth }
    })
}

/// The waiter has read its clock.
static BEGUN: AtomicI32 = AtomicI32::new(0);

fn expected(kind: &'static str, end: &'static str, call: &'static str, address: i64) -> Truth {
    let (around, wakes) = ([0; 2], [0; 2]);
    Truth {
        tid: 0,
        kind,
        end,
        address,
        waker: 0,
        call,
        timeout_ns: 0,
        owner: 0,
        around,
        wakes,
        asleep: 0,
    }
}

/// A wait of the calling thread that nobody ends.
fn alone(truth: Truth, wait: impl FnOnce()) -> Truth {
    let before = now_ns();
    wait();
    Truth { tid: gettid(), around: [before, now_ns()], ..truth }
}

fn woken() -> Truth {
    let wait = || drop(futex(&NAMED_FUTEX, WAIT, 0, None));
    let wake = |_| assert_eq!(futex(&NAMED_FUTEX, WAKE, 1, None).expect("futex"), 1);
    pair(wait, wake, expected("wait", "woken", "wake", address(&NAMED_FUTEX)))
}

fn timed_out() -> Truth {
    let timeout_ns = 2_000_000;
    let truth = Truth { timeout_ns, ..expected("wait", "timed-out", "", address(&NAMED_FUTEX)) };
    alone(truth, || {
        let found = futex(&NAMED_FUTEX, WAIT, 0, Some(Duration::from_nanos(timeout_ns as u64)));
        assert_eq!(found.expect_err("a timeout").raw_os_error(), Some(libc::ETIMEDOUT));
    })
}

fn changed() -> Truth {
    alone(expected("wait", "changed", "", address(&NAMED_FUTEX)), || {
        let found = futex(&NAMED_FUTEX, WAIT, 7, None);
        assert_eq!(found.expect_err("another value").raw_os_error(), Some(libc::EAGAIN));
    })
}

fn requeued() -> Truth {
    let wait = || drop(futex(&NAMED_FUTEX, WAIT, 0, None));
    let wake = |_| {
        let (from, to) = (address(&NAMED_FUTEX), address(&SECOND_FUTEX));
        let op = libc::FUTEX_REQUEUE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: both are statics.
        assert_eq!(unsafe { libc::syscall(libc::SYS_futex, from, op, 0, 1, to, 0) }, 1);
        assert_eq!(futex(&SECOND_FUTEX, WAKE, 1, None).expect("futex"), 1);
    };
    pair(wait, wake, expected("wait", "woken", "wake", address(&NAMED_FUTEX)))
}

fn inherited() -> Truth {
    static OWNED: AtomicU32 = AtomicU32::new(0);
    let unlock = || futex(&OWNED, libc::FUTEX_UNLOCK_PI | libc::FUTEX_PRIVATE_FLAG, 0, None);
    OWNED.store(gettid() as u32, SeqCst);
    let wait = || {
        futex(&OWNED, libc::FUTEX_LOCK_PI | libc::FUTEX_PRIVATE_FLAG, 0, None).expect("the lock");
        // Nobody else wants it: it is unlocked without the kernel.
        if OWNED.compare_exchange(gettid() as u32, 0, SeqCst, SeqCst).is_err() {
            unlock().expect("unlocked");
        }
    };
    let wake = |_| {
        unlock().expect("unlocked");
    };
    let truth = expected("lock-pi", "woken", "unlock-pi", address(&OWNED));
    pair(wait, wake, Truth { owner: gettid(), ..truth })
}

fn semaphore(set: i32) -> Truth {
    let operate = move |by: i16| {
        let mut operation = libc::sembuf { sem_num: 1, sem_op: by, sem_flg: 0 };
        // SAFETY: one operation, which lives longer than the call.
        assert_eq!(unsafe { libc::semop(set, &mut operation, 1) }, 0);
    };
    let at = 1 << 32 | i64::from(set);
    let truth = expected("semaphore-wait", "woken", "semaphore-post", at);
    pair(move || operate(-1), move |_| operate(1), truth)
}

/// Has the signal interrupt calls: by a handler that does nothing, without `SA_RESTART`.
fn handle() {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, null_mut()), 0);
    }
}

fn signal(tid: i32) {
    // SAFETY: the thread of this process lives.
    unsafe { assert_eq!(libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, libc::SIGUSR1), 0) };
}

/// Waits until a signal comes.
fn wait_for_signal(timeout: Option<Duration>) {
    let found = futex(&NAMED_FUTEX, WAIT, 0, timeout);
    assert_eq!(found.expect_err("a signal").raw_os_error(), Some(libc::EINTR));
}

fn interrupted() -> Truth {
    handle();
    let truth = expected("wait", "interrupted", "", address(&NAMED_FUTEX));
    pair(|| wait_for_signal(None), signal, truth)
}

/// The kernel would go on with this wait behind a signal that had no handler. The thread sleeps next, by another call,
/// with which it does go on, when the process was stopped: that is no wait.
fn interrupted_before_a_sleep() -> Truth {
    handle();
    let long = Duration::from_secs(600);
    let wait = || {
        wait_for_signal(Some(long));
        let time = libc::timespec { tv_sec: 600, tv_nsec: 0 };
        // SAFETY: the time lives longer than the call.
        assert_eq!(unsafe { libc::syscall(libc::SYS_nanosleep, &time, 0) }, -1);
    };
    let wake = |tid| {
        signal(tid);
        while call_of(tid) != Some(libc::SYS_nanosleep) {
            thread::sleep(Duration::from_micros(200));
        }
        while call_of(tid) != Some(libc::SYS_restart_syscall) {
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", "kill -STOP $PPID; sleep 0.01; kill -CONT $PPID; sleep 0.01"]);
            assert!(shell.status().expect("sh").success());
        }
        signal(tid);
    };
    let truth = expected("wait", "interrupted", "", address(&NAMED_FUTEX));
    pair(wait, wake, Truth { timeout_ns: long.as_nanos() as i64, ..truth })
}

/// One thread holds the standard library's mutex, the other wants it.
fn std_mutex() -> Truth {
    let held = STD_MUTEX.lock().expect("the lock");
    let wait = || *STD_MUTEX.lock().expect("the lock") += 1;
    pair(wait, |_| drop(held), expected("wait", "woken", "wake", 0))
}

fn std_condition() -> Truth {
    let wait = || {
        let held = STD_MUTEX.lock().expect("the lock");
        drop(STD_CONDITION.wait_timeout(held, Duration::from_secs(600)).expect("the lock"));
    };
    let truth = expected("wait", "woken", "wake", address(&STD_CONDITION));
    pair(wait, |_| STD_CONDITION.notify_one(), Truth { timeout_ns: 600_000_000_000, ..truth })
}

/// A thread that ends, for which another one waits: no call wakes it.
fn joined() -> Truth {
    static ENDING: AtomicI64 = AtomicI64::new(0);
    let (tell, told) = mpsc::channel();
    let waiter = gettid();
    let ending = thread::spawn(move || {
        tell.send(gettid()).expect("a listener");
        // Until then it may sleep for the message.
        while BEGUN.load(SeqCst) == 0 {
            thread::sleep(Duration::from_micros(100));
        }
        asleep(waiter);
        ENDING.store(now_ns(), SeqCst);
    });
    let waker = told.recv().expect("a thread");
    let before = now_ns();
    BEGUN.store(1, SeqCst);
    ending.join().expect("a thread");
    let around = [before, now_ns()];
    BEGUN.store(0, SeqCst);
    let wakes = [ENDING.load(SeqCst), around[1]];
    Truth { tid: waiter, waker, around, wakes, ..expected("wait", "woken", "", 0) }
}

/// Prints the waits, each so many times, and the thread that still waits in the end.
pub(crate) fn run(rounds: u64) -> String {
    // SAFETY: a set of two semaphores of this process, which is removed below.
    let set = unsafe { libc::semget(libc::IPC_PRIVATE, 2, 0o600) };
    assert!(set >= 0, "semget: {}", io::Error::last_os_error());
    let round = |_| {
        [
            woken(),
            timed_out(),
            changed(),
            requeued(),
            inherited(),
            semaphore(set),
            interrupted(),
            interrupted_before_a_sleep(),
            std_mutex(),
            std_condition(),
            joined(),
        ]
    };
    let waits: Vec<String> = (0..rounds).flat_map(round).map(|truth| truth.json()).collect();
    // SAFETY: it is the set made above.
    unsafe { libc::semctl(set, 0, libc::IPC_RMID) };
    let left = left();
    let named = address(&NAMED_FUTEX);
    format!("{{\"waits\":[{}],\"left\":{left},\"named\":{named}}}", waits.join(","))
}

/// A thread that waits for good.
fn left() -> i32 {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        tell.send(gettid()).expect("a listener");
        BEGUN.store(1, SeqCst);
        drop(futex(&SECOND_FUTEX, WAIT, 0, None));
    });
    let left = told.recv().expect("a thread");
    while BEGUN.load(SeqCst) == 0 {
        thread::sleep(Duration::from_micros(100));
    }
    asleep(left);
    left
}

/// Tells that a thread waits, and stays until it is killed.
pub(crate) fn stays() -> String {
    println!("{{\"left\":{}}}", left());
    loop {
        thread::sleep(Duration::from_secs(600));
    }
}
