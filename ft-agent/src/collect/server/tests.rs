//! The server against clients of every kind.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, recv, sendmsg};

use super::*;

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
    arrivals: Receiver<Arrival>,
    _server: Server,
}

impl Fixture {
    fn new() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.sock");
        let (sender, arrivals) = channel();
        let listeners = vec![listener(&path).unwrap()];
        let server = Server::spawn(listeners, move |a| sender.send(a).unwrap()).unwrap();
        Fixture { _dir: dir, path, arrivals, _server: server }
    }

    fn connect(&self) -> OwnedFd {
        client(&self.path)
    }

    fn rejection(&self) -> Rejection {
        match self.arrivals.recv().unwrap() {
            Arrival::Rejected { reason, pid } => {
                assert_eq!(pid, std::process::id() as i32);
                reason
            }
            other => panic!("{other:?}"),
        }
    }
}

fn message(magic: u64, version: u32) -> Vec<u8> {
    let mut bytes = magic.to_ne_bytes().to_vec();
    bytes.extend(version.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes
}

fn send_with(socket: &OwnedFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(fds)));
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::empty()).unwrap();
}

#[test]
fn a_process_registers_and_is_told_what_to_enable() {
    let f = Fixture::new();
    let client = f.connect();
    let file = tempfile::tempfile().unwrap();
    send_with(&client, &message(MAGIC, VERSION), &[file.as_fd()]);
    let Arrival::Registration(registration) = f.arrivals.recv().unwrap() else { panic!() };
    assert_eq!(registration.identity.pid, std::process::id() as i32);
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
    let clients: Vec<_> = (0..MAX_CLIENTS + 8).map(|_| client(&path)).collect();
    let file = tempfile::tempfile().unwrap();
    for client in &clients[1..] {
        send_with(client, &message(MAGIC, VERSION), &[file.as_fd()]);
    }
    let stop = eventfd(1, EventfdFlags::CLOEXEC).unwrap();
    let mut registered = 0;
    serve(&[listener], &stop, |arrival| {
        registered += usize::from(matches!(arrival, Arrival::Registration(_)));
    });
    assert_eq!(registered, clients.len() - 1);
}

#[test]
fn rubbish_is_sent_away() {
    let f = Fixture::new();
    let file = tempfile::tempfile().unwrap();
    let fd = file.as_fd();
    let check = |bytes: &[u8], fds: &[BorrowedFd<'_>], expected: fn(&Rejection) -> bool| {
        let client = f.connect();
        send_with(&client, bytes, fds);
        let rejection = f.rejection();
        assert!(expected(&rejection), "{bytes:?}: {rejection}");
        // The connection is closed.
        assert_eq!(recv(&client, &mut [0; 1], RecvFlags::empty()).unwrap().0, 0);
    };
    let rubbish = |r: &Rejection| matches!(r, Rejection::Rubbish);
    let good = message(MAGIC, VERSION);
    check(b"GET / HTTP/1.1", &[fd], rubbish);
    check(b"x", &[], rubbish);
    check(&good[..15], &[fd], rubbish);
    check(&[good.clone(), vec![0]].concat(), &[fd], rubbish);
    check(&vec![0xff; 60_000], &[fd], rubbish);
    check(&message(!MAGIC, VERSION), &[fd], rubbish);
    check(&good, &[], rubbish);
    check(&good, &[fd, fd], rubbish);
    check(&message(MAGIC, 77), &[fd], |r| matches!(r, Rejection::Version(77)));
}

#[test]
fn silent_clients_do_not_keep_others_waiting() {
    let f = Fixture::new();
    let _silent: Vec<_> = (0..MAX_CLIENTS + 8).map(|_| f.connect()).collect();
    let client = f.connect();
    let file = tempfile::tempfile().unwrap();
    send_with(&client, &message(MAGIC, VERSION), &[file.as_fd()]);
    let mut rejected = 0;
    let mut registered = false;
    while rejected < MAX_CLIENTS || !registered {
        match f.arrivals.recv().unwrap() {
            Arrival::Registration(_) => registered = true,
            Arrival::Rejected { reason: Rejection::Silent, .. } => rejected += 1,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_client_that_is_preempted_before_it_speaks_is_heard() {
    let f = Fixture::new();
    let client = f.connect();
    std::thread::sleep(PATIENCE_CROWDED + Duration::from_millis(50));
    send_with(&client, b"rubbish", &[]);
    assert!(matches!(f.rejection(), Rejection::Rubbish));
}

#[test]
fn a_client_that_hangs_up_is_forgotten() {
    let f = Fixture::new();
    drop(f.connect());
    let client = f.connect();
    send_with(&client, b"rubbish", &[]);
    // The first arrival is that of the second client.
    assert!(matches!(f.rejection(), Rejection::Rubbish));
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
}

#[test]
fn a_reply_is_bounded() {
    assert!(reply(&["x".repeat(MAX_REPLY_BYTES)]).is_none());
    assert_eq!(reply(&[]).unwrap().len(), size_of::<Reply>());
}
