//! The process that reads what others wrote. It has no right to anything: it is handed descriptors and addresses, and answers.
//!
//! It may die at any input, or never answer: [`super::Names`] lives with both.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt as _;

use rustix::net::SendFlags;

use super::confine::confine;
use super::packet::Packet;
use super::perf_map::PerfMap;
use super::program::{Inflated, Program};
use super::rule::Rule;
use super::wire::{self, MAX_ASKED, Request, What};
use super::{Answer, Symbol};
use crate::spool::mapping::Mapping;

/// Largest file that is read, bytes.
///
/// Limit: as `MAX_MAPS_BYTES` of `proof.rs`.
pub(in crate::convert) const MAX_FILE_BYTES: u64 = 2 << 30;

/// How far from a function's begin its first line is looked for.
const BEGIN_BYTES: u64 = 64;

/// The whole life of a worker, whose standard input is the socket of its agent.
///
/// # Errors
///
/// When it could not give up its rights, or was asked what makes no sense.
pub fn serve() -> io::Result<()> {
    confine()?;
    answer_all(&io::stdin())
}

/// Answers until the other end is gone.
fn answer_all(socket: &impl AsFd) -> io::Result<()> {
    let socket = socket.as_fd().try_clone_to_owned()?;
    let mut next = request(&socket)?;
    while let Some((request, files)) = next {
        next = match request {
            Request::Program => of_program(&socket, files)?,
            Request::PerfMap => of_perf_map(&socket, files)?,
            Request::Forget => self::request(&socket)?,
            Request::Ask(..) => return Err(io::ErrorKind::InvalidData.into()),
        };
    }
    Ok(())
}

pub(super) type Requested = Option<(Request, Vec<OwnedFd>)>;

fn request(socket: &OwnedFd) -> io::Result<Requested> {
    let (packet, files) = wire::receive(socket)?;
    if packet.is_empty() {
        return Ok(None);
    }
    let request = Request::decode(&packet).ok_or(io::ErrorKind::InvalidData)?;
    Ok(Some((request, files)))
}

/// What is in a file. It is read, not mapped: its owner may cut it short at any time.
pub(super) fn content(file: OwnedFd) -> io::Result<Vec<u8>> {
    let file = File::from(file);
    let mut bytes = vec![0; file.metadata()?.len().min(MAX_FILE_BYTES) as usize];
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], read as u64)? {
            0 => break,
            more => read += more,
        }
    }
    bytes.truncate(read);
    Ok(bytes)
}

fn of_program(socket: &OwnedFd, files: Vec<OwnedFd>) -> io::Result<Requested> {
    let mut files = files.into_iter().map(content);
    let file = files.next().ok_or(io::ErrorKind::InvalidData)??;
    let package = files.next().transpose()?;
    let inflated = Inflated::default();
    let program = Program::new(&file, package.as_deref(), &inflated);
    answer(socket, |what, mapping, address| match &program {
        Some(program) => of_address(program, what, mapping, address),
        None => Answer::default(),
    })
}

fn of_perf_map(socket: &OwnedFd, files: Vec<OwnedFd>) -> io::Result<Requested> {
    let file = files.into_iter().next().ok_or(io::ErrorKind::InvalidData)?;
    let map = PerfMap::read(&File::from(file))?;
    answer(socket, |_, _, address| match map.find(address) {
        Some(name) => {
            let symbol = Symbol { name: name.into(), ..Symbol::default() };
            Answer { at: Some(address), symbols: vec![symbol] }
        }
        None => Answer::default(),
    })
}

/// Answers what is asked of a file, until there is another one.
pub(super) fn answer(
    socket: &OwnedFd,
    find: impl Fn(What, &Mapping, u64) -> Answer,
) -> io::Result<Requested> {
    loop {
        let (what, [start, end, offset], addresses) = match request(socket)? {
            Some((Request::Ask(what, mapping, addresses), _)) => (what, mapping, addresses),
            other => return Ok(other),
        };
        let mapping = Mapping { start, end, offset, ..Mapping::default() };
        let mut packet = Packet::default();
        for address in addresses.into_iter().take(MAX_ASKED) {
            let mut answer = find(what, &mapping, address);
            if !packet.add(&answer) {
                if !packet.is_empty() {
                    wire::send(socket, &packet.take(), &[], SendFlags::empty())?;
                }
                // The innermost functions are left out of what no packet has room for.
                while !packet.add(&answer) {
                    answer.symbols.pop();
                }
            }
        }
        wire::send(socket, &packet.take(), &[], SendFlags::empty())?;
    }
}

/// What a program has at an address of a mapping of it.
pub(super) fn of_address(
    program: &Program<'_>,
    what: What,
    mapping: &Mapping,
    address: u64,
) -> Answer {
    let offset = address.wrapping_sub(mapping.start).wrapping_add(mapping.offset);
    let at = program.address(offset).unwrap_or(offset);
    let known = |symbols| Answer { at: Some(at), symbols };
    match what {
        What::Frames => known(program.frames(at)),
        What::Call => known(vec![program.function(at)]),
        What::Function => {
            let mut symbol = program.function(at);
            // A sled at the begin, and what saves registers behind it, can be of no line (clang 14).
            if symbol.line == 0 {
                let behind = (ft_user::layout::SLED_BYTES..BEGIN_BYTES).map(|n| at.wrapping_add(n));
                let mut behind = behind.map(|at| program.function(at));
                let is_its = |s: &Symbol| s.name == symbol.name && s.line != 0;
                symbol = behind.find(is_its).unwrap_or(symbol);
            }
            known(vec![symbol])
        }
        What::Variable => {
            let at = program.base(mapping).map(|base| address.wrapping_sub(base));
            match at.and_then(|at| Some((at, program.variable(at)?))) {
                Some((at, name)) => {
                    let symbol = Symbol { name: name.into(), ..Symbol::default() };
                    Answer { at: Some(at), symbols: vec![symbol] }
                }
                None => Answer::default(),
            }
        }
        What::Framed => {
            let (looked_at, framed) = program.framed();
            let both = u64::from(looked_at) << 32 | u64::from(framed);
            Answer { at: Some(both), symbols: Vec::new() }
        }
        What::Frame => Answer { at: program.rule(at).map(Rule::packed), symbols: Vec::new() },
        What::Compiled => Answer::default(),
    }
}
