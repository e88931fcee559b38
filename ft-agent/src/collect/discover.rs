//! What the kernel says about a process: `/proc` and pidfds.
//!
//! A process is identified by its pidfd, opened before anything is read about it: if the pidfd says
//! afterwards that the process still has its number, what was read belongs to it and not to a later owner.
//! Who registers and has ended before it is looked at has a number and nothing else.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use ft_trace::foreign_file::ForeignFile;
use ft_trace::look;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::maps;
use super::numbers::Numbers;

/// What `/proc` shows for a descriptor of the memfd.
pub(super) const MEMFD_LINK: &str = "/memfd:feather-trace (deleted)";

/// Longest text that is taken from `/proc`, bytes: `status` of a process in 65,536 groups has half of it.
///
/// Limit: as `MAX_REPLY_BYTES` of `socket.rs`.
const MAX_TEXT: usize = 1 << 20;

/// A process that runs, held so that its number cannot be reused unseen.
#[derive(Debug)]
pub struct Identity {
    /// Process id in the agent's PID namespace.
    pub pid: i32,
    /// Effective user: of one that has registered, when it connected.
    pub uid: u32,
    /// Reports the end of the process; `None` when that had come before.
    pub pidfd: Option<OwnedFd>,
    /// Field 22 of `/proc/PID/stat`, clock ticks since boot; 0 where it has not said so.
    pub start_time: u64,
    /// Name.
    pub comm: String,
    /// Executable; empty where it has not said so.
    pub exe: String,
    /// Process id in its own PID namespace, where that is another than ours.
    pub inner: Option<i32>,
    /// Of its threads there.
    numbers: RefCell<Numbers>,
}

impl Identity {
    /// Takes hold of the process `pid`.
    ///
    /// # Errors
    ///
    /// `ESRCH` when there is no such process (any more), `InvalidInput` when `pid` is not positive.
    pub fn of(pid: i32) -> io::Result<Identity> {
        let positive = Some(pid).filter(|&pid| pid > 0);
        let number = positive.and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
        let pidfd = pidfd_open(number, PidfdFlags::empty())?;
        Identity::held(pid, pidfd).ok_or_else(|| rustix::io::Errno::SRCH.into())
    }

    /// The process that `pidfd` holds and whose number is `pid`; `None` when that is another's number now.
    pub fn held(pid: i32, pidfd: OwnedFd) -> Option<Identity> {
        let file = move || fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        // In one look: it may have others wait for each.
        let said = look::soon(pid, move || (start_time_in_proc(pid), file()));
        let (start_time, exe) = said.unwrap_or_default();
        let comm = comm(pid, pid).unwrap_or_default();
        let status = read(&format!("/proc/{pid}/status"));
        // Last: all that was read before is its own then.
        has_number(pidfd.as_fd()).then(|| Identity {
            pid,
            uid: users(&status)[1],
            start_time: start_time.unwrap_or(0),
            comm,
            exe: exe.to_string_lossy().into_owned(),
            inner: inner(&status),
            pidfd: Some(pidfd),
            numbers: RefCell::default(),
        })
    }

    /// The process that had the number `pid`, and has ended.
    pub fn ended(pid: i32) -> Identity {
        let (comm, exe) = (String::new(), String::new());
        Identity {
            pid,
            uid: u32::MAX,
            pidfd: None,
            start_time: 0,
            comm,
            exe,
            inner: None,
            numbers: RefCell::default(),
        }
    }

    /// Both are one process: who has not said when it began has its number, and so had the other one all the time.
    pub fn is_same(&self, other: &Identity) -> bool {
        let starts = [self.start_time, other.start_time];
        let is_known = !starts.contains(&0);
        let has_number = || self.has_number() && other.has_number();
        self.pid == other.pid && if is_known { starts[0] == starts[1] } else { has_number() }
    }

    /// The process has ended.
    pub fn has_ended(&self) -> bool {
        let Some(pidfd) = &self.pidfd else { return true };
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// What `/proc` says under its number is still about it: it has not ended, or nobody has waited for it.
    pub fn has_number(&self) -> bool {
        self.pidfd.as_ref().is_some_and(|pidfd| has_number(pidfd.as_fd()))
    }

    /// The thread that has the number `tid` in the PID namespace of the process, by its number in the
    /// agent's; `None` when it is gone, unless it is the first thread or the namespace is ours.
    pub fn translate(&self, tid: u32) -> Option<i32> {
        let tid = i32::try_from(tid).ok().filter(|&tid| tid > 0)?;
        match self.inner {
            None => Some(tid),
            Some(inner) if inner == tid => Some(self.pid),
            Some(_) if self.pidfd.is_none() => None,
            Some(_) => {
                let found = self.numbers.borrow_mut().find(self.pid, tid);
                found.filter(|_| self.has_number())
            }
        }
    }
}

/// What stands for a thread whose number in the agent's PID namespace is not known: minus the number `tid`
/// that it has in its own, so that threads stay apart.
pub fn unnumbered(tid: u32) -> i32 {
    i32::try_from(tid).map_or(-1, |tid| -tid.max(1))
}

/// `/proc` is that of another PID namespace.
#[derive(Debug, thiserror::Error)]
#[error(
    "/proc shows the processes of another PID namespace than this agent's, under other numbers; mount one \
     of its own (`unshare --mount-proc`, `mount -t proc proc /proc`)"
)]
pub struct ForeignProc;

/// Checks that `/proc` has the numbers of our own PID namespace, as system calls take them. It has those of
/// the one in which it was mounted.
///
/// # Errors
///
/// When it has not.
pub fn check_proc() -> Result<(), ForeignProc> {
    let own = fs::read_link("/proc/self").unwrap_or_default();
    let same = own.to_str() == Some(&std::process::id().to_string());
    same.then_some(()).ok_or(ForeignProc)
}

/// Threads of a process; empty when it is gone.
pub fn threads(pid: i32) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

/// Name of a thread; `None` when it is gone.
pub fn comm(pid: i32, tid: i32) -> Option<String> {
    let text = fs::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
    Some(String::from_utf8_lossy(text.strip_suffix(b"\n").unwrap_or(&text)).into_owned())
}

/// Most copies of the tracer in one process: usual are one or two.
///
/// Limit: the attachment is refused, with the reason; if more appear later, they are named like the others above.
/// Shown by: `copies_of_the_tracer_are_bounded`.
const MAX_MEMFDS: usize = 64;

/// Which memfd: device and inode. Those of huge pages are counted apart, and can have the inodes of others.
type MemfdKey = ((u32, u32), u64);

/// A memfd of the tracer that a process has mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MappedMemfd {
    key: MemfdKey,
    /// One of its mappings.
    addresses: (u64, u64),
}

/// The memfds that these mappings show, each once. What has the name need be none (memfd_create(2)).
fn mapped(maps: &str) -> impl Iterator<Item = MappedMemfd> {
    let mut known = Vec::new();
    let lines = maps.lines().filter(|line| line.ends_with(MEMFD_LINK));
    lines.filter_map(move |line| {
        // Addresses, rights, offset, device, inode (proc_pid_maps(5)).
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let (major, minor) = fields.nth(2)?.split_once(':')?;
        let device = |text| u32::from_str_radix(text, 16).ok();
        let key = ((device(major)?, device(minor)?), fields.next()?.parse().ok()?);
        let number = |text| u64::from_str_radix(text, 16).ok();
        let found = MappedMemfd { key, addresses: (number(start)?, number(end)?) };
        let is_new = !known.contains(&key);
        known.push(key);
        is_new.then_some(found)
    })
}

/// The inodes of the memfds of tracers that these mappings show.
pub(super) fn tracers(maps: &str) -> impl Iterator<Item = u64> {
    mapped(maps).map(|memfd| memfd.key.1)
}

/// Whether a process embeds `ft-user` and has started it.
///
/// # Errors
///
/// When its mappings may not be read, or it is gone.
pub fn is_traceable(pid: i32) -> io::Result<bool> {
    Ok(mapped(&maps::read(pid)?).next().is_some())
}

/// Opens the memfds of a process that embeds `ft-user`: one for each of its objects that has a copy of
/// the crate and has started it, each once; none when it embeds none.
///
/// A process keeps a descriptor of its memfd until an agent has it, or the program closes all that it has. Without one, the memfd is opened
/// as a mapped file (`/proc/PID/map_files`, proc_pid_map_files(5)), which takes `CAP_CHECKPOINT_RESTORE` (Linux 5.9) or `CAP_SYS_ADMIN`, in the
/// first user namespace.
///
/// # Errors
///
/// When `/proc/PID/fd` may not be read, the process is gone, it has more than 64, or none of those that it has mapped can be opened.
pub fn memfds(pid: i32) -> io::Result<Vec<File>> {
    let mut found = Found::default();
    let memory = Memory::of_the_kernel()?;
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        let path = entry?.path();
        if fs::read_link(&path).is_ok_and(|target| target == Path::new(MEMFD_LINK)) {
            let opened = memory.open(&path, &found.memfds);
            found.take(opened)?;
        }
    }
    for memfd in mapped(&maps::read(pid)?) {
        if found.memfds.iter().all(|(known, _)| *known != memfd.key) {
            let (start, end) = memfd.addresses;
            let path = format!("/proc/{pid}/map_files/{start:x}-{end:x}");
            let opened = memory.open(Path::new(&path), &found.memfds);
            found.take(opened.map_err(unopened))?;
        }
    }
    match found.refused {
        Some(e) if found.memfds.is_empty() => Err(e),
        _ => Ok(found.memfds.into_iter().map(|(_, file)| file).collect()),
    }
}

/// What a look at a process has found, and why the last of those could not be opened that were not.
#[derive(Default)]
struct Found {
    memfds: Vec<(MemfdKey, File)>,
    refused: Option<io::Error>,
}

impl Found {
    /// One that cannot be opened costs no other; what is not there any more was closed or unmapped while we look.
    fn take(&mut self, opened: io::Result<Option<(MemfdKey, File)>>) -> io::Result<()> {
        match opened {
            Ok(opened) => self.memfds.extend(opened),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => self.refused = Some(e),
        }
        match self.memfds.len() {
            ..=MAX_MEMFDS => Ok(()),
            _ => Err(io::Error::other("it has more copies of the tracer than 64")),
        }
    }
}

/// The kernel's own file system that every memfd of plain pages lies on, and nothing else that has a path.
struct Memory {
    device: (u32, u32),
}

/// `f_type` of a memfd of huge pages, whose file system depends on their size (linux/magic.h).
const HUGE_PAGES: u32 = 0x9584_58f6;

impl Memory {
    fn of_the_kernel() -> io::Result<Memory> {
        let one = memfd_create(c"own", MemfdFlags::CLOEXEC)?;
        let facts = ForeignFile::from(one).facts();
        Ok(Memory { device: facts.ok_or(io::ErrorKind::Unsupported)?.key.device })
    }

    /// The memfd behind a link in `/proc`, if it is not among those that were `found`. Anything may have its name
    /// (memfd_create(2), open_tree(2)): what is no memory is not opened, and what blocks is not waited for.
    fn open(
        &self,
        path: &Path,
        found: &[(MemfdKey, File)],
    ) -> io::Result<Option<(MemfdKey, File)>> {
        let held = ForeignFile::behind(path)?;
        let Some(facts) = held.facts() else { return Ok(None) };
        let is_memory = facts.key.device == self.device || held.file_system() == Some(HUGE_PAGES);
        let key = (facts.key.device, facts.key.inode);
        if !is_memory || found.iter().any(|(known, _)| *known == key) {
            return Ok(None);
        }
        match held.open_to_write() {
            Err(Errno::WOULDBLOCK) => Ok(None),
            opened => Ok(Some((key, opened?))),
        }
    }
}

/// Why the rings of a process cannot be had that keeps no descriptor of them.
fn unopened(why: io::Error) -> io::Error {
    if why.kind() != io::ErrorKind::PermissionDenied {
        return why;
    }
    io::Error::new(
        why.kind(),
        "it keeps no descriptor of its rings, since an agent has had it or the program has closed it; start the agent before the \
         program, or run as root (CAP_CHECKPOINT_RESTORE)",
    )
}

/// The process that `pidfd` holds still has its number. One that has ended keeps it until its parent has
/// waited for it.
pub(super) fn has_number(pidfd: BorrowedFd<'_>) -> bool {
    // SAFETY: signal 0 only asks (pidfd_send_signal(2)); no pointer but null is passed.
    let answer = unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), 0, std::ptr::null::<()>(), 0)
    };
    // Anything but ESRCH, for example that it may not be signalled, says that it is there.
    answer == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

pub(crate) fn read(path: &str) -> String {
    let mut text = fs::read(path).unwrap_or_default();
    text.truncate(MAX_TEXT);
    String::from_utf8_lossy(&text).into_owned()
}

/// When a process has begun, in clock ticks since boot; `None` when it is gone, or has others wait: while it executes a program
/// `stat` and the links do, and `status`, `comm` and `cgroup` do not.
pub(crate) fn start_time_of(pid: i32) -> Option<u64> {
    look::soon(pid, move || start_time_in_proc(pid))?
}

fn start_time_in_proc(pid: i32) -> Option<u64> {
    start_time(&read(&format!("/proc/{pid}/stat")))
}

/// Field 22 of `/proc/PID/stat`. The name, field 2, may hold anything, but ends at the last `)`.
fn start_time(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// All processes that `/proc` shows.
pub fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The number of the parent, in the text of `/proc/PID/status`.
pub(crate) fn parent(status: &str) -> Option<i32> {
    field(status, "PPid:")?.parse().ok()
}

/// What stands behind a name in the text of `/proc/PID/status`, in which a program's name has no new line (proc_pid_status(5)).
pub(crate) fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// The last of the numbers in `NSpid` of `/proc/PID/status`, one for each PID namespace from ours inwards;
/// `None` when there is no other than ours.
pub(crate) fn inner(status: &str) -> Option<i32> {
    let line = status.lines().find_map(|l| l.strip_prefix("NSpid:"))?;
    line.split_whitespace().skip(1).last()?.parse().ok()
}

/// Real, effective, saved and file system user in `/proc/PID/status`; `u32::MAX`, which is nobody, for what is
/// not there.
pub(super) fn users(status: &str) -> [u32; 4] {
    let line = status.lines().find_map(|l| l.strip_prefix("Uid:")).unwrap_or_default();
    let mut users = line.split_whitespace().map(|user| user.parse().unwrap_or(u32::MAX));
    [(); 4].map(|()| users.next().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use rustix::io::{FdFlags, fcntl_setfd};

    use super::*;

    #[test]
    fn parents_and_start_times() {
        let stat = "12 (a) b) (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21";
        assert_eq!(start_time(stat), Some(4242));
        let status = "Name:\ta) PPid:\t7\nState:\tZ (zombie)\nPPid:\t12\nUid:\t1\n";
        assert_eq!((parent(status), parent("Name:\tx\n")), (Some(12), None));
        assert_eq!(field(status, "State:"), Some("Z (zombie)"));
        assert_eq!(start_time("12 (short) S 1 2"), None);
        assert_eq!(start_time(""), None);
    }

    #[test]
    fn namespaces() {
        assert_eq!(inner("Name:\tx\nNSpid:\t4711\t17\t1\nx"), Some(1));
        assert_eq!(inner("NSpid:\t4711\n"), None);
        assert_eq!(inner(""), None);
    }

    #[test]
    fn the_first_thread_of_a_namespace_has_a_number_even_when_it_is_gone() {
        let me = std::process::id();
        let identity = Identity { inner: Some(1), ..Identity::of(me as i32).unwrap() };
        assert_eq!(identity.translate(1), Some(me as i32));
        assert_eq!(identity.translate(2), None, "no thread of ours has a second number");
        let identity = Identity { inner: None, ..identity };
        assert_eq!(identity.translate(2), Some(2));
        assert_eq!(identity.translate(0), None, "the idle tasks are nobody's threads");
        assert_eq!([17, 0, u32::MAX].map(unnumbered), [-17, -1, -1]);
    }

    #[test]
    fn copies_of_the_tracer_are_bounded() {
        let found = |count| {
            let mut program = Command::new("sleep");
            let make = move || {
                for _ in 0..count {
                    std::mem::forget(memfd_create(c"feather-trace", MemfdFlags::empty())?);
                }
                Ok(())
            };
            // SAFETY: between fork and exec it makes system calls only.
            unsafe { program.arg("1000").pre_exec(make) };
            let mut program = program.spawn().unwrap();
            let found = memfds(program.id() as i32).map(|memfds| memfds.len());
            program.kill().and_then(|()| program.wait()).unwrap();
            found
        };
        assert_eq!(found(MAX_MEMFDS).unwrap(), MAX_MEMFDS);
        let error = found(MAX_MEMFDS + 1).unwrap_err().to_string();
        assert!(error.contains("more copies of the tracer"), "{error}");
    }

    #[test]
    fn memfds_are_found_among_mappings_each_once() {
        let maps = "\
7f00-7f10 rw-s 00000000 00:01 77                     /memfd:feather-trace (deleted)
7f10-7f20 rw-s 00000000 00:01 77                     /memfd:other (deleted)
7f20-7f30 rw-s 00501000 00:01 77                     /memfd:feather-trace (deleted)
x-7f40 rw-s 00000000 00:01 79                        /memfd:feather-trace (deleted)
7f30-7f40 rw-s 00000000 00:11 77                     /memfd:feather-trace (deleted)
7f40-7f50 rw-s 00000000 00:01 78                     /memfd:feather-trace (deleted)
7f50-7f60 rw-s 00000000 00:01";
        let found: Vec<_> = mapped(maps).map(|found| (found.key, found.addresses)).collect();
        let (plain, huge) = ((0, 1), (0, 0x11));
        assert_eq!(
            found,
            [
                ((plain, 77), (0x7f00, 0x7f10)),
                ((huge, 77), (0x7f30, 0x7f40)),
                ((plain, 78), (0x7f40, 0x7f50)),
            ]
        );
        assert_eq!(mapped("").next(), None);
    }

    /// Nobody may open for writing what is executed (open(2), ETXTBSY): here a program in a memfd of the tracer's name.
    #[test]
    fn a_memfd_that_cannot_be_opened_costs_no_other() {
        let found = |others: usize| {
            let named = || memfd_create(c"feather-trace", MemfdFlags::CLOEXEC).unwrap();
            let executed = named();
            let sleep = fs::read("/bin/sleep").unwrap();
            File::from(executed.try_clone().unwrap()).write_all(&sleep).unwrap();
            let others: Vec<OwnedFd> = (0..others).map(|_| named()).collect();
            let mut program = Command::new(format!("/proc/self/fd/{}", executed.as_raw_fd()));
            let keep = move || {
                let mut all = others.iter().chain([&executed]);
                all.try_for_each(|fd| Ok(fcntl_setfd(fd, FdFlags::empty())?))
            };
            // SAFETY: between fork and exec it makes system calls only.
            unsafe { program.arg0("sleep").arg("1000").pre_exec(keep) };
            let mut running = program.spawn().unwrap();
            let found = memfds(running.id() as i32).map(|memfds| memfds.len());
            running.kill().and_then(|()| running.wait()).unwrap();
            found.map_err(|error| error.kind())
        };
        assert_eq!(found(2), Ok(2));
        assert_eq!(found(0), Err(io::ErrorKind::ExecutableFileBusy));
    }

    /// What has the name may be anything: here a file in `/dev/shm`.
    #[test]
    fn what_is_no_memory_of_the_kernel_is_not_opened() {
        let memory = Memory::of_the_kernel().unwrap();
        let found = |fd: &dyn AsRawFd| {
            let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
            memory.open(Path::new(&path), &[]).unwrap().is_some()
        };
        assert!(found(&memfd_create(c"any", MemfdFlags::CLOEXEC).unwrap()));
        assert!(!found(&tempfile::tempfile_in("/dev/shm").unwrap()));
        assert!(!found(&File::open("/dev/null").unwrap()));
    }

    /// As those of a program that closes all that it has inherited, or that an agent has had before.
    #[test]
    fn copies_of_the_tracer_without_a_descriptor_are_found() {
        use rustix::mm::{MapFlags, ProtFlags, mmap};

        let memfd = memfd_create(c"feather-trace", MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&memfd, 8192).unwrap();
        let inode = rustix::fs::fstat(&memfd).unwrap().st_ino;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, which stays until the test ends.
        unsafe { mmap(std::ptr::null_mut(), 8192, protection, MapFlags::SHARED, &memfd, 0) }
            .unwrap();
        let me = std::process::id() as i32;
        assert!(is_traceable(me).unwrap());
        let is_found = || -> io::Result<bool> {
            let found = memfds(me)?;
            Ok(found.iter().any(|file| file.metadata().unwrap().ino() == inode))
        };
        assert!(is_found().unwrap());
        drop(memfd);
        match is_found() {
            // Others of this process are found all the same.
            Ok(found) => assert!(found || !rustix::process::geteuid().is_root()),
            Err(e) => assert!(e.to_string().contains("CAP_CHECKPOINT_RESTORE"), "{e}"),
        }
    }

    #[test]
    fn users_of_a_process() {
        assert_eq!(users("Name:\tx\nUid:\t1\t2\t3\t4\n"), [1, 2, 3, 4]);
        assert_eq!(users("Uid:\t1\tx\n"), [1, u32::MAX, u32::MAX, u32::MAX]);
        assert_eq!(users(""), [u32::MAX; 4]);
    }

    #[test]
    fn threads_of_another_are_not_asked_for_those_of_who_has_ended() {
        let me = std::process::id();
        // Its number was used again: by this process.
        let ended = Identity { inner: Some(7), ..Identity::ended(me as i32) };
        assert_eq!(ended.translate(7), Some(me as i32));
        assert_eq!(ended.translate(8), None);
    }

    #[test]
    fn this_process_is_found() {
        let me = Identity::of(std::process::id() as i32).unwrap();
        assert!(!me.has_ended());
        assert!(me.start_time > 0);
        assert!(threads(me.pid).contains(&me.pid));
        assert!(!me.exe.is_empty());
    }

    #[test]
    fn who_has_not_said_when_it_began_is_the_same_while_it_has_its_number() {
        let pid = std::process::id() as i32;
        let [me, unsaid] = [0, 1].map(|_| Identity::of(pid).unwrap());
        let unsaid = Identity { start_time: 0, ..unsaid };
        let later = Identity { start_time: me.start_time + 1, ..Identity::of(pid).unwrap() };
        assert!(me.is_same(&unsaid) && unsaid.is_same(&me) && unsaid.is_same(&unsaid));
        assert!(!me.is_same(&later) && !me.is_same(&Identity::ended(pid)));
    }

    #[test]
    fn a_process_that_ended_is_seen_to_have() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id() as i32;
        let identity = Identity::of(pid).unwrap();
        child.wait().unwrap();
        assert!(identity.has_ended());
        assert!(Identity::of(pid).is_err());
        assert!(Identity::of(-1).is_err());
        assert!(memfds(pid).is_err());
    }
}
