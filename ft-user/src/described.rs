//! Where the directory describes sites, so that a forked child can copy that.
//!
//! To look for the sites anew the child would have to walk the list of loaded objects, whose lock another thread may have held at
//! the fork; and to describe those that are known it would have to read objects that may be unloaded. The entries of the parent's
//! directory are whole: they are written under the process lock, which is held across a fork. Between them stand names and places,
//! which are not: another thread may be writing one. Those are written anew from what is interned.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use crate::critical::Held;
use crate::directory::Directory;

/// Runs of entries without another one in between. More cannot be: each name and each place ends one, of which there are 5,120.
///
/// Limit: cannot be reached: each of 5,120 names and places ends a stretch. More than four such handlers that have not
/// returned are not provided for.
/// Shown by: `runs_are_bounded_and_the_first_are_kept`.
const RUNS: usize = 8192;

/// Those of the present directory.
pub(crate) static DESCRIBED: Described = Described::new();

/// Atomics for a static's sake: whoever reads or writes holds the process lock.
pub(crate) struct Described {
    /// Of each run, its first byte, and the byte behind its last.
    runs: [[AtomicU32; 2]; RUNS],
    len: AtomicUsize,
}

impl Described {
    const fn new() -> Described {
        Described {
            runs: [const { [const { AtomicU32::new(0) }; 2] }; RUNS],
            len: AtomicUsize::new(0),
        }
    }

    /// An entry that describes a site was written there, if there was room for it.
    pub(crate) fn add(&self, part: Option<Range<u32>>, _held: &Held<'_>) {
        let Some(part) = part else { return };
        let len = self.len.load(Relaxed);
        if let Some([_, end]) = len.checked_sub(1).map(|last| &self.runs[last])
            && end.load(Relaxed) == part.start
        {
            end.store(part.end, Relaxed);
        } else if let Some([begin, end]) = self.runs.get(len) {
            begin.store(part.start, Relaxed);
            end.store(part.end, Relaxed);
            self.len.store(len + 1, Relaxed);
        }
    }

    /// Calls `f` with the address of each trigger that is described there.
    pub(crate) fn for_each_trigger(
        &self,
        directory: &Directory,
        _held: &Held<'_>,
        mut f: impl FnMut(u64),
    ) {
        for [begin, end] in &self.runs[..self.len.load(Relaxed)] {
            directory.triggers(begin.load(Relaxed)..end.load(Relaxed), &mut f);
        }
    }

    /// Nothing is described yet.
    pub(crate) fn clear(&self, _held: &Held<'_>) {
        self.len.store(0, Relaxed);
    }

    /// In a forked child: describes in its own directory what its parent's describes.
    pub(crate) fn copy(&self, from: &Directory, to: &Directory, held: &Held<'_>) {
        let len = self.len.load(Relaxed);
        self.clear(held);
        // No run is written before it was read: there are never more of them.
        for [begin, end] in &self.runs[..len] {
            let part = begin.load(Relaxed)..end.load(Relaxed);
            self.add(to.copy(from, part), held);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::critical::Lock;
    use crate::directory::{Entry, parse};
    use crate::layout::{DIR_BYTES, Header};

    /// A directory on the heap, leaked.
    fn directory() -> (Directory, &'static [u64]) {
        let memory = Vec::leak(vec![0u64; DIR_BYTES as usize / 8]);
        // SAFETY: all of `Header` may be zero.
        let header = Box::leak(Box::new(unsafe { core::mem::zeroed::<Header>() }));
        let base = memory.as_mut_ptr().cast();
        // SAFETY: `memory` is zero, large enough, aligned to 8 and never freed.
        (unsafe { Directory::new(base, header) }, memory)
    }

    #[test]
    fn a_child_has_the_sites_of_its_parent_and_nothing_that_may_not_be_whole() {
        static DESCRIBED: Described = Described::new();
        let lock = Lock::new();
        let held = lock.hold();
        let (parent, _) = directory();
        for site in 1..=300 {
            DESCRIBED.add(parent.site(8, site), &held);
            if site % 3 == 0 {
                parent.name(1, "between");
            }
        }
        assert_eq!(DESCRIBED.len.load(Relaxed), 100);
        let mut from = parent;
        for _child_and_grandchild in 0..2 {
            let (to, memory) = directory();
            DESCRIBED.copy(&from, &to, &held);
            assert_eq!(DESCRIBED.len.load(Relaxed), 1);
            // SAFETY: any `u64` is eight bytes, and nobody writes any more.
            let bytes =
                unsafe { core::slice::from_raw_parts(memory.as_ptr().cast(), size_of_val(memory)) };
            let addresses = parse(bytes).map(|entry| match entry {
                Ok(Entry::Site { key: 8, address }) => address,
                other => panic!("{other:?}"),
            });
            assert!(addresses.eq(1..=300));
            from = to;
        }
    }

    #[test]
    fn triggers_are_those_that_are_described_whatever_stands_there() {
        static DESCRIBED: Described = Described::new();
        let lock = Lock::new();
        let held = lock.hold();
        let (directory, memory) = directory();
        let first = directory.site(8, 1);
        DESCRIBED.add(first.clone(), &held);
        directory.name(1, "between");
        DESCRIBED.add(directory.site(8, 2), &held);
        DESCRIBED.add(directory.site(8, 3), &held);
        let triggers = || {
            let mut found = Vec::new();
            DESCRIBED.for_each_trigger(&directory, &held, |trigger| found.push(trigger));
            found
        };
        assert_eq!(triggers(), [1, 2, 3]);
        // Whoever has the memfd can write to it: the size of the first entry.
        for bytes in [0, 4, 7, 16, 1 << 20, u32::MAX] {
            let word = memory.as_ptr().cast_mut().cast::<u32>().wrapping_add(1);
            // SAFETY: inside of the directory, which only this thread uses.
            unsafe { word.write_volatile(bytes) };
            assert!(triggers().ends_with(&[2, 3]), "{bytes}");
        }
    }

    #[test]
    fn runs_are_bounded_and_the_first_are_kept() {
        static DESCRIBED: Described = Described::new();
        let lock = Lock::new();
        for n in 0..RUNS as u32 + 3 {
            DESCRIBED.add(Some(16 * n..16 * n + 8), &lock.hold());
        }
        assert_eq!(DESCRIBED.len.load(Relaxed), RUNS);
        assert_eq!(DESCRIBED.runs[RUNS - 1][0].load(Relaxed), 16 * (RUNS as u32 - 1));
    }
}
