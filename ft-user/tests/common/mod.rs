//! The agent's view of a process, for tests: its memfd, its directory, its events.

#![allow(dead_code, reason = "each test uses its part")]

pub(crate) mod agent;
pub(crate) mod counting;

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::io::AsRawFd as _;
use std::sync::atomic::Ordering::*;
use std::sync::{Mutex, Once, PoisonError};

use ft_user::Config;
use ft_user::directory::{self, Entry};
use ft_user::layout::{
    DIR_BYTES, Header, LOSS_KEY, MEMFD_NAME, PAGE, RingControl, SharedControl, SiteKind, commit,
    ring_state,
};
use ft_user::reader::{Reader, Uncommitted};
use ft_user::ring::Ring;
use ft_user::shared_ring;

/// An event as a test looks at it.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) tsc: u64,
    pub(crate) tid: u32,
    pub(crate) name: String,
    pub(crate) kind: SiteKind,
    /// Argument words, padded with zeros.
    pub(crate) words: Vec<u64>,
    /// It came through the shared ring.
    pub(crate) shared: bool,
}

/// The memfd of a process, mapped.
pub(crate) struct Memory {
    base: *mut u8,
    bytes: usize,
    shared_position: shared_ring::Position,
}

// SAFETY: what other threads write is atomic, and positions are kept by who holds this mutably.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// Starts tracing without an agent, whatever runs on this machine.
pub(crate) fn start(config: Config) {
    static START: Once = Once::new();
    START.call_once(|| {
        // SAFETY: the first thing that these tests do; `std` locks the environment against itself.
        unsafe { std::env::set_var("FT_SOCKET", "/nonexistent/agent.sock") };
        ft_user::init_with(config).unwrap();
    });
}

/// Paths of the memfds of a process.
pub(crate) fn memfds(pid: u32) -> Vec<std::path::PathBuf> {
    let wanted = format!("/memfd:{} (deleted)", MEMFD_NAME.to_str().unwrap());
    let fds = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    fds.map(|fd| fd.path())
        .filter(|path| fs::read_link(path).is_ok_and(|link| link.as_os_str() == &*wanted))
        .collect()
}

impl Memory {
    /// The memfd of this process.
    pub(crate) fn own() -> Memory {
        Memory::of(std::process::id())
    }

    /// The memfd of a process that has exactly one of its own. It may hold others' for a moment: of a test that is an agent for them.
    pub(crate) fn of(pid: u32) -> Memory {
        // Another test of this process opens it here, too.
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut options = fs::File::options();
        options.read(true).write(true).custom_flags(libc::O_CLOEXEC);
        let files = memfds(pid).into_iter().filter_map(|path| options.open(path).ok());
        let own = files.map(|file| Memory::map(&file)).filter(|memory| memory.header().pid == pid);
        let mut own: Vec<Memory> = own.collect();
        assert_eq!(own.len(), 1, "{:?}", memfds(pid));
        own.remove(0)
    }

    /// The memfd behind a descriptor.
    pub(crate) fn map(file: &fs::File) -> Memory {
        let bytes = file.metadata().unwrap().len() as usize;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of the whole file, which is sealed and stays.
        let base = unsafe {
            let null = std::ptr::null_mut();
            libc::mmap(null, bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_ne!(base, libc::MAP_FAILED);
        let shared_position = shared_ring::Position::default();
        let mut memory = Memory { base: base.cast(), bytes, shared_position };
        // Another test of this process may have read from the shared ring before.
        let (control, slots) = memory.shared();
        let position = shared_ring::Reader::resume(control, slots).into_position();
        memory.shared_position = position;
        memory
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the first page is a header.
        unsafe { &*self.base.cast() }
    }

    /// The control pages of all rings that were ever claimed.
    pub(crate) fn rings(&self) -> impl Iterator<Item = &RingControl> {
        let (offset, stride) = (self.header().rings_offset, self.header().ring_stride);
        (0..u64::from(self.header().rings_used.load(Acquire))).map(move |n| {
            // SAFETY: inside of the mapping, by the header of a process that we trust here.
            unsafe { &*self.base.add((offset + n * stride) as usize).cast() }
        })
    }

    pub(crate) fn directory(&self) -> Vec<Entry<'_>> {
        // SAFETY: inside of the mapping; entries below the first incomplete one do not change.
        let bytes = unsafe {
            let start = self.base.add(self.header().dir_offset as usize);
            std::slice::from_raw_parts(start, DIR_BYTES as usize)
        };
        directory::parse(bytes).map(|entry| entry.expect("a sound directory")).collect()
    }

    /// The text of the name with this number.
    pub(crate) fn name(&self, wanted: u32) -> String {
        let found = self.directory().into_iter().find_map(|entry| match entry {
            Entry::Name { id, text } if id == wanted => Some(text.to_owned()),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no name {wanted}"))
    }

    /// File and line of the place with this number.
    pub(crate) fn place(&self, wanted: u32) -> (String, u32) {
        let found = self.directory().into_iter().find_map(|entry| match entry {
            Entry::Place { id, line, file, .. } if id == wanted => Some((file.to_owned(), line)),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no place {wanted}"))
    }

    /// Takes all events, in the order of their times, and frees the rings of threads that have ended,
    /// as the agent does.
    pub(crate) fn take(&mut self) -> Vec<Event> {
        self.take_with(Uncommitted::Wait)
    }

    /// Takes all events of a process that has ended: what is not committed never will be.
    pub(crate) fn take_last(&mut self) -> Vec<Event> {
        self.take_with(Uncommitted::Skip)
    }

    fn take_with(&mut self, uncommitted: Uncommitted) -> Vec<Event> {
        let sites = self.sites();
        let event = |commit: u64, tsc, words: Vec<u64>, tid, shared| {
            let (name, kind) = match commit::key(commit) {
                LOSS_KEY => ("loss".to_owned(), SiteKind::Event),
                key => sites.get(&key).cloned().unwrap_or_else(|| panic!("no site {key:#x}")),
            };
            Event { tsc, tid, name, kind, words, shared }
        };
        let mut events = Vec::new();
        for control in self.rings() {
            let state = control.state.load(Acquire);
            // SAFETY: slots follow each control page.
            let ring = unsafe { Ring::new(control, self.header().ring_slots) }.unwrap();
            let mut reader = Reader::at(control.tail.load(Relaxed));
            let mut bytes = Vec::new();
            while reader.drain(&ring, uncommitted, u64::MAX, &mut bytes).more {}
            let mut words =
                bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
            while let Some(first) = words.next() {
                let tsc = words.next().unwrap();
                let mut payload: Vec<_> = words.by_ref().take(2).collect();
                for _ in 0..commit::continuations(first) {
                    words.next();
                    payload.extend(words.by_ref().take(3));
                }
                events.push(event(first, tsc, payload, control.tid.load(Relaxed), false));
            }
            if state == ring_state::EXITED {
                control.state.store(ring_state::FREE, Release);
            }
        }
        // With the slots that were passed over.
        let position = std::mem::take(&mut self.shared_position);
        let (control, slots) = self.shared();
        let mut reader = shared_ring::Reader::at(control, slots, position);
        while let Some(record) = reader.read_any() {
            let words = record.words.to_vec();
            events.push(event(record.commit, record.tsc, words, record.tid, true));
        }
        self.shared_position = reader.into_position();
        events.sort_by_key(|event| event.tsc);
        events
    }

    /// The shared ring.
    pub(crate) fn shared(&self) -> (&SharedControl, &[ft_user::layout::SharedSlot]) {
        let offset = self.header().shared_offset;
        // SAFETY: inside of the mapping; atomics only.
        unsafe {
            let slots = self.base.add((offset + PAGE) as usize).cast();
            let count = self.header().shared_slots as usize;
            (&*self.base.add(offset as usize).cast(), std::slice::from_raw_parts(slots, count))
        }
    }

    /// Events lost in all, by the counts of the rings.
    pub(crate) fn lost(&self) -> u64 {
        let (control, slots) = self.shared();
        let of_threads: u64 = self.rings().map(|ring| ring.lost.load(Acquire)).sum();
        of_threads + shared_ring::Reader::resume(control, slots).loss().events
    }

    fn sites(&self) -> HashMap<u32, (String, SiteKind)> {
        let metas = self.directory().into_iter().filter_map(|entry| match entry {
            Entry::SiteMeta { key, kind, name, .. } => Some((key, (name.to_owned(), kind))),
            _ => None,
        });
        metas.collect()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by `of`, and nothing borrowed from it outlives `self`.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

/// This thread's id.
pub(crate) fn tid() -> u32 {
    // SAFETY: takes no argument.
    unsafe { libc::gettid() as u32 }
}
