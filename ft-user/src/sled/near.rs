//! Code that sleds can reach: the routines themselves where they are near, else a page of jumps to them.
//!
//! A call reaches 2 GiB, and a library that is loaded at its own place is farther from a program than that.
//!
//! No unwinder knows such a page: a stack that is walked from a jump in it, one instruction of each event, ends there. To register it
//! (`__register_frame`) would make each exception of the program take a lock, also in its signal handlers.

use std::ops::Range;

use super::stub;
use crate::kernel;
use crate::layout::PAGE;

/// How far a call reaches, with room for a sled's length.
const REACH: u64 = (1 << 31) - 64;

/// Below this the kernel maps nothing (`vm.mmap_min_addr`).
const LOWEST: u64 = 64 << 10;

/// Bytes of a jump: `jmp [rip]`, then the address.
const JUMP_BYTES: usize = 16;

/// The addresses to call, by the number of [`SledKind`](crate::layout::SledKind).
type Stubs = [u64; 4];

/// What there is.
pub(super) struct Near {
    /// Pages of jumps.
    pages: Vec<Stubs>,
}

impl Near {
    pub(super) const fn new() -> Near {
        Near { pages: Vec::new() }
    }

    /// What sleds in text with these addresses call; `None` where there is no room near it, or the process may make no
    /// code.
    pub(super) fn stubs(&mut self, text: &Range<u64>) -> Option<Stubs> {
        let routines = stub::routines();
        let known = [routines].into_iter().chain(self.pages.iter().copied());
        let is_near = |stubs: &Stubs| stubs.iter().all(|&stub| reaches(text, stub));
        if let Some(stubs) = known.into_iter().find(is_near) {
            return Some(stubs);
        }
        let maps = kernel::read_to_string("/proc/self/maps").ok()?;
        let gaps = gaps(&maps, text);
        let stubs = gaps.into_iter().find_map(|at| page(at, routines))?;
        self.pages.push(stubs);
        Some(stubs)
    }
}

/// Whether calls from anywhere in the text get there.
fn reaches(text: &Range<u64>, stub: u64) -> bool {
    text.start.abs_diff(stub) < REACH && text.end.abs_diff(stub) < REACH
}

/// Pages that nothing is mapped at, near text: those below it first, since what lies above may be the heap, which grows.
fn gaps(maps: &str, text: &Range<u64>) -> Vec<u64> {
    let range = |line: &str| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(number(start)?..number(end)?)
    };
    let mapped: Vec<Range<u64>> = maps.lines().filter_map(range).collect();
    let mut below = Vec::new();
    let mut above = Vec::new();
    let mut last = LOWEST;
    for range in &mapped {
        if range.start >= last.saturating_add(PAGE) {
            if range.start <= text.start {
                below.push(range.start - PAGE);
            } else if last >= text.end {
                above.push(last);
            }
        }
        last = last.max(range.end);
    }
    let is_near = |at: &u64| reaches(text, *at) && reaches(text, at + PAGE);
    below.into_iter().rev().chain(above).filter(is_near).collect()
}

/// Makes a page of jumps at an address, where nothing is.
fn page(at: u64, routines: Stubs) -> Option<Stubs> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let wanted = at as *mut libc::c_void;
    // SAFETY: the flag forbids to replace what is mapped. Kernels before 4.17 do not know it, and take the address for a hint.
    let page = unsafe { kernel::mmap(wanted, PAGE, rights, flags, -1, 0) }.ok()?;
    let page = page.as_ptr().cast::<libc::c_void>();
    let mut stubs = Stubs::default();
    for (number, routine) in routines.into_iter().enumerate() {
        let mut jump = [0xcc; JUMP_BYTES];
        jump[..6].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
        jump[6..14].copy_from_slice(&routine.to_le_bytes());
        let place = page.wrapping_byte_add(number * JUMP_BYTES);
        // SAFETY: a new page, which has room for more and nobody else knows.
        unsafe { place.cast::<[u8; JUMP_BYTES]>().write(jump) };
        stubs[number] = place as u64;
    }
    // SAFETY: the page is ours. It is never writable and executable at once.
    let made = unsafe { kernel::mprotect(page, PAGE, libc::PROT_READ | libc::PROT_EXEC) };
    if page == wanted && made.is_ok() {
        return Some(stubs);
    }
    // SAFETY: nobody knows it.
    unsafe { kernel::munmap(page, PAGE) };
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_sought_below_text_first_and_near_it() {
        let maps = "10000-20000 r--p\n\
                    400000-500000 r-xp 0 0:0 0 /bin/x\n\
                    500000-600000 rw-p 0 0:0 0 [heap]\n\
                    700000-701000 r-xp\n\
                    7fff00000000-7fff00010000 r-xp\n";
        // At the upper end of each gap below, at the lower end of each above.
        assert_eq!(gaps(maps, &(0x40_0000..0x50_0000)), [0x3f_f000, 0x60_0000, 0x70_1000]);
        assert_eq!(gaps(maps, &(0x7fff_0000_0000..0x7fff_0001_0000)), [0x7ffe_ffff_f000]);
        assert_eq!(gaps("rubbish", &(0..1)), []);
    }

    #[test]
    fn the_lowest_addresses_are_no_room() {
        let maps = "10000-20000 r-xp\n20000-30000 rw-p\n";
        assert_eq!(gaps(maps, &(0x1_0000..0x2_0000)), []);
    }

    #[test]
    fn a_page_is_code_and_leads_to_the_routines() {
        let here = stub::routines()[0];
        let far = (here & !0xfff_ffff) - (1 << 40);
        let stubs = page(far, [1, 2, 3, 4]).expect("there is nothing at such a place");
        assert_eq!(page(far, [1, 2, 3, 4]), None, "there is something now");
        assert_eq!(stubs, [far, far + 16, far + 32, far + 48]);
        for (stub, routine) in stubs.into_iter().zip(1u64..) {
            // SAFETY: the page can be read.
            let jump = unsafe { (stub as *const [u8; 14]).read() };
            assert_eq!((jump[0], jump[1], &jump[6..]), (0xff, 0x25, &routine.to_le_bytes()[..]));
        }
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.starts_with(&format!("{far:x}-"))).unwrap();
        assert!(line.contains(" r-xp "), "{line}");
    }
}
