//! The names of addresses of this program as a conversion has them, from a worker, and without one: for the benchmark of what a worker costs.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use super::program::{Inflated, Program};
use super::wire::What;
use super::worker::{content, of_address};
use super::{Answer, Names, Query};
use crate::foreign_file::ForeignFile;
use crate::ids::Pid;
use crate::mounts::Mounts;
use crate::spool::mapping::Mapping;

/// Addresses of this program's that are asked for.
#[derive(Debug)]
pub struct Addresses {
    mapping: Mapping,
    all: Vec<u64>,
}

impl Addresses {
    /// So many, spread over the code of a file that this process has mapped under this path, or of the [vDSO](crate::vdso). `None` where it
    /// has no such file.
    pub fn of(path: &str, count: usize) -> Option<Addresses> {
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        let mut mapping = maps.lines().find_map(|line| {
            // Addresses, rights, offset, device, inode, path (proc_pid_maps(5)).
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let [range, rights, offset, _, inode, found] = words[..] else { return None };
            let number = |hex| u64::from_str_radix(hex, 16).ok();
            let (start, end) = range.split_once('-')?;
            (found == path && rights.contains('x')).then_some(Mapping {
                start: number(start)?,
                end: number(end)?,
                offset: number(offset)?,
                path: path.to_owned(),
                inode: inode.parse().ok()?,
                ..Mapping::default()
            })
        })?;
        let held = held(&mapping)?;
        mapping.file = held.facts().map(|facts| facts.key);
        (mapping.build_id, mapping.address) = crate::build_id::of_mapped(&held, &mapping);
        let bytes = u128::from(mapping.end - mapping.start);
        let nth = |n: usize| mapping.start + (n as u128 * bytes / count as u128) as u64;
        Some(Addresses { all: (0..count).map(nth).collect(), mapping })
    }

    /// Of how many a worker says the function. It is started for them, and ended.
    ///
    /// # Panics
    ///
    /// When it fails.
    pub fn by_a_worker(&self) -> usize {
        let (users, mapped) = ([(own(), rustix::process::geteuid().as_raw())], HashMap::new());
        let users = users.into();
        let mut names = Names::new(&users, &mapped);
        let (pid, mapping, what) = (own(), &self.mapping, What::Frames);
        let query = |&address| Query { pid, mapping, what, address };
        let answers = names.ask(&self.all.iter().map(query).collect::<Vec<_>>());
        let warnings: Vec<_> = names.warnings().collect();
        assert!(warnings.is_empty(), "{warnings:?}");
        named(&answers)
    }

    /// Of how many the same code says the function in this process.
    ///
    /// # Panics
    ///
    /// When the file cannot be read.
    pub fn in_this_process(&self) -> usize {
        let file = held(&self.mapping).and_then(|held| held.open()).expect("a file");
        let file = content(OwnedFd::from(file)).expect("what is in it");
        let inflated = Inflated::default();
        let program = Program::new(&file, None, &inflated).expect("a program");
        let answer = |&address| of_address(&program, What::Frames, &self.mapping, address);
        named(&self.all.iter().map(answer).collect::<Vec<_>>())
    }
}

fn own() -> Pid {
    Pid(std::process::id() as i32)
}

fn held(mapping: &Mapping) -> Option<ForeignFile> {
    ForeignFile::mapped(own().0, mapping, &Mounts::own())
}

fn named(answers: &[Answer]) -> usize {
    answers.iter().filter(|answer| !answer.symbols.is_empty()).count()
}
