//! What an agent and a worker say to each other: packets of bounded size, of numbers and texts, and descriptors of files.
//!
//! The worker has read what an attacker wrote, so that what it says is checked as if the attacker said it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::RecvFlags;

use crate::helper;
pub(super) use crate::helper::send;

/// Longest packet, bytes.
///
/// Limit: nothing: it takes more packets; of functions inlined at one address the innermost are left out if one packet
/// has no room for them.
/// Shown by: `a_packet_is_bounded`, `many_addresses_are_answered_in_their_order`.
pub(super) const MAX_PACKET_BYTES: usize = 64 << 10;

/// Most addresses that are asked for at once.
///
/// Limit: as `MAX_PACKET_BYTES`.
pub(super) const MAX_ASKED: usize = 256;

/// Most descriptors in a packet: a program, and the package of its debugging information.
const FILES: usize = 2;

/// What is asked of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::convert) enum What {
    /// The function at an address, and those that are inlined there.
    Frames,
    /// The function whose machine code is at an address.
    Call,
    /// The same, by the address where it begins.
    Function,
    /// The variable at an address.
    Variable,
    /// How many functions were looked at, and of how many the caller is found, as two halves of an address.
    Framed,
    /// The function of a just-in-time compiler.
    Compiled,
    /// How a frame is left at an address: the answer's address is a [`Rule`](super::rule::Rule).
    Frame,
}

const WHAT: [What; 7] = [
    What::Frames,
    What::Call,
    What::Function,
    What::Variable,
    What::Framed,
    What::Compiled,
    What::Frame,
];

/// What an agent says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Read the program, perhaps with its package, that comes along.
    Program,
    /// Read the map of a compiler that comes along.
    PerfMap,
    /// Keep nothing of the last file.
    Forget,
    /// Say what is at these addresses of a mapping of it: first address, the one behind the last, offset in the file.
    Ask(What, [u64; 3], Vec<u64>),
}

impl Request {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Request::Program => vec![0],
            Request::PerfMap => vec![1],
            Request::Forget => vec![3],
            Request::Ask(what, mapping, addresses) => {
                let mut bytes = vec![2, *what as u8];
                bytes.extend(mapping.iter().chain(addresses).flat_map(|n| n.to_le_bytes()));
                bytes
            }
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Request> {
        match bytes {
            [0] => Some(Request::Program),
            [1] => Some(Request::PerfMap),
            [3] => Some(Request::Forget),
            [2, what, rest @ ..] => {
                let (numbers, []) = rest.as_chunks::<8>() else { return None };
                let mut numbers = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes));
                let mapping = [numbers.next()?, numbers.next()?, numbers.next()?];
                Some(Request::Ask(*WHAT.get(usize::from(*what))?, mapping, numbers.collect()))
            }
            _ => None,
        }
    }
}

/// The next packet, with the descriptors that came along; of length 0 when the other end is gone.
pub(super) fn receive(socket: &impl AsFd) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut packet = vec![0; MAX_PACKET_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let received = helper::receive(socket, &mut packet, &mut space, RecvFlags::empty())?;
    if received.is_cut {
        return Err(io::ErrorKind::InvalidData.into());
    }
    packet.truncate(received.bytes);
    Ok((packet, received.descriptors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_understood() {
        for request in [
            Request::Program,
            Request::PerfMap,
            Request::Forget,
            Request::Ask(What::Framed, [1, 2, 3], vec![4, 5]),
        ] {
            assert_eq!(Request::decode(&request.encode()), Some(request));
        }
        for bytes in [&[][..], &[4], &[2, 9], &[2, 0, 1], &[2, 0, 1, 2, 3, 4, 5, 6, 7, 8]] {
            assert_eq!(Request::decode(bytes), None, "{bytes:?}");
        }
    }
}
