//! The registration socket: any message with any number of descriptors. Exactly the well-formed ones
//! become a registration, and no descriptor stays open.
#![no_main]

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};

use ft_agent::collect::server::{Arrival, Rejection, Server, listener};
use ft_user::layout::{Hello, MAGIC, VERSION};
use libfuzzer_sys::fuzz_target;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, sendmsg, socket_with,
};

struct Fixture {
    address: SocketAddrUnix,
    arrivals: Mutex<Receiver<Arrival>>,
    file: OwnedFd,
}

fn fixture() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap().keep();
        let path = dir.join("agent.sock");
        let (sender, arrivals) = channel();
        let listeners = vec![listener(&path).unwrap()];
        let server = Server::spawn(listeners, move |arrival| sender.send(arrival).unwrap());
        std::mem::forget(server.unwrap());
        let address = SocketAddrUnix::new(&path).unwrap();
        let file = tempfile::tempfile().unwrap().into();
        Fixture { address, arrivals: Mutex::new(arrivals), file }
    })
}

/// Whether the message begins well, the descriptors, the message or what follows its good beginning.
fuzz_target!(|input: (bool, u8, &[u8])| {
    let (good, descriptors, bytes) = input;
    let count = usize::from(descriptors % 4);
    let beginning = [&MAGIC.to_ne_bytes()[..], &VERSION.to_ne_bytes()].concat();
    let message = if good { [&beginning, bytes].concat() } else { bytes.to_vec() };
    if message.is_empty() || message.len() > 100_000 {
        return;
    }
    let fixture = fixture();
    let kind = SocketType::SEQPACKET;
    let socket = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
    connect(&socket, &fixture.address).unwrap();
    let fds: [BorrowedFd<'_>; 3] = [fixture.file.as_fd(); 3];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if count > 0 {
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&fds[..count])));
    }
    let message_sent =
        sendmsg(&socket, &[IoSlice::new(&message)], &mut ancillary, SendFlags::NOSIGNAL);

    let well_formed = message.len() == size_of::<Hello>() && message.starts_with(&beginning);
    let arrival = fixture.arrivals.lock().unwrap().recv().unwrap();
    if matches!(arrival, Arrival::Rejected { reason: Rejection::Silent, .. }) {
        // This process was stopped for seconds.
        return;
    }
    message_sent.expect("the server listens");
    let registered = matches!(arrival, Arrival::Registration(_));
    assert_eq!(registered, well_formed && count == 1, "{arrival:?}");
});
