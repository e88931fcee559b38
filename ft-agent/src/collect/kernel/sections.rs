//! Sections under locks of the kernel: at which functions their programs are attached, and what they have counted.

use std::{collections::BTreeMap, mem::offset_of};

use aya::{
    Btf,
    maps::{Map, MapData, MapError, PerCpuArray},
};
use aya_obj::btf::BtfKind;
use ft_ebpf::{SectionBin, Sections, kind, read, section};
use ft_trace::bytes::u64_at;

use super::{
    Group, Missing,
    groups::{Hook, Program},
};
use crate::clock::monotonic_ns;

/// The map with the counts.
pub(super) const COUNTS: &str = "SECTIONS";

/// All maps, which are large.
pub(super) const MAPS: [&str; 3] = [COUNTS, "SLEEPERS", "SPINS"];

/// One value of it.
const BYTES: usize = size_of::<Sections>();

const fn section(name: &'static str, hook: Hook) -> Program {
    Program { name, group: Group::Section, hook, required: false, follows: false, event: None }
}

const fn ends(name: &'static str, function: &'static str) -> Program {
    section(name, Hook::Enters(function))
}

const fn begins(name: &'static str, function: &'static str) -> Program {
    section(name, Hook::Returns(function))
}

/// The programs of locks of one sort.
struct Locks {
    /// Where they are released: where one of these functions is inlined, nothing of them can be known.
    ends: &'static [Program],
    /// Where they are taken: what is missing here shows as ends without a begin.
    begins: &'static [Program],
}

const LOCKS: [Locks; 9] = [
    Locks {
        ends: &[
            ends("section_spin_unlock", "_raw_spin_unlock"),
            ends("section_spin_unlock_irq", "_raw_spin_unlock_irq"),
            ends("section_spin_unlock_irqrestore", "_raw_spin_unlock_irqrestore"),
            ends("section_spin_unlock_bh", "_raw_spin_unlock_bh"),
        ],
        begins: &[
            begins("section_spin_lock", "_raw_spin_lock"),
            begins("section_spin_lock_irq", "_raw_spin_lock_irq"),
            begins("section_spin_lock_irqsave", "_raw_spin_lock_irqsave"),
            begins("section_spin_lock_bh", "_raw_spin_lock_bh"),
            begins("section_spin_trylock", "_raw_spin_trylock"),
            begins("section_spin_trylock_bh", "_raw_spin_trylock_bh"),
        ],
    },
    Locks {
        ends: &[
            ends("section_read_unlock", "_raw_read_unlock"),
            ends("section_read_unlock_irq", "_raw_read_unlock_irq"),
            ends("section_read_unlock_irqrestore", "_raw_read_unlock_irqrestore"),
            ends("section_read_unlock_bh", "_raw_read_unlock_bh"),
        ],
        begins: &[
            begins("section_read_lock", "_raw_read_lock"),
            begins("section_read_lock_irq", "_raw_read_lock_irq"),
            begins("section_read_lock_irqsave", "_raw_read_lock_irqsave"),
            begins("section_read_lock_bh", "_raw_read_lock_bh"),
            begins("section_read_trylock", "_raw_read_trylock"),
        ],
    },
    Locks {
        ends: &[
            ends("section_write_unlock", "_raw_write_unlock"),
            ends("section_write_unlock_irq", "_raw_write_unlock_irq"),
            ends("section_write_unlock_irqrestore", "_raw_write_unlock_irqrestore"),
            ends("section_write_unlock_bh", "_raw_write_unlock_bh"),
        ],
        begins: &[
            begins("section_write_lock", "_raw_write_lock"),
            begins("section_write_lock_irq", "_raw_write_lock_irq"),
            begins("section_write_lock_irqsave", "_raw_write_lock_irqsave"),
            begins("section_write_lock_bh", "_raw_write_lock_bh"),
            begins("section_write_trylock", "_raw_write_trylock"),
        ],
    },
    Locks {
        ends: &[ends("section_rt_spin_unlock", "rt_spin_unlock")],
        begins: &[
            begins("section_rt_spin_lock", "rt_spin_lock"),
            begins("section_rt_spin_trylock", "rt_spin_trylock"),
            begins("section_rt_spin_trylock_bh", "rt_spin_trylock_bh"),
        ],
    },
    Locks {
        ends: &[ends("section_rt_read_unlock", "rt_read_unlock")],
        begins: &[
            begins("section_rt_read_lock", "rt_read_lock"),
            begins("section_rt_read_trylock", "rt_read_trylock"),
        ],
    },
    Locks {
        ends: &[ends("section_rt_write_unlock", "rt_write_unlock")],
        begins: &[
            begins("section_rt_write_lock", "rt_write_lock"),
            begins("section_rt_write_trylock", "rt_write_trylock"),
        ],
    },
    Locks {
        ends: &[ends("section_mutex_unlock", "mutex_unlock")],
        begins: &[
            begins("section_mutex_lock", "mutex_lock"),
            begins("section_mutex_lock_interruptible", "mutex_lock_interruptible"),
            begins("section_mutex_lock_killable", "mutex_lock_killable"),
            begins("section_mutex_trylock", "mutex_trylock"),
        ],
    },
    Locks {
        ends: &[
            ends("section_up_read", "up_read"),
            ends("section_up_write", "up_write"),
            ends("section_downgrade_write", "downgrade_write"),
        ],
        begins: &[
            begins("section_down_read", "down_read"),
            begins("section_down_read_interruptible", "down_read_interruptible"),
            begins("section_down_read_killable", "down_read_killable"),
            begins("section_down_read_trylock", "down_read_trylock"),
            begins("section_down_write", "down_write"),
            begins("section_down_write_killable", "down_write_killable"),
            begins("section_down_write_trylock", "down_write_trylock"),
        ],
    },
    Locks {
        ends: &[ends("section_up", "up")],
        begins: &[
            begins("section_down", "down"),
            begins("section_down_interruptible", "down_interruptible"),
            begins("section_down_killable", "down_killable"),
            begins("section_down_trylock", "down_trylock"),
            begins("section_down_timeout", "down_timeout"),
        ],
    },
];

/// The programs of all locks whose releases are functions of this kernel, ends before begins; and the functions that are not,
/// though others take such locks: a real-time kernel has sorts that others have not, and the other way round.
pub(super) fn present(btf: &Btf) -> (Vec<&'static Program>, Vec<Missing>) {
    chosen(|function| btf.id_by_type_name_kind(function, BtfKind::Func).is_ok())
}

fn chosen(has: impl Fn(&str) -> bool) -> (Vec<&'static Program>, Vec<Missing>) {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for locks in &LOCKS {
        let lacks = |program: &&Program| !has(function(program));
        if locks.begins.iter().all(|program| lacks(&program)) {
            continue;
        }
        let inlined: Vec<_> = locks.ends.iter().filter(lacks).collect();
        if inlined.is_empty() {
            found.extend(locks.ends.iter().chain(locks.begins.iter().filter(|p| !lacks(p))));
        }
        missing.extend(
            inlined
                .into_iter()
                .map(|program| Missing { group: Group::Section, tracepoint: function(program) }),
        );
    }
    (found, missing)
}

fn function(program: &Program) -> &'static str {
    match program.hook {
        Hook::Enters(function) | Hook::Returns(function) => function,
        _ => program.name,
    }
}

/// What the programs are told of their room, which a test can have less of: sections that are open at once, threads that have
/// some, callers that are told apart.
pub(super) fn globals(most: Option<u32>) -> [(&'static str, u32); 3] {
    let room = |usual: u32| most.map_or(usual, |most| usual.min(most));
    [
        ("SECTION_OPEN", room(section::OPEN)),
        // A power of two, as the programs need.
        ("SECTION_THREADS", 1 << room(section::THREADS).max(1).ilog2()),
        ("SECTION_CALLERS", room(section::CALLERS)),
    ]
}

/// Appends what was counted since the start, the CPUs together.
///
/// # Errors
///
/// When the map cannot be read.
pub(super) fn append(map: Option<&Map>, out: &mut Vec<u8>) -> Result<(), MapError> {
    let missing = || MapError::InvalidName { name: COUNTS.to_owned() };
    let counts: PerCpuArray<&MapData, [u8; BYTES]> = map.ok_or_else(missing)?.try_into()?;
    let mut sums = Sums::default();
    for index in 0..section::ROWS {
        counts.get(&index, 0)?.iter().for_each(|of_cpu| sums.add(index, of_cpu));
    }
    sums.append(monotonic_ns() as u64, out);
    Ok(())
}

/// Counts by key and caller, and what they count: of lengths and depths with where a bin begins.
#[derive(Default)]
struct Sums(BTreeMap<(u32, u64, u16, u64), SectionBin>);

impl Sums {
    /// Adds a row of one CPU. The first are those of no caller, each of its own key.
    fn add(&mut self, index: u32, row: &[u8; BYTES]) {
        let word = |at: usize| u64_at(row, at).unwrap_or(0);
        let bin = |at: usize| read::<SectionBin>(&row[at..]).unwrap_or_default();
        let key = match index < section::row(section::KINDS, false) {
            true => index,
            false => word(offset_of!(Sections, key)) as u32,
        };
        let caller = word(offset_of!(Sections, caller));
        let lengths = (0..section::LENGTHS).map(|i| {
            let at = offset_of!(Sections, lengths) + i * size_of::<SectionBin>();
            (section::LENGTH, section::from_ns(i), bin(at))
        });
        let depths = (0..section::DEPTHS).map(|i| {
            let at = offset_of!(Sections, depths) + i * size_of::<SectionBin>();
            (section::DEPTH, i as u64, bin(at))
        });
        let counter =
            |what, at: usize| (what, 0, SectionBin { count: word(at), ..SectionBin::default() });
        let counters = [
            counter(section::BEGUN, offset_of!(Sections, begun)),
            counter(section::FULL, offset_of!(Sections, full)),
            counter(section::ENDS, offset_of!(Sections, ends)),
            counter(section::SKIPPED, offset_of!(Sections, skipped)),
        ];
        // Of what has begun it is known how much is our own, be it nothing.
        let own = (section::OWN, 0, bin(offset_of!(Sections, own)));
        let has_begun = word(offset_of!(Sections, begun)) > 0;
        for (what, from, bin) in lengths.chain(depths).chain(counters).chain([own]) {
            if bin.count > 0 || what == section::OWN && has_begun {
                let sum = self.0.entry((key, caller, what, from)).or_default();
                sum.count += bin.count;
                sum.total_ns += bin.total_ns;
                sum.max_ns = sum.max_ns.max(bin.max_ns);
            }
        }
    }

    /// Appends their records.
    fn append(self, now_ns: u64, out: &mut Vec<u8>) {
        for ((key, caller, what, from), bin) in self.0 {
            let words = [caller, from, bin.count, bin.total_ns, bin.max_ns];
            out.extend_from_slice(&now_ns.to_ne_bytes());
            out.extend_from_slice(&kind::SECTION.to_ne_bytes());
            out.extend_from_slice(&[0; 6]);
            words.iter().for_each(|word| out.extend_from_slice(&word.to_ne_bytes()));
            out.extend_from_slice(&((key / 2) as u16).to_ne_bytes());
            out.extend_from_slice(&what.to_ne_bytes());
            out.extend_from_slice(&(key % 2).to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use ft_ebpf::Section;

    /// A kernel that is no real-time one has these, if they are not inlined.
    fn is_usual(function: &str) -> bool {
        !function.starts_with("rt_")
    }

    fn functions(programs: &[&'static Program]) -> BTreeSet<&'static str> {
        programs.iter().map(|program| function(program)).collect()
    }

    #[test]
    fn where_a_release_is_inlined_nothing_is_watched_of_its_locks() {
        let (found, missing) =
            chosen(|function| is_usual(function) && function != "_raw_spin_unlock");
        assert!(found.iter().all(|program| !program.name.contains("spin")));
        assert_eq!(missing.iter().map(|m| m.tracepoint).collect::<Vec<_>>(), ["_raw_spin_unlock"]);
        // The others are watched: spinlocks of readers and of writers, mutexes, and both sorts of semaphores.
        for other in
            ["_raw_read_unlock", "_raw_write_lock_irq", "mutex_unlock", "up_write", "down_timeout"]
        {
            assert!(functions(&found).contains(other), "{other}");
        }
        let (all, _) = chosen(is_usual);
        let (found, missing) =
            chosen(|function| is_usual(function) && function != "_raw_spin_trylock");
        assert_eq!((all.len() - found.len(), missing.len()), (1, 0));
    }

    #[test]
    fn what_a_kernel_does_not_have_at_all_is_not_missing() {
        // The spinlocks of readers and writers of a real-time kernel are of another sort.
        let (found, missing) = chosen(|function| {
            !["_raw_read_", "_raw_write_"].iter().any(|p| function.starts_with(p))
        });
        assert!(missing.is_empty(), "{missing:?}");
        let real_time = functions(&found);
        for function in ["_raw_spin_lock", "rt_spin_unlock", "rt_read_lock", "rt_write_trylock"] {
            assert!(real_time.contains(function), "{function}");
        }
        let (found, missing) = chosen(is_usual);
        assert!(missing.is_empty(), "{missing:?}");
        assert!(functions(&found).iter().all(|function| is_usual(function)));
    }

    #[test]
    fn there_is_room_for_as_many_as_the_maps_have_or_fewer() {
        let room = |most| globals(most).map(|(_, n)| n);
        assert_eq!(room(None), [section::OPEN, section::THREADS, section::CALLERS]);
        assert_eq!(room(Some(u32::MAX)), room(None));
        assert_eq!(room(Some(5)), [5, 4, 5]);
        assert_eq!(room(Some(0)), [0, 1, 0]);
    }

    #[test]
    fn the_last_bin_has_all_that_is_longer() {
        for bin in 0..section::LENGTHS {
            assert_eq!(section::bin(section::from_ns(bin)), bin);
            assert!(bin == 0 || section::bin(section::from_ns(bin) - 1) == bin - 1);
        }
        let last = section::LENGTHS - 1;
        assert_eq!(section::from_ns(last), 3 << 30, "3.2 s");
        assert_eq!(section::bin(u64::MAX), last);
        // What is followed has a depth of its own.
        assert_eq!(section::DEPTHS as u32, section::OPEN);
    }

    #[test]
    fn the_counts_of_all_cpus_are_records_by_key_and_caller() {
        let mut row = [0; BYTES];
        let mut put = |at: usize, word: u64| row[at..at + 8].copy_from_slice(&word.to_ne_bytes());
        put(offset_of!(Sections, begun), 3);
        put(offset_of!(Sections, skipped), 2);
        let bin = offset_of!(Sections, lengths) + 12 * size_of::<SectionBin>();
        put(bin, 2);
        put(bin + 8, 150);
        put(bin + 16, 80);
        let own = offset_of!(Sections, own);
        [1, 35, 35].into_iter().zip([0, 8, 16]).for_each(|(word, at)| put(own + at, word));
        let mut sums = Sums::default();
        let key = section::key(section::WRITE, true);
        sums.add(key, &row);
        sums.add(key, &row);
        let mut out = Vec::new();
        sums.append(77, &mut out);
        let records: Vec<Section> =
            out.chunks(size_of::<Section>()).map(|record| read(record).unwrap()).collect();
        let found: Vec<_> = records.iter().map(|r| (r.what, r.from, r.bin.count)).collect();
        let expected = [
            (section::LENGTH, 64, 4),
            (section::BEGUN, 0, 6),
            (section::SKIPPED, 0, 4),
            (section::OWN, 0, 2),
        ];
        assert_eq!(found, expected);
        assert_eq!((records[3].bin.total_ns, records[3].bin.max_ns), (70, 35));
        assert_eq!((records[0].bin.total_ns, records[0].bin.max_ns), (300, 80));
        for r in &records {
            assert_eq!((r.header.ts, r.header.kind), (77, kind::SECTION));
            assert_eq!((u32::from(r.kind), r.interrupt), (section::WRITE, 1));
        }
    }
}
