//! What an agent and a worker say to each other: packets of bounded size, of numbers and texts, and descriptors of files.
//!
//! The worker has read what an attacker wrote, so that what it says is checked as if the attacker said it.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::{Answer, Symbol};
use crate::demangle::{MAX_DEMANGLED_BYTES, cut};

/// Longest packet, bytes.
pub(super) const MAX_PACKET_BYTES: usize = 64 << 10;

/// Most addresses that are asked for at once.
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
    /// How many functions were looked at, and how many keep a frame pointer, as two halves of an address.
    Framed,
    /// The function of a just-in-time compiler.
    Compiled,
}

const WHAT: [What; 6] =
    [What::Frames, What::Call, What::Function, What::Variable, What::Framed, What::Compiled];

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

/// Adds an answer to a packet; false where it has no room for it.
pub(super) fn encode(answer: &Answer, packet: &mut Vec<u8>) -> bool {
    let before = packet.len();
    packet.push(u8::from(answer.at.is_some()));
    packet.extend(answer.at.unwrap_or(0).to_le_bytes());
    packet.push(answer.symbols.len() as u8);
    for symbol in &answer.symbols {
        for text in [&symbol.name, &symbol.file] {
            packet.extend((text.len() as u16).to_le_bytes());
            packet.extend(text.as_bytes());
        }
        packet.extend(symbol.line.to_le_bytes());
    }
    let fits = packet.len() <= MAX_PACKET_BYTES;
    if !fits {
        packet.truncate(before);
    }
    fits
}

/// The answers of a packet; `None` where it is none.
pub(super) fn decode(mut packet: &[u8]) -> Option<Vec<Answer>> {
    let mut answers = Vec::new();
    while !packet.is_empty() {
        let [is_known, count] = [packet[0], *packet.get(9)?];
        let at = u64::from_le_bytes(*packet.get(1..)?.first_chunk()?);
        packet = &packet[10..];
        let mut symbols = Vec::new();
        for _ in 0..count {
            let (name, file) = (text(&mut packet)?, text(&mut packet)?);
            let line = u32::from_le_bytes(*packet.split_off(..4)?.first_chunk()?);
            symbols.push(Symbol { name: name.into(), file: file.into(), line });
        }
        answers.push(Answer { at: (is_known == 1).then_some(at), symbols });
    }
    (!answers.is_empty()).then_some(answers)
}

fn text(packet: &mut &[u8]) -> Option<String> {
    let length = u16::from_le_bytes(*packet.split_off(..2)?.first_chunk()?);
    Some(cut(packet.split_off(..usize::from(length))?, MAX_DEMANGLED_BYTES).into_owned())
}

/// Sends a packet, with descriptors.
pub(super) fn send(
    socket: &OwnedFd,
    packet: &[u8],
    files: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(socket, &[IoSlice::new(packet)], &mut control, flags | SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The next packet, with the descriptors that came along; of length 0 when the other end is gone.
pub(super) fn receive(socket: &impl AsFd) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut packet = vec![0; MAX_PACKET_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut packet)];
    let received = recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let files = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => files.collect(),
        _ => Vec::new(),
    });
    let files = files.collect();
    packet.truncate(received.bytes);
    Ok((packet, files))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers() -> Vec<Answer> {
        let symbol = |name: &str| Symbol { name: name.into(), file: "a.c".into(), line: 7 };
        vec![
            Answer::default(),
            Answer { at: Some(u64::MAX), symbols: vec![symbol("f"), symbol("\u{e4}")] },
            Answer { at: Some(0), symbols: vec![] },
        ]
    }

    #[test]
    fn what_is_said_is_understood() {
        let mut packet = Vec::new();
        assert!(answers().iter().all(|answer| encode(answer, &mut packet)));
        assert_eq!(decode(&packet), Some(answers()));
        for request in [
            Request::Program,
            Request::PerfMap,
            Request::Forget,
            Request::Ask(What::Framed, [1, 2, 3], vec![4, 5]),
        ] {
            assert_eq!(Request::decode(&request.encode()), Some(request));
        }
    }

    #[test]
    fn rubbish_is_none() {
        let mut packet = Vec::new();
        answers().iter().for_each(|answer| assert!(encode(answer, &mut packet)));
        assert_eq!(decode(&[]), None, "who says nothing would say it for ever");
        for length in 1..packet.len() {
            let whole = decode(&packet[..length]);
            assert!(whole.is_none_or(|whole| whole.len() < 3), "{length}");
        }
        for at in 0..packet.len() {
            let mut damaged = packet.clone();
            damaged[at] = 0xff;
            decode(&damaged);
        }
        for bytes in [&[][..], &[4], &[2, 9], &[2, 0, 1], &[2, 0, 1, 2, 3, 4, 5, 6, 7, 8]] {
            assert_eq!(Request::decode(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_packet_is_bounded() {
        let long = Symbol { name: "n".repeat(4096).into(), ..Symbol::default() };
        let answer = Answer { at: Some(1), symbols: vec![long; 5] };
        let mut packet = Vec::new();
        let fitting = (0..10).take_while(|_| encode(&answer, &mut packet)).count();
        assert_eq!((fitting, decode(&packet).unwrap().len()), (3, 3));
        assert!(packet.len() <= MAX_PACKET_BYTES);
    }
}
