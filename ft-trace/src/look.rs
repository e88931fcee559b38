//! A look at a process that can be given up.
//!
//! What the kernel says of a process it says under locks, of which a process can hold some as long as it likes: that of its address space
//! (`maps`, `map_files`, `cmdline`, `environ`, `mem` in `/proc/PID`) while a file system answers that a process of its user serves, and one
//! that comes before it while it executes a program (`exec_update_lock`, also of `syscall`, and newer kernels take it for `stat` and the links). Who waits for such
//! a lock ends by SIGKILL alone. So whoever must not wait has a thread look, and leaves it behind when it is late.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

use rustix::thread::gettid;

use crate::owners::owner_of;

/// How long a look may take.
///
/// Limit: a process that does not answer is not attached to, the functions of its compiler have no names, and no call is known in which
/// its threads sleep.
/// Shown by: `who_does_not_answer_is_not_asked_again`.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long one of [`soon`] may take: what a process that executes a program cannot answer for a moment is asked of many.
///
/// Limit: it is not known when a process has begun: then its number alone says which it is, or the descriptor that holds it.
/// Shown by: `a_look_that_must_be_soon_is_given_up`.
const SHORT_PATIENCE: Duration = Duration::from_millis(100);

/// As long is waited for a look that would go on if it had a CPU.
///
/// Limit: as `PATIENCE`.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Threads that have ended a look and are kept for the next one.
///
/// Limit: nothing: a look has a new thread where there is none.
/// Shown by: `a_thread_that_has_looked_looks_again`.
const MAX_IDLE: usize = 4;

/// Processes of one user that may leave a look without an answer; its others are not looked at then. Each has a thread that waits.
///
/// Limit: as `PATIENCE`.
/// Shown by: `who_does_not_answer_often_is_not_asked_at_all`.
const MAX_UNANSWERED: usize = 4;

/// How long looks at the processes of one user may have waited for locks, in all; none is looked at then until some of it is forgiven.
///
/// Limit: as `PATIENCE`.
/// Shown by: `who_answers_late_often_is_not_asked_for_a_while`.
const MAX_WAITED: Duration = Duration::from_secs(8);

/// In such a part of the time that passes, what looks have waited is forgiven.
const FORGIVEN: u32 = 50;

/// What looks at the processes of a user have come to.
#[derive(Debug, Default)]
struct Looks {
    /// Processes that have not answered yet, and the look that waits.
    unanswered: BTreeMap<i32, Weak<AtomicI32>>,
    waited: Duration,
    /// When the last one ended.
    ended: Option<Instant>,
}

/// By user.
type Users = BTreeMap<Option<u32>, Looks>;

static USERS: Mutex<Users> = Mutex::new(Users::new());

/// A look, for a thread.
type Job = Box<dyn FnOnce() + Send>;

/// Threads that wait for a look.
static IDLE: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());

impl Looks {
    fn may_ask(&mut self, pid: i32, most: Duration) -> bool {
        // Who was late and has answered since has executed a program, say. What was waited for it is not forgotten.
        self.unanswered.retain(|_, look| look.strong_count() > 0);
        let is_known =
            self.unanswered.len() < MAX_UNANSWERED && !self.unanswered.contains_key(&pid);
        let passed = self.ended.map_or(Duration::ZERO, |ended| ended.elapsed());
        is_known && self.waited.saturating_sub(passed / FORGIVEN) < most
    }

    fn add(&mut self, waited: Duration) {
        let passed =
            self.ended.replace(Instant::now()).map_or(Duration::ZERO, |ended| ended.elapsed());
        self.waited = self.waited.saturating_sub(passed / FORGIVEN) + waited;
    }
}

/// What a look at a process finds; `None` if it takes too long, or another one has.
pub fn at<T: Send + 'static>(pid: i32, look: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    at_within([PATIENCE, MAX_WAITED], &USERS, pid, user(pid).map(owner_of), look)
}

/// The same where the answer can be done without, and nothing may wait for it.
pub fn soon<T: Send + 'static>(pid: i32, look: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    at_within([SHORT_PATIENCE, MAX_WAITED], &USERS, pid, user(pid).map(owner_of), look)
}

fn at_within<T: Send + 'static>(
    [patience, most]: [Duration; 2],
    users: &Mutex<Users>,
    pid: i32,
    user: Option<u32>,
    look: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let users = || users.lock().unwrap_or_else(PoisonError::into_inner);
    if !users().entry(user).or_default().may_ask(pid, most) {
        return None;
    }
    let (thread, (sender, found)) = (Arc::new(AtomicI32::new(0)), channel());
    let number = thread.clone();
    let job = move || {
        number.store(gettid().as_raw_nonzero().get(), Relaxed);
        let (began, ran) = (Instant::now(), on_cpu());
        let found = look();
        let waited = began.elapsed().saturating_sub(on_cpu().saturating_sub(ran));
        // Nobody may listen any more.
        let _ = sender.send((found, waited));
    };
    give(Box::new(job))?;
    let began = Instant::now();
    loop {
        match found.recv_timeout(patience) {
            Ok((found, waited)) => {
                users().entry(user).or_default().add(waited);
                return Some(found);
            }
            Err(RecvTimeoutError::Disconnected) => return None,
            // Who converts in the background may have no CPU for long.
            Err(RecvTimeoutError::Timeout)
                if began.elapsed() < MAX_WAIT && is_runnable(thread.load(Relaxed)) => {}
            Err(RecvTimeoutError::Timeout) => break,
        }
    }
    let mut users = users();
    let looks = users.entry(user).or_default();
    looks.add(patience);
    looks.unanswered.insert(pid, Arc::downgrade(&thread));
    None
}

/// Has a thread look, one that waits for that or a new one; `None` if the kernel has none.
fn give(mut job: Job) -> Option<()> {
    let idle = || IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    while let Some(waiting) = { idle().pop() } {
        match waiting.send(job) {
            Ok(()) => return Some(()),
            Err(unsent) => job = unsent.0,
        }
    }
    let looks = Builder::new().name("ft-ask".into()).spawn(move || {
        block_signals();
        job();
        let (next, jobs) = channel::<Job>();
        loop {
            {
                let mut idle = idle();
                if idle.len() >= MAX_IDLE {
                    return;
                }
                idle.push(next.clone());
            }
            let Ok(job) = jobs.recv() else { return };
            job();
        }
    });
    looks.ok().map(drop)
}

/// Whether a thread of ours waits for nothing but a CPU; 0 is one that has not begun.
fn is_runnable(thread: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
    thread == 0 || stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('R'))
}

/// How long the calling thread has run, and waited for a CPU (proc_pid_schedstat(5)).
fn on_cpu() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let numbers =
        text.split_ascii_whitespace().take(2).filter_map(|number| number.parse::<u64>().ok());
    Duration::from_nanos(numbers.sum())
}

/// A thread that is left behind must not be the one that gets a signal for which another one waits.
fn block_signals() {
    // SAFETY: a set is numbers; it is filled before it is read. With these arguments the call does not fail.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}

/// The user who has started a process, if that is known: programs of root that it has called are its own, too (proc_pid_status(5)).
fn user(pid: i32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::thread;

    use super::*;

    const PID: i32 = 1;

    /// A look that does not end before the sender that is returned is dropped.
    fn stuck() -> (Sender<()>, impl FnOnce() + Send + 'static) {
        let (end, until) = channel::<()>();
        (end, move || _ = until.recv())
    }

    fn ask<T: Send + 'static>(
        users: &Mutex<Users>,
        pid: i32,
        user: u32,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        at_within([50, 200].map(Duration::from_millis), users, pid, Some(user), look)
    }

    #[test]
    fn who_does_not_answer_is_not_asked_again() {
        let unanswered = Mutex::default();
        let (_end, look) = stuck();
        assert_eq!(ask(&unanswered, PID, 7, look), None);
        assert_eq!(ask(&unanswered, PID, 7, || panic!("it is not asked")), None::<()>);
        let asked = |pid, user| while ask(&unanswered, pid, user, || ()).is_none() {};
        asked(PID + 1, 7);
        asked(PID, 8);
    }

    #[test]
    fn who_does_not_answer_often_is_not_asked_at_all() {
        let unanswered = Mutex::default();
        let (_ends, looks): (Vec<_>, Vec<_>) = (0..MAX_UNANSWERED).map(|_| stuck()).unzip();
        for (pid, look) in (PID..).zip(looks) {
            assert_eq!(ask(&unanswered, pid, 7, look), None);
        }
        let another = PID + MAX_UNANSWERED as i32;
        assert_eq!(ask(&unanswered, another, 7, || panic!("it is not asked")), None::<()>);
        assert_eq!(unanswered.lock().unwrap()[&Some(7)].unanswered.len(), MAX_UNANSWERED);
    }

    #[test]
    fn who_answers_late_often_is_not_asked_for_a_while() {
        let users = Mutex::default();
        let is_asked = |user| ask(&users, PID, user, || thread::sleep(Duration::from_millis(30)));
        let answers = (0..100).filter(|_| is_asked(7).is_some()).count();
        assert!(answers < 20, "{answers}: their sum is bounded");
        assert_eq!(ask(&users, PID, 7, || panic!("it is not asked")), None::<()>);
        while is_asked(8).is_none() {}
        let mut users = users.lock().unwrap();
        let looks = users.get_mut(&Some(7)).unwrap();
        looks.waited = Duration::from_millis(210);
        looks.unanswered.clear();
        looks.ended = Some(Instant::now() - FORGIVEN * Duration::from_millis(20));
        assert!(looks.may_ask(PID, Duration::from_millis(200)), "some of it is forgiven");
    }

    /// As while it executes a program from a slow disk.
    #[test]
    fn who_answers_in_the_end_is_asked_again() {
        let users = Mutex::default();
        let (end, look) = stuck();
        assert_eq!(ask(&users, PID, 7, look), None);
        drop(end);
        let is_asked = || ask(&users, PID, 7, || ()).is_some();
        while !is_asked() {}
        assert!(users.lock().unwrap()[&Some(7)].waited > Duration::ZERO, "it is not forgotten");
    }

    #[test]
    fn a_look_that_must_be_soon_is_given_up() {
        // No process has this number, so no other test asks it.
        let (end, look) = stuck();
        assert_eq!(soon(-1, look), None);
        drop(end);
        while soon(-1, || ()).is_none() {}
    }

    #[test]
    fn a_thread_that_has_looked_looks_again() {
        let users = Mutex::default();
        let look = || ask(&users, PID, 7, || thread::current().id());
        let mut known = Vec::new();
        // Other tests have looks meanwhile.
        while look().is_none_or(|by| !std::mem::replace(&mut known, vec![by]).contains(&by)) {}
        assert!(IDLE.lock().unwrap().len() <= MAX_IDLE);
    }

    #[test]
    fn what_waits_for_a_cpu_is_not_waited_for() {
        let busy = || {
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(20) {}
            began.elapsed()
        };
        // The whole machine may have stood still.
        assert!((0..100).any(|user| {
            let users = Mutex::default();
            let ran = ask(&users, PID, user, busy);
            ran.is_some_and(|ran| users.lock().unwrap()[&Some(user)].waited < ran / 2)
        }));
    }

    #[test]
    fn a_look_that_ends_is_answered() {
        let own = std::process::id() as i32;
        assert_eq!(at(own, move || fs::metadata(format!("/proc/{own}")).is_ok()), Some(true));
        assert_eq!(user(own), Some(rustix::process::getuid().as_raw()));
        assert_eq!(user(-1), None);
        assert_eq!(at(own, || panic!("in a test")), None::<()>);
        assert_eq!(at(own, || ()), Some(()), "a bug is no reason not to ask");
    }
}
