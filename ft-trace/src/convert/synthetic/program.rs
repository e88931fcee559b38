//! Programs that are made to harm who looks for names in them: valid ELF files of one segment, at address 0.

/// Where each has a function, and how long that is.
pub const CODE: u64 = 0x1000;

/// A section of such a program.
struct Section<'s> {
    name: &'s str,
    kind: u32,
    flags: u64,
    content: Vec<u8>,
    /// Number of the section of its names, from 1 on.
    names: u32,
    entry: u64,
}

impl<'s> Section<'s> {
    fn of(name: &'s str, content: Vec<u8>) -> Section<'s> {
        Section { name, kind: 1, flags: 0, content, names: 0, entry: 0 }
    }
}

/// What the function does: it counts for some 0.1 s, and returns.
const COUNT: [u8; 10] = [0xb9, 0, 0, 0, 0x10, 0xff, 0xc9, 0x75, 0xfc, 0xc3];

/// A program that has nothing but the function and these sections (elf(5)).
fn program(mut sections: Vec<Section<'_>>) -> Vec<u8> {
    const OWN: &str = ".names";
    let names = sections.iter().map(|section| section.name).chain([OWN]);
    let names: Vec<u8> =
        names.flat_map(|name| format!("\0{name}").into_bytes()).chain([0]).collect();
    sections.push(Section { kind: 3, ..Section::of(OWN, names.clone()) });
    let mut file = vec![0; CODE as usize];
    file.extend(COUNT);
    let mut headers = vec![0; 64];
    for Section { name, kind, flags, content, names: link, entry } in &sections {
        let name = format!("\0{name}\0").into_bytes();
        let at = names.windows(name.len()).position(|found| found == name).unwrap_or(0) + 1;
        let words = [*flags, 0, file.len() as u64, content.len() as u64];
        headers.extend((at as u32).to_le_bytes().into_iter().chain(kind.to_le_bytes()));
        headers.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        headers.extend(link.to_le_bytes().into_iter().chain(1_u32.to_le_bytes()));
        headers.extend([1, *entry].iter().flat_map(|word: &u64| word.to_le_bytes()));
        file.extend(content);
    }
    let (table, count) = (file.len() as u64, sections.len() as u16);
    let mut put = |at: usize, value: &[u8]| file[at..at + value.len()].copy_from_slice(value);
    put(0, b"\x7fELF\x02\x01\x01");
    // A shared object for x86-64.
    put(16, &[3, 0, 62, 0, 1]);
    put(32, &64_u64.to_le_bytes());
    put(40, &table.to_le_bytes());
    for (at, word) in [(52, 64), (54, 56), (56, 1), (58, 64), (60, count + 1), (62, count)] {
        put(at, &word.to_le_bytes());
    }
    // One segment, to be read and executed, larger than any of these.
    put(64, &[1, 0, 0, 0, 5]);
    [96, 104].iter().for_each(|&at| put(at, &(1_u64 << 32).to_le_bytes()));
    file.extend(headers);
    file
}

/// A program in whose function so many others are inlined, each in the one before.
pub fn deep(depth: usize) -> Vec<u8> {
    let abbreviations = [
        &[1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0, 0][..],
        &[2, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0],
        &[3, 0x1d, 1, 0, 0, 0],
    ];
    let whole = [CODE, CODE].map(u64::to_le_bytes).concat();
    let (begins, ends) = (vec![3; depth], vec![0; depth + 2]);
    let unit = [&[4, 0, 0, 0, 0, 0, 8, 1][..], &whole, &[2], b"deep\0", &whole, &begins, &ends];
    let unit = unit.concat();
    let unit = [&(unit.len() as u32).to_le_bytes()[..], &unit].concat();
    let abbreviations = Section::of(".debug_abbrev", abbreviations.concat());
    program(vec![Section::of(".debug_info", unit), abbreviations])
}

/// A program whose function has this name.
pub fn named(name: &[u8]) -> Vec<u8> {
    program(symbols(name))
}

/// The symbol table of such a program, and its names.
fn symbols(name: &[u8]) -> Vec<Section<'static>> {
    let symbol = [vec![0; 24], vec![1, 0, 0, 0, 0x12, 0, 1, 0]].concat();
    let symbols = [symbol, [CODE, CODE].map(u64::to_le_bytes).concat()].concat();
    let symbols = Section { kind: 2, names: 2, entry: 24, ..Section::of(".symtab", symbols) };
    let names = Section { kind: 3, ..Section::of(".strtab", [b"\0", name, b"\0"].concat()) };
    vec![symbols, names]
}

/// A program whose function is called `split`, and whose debugging information says that the rest of it is in this file.
pub fn split(directory: &str, file: &str) -> Vec<u8> {
    // A unit with the file's name and directory, its number, and where its code is (DWARF 4, with GNU's names for split ones).
    let abbreviations = [
        &[1, 0x11, 0, 0xb0, 0x42, 0x08, 0x1b, 0x08, 0xb1, 0x42, 0x07][..],
        &[0x11, 0x01, 0x12, 0x07, 0, 0, 0],
    ];
    let names = [file.as_bytes(), b"\0", directory.as_bytes(), b"\0"].concat();
    let numbers = [7, CODE, CODE].map(u64::to_le_bytes).concat();
    let unit = [&[4, 0, 0, 0, 0, 0, 8, 1][..], &names, &numbers].concat();
    let unit = [&(unit.len() as u32).to_le_bytes()[..], &unit].concat();
    let mut sections = symbols(b"split");
    sections.push(Section::of(".debug_info", unit));
    sections.push(Section::of(".debug_abbrev", abbreviations.concat()));
    program(sections)
}

/// A name of 200 bytes that stands for one of gigabytes.
pub fn exploding() -> String {
    let mut name = "_Z1f1AIiE1BI".to_owned() + &"S0_".repeat(4) + "E";
    for last in "S2_ S3_ S4_ S5_ S6_ S7_ S8_ S9_ SA_ SB_ SC_ SD_ SE_".split(' ') {
        name += &format!("S1_I{}E", last.repeat(4));
    }
    name
}

/// That a section is compressed.
const COMPRESSED: u64 = 0x800;

/// A program with a section that says to be so large when it is inflated, and is not.
pub fn inflated(bytes: u64) -> Vec<u8> {
    let header = [1, bytes, 1].map(u64::to_le_bytes).concat();
    program(vec![Section { flags: COMPRESSED, ..Section::of(".debug_str", header) }])
}

/// A program whose function is called `zeros`, with a section of so many of them, a multiple of 128 KiB: four bytes for each of these.
pub fn zeros(bytes: u64) -> Vec<u8> {
    const BLOCK_BYTES: u64 = 1 << 17;
    let header = [2, bytes, 1].map(u64::to_le_bytes).concat();
    // One frame of blocks of one byte that is repeated (RFC 8878).
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];
    let blocks = bytes / BLOCK_BYTES;
    let block = |n: u64| {
        let [a, b, c, ..] = (BLOCK_BYTES << 3 | 1 << 1 | u64::from(n + 1 == blocks)).to_le_bytes();
        [a, b, c, 0]
    };
    let content = header.into_iter().chain(frame).chain((0..blocks).flat_map(block)).collect();
    let mut sections = symbols(b"zeros");
    sections.push(Section { flags: COMPRESSED, ..Section::of(".debug_str", content) });
    program(sections)
}
