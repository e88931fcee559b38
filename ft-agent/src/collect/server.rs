//! The registration socket.
//!
//! A process connects, sends one [`Hello`] with its memfd, waits for one [`Reply`] and closes. One
//! thread serves all: it never waits for a single client, and drops one that has said nothing for long
//! ([`PATIENCE`]). It checks who speaks (the kernel says so) and the form of the message; the memfd is
//! checked by whoever gets the [`Registration`], and answered with [`Registration::accept`].

use std::io::{self, IoSliceMut};
use std::mem::{MaybeUninit, size_of};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ft_user::layout::{Hello, MAGIC, MAX_REPLY_BYTES, NO_ANSWER, Reply, VERSION};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{Mode, chmod};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags,
    SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, recvmsg, send,
    socket_with,
};

use super::discover::Identity;
use super::peer::Peer;

/// How long a client may stay silent: it may be preempted before it speaks.
const PATIENCE: Duration = Duration::from_secs(2);

/// The same while [`MAX_CLIENTS`] are silent and others wait for them.
const PATIENCE_CROWDED: Duration = Duration::from_millis(200);

/// Clients that wait in the kernel's queue; whoever comes when it is full goes on untraced.
const BACKLOG: i32 = 1024;

/// Clients that are waited for at once; more wait in the kernel's queue.
const MAX_CLIENTS: usize = 64;

/// A process that wants to be recorded. Dropped without an answer, it closes the connection: the process
/// enables nothing.
#[derive(Debug)]
pub struct Registration {
    /// Who it is, by the kernel's account.
    pub identity: Identity,
    /// What it passed; not checked yet.
    pub memfd: OwnedFd,
    /// It waits for an answer, for half a second; a forked child does not.
    pub waits: bool,
    connection: OwnedFd,
}

impl Registration {
    /// Tells the process which sites to enable.
    ///
    /// # Errors
    ///
    /// When it has gone meanwhile, or the globs take more than [`MAX_REPLY_BYTES`].
    pub fn accept(&self, globs: &[String]) -> io::Result<()> {
        let message = reply(globs).ok_or(io::ErrorKind::InvalidInput)?;
        send(&self.connection, &message, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

/// The answer that enables `globs`; `None` when it is longer than [`MAX_REPLY_BYTES`].
pub fn reply(globs: &[String]) -> Option<Vec<u8>> {
    let list = globs.join("\n");
    let mut message = Vec::with_capacity(size_of::<Reply>() + list.len());
    message.extend_from_slice(&MAGIC.to_ne_bytes());
    message.extend_from_slice(&VERSION.to_ne_bytes());
    message.extend_from_slice(&(list.len() as u32).to_ne_bytes());
    message.extend_from_slice(list.as_bytes());
    (message.len() <= MAX_REPLY_BYTES).then_some(message)
}

/// What the server hands on.
#[derive(Debug)]
pub enum Arrival {
    /// A process to attach and to answer.
    Registration(Registration),
    /// A client that was sent away.
    Rejected {
        /// Its process; 0 when it has no number here.
        pid: i32,
        /// Why.
        reason: Rejection,
    },
}

/// Why a client was sent away.
#[derive(Debug, thiserror::Error)]
pub enum Rejection {
    /// Nothing came in time.
    #[error("it connected and sent nothing for a long time")]
    Silent,
    /// Not a [`Hello`] with one descriptor.
    #[error("it sent something that is no registration")]
    Rubbish,
    /// Another version of the layout.
    #[error("it speaks version {0}, this agent {VERSION}: build both from one release")]
    Version(u32),
    /// It lives in a PID namespace that is not below ours.
    #[error(
        "it lives in a PID namespace that this one does not see; run the agent outside of both"
    )]
    Unidentified,
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(io::Error),
}

/// Makes a listening socket at `path`, for every user. A socket that nobody listens to any more is
/// replaced.
///
/// # Errors
///
/// `AddrInUse` when another agent listens there, `InvalidInput` when the path is longer than 107
/// bytes (unix(7)); else what the kernel says.
pub fn listener(path: &Path) -> io::Result<OwnedFd> {
    let address =
        SocketAddrUnix::new(path).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let new = || {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
    };
    let socket = new()?;
    if let Err(e) = bind(&socket, &address) {
        let abandoned = e == rustix::io::Errno::ADDRINUSE
            && connect(&new()?, &address) == Err(rustix::io::Errno::CONNREFUSED);
        if !abandoned {
            return Err(e.into());
        }
        std::fs::remove_file(path)?;
        bind(&socket, &address)?;
    }
    // Recording a process of another user is the point; what it passes is not trusted anyway.
    chmod(path, Mode::from_bits_retain(0o666))?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// The thread that serves the sockets; ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves `listeners`; `deliver` is called for each arrival, on the server's thread, and must not
    /// block.
    ///
    /// # Errors
    ///
    /// When the thread or its means of waking cannot be made.
    pub fn spawn(
        listeners: Vec<OwnedFd>,
        deliver: impl FnMut(Arrival) + Send + 'static,
    ) -> io::Result<Server> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        let stopped = stop.try_clone()?;
        let thread = std::thread::Builder::new()
            .name("ft-register".into())
            .spawn(move || serve(&listeners, &stopped, deliver))?;
        Ok(Server { stop, thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An eventfd of our own takes one more at any time.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by its own hook.
            let _ = thread.join();
        }
    }
}

struct Client {
    connection: OwnedFd,
    peer: Peer,
    since: Instant,
}

impl Client {
    /// The next that waits; `None` when there is none.
    fn accept(listener: &OwnedFd) -> Option<Client> {
        loop {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let connection = accept_with(listener, flags).ok()?;
            // Without the means to say who it is, it is left to itself.
            if let Ok(peer) = Peer::of(&connection) {
                return Some(Client { connection, peer, since: Instant::now() });
            }
        }
    }
}

fn serve(listeners: &[OwnedFd], stop: &OwnedFd, mut deliver: impl FnMut(Arrival)) {
    let mut clients: Vec<Client> = Vec::new();
    loop {
        let mut fds = vec![PollFd::new(stop, PollFlags::IN)];
        fds.extend(clients.iter().map(|c| PollFd::new(&c.connection, PollFlags::IN)));
        if clients.len() < MAX_CLIENTS {
            fds.extend(listeners.iter().map(|l| PollFd::new(l, PollFlags::IN)));
        }
        let patience = if clients.len() < MAX_CLIENTS { PATIENCE } else { PATIENCE_CROWDED };
        let oldest = clients.iter().map(|c| c.since.elapsed()).max();
        let timeout = oldest.map(|elapsed| timespec(patience.saturating_sub(elapsed)));
        if poll(&mut fds, timeout.as_ref()).is_err() {
            // Interrupted, or out of memory for a moment: nothing is known to be ready.
            continue;
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready[0] {
            return serve_rest(listeners, clients, deliver);
        }
        let now = Instant::now();
        let mut readable = ready[1..].iter();
        for client in std::mem::take(&mut clients) {
            if *readable.next().expect("one entry per client") {
                receive(client).into_iter().for_each(&mut deliver);
            } else if now - client.since >= patience {
                deliver(Arrival::Rejected { pid: client.peer.pid, reason: Rejection::Silent });
            } else {
                clients.push(client);
            }
        }
        for listener in listeners {
            while clients.len() < MAX_CLIENTS
                && let Some(client) = Client::accept(listener)
            {
                clients.push(client);
            }
        }
    }
}

/// Who has sent its message by now is served: processes that ended just before the recording did.
fn serve_rest(listeners: &[OwnedFd], mut clients: Vec<Client>, deliver: impl FnMut(Arrival)) {
    for listener in listeners {
        clients.extend(std::iter::from_fn(|| Client::accept(listener)));
    }
    let has_spoken = |client: &Client| {
        let mut fds = [PollFd::new(&client.connection, PollFlags::IN)];
        poll(&mut fds, Some(&timespec(Duration::ZERO))).is_ok_and(|ready| ready > 0)
    };
    clients.retain(has_spoken);
    clients.into_iter().filter_map(receive).for_each(deliver);
}

/// Reads the one message of a client. `None` when it hung up without one: another agent looks so whether
/// somebody listens here.
fn receive(client: Client) -> Option<Arrival> {
    let Client { connection, peer, .. } = client;
    let pid = peer.pid;
    let hello = hello(&connection).transpose()?;
    Some(
        match hello.and_then(|said| if pid > 0 { Ok(said) } else { Err(Rejection::Unidentified) }) {
            Ok((memfd, flags)) => Arrival::Registration(Registration {
                // A forked child does not wait for an answer, and what it has recorded outlives it.
                identity: peer.identify(),
                memfd,
                waits: flags & NO_ANSWER == 0,
                connection,
            }),
            Err(reason) => Arrival::Rejected { pid, reason },
        },
    )
}

/// Descriptor and flags of a well-formed [`Hello`]; `None` at the end of the connection.
fn hello(connection: &OwnedFd) -> Result<Option<(OwnedFd, u32)>, Rejection> {
    let mut bytes = [0u8; size_of::<Hello>() + 1];
    // Room for one descriptor (alignment may leave room for two); the kernel closes the rest, and says so.
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let message = recvmsg(connection, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags)
        .map_err(|e| Rejection::Broken(e.into()))?;
    if message.bytes == 0 {
        return Ok(None);
    }
    // Every descriptor that came is closed unless it is returned.
    let mut descriptors: Vec<OwnedFd> = ancillary
        .drain()
        .flat_map(|m| match m {
            RecvAncillaryMessage::ScmRights(fds) => fds.collect(),
            _ => Vec::new(),
        })
        .collect();
    let whole = message.bytes == size_of::<Hello>()
        && !message.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
    if !whole || bytes[..8] != MAGIC.to_ne_bytes() {
        return Err(Rejection::Rubbish);
    }
    let field = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let (version, flags) = (field(8), field(12));
    if version != VERSION {
        return Err(Rejection::Version(version));
    }
    match (descriptors.pop(), descriptors.is_empty()) {
        (Some(memfd), true) => Ok(Some((memfd, flags))),
        _ => Err(Rejection::Rubbish),
    }
}

fn timespec(d: Duration) -> Timespec {
    // Rounded up, so that a deadline has passed when `poll` returns.
    let d = d + Duration::from_nanos(1);
    Timespec { tv_sec: d.as_secs() as i64, tv_nsec: d.subsec_nanos().into() }
}

#[cfg(test)]
mod tests;
