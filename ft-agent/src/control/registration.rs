//! The registration socket.
//!
//! A process connects, sends one [`Hello`](ft_user::layout::Hello) with its memfd, waits for one
//! [`Reply`](ft_user::layout::Reply) and closes. Each connection is a task. It checks who speaks (the kernel says so) and the
//! form of the message; whoever gets the [`Registration`] checks the memfd and answers with [`Registration::accept`].
//!
//! Anybody may connect, as often as descriptors allow. So a connection that has not spoken needs a permit, of which each
//! process and each user has a share; who has no more of them loses the oldest. An honest client speaks at once: it needs
//! no permit. One that has said nothing for long ([`PATIENCE`]) is sent away. A process that is registered holds a place
//! until it is not recorded any more.

mod message;
mod silent;
mod turns;

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ft_user::layout::NO_ANSWER;
use rustix::fs::{Mode, chmod};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    socket_with,
};
use tokio::io::unix::AsyncFd;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinSet, yield_now};
use tokio::time::sleep;

use super::watched;
use crate::collect::arrivals::{Arrival, Intake};
use crate::collect::inspect::{Found, Inspected};
use crate::collect::peer::Peer;
use crate::collect::shares::Place;
use ft_trace::spool::frame::Refused;
use message::hello;
pub use message::{Door, Registration, Rejection, reply};
use silent::Silent;
use turns::Turns;

/// How long a client may stay silent: it may be preempted before it speaks.
const PATIENCE: Duration = Duration::from_secs(2);

/// Clients that wait in the kernel's queue; whoever comes when it is full goes on untraced. The kernel takes
/// 4096 at most (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;

/// How often it is tried to take the name of a socket that was left, while others do so, too.
const TRIES: usize = 16;

/// Connections that are accepted in one turn.
///
/// Limit: as `LOOKS_AT_ONCE` of `looks.rs`.
const ACCEPTED_AT_ONCE: usize = 128;

/// How long the first look at a process may delay its registration, of the half second that it waits at least.
const LOOK: Duration = Duration::from_millis(100);

/// How long to wait for a descriptor when there is none left.
const NO_DESCRIPTOR: Duration = Duration::from_millis(20);

/// Makes a listening socket at `path`, for every user. A socket that nobody listens to any more is
/// replaced. It has its name only once it listens: no other agent takes it for one that was left.
///
/// # Errors
///
/// `AddrInUse` when another agent listens there, `InvalidInput` when the path is too long, 100 bytes or more
/// (unix(7)); else what the kernel says.
pub fn listener(path: &Path) -> io::Result<OwnedFd> {
    let new = path.with_file_name(format!(".{:016x}", RandomState::new().build_hasher().finish()));
    let socket = unconnected()?;
    bind(&socket, &address(&new)?)?;
    // Recording a process of another user is the point; what it passes is not trusted anyway.
    let ready = chmod(&new, Mode::from_bits_retain(0o666)).and_then(|()| listen(&socket, BACKLOG));
    let named = ready.map_err(io::Error::from).and_then(|()| name(&new, path));
    // Its other name stays.
    let _ = fs::remove_file(&new);
    named.map(|()| socket)
}

/// Gives a socket that listens its name, unless another one that listens has it.
fn name(new: &Path, path: &Path) -> io::Result<()> {
    let address = address(path)?;
    for _ in 0..TRIES {
        match fs::hard_link(new, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            named => return named,
        }
        let found = inode(path);
        match connect(&unconnected()?, &address) {
            Err(Errno::CONNREFUSED) => {}
            Err(Errno::NOENT) => continue,
            _ => break,
        }
        // Since then another agent may have replaced it: what that has put there is put back.
        let aside = new.with_extension("old");
        if fs::rename(path, &aside).is_ok() {
            if inode(&aside) != found {
                let _ = fs::hard_link(&aside, path);
            }
            let _ = fs::remove_file(&aside);
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

/// What tells a file from others of its file system, while it is there.
pub fn inode(path: &Path) -> Option<u64> {
    Some(fs::symlink_metadata(path).ok()?.ino())
}

fn address(path: &Path) -> io::Result<SocketAddrUnix> {
    SocketAddrUnix::new(path).map_err(|_| io::ErrorKind::InvalidInput.into())
}

fn unconnected() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// The tasks that serve the sockets; dropped, it ends them at once.
#[derive(Debug)]
pub struct Server {
    over: watch::Sender<()>,
    accepting: JoinSet<()>,
}

impl Server {
    /// Serves `listeners`, and hands over who registers. To be called within [`run`](super::run).
    ///
    /// # Errors
    ///
    /// When the kernel cannot watch them.
    pub fn new(listeners: Vec<(OwnedFd, Door)>, intake: Arc<Intake>) -> io::Result<Server> {
        let desk = Arc::new(Desk::new(intake));
        let (over, is_over) = watch::channel(());
        let mut accepting = JoinSet::new();
        for (listener, door) in listeners {
            let listener = watched(listener)?;
            accepting.spawn(accept(listener, door, desk.clone(), is_over.clone()));
        }
        Ok(Server { over, accepting })
    }

    /// Ends it. Who has sent its message by now is served: processes that ended just before the recording did.
    pub async fn finish(self) {
        drop(self.over);
        self.accepting.join_all().await;
    }
}

/// Serves those who connect to a socket, until it is over.
async fn accept(
    listener: AsyncFd<OwnedFd>,
    door: Door,
    desk: Arc<Desk>,
    mut over: watch::Receiver<()>,
) {
    let mut clients = JoinSet::new();
    let serve = {
        let over = over.clone();
        move |clients: &mut JoinSet<()>, client| {
            clients.spawn(desk.clone().serve(client, over.clone()));
        }
    };
    loop {
        tokio::select! {
            _ = over.changed() => break,
            Some(_) = clients.join_next() => {}
            ready = listener.readable() => {
                let Ok(mut ready) = ready else { break };
                // Not without end: who has spoken must not wait for those that come.
                for _ in 0..ACCEPTED_AT_ONCE {
                    match Client::accept(listener.get_ref(), door) {
                        Ok(client) => serve(&mut clients, client),
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
        let Ok(client) = Client::accept(listener.get_ref(), door) else { break };
        serve(&mut clients, client);
    }
    clients.join_all().await;
}

struct Client {
    connection: OwnedFd,
    door: Door,
    peer: Peer,
}

impl Client {
    /// The next that waits.
    fn accept(listener: &OwnedFd, door: Door) -> Result<Client, Errno> {
        loop {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let connection = accept_with(listener, flags)?;
            // Without the means to say who it is, it is left to itself.
            if let Ok(peer) = Peer::of(&connection) {
                return Ok(Client { connection, door, peer });
            }
        }
    }
}

/// A message, the end of the connection, or why there is neither.
type Heard = Result<Option<(OwnedFd, u32)>, Rejection>;

/// What there is to read now; `None` when there is nothing yet.
fn heard(connection: &OwnedFd) -> Option<Heard> {
    match hello(connection) {
        Err(Rejection::Broken(e)) if e.kind() == io::ErrorKind::WouldBlock => None,
        heard => Some(heard),
    }
}

/// A registration, until it is handed over: by who has looked at the process, or by who waited for that long
/// enough.
type Slot = Arc<Mutex<Option<Registration>>>;

fn take(slot: &Slot) -> Option<Registration> {
    lock(slot).take()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nobody panics with a lock of this module in hand.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the connections share.
struct Desk {
    intake: Arc<Intake>,
    silent: Silent,
    turns: Turns,
}

impl Desk {
    fn new(intake: Arc<Intake>) -> Desk {
        let silent = Silent::new(intake.clients);
        Desk { intake, silent, turns: Turns::default() }
    }

    /// Hears a client, and registers it. One that hangs up without a message is forgotten: another agent looks so whether
    /// somebody listens here.
    async fn serve(self: Arc<Desk>, client: Client, mut over: watch::Receiver<()>) {
        let Client { connection, door, peer } = client;
        let (connection, heard) = match heard(&connection) {
            Some(heard) => (connection, heard),
            None => match self.wait(connection, &peer, &mut over).await {
                Ok(spoken) => spoken,
                Err(rejection) => return self.reject(&peer, &rejection),
            },
        };
        match heard {
            Err(rejection) => self.reject(&peer, &rejection),
            Ok(None) => {}
            Ok(Some(_)) if peer.pid <= 0 => self.reject(&peer, &Rejection::Unidentified),
            Ok(Some((memfd, flags))) => match self.intake.places.take(peer.uid, peer.is_first()) {
                None => self.reject(&peer, &Rejection::Full),
                Some(place) => {
                    let client = Client { connection, door, peer };
                    self.register(client, memfd, flags, place, over).await;
                }
            },
        }
    }

    /// Waits for the message of a client.
    async fn wait(
        &self,
        connection: OwnedFd,
        peer: &Peer,
        over: &mut watch::Receiver<()>,
    ) -> Result<(OwnedFd, Heard), Rejection> {
        let mut permit = self.silent.permit(peer).ok_or(Rejection::Crowded)?;
        let connection = watched(connection).map_err(Rejection::Broken)?;
        let patience = sleep(PATIENCE);
        tokio::pin!(patience);
        let why = loop {
            tokio::select! {
                ready = connection.readable() => {
                    let mut ready = ready.map_err(Rejection::Broken)?;
                    match heard(connection.get_ref()) {
                        None => ready.clear_ready(),
                        Some(heard) => return Ok((connection.into_inner(), heard)),
                    }
                }
                _ = &mut permit.dismissed => break Err(Rejection::Crowded),
                // Silence is no fault any more.
                _ = over.changed() => break Ok(None),
                () = &mut patience => break Err(Rejection::Silent),
            }
        };
        // It may have spoken a moment ago.
        let heard = heard(connection.get_ref()).unwrap_or(why);
        Ok((connection.into_inner(), heard))
    }

    /// Finds out who it is, and looks at it before it is handed over: a process that ends soon may be gone
    /// afterwards.
    async fn register(
        &self,
        Client { connection, door, peer }: Client,
        memfd: OwnedFd,
        flags: u32,
        place: Place,
        mut over: watch::Receiver<()>,
    ) {
        // A forked child does not wait for an answer, and what it has recorded outlives it.
        let (user, waits) = (peer.uid, flags & NO_ANSWER == 0);
        let subject = Arc::new(Inspected::new(peer.pid, user));
        let identity = self.turns.take(user, || peer.identify()).await;
        let (is_there, found) = (identity.has_number(), Found::default());
        let registration =
            Registration { identity, door, memfd, waits, connection, subject, found, place };
        if !is_there {
            return self.intake.push(user, Arrival::Registration(registration));
        }
        let slot: Slot = Arc::new(Mutex::new(Some(registration)));
        if let Some(done) = self.look_at(&slot, user) {
            tokio::select! {
                _ = done => {}
                () = sleep(LOOK) => {}
                _ = over.changed() => {}
            }
        }
        if let Some(registration) = take(&slot) {
            self.intake.push(user, Arrival::Registration(registration));
        }
    }

    /// Has a process looked at aside, which hands over its registration, unless that was not waited for; done when
    /// what is returned ends. `None` when there is no look.
    fn look_at(&self, slot: &Slot, user: u32) -> Option<oneshot::Receiver<()>> {
        let subject = lock(slot).as_ref()?.subject.clone();
        let (slot, intake) = (slot.clone(), self.intake.clone());
        let (done, is_done) = oneshot::channel();
        subject.begin();
        let given = self.intake.looks.give(user, {
            let subject = subject.clone();
            move || {
                let found = subject.introduce(&intake.files);
                subject.end();
                match take(&slot) {
                    // It was not waited for so long.
                    None => intake.locate_late(&subject),
                    Some(mut registration) => {
                        if registration.identity.has_number() {
                            registration.found = found;
                        }
                        intake.push(user, Arrival::Registration(registration));
                    }
                }
                drop(done);
            }
        });
        if !given {
            subject.end();
        }
        given.then_some(is_done)
    }

    fn reject(&self, peer: &Peer, reason: &Rejection) {
        let (uid, pid) = (peer.uid, peer.pid);
        let refused = || Refused {
            uid,
            pid,
            comm: peer.comm(),
            reason: reason.to_string(),
            count: 1,
            ..Refused::default()
        };
        self.intake.refusals.add(reason.kind(), uid, refused);
    }
}

#[cfg(test)]
mod tests;
