//! The sites of a process, found from outside: its memory answers anything, and so do its maps. The object
//! is this program itself, of which single answers are damaged. What is found holds what is promised, and
//! the search ends.
#![no_main]

use std::cell::Cell;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use ft_agent::collect::maps;
use ft_agent::collect::outside::{MAX_SITES, scan};
use ft_user::directory::MAX_STRING_BYTES;
use ft_user::layout::MAX_ARGS;
use libfuzzer_sys::fuzz_target;

/// Which answer, which byte of it on, what stands there instead; nothing: it cannot be read.
type Damage = (u8, u16, Option<u64>);

/// Lines for the maps beside that of this program, and damages.
type Input<'a> = (&'a [u8], Vec<Damage>);

/// Objects, program headers, notes, and then no more than twelve answers for a site.
const MOST_READS: usize = 12 * MAX_SITES + (1 << 18);

fuzz_target!(|input: Input<'_>| {
    let (lines, damages) = input;
    ft_user::event!("fuzz.site", n: u64 = 1, name: &str = "it"; "{n} of {name}");
    let lines = String::from_utf8_lossy(lines);
    for mapping in maps::parse(&lines) {
        assert!(mapping.path.starts_with('/'));
    }
    let (memory, own) = program();
    let reads = Cell::new(0);
    let read = |at: u64, buffer: &mut [u8]| {
        let number = reads.replace(reads.get() + 1);
        assert!(number < MOST_READS, "it does not end");
        let mut there = memory.read_exact_at(buffer, at).is_ok();
        for &(_, from, value) in damages.iter().filter(|damage| usize::from(damage.0) == number) {
            there = value.is_some();
            let bytes = value.unwrap_or_default().to_ne_bytes();
            let at = usize::from(from) % buffer.len().max(1);
            buffer[at..].iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
        }
        there
    };
    let sites = scan(&format!("{own}\n{lines}"), &read);
    assert!(sites.len() <= MAX_SITES);
    assert!(sites.is_sorted_by(|a, b| a.address < b.address));
    for site in &sites {
        assert!([&site.name, &site.file, &site.format].iter().all(|s| s.len() <= MAX_STRING_BYTES));
        assert!(site.args.len() <= MAX_ARGS);
    }
    if damages.is_empty() {
        assert!(sites.iter().any(|site| site.name == "fuzz.site"), "{sites:?}");
    }
});

/// The memory of this process, and the line of its maps where its program begins.
fn program() -> &'static (File, String) {
    static PROGRAM: OnceLock<(File, String)> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let path = fs::read_link("/proc/self/exe").unwrap();
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let own = maps.lines().find(|line| line.ends_with(path.to_str().unwrap())).unwrap();
        (File::open("/proc/self/mem").unwrap(), own.to_owned())
    })
}
