//! The registration socket.
//!
//! A process connects, sends one [`Hello`](ft_user::layout::Hello) with its memfd, waits for one
//! [`Reply`](ft_user::layout::Reply) and closes. The [`reception`], a process of its own, hears it, and checks who speaks (the
//! kernel says so) and the form of the message; here the process is looked at. Whoever gets the [`Registration`] checks the memfd
//! and answers with [`Registration::accept`]. A process that is registered holds a place until it is not recorded any more.

mod listen;
mod message;
mod packet;
mod reception;
mod silent;
mod turns;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ft_user::layout::NO_ANSWER;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use rustix::process::Signal;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::watched;
use crate::collect::arrivals::{Arrival, Intake};
use crate::collect::inspect::{Found, Inspected};
use crate::collect::later::Later;
use crate::collect::peer::Peer;
use crate::collect::shares::Place;
use ft_trace::helper::Helper;
use ft_trace::spool::frame::Refused;
pub use listen::{inode, listener};
pub use message::{Door, Registration, Rejection, reply};
use packet::{Hello, Told};
use turns::Turns;

/// The kind of a helper that does nothing but [`serve`].
pub const RECEIVES: &str = "receive-registrations";

/// How long the first look at a process may delay its registration, of the half second that it waits at least.
const LOOK: Duration = Duration::from_millis(100);

/// How long the reception may take to end. It takes no longer, unless the machine is very busy or somebody keeps it.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// The whole life of a reception, whose standard input is the socket of its agent.
///
/// # Errors
///
/// When the kernel gives no descriptors.
pub fn serve() -> io::Result<()> {
    // Nobody asks how its children ended.
    crate::inherited::ignore(libc::SIGCHLD);
    let _ = rustix::thread::set_name(c"ft-reception");
    // A thread of an agent that was killed may be left, and keep its descriptors. Who has ended by now has hung up.
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    let agent = io::stdin().as_fd().try_clone_to_owned()?;
    reception::receive(agent, descriptors(), async || match signal(SignalKind::terminate()) {
        Ok(mut ended) => drop(ended.recv().await),
        Err(_) => std::future::pending().await,
    })
}

/// Descriptors that this process may open.
fn descriptors() -> usize {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX)
}

/// The reception of a recording, and the task that goes on with what it tells; dropped, it ends them.
#[derive(Debug)]
pub struct Server {
    over: watch::Sender<()>,
    reception: OwnedFd,
    registering: JoinSet<()>,
    _process: Option<Helper>,
}

impl Server {
    /// Serves `listeners`, and hands over who registers. To be called within [`run`](super::run). Where no
    /// [`helper`](ft_trace::helper) can be started, a thread of this process is the reception, which is good for tests.
    ///
    /// # Errors
    ///
    /// When the kernel gives no process or descriptors.
    pub fn new(listeners: Vec<(OwnedFd, Door)>, intake: Arc<Intake>) -> io::Result<Server> {
        Server::with(listeners, intake, descriptors())
    }

    /// A thread may open so many descriptors.
    fn with(
        listeners: Vec<(OwnedFd, Door)>,
        intake: Arc<Intake>,
        descriptors: usize,
    ) -> io::Result<Server> {
        let pair =
            || socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (reception, theirs) = pair()?;
        packet::send_listeners(&reception, &listeners)?;
        let for_thread = theirs.try_clone()?;
        let process = Helper::start(RECEIVES, theirs)?;
        if process.is_none() {
            crate::threads::spawn("ft-reception", move || {
                // Its end is seen.
                let _ = reception::receive(for_thread, descriptors, std::future::pending);
            })?;
        }
        let told = watched(reception.try_clone()?)?;
        let desk = Arc::new(Desk { intake, turns: Turns::default() });
        let (over, is_over) = watch::channel(());
        let mut registering = JoinSet::new();
        registering.spawn(register_all(told, desk, is_over));
        Ok(Server { over, reception, registering, _process: process })
    }

    /// Ends it. Who has sent its message by now is served: processes that ended just before the recording did.
    pub async fn finish(mut self) {
        drop(self.over);
        // It may have ended.
        let _ = shutdown(&self.reception, Shutdown::Write);
        let all = async { while self.registering.join_next().await.is_some() {} };
        let _ = timeout(ENDS_WITHIN, all).await;
    }
}

/// Registers who is told of by the reception, until that ends.
async fn register_all(reception: AsyncFd<OwnedFd>, desk: Arc<Desk>, over: watch::Receiver<()>) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = clients.join_next() => {}
            ready = reception.readable() => {
                let Ok(mut ready) = ready else { break };
                match packet::receive(reception.get_ref()) {
                    Ok(Some(told)) => {
                        clients.spawn(desk.clone().serve(told, over.clone()));
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                    Ok(None) | Err(_) => break,
                }
            }
        }
    }
    if over.has_changed().is_ok() {
        desk.intake.refusals.add("reception", 0, || Refused {
            reason: "the process that hears registrations has ended; no program that began \
                     afterwards could register"
                .into(),
            count: 1,
            ..Refused::default()
        });
    }
    clients.join_all().await;
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

/// What registrations share.
struct Desk {
    intake: Arc<Intake>,
    turns: Turns,
}

impl Desk {
    /// Registers a client, or counts why not.
    async fn serve(self: Arc<Desk>, told: Told, over: watch::Receiver<()>) {
        let Told { door, peer, count, what } = told;
        match what {
            Err(rejection) => self.reject(&peer, &rejection, count),
            Ok(_) if peer.pid <= 0 => self.reject(&peer, &Rejection::Unidentified, count),
            Ok(hello) => match self.intake.places.take(peer.uid, peer.is_first()) {
                None => self.reject(&peer, &Rejection::Full, count),
                Some(place) => self.register(door, peer, hello, place, over).await,
            },
        }
    }

    /// Finds out who it is, and looks at it before it is handed over: a process that ends soon may be gone
    /// afterwards.
    async fn register(
        &self,
        door: Door,
        peer: Peer,
        Hello { memfd, connection, flags }: Hello,
        place: Place,
        mut over: watch::Receiver<()>,
    ) {
        // A forked child does not wait for an answer, and what it has recorded outlives it.
        let (user, waits) = (peer.uid, flags & NO_ANSWER == 0);
        let subject = Arc::new(Inspected::new(peer.pid, user));
        let identity = self.turns.take(user, || peer.identify()).await;
        let (is_there, found) = (identity.has_number(), Found::default());
        let memfd = Later::new(memfd);
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

    fn reject(&self, peer: &Peer, reason: &Rejection, count: u32) {
        let (uid, pid) = (peer.uid, peer.pid);
        let refused = || Refused {
            uid,
            pid,
            comm: peer.comm(),
            reason: reason.to_string(),
            has_not_asked: reason.has_not_asked(),
            count: 1,
            ..Refused::default()
        };
        self.intake.refusals.add_many(reason.kind(), uid, count.into(), refused);
    }
}

#[cfg(test)]
mod tests;
