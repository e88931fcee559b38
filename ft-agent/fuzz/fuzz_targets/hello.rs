//! The registration socket: any message with any number of descriptors. Exactly the well-formed ones
//! become a registration, and no descriptor stays open.
#![no_main]

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ft_agent::collect::arrivals::{Arrival, Intake};
use ft_agent::control;
use ft_agent::control::registration::{Door, Server, listener};
use ft_user::layout::{Hello, MAGIC, VERSION};
use libfuzzer_sys::fuzz_target;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, sendmsg, socket_with,
};
use tokio::runtime::Handle;

struct Fixture {
    address: SocketAddrUnix,
    intake: Arc<Intake>,
    file: OwnedFd,
}

fn fixture() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap().keep();
        let path = dir.join("agent.sock");
        let listeners = vec![(listener(&path).unwrap(), Door::Default)];
        let (tell, told) = channel();
        let serve = async move {
            let intake = Intake::new(1 << 16, Handle::current());
            let server = Server::new(listeners, intake.clone());
            tell.send(intake).unwrap();
            std::future::pending::<()>().await;
            drop(server);
        };
        std::thread::spawn(|| control::run(serve));
        let intake = told.recv().unwrap();
        let address = SocketAddrUnix::new(&path).unwrap();
        let file = tempfile::tempfile().unwrap().into();
        Fixture { address, intake, file }
    })
}

/// Whether a registration arrives, and not a refusal.
fn is_registered(intake: &Intake) -> bool {
    loop {
        match intake.pop() {
            Some(Arrival::Registration(_)) => return true,
            // Of a look that was not waited for.
            Some(_) => {}
            None if !intake.refusals.take_grown().is_empty() => return false,
            None => std::thread::park_timeout(Duration::from_millis(1)),
        }
    }
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
    let parts = [IoSlice::new(&message)];
    sendmsg(&socket, &parts, &mut ancillary, SendFlags::NOSIGNAL).expect("somebody listens");
    let well_formed = message.len() == size_of::<Hello>() && message.starts_with(&beginning);
    assert_eq!(is_registered(&fixture.intake), well_formed && count == 1);
});
