//! The reception: a process of its own that hears clients, so that the agent itself never closes what one of them has sent.
//!
//! A descriptor can take for ever to be closed: that of a TCP socket that lingers (socket(7), `SO_LINGER`), or of a file whose
//! server does not answer (FUSE, FLUSH), or of a pipe whose lock somebody holds. The kernel closes it in whoever has its last reference,
//! also within recvmsg(2), and where a connection is closed in which it still waits. So one of the threads for [`Looks`] reads what a client
//! has sent, of which each user has a share. The agent gets sealed memfds, and connections by which nothing can come any more. This process
//! is left behind if it does not end.
//!
//! Anybody may connect, as often as descriptors allow. So a connection that has not spoken needs a permit, of which each
//! process and each user has a share; who has no more of them loses the oldest. An honest client speaks at once: it needs
//! no permit. One that has said nothing for long ([`PATIENCE`]) is sent away.

use std::collections::HashMap;
use std::io::{self, IoSliceMut};
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use ft_user::layout::{Hello as Message, MAGIC, VERSION};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, Shutdown, SocketFlags,
    accept_with, recvmsg, shutdown, sockopt::set_socket_passcred,
};
use rustix::process::geteuid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinSet, spawn_blocking, yield_now};
use tokio::time::{sleep, timeout};

use super::super::looks::Looks;
use super::super::{run_with, watched};
use super::listen::BACKLOG;
use super::lock;
use super::message::{Door, Rejection};
use super::packet::{self, Hello, Told};
use super::silent::Silent;
use crate::collect::attach::prove;
use crate::collect::peer::Peer;

/// How long a client may stay silent: it may be preempted before it speaks.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long clients are heard after the end, in all.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// Connections that are accepted in one turn.
///
/// Limit: as `LOOKS_AT_ONCE` of `looks.rs`.
const ACCEPTED_AT_ONCE: usize = 128;

/// How long to wait for a descriptor when there is none left.
const NO_DESCRIPTOR: Duration = Duration::from_millis(20);

/// How long refused clients are counted before the agent is told of them.
const TOLD_AFTER: Duration = Duration::from_millis(100);

/// Clients that have not spoken yet, at most.
///
/// Limit: as `MAX_SOURCES` of `arrivals.rs`.
const MAX_SILENT: usize = 1 << 10;

/// Clients that wait to be heard, at most; half of them for one user alone: what comes while an agent stands still for some seconds.
///
/// Limit: as `MAX_SOURCES` of `arrivals.rs`.
const MAX_WAITING: usize = 1 << 16;

/// Clients that are heard at once, at most, each by a thread.
///
/// Limit: as `MAX_SOURCES` of `arrivals.rs`.
const MAX_HEARD: usize = 1 << 9;

/// Root and the user of the agent may have more than their share of the threads. Numbers of users are never changed here.
static FIRST: LazyLock<[u32; 2]> = LazyLock::new(|| [0, geteuid().as_raw()]);

/// How much a reception has of everything, by the descriptors that it may open.
#[derive(Clone, Copy)]
struct Limits {
    silent: usize,
    heard: usize,
    waiting: usize,
    /// Connections that nobody has time for, until a process of their own closes them: few of those, for they may never end.
    refused: usize,
}

impl Limits {
    fn of(descriptors: usize) -> Limits {
        Limits {
            silent: (descriptors / 16).clamp(4, MAX_SILENT),
            // Each may have ten open.
            heard: (descriptors / 64).clamp(2, MAX_HEARD),
            waiting: (descriptors / 4).min(MAX_WAITING),
            refused: descriptors / 8,
        }
    }
}

/// The life of the reception, which may open so many descriptors: it gets the listening sockets by `agent`, tells what clients say, and
/// ends when the agent hangs up, or is over. Who has sent its message by then is heard.
///
/// # Errors
///
/// When the kernel gives no descriptors.
pub(super) fn receive(
    agent: OwnedFd,
    descriptors: usize,
    is_over: impl AsyncFnOnce(),
) -> io::Result<()> {
    let listeners = packet::listeners(&agent)?;
    let limits = Limits::of(descriptors);
    run_with(limits.heard + 1, serve(listeners, agent, limits, is_over))?
}

async fn serve(
    listeners: Vec<(OwnedFd, Door)>,
    agent: OwnedFd,
    limits: Limits,
    agent_is_over: impl AsyncFnOnce(),
) -> io::Result<()> {
    let agents_end = watched(agent.try_clone()?)?;
    let reception = Arc::new(Reception::new(agent, limits));
    let sockets: Vec<OwnedFd> =
        listeners.iter().map(|(listener, _)| listener.try_clone()).collect::<Result<_, _>>()?;
    let (over, is_over) = watch::channel(());
    let mut accepting = JoinSet::new();
    for (listener, door) in listeners {
        let listener = watched(listener)?;
        accepting.spawn(accept(listener, door, reception.clone(), is_over.clone()));
    }
    drop(is_over);
    tokio::select! {
        // Nothing comes from there but its end.
        ready = agents_end.readable() => drop(ready?),
        () = agent_is_over() => {}
    }
    drop(over);
    let _ = timeout(ENDS_WITHIN, accepting.join_all()).await;
    // Threads that do not end keep the descriptors, but nobody is to wait for an answer any more.
    for socket in &sockets {
        let _ = shutdown(socket, Shutdown::Both);
    }
    let last = reception.clone();
    let _ = timeout(ENDS_WITHIN, spawn_blocking(move || last.tell_unheard(true))).await;
    let _ = shutdown(&reception.agent, Shutdown::Both);
    Ok(())
}

/// Hears those who connect to a socket, until it is over.
async fn accept(
    listener: AsyncFd<OwnedFd>,
    door: Door,
    reception: Arc<Reception>,
    mut over: watch::Receiver<()>,
) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            _ = over.changed() => break,
            Some(_) = clients.join_next() => {}
            ready = listener.readable() => {
                let Ok(mut ready) = ready else { break };
                // Not without end: who has spoken must not wait for those that come.
                for _ in 0..ACCEPTED_AT_ONCE {
                    match reception.accept(listener.get_ref(), door) {
                        Ok(client) => {
                            clients.spawn(reception.clone().serve(client, over.clone()));
                        }
                        Err(Errno::WOULDBLOCK) => {
                            ready.clear_ready();
                            break;
                        }
                        Err(_) => {
                            sleep(NO_DESCRIPTOR).await;
                            break;
                        }
                    }
                }
                yield_now().await;
            }
        }
    }
    // As many as the kernel's queue can hold; who comes later comes too late.
    for _ in 0..=BACKLOG {
        let Ok(client) = reception.accept(listener.get_ref(), door) else { break };
        clients.spawn(reception.clone().serve(client, over.clone()));
    }
    clients.join_all().await;
}

struct Client {
    connection: OwnedFd,
    door: Door,
    peer: Peer,
}

/// What clients share.
struct Reception {
    agent: OwnedFd,
    silent: Silent,
    looks: Looks,
    refused: Mutex<Refused>,
    limits: Limits,
}

#[derive(Default)]
struct Refused {
    /// Nobody may close them here.
    connections: Vec<OwnedFd>,
    /// By user.
    clients: HashMap<u32, Unheard>,
}

/// Clients of a user that nobody has heard.
#[derive(Default)]
struct Unheard {
    /// The newest.
    pid: i32,
    waiting: u32,
    /// Of whom the agent is still to be told.
    refused: u32,
}

impl Reception {
    /// To be called within a runtime.
    fn new(agent: OwnedFd, limits: Limits) -> Reception {
        let silent = Silent::new(limits.silent);
        let looks = Looks::of(Handle::current(), limits.heard, limits.waiting, &*FIRST);
        Reception { agent, silent, looks, refused: Mutex::default(), limits }
    }

    /// The next that waits.
    fn accept(&self, listener: &OwnedFd, door: Door) -> Result<Client, Errno> {
        loop {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let connection = accept_with(listener, flags)?;
            // Each message says who has sent it from now on, also an empty one (unix(7)), and the end does not. It cannot fail.
            let _ = set_socket_passcred(&connection, true);
            match Peer::of(&connection) {
                Ok(peer) => return Ok(Client { connection, door, peer }),
                // Without the means to say who it is, it is left to itself.
                Err(_) => self.refuse(connection, u32::MAX),
            }
        }
    }

    /// Hears a client. One that hangs up without a message is forgotten: another agent looks so whether somebody listens here.
    async fn serve(self: Arc<Reception>, client: Client, mut over: watch::Receiver<()>) {
        let Client { connection, door, peer } = client;
        let (connection, why) = match has_spoken(&connection) {
            true => (connection, Ok(())),
            false => self.wait(connection, &peer, &mut over).await,
        };
        let (user, pid) = (peer.uid, peer.pid);
        self.unheard(user, |clients| (clients.pid, clients.waiting) = (pid, clients.waiting + 1));
        let waiting = Arc::new(Mutex::new(Some(connection)));
        let (done, is_done) = oneshot::channel::<()>();
        let given = self.looks.give(user, {
            let (reception, waiting) = (self.clone(), waiting.clone());
            move || {
                let connection = lock(&waiting).take().expect("it is not refused");
                reception.hear(Client { connection, door, peer }, why);
                drop(done);
            }
        });
        if given {
            let _ = is_done.await;
        } else if let Some(connection) = { lock(&waiting).take() } {
            self.unheard(user, |clients| clients.waiting -= 1);
            self.refuse(connection, user);
            sleep(TOLD_AFTER).await;
            let reception = self.clone();
            let _ = spawn_blocking(move || reception.tell_unheard(false)).await;
        }
    }

    /// Changes what is known of a user's clients.
    fn unheard(&self, user: u32, change: impl FnOnce(&mut Unheard)) {
        let clients = &mut lock(&self.refused).clients;
        change(clients.entry(user).or_default());
        if clients.get(&user).is_some_and(|of| of.waiting == 0 && of.refused == 0) {
            clients.remove(&user);
        }
    }

    /// Tells the agent of those that were refused, and in the end of those that still wait.
    fn tell_unheard(&self, all: bool) {
        let mut told = Vec::new();
        lock(&self.refused).clients.retain(|&uid, clients| {
            let waiting = if all { std::mem::take(&mut clients.waiting) } else { 0 };
            let count = std::mem::take(&mut clients.refused) + waiting;
            if count > 0 {
                let peer = Peer { pid: clients.pid, uid, pidfd: None };
                let what = Err(Rejection::Unheard);
                told.push(Told { door: Door::Default, peer, count, what });
            }
            clients.waiting > 0
        });
        told.iter().for_each(|told| self.tell(told));
    }

    /// Waits for something to read, and says why there is nothing.
    async fn wait(
        &self,
        connection: OwnedFd,
        peer: &Peer,
        over: &mut watch::Receiver<()>,
    ) -> (OwnedFd, Result<(), Rejection>) {
        let Some(mut permit) = self.silent.permit(peer) else {
            return (connection, Err(Rejection::Crowded));
        };
        // SAFETY: an `OwnedFd` keeps its number until it is dropped.
        let watched = unsafe { AsyncFd::register_with_interest(connection, Interest::READABLE) };
        let connection = match watched {
            Ok(connection) => connection,
            Err(error) => {
                let (connection, error) = error.into_parts();
                return (connection, Err(Rejection::Broken(error)));
            }
        };
        let why = tokio::select! {
            ready = connection.readable() => ready.map(drop).map_err(Rejection::Broken),
            _ = &mut permit.dismissed => Err(Rejection::Crowded),
            // Silence is no fault any more.
            _ = over.changed() => Ok(()),
            () = sleep(PATIENCE) => Err(Rejection::Silent),
        };
        (connection.into_inner(), why)
    }

    /// Tells the agent what a client has sent by now, or why it is sent away. It may take for ever to close what came along.
    fn hear(&self, Client { connection, door, peer }: Client, why: Result<(), Rejection>) {
        let user = peer.uid;
        let (hello, rest) = match Letter::receive(&connection) {
            Ok(letter) => letter.open(),
            Err(Errno::WOULDBLOCK) => (why.err().map(Err), Vec::new()),
            Err(error) => (Some(Err(Rejection::Broken(error.into()))), Vec::new()),
        };
        let what = match hello {
            Some(Ok((memfd, flags))) => {
                close_way_in(&connection);
                Some(Ok(Hello { memfd, connection, flags }))
            }
            Some(Err(reason)) => Some(Err(reason)),
            None => None,
        };
        if let Some(what) = what {
            self.tell(&Told { door, peer, count: 1, what });
        }
        self.unheard(user, |clients| clients.waiting = clients.waiting.saturating_sub(1));
        drop(rest);
    }

    fn tell(&self, told: &Told) {
        // The kernel limits how many descriptors an ordinary user can have under way (unix(7), ETOOMANYREFS).
        while let Err(error) = packet::send(&self.agent, told)
            && matches!(error.raw_os_error(), Some(libc::ETOOMANYREFS | libc::EINTR))
        {
            std::thread::sleep(NO_DESCRIPTOR);
        }
    }

    /// Leaves a connection of a user to a process that ends at once, together with others.
    fn refuse(&self, connection: OwnedFd, user: u32) {
        self.unheard(user, |clients| clients.refused += 1);
        let connections = &mut lock(&self.refused).connections;
        connections.push(connection);
        if connections.len() >= self.limits.refused {
            // Otherwise once more with the next one.
            let _ = leave_to_child(connections);
        }
    }
}

/// Has a process of its own close these. What it closes by its end it does not wait for, as a rule: the kernel does not let a process linger
/// that ends (`tcp_close`, `PF_EXITING`), and asks a server nothing for a file that nobody has installed.
fn leave_to_child(connections: &mut Vec<OwnedFd>) -> io::Result<()> {
    let (wait, go) = io::pipe()?;
    // SAFETY: the child makes system calls only.
    match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {
            // Until it alone has them.
            drop(go);
            let _ = rustix::io::read(&wait, &mut [0; 1]);
            // SAFETY: nothing of this process's runs.
            unsafe { libc::_exit(0) }
        }
        _ => connections.clear(),
    }
    Ok(())
}

/// Whether there is something to read, or the client has hung up.
fn has_spoken(connection: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(connection, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Nothing can come by this connection any more, and nothing is left in it.
fn close_way_in(connection: &OwnedFd) {
    // It is connected, or has been.
    let _ = shutdown(connection, Shutdown::Read);
    while Letter::receive(connection).is_ok_and(|letter| !letter.is_end) {}
}

/// One message.
struct Letter {
    text: [u8; size_of::<Message>() + 1],
    bytes: usize,
    /// There is none any more.
    is_end: bool,
    is_whole: bool,
    descriptors: Vec<OwnedFd>,
}

/// A sealed memfd and its flags, or what is wrong; `None` at the end of the connection.
type Opened = Option<Result<(OwnedFd, u32), Rejection>>;

impl Letter {
    /// The next. Never waits, but for the closing of descriptors beyond those few that it has room for.
    fn receive(connection: &OwnedFd) -> Result<Letter, Errno> {
        let mut text = [0; size_of::<Message>() + 1];
        let mut space =
            [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8), ScmCredentials(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let message = recvmsg(connection, &mut [IoSliceMut::new(&mut text)], &mut control, flags)?;
        let (mut descriptors, mut is_end) = (Vec::new(), true);
        for part in control.drain() {
            is_end = false;
            if let RecvAncillaryMessage::ScmRights(received) = part {
                descriptors.extend(received);
            }
        }
        let is_whole = !message.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
        Ok(Letter { text, bytes: message.bytes, is_end, is_whole, descriptors })
    }

    /// What it says, and the descriptors that nobody needs.
    fn open(mut self) -> (Opened, Vec<OwnedFd>) {
        if self.is_end {
            return (None, self.descriptors);
        }
        let field =
            |at: usize| u32::from_ne_bytes(self.text[at..at + 4].try_into().expect("four bytes"));
        let (version, flags) = (field(8), field(12));
        let is_hello = self.is_whole
            && self.bytes == size_of::<Message>()
            && self.text[..8] == MAGIC.to_ne_bytes();
        let wrong = match self.descriptors[..] {
            _ if !is_hello => Rejection::Rubbish,
            _ if version != VERSION => Rejection::Version(version),
            // A memfd takes no other time than its memory, and has no name.
            [ref memfd] => match prove(memfd.as_fd()) {
                Ok(()) => {
                    let memfd = self.descriptors.pop().expect("one");
                    return (Some(Ok((memfd, flags))), Vec::new());
                }
                Err(refusal) => Rejection::Unfit(refusal),
            },
            _ => Rejection::Rubbish,
        };
        (Some(Err(wrong)), self.descriptors)
    }
}
