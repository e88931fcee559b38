//! A made-up address space with one object in it, whole and damaged.

use super::*;
use ft_user::layout::{NOTE_OWNER, NOTE_TYPE};

const BASE: u64 = 0x5555_0000_0000;
const MAPS: &str = "555500000000-555500004000 r-xp 00000000 fe:01 1234 /usr/bin/app\n";

/// Where everything is in the object.
const NOTE: usize = 0x200;
const RECORDS: usize = 0x300;
const META: usize = 0x400;
const STRINGS: usize = 0x500;
const ARGS: usize = 0x600;
const TRIGGER: usize = 0x700;

/// Memory of a process: one range of bytes.
struct Image(Vec<u8>);

impl Image {
    /// An object with two triggers of one event with one argument.
    fn new() -> Image {
        let mut image = Image(vec![0; 0x4000]);
        image.put(0, b"\x7fELF\x02\x01\x01");
        image.put(32, &64u64.to_le_bytes());
        image.put(54, &56u16.to_le_bytes());
        image.put(56, &2u16.to_le_bytes());
        image.header(0, PT_LOAD, PF_X, 0, 0x4000);
        image.header(1, PT_NOTE, 0, NOTE as u64, 36);
        let note = [NOTE_OWNER.len() as u32, 8, NOTE_TYPE];
        image.put(NOTE, &note.map(u32::to_le_bytes).concat());
        image.put(NOTE + 12, NOTE_OWNER);
        image.put(NOTE + 28, &((RECORDS - NOTE - 28) as u32).to_le_bytes());
        image.put(NOTE + 32, &((RECORDS + 32 - NOTE - 32) as u32).to_le_bytes());
        for n in 0..2 {
            let at = RECORDS + 16 * n;
            image.put(at, &16u16.to_le_bytes());
            image.put(at + 2, &1u16.to_le_bytes());
            image.put(at + 4, &((TRIGGER + 8 * n - at - 4) as u32).to_le_bytes());
            image.put(at + 8, &((META - at - 8) as u32).to_le_bytes());
        }
        image.put(STRINGS, b"a.bx.rs{n}n");
        image.put(META, &72u16.to_le_bytes());
        image.put(META + 4, &17u32.to_le_bytes());
        image.string(META + 8, 0, 3);
        image.string(META + 24, 3, 4);
        image.string(META + 40, 7, 3);
        image.put(META + 56, &(BASE + ARGS as u64).to_le_bytes());
        image.put(META + 64, &1u64.to_le_bytes());
        image.string(ARGS, 10, 1);
        image.put(ARGS + 16, &[ArgType::Unsigned as u8]);
        image
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn header(&mut self, number: usize, kind: u32, flags: u32, at: u64, bytes: u64) {
        let header = 64 + 56 * number;
        self.put(header, &[kind, flags].map(u32::to_le_bytes).concat());
        self.put(header + 8, &[at, at, at, bytes, bytes].map(u64::to_le_bytes).concat());
    }

    fn string(&mut self, at: usize, offset: usize, bytes: u64) {
        let address = BASE + (STRINGS + offset) as u64;
        self.put(at, &[address, bytes].map(u64::to_le_bytes).concat());
    }

    fn scan(&self) -> Vec<Site> {
        scan(MAPS, &|at, buffer| self.read(at.wrapping_sub(BASE), buffer))
    }

    fn read(&self, from: u64, buffer: &mut [u8]) -> bool {
        let from = from as usize;
        let bytes = from.checked_add(buffer.len()).and_then(|end| self.0.get(from..end));
        bytes.is_some_and(|bytes| {
            buffer.copy_from_slice(bytes);
            true
        })
    }
}

fn site(n: u64) -> Site {
    Site {
        address: BASE + TRIGGER as u64 + 8 * n,
        meta: BASE + META as u64,
        kind: SiteKind::Event,
        line: 17,
        name: "a.b".into(),
        file: "x.rs".into(),
        format: "{n}".into(),
        args: vec![(ArgType::Unsigned, "n".into())],
        sled: None,
    }
}

#[test]
fn sites_are_found_by_their_note() {
    assert_eq!(Image::new().scan(), [site(0), site(1)]);
    assert_eq!(site(0).key(), 0x400);
}

#[test]
fn only_starts_of_readable_files_are_looked_at() {
    let check = |line, expected| assert_eq!(object_start(line), expected, "{line}");
    check(MAPS.trim_end(), Some(BASE));
    check("1000-2000 r--p 00000000 fe:01 7 /a b", Some(0x1000));
    check("1000-2000 r--p 00001000 fe:01 7 /a", None);
    check("1000-2000 ---p 00000000 fe:01 7 /a", None);
    check("1000-2000 r-xp 00000000 00:00 0 [vdso]", None);
    check("1000-2000 rw-p 00000000 00:00 0", None);
    check("zz-2000 r--p 0 fe:01 7 /a", None);
    check("", None);
}

#[test]
fn what_points_elsewhere_is_left_out() {
    let check = |at: usize, bytes: &[u8], expected: &[Site]| {
        let mut image = Image::new();
        image.put(at, bytes);
        assert_eq!(image.scan(), expected, "{bytes:x?} at {at:#x}");
    };
    let far = &[0xff; 8];
    // A trigger, and metadata, outside of the object.
    check(RECORDS + 4, &[0, 0, 0, 0x70], &[site(1)]);
    check(RECORDS + 8, &[0, 0, 0, 0x70], &[site(1)]);
    // A record of another version ends the section.
    check(RECORDS + 2, &[2], &[]);
    check(RECORDS + 18, &[2], &[site(0)]);
    // Strings and arguments nowhere, too long, too many; kinds and types that are none.
    check(META + 8, far, &[]);
    check(META + 16, far, &[]);
    check(META + 56, far, &[]);
    check(META + 64, &[7], &[]);
    check(META + 2, &[99], &[]);
    check(ARGS + 16, &[99], &[]);
    check(STRINGS, &[0xff], &[]);
    // A header table nowhere, a note of 2^63 bytes, a section beyond the object.
    check(32, far, &[]);
    check(64 + 56 + 40, &[0, 0, 0, 0, 0, 0, 0, 0x80], &[]);
    check(NOTE + 32, &[0, 0, 0, 0x10], &[]);
    // No executable part.
    check(64 + 4, &[4], &[]);
}

/// A section of 2 GiB, every record of which can be read and leads nowhere, in every one of very many
/// objects.
#[test]
fn a_search_ends() {
    let mut image = Image::new();
    image.header(0, PT_LOAD, PF_X, 0, 1 << 32);
    image.put(NOTE + 32, &i32::MAX.to_le_bytes());
    let reads = std::cell::Cell::new(0);
    let read = |at: u64, buffer: &mut [u8]| {
        reads.set(reads.get() + 1);
        let at = at - BASE;
        let record = RECORDS as u64 + at % 16;
        image.read(if at < META as u64 { at } else { record }, buffer)
    };
    assert_eq!(scan(&MAPS.repeat(100_000), &read), []);
    let most = MAX_SITES * 12 + MAX_OBJECTS * 4;
    assert!(reads.get() <= most, "{} reads", reads.get());
}

#[test]
fn any_damage_is_survived() {
    let mut state = 1u64;
    for _ in 0..20_000 {
        let mut image = Image::new();
        for _ in 0..3 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let random = state >> 32;
            let at = random as usize % (TRIGGER + 8);
            image.0[at] = if random >> 31 == 0 { 0xff } else { (random >> 16) as u8 };
        }
        assert!(image.scan().len() <= 0x4000 / 16);
    }
}

/// Also while it has mapped a file whose name is no UTF-8.
#[test]
fn the_sites_of_this_process_are_found() {
    use std::os::unix::ffi::OsStrExt as _;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    std::fs::write(&file, "some content").unwrap();
    let file = File::open(file).unwrap();
    // SAFETY: a new mapping, which is not used.
    let mapped = unsafe {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        mmap(std::ptr::null_mut(), 4096, ProtFlags::READ, MapFlags::PRIVATE, &file, 0)
    };
    mapped.expect("a mapping");
    ft_user::event!("outside.here", n: u64 = 7);
    let found = sites(std::process::id() as i32, &Mounts::own()).unwrap();
    let here = found.iter().find(|site| site.name == "outside.here").expect("it is in this test");
    assert_eq!((here.kind, here.file.as_str()), (SiteKind::Event, file!()));
    assert_eq!(here.args, [(ArgType::Unsigned, "n".to_owned())]);
    // As many as the process itself finds, in the same places.
    let mut own = Vec::new();
    site::for_each(|site| own.push((site.trigger as u64, site.meta.name().to_owned())));
    own.sort_unstable();
    assert_eq!(found.into_iter().map(|s| (s.address, s.name)).collect::<Vec<_>>(), own);
}

/// A list of mappings has devices in hexadecimal digits, one of mounts in decimal ones.
#[test]
fn what_programs_answer_for_is_not_read() {
    let maps = "\
1000-2000 r--p 00000000 00:3d 17                     /mnt/a b
2000-3000 rw-p 00000000 00:00 0
3000-4000 r-xp 00001000 00:3d 17                     /mnt/a b
4000-5000 r-xp 00000000 08:3d 18                     /usr/bin/x
";
    let fuse = Mounts::parse("31 22 0:61 / /mnt rw - fuse.sshfs host:/ rw\n");
    assert_eq!(answered_by_programs(maps, &fuse), [0x1000..0x2000, 0x3000..0x4000]);
    let none = Mounts::parse("31 22 0:61 / /mnt rw - tmpfs tmpfs rw\n");
    assert_eq!(answered_by_programs(maps, &none), []);
}
