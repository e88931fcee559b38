//! Who is at the other end of a registration socket.
//!
//! A number is not enough: a process can connect, hand the connection to another and end, and its number goes
//! to somebody else, who would then be recorded for it. So the kernel is asked for the process itself, as a
//! pidfd (`SO_PEERPIDFD`, Linux 6.5, `net/core/sock.c`), and what `/proc` says under its number is believed
//! only if the process had not been waited for when all of it was read.
//!
//! An older kernel has the number alone. There whoever has it when the connection is accepted is taken for
//! the peer, if it is a process of the same user that began before. What remains is a number that is used
//! again by the same user while the connection waits to be accepted.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};
use rustix::time::{ClockId, clock_gettime};

use super::discover::{self, Identity};

/// The process that has connected.
#[derive(Debug)]
pub struct Peer {
    /// Its number in the agent's PID namespace; 0 when it has none there.
    pub pid: i32,
    /// Its effective user when it connected.
    pub uid: u32,
    /// Holds it; `None` when it has ended, or is not known.
    pub(crate) pidfd: Option<OwnedFd>,
}

impl Peer {
    /// Asks the kernel; at once after the connection was accepted, since an old kernel knows the number only.
    ///
    /// # Errors
    ///
    /// When the agent has no descriptor left, or the kernel no memory.
    pub fn of(connection: &OwnedFd) -> io::Result<Peer> {
        let accepted = now_ticks();
        let unknown = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
        let libc::ucred { pid, uid, .. } = option(connection, libc::SO_PEERCRED, unknown)?;
        let pidfd = match option(connection, libc::SO_PEERPIDFD, -1) {
            // SAFETY: the kernel has just made it for us.
            Ok(fd) => Some(unsafe { OwnedFd::from_raw_fd(fd) }),
            Err(e) => match e.raw_os_error() {
                Some(libc::ENOPROTOOPT) => by_number(pid, uid, accepted)?,
                // It has ended: EINVAL before Linux 6.9, ESRCH since.
                Some(libc::EINVAL | libc::ESRCH | libc::ENODATA) => None,
                _ => return Err(e),
            },
        };
        Ok(Peer { pid, uid, pidfd })
    }

    /// It comes before others: it is of the agent's user, of root, or known to belong to the session
    /// (setsid(2)) in which the recording was started.
    pub fn is_first(&self) -> bool {
        let user = [0, geteuid().as_raw()].contains(&self.uid);
        let session = || {
            let own = session(std::process::id() as i32);
            own.is_some() && session(self.pid) == own && self.has_number()
        };
        user || session()
    }

    /// Its name; empty when it has ended.
    pub fn comm(&self) -> String {
        let comm = discover::comm(self.pid, self.pid).unwrap_or_default();
        if self.has_number() { comm } else { String::new() }
    }

    fn has_number(&self) -> bool {
        self.pidfd.as_ref().is_some_and(|pidfd| discover::has_number(pidfd.as_fd()))
    }

    /// What the kernel says about it: of one that has ended nothing but its number, which may be another's now.
    pub fn identify(self) -> Identity {
        let held = self.pidfd.and_then(|pidfd| Identity::held(self.pid, pidfd));
        let mut identity = held.unwrap_or_else(|| Identity::ended(self.pid));
        identity.uid = self.uid;
        identity
    }
}

/// Session of a process, as the number of its leader. `None` when there is no such process, or the agent's PID
/// namespace has no number for the leader: of two such nobody knows whether they are of one session.
fn session(pid: i32) -> Option<i32> {
    // To getsid(2) 0 is the caller; as a peer's number it is that of a process outside of the namespace.
    let pid = Some(pid).filter(|&pid| pid > 0)?;
    // SAFETY: takes no pointer.
    leader(unsafe { libc::getsid(pid) })
}

/// What an answer of getsid(2) says: -1 is an error, 0 a leader outside of the caller's PID namespace
/// (`pid_nr_ns` in the kernel's `kernel/pid.c`), which the manual does not mention.
fn leader(answer: libc::pid_t) -> Option<i32> {
    Some(answer).filter(|&leader| leader > 0)
}

/// The process that has the number `pid` now, if it can be the one that connected before `accepted` (clock
/// ticks since boot).
fn by_number(pid: i32, uid: u32, accepted: u64) -> io::Result<Option<OwnedFd>> {
    let Some(number) = Pid::from_raw(pid) else { return Ok(None) };
    let pidfd = match pidfd_open(number, PidfdFlags::empty()) {
        Err(rustix::io::Errno::SRCH) => return Ok(None),
        pidfd => pidfd?,
    };
    let began = discover::start_time_of(pid).is_some_and(|began| began <= accepted);
    let status = discover::read(&format!("/proc/{pid}/status"));
    let same_user = discover::users(&status).contains(&uid);
    Ok(Some(pidfd).filter(|_| began && same_user))
}

/// Time since boot in the unit of [`Identity::start_time`].
fn now_ticks() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let per_second = clock_ticks_per_second();
    now.tv_sec as u64 * per_second + now.tv_nsec as u64 * per_second / 1_000_000_000
}

/// An option of the socket (getsockopt(2)) that is as large as `value`.
fn option<T: Copy>(socket: &OwnedFd, name: libc::c_int, mut value: T) -> io::Result<T> {
    let mut bytes = size_of::<T>() as libc::socklen_t;
    let to = (&raw mut value).cast();
    // SAFETY: the kernel writes `bytes` at most, which `value` has; all that are asked for are integers.
    match unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, to, &mut bytes) } {
        0 => Ok(value),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    fn own() -> i32 {
        std::process::id() as i32
    }

    fn pidfd(pid: i32) -> OwnedFd {
        pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap()
    }

    /// A process that has ended, and was waited for.
    fn reaped() -> OwnedFd {
        let mut child = Command::new("true").spawn().unwrap();
        let pidfd = pidfd(child.id() as i32);
        child.wait().unwrap();
        pidfd
    }

    fn sleeper() -> Child {
        Command::new("sleep").arg("1000").spawn().unwrap()
    }

    #[test]
    fn a_peer_is_this_process() {
        let kind = SocketType::SEQPACKET;
        let (a, _b) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
        let peer = Peer::of(&a).unwrap();
        assert_eq!((peer.pid, peer.uid), (own(), geteuid().as_raw()));
        assert!(peer.is_first() && !peer.comm().is_empty());
        let identity = peer.identify();
        assert!(!identity.has_ended() && !identity.exe.is_empty());
    }

    #[test]
    fn whoever_has_the_number_of_an_ended_peer_is_not_taken_for_it() {
        let mut victim = sleeper();
        let pid = victim.id() as i32;
        let peer = Peer { pid, uid: 4711, pidfd: Some(reaped()) };
        assert!(!peer.is_first() && peer.comm().is_empty());
        let identity = peer.identify();
        victim.kill().unwrap();
        victim.wait().unwrap();
        assert!(identity.has_ended());
        assert_eq!((identity.pid, identity.uid, identity.start_time), (pid, 4711, 0));
        assert_eq!((&*identity.comm, &*identity.exe), ("", ""));
    }

    #[test]
    fn a_peer_that_ended_and_keeps_its_number_is_known() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = child.id() as i32;
        let fd = pidfd(pid);
        // Ended, but nobody has waited for it.
        rustix::event::poll(
            &mut [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)],
            None,
        )
        .unwrap();
        let identity = Peer { pid, uid: 0, pidfd: Some(fd) }.identify();
        assert!(identity.has_ended());
        assert!(identity.start_time > 0);
        child.wait().unwrap();
    }

    #[test]
    fn a_session_is_known_by_a_leader_that_has_a_number() {
        assert_eq!([-1, 0, 1, 4711].map(leader), [None, None, Some(1), Some(4711)]);
        // Not that of the caller.
        assert_eq!(session(0), None);
        assert_eq!(session(-1), None);
        let mut child = sleeper();
        assert_eq!(session(child.id() as i32), session(own()), "inherited, and seen or not");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn by_its_number_a_peer_is_of_the_same_user_and_began_before() {
        let uid = geteuid().as_raw();
        let is_taken = |uid, accepted| by_number(own(), uid, accepted).unwrap().is_some();
        let began = Identity::of(own()).unwrap().start_time;
        assert!(is_taken(uid, now_ticks()) && is_taken(uid, began));
        assert!(!is_taken(uid, began - 1));
        assert!(!is_taken(uid + 1, now_ticks()));
        assert!(by_number(0, uid, now_ticks()).unwrap().is_none());
    }
}
