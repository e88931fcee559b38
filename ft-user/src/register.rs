//! Registration: one connection to the agent's socket, one message there, one back.
//!
//! There is no socket: one system call, and that is all. An agent that comes later finds the memfd by its
//! name in `/proc/PID/fd` or, with more rights, in `/proc/PID/map_files`.

use core::mem::{self, MaybeUninit};
use core::ptr;
use std::sync::OnceLock;
use std::time::Duration;

use crate::descriptor::{self, OfMemfd};
use crate::kernel::Deadline;
use crate::layout::{DEFAULT_SOCKET, Hello, MAGIC, MAX_REPLY_BYTES, NO_ANSWER, Reply, VERSION};
use crate::{Agent, InitError, config, glob, kernel};

/// How long a process waits for an agent until it takes the connection and answers: an agent that hangs must not hold up
/// each program that starts.
const PATIENCE: Duration = Duration::from_millis(500);

/// The same where `FT_SOCKET` names the agent, as in each program that `ft-agent record` starts: whoever asked for a
/// recording wants its first events too, however busy the machine is.
const PATIENCE_OF_NAMED: Duration = Duration::from_secs(5);

/// The address of the agent's socket: `FT_SOCKET`, else the default.
pub(crate) fn address() -> Result<libc::sockaddr_un, InitError> {
    let path = config::env(c"FT_SOCKET").unwrap_or(DEFAULT_SOCKET).as_bytes();
    let mut address =
        libc::sockaddr_un { sun_family: libc::AF_UNIX as libc::sa_family_t, sun_path: [0; 108] };
    // The path and its NUL must fit.
    if path.len() >= address.sun_path.len() {
        return Err(InitError::Variable("FT_SOCKET"));
    }
    for (place, &byte) in address.sun_path.iter_mut().zip(path) {
        *place = byte as libc::c_char;
    }
    Ok(address)
}

/// The address when tracing started. In a forked child getenv(3) is not safe: another thread may have been in setenv(3).
static KEPT: OnceLock<libc::sockaddr_un> = OnceLock::new();

/// Keeps the address for children.
pub(crate) fn keep(address: libc::sockaddr_un) {
    KEPT.get_or_init(|| address);
}

/// What was kept.
pub(crate) fn kept() -> Option<&'static libc::sockaddr_un> {
    KEPT.get()
}

/// How long to wait for whoever listens at [`address`].
pub(crate) fn patience() -> Duration {
    if config::env(c"FT_SOCKET").is_some() { PATIENCE_OF_NAMED } else { PATIENCE }
}

/// Registers the memfd, and calls `enable` with each glob of the answer.
pub(crate) fn register(
    memfd: OfMemfd,
    address: &libc::sockaddr_un,
    patience: Duration,
    enable: impl FnMut(&str),
) -> Agent {
    let deadline = Deadline::after(patience);
    let Some(socket) = connect(address, Some(deadline)) else { return Agent::Absent };
    if !memfd.number().is_some_and(|memfd| send_hello(&socket, memfd, 0)) {
        return Agent::Absent;
    }
    let mut buffer = [0; MAX_REPLY_BYTES];
    match receive(&socket, &mut buffer, deadline) {
        None => Agent::Silent,
        Some(message) => match globs(message) {
            None => Agent::Garbled,
            Some(globs) => {
                glob::split(globs).for_each(enable);
                Agent::Registered
            }
        },
    }
}

/// Registers the memfd and waits for nothing; whether somebody listens.
pub(crate) fn announce(memfd: OfMemfd, address: &libc::sockaddr_un) -> bool {
    let Some(socket) = connect(address, None) else { return false };
    memfd.number().is_some_and(|memfd| send_hello(&socket, memfd, NO_ANSWER))
}

/// A connection. Other threads of the program may close its descriptor and open another one of that number meanwhile.
struct Socket {
    fd: libc::c_int,
    /// Device and inode.
    file: (u64, u64),
}

impl Socket {
    fn new(fd: libc::c_int) -> Option<Socket> {
        let fd = descriptor::set_aside(fd);
        Some(Socket { fd, file: descriptor::identity(fd)? })
    }

    /// The number, if it is still that of the connection, as of [`OfMemfd::number`].
    fn number(&self) -> Option<libc::c_int> {
        (descriptor::identity(self.fd) == Some(self.file)).then_some(self.fd)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.number().into_iter().for_each(kernel::close);
    }
}

/// A connection, if somebody listens. While the queue of who waits to be accepted is full, until the deadline; without
/// one, not at all. A process that sleeps in the kernel for its turn gets it before those that only try again.
fn connect(address: &libc::sockaddr_un, deadline: Option<Deadline>) -> Option<Socket> {
    // To make a socket and close it takes ten times as long as to see that there is nobody to connect to.
    if !may_exist(address) {
        return None;
    }
    let nonblocking = if deadline.is_none() { libc::SOCK_NONBLOCK } else { 0 };
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | nonblocking;
    // SAFETY: takes no pointer.
    let fd = unsafe { kernel::call(libc::SYS_socket, [libc::AF_UNIX as usize, kind as usize, 0]) };
    let socket = Socket::new(fd.ok()? as libc::c_int)?;
    loop {
        if let Some(deadline) = deadline {
            give_up_after(socket.number()?, deadline.left()?);
        }
        let at = ptr::from_ref(address).expose_provenance();
        let arguments = [socket.number()? as usize, at, size_of::<libc::sockaddr_un>()];
        // SAFETY: the address is as long as is said.
        match unsafe { kernel::call(libc::SYS_connect, arguments) } {
            Ok(_) => return Some(socket),
            // A signal came in between.
            Err(libc::EINTR) => {}
            Err(_) => return None,
        }
    }
}

/// Limits how long the next call that connects or sends may take (`SO_SNDTIMEO`, socket(7)).
fn give_up_after(socket: libc::c_int, time: Duration) {
    let limit = libc::timeval {
        tv_sec: time.as_secs() as libc::time_t,
        // Nothing at all would be no limit.
        tv_usec: time.subsec_micros().max(1).into(),
    };
    let value = ptr::from_ref(&limit).expose_provenance();
    let option = [libc::SOL_SOCKET, libc::SO_SNDTIMEO].map(|number| number as usize);
    let arguments = [socket as usize, option[0], option[1], value, size_of_val(&limit)];
    // SAFETY: the option's value is as long as is said.
    let _ = unsafe { kernel::call(libc::SYS_setsockopt, arguments) };
}

/// Whether somebody may listen. An abstract address, which begins with a NUL, is no path; and an error may
/// hide one that is there.
fn may_exist(address: &libc::sockaddr_un) -> bool {
    let path = address.sun_path.as_ptr().expose_provenance();
    // SAFETY: `address` makes no path that fills the array, so there is a NUL.
    let found = unsafe { kernel::call(libc::SYS_faccessat, [libc::AT_FDCWD as usize, path, 0]) };
    address.sun_path[0] == 0 || found != Err(libc::ENOENT)
}

/// Sends [`Hello`] with the memfd beside it. `MSG_NOSIGNAL`: an agent that dies must not kill us.
fn send_hello(socket: &Socket, memfd: libc::c_int, flags: u32) -> bool {
    let Some(socket) = socket.number() else { return false };
    let mut hello = Hello { magic: MAGIC, version: VERSION, flags };
    let mut part = libc::iovec { iov_base: (&raw mut hello).cast(), iov_len: size_of::<Hello>() };
    // As large as a control message with one descriptor, aligned as its header must be.
    let mut control = [0u64; 3];
    // SAFETY: a computation.
    let control_bytes = unsafe { libc::CMSG_SPACE(size_of::<libc::c_int>() as u32) } as usize;
    assert!(control_bytes <= size_of_val(&control));
    // SAFETY: all of `msghdr` may be zero.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = control_bytes as _;
    // SAFETY: `control` has room for this one control message, and the rest of `message` is valid.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<libc::c_int>() as u32) as _;
        libc::CMSG_DATA(header).cast::<libc::c_int>().write_unaligned(memfd);
        let at = (&raw const message).expose_provenance();
        let arguments = [socket as usize, at, libc::MSG_NOSIGNAL as usize];
        kernel::call(libc::SYS_sendmsg, arguments) == Ok(size_of::<Hello>())
    }
}

/// The one message of the agent, if it comes in time. A longer one than `buffer` is cut, and then does
/// not say its own length. Descriptors that come with it are dropped by the kernel.
fn receive<'a>(socket: &Socket, buffer: &'a mut [u8], deadline: Deadline) -> Option<&'a [u8]> {
    loop {
        let left = deadline.left().unwrap_or_default();
        let mut poll = libc::pollfd { fd: socket.number()?, events: libc::POLLIN, revents: 0 };
        let mut time = libc::timespec {
            tv_sec: left.as_secs() as libc::time_t,
            tv_nsec: left.subsec_nanos().into(),
        };
        let place = (&raw mut poll).expose_provenance();
        let arguments = [place, 1, (&raw mut time).expose_provenance(), 0, 0];
        // SAFETY: one valid `pollfd`, a time, which the kernel may change, and no signals.
        match unsafe { kernel::call(libc::SYS_ppoll, arguments) } {
            Ok(0) => return None,
            Ok(_) => break,
            // A signal came in between.
            Err(libc::EINTR) if !left.is_zero() => continue,
            Err(_) => return None,
        }
    }
    let place = buffer.as_mut_ptr().expose_provenance();
    let arguments = [socket.number()? as usize, place, buffer.len(), 0, 0, 0];
    // SAFETY: `buffer` is valid for writes of its length.
    let bytes = unsafe { kernel::call(libc::SYS_recvfrom, arguments) };
    // Nothing: the agent has hung up.
    bytes.ok().filter(|&bytes| bytes > 0).map(|bytes| &buffer[..bytes])
}

/// The globs of a [`Reply`], if that is what `message` is.
fn globs(message: &[u8]) -> Option<&str> {
    let field = |offset| message.get(offset..)?.first_chunk().copied();
    let magic = message.first_chunk().copied().map(u64::from_ne_bytes)?;
    let version = field(mem::offset_of!(Reply, version)).map(u32::from_ne_bytes)?;
    let bytes = field(mem::offset_of!(Reply, bytes)).map(u32::from_ne_bytes)?;
    let rest = &message[size_of::<Reply>()..];
    if magic != MAGIC || version != VERSION || rest.len() != bytes as usize {
        return None;
    }
    str::from_utf8(rest).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(magic: u64, version: u32, bytes: u32, rest: &[u8]) -> Vec<u8> {
        let mut message = magic.to_ne_bytes().to_vec();
        message.extend(version.to_ne_bytes());
        message.extend(bytes.to_ne_bytes());
        message.extend(rest);
        message
    }

    /// An address in the abstract namespace, of this process and test only.
    fn abstract_address(test: &str) -> libc::sockaddr_un {
        let mut address = libc::sockaddr_un { sun_family: libc::AF_UNIX as _, sun_path: [0; 108] };
        let name = format!("ft-user/{}/{test}", std::process::id());
        for (place, byte) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
            *place = byte as libc::c_char;
        }
        address
    }

    /// An agent that lets `backlog + 1` connections wait.
    fn listen(address: &libc::sockaddr_un, backlog: libc::c_int) -> Socket {
        let length = size_of_val(address) as libc::socklen_t;
        // SAFETY: the address is as long as is said.
        unsafe {
            let fd = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0);
            assert_eq!(libc::bind(fd, ptr::from_ref(address).cast(), length), 0);
            assert_eq!(libc::listen(fd, backlog), 0);
            Socket::new(fd).unwrap()
        }
    }

    fn accept(listener: &Socket) -> Socket {
        // SAFETY: the caller does not want the address of the peer.
        let fd = unsafe { libc::accept(listener.fd, ptr::null_mut(), ptr::null_mut()) };
        Socket::new(fd).unwrap()
    }

    /// What is registered.
    fn memfd() -> OfMemfd {
        static MEMFD: std::sync::OnceLock<(libc::c_int, u64, u64)> = std::sync::OnceLock::new();
        let (fd, device, inode) = *MEMFD.get_or_init(|| OfMemfd::create().unwrap().parts());
        OfMemfd::from_parts(fd, device, inode)
    }

    /// Registers a memfd with an agent that answers `reply`, then hangs up.
    fn check(test: &str, reply: &[u8], expected: Agent, expected_globs: &[&str]) {
        let address = abstract_address(test);
        let listener = listen(&address, 1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let client = accept(&listener);
                let mut hello = [0u8; 64];
                // SAFETY: both buffers are valid for their length.
                unsafe {
                    libc::recv(client.fd, hello.as_mut_ptr().cast(), hello.len(), 0);
                    libc::send(client.fd, reply.as_ptr().cast(), reply.len(), 0);
                }
            });
            let mut globs = Vec::new();
            let agent = register(memfd(), &address, PATIENCE, |glob| globs.push(glob.to_owned()));
            assert_eq!(agent, expected, "{test}");
            assert_eq!(globs, expected_globs, "{test}");
        });
    }

    #[test]
    fn agents_answer_well_or_badly() {
        let good = reply(MAGIC, VERSION, 9, b"lock.*\na?");
        check("good", &good, Agent::Registered, &["lock.*", "a?"]);
        check("nothing", &reply(MAGIC, VERSION, 0, b""), Agent::Registered, &[]);
        check("rubbish", &[0xff; 200], Agent::Garbled, &[]);
        check("short", b"x", Agent::Garbled, &[]);
        let long = reply(MAGIC, VERSION, 10_000, &[b'*'; 10_000]);
        check("long", &long, Agent::Garbled, &[]);
        check("hangs-up", b"", Agent::Silent, &[]);
    }

    #[test]
    fn absent_agents_cost_nothing() {
        let address = abstract_address("absent");
        let unexpected = |glob: &str| panic!("{glob}");
        let mut nowhere = libc::sockaddr_un { sun_family: libc::AF_UNIX as _, sun_path: [0; 108] };
        nowhere.sun_path[..2].copy_from_slice(&[b'/', 1].map(|byte| byte as libc::c_char));
        assert_eq!(register(memfd(), &nowhere, PATIENCE, unexpected), Agent::Absent);
        assert_eq!(register(memfd(), &address, PATIENCE, unexpected), Agent::Absent);
    }

    #[test]
    fn agent_whose_queue_stays_full_is_given_up() {
        let address = abstract_address("full");
        let _listener = listen(&address, 0);
        let _waiting = connect(&address, None).unwrap();
        assert!(connect(&address, None).is_none(), "a forked child waits for nothing");
        assert_eq!(register(memfd(), &address, PATIENCE, |glob| panic!("{glob}")), Agent::Absent);
    }

    #[test]
    fn agent_whose_queue_is_full_for_a_moment_is_waited_for() {
        let is_taken = |round: u32| {
            let address = abstract_address(&format!("crowded-{round}"));
            let listener = listen(&address, 0);
            let waiting = connect(&address, None).unwrap();
            std::thread::scope(|scope| {
                let process =
                    scope.spawn(|| register(memfd(), &address, PATIENCE, |glob| panic!("{glob}")));
                // Most likely it waits in the kernel by then.
                std::thread::sleep(Duration::from_millis(20));
                drop((waiting, accept(&listener)));
                process.join().unwrap() == Agent::Silent
            })
        };
        // A machine that stands still for half a second makes it give up.
        assert!((0..20).any(is_taken));
    }

    #[test]
    fn agent_that_never_answers_is_given_up() {
        let address = abstract_address("slow");
        let _listener = listen(&address, 1);
        assert_eq!(register(memfd(), &address, PATIENCE, |glob| panic!("{glob}")), Agent::Silent);
    }

    #[test]
    fn agent_that_dies_does_not_kill() {
        let address = abstract_address("dies");
        let listener = listen(&address, 1);
        let socket = connect(&address, None).unwrap();
        drop(accept(&listener));
        drop(listener);
        // Without MSG_NOSIGNAL this would be the end of the process.
        assert!(!send_hello(&socket, 0, 0));
    }

    #[test]
    fn replies() {
        assert_eq!(globs(&reply(MAGIC, VERSION, 8, b"lock.*\nx")), Some("lock.*\nx"));
        assert_eq!(globs(&reply(MAGIC, VERSION, 0, b"")), Some(""));
        assert_eq!(globs(&reply(MAGIC + 1, VERSION, 1, b"*")), None);
        assert_eq!(globs(&reply(MAGIC, VERSION + 1, 1, b"*")), None);
        assert_eq!(globs(&reply(MAGIC, VERSION, 2, b"*")), None);
        assert_eq!(globs(&reply(MAGIC, VERSION, u32::MAX, b"*")), None);
        assert_eq!(globs(&reply(MAGIC, VERSION, 1, &[0xff])), None);
        for length in 0..size_of::<Reply>() {
            assert_eq!(globs(&reply(MAGIC, VERSION, 0, b"")[..length]), None, "{length}");
        }
    }
}
