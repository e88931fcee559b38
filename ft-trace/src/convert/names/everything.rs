//! All that a worker may be asked of a file, in this process: for the fuzzer, which such a process without rights would hinder.

use super::packet::{Known, Packet, answers};
use super::perf_map::PerfMap;
use super::program::{Inflated, Program};
use super::wire::{MAX_PACKET_BYTES, What};
use super::worker::of_address;
use super::{Answer, Symbol};
use crate::demangle::{MAX_DEMANGLED_BYTES, MAX_NAME_BYTES};
use crate::spool::mapping::Mapping;

/// Functions of a file that are asked for.
const FUNCTIONS: usize = 8;

/// Reads these bytes as a program that is its own package of debugging information, and as a compiler's map, and asks for what is at its
/// functions, and at addresses that it chooses. And reads them as what a worker says that was taken over.
///
/// # Panics
///
/// When an answer is not within its bounds, or does not come over as it was said.
pub fn ask_for_everything(file: &[u8]) {
    let chosen = file.rchunks_exact(8).take(4);
    let mut addresses: Vec<u64> =
        chosen.map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight"))).collect();
    if let Some(said) = answers(file, &mut Known::default()) {
        let mut symbols = said.iter().flat_map(|answer| &answer.symbols);
        assert!(symbols.all(|symbol| symbol.name.len() <= MAX_DEMANGLED_BYTES));
    }
    let map = PerfMap::parse(file.into());
    let begins = map.begins();
    let named = addresses.iter().chain(&begins).filter_map(|at| map.find(*at));
    assert!(named.take(FUNCTIONS).all(|name| name.len() <= MAX_NAME_BYTES));

    let inflated = Inflated::default();
    let Some(program) = Program::new(file, Some(file), &inflated) else { return };
    addresses.extend(program.functions().iter().take(FUNCTIONS).map(|function| function.address));
    let mapping = Mapping { end: 1 << 40, ..Mapping::default() };
    for address in addresses {
        let all =
            [What::Frames, What::Call, What::Function, What::Variable, What::Framed, What::Frame];
        for what in all {
            is_bounded(&of_address(&program, what, &mapping, address));
        }
    }
}

fn is_bounded(answer: &Answer) {
    let is_short = |symbol: &Symbol| {
        symbol.name.len() <= MAX_DEMANGLED_BYTES && symbol.file.len() <= MAX_NAME_BYTES
    };
    assert!(answer.symbols.iter().all(is_short), "{answer:?}");
    let mut packet = Packet::default();
    if packet.add(answer) {
        let bytes = packet.take();
        assert!(bytes.len() <= MAX_PACKET_BYTES);
        let said = answers(&bytes, &mut Known::default());
        assert_eq!(said.as_deref(), Some(std::slice::from_ref(answer)));
    }
}
