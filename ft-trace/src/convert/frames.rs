//! The addresses of call chains to functions and lines.
//!
//! In user space: in the mapping of the process, in the file that was mapped, if it still has the build id that it had
//! then; failing that, in the map that a just-in-time compiler has left ([`perf_map`](super::perf_map)). Where the file is
//! gone, its build id and the address in it remain, to be looked up elsewhere. Of a process that had ended before anybody
//! could look at it nothing remains but the addresses, which its rows say.

use std::collections::{BTreeMap, HashMap};

use super::kernel_symbols::KernelSymbols;
use super::perf_map::PerfMap;
use super::registry::Registry;
use super::symbols::{Addresses, Programs, Symbol, only_mapping};
use crate::ids::{Name, Pid};
use crate::spool::mapping::Mapping;
use crate::tables::{BinaryRow, FrameRow, KERNEL_PID, UNSEEN};

/// Rows of `frames` and of `binaries`.
pub(super) fn rows(addresses: Addresses, registry: &Registry) -> (Vec<FrameRow>, Vec<BinaryRow>) {
    let mut find = Find {
        registry,
        programs: Programs::default(),
        kernel: None,
        perf_maps: HashMap::new(),
        binaries: BTreeMap::new(),
    };
    let mut rows = Vec::new();
    for (pid, address) in addresses {
        let found = find.at(Pid(pid), address as u64);
        let row = |(inlined, symbol): (usize, Symbol)| FrameRow {
            pid: Pid(pid),
            address,
            inlined: inlined as i32,
            function: symbol.name.into(),
            file: symbol.file.into(),
            line: i32::try_from(symbol.line).unwrap_or(0),
            object: found.object.clone(),
            build_id: found.build_id.clone(),
            offset: found.offset as i64,
        };
        // What is not known has a row, too.
        let symbols = match found.symbols.is_empty() {
            true => vec![Symbol::default()],
            false => found.symbols,
        };
        rows.extend(symbols.into_iter().enumerate().map(row));
    }
    let binary = |((object, build_id), (functions, framed))| BinaryRow {
        object: Name::from(object),
        build_id: Name::from(build_id),
        functions: functions as i32,
        framed: framed as i32,
    };
    let mut binaries: Vec<_> = find.binaries.into_iter().map(binary).collect();
    binaries.sort_by_key(|row| row.functions);
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

struct Find<'a> {
    registry: &'a Registry,
    programs: Programs,
    kernel: Option<KernelSymbols>,
    perf_maps: HashMap<Pid, PerfMap>,
    /// By path and build id: functions that were looked at, and those with a frame pointer.
    binaries: BTreeMap<(String, String), (u32, u32)>,
}

impl Find<'_> {
    fn at(&mut self, pid: Pid, address: u64) -> Found {
        if pid == KERNEL_PID {
            let boot_id = &self.registry.start.boot_id;
            let symbols = self.kernel.get_or_insert_with(|| KernelSymbols::of_boot(boot_id));
            return match symbols.find(address) {
                Some((name, object)) => Found {
                    symbols: vec![Symbol { name, ..Symbol::default() }],
                    object: object.into(),
                    offset: address,
                    ..Found::default()
                },
                None => Found { object: "kernel".into(), offset: address, ..Found::default() },
            };
        }
        let mappings = self.registry.mappings.get(&pid).map(Vec::as_slice);
        let mapping = only_mapping(mappings.unwrap_or_default(), address);
        // Memory of a compiler can have the name of a file that is gone, too.
        if let Some(mapping) = mapping.filter(|mapping| mapping.has_file()) {
            return self.in_file(pid, mapping, address);
        }
        let user = self.registry.users.get(&pid).copied();
        let read = || PerfMap::of(pid, user, mappings.unwrap_or_default());
        let perf_map = self.perf_maps.entry(pid).or_insert_with(read);
        match perf_map.find(address) {
            Some(name) => Found {
                symbols: vec![Symbol { name: name.to_owned(), ..Symbol::default() }],
                object: "JIT".into(),
                offset: address,
                ..Found::default()
            },
            None => match mapping {
                Some(mapping) => self.in_file(pid, mapping, address),
                None => {
                    let object = if mappings.is_none() { UNSEEN } else { "" };
                    Found { object: object.into(), offset: address, ..Found::default() }
                }
            },
        }
    }

    fn in_file(&mut self, pid: Pid, mapping: &Mapping, address: u64) -> Found {
        let offset = address - mapping.start + mapping.offset;
        let mut programs = self.programs.of(pid, self.registry);
        let program = programs.get(mapping);
        let at = match program {
            Some(program) => program.address(offset),
            None => mapping.own_address(address),
        };
        let at = at.unwrap_or(offset);
        let key = (mapping.path.clone(), mapping.build_id.clone());
        let looked_at = || program.map_or((0, 0), |program| program.framed());
        self.binaries.entry(key).or_insert_with(looked_at);
        Found {
            symbols: program.map_or(Vec::new(), |program| program.frames(at)),
            object: mapping.path.as_str().into(),
            build_id: mapping.build_id.as_str().into(),
            offset: at,
        }
    }
}
