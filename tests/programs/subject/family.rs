//! A process, a thread of it, a child that it forks, and what it becomes by `exec`. Each says what numbers
//! it has in its own PID namespace, while it holds a lock and sleeps.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use ft_user::sync::Mutex;

/// Long enough for the agent to look at a thread while it lives.
const LIFE: Duration = Duration::from_millis(250);

static HOUSE: Mutex<()> = Mutex::named("house", ());

fn member(role: u64) {
    let _held = HOUSE.lock().expect("not poisoned");
    // SAFETY: takes no pointer.
    let tid = unsafe { libc::gettid() };
    ft_user::event!("family.member", role: u64, pid: u32 = std::process::id(), tid: i32);
    thread::sleep(LIFE);
}

/// Everybody but the last, which takes its place and is [`last`].
pub(crate) fn run() -> ! {
    member(0);
    thread::spawn(|| member(1)).join().expect("it does not panic");
    // SAFETY: there is one thread; the child records, and ends without running destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        member(2);
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: waits for our own child.
    assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
    let error = Command::new("/proc/self/exe").arg("family-last").exec();
    panic!("exec: {error}");
}

/// Starts threads, then forks children, that record one event each and end at once.
pub(crate) fn brief() -> String {
    const CHILDREN: u64 = 50;
    for _ in 0..CHILDREN {
        let thread = thread::spawn(|| {
            // SAFETY: takes no pointer.
            let tid = unsafe { libc::gettid() };
            ft_user::event!("family.brief_thread", tid: i32);
        });
        thread.join().expect("it does not panic");
    }
    for child in 0..CHILDREN {
        // SAFETY: there is one thread; the child records, and ends without running destructors.
        match unsafe { libc::fork() } {
            0 => {
                ft_user::event!("family.brief", child: u64, pid: u32 = std::process::id());
                // SAFETY: ends the process at once.
                unsafe { libc::_exit(0) };
            }
            // SAFETY: waits for our own child.
            pid => assert_eq!(unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) }, pid),
        }
    }
    format!("{{\"children\":{CHILDREN}}}")
}

/// Prints how many descriptors of memfds of the tracer this process has: none, since an agent has the only one.
pub(crate) fn last() -> String {
    member(3);
    let open = fs::read_dir("/proc/self/fd").expect("descriptors").flatten();
    let links = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    let memfds = links.filter(|link| link.to_string_lossy().starts_with("/memfd:feather-trace"));
    format!("{{\"memfds\":{}}}", memfds.count())
}
