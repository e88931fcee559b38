//! What the group `section` has counted.

use std::fs;

use ft_agent::collect::kernel::Kernel;
use ft_ebpf::{Section, section};

/// What was counted, with the name of each caller.
pub(crate) struct Counts(Vec<(String, Section)>);

impl Counts {
    /// All so far.
    pub(crate) fn of(kernel: &Kernel) -> Counts {
        let mut bytes = Vec::new();
        assert!(kernel.unreturned(&mut bytes));
        let records: Vec<Section> = bytes
            .chunks_exact(size_of::<Section>())
            .map(|record| ft_ebpf::read(record).unwrap())
            .collect();
        let symbols = fs::read_to_string("/proc/kallsyms").unwrap();
        let mut functions: Vec<(u64, &str)> = symbols
            .lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let at = u64::from_str_radix(words.next()?, 16).ok()?;
                words.next().filter(|kind| "tTwW".contains(kind))?;
                Some((at, words.next()?))
            })
            .collect();
        functions.sort_unstable();
        let name = |address: u64| {
            let behind = functions.partition_point(|(at, _)| *at < address);
            behind.checked_sub(1).map_or(String::new(), |i| functions[i].1.to_owned())
        };
        Counts(records.into_iter().map(|r| (name(r.caller), r)).collect())
    }

    /// How many, how long and the longest, of those that are asked for.
    pub(crate) fn sum(&self, wanted: impl Fn(&str, &Section) -> bool) -> (u64, u64, u64) {
        let chosen = self.0.iter().filter(|(name, r)| wanted(name, r));
        chosen.fold((0, 0, 0), |(count, total, max), (_, r)| {
            (count + r.bin.count, total + r.bin.total_ns, max.max(r.bin.max_ns))
        })
    }

    /// Of sections with a length, where they were told apart.
    pub(crate) fn callers(&self) -> impl Iterator<Item = u64> {
        let known = self.0.iter().filter(|(_, r)| r.what == section::LENGTH && r.caller != 0);
        known.map(|(_, r)| r.caller)
    }

    /// How many of a kind.
    pub(crate) fn of_what(&self, kind: u32, what: u16) -> u64 {
        self.sum(|_, r| u32::from(r.kind) == kind && r.what == what).0
    }
}

/// Whether a row counts this, of a thread and not of an interrupt.
pub(crate) fn is(r: &Section, kind: u32, what: u16) -> bool {
    u32::from(r.kind) == kind && r.what == what && r.interrupt == 0
}
