//! The server against clients of every kind.

use std::fs;
use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use ft_user::layout::{MAGIC, MAX_REPLY_BYTES, Reply, SEALS, VERSION};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, accept, bind,
    connect, recv, sendmsg, socket_with,
};

use super::super::{handle, run};
use super::listen::{address, unconnected};
use super::silent::MAX_OF_PROCESS;
use super::*;
use crate::collect::attach::Refusal;
use crate::threads::Bell;

fn client(path: &Path) -> OwnedFd {
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    let socket = socket.unwrap();
    connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    socket
}

struct Fixture {
    _dir: tempfile::TempDir,
    path: PathBuf,
    intake: Arc<Intake>,
    /// Dropped, it ends the server.
    over: oneshot::Sender<()>,
    serving: std::thread::JoinHandle<()>,
}

impl Fixture {
    fn new() -> Fixture {
        Fixture::with(intake(1 << 16))
    }

    fn with(intake: Arc<Intake>) -> Fixture {
        Fixture::visited_before(intake, 1 << 16, |_| ())
    }

    /// Clients come before anybody is there to hear them.
    fn visited_before(
        intake: Arc<Intake>,
        descriptors: usize,
        visit: impl FnOnce(&Path),
    ) -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.sock");
        // Who waits here looks every 10 ms.
        intake.wake(Bell::new().unwrap());
        let listener = listener(&path).unwrap();
        visit(&path);
        let (over, is_over) = oneshot::channel();
        let serving = intake.clone();
        let serve = async move {
            let listeners = vec![(listener, Door::Default)];
            let server = Server::with(listeners, serving, descriptors).unwrap();
            let _ = is_over.await;
            server.finish().await;
        };
        let serving = std::thread::spawn(|| run(serve).unwrap());
        Fixture { _dir: dir, path, intake, over, serving }
    }

    /// Ends the server, and waits for it.
    fn finish(self) {
        drop(self.over);
        self.serving.join().unwrap();
    }

    fn connect(&self) -> OwnedFd {
        client(&self.path)
    }

    fn registration(&self) -> Registration {
        loop {
            match self.intake.pop() {
                Some(Arrival::Registration(registration)) => return registration,
                // Of a look before that was not waited for.
                Some(Arrival::Located(_)) => {}
                Some(other) => panic!("{other:?}"),
                None => std::thread::park_timeout(Duration::from_millis(10)),
            }
        }
    }

    fn register(&self) -> (OwnedFd, Registration) {
        let client = self.connect();
        send_hello(&client);
        (client, self.registration())
    }

    /// The next that was refused for a reason that was not told before.
    fn refused(&self) -> Refused {
        loop {
            if let Some(refused) = self.intake.refusals.take_grown().pop() {
                return refused;
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    /// Waits until this many were refused for this reason.
    fn refused_times(&self, reason: &Rejection, times: u64) {
        loop {
            let refused = self.refused();
            assert_eq!(refused.reason, reason.to_string());
            if refused.count >= times {
                return;
            }
        }
    }
}

fn intake(descriptors: usize) -> Arc<Intake> {
    Intake::new(descriptors, handle())
}

fn is_closed(client: &OwnedFd) -> bool {
    recv(client, &mut [0; 1], RecvFlags::empty()).unwrap().0 == 0
}

fn send_hello(client: &OwnedFd) {
    send_with(client, &message(MAGIC, VERSION), &[memfd().as_fd()]);
}

/// One with all seals.
fn memfd() -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memfd = memfd_create("of a test", flags).unwrap();
    fcntl_add_seals(&memfd, SealFlags::from_bits_retain(SEALS)).unwrap();
    memfd
}

fn message(magic: u64, version: u32) -> Vec<u8> {
    let mut bytes = magic.to_ne_bytes().to_vec();
    bytes.extend(version.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes
}

fn send_with(socket: &OwnedFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(12))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(fds)));
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::empty()).unwrap();
}

#[test]
fn a_process_registers_and_is_told_what_to_enable() {
    let f = Fixture::new();
    let (client, registration) = f.register();
    assert_eq!(registration.identity.pid, std::process::id() as i32);
    assert!(registration.found.mappings.is_some() && !registration.found.threads.is_empty());
    registration.accept(&["lock.*".into(), "db.query".into()]).unwrap();
    let mut answer = [0; MAX_REPLY_BYTES];
    let (bytes, _) = recv(&client, &mut answer[..], RecvFlags::empty()).unwrap();
    assert_eq!(answer[..8], MAGIC.to_ne_bytes());
    assert_eq!(answer[12..16], 15u32.to_ne_bytes());
    assert_eq!(&answer[16..bytes], b"lock.*\ndb.query");
}

#[test]
fn who_has_spoken_before_the_end_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent.sock");
    let listener = listener(&path).unwrap();
    let clients: Vec<_> = (0..MAX_OF_PROCESS + 8).map(|_| client(&path)).collect();
    clients[1..].iter().for_each(send_hello);
    let intake = intake(1 << 16);
    run(async {
        Server::new(vec![(listener, Door::Default)], intake.clone()).unwrap().finish().await
    })
    .unwrap();
    let arrivals = std::iter::from_fn(|| intake.pop());
    let registrations = arrivals.filter(|it| matches!(it, Arrival::Registration(_)));
    assert_eq!(registrations.count(), clients.len() - 1);
    assert!(intake.refusals.take_grown().is_empty());
}

#[test]
fn rubbish_is_sent_away() {
    let f = Fixture::new();
    let (memfd, file) = (memfd(), tempfile::tempfile().unwrap());
    let fd = memfd.as_fd();
    let rubbish = Rejection::Rubbish.to_string();
    let check = |bytes: &[u8], fds: &[BorrowedFd<'_>], expected: &str| {
        let client = f.connect();
        send_with(&client, bytes, fds);
        let refused = f.refused();
        assert_eq!(refused.reason, expected, "{bytes:?}");
        assert_eq!(refused.pid, std::process::id() as i32);
        assert!(is_closed(&client));
    };
    let good = message(MAGIC, VERSION);
    check(b"GET / HTTP/1.1", &[fd], &rubbish);
    check(b"x", &[], &rubbish);
    check(&good[..15], &[fd], &rubbish);
    check(&[good.clone(), vec![0]].concat(), &[fd], &rubbish);
    check(&vec![0xff; 60_000], &[fd], &rubbish);
    check(&message(!MAGIC, VERSION), &[fd], &rubbish);
    check(&good, &[], &rubbish);
    check(&good, &[fd, fd], &rubbish);
    let unsealed = memfd_create("of a test", MemfdFlags::CLOEXEC).unwrap();
    check(&good, &[unsealed.as_fd()], &Rejection::Unfit(Refusal::Seals(1)).to_string());
    check(&good, &[file.as_fd()], &Rejection::Unfit(Refusal::NotMemory).to_string());
    check(&message(MAGIC, 77), &[fd], &Rejection::Version(77).to_string());
}

#[test]
fn a_process_that_connects_without_end_loses_its_oldest_connections() {
    let f = Fixture::new();
    let silent: Vec<_> = (0..MAX_OF_PROCESS + 8).map(|_| f.connect()).collect();
    f.refused_times(&Rejection::Crowded, 8);
    assert!(silent[..8].iter().all(is_closed));
    // Who is not the oldest is still heard, and so is who comes now.
    send_hello(silent.last().unwrap());
    f.registration();
    f.register();
    f.refused_times(&Rejection::Silent, MAX_OF_PROCESS as u64 - 1);
}

#[test]
fn a_message_without_end_of_descriptors_leaves_none_open() {
    let f = Fixture::new();
    let file = tempfile::tempfile().unwrap();
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let check = |count: usize| {
        let client = f.connect();
        let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let fds = vec![file.as_fd(); count];
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&fds)));
        let message = message(MAGIC, VERSION);
        let parts = [IoSlice::new(&message)];
        sendmsg(&client, &parts, &mut ancillary, SendFlags::empty()).unwrap();
        assert_eq!(f.refused().reason, Rejection::Rubbish.to_string());
        assert!(is_closed(&client));
    };
    check(2);
    let before = descriptors();
    (0..20).for_each(|_| check(253));
    // Other tests of this process open some, too, but not as many.
    assert!(descriptors() < before + 1000);
}

/// A connection whose end nobody reads: it lingers for an hour when it is closed.
fn lingering() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (other, _) = listener.accept().unwrap();
    set_socket_linger(&one, Some(Duration::from_secs(3600))).unwrap();
    one.set_nonblocking(true).unwrap();
    while one.write(&[0; 1 << 16]).is_ok() {}
    (one, other)
}

/// Alone, behind a good message, behind an empty one, more than there is room for, and in a connection that was closed.
#[test]
fn descriptors_that_take_for_ever_to_be_closed_keep_nobody_waiting() {
    let (mut unread, mut clients) = (Vec::new(), Vec::new());
    let mut send = |client: &OwnedFd, count: usize| {
        let (sent, others): (Vec<_>, Vec<_>) = (0..count).map(|_| lingering()).unzip();
        let fds: Vec<_> = sent.iter().map(AsFd::as_fd).collect();
        send_with(client, &message(MAGIC, VERSION), &fds);
        unread.extend(others);
    };
    let f = Fixture::visited_before(intake(1 << 16), 1 << 16, |path| {
        let [alone, behind, empty, many, closed] = std::array::from_fn(|_| client(path));
        send(&alone, 1);
        send_hello(&behind);
        send(&behind, 1);
        send_hello(&empty);
        send_with(&empty, &[], &[]);
        send(&empty, 1);
        send(&many, 12);
        send(&closed, 1);
        clients.extend([alone, behind, empty, many]);
    });
    for _ in 0..3 {
        f.register();
    }
    f.finish();
}

/// With two threads, sixteen places in the queue, and processes that close eight connections.
#[test]
fn who_is_not_heard_is_counted() {
    const CLIENTS: u64 = 40;
    let mut all = Vec::new();
    let intake = intake(1 << 16);
    let f = Fixture::visited_before(intake.clone(), 64, |path| {
        for _ in 0..CLIENTS {
            let (client, (sent, unread)) = (client(path), lingering());
            send_with(&client, &message(MAGIC, VERSION), &[sent.as_fd()]);
            all.push((client, unread));
        }
    });
    f.finish();
    let refused = intake.refusals.take_grown();
    let times = |reason: Rejection| {
        let reason = reason.to_string();
        refused.iter().find(|refused| refused.reason == reason).map_or(0, |refused| refused.count)
    };
    let (heard, unheard) = (times(Rejection::Unfit(Refusal::NotMemory)), times(Rejection::Unheard));
    assert_eq!(heard + unheard, CLIENTS);
    assert!(unheard > CLIENTS / 2, "{unheard}");
}

#[test]
fn nothing_comes_by_a_connection_that_was_heard() {
    let f = Fixture::new();
    let (client, registration) = f.register();
    let sent = sendmsg(
        &client,
        &[IoSlice::new(b"more")],
        &mut SendAncillaryBuffer::default(),
        SendFlags::NOSIGNAL,
    );
    assert_eq!(sent, Err(rustix::io::Errno::PIPE));
    let mut rest = [0; 1];
    assert_eq!(recv(&registration.connection, &mut rest, RecvFlags::DONTWAIT).unwrap().0, 0);
    registration.accept(&[]).unwrap();
    assert_eq!(recv(&client, &mut [0; 99], RecvFlags::empty()).unwrap().0, size_of::<Reply>());
}

#[test]
fn places_are_given_back_when_who_has_one_is_not_recorded_any_more() {
    // Two places.
    let f = Fixture::with(intake(8 * 3));
    let recorded: Vec<_> = (0..5).map(|_| f.register()).collect();
    let client = f.connect();
    send_hello(&client);
    assert_eq!(f.refused().reason, Rejection::Full.to_string());
    assert!(is_closed(&client));
    drop(recorded);
    f.register();
}

#[test]
fn a_look_that_does_not_end_delays_nobody() {
    let f = Fixture::new();
    let user = rustix::process::geteuid().as_raw();
    // More than one user has permits for.
    let (end, until) = std::sync::mpsc::channel::<()>();
    let until = Arc::new(Mutex::new(until));
    for _ in 0..64 {
        let until = until.clone();
        assert!(f.intake.looks.give(user, move || {
            let _ = until.lock().unwrap().recv();
        }));
    }
    let (_, registration) = f.register();
    assert!(registration.found.mappings.is_none());
    assert!(!registration.identity.has_ended());
    drop(end);
    // What it would have found is found as soon as somebody looks: the process may end before its next look.
    let located = loop {
        match f.intake.pop() {
            Some(Arrival::Located(mappings)) => break mappings,
            Some(other) => panic!("{other:?}"),
            None => std::thread::park_timeout(Duration::from_millis(10)),
        }
    };
    let identity = &registration.identity;
    assert_eq!((located.pid, located.user), (identity.pid, Some(identity.uid)));
    let exe = std::fs::read_link("/proc/self/exe").unwrap();
    assert!(located.mappings.iter().any(|mapping| *mapping.path == *exe.to_str().unwrap()));
    // Everything is back in order.
    while f.register().1.found.mappings.is_none() {}
}

#[test]
fn a_client_that_is_preempted_before_it_speaks_is_heard() {
    let f = Fixture::new();
    let client = f.connect();
    std::thread::sleep(Duration::from_millis(250));
    send_with(&client, b"rubbish", &[]);
    assert_eq!(f.refused().reason, Rejection::Rubbish.to_string());
}

#[test]
fn a_client_that_hangs_up_is_forgotten() {
    let f = Fixture::new();
    drop(f.connect());
    let client = f.connect();
    send_with(&client, b"rubbish", &[]);
    // The first to be refused is the second client.
    assert_eq!(f.refused().reason, Rejection::Rubbish.to_string());
}

#[test]
fn an_abandoned_socket_is_replaced_and_a_used_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent.sock");
    let first = listener(&path).unwrap();
    assert_eq!(listener(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    drop(first);
    listener(&path).unwrap();
    let long = dir.path().join("x".repeat(120));
    assert_eq!(listener(&long).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
}

/// The one has a socket at last to which every client comes.
#[test]
fn of_two_that_come_at_once_one_has_the_socket() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent.sock");
    for _ in 0..300 {
        // It was left.
        bind(unconnected().unwrap(), &address(&path).unwrap()).unwrap();
        let both = std::sync::Barrier::new(2);
        let listen = || {
            both.wait();
            listener(&path)
        };
        let [one, other] = std::thread::scope(|scope| {
            [scope.spawn(listen), scope.spawn(listen)].map(|thread| thread.join().unwrap())
        });
        let listening: Vec<OwnedFd> = [one, other].into_iter().flatten().collect();
        assert_eq!(listening.len(), 1);
        let _client = client(&path);
        assert!(accept(&listening[0]).is_ok());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_reply_is_bounded() {
    assert!(reply(&["x".repeat(MAX_REPLY_BYTES)]).is_none());
    assert_eq!(reply(&[]).unwrap().len(), size_of::<Reply>());
}
