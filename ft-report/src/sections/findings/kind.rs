//! What a thread waits for, as engineers call it: by the system call in which it sleeps, and by the functions that led there.

use ft_trace::tables::{Blame, FileKind, Part, Withheld};
use serde::Serialize;

use super::places::is_library;
use super::runtime::Runtime;
use crate::code::Frame;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A lock that one thread holds at a time.
    Mutex,
    /// A lock with readers and writers.
    RwLock,
    /// A lock of the allocator.
    Arena,
    /// The lock of an interpreter.
    Interpreter,
    /// A lock of a file.
    FileLock,
    /// The lock of the address space.
    AddressSpace,
    /// The monitor of an object of Java.
    Monitor,
    /// A lock of a row, a table or the like of PostgreSQL.
    Database,
    /// A semaphore.
    Semaphore,
    /// A futex that is taken in turns, of which nothing more is known.
    Turns,
    /// The last to come.
    Barrier,
    /// Room in a pipe or a socket.
    Room,
    /// Data of a file.
    File,
    /// That data is on its device.
    Sync,
    /// A page.
    Fault,
    /// A CPU.
    Cpu,
    /// A CPU, which was withheld from it.
    Throttled,
    /// The end of an interrupt.
    Interrupt,
    /// A timer that came late.
    Late,
    /// A condition.
    Condition,
    /// What another thread computes.
    Future,
    /// A goroutine that can run.
    Goroutines,
    /// A futex of which nothing more is known.
    Futex,
    /// Data from a pipe, a socket, a counter.
    Data,
    /// Another call of the kernel.
    Call,
    /// Any of several descriptors.
    Poll,
    /// Something that one of many takes, who are all woken.
    Herd,
    /// The end of a child.
    Child,
    /// The end of a thread.
    End,
    /// A time.
    Sleep,
    /// Not known.
    Unknown,
}

/// Whether time is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The thread had work to do.
    Lost,
    /// It waited for what another one was to give: that may be its work, or what it needed for it.
    Handover,
    /// It had nothing to do.
    Idle,
}

impl Kind {
    /// What a row is of; `chain` is where its thread left the CPU.
    pub(super) fn of(row: &Blame, chain: &[&Frame]) -> Kind {
        match row.withheld {
            Some(Withheld::Quota | Withheld::Share | Withheld::Budget) => return Kind::Throttled,
            Some(Withheld::Late) => return Kind::Late,
            Some(Withheld::Period) => return Kind::Sleep,
            Some(Withheld::Way) | None => {}
        }
        match row.part {
            Part::Preempted => Kind::Cpu,
            Part::Dispatch if row.call.is_none() && row.stack.is_none() => Kind::Cpu,
            Part::Hardirq | Part::Softirq | Part::Vector => Kind::Interrupt,
            Part::Unexplained => Kind::Unknown,
            _ => asleep(row, chain),
        }
    }

    /// Whether time that goes to it is lost.
    pub(super) fn class(self) -> Class {
        use Kind::*;
        match self {
            Mutex | RwLock | Arena | Interpreter | Monitor | Database | FileLock | AddressSpace
            | Barrier | Turns | Room | File | Sync | Fault | Cpu | Throttled | Interrupt | Late
            | Herd => Class::Lost,
            Semaphore | Condition | Future | Futex | Data | Call | Child => Class::Handover,
            // Of a goroutine that waits nothing is seen: a thread of the runtime that sleeps has none to run.
            Poll | End | Sleep | Goroutines | Unknown => Class::Idle,
        }
    }

    /// Somebody holds it.
    pub(super) fn is_held(self) -> bool {
        use Kind::*;
        matches!(
            self,
            Mutex | RwLock | Arena | Interpreter | Monitor | Database | FileLock | AddressSpace
        )
    }

    /// What of a futex's address is that of the whole thing, if it has one: a reader-writer lock has several futexes. The lock of an
    /// interpreter is one, wherever that waits.
    pub(super) fn object(self, futex: i64) -> Option<i64> {
        match self {
            // Of a monitor, each thread has a condition of its own.
            Kind::Interpreter | Kind::Monitor => None,
            Kind::RwLock => Some(futex & !15),
            Kind::Semaphore | Kind::Turns => Some(futex),
            kind => Some(futex).filter(|_| kind.is_held()),
        }
    }

    /// `waiting for …`
    pub(super) fn phrase(self) -> &'static str {
        match self {
            Kind::Mutex => "waiting for a mutex",
            Kind::RwLock => "waiting for a reader-writer lock",
            Kind::Arena => "waiting for the allocator's lock (malloc arena)",
            Kind::Interpreter => "waiting for the interpreter lock (GIL)",
            Kind::Monitor => "waiting for the monitor of an object",
            Kind::Database => "waiting for a lock of the database",
            Kind::Turns => "waiting for a semaphore, or a lock of its own kind",
            Kind::Future => "waiting for a future",
            Kind::Goroutines => "waiting for goroutines that can run",
            Kind::FileLock => "waiting for a file lock",
            Kind::AddressSpace => "waiting for the address space (mmap_lock)",
            Kind::Semaphore => "waiting for a semaphore",
            Kind::Barrier => "waiting at a barrier",
            Kind::Room => "waiting for room in a",
            Kind::File => "waiting for a file in",
            Kind::Sync => "waiting for",
            Kind::Fault => "in page faults",
            Kind::Cpu => "waiting for a CPU",
            Kind::Throttled => "throttled",
            Kind::Interrupt => "interrupted",
            Kind::Late => "woken late by its timer",
            Kind::Condition => "waiting for a condition variable",
            Kind::Futex => "waiting at a futex",
            Kind::Data => "waiting for data from a",
            Kind::Call => "asleep in",
            Kind::Poll => "waiting for any of several descriptors",
            Kind::Herd => "woken for nothing",
            Kind::Child => "waiting for a child to end",
            Kind::End => "waiting for a thread to end",
            Kind::Sleep => "asleep by its own choice",
            Kind::Unknown => "unknown",
        }
    }

    /// What a lock with a name is, of which that is the address: `mutex`.
    pub(super) fn noun(self) -> Option<&'static str> {
        match self {
            Kind::Mutex => Some("mutex"),
            Kind::RwLock => Some("reader-writer lock"),
            Kind::Semaphore => Some("semaphore"),
            _ => None,
        }
    }
}

/// Functions of C and Rust libraries, by a part of their names, and what who is in them waits for; the first that fits.
const FUNCTIONS: &[(&str, Kind)] = &[
    ("take_gil", Kind::Interpreter),
    ("drop_gil", Kind::Interpreter),
    // Of Java's virtual machine, all of which wait at a condition of the C library.
    ("JavaThread::sleep", Kind::Sleep),
    ("ObjectMonitor::wait", Kind::Condition),
    ("ObjectMonitor::", Kind::Monitor),
    ("ObjectSynchronizer::enter", Kind::Monitor),
    // Of Go's.
    ("runtime.notesleep", Kind::Goroutines),
    ("runtime.notetsleep", Kind::Goroutines),
    ("runtime.futexsleep", Kind::Goroutines),
    ("__atomic_futex", Kind::Future),
    ("_State_baseV2", Kind::Future),
    ("_int_malloc", Kind::Arena),
    ("_int_free", Kind::Arena),
    ("arena_get", Kind::Arena),
    ("pthread_rwlock", Kind::RwLock),
    ("RwLock", Kind::RwLock),
    ("rwlock", Kind::RwLock),
    ("pthread_cond", Kind::Condition),
    ("Condvar", Kind::Condition),
    ("condition_variable", Kind::Condition),
    ("sem_wait", Kind::Semaphore),
    ("sem_clockwait", Kind::Semaphore),
    ("sem_timedwait", Kind::Semaphore),
    ("new_sem_wait", Kind::Semaphore),
    ("barrier", Kind::Barrier),
    ("Barrier", Kind::Barrier),
    ("clockjoin", Kind::End),
    ("pthread_join", Kind::End),
    ("timedjoin", Kind::End),
    ("JoinHandle", Kind::End),
    ("pthread_mutex", Kind::Mutex),
    ("lll_lock", Kind::Mutex),
    ("lock_contended", Kind::Mutex),
    ("Mutex", Kind::Mutex),
    ("lock_slow", Kind::Mutex),
];

/// Functions that are the allocator's where a lock of one is waited for. Each has a second name in the C library, `__libc_malloc`.
const ALLOCATOR: &[&str] = &[
    "malloc",
    "free",
    "cfree",
    "calloc",
    "realloc",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
];

fn allocates(frame: &Frame) -> bool {
    ALLOCATOR.contains(&frame.label.strip_prefix("__libc_").unwrap_or(&frame.label))
}

fn asleep(row: &Blame, chain: &[&Frame]) -> Kind {
    let in_kernel = |name: &str| chain.iter().any(|f| f.kernel && f.label.contains(name));
    if in_kernel("rwsem_down") && (in_kernel("mmap") || in_kernel("lock_mm") || in_kernel("fault"))
        || in_kernel("mmap_write_lock")
        || in_kernel("mmap_read_lock")
    {
        return Kind::AddressSpace;
    }
    let Some(call) = row.call.as_deref() else {
        return if row.part == Part::Blocked { Kind::Fault } else { Kind::Cpu };
    };
    let stream = matches!(row.file, Some(FileKind::Pipe | FileKind::Socket | FileKind::Eventfd));
    match call {
        "futex" | "futex_wait" | "futex_waitv" => futex(row, chain),
        "flock" | "fcntl" => Kind::FileLock,
        "semop" | "semtimedop" => Kind::Semaphore,
        "fsync" | "fdatasync" | "sync_file_range" | "msync" | "syncfs" | "sync" => Kind::Sync,
        "mmap" | "munmap" | "mprotect" | "brk" | "mremap" | "madvise" => Kind::AddressSpace,
        "write" | "pwrite64" | "writev" | "sendto" | "sendmsg" | "sendmmsg" | "splice"
        | "vmsplice" | "sendfile"
            if stream =>
        {
            Kind::Room
        }
        "read" | "readv" | "recvfrom" | "recvmsg" | "recvmmsg" if stream => Kind::Data,
        "read" | "readv" if row.file == Some(FileKind::Timerfd) => Kind::Sleep,
        "read" | "readv" if row.file == Some(FileKind::Character) => Kind::Poll,
        "read" | "readv" | "pread64" | "preadv" | "write" | "writev" | "pwrite64" | "pwritev"
        | "open" | "openat" | "rename" | "unlink" | "getdents64" | "copy_file_range"
        | "fallocate" | "ftruncate" => Kind::File,
        "accept" | "accept4" | "io_uring_enter" | "rt_sigtimedwait" | "pause" | "rt_sigsuspend" => {
            Kind::Poll
        }
        // Whoever has the lock sends a signal, which ends the wait for one of several descriptors.
        call if is_poll(call) && chain.iter().any(|f| &*f.label == "ProcSleep") => Kind::Database,
        call if is_poll(call) => Kind::Poll,
        "nanosleep" | "clock_nanosleep" => Kind::Sleep,
        "wait4" | "waitid" | "vfork" => Kind::Child,
        "exit" | "exit_group" => Kind::End,
        _ => Kind::Call,
    }
}

/// Whether a call waits for any of several descriptors.
pub(super) fn is_poll(call: &str) -> bool {
    matches!(
        call,
        "poll" | "ppoll" | "select" | "pselect6" | "epoll_wait" | "epoll_pwait" | "epoll_pwait2"
    )
}

fn futex(row: &Blame, chain: &[&Frame]) -> Kind {
    if row.join {
        return Kind::End;
    }
    let user = || chain.iter().filter(|frame| !frame.kernel);
    // Only what is near: a lock of a library may be taken by a function of any name.
    let near = || user().take(6);
    let named = FUNCTIONS.iter().find(|(part, _)| near().any(|f| f.label.contains(part)));
    let allocates = near().any(|frame| allocates(frame));
    match named.map(|(_, kind)| *kind) {
        Some(Kind::Mutex) | None if allocates => Kind::Arena,
        Some(Kind::Condition) if is_of_python(chain) => Kind::Interpreter,
        Some(kind) => kind,
        None if row.lock => Kind::Mutex,
        None if row.turns => Kind::Turns,
        None => Kind::Futex,
    }
}

/// Whether CPython itself waits. Its other locks are semaphores on Linux: at a condition it waits for the interpreter lock alone. Most
/// distributions' has no names of its own functions.
fn is_of_python(chain: &[&Frame]) -> bool {
    let mut callers = chain.iter().filter(|frame| !frame.kernel && !is_library(&frame.object));
    callers.next().is_some_and(|frame| Runtime::of(&frame.object) == Some(Runtime::Python))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::findings::tests::row;

    fn frame(label: &str) -> Frame {
        let kernel = label.starts_with("k:");
        let (label, empty) = (label.trim_start_matches("k:").into(), "".into());
        Frame { label, place: empty, object: "".into(), kernel, named: true }
    }

    fn kind(row: &Blame, chain: &str) -> Kind {
        let frames: Vec<Frame> = chain.split_whitespace().map(frame).collect();
        Kind::of(row, &frames.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_futex_is_what_led_to_it() {
        let futex = Blame { call: Some("futex".into()), ..row() };
        for (chain, expected) in [
            ("__lll_lock_wait pthread_mutex_lock work", Kind::Mutex),
            ("__futex_abstimed_wait pthread_cond_wait work", Kind::Condition),
            ("__lll_lock_wait_private malloc churn", Kind::Arena),
            ("__lll_lock_wait_private __libc_malloc churn", Kind::Arena),
            ("__lll_lock_wait_private free churn", Kind::Arena),
            ("pthread_rwlock_wrlock writer", Kind::RwLock),
            ("std::sys::sync::mutex::futex::Mutex::lock_contended handler", Kind::Mutex),
            ("std::sys::sync::condvar::futex::Condvar::wait run", Kind::Condition),
            ("__pthread_clockjoin_ex main", Kind::End),
            ("pthread_cond_timedwait take_gil PyEval_RestoreThread", Kind::Interpreter),
            ("something", Kind::Futex),
            ("pthread_cond_timedwait PlatformEvent::park JavaThread::sleep", Kind::Sleep),
            ("pthread_cond_wait PlatformEvent::park ObjectMonitor::enter", Kind::Monitor),
            ("runtime.futex runtime.futexsleep runtime.notesleep", Kind::Goroutines),
        ] {
            assert_eq!(kind(&futex, chain), expected, "{chain}");
        }
        assert_eq!(kind(&Blame { lock: true, ..futex.clone() }, ""), Kind::Mutex);
        assert_eq!(kind(&Blame { turns: true, ..futex.clone() }, "something"), Kind::Turns);
        assert_eq!(kind(&Blame { join: true, ..futex }, "finish"), Kind::End);
    }

    #[test]
    fn at_a_condition_python_waits_for_its_interpreter_lock() {
        let futex = Blame { call: Some("futex".into()), ..row() };
        let of = |objects: &[&str]| {
            let mut frames: Vec<Frame> = objects.iter().map(|_| frame("f")).collect();
            frames.iter_mut().zip(objects).for_each(|(f, object)| f.object = (*object).into());
            frames[0].label = "pthread_cond_timedwait".into();
            Kind::of(&futex, &frames.iter().collect::<Vec<_>>())
        };
        let (libc, python) = ("/lib/libc.so.6", "/usr/bin/python3.11");
        assert_eq!(of(&[libc, python, "JIT"]), Kind::Interpreter);
        assert_eq!(of(&[libc, "/usr/lib/libpython3.13.so.1.0", python]), Kind::Interpreter);
        assert_eq!(of(&[libc, "/usr/lib/libopenblas.so.0", python]), Kind::Condition);
        assert_eq!(of(&[libc, "/srv/server"]), Kind::Condition);
    }

    #[test]
    fn a_call_is_what_its_descriptor_is() {
        let of = |call: &str, file| Blame { call: Some(call.into()), file, ..row() };
        assert_eq!(kind(&of("write", Some(FileKind::Pipe)), ""), Kind::Room);
        assert_eq!(kind(&of("write", Some(FileKind::File)), ""), Kind::File);
        assert_eq!(kind(&of("read", Some(FileKind::Socket)), ""), Kind::Data);
        assert_eq!(kind(&of("read", Some(FileKind::Timerfd)), ""), Kind::Sleep);
        assert_eq!(kind(&of("flock", Some(FileKind::File)), ""), Kind::FileLock);
        assert_eq!(kind(&of("io_getevents", None), ""), Kind::Call);
        let chain = |inner| format!("epoll_wait WaitLatch {inner} PostgresMain");
        assert_eq!(kind(&of("epoll_wait", None), &chain("ProcSleep LockAcquire")), Kind::Database);
        assert_eq!(kind(&of("epoll_wait", None), &chain("secure_read")), Kind::Poll);
    }

    #[test]
    fn what_is_in_no_call_is_in_a_fault_and_may_wait_for_the_address_space() {
        let none = row();
        assert_eq!(kind(&none, "touch main"), Kind::Fault);
        let chain = "k:rwsem_down_read_slowpath k:lock_mm_and_find_vma k:exc_page_fault touch";
        assert_eq!(kind(&none, chain), Kind::AddressSpace);
    }

    #[test]
    fn what_is_withheld_says_what_it_is() {
        let preempted = Blame { part: Part::Preempted, culprit_tid: Some(0), ..row() };
        for (withheld, expected) in [
            (Withheld::Quota, Kind::Throttled),
            (Withheld::Share, Kind::Throttled),
            (Withheld::Budget, Kind::Throttled),
            (Withheld::Period, Kind::Sleep),
            (Withheld::Late, Kind::Late),
            (Withheld::Way, Kind::Cpu),
        ] {
            let row = Blame { withheld: Some(withheld), ..preempted.clone() };
            assert_eq!(kind(&row, "f"), expected, "{withheld}");
        }
    }
}
