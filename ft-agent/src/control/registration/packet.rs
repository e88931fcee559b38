//! What the reception tells the agent: one packet for each client, with descriptors that the agent can close without waiting.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ft_trace::helper::{self, Received};
use rustix::net::{RecvFlags, SendFlags};

use super::message::{Door, Rejection};
use crate::collect::attach::Refusal;
use crate::collect::peer::Peer;

/// A client that has spoken, or was sent away.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) door: Door,
    pub(super) peer: Peer,
    /// So many of its user; more than one are sent away for the same reason.
    pub(super) count: u32,
    pub(super) what: Result<Hello, Rejection>,
}

/// What a client wants.
#[derive(Debug)]
pub(super) struct Hello {
    /// A memfd with all seals.
    pub(super) memfd: OwnedFd,
    /// For the answer. Nothing can come by it any more.
    pub(super) connection: OwnedFd,
    /// As in [`ft_user::layout::Hello`].
    pub(super) flags: u32,
}

/// Numbers of a packet: door, process, user, whether it is held, how many, what follows, and a number that belongs to that.
const NUMBERS: usize = 7;

/// Descriptors of a packet at most.
const DESCRIPTORS: usize = 3;

const HELLO: u32 = 0;
const SILENT: u32 = 1;
const CROWDED: u32 = 2;
const RUBBISH: u32 = 3;
const OTHER_VERSION: u32 = 4;
const BROKEN: u32 = 5;
const UNHEARD: u32 = 6;
const NO_MEMORY: u32 = 7;
const HUGE_PAGES: u32 = 8;
const SEALS: u32 = 9;
const ACCESS: u32 = 10;

/// Hands over listening sockets, before anything else: the first that the reception reads.
///
/// # Errors
///
/// What sendmsg(2) says.
pub(super) fn send_listeners(socket: &impl AsFd, listeners: &[(OwnedFd, Door)]) -> io::Result<()> {
    let doors: Vec<u8> =
        listeners.iter().map(|(_, door)| u8::from(*door == Door::Default)).collect();
    let sockets: Vec<BorrowedFd<'_>> = listeners.iter().map(|(socket, _)| socket.as_fd()).collect();
    let packet = [&[doors.len() as u8], &*doors].concat();
    helper::send(socket, &packet, &sockets, SendFlags::empty())
}

/// The listening sockets.
///
/// # Errors
///
/// When the agent has hung up.
pub(super) fn listeners(socket: &impl AsFd) -> io::Result<Vec<(OwnedFd, Door)>> {
    let mut doors = [0; 1 + DESCRIPTORS];
    let Received { bytes, descriptors, .. } =
        helper::receive(socket, &mut doors, &mut space(), RecvFlags::empty())?;
    let doors = doors.get(1..bytes).ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(descriptors.into_iter().zip(doors.iter().map(|&door| self::door(door.into()))).collect())
}

fn door(number: u32) -> Door {
    if number == 1 { Door::Default } else { Door::Command }
}

/// Tells it.
///
/// # Errors
///
/// What sendmsg(2) says.
pub(super) fn send(socket: &impl AsFd, told: &Told) -> io::Result<()> {
    let (what, number) = match &told.what {
        Ok(hello) => (HELLO, hello.flags),
        Err(Rejection::Silent) => (SILENT, 0),
        Err(Rejection::Crowded) => (CROWDED, 0),
        Err(Rejection::Rubbish) => (RUBBISH, 0),
        Err(Rejection::Unheard) => (UNHEARD, 0),
        Err(Rejection::Unfit(refusal)) => match refusal {
            Refusal::HugePages => (HUGE_PAGES, 0),
            Refusal::Seals(seals) => (SEALS, *seals),
            Refusal::Access => (ACCESS, 0),
            _ => (NO_MEMORY, 0),
        },
        Err(Rejection::Version(version)) => (OTHER_VERSION, *version),
        Err(Rejection::Broken(error)) => (BROKEN, error.raw_os_error().unwrap_or(0) as u32),
        Err(Rejection::Full | Rejection::Unidentified) => {
            unreachable!("the agent alone sends away for that")
        }
    };
    let Peer { pid, uid, pidfd } = &told.peer;
    let door = u32::from(told.door == Door::Default);
    let held = u32::from(pidfd.is_some());
    let numbers: [u32; NUMBERS] = [door, *pid as u32, *uid, held, told.count, what, number];
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    let of_hello = told.what.iter().flat_map(|hello| [&hello.memfd, &hello.connection]);
    let descriptors: Vec<BorrowedFd<'_>> = pidfd.iter().chain(of_hello).map(AsFd::as_fd).collect();
    helper::send(socket, &bytes, &descriptors, SendFlags::empty())
}

/// Room for the descriptors of a packet.
fn space() -> [MaybeUninit<u8>; rustix::cmsg_space!(ScmRights(DESCRIPTORS))] {
    [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))]
}

/// The next that was told; `None` when the reception has ended. Where the agent has no descriptors left, the client is sent away.
///
/// # Errors
///
/// `WouldBlock` when there is none yet.
pub(super) fn receive(socket: &impl AsFd) -> io::Result<Option<Told>> {
    let mut bytes = [0; size_of::<u32>() * NUMBERS];
    let received = helper::receive(socket, &mut bytes, &mut space(), RecvFlags::DONTWAIT)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let (numbers, _) = bytes.as_chunks();
    let [door, pid, uid, held, count, what, number] =
        std::array::from_fn(|at| u32::from_ne_bytes(numbers[at]));
    let mut descriptors = received.descriptors.into_iter();
    let pidfd = if held == 1 { descriptors.next() } else { None };
    let what = match what {
        HELLO => match (descriptors.next(), descriptors.next()) {
            (Some(memfd), Some(connection)) => Ok(Hello { memfd, connection, flags: number }),
            _ => Err(Rejection::Broken(io::Error::from_raw_os_error(libc::EMFILE))),
        },
        SILENT => Err(Rejection::Silent),
        CROWDED => Err(Rejection::Crowded),
        RUBBISH => Err(Rejection::Rubbish),
        UNHEARD => Err(Rejection::Unheard),
        NO_MEMORY => Err(Rejection::Unfit(Refusal::NotMemory)),
        HUGE_PAGES => Err(Rejection::Unfit(Refusal::HugePages)),
        SEALS => Err(Rejection::Unfit(Refusal::Seals(number))),
        ACCESS => Err(Rejection::Unfit(Refusal::Access)),
        OTHER_VERSION => Err(Rejection::Version(number)),
        _ => Err(Rejection::Broken(io::Error::from_raw_os_error(number as i32))),
    };
    let peer = Peer { pid: pid as i32, uid, pidfd };
    Ok(Some(Told { door: self::door(door), peer, count, what }))
}
