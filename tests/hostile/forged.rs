//! What attackers are made of: memfds that look like those of a traced process, and the registration.

use std::fs::{self, File};
use std::io::IoSlice;
use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use ft_user::layout::{
    DIR_BYTES, Header, MAGIC, MIN_RING_SLOTS, PAGE, RingControl, SEALS, SharedControl, SharedSlot,
    Slot, VERSION,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, sendmsg, socket_with,
};

/// A header, as an attacker wants it; well-formed by default.
#[derive(Clone, Copy)]
pub(crate) struct Forged {
    pub(crate) rings: u32,
    pub(crate) ring_slots: u32,
    pub(crate) shared_slots: u32,
    /// Rings that it says were claimed.
    pub(crate) rings_used: u32,
}

impl Default for Forged {
    fn default() -> Forged {
        Forged { rings: 1, ring_slots: MIN_RING_SLOTS, shared_slots: 64, rings_used: 1 }
    }
}

impl Forged {
    const SHARED: u64 = PAGE + DIR_BYTES;

    fn rings_offset(self) -> u64 {
        Self::SHARED + PAGE + u64::from(self.shared_slots) * size_of::<SharedSlot>() as u64
    }

    fn stride(self) -> u64 {
        PAGE + u64::from(self.ring_slots) * size_of::<Slot>() as u64
    }

    /// Size of the memfd.
    pub(crate) fn bytes(self) -> u64 {
        self.rings_offset() + u64::from(self.rings) * self.stride()
    }

    /// One whose size is a multiple of `page`, a power of two.
    pub(crate) fn filling(page: u64) -> Forged {
        // Control page, directory and ring take what they take; the shared ring is the smallest that fills up.
        let fits = |&(rings, slots): &(u32, u32)| {
            Forged { rings, shared_slots: slots, ..Forged::default() }.bytes().is_multiple_of(page)
        };
        let sizes = (1..=512).flat_map(|rings| (5..15).map(move |n| (rings, 1 << n)));
        let (rings, shared_slots) = sizes.into_iter().find(fits).expect("some size is a multiple");
        Forged { rings, shared_slots, rings_used: rings, ..Forged::default() }
    }

    /// The first bytes of the memfd.
    pub(crate) fn header(self) -> Vec<u8> {
        let mut header = vec![0; size_of::<Header>()];
        let mut put = |at: usize, value: &[u8]| header[at..at + value.len()].copy_from_slice(value);
        put(offset_of!(Header, magic), &MAGIC.to_ne_bytes());
        put(offset_of!(Header, version), &VERSION.to_ne_bytes());
        put(offset_of!(Header, header_bytes), &(size_of::<Header>() as u32).to_ne_bytes());
        put(offset_of!(Header, total_bytes), &self.bytes().to_ne_bytes());
        put(offset_of!(Header, pid), &std::process::id().to_ne_bytes());
        put(offset_of!(Header, dir_offset), &PAGE.to_ne_bytes());
        put(offset_of!(Header, shared_offset), &Self::SHARED.to_ne_bytes());
        put(offset_of!(Header, rings_offset), &self.rings_offset().to_ne_bytes());
        put(offset_of!(Header, ring_stride), &self.stride().to_ne_bytes());
        put(offset_of!(Header, ring_count), &self.rings.to_ne_bytes());
        put(offset_of!(Header, ring_slots), &self.ring_slots.to_ne_bytes());
        put(offset_of!(Header, shared_slots), &self.shared_slots.to_ne_bytes());
        put(offset_of!(Header, rings_used), &self.rings_used.to_ne_bytes());
        header
    }

    /// A memfd with this header and the seals that the agent asks for.
    pub(crate) fn memfd(self) -> Memfd {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("feather-trace", flags).expect("a memfd"));
        file.set_len(self.bytes()).expect("a size");
        let memfd = Memfd { file, forged: self };
        memfd.put(0, &self.header());
        // Nobody has taken a slot, so none is lost. Where there is no such place there is nothing to write.
        let free = Self::SHARED + offset_of!(SharedControl, free) as u64;
        memfd.put(free, &self.shared_slots.to_ne_bytes());
        seal(&memfd.file);
        memfd
    }
}

/// Seals a memfd as the agent wants it.
pub(crate) fn seal(memfd: impl AsFd) {
    fcntl_add_seals(memfd, SealFlags::from_bits_retain(SEALS)).expect("seals");
}

/// A forged memfd, written to as a file.
pub(crate) struct Memfd {
    pub(crate) file: File,
    forged: Forged,
}

impl Memfd {
    /// Writes bytes at an offset of the file.
    pub(crate) fn put(&self, at: u64, bytes: &[u8]) {
        self.file.write_all_at(bytes, at).expect("a forged memfd");
    }

    /// Where ring `index` begins.
    pub(crate) fn ring(&self, index: u32) -> u64 {
        self.forged.rings_offset() + u64::from(index) * self.forged.stride()
    }

    /// Makes ring `index` one of a thread of this process that has reserved slots up to `head`, in a state of
    /// [`ft_user::layout::ring_state`].
    pub(crate) fn claim(&self, index: u32, head: u64, state: u32) {
        let at = self.ring(index);
        let put = |offset: usize, bytes: &[u8]| self.put(at + offset as u64, bytes);
        put(offset_of!(RingControl, tid), &std::process::id().to_ne_bytes());
        put(offset_of!(RingControl, generation), &1u32.to_ne_bytes());
        put(offset_of!(RingControl, head), &head.to_ne_bytes());
        put(offset_of!(RingControl, state), &state.to_ne_bytes());
    }

    /// State of ring `index`.
    pub(crate) fn state(&self, index: u32) -> u32 {
        let mut bytes = [0; 4];
        let at = self.ring(index) + offset_of!(RingControl, state) as u64;
        self.file.read_exact_at(&mut bytes, at).expect("a forged memfd");
        u32::from_ne_bytes(bytes)
    }
}

/// The memfd of this process's own tracer, to be written to as a file.
pub(crate) fn own_memfd() -> File {
    let all = fs::read_dir("/proc/self/fd").expect("proc");
    let is_ours = |path: &PathBuf| {
        fs::read_link(path).is_ok_and(|link| link.to_string_lossy().contains("memfd:feather-trace"))
    };
    let path = all.flatten().map(|entry| entry.path()).find(is_ours).expect("a memfd");
    File::options().read(true).write(true).open(path).expect("a file of ours")
}

/// Starts the tracer of this process and registers it by hand, since the library closes the descriptor that it has sent.
pub(crate) fn recorded(socket: &str) -> File {
    // SAFETY: no other thread of this process runs yet.
    unsafe { std::env::set_var("FT_SOCKET", "/dev/null/none") };
    ft_user::init().expect("the tracer starts");
    let memfd = own_memfd();
    wait_for_answer(&register(socket, &memfd));
    ft_user::enable("*");
    memfd
}

/// A socket that is to be connected.
pub(crate) fn unconnected() -> OwnedFd {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    socket_with(family, kind, SocketFlags::CLOEXEC, None).expect("a socket")
}

/// Connects it with the agent, for this process.
pub(crate) fn join(connection: &OwnedFd, socket: &str) {
    connect(connection, &SocketAddrUnix::new(socket).expect("a path")).expect("the agent listens");
}

/// A connection to the socket of the agent.
pub(crate) fn connection(socket: &str) -> OwnedFd {
    let connection = unconnected();
    join(&connection, socket);
    connection
}

/// Waits until the agent has closed its end.
pub(crate) fn wait_for_hang_up(connection: &OwnedFd) {
    let mut fds = [PollFd::new(connection, PollFlags::HUP)];
    let patience = Timespec { tv_sec: 100, tv_nsec: 0 };
    assert_eq!(poll(&mut fds, Some(&patience)), Ok(1), "the agent keeps the connection");
}

/// Waits until the agent has answered: it has looked at what was registered.
pub(crate) fn wait_for_answer(connection: &OwnedFd) {
    let mut fds = [PollFd::new(connection, PollFlags::IN)];
    let patience = Timespec { tv_sec: 100, tv_nsec: 0 };
    assert_eq!(poll(&mut fds, Some(&patience)), Ok(1), "the agent says nothing");
}

/// A connection, if the agent has room at once.
pub(crate) fn try_connection(socket: &str) -> Option<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connection = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).ok()?;
    connect(&connection, &SocketAddrUnix::new(socket).ok()?).ok()?;
    Some(connection)
}

/// Sends the message of a process that registers, with this descriptor.
pub(crate) fn hello(connection: &OwnedFd, descriptor: BorrowedFd<'_>) {
    assert!(try_hello(connection, descriptor), "the agent takes the message");
}

/// The same; whether the agent still listens.
pub(crate) fn try_hello(connection: &OwnedFd, descriptor: BorrowedFd<'_>) -> bool {
    let mut message = MAGIC.to_ne_bytes().to_vec();
    message.extend(VERSION.to_ne_bytes());
    message.extend(0u32.to_ne_bytes());
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)));
    sendmsg(connection, &[IoSlice::new(&message)], &mut ancillary, SendFlags::NOSIGNAL).is_ok()
}

/// Registers with this descriptor; the connection.
pub(crate) fn register(socket: &str, descriptor: impl AsFd) -> OwnedFd {
    let connection = connection(socket);
    hello(&connection, descriptor.as_fd());
    connection
}
