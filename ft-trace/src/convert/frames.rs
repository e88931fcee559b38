//! The addresses of call chains to functions and lines.
//!
//! In user space: in the mapping of the process, in the file that was mapped, if it is still there; failing that, in the map
//! that a just-in-time compiler has left ([`names`](super::names)). Where the file is
//! gone, its build id and the address in it remain, to be looked up elsewhere. Of a process that had ended before anybody
//! could look at it nothing remains but the addresses, which its rows say.

use std::collections::{BTreeMap, HashMap};

use super::kernel_symbols::KernelSymbols;
use super::names::{Answer, Names, Query, Symbol, What};
use super::registry::Registry;
use super::symbols::{Addresses, Layout, own_address};
use crate::ids::{Name, Pid};
use crate::spool::mapping::Mapping;
use crate::tables::{BinaryRow, FrameRow, KERNEL_PID, UNSEEN};

/// Rows of `frames` and of `binaries`.
pub(super) fn rows(
    addresses: Addresses,
    registry: &Registry,
    names: &mut Names<'_>,
) -> (impl Iterator<Item = FrameRow>, Vec<BinaryRow>) {
    let addresses: Vec<(Pid, u64)> =
        addresses.into_iter().map(|(pid, address)| (Pid(pid), address as u64)).collect();
    let mut found: Vec<Found> = Vec::new();
    let mut kernel = None;
    let none = Mapping::default();
    let mut layouts = HashMap::new();
    let (mut places, mut compiled) = (Vec::new(), Vec::new());
    for (place, &(pid, address)) in addresses.iter().enumerate() {
        if pid == KERNEL_PID {
            let boot_id = &registry.start.boot_id;
            let kernel = kernel.get_or_insert_with(|| KernelSymbols::of_boot(boot_id));
            found.push(in_kernel(kernel, address));
            continue;
        }
        let mappings = registry.mappings.get(&pid).map(Vec::as_slice);
        let object = if mappings.is_none() { UNSEEN } else { "" };
        found.push(Found { object: object.into(), offset: address, ..Found::default() });
        let layout = layouts.entry(pid).or_insert_with(|| Layout::of(mappings.unwrap_or_default()));
        let mapping = layout.only_mapping(address);
        // Memory of a compiler can have the name of a file that is gone, too.
        if !mapping.is_some_and(Mapping::has_file) {
            compiled.push((place, Query { pid, mapping: &none, what: What::Compiled, address }));
        }
        if let Some(mapping) = mapping {
            places.push((place, Query { pid, mapping, what: What::Frames, address }));
        }
    }
    let queries: Vec<_> = compiled.iter().map(|(_, query)| *query).collect();
    for ((place, _), answer) in compiled.iter().zip(names.ask(&queries)) {
        if !answer.symbols.is_empty() {
            found[*place].symbols = answer.symbols;
            found[*place].object = "JIT".into();
        }
    }
    places.retain(|(place, _)| found[*place].symbols.is_empty());
    let binaries = in_files(&places, &mut found, names);

    // Made as they are written: a row is three times as large as what it is made of.
    let rows = addresses.into_iter().zip(found).flat_map(|((pid, address), found)| {
        let Found { mut symbols, object, build_id, offset } = found;
        if symbols.is_empty() {
            // What is not known has a row, too.
            symbols.push(Symbol::default());
        }
        symbols.into_iter().enumerate().map(move |(inlined, symbol)| FrameRow {
            pid,
            address: address as i64,
            inlined: inlined as i32,
            function: symbol.name,
            file: symbol.file,
            line: i32::try_from(symbol.line).unwrap_or(0),
            object: object.clone(),
            build_id: build_id.clone(),
            offset: offset as i64,
        })
    });
    (rows, binaries)
}

/// What is at an address.
#[derive(Default)]
struct Found {
    /// From the function whose code it is to the one that is inlined deepest.
    symbols: Vec<Symbol>,
    object: Name,
    build_id: Name,
    offset: u64,
}

fn in_kernel(kernel: &KernelSymbols, address: u64) -> Found {
    match kernel.find(address) {
        Some((name, object)) => Found {
            symbols: vec![Symbol { name: name.into(), ..Symbol::default() }],
            object: object.into(),
            offset: address,
            ..Found::default()
        },
        None => Found { object: "kernel".into(), offset: address, ..Found::default() },
    }
}

/// Has the files say what is at the addresses that lie in them, and of how many of their functions the caller is found.
fn in_files<'m>(
    places: &[(usize, Query<'m>)],
    found: &mut [Found],
    names: &mut Names<'_>,
) -> Vec<BinaryRow> {
    /// What a file is called, once for all addresses in it, and a query of it.
    struct Object<'m> {
        path: Name,
        build_id: Name,
        query: Query<'m>,
    }

    let mut queries: Vec<_> = places.iter().map(|(_, query)| *query).collect();
    let key = |query: &Query<'m>| (query.mapping.path.as_str(), query.mapping.build_id.as_str());
    let mut objects = BTreeMap::new();
    for (_, query) in places {
        objects.entry(key(query)).or_insert_with_key(|&(path, build_id)| Object {
            path: path.into(),
            build_id: build_id.into(),
            query: Query { what: What::Framed, ..*query },
        });
    }
    queries.extend(objects.values().map(|object| object.query));
    let mut answers = names.ask(&queries).into_iter();
    for ((place, query), answer) in places.iter().zip(answers.by_ref()) {
        let Object { path, build_id, .. } = &objects[&key(query)];
        found[*place] = Found {
            offset: own_address(query, &answer),
            symbols: answer.symbols,
            object: path.clone(),
            build_id: build_id.clone(),
        };
    }
    let binary = |(object, answer): (Object<'_>, Answer)| {
        let (functions, framed) = answer.at.map_or((0, 0), |at| ((at >> 32) as i32, at as i32));
        BinaryRow { object: object.path, build_id: object.build_id, functions, framed }
    };
    let mut binaries: Vec<_> = objects.into_values().zip(answers).map(binary).collect();
    binaries.sort_by_key(|row| row.functions);
    binaries
}
