//! The memfd of this process: sizes, creation, seals, mapping.
//!
//! The header, the directory and the shared ring are mapped at once (5 MiB of addresses, backed where
//! touched), each ring when a thread first claims it ([`crate::mapped`]), for which no descriptor is needed.

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU8, Ordering::*};

use crate::descriptor::OfMemfd;
use crate::directory::Directory;
use crate::layout::{
    DIR_BYTES, Header, MAGIC, MIN_RING_SLOTS, PAGE, RingControl, SEALS, SHARED_SLOTS,
    SharedControl, SharedSlot, Slot, VERSION,
};
use crate::shared_ring::SharedRing;
use crate::{Config, InitError, kernel, mapped};

const DIR_OFFSET: u64 = PAGE;
const SHARED_OFFSET: u64 = DIR_OFFSET + DIR_BYTES;
/// Where the rings begin.
pub(crate) const RINGS_OFFSET: u64 =
    SHARED_OFFSET + PAGE + SHARED_SLOTS as u64 * size_of::<SharedSlot>() as u64;

/// A memfd that this process made, and where its first part is mapped.
#[derive(Clone, Copy)]
pub(crate) struct Memfd {
    base: NonNull<u8>,
    config: Config,
}

impl Memfd {
    /// Makes, sizes, seals and maps the memfd, and fills in everything of its header but the magic. The
    /// sizes are those of `config`, or smaller where the file size limit asks for it.
    pub(crate) fn create(config: Config) -> Result<(Memfd, OfMemfd), InitError> {
        let config = fit(config, file_size_limit())?;
        let file = OfMemfd::create().map_err(|errno| InitError::System("memfd_create", errno))?;
        let (fd, ..) = file.parts();
        let base = size_and_map(fd, config).inspect_err(|_| file.close())?;
        let memfd = Memfd { base, config };
        memfd.write_header();
        Ok((memfd, file))
    }

    fn write_header(&self) {
        let header = self.base.cast::<Header>().as_ptr();
        // SAFETY: the first page is mapped, writable and zero, and nobody else knows of it yet.
        unsafe {
            (*header).version = VERSION;
            (*header).header_bytes = size_of::<Header>() as u32;
            (*header).total_bytes = total_bytes(self.config);
            (*header).pid = kernel::getpid();
            (*header).mode = self.config.mode as u32;
            (*header).dir_offset = DIR_OFFSET;
            (*header).shared_offset = SHARED_OFFSET;
            (*header).rings_offset = RINGS_OFFSET;
            (*header).ring_stride = stride(self.config.ring_slots);
            (*header).ring_count = self.config.rings;
            (*header).ring_slots = self.config.ring_slots;
            (*header).shared_slots = SHARED_SLOTS;
        }
        self.shared_control().free.store(SHARED_SLOTS as i32, Relaxed);
    }

    /// Says that all is in place.
    pub(crate) fn publish(&self) {
        // SYNC: header-magic. The agent copies the header with one read(2), and refuses it, to come back
        // later, as long as the magic is not there.
        self.header().magic.store(MAGIC, Release);
    }

    /// The first page.
    pub(crate) fn header(&self) -> &'static Header {
        // SAFETY: mapped until the process ends, or until a forked child forgets it; its plain fields
        // are not written any more.
        unsafe { self.base.cast().as_ref() }
    }

    /// The directory.
    pub(crate) fn directory(&self) -> Directory {
        // SAFETY: the region is `DIR_BYTES` long, page-aligned, writable, zero at first.
        unsafe { Directory::new(self.base.as_ptr().add(DIR_OFFSET as usize), self.header()) }
    }

    /// The control page of the multi-writer ring.
    pub(crate) fn shared_control(&self) -> &'static SharedControl {
        // SAFETY: inside of the mapping, page-aligned; all of it may be zero.
        unsafe { &*self.base.as_ptr().add(SHARED_OFFSET as usize).cast() }
    }

    /// The multi-writer ring.
    pub(crate) fn shared(&self) -> SharedRing<'static> {
        // SAFETY: the page after the control page starts `SHARED_SLOTS` slots, which may be zero.
        let slots = unsafe {
            let first = self.base.as_ptr().add((SHARED_OFFSET + PAGE) as usize).cast();
            core::slice::from_raw_parts(first, SHARED_SLOTS as usize)
        };
        SharedRing::new(self.shared_control(), slots)
    }

    /// Sizes and mode as they are, which may be less than what was asked for.
    pub(crate) fn config(&self) -> Config {
        self.config
    }

    /// Start of the mapping, from which [`Memfd::from_parts`] makes it again.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// # Safety
    ///
    /// The parts are those of a memfd that is still mapped.
    pub(crate) unsafe fn from_parts(base: NonNull<u8>, config: Config) -> Self {
        Memfd { base, config }
    }

    /// Bytes of the whole memfd.
    pub(crate) fn total_bytes(&self) -> u64 {
        total_bytes(self.config)
    }

    /// Backs each page of a ring with memory now, so that its thread takes no page fault later.
    pub(crate) fn populate(&self, ring: &'static RingControl) {
        let bytes = stride(self.config.ring_slots) as usize;
        let ring = ptr::from_ref(ring);
        let arguments = [ring.addr(), bytes, libc::MADV_POPULATE_WRITE as usize];
        // SAFETY: the whole ring is mapped; populating does not change its content.
        if unsafe { kernel::call(libc::SYS_madvise, arguments) }.is_err() {
            // SAFETY: as above.
            unsafe { touch(ring.cast(), bytes) };
        }
    }

    /// In a forked child, of the parent's memfd but for its rings: what a handler with a fork in it has interrupted, and what is
    /// written there from now on, goes nowhere.
    ///
    /// # Safety
    ///
    /// The calling thread is the only one.
    pub(crate) unsafe fn abandon(self) {
        mapped::abandon(self.base, mapped::first_bytes_alone());
    }
}

/// Reads in each page, for kernels before Linux 5.14. A page of a shared mapping that is read is there for writing, too.
///
/// # Safety
///
/// So many bytes are mapped, and begin with a page.
unsafe fn touch(at: *const AtomicU8, bytes: usize) {
    for offset in (0..bytes).step_by(PAGE as usize) {
        // SAFETY: says the caller; who writes there does so by atomics.
        unsafe { &*at.add(offset) }.load(Relaxed);
    }
}

fn size_and_map(fd: libc::c_int, config: Config) -> Result<NonNull<u8>, InitError> {
    let total = total_bytes(config);
    let failed = |call| move |errno| InitError::System(call, errno);
    let seal = [fd as usize, libc::F_ADD_SEALS as usize, SEALS as usize];
    // SAFETY: plain system calls on a descriptor of our own.
    unsafe {
        kernel::call(libc::SYS_ftruncate, [fd as usize, total as usize])
            .map_err(failed("ftruncate"))?;
        kernel::call(libc::SYS_fcntl, seal).map_err(failed("fcntl(F_ADD_SEALS)"))?;
    }
    let first = mapped::first_bytes_alone();
    let base = map(fd, first)?;
    if !mapped::at_once(base) {
        return Ok(base);
    }
    // SAFETY: mapped just now, and nobody knows of it.
    unsafe { kernel::munmap(base.as_ptr().cast(), first) };
    map(fd, total)
}

fn map(fd: libc::c_int, bytes: u64) -> Result<NonNull<u8>, InitError> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let mapped =
        unsafe { kernel::mmap(ptr::null_mut(), bytes, protection, libc::MAP_SHARED, fd, 0) };
    let mapped = mapped.inspect(|at| kernel::keep_out_of_dumps(*at, bytes));
    mapped.map_err(|errno| InitError::System("mmap", errno))
}

/// Bytes of a ring with its control page.
pub(crate) const fn stride(ring_slots: u32) -> u64 {
    PAGE + ring_slots as u64 * size_of::<Slot>() as u64
}

fn total_bytes(config: Config) -> u64 {
    RINGS_OFFSET + u64::from(config.rings) * stride(config.ring_slots)
}

/// The largest file that the process may make. A larger `ftruncate` would not only fail: it would kill
/// the process with `SIGXFSZ` (setrlimit(2)).
fn file_size_limit() -> u64 {
    kernel::limit(libc::RLIMIT_FSIZE as usize)
}

/// The sizes nearest to `config` that fit into `limit` bytes: fewer slots first, since each thread
/// that has a ring at all is traced without loss at low rates, then fewer rings.
fn fit(mut config: Config, limit: u64) -> Result<Config, InitError> {
    while total_bytes(config) > limit {
        if config.ring_slots > MIN_RING_SLOTS {
            config.ring_slots /= 2;
        } else if config.rings > 1 {
            config.rings /= 2;
        } else {
            return Err(InitError::FileSizeLimit(limit));
        }
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fit_the_limit() {
        let fit = |limit| fit(Config::default(), limit).map(|c| (c.ring_slots, c.rings));
        assert_eq!(fit(u64::MAX), Ok((1 << 18, 256)));
        assert_eq!(fit(100 << 20), Ok((8192, 256)));
        assert_eq!(fit(10 << 20), Ok((4096, 32)));
        assert_eq!(fit(RINGS_OFFSET + stride(4096)), Ok((4096, 1)));
        assert_eq!(fit(1 << 20), Err(InitError::FileSizeLimit(1 << 20)));
    }

    #[test]
    fn regions_start_on_pages_and_do_not_overlap() {
        for offset in [DIR_OFFSET, SHARED_OFFSET, RINGS_OFFSET, stride(MIN_RING_SLOTS)] {
            assert_eq!(offset % PAGE, 0);
        }
        const { assert!(DIR_OFFSET + DIR_BYTES <= SHARED_OFFSET && SHARED_OFFSET < RINGS_OFFSET) };
    }

    /// A program's core is as large as it is without us.
    #[test]
    fn core_dumps_leave_the_rings_out() {
        let (memfd, file) = Memfd::create(Config { rings: 1, ..Config::default() }).unwrap();
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let begin = format!("{:x}-", memfd.base().addr());
        let (_, of_ours) = maps.split_once(&begin).expect("a mapping of its own");
        let flags = of_ours.lines().find_map(|line| line.strip_prefix("VmFlags:"));
        assert!(flags.is_some_and(|flags| flags.split(' ').any(|flag| flag == "dd")), "{flags:?}");
        file.close();
    }

    fn faults() -> libc::c_long {
        // SAFETY: zero is a value of all fields, and the call fills them in.
        unsafe {
            let mut usage: libc::rusage = core::mem::zeroed();
            assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &mut usage), 0);
            usage.ru_minflt
        }
    }

    #[test]
    fn what_was_touched_is_written_without_a_fault() {
        let config = Config { rings: 1, ring_slots: 1 << 14, ..Config::default() };
        let (_, file) = Memfd::create(config).unwrap();
        let bytes = stride(config.ring_slots);
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let fd = file.number().unwrap();
        let null = ptr::null_mut();
        // SAFETY: a new mapping of a ring that nobody uses.
        let ring =
            unsafe { kernel::mmap(null, bytes, protection, flags, fd, RINGS_OFFSET) }.unwrap();
        let write = || {
            let before = faults();
            for offset in (0..bytes).step_by(PAGE as usize) {
                // SAFETY: inside of the mapping.
                unsafe { ring.cast::<AtomicU8>().add(offset as usize).as_ref() }.store(1, Relaxed);
            }
            faults() - before
        };
        // SAFETY: mapped as a whole.
        unsafe { touch(ring.cast().as_ptr(), bytes as usize) };
        let taken = write();
        assert!(taken < 8, "{taken} faults in {} pages", bytes / PAGE);
        // SAFETY: as above.
        unsafe { kernel::munmap(ring.as_ptr().cast(), bytes) };
        file.close();
    }

    #[test]
    fn memfd_is_sealed_and_described() {
        let config = Config { rings: 2, ..Config::default() };
        let (memfd, file) = Memfd::create(config).unwrap();
        let fd = file.number().unwrap();
        // SAFETY: asks for the seals of a descriptor of our own.
        let seals = unsafe { libc::fcntl(fd, libc::F_GET_SEALS) };
        assert_eq!(seals as u32 & SEALS, SEALS);
        // SAFETY: an attempt to change the size of our own descriptor.
        assert_eq!(unsafe { libc::ftruncate(fd, 4096) }, -1);

        let header = memfd.header();
        assert_eq!(header.magic.load(Relaxed), 0);
        memfd.publish();
        assert_eq!(header.magic.load(Relaxed), MAGIC);
        assert_eq!((header.ring_count, header.ring_slots), (2, 1 << 18));
        assert_eq!(header.rings_offset + 2 * header.ring_stride, header.total_bytes);
        assert_eq!(header.pid, std::process::id());
        file.close();
    }
}
