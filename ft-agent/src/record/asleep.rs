//! Threads of `-p` that sleep throughout. The kernel has no record of them, and a program that hangs is recorded to learn just that.
//!
//! What a thread sleeps in is in `/proc/PID/task/TID/syscall` (proc_pid_syscall(5)). Of a mutex of glibc the owner stands behind the word of the
//! futex. It is believed as the BPF program believes it: if the word says *locked, with waiters*, and the owner is another thread of the process.
//!
//! Both are read only where the page is there, and is the process's own ([`is_there`]): another process can serve a page that is not there, and
//! who waits for that one cannot even be killed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use ft_trace::tables::syscall_name;
use ft_user::layout::PAGE;

use crate::collect::discover;

/// Threads that are looked at, of all processes.
///
/// Limit: further ones are not named in that warning; no table depends on it.
/// Shown by: none: no figure depends on it.
const MAX_SLEEPERS: usize = 4096;

/// Numbers and words of a futex (futex(2), linux/futex.h).
const FUTEX: u64 = 202;
const FUTEX_COMMAND: u64 = 0x7f;
const FUTEX_WAITS: [u64; 2] = [0, 9];
const LOCKED_WITH_WAITERS: u32 = 2;

/// From a mutex's word to its owner (`struct __pthread_mutex_s` of glibc on x86-64).
const OWNER: u64 = 8;

/// Flags of a page in `/proc/PID/pagemap` (proc_pid_pagemap(5)).
const PAGE_IS_PRESENT: u64 = 1 << 63;
const PAGE_IS_OF_A_FILE: u64 = 1 << 61;

/// Stacks of 64-bit programs lie above; programs of 32 bits number their calls otherwise.
const ADDRESSES_OF_32_BITS: u64 = 1 << 32;

/// The threads of some processes, as they were when the recording began.
#[derive(Default)]
pub(super) struct Asleep(Vec<Seen>);

struct Seen {
    pid: i32,
    tid: i32,
    state: State,
}

/// What changes when a thread runs: how often it gave up its CPU, and had to. When it began is not asked, since a process can have
/// others wait for that: another thread that gets its number has been on a CPU as well, so often by chance alone.
#[derive(Debug, PartialEq, Eq)]
struct State {
    switches: Vec<u64>,
}

/// A thread that slept from the begin of the recording to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sleeper {
    /// Its process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// Its name.
    pub name: String,
    /// The system call in which it sleeps; `None` if it is in none, or stopped, or cannot be told.
    pub call: Option<String>,
    /// The thread that holds the mutex for which it waits, if it waits for one of glibc's.
    pub holder: Option<i32>,
}

impl Asleep {
    pub(super) fn begin(processes: &[i32]) -> Asleep {
        let threads = processes
            .iter()
            .flat_map(|&pid| discover::threads(pid).into_iter().map(move |tid| (pid, tid)));
        let seen = |(pid, tid)| Some(Seen { pid, tid, state: State::of(pid, tid)? });
        Asleep(threads.take(MAX_SLEEPERS).filter_map(seen).collect())
    }

    /// Those that have not run since, those behind a holder first. Where any thread ran, others that sleep without a holder are none: servers
    /// have many.
    pub(super) fn end(self) -> Vec<Sleeper> {
        let all = self.0.len();
        let slept = |seen: &Seen| State::of(seen.pid, seen.tid).as_ref() == Some(&seen.state);
        let mut found: Vec<Sleeper> = self
            .0
            .into_iter()
            .filter(slept)
            .filter_map(|seen| Sleeper::of(seen.pid, seen.tid))
            .collect();
        if found.len() < all {
            found.retain(|sleeper| sleeper.holder.is_some());
        }
        found.sort_by_key(|sleeper| (sleeper.holder.is_none(), sleeper.pid, sleeper.tid));
        found
    }
}

impl State {
    fn of(pid: i32, tid: i32) -> Option<State> {
        let status = discover::read(&format!("/proc/{pid}/task/{tid}/status"));
        let switches = status.lines().filter(|line| line.contains("ctxt_switches:"));
        let switches = switches.filter_map(|line| line.rsplit('\t').next()?.parse().ok());
        let switches: Vec<u64> = switches.collect();
        (!switches.is_empty()).then_some(State { switches })
    }
}

impl Sleeper {
    fn of(pid: i32, tid: i32) -> Option<Sleeper> {
        let name = discover::comm(pid, tid)?;
        // For this a process can have us wait as long as it likes.
        let said = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).ok();
        let Some(call) = said.and_then(|said| Call::parse(&said)) else {
            return Some(Sleeper { pid, tid, name, call: None, holder: None });
        };
        let holder = call.futex().and_then(|address| owner(pid, address));
        let threads = || discover::threads(pid);
        let holder = holder.filter(|holder| *holder != tid && threads().contains(holder));
        let call = u32::try_from(call.number).ok().map(syscall_name);
        Some(Sleeper { pid, tid, name, call, holder })
    }
}

/// A call in which a thread is.
#[derive(Debug, PartialEq, Eq)]
struct Call {
    number: u64,
    arguments: [u64; 2],
}

impl Call {
    /// Reads `NUMBER SIX-ARGUMENTS SP PC`; `None` for `running`, for no call, and for programs of 32 bits.
    fn parse(text: &str) -> Option<Call> {
        let (number, rest) = text.trim().split_once(' ')?;
        let hexadecimal = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
        let words: Vec<u64> = rest.split(' ').map_while(hexadecimal).collect();
        let [first, second, _, _, _, _, sp, _] = words[..] else { return None };
        (sp >= ADDRESSES_OF_32_BITS)
            .then_some(Call { number: number.parse().ok()?, arguments: [first, second] })
    }

    /// Where it waits, if it does at a futex.
    fn futex(&self) -> Option<u64> {
        let [address, operation] = self.arguments;
        let waits = self.number == FUTEX && FUTEX_WAITS.contains(&(operation & FUTEX_COMMAND));
        waits.then_some(address)
    }
}

/// The thread that a mutex of glibc at this address names, in a process that has our numbers of threads.
fn owner(pid: i32, address: u64) -> Option<i32> {
    if discover::inner(&discover::read(&format!("/proc/{pid}/status"))).is_some() {
        return None;
    }
    if word(pid, address)? != LOCKED_WITH_WAITERS {
        return None;
    }
    i32::try_from(word(pid, address.checked_add(OWNER)?)?).ok().filter(|owner| *owner > 0)
}

/// The page of an address is memory of the process alone, and no access to it waits: neither for a file, which may lie on a file system that a
/// program serves, nor for a program that brings missing pages (userfaultfd(2)).
fn is_there(pid: i32, address: u64) -> bool {
    let mut entry = [0u8; 8];
    let read = File::open(format!("/proc/{pid}/pagemap"))
        .and_then(|pages| pages.read_exact_at(&mut entry, address / PAGE * 8));
    let flags = u64::from_ne_bytes(entry) & (PAGE_IS_PRESENT | PAGE_IS_OF_A_FILE);
    read.is_ok() && flags == PAGE_IS_PRESENT
}

fn word(pid: i32, address: u64) -> Option<u32> {
    if !is_there(pid, address) {
        return None;
    }
    let mut bytes = [0u8; 4];
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes.len() };
    // SAFETY: the kernel writes at most the four bytes of `bytes`; what it reads is memory of `pid`, or nothing.
    let read = unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) };
    (read == 4).then(|| u32::from_ne_bytes(bytes))
}

/// What a notice says of them, with the first `shown` by name.
pub(super) fn said(sleepers: &[Sleeper], shown: usize) -> String {
    let names: BTreeMap<i32, &str> = sleepers.iter().map(|s| (s.tid, s.name.as_str())).collect();
    let one = |sleeper: &Sleeper| {
        let name = sleeper.name.escape_debug();
        let call = sleeper.call.as_deref().map(|call| format!(" in {call}")).unwrap_or_default();
        let holder = sleeper.holder.map(|holder| match names.get(&holder) {
            Some(name) => format!(", for a mutex of {holder} '{}'", name.escape_debug()),
            None => format!(", for a mutex of {holder}"),
        });
        format!("{} '{name}'{call}{}", sleeper.tid, holder.unwrap_or_default())
    };
    let list: Vec<String> = sleepers.iter().take(shown).map(one).collect();
    let more = match sleepers.len().saturating_sub(shown) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let circle = match circle(sleepers) {
        Some(threads) => {
            let threads: Vec<String> = threads.iter().map(ToString::to_string).collect();
            format!(". They wait for each other (deadlock): {}", threads.join(", "))
        }
        None => String::new(),
    };
    let (threads, them) =
        if sleepers.len() == 1 { ("one thread", "it") } else { ("threads", "them") };
    let count = if sleepers.len() == 1 { String::new() } else { format!("{} ", sleepers.len()) };
    format!(
        "{count}{threads} slept throughout, so the tables have nothing of {them}: {}{more}{circle}",
        list.join("; ")
    )
}

/// Threads of which each waits for a mutex of the next, and the last for one of the first.
fn circle(sleepers: &[Sleeper]) -> Option<BTreeSet<i32>> {
    let holders: BTreeMap<i32, i32> =
        sleepers.iter().filter_map(|sleeper| Some((sleeper.tid, sleeper.holder?))).collect();
    let next = |tid: &i32| holders.get(tid).copied();
    holders.keys().find_map(|&first| {
        let way: Vec<i32> = std::iter::successors(next(&first), next).take(holders.len()).collect();
        let length = 1 + way.iter().position(|tid| *tid == first)?;
        Some(way.into_iter().take(length).collect())
    })
}

#[cfg(test)]
mod tests {
    use std::ptr::addr_of_mut;
    use std::sync::Barrier;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn calls_are_read_as_the_kernel_writes_them() {
        let said = "202 0x7f00 0x189 0x2 0x0 0x0 0xffffffff 0x7ffc0000 0x7f8e0000\n";
        let said = said.replace("0x7ffc0000", "0x7ffc00000000");
        let call = Call { number: 202, arguments: [0x7f00, 0x189] };
        assert_eq!(Call::parse(&said), Some(call));
        assert_eq!(
            Call::parse(&said).unwrap().futex(),
            Some(0x7f00),
            "private, by the real-time clock"
        );
        assert_eq!(Call::parse(&said.replace("0x189", "0x81")).unwrap().futex(), None, "it wakes");
        let short = said.replace("0x7ffc00000000", "0xffd00000");
        for other in ["running\n", "-1 0x7ffc00000000 0x7f8e0000\n", "", &short] {
            assert_eq!(Call::parse(other), None, "{other}");
        }
    }

    /// Who reads such a page may wait for another process.
    #[test]
    fn only_what_is_there_and_the_processs_own_is_read() {
        use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};
        let file = tempfile::tempfile().unwrap();
        file.set_len(PAGE).unwrap();
        let (page, none) = (PAGE as usize, std::ptr::null_mut());
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: new pages at addresses of the kernel's choice, which only this test knows.
        let [own, private, shared] = unsafe {
            [
                mmap_anonymous(none, page, writable, MapFlags::PRIVATE),
                mmap(none, page, writable, MapFlags::PRIVATE, &file, 0),
                mmap(none, page, writable, MapFlags::SHARED, &file, 0),
            ]
        }
        .map(|at| at.unwrap().cast::<u32>());
        let pid = std::process::id().cast_signed();
        let read = || [own, private, shared].map(|at| word(pid, at as u64));
        assert_eq!(read(), [None; 3]);
        // SAFETY: pages that can be read and written.
        unsafe {
            let _ = private.read_volatile();
            assert_eq!(read(), [None; 3], "it is the file's");
            [own, private, shared].iter().for_each(|at| at.write_volatile(7));
        }
        assert_eq!(read(), [Some(7), Some(7), None]);
    }

    fn sleeper(tid: i32, holder: Option<i32>) -> Sleeper {
        Sleeper { pid: 1, tid, name: format!("t\u{1b}{tid}"), call: Some("futex".into()), holder }
    }

    #[test]
    fn threads_that_wait_for_each_other_are_named() {
        let chain = [sleeper(4, Some(2)), sleeper(2, Some(3)), sleeper(3, None)];
        assert_eq!(circle(&chain), None);
        let ring = [sleeper(4, Some(2)), sleeper(2, Some(3)), sleeper(3, Some(2))];
        assert_eq!(circle(&ring), Some(BTreeSet::from([2, 3])));
        let text = said(&ring, 2);
        let expected = "3 threads slept throughout, so the tables have nothing of them: 4 't\\u{1b}4' in futex, for a mutex of \
                        2 't\\u{1b}2'; 2 't\\u{1b}2' in futex, for a mutex of 3 't\\u{1b}3'; and 1 more. They wait for each \
                        other (deadlock): 2, 3";
        assert_eq!(text, expected);
        assert!(
            said(&chain[2..], 8)
                .starts_with("one thread slept throughout, so the tables have nothing of it: 3 ")
        );
    }

    /// Two threads of this process, for ever, and one that runs.
    #[test]
    fn a_deadlock_is_seen_from_outside() {
        static mut LOCKS: [libc::pthread_mutex_t; 2] = [libc::PTHREAD_MUTEX_INITIALIZER; 2];
        static BOTH: Barrier = Barrier::new(2);
        fn lock(at: usize) {
            // SAFETY: an initialised mutex, which is never moved.
            unsafe {
                libc::pthread_mutex_lock(
                    addr_of_mut!(LOCKS).cast::<libc::pthread_mutex_t>().add(at),
                )
            };
        }
        let take = |own: usize| {
            let work = move || {
                lock(own);
                BOTH.wait();
                lock(1 - own);
            };
            std::thread::Builder::new().name(format!("dead-{own}")).spawn(work).unwrap();
        };
        [0, 1].into_iter().for_each(take);
        let pid = std::process::id().cast_signed();
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let asleep = Asleep::begin(&[pid]);
            // This thread goes to sleep, so it is none of them.
            std::thread::sleep(Duration::from_millis(20));
            let found = asleep.end();
            let dead: Vec<&Sleeper> =
                found.iter().filter(|s| s.name.starts_with("dead-")).collect();
            if let [first, second] = dead[..]
                && (first.holder, second.holder) == (Some(second.tid), Some(first.tid))
            {
                assert_eq!(first.call.as_deref(), Some("futex"));
                assert_eq!(circle(&found), Some(BTreeSet::from([first.tid, second.tid])));
                let own = rustix::thread::gettid().as_raw_nonzero().get();
                assert!(found.iter().all(|sleeper| sleeper.tid != own));
                return;
            }
            assert!(Instant::now() < until, "{found:?}");
        }
    }
}
