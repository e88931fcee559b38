//! The registration socket.
//!
//! A process connects, sends one [`Hello`](ft_user::layout::Hello) with its memfd, waits for one
//! [`Reply`](ft_user::layout::Reply) and closes. One thread serves all: it never waits for a single client, and drops
//! one that has said nothing for long (`PATIENCE`). It checks who speaks (the kernel says so) and the form of the
//! message; the memfd is checked by whoever gets the [`Registration`], and answered with [`Registration::accept`].
//!
//! Anybody may connect, as often as descriptors allow. So a connection that has not spoken holds a place, of
//! which each process and each user has a share; who has no more of them loses the oldest. An honest client
//! speaks at once: it waits for none, and is not the oldest for long. A process that is registered holds a
//! place, too, until it is not recorded any more.

mod message;

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ft_user::layout::NO_ANSWER;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{Mode, chmod};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    socket_with,
};

use super::arrivals::{Arrival, Intake};
use super::fair_queue::FairQueue;
use super::inspect::{Found, Inspected};
use super::peer::Peer;
use super::shares::{Place, Shares};
use crate::threads;
use ft_trace::spool::frame::Refused;
use message::hello;
pub use message::{Registration, Rejection, reply};

/// How long a client may stay silent: it may be preempted before it speaks.
const PATIENCE: Duration = Duration::from_secs(2);

/// Clients that wait in the kernel's queue; whoever comes when it is full goes on untraced. The kernel takes
/// 4096 at most (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;

/// Silent connections of one process.
const MAX_OF_PROCESS: usize = 8;

/// Connections that are accepted in one turn, and how long who has spoken is registered in it.
const ACCEPTED_AT_ONCE: usize = 128;
const TURN: Duration = Duration::from_millis(2);

/// How long the first look at a process may delay its registration, of the half second that it waits at least.
const LOOK: Duration = Duration::from_millis(100);

/// From look to look at the workers while somebody waits for one.
const TEND: Duration = Duration::from_millis(20);

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
    /// Serves `listeners`, and hands over who registers.
    ///
    /// # Errors
    ///
    /// When the thread or its means of waking cannot be made.
    pub fn spawn(listeners: Vec<OwnedFd>, intake: Arc<Intake>) -> io::Result<Server> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        let stopped = stop.try_clone()?;
        let thread = threads::spawn("ft-register", move || {
            // Before whatever keeps the CPUs busy: processes wait for it.
            threads::raise();
            Serving::new(intake).serve(&listeners, &stopped);
        })?;
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

/// A registration, until it is handed over: by who has looked at the process, or by who waited for that long
/// enough.
type Slot = Arc<Mutex<Option<Registration>>>;

fn take(slot: &Slot) -> Option<Registration> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// A client with a well-formed message.
struct Spoken {
    client: Client,
    memfd: OwnedFd,
    flags: u32,
    place: Place,
}

struct Serving {
    intake: Arc<Intake>,
    /// Who has not spoken yet, the oldest first.
    clients: Vec<Client>,
    /// Their places.
    silent: Shares<u32>,
    /// Who has spoken, and is to be registered. Users take turns: to find out about one takes longer than to
    /// connect.
    spoken: FairQueue<Spoken>,
    /// Who is looked at, and until when that is waited for.
    looked_at: Vec<(Slot, Instant)>,
}

impl Serving {
    fn new(intake: Arc<Intake>) -> Serving {
        let silent = Shares::new(intake.clients);
        let (clients, looked_at) = (Vec::new(), Vec::new());
        Serving { intake, clients, silent, spoken: FairQueue::default(), looked_at }
    }

    fn serve(mut self, listeners: &[OwnedFd], stop: &OwnedFd) {
        let mut is_behind = false;
        loop {
            let mut fds = vec![PollFd::new(stop, PollFlags::IN)];
            fds.extend(listeners.iter().map(|l| PollFd::new(l, PollFlags::IN)));
            fds.extend(self.clients.iter().map(|c| PollFd::new(&c.connection, PollFlags::IN)));
            let oldest = self.clients.first().map(|c| PATIENCE.saturating_sub(c.since.elapsed()));
            let look = (!self.looked_at.is_empty()).then_some(TEND);
            let turn = is_behind.then_some(Duration::ZERO);
            let timeout = oldest.into_iter().chain(look).chain(turn).min().map(timespec);
            if poll(&mut fds, timeout.as_ref()).is_err() {
                // Interrupted, or out of memory for a moment: nothing is known to be ready.
                continue;
            }
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            if ready[0] {
                return self.serve_rest(listeners);
            }
            self.hear(&ready[1 + listeners.len()..]);
            for listener in listeners {
                // Not without end: who has spoken must not wait for those that come.
                for _ in 0..ACCEPTED_AT_ONCE {
                    let Some(client) = Client::accept(listener) else { break };
                    self.admit(client);
                }
            }
            is_behind = !self.register_until(Instant::now() + TURN);
            self.hand_over(Instant::now());
        }
    }

    /// Who has sent its message by now is served: processes that ended just before the recording did.
    fn serve_rest(mut self, listeners: &[OwnedFd]) {
        for listener in listeners {
            // As many as the kernel's queue can hold; who comes later comes too late.
            for _ in 0..=BACKLOG {
                let Some(client) = Client::accept(listener) else { break };
                self.admit(client);
            }
        }
        for client in std::mem::take(&mut self.clients) {
            // Silence is no fault any more.
            let _ = self.receive(client);
        }
        while let Some(spoken) = self.spoken.pop() {
            self.register(spoken);
        }
        self.hand_over(Instant::now() + LOOK);
    }

    /// Hears the clients that have something to say, and gives up on those that were silent for too long.
    fn hear(&mut self, has_spoken: &[bool]) {
        for (client, &has_spoken) in std::mem::take(&mut self.clients).into_iter().zip(has_spoken) {
            let is_late = client.since.elapsed() >= PATIENCE;
            if !has_spoken && !is_late {
                self.clients.push(client);
                continue;
            }
            self.silent.give_back(client.peer.uid);
            if let Err(client) = self.receive(client) {
                self.reject(&client.peer, &Rejection::Silent);
            }
        }
    }

    /// Hears who has just come, or gives it a place to wait in.
    fn admit(&mut self, client: Client) {
        let Err(client) = self.receive(client) else { return };
        let (pid, uid) = (client.peer.pid, client.peer.uid);
        let of_process = self.clients.iter().filter(|c| c.peer.pid == pid).count();
        if of_process >= MAX_OF_PROCESS {
            self.dismiss_oldest(|c| c.peer.pid == pid);
        }
        while !self.silent.take(uid, client.peer.is_first()) {
            if !self.dismiss_oldest(|c| c.peer.uid == uid) {
                return self.reject(&client.peer, &Rejection::Crowded);
            }
        }
        self.clients.push(client);
    }

    /// Takes the place of the oldest of these clients; false when there is none.
    fn dismiss_oldest(&mut self, is_one: impl Fn(&Client) -> bool) -> bool {
        let Some(at) = self.clients.iter().position(is_one) else { return false };
        let client = self.clients.remove(at);
        self.silent.give_back(client.peer.uid);
        // It may have spoken a moment ago.
        if let Err(client) = self.receive(client) {
            self.reject(&client.peer, &Rejection::Crowded);
        }
        true
    }

    /// Reads the one message of a client; gives it back when there is none yet. One that hung up without a
    /// message is forgotten: another agent looks so whether somebody listens here.
    fn receive(&mut self, client: Client) -> Result<(), Client> {
        match hello(&client.connection) {
            Err(Rejection::Broken(e)) if e.kind() == io::ErrorKind::WouldBlock => {
                return Err(client);
            }
            Err(reason) => self.reject(&client.peer, &reason),
            Ok(None) => {}
            Ok(Some(_)) if client.peer.pid <= 0 => {
                self.reject(&client.peer, &Rejection::Unidentified);
            }
            Ok(Some((memfd, flags))) => {
                let user = client.peer.uid;
                match self.intake.places.take(user, client.peer.is_first()) {
                    Some(place) => self.spoken.push(user, Spoken { client, memfd, flags, place }),
                    None => self.reject(&client.peer, &Rejection::Full),
                }
            }
        }
        Ok(())
    }

    /// Registers who has spoken, until then; whether that were all.
    fn register_until(&mut self, until: Instant) -> bool {
        while let Some(spoken) = self.spoken.pop() {
            self.register(spoken);
            if Instant::now() >= until {
                return false;
            }
        }
        true
    }

    /// Finds out who it is, and looks at it before it is handed over: a process that ends soon may be gone
    /// afterwards.
    fn register(&mut self, spoken: Spoken) {
        let Spoken { client: Client { connection, peer, .. }, memfd, flags, place } = spoken;
        let (user, waits) = (peer.uid, flags & NO_ANSWER == 0);
        let subject = Arc::new(Inspected::new(peer.pid, user));
        // A forked child does not wait for an answer, and what it has recorded outlives it.
        let (identity, found) = (peer.identify(), Found::default());
        let is_there = identity.has_number();
        let registration =
            Registration { identity, memfd, waits, connection, subject, found, place };
        if is_there {
            self.look_at(registration, user);
        } else {
            self.intake.push(user, Arrival::Registration(registration));
        }
    }

    fn look_at(&mut self, registration: Registration, user: u32) {
        let (subject, intake) = (registration.subject.clone(), self.intake.clone());
        let slot: Slot = Arc::new(Mutex::new(Some(registration)));
        let looked_at = slot.clone();
        subject.begin();
        let given = self.intake.workers.give(user, {
            let subject = subject.clone();
            move || {
                let found = subject.introduce(&intake.files);
                subject.end();
                match take(&looked_at) {
                    // It was not waited for so long.
                    None => intake.locate_late(&subject),
                    Some(mut registration) => {
                        if registration.identity.has_number() {
                            registration.found = found;
                        }
                        intake.push(user, Arrival::Registration(registration));
                    }
                }
            }
        });
        if given {
            self.looked_at.push((slot, Instant::now() + LOOK));
        } else {
            subject.end();
            if let Some(registration) = take(&slot) {
                self.intake.push(user, Arrival::Registration(registration));
            }
        }
    }

    /// Hands over those whose look takes too long at `now`, and those of which there is none.
    fn hand_over(&mut self, now: Instant) {
        let intake = &self.intake;
        self.looked_at.retain(|(slot, until)| {
            if now < *until {
                return slot.lock().unwrap_or_else(PoisonError::into_inner).is_some();
            }
            if let Some(registration) = take(slot) {
                let user = registration.subject.user();
                intake.push(user, Arrival::Registration(registration));
            }
            false
        });
        if !self.looked_at.is_empty() {
            self.intake.workers.tend();
        }
    }

    fn reject(&self, peer: &Peer, reason: &Rejection) {
        let (uid, pid) = (peer.uid, peer.pid);
        let refused = || Refused {
            uid,
            pid,
            comm: peer.comm(),
            reason: reason.to_string(),
            is_recorded: false,
            count: 1,
        };
        self.intake.refusals.add(reason.kind(), uid, refused);
    }
}

fn timespec(d: Duration) -> Timespec {
    // Rounded up, so that a deadline has passed when `poll` returns.
    let d = d + Duration::from_nanos(1);
    Timespec { tv_sec: d.as_secs() as i64, tv_nsec: d.subsec_nanos().into() }
}

#[cfg(test)]
mod tests;
