//! Takes hold of a process's memfd.
//!
//! Rule: whatever was received is looked at, and not opened, until it is proved to be plain memory of a final size
//! that its sender may write: to open a descriptor again can block (a lease), take a terminal for ours, or turn one
//! that only names a file into one that writes to it. Seals are the proof, which only memory has; memory of huge pages
//! has them, too, and faults when there is none left. Then comes the header by `read` and [`Geometry::check`], then the
//! map. After that every index is ours. Should an access fault all the same, `fault.rs` takes the map away
//! from under it. A lock on the file keeps two agents from draining one process.

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

use ft_user::layout::{DIR_BYTES, Header, PAGE, SEALS, SharedControl, SharedSlot, Slot};
use ft_user::ring::Ring;
use rustix::fs::{
    FlockOperation, Mode, OFlags, fcntl_get_seals, fcntl_getfl, flock, fstatfs, open,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::fault::Watched;
use super::geometry::{Geometry, HEADER_BYTES, Malformed};
use super::later::Later;

/// Why a memfd was refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It is no memfd, or one that was opened as a mere name (`O_PATH`): it has no seals.
    #[error("what it passed is no memfd")]
    NotMemory,
    /// Its sender may not write to it.
    #[error("its memfd is not open for reading and writing")]
    Access,
    /// It consists of huge pages, of which there may be none left when they are touched.
    #[error("its memfd consists of huge pages; make it of plain memory")]
    HugePages,
    /// Whoever opens it must wait for another process.
    #[error("its memfd is leased (fcntl(2), F_SETLEASE)")]
    Leased,
    /// It is not sealed against shrinking, growing and further seals.
    #[error("its memfd is not sealed (seals {0:#x}, wanted {SEALS:#x})")]
    Seals(u32),
    /// Its header is wrong.
    #[error("its memfd is malformed: {0}")]
    Header(#[from] Malformed),
    /// Its user has mapped as much as it may.
    #[error("its memfd is {0} GiB large, more than is left of its user's share of addresses")]
    Large(u32),
    /// Another agent holds the lock.
    #[error("another agent already records it; end that recording first")]
    Taken,
    /// What it has mapped cannot be asked.
    #[error(
        "it, or others of its user, did not answer in time: something holds the lock of its memory"
    )]
    Unanswered,
    /// The kernel refused.
    #[error("its memfd cannot be used: {0}")]
    Io(#[from] io::Error),
}

impl Refusal {
    /// For counting: whatever was passed.
    pub fn kind(&self) -> &'static str {
        match self {
            Refusal::NotMemory => "no memory",
            Refusal::Access => "access",
            Refusal::HugePages => "huge pages",
            Refusal::Leased => "leased",
            Refusal::Seals(_) => "seals",
            Refusal::Header(_) => "header",
            Refusal::Large(_) => "large",
            Refusal::Taken => "taken",
            Refusal::Unanswered => "unanswered",
            Refusal::Io(_) => "memory",
        }
    }
}

impl From<rustix::io::Errno> for Refusal {
    fn from(errno: rustix::io::Errno) -> Refusal {
        Refusal::Io(errno.into())
    }
}

/// Pages that are asked about at once: 2 MiB.
const BACKED_PAGES: usize = 512;

/// A checked and mapped memfd. Everything in it is shared with the process and may change at any time.
#[derive(Debug)]
pub struct Memory {
    base: NonNull<u8>,
    geometry: Geometry,
    watched: Watched,
    map: Later<Map>,
}

/// The memory of a program, which the kernel may give back here: that takes long if it is large.
#[derive(Debug)]
struct Map {
    base: NonNull<u8>,
    bytes: usize,
    /// An open file description of our own; holds the lock.
    file: File,
}

// SAFETY: the map belongs to no thread.
unsafe impl Send for Map {}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: `Memory::map` made exactly this map, and nothing borrowed from it outlives the `Memory`.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

// SAFETY: the map belongs to no thread, and all of it is read and written through atomics only.
unsafe impl Send for Memory {}

impl Memory {
    /// Checks, locks and maps the memfd behind `fd`, which may be any descriptor of it.
    ///
    /// # Errors
    ///
    /// A [`Refusal`].
    pub fn attach(fd: BorrowedFd<'_>) -> Result<Memory, Refusal> {
        prove(fd)?;
        let file = reopen(fd)?;
        let mut header = [0; HEADER_BYTES];
        file.read_exact_at(&mut header, 0).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => Refusal::Header(Malformed::Short),
            _ => Refusal::Io(e),
        })?;
        let geometry = Geometry::check(&header, file.metadata()?.len())?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(Refusal::Taken),
            locked => locked?,
        }
        Memory::map(file, geometry)
    }

    /// Maps a file that was proved to be what `geometry` says.
    fn map(file: File, geometry: Geometry) -> Result<Memory, Refusal> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: a new map at an address of the kernel's choice touches no existing object.
        let base = unsafe {
            mmap(ptr::null_mut(), geometry.total_bytes, protection, flags, file.as_fd(), 0)
        }?;
        let base = NonNull::new(base.cast()).expect("mmap gives no null");
        let watched = Watched::new(base.as_ptr() as usize, geometry.total_bytes);
        let map = Later::new(Map { base, bytes: geometry.total_bytes, file });
        Ok(Memory { base, geometry, watched, map })
    }

    /// An access has faulted: what is read from now on is zero, and belongs to nobody.
    pub fn has_faulted(&self) -> bool {
        self.watched.has_faulted()
    }

    /// Whether `fd` is a descriptor of the same memfd.
    pub fn is(&self, fd: BorrowedFd<'_>) -> bool {
        let id = |fd| rustix::fs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino)).ok();
        id(fd).is_some_and(|other| id(self.map.file.as_fd()) == Some(other))
    }

    /// The inode of the memfd, as `/proc/PID/maps` shows it.
    pub fn inode(&self) -> Option<u64> {
        rustix::fs::fstat(&self.map.file).map(|stat| stat.st_ino).ok()
    }

    /// Where everything is.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The header. Only its atomic fields may be read; the others are in the [`Geometry`].
    pub fn header(&self) -> &Header {
        // SAFETY: `Geometry::check` holds: the file has a whole header at 0.
        unsafe { self.at(0) }
    }

    /// The directory, in words of 4 bytes: kind, size, content of each entry.
    pub fn directory(&self) -> &[AtomicU32] {
        // SAFETY: `Geometry::check` holds: `DIR_BYTES` lie at `dir_offset`, a multiple of a page.
        unsafe { self.slice(self.geometry.dir_offset, DIR_BYTES as usize / size_of::<AtomicU32>()) }
    }

    /// Control page and slots of the shared ring.
    pub fn shared(&self) -> (&SharedControl, &[SharedSlot]) {
        let offset = self.geometry.shared_offset;
        let slots = self.geometry.shared_slots as usize;
        // SAFETY: `Geometry::check` holds: a page and `shared_slots` slots lie at `shared_offset`.
        unsafe { (self.at(offset), self.slice(offset + PAGE as usize, slots)) }
    }

    /// Ring `index`.
    ///
    /// # Panics
    ///
    /// When `index` is not below `ring_count`.
    pub fn ring(&self, index: u32) -> Ring<'_> {
        assert!(index < self.geometry.ring_count, "ring {index} does not exist");
        let offset = self.ring_offset(index);
        // SAFETY: `Geometry::check` holds: a page and `ring_slots` slots lie at every multiple of
        // `ring_stride` below `ring_count`, and the map is writable.
        let ring = unsafe { Ring::new(self.at(offset), self.geometry.ring_slots) };
        ring.expect("`Geometry::check` accepts what `Ring::new` accepts")
    }

    /// Slots of ring `index` from reservation `from` on, some thousands at most, that can be read
    /// without giving the file more memory than its process has written: to read where nothing was written takes
    /// a page, for us to pay.
    pub fn backed_slots(&self, index: u32, from: u64) -> u64 {
        let (at, end) = self.slot_range(index, from);
        let mut bytes = self.backed(at, end);
        if bytes == (end - at) as u64 {
            let (first, _) = self.slot_range(index, 0);
            bytes += self.backed(first, at);
        }
        bytes / size_of::<Slot>() as u64
    }

    /// Slots of ring `index` from reservation `from` on where nothing was written, up to the end of the ring and some thousands at most.
    pub fn unbacked_slots(&self, index: u32, from: u64) -> u64 {
        let (at, end) = self.slot_range(index, from);
        let page = PAGE as usize;
        let first = at / page * page;
        let pages = self.present(first, end).zip((first..end).step_by(page));
        let holes = pages.take_while(|&(is_there, page)| !is_there && !self.is_written(page));
        let written = (first + holes.count() * page).clamp(at, end);
        (written - at) as u64 / size_of::<Slot>() as u64
    }

    /// Slots of the shared ring from `position` on that can be read, as [`Memory::backed_slots`].
    pub fn backed_shared(&self, position: u32) -> u32 {
        let slots = self.geometry.shared_slots;
        let first = self.geometry.shared_offset + PAGE as usize;
        let at = first + (position & (slots - 1)) as usize * size_of::<SharedSlot>();
        let end = first + slots as usize * size_of::<SharedSlot>();
        (self.backed(at, end) / size_of::<SharedSlot>() as u64) as u32
    }

    /// The control page of ring `index` was written: some thread has claimed it.
    pub fn is_claimed(&self, index: u32) -> bool {
        let at = self.ring_offset(index);
        self.backed(at, at + PAGE as usize) > 0
    }

    /// Copies `[offset, offset + bytes.len())` without touching the map: nothing is taken for what was never written.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> io::Result<()> {
        self.map.file.read_exact_at(bytes, offset as u64)
    }

    /// Memory of the file, bytes, whoever has caused it.
    #[cfg(test)]
    pub(crate) fn resident_bytes(&self) -> u64 {
        // In units of 512 bytes (stat(3type)).
        use std::os::unix::fs::MetadataExt;
        self.map.file.metadata().map_or(0, |metadata| metadata.blocks().saturating_mul(512))
    }

    fn ring_offset(&self, index: u32) -> usize {
        self.geometry.rings_offset + index as usize * self.geometry.ring_stride
    }

    /// Offsets of the slot of a reservation, and of the end of its ring.
    fn slot_range(&self, index: u32, from: u64) -> (usize, usize) {
        let first = self.ring_offset(index) + PAGE as usize;
        let place = from as usize & (self.geometry.ring_slots as usize - 1);
        (
            first + place * size_of::<Slot>(),
            first + self.geometry.ring_slots as usize * size_of::<Slot>(),
        )
    }

    /// Bytes from offset `at` on, up to `end` and 2 MiB at most, of which every page is there.
    fn backed(&self, at: usize, end: usize) -> u64 {
        if at == end {
            return 0;
        }
        let page = PAGE as usize;
        let first = at / page * page;
        let mut there = self.present(first, end).take_while(|is_there| *is_there).count();
        let next = first + there * page;
        if there < BACKED_PAGES && next < end && self.is_written(next) {
            there += 1;
        }
        ((first + there * page).min(end).saturating_sub(at)) as u64
    }

    /// Of the pages from offset `first` up to `end` and [`BACKED_PAGES`] at most, which are in memory.
    fn present(&self, first: usize, end: usize) -> impl Iterator<Item = bool> + use<> {
        let page = PAGE as usize;
        let pages = (end.div_ceil(page) - first / page).min(BACKED_PAGES);
        let mut present = [0u8; BACKED_PAGES];
        // SAFETY: the range lies in the map, on pages of it, and `present` has a byte for each page.
        let asked = unsafe {
            libc::mincore(self.base.as_ptr().add(first).cast(), pages * page, present.as_mut_ptr())
        };
        present.into_iter().take(pages).map(move |byte| asked == 0 && byte & 1 != 0)
    }

    /// Something was written to the page at an offset. One that was swapped out is not present, and yet written (mincore(2)). `SEEK_DATA`
    /// would say so as well, but waits for the lock of the inode, which a process can hold for as long as it likes: a write to it from a
    /// page of a file that nobody delivers. Reading memory takes no such lock (`shmem_file_read_iter`, mm/shmem.c).
    fn is_written(&self, page: usize) -> bool {
        let mut bytes = [0; PAGE as usize];
        self.read(page, &mut bytes).is_ok() && bytes.iter().any(|byte| *byte != 0)
    }

    /// Writes to every page of a ring, as its process may.
    #[cfg(test)]
    pub(crate) fn populate_ring(&self, index: u32) {
        let (at, end) = self.slot_range(index, 0);
        for page in (at..end).step_by(PAGE as usize) {
            self.map.file.write_all_at(&[0; 8], page as u64).unwrap();
        }
    }

    /// # Safety
    ///
    /// `[offset, offset + size_of::<T>())` lies in the map, aligned, and every bit pattern is a `T`.
    unsafe fn at<T>(&self, offset: usize) -> &T {
        // SAFETY: by the contract above; the map lives as long as `self`.
        unsafe { self.base.add(offset).cast().as_ref() }
    }

    /// # Safety
    ///
    /// As for [`Memory::at`], for `count` elements.
    unsafe fn slice<T>(&self, offset: usize, count: usize) -> &[T] {
        // SAFETY: by the contract above; the map lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.base.add(offset).cast().as_ptr(), count) }
    }
}

/// Whether this is a sealed memfd of plain memory that can be written to. Asks no file system of a program.
///
/// # Errors
///
/// [`Refusal::NotMemory`], [`Refusal::HugePages`], [`Refusal::Seals`] or [`Refusal::Access`].
pub fn prove(fd: BorrowedFd<'_>) -> Result<(), Refusal> {
    // Fails for every file that is not memory (fcntl(2), EINVAL), and for `O_PATH` descriptors (EBADF).
    let seals = fcntl_get_seals(fd).map_err(|_| Refusal::NotMemory)?.bits();
    match fstatfs(fd)?.f_type {
        TMPFS_MAGIC => {}
        HUGETLBFS_MAGIC => return Err(Refusal::HugePages),
        _ => return Err(Refusal::NotMemory),
    }
    if seals & SEALS != SEALS {
        return Err(Refusal::Seals(seals));
    }
    if fcntl_getfl(fd)? & OFlags::ACCMODE != OFlags::RDWR {
        return Err(Refusal::Access);
    }
    Ok(())
}

/// An open file description of our own: a lock belongs to one, and `fd` shares its own with the process.
fn reopen(fd: BorrowedFd<'_>) -> Result<File, Refusal> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    // NONBLOCK: does not wait for the holder of a lease (open(2), EWOULDBLOCK).
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match open(path, flags, Mode::empty()) {
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Refusal::Leased),
        opened => Ok(opened?.into()),
    }
}

/// `f_type` of tmpfs, and of every memfd of plain pages (linux/magic.h).
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// `f_type` of hugetlbfs, and of a memfd of huge pages (linux/magic.h).
const HUGETLBFS_MAGIC: i64 = 0x9584_58f6;

impl Drop for Memory {
    fn drop(&mut self) {
        self.watched.forget();
        // Another agent may take it now.
        let _ = flock(&self.map.file, FlockOperation::Unlock);
    }
}

#[cfg(test)]
pub(crate) mod tests;
