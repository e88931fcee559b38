//! What the descriptor is of that a system call takes as its first argument.

use ft_ebpf::file;

use crate::{config, kernel::TaskStruct};

/// The calls that take one and can wait for it, or are told apart by it (arch/x86/entry/syscalls/syscall_64.tbl).
const CALLS: &[u16] = &[
    0,   // read
    1,   // write
    3,   // close
    16,  // ioctl
    17,  // pread64
    18,  // pwrite64
    19,  // readv
    20,  // writev
    40,  // sendfile
    42,  // connect
    43,  // accept
    44,  // sendto
    45,  // recvfrom
    46,  // sendmsg
    47,  // recvmsg
    72,  // fcntl
    73,  // flock
    74,  // fsync
    75,  // fdatasync
    217, // getdents64
    232, // epoll_wait
    275, // splice
    276, // tee
    277, // sync_file_range
    278, // vmsplice
    281, // epoll_pwait
    285, // fallocate
    288, // accept4
    295, // preadv
    296, // pwritev
    299, // recvmmsg
    306, // syncfs
    307, // sendmmsg
    326, // copy_file_range
    327, // preadv2
    328, // pwritev2
    426, // io_uring_enter
    441, // epoll_pwait2
];

/// A bit for each of them.
const TAKES: [u64; 8] = {
    let mut bits = [0; 8];
    let mut i = 0;
    while i < CALLS.len() {
        bits[CALLS[i] as usize / 64] |= 1 << (CALLS[i] % 64);
        i += 1;
    }
    bits
};

/// Whether the call of this number is one of them.
#[inline(always)]
pub(crate) fn is_taken_by(number: u16) -> bool {
    // A word that is chosen by comparisons: an index into a constant would be a map.
    let word = match number / 64 {
        0 => const { TAKES[0] },
        1 => const { TAKES[1] },
        3 => const { TAKES[3] },
        4 => const { TAKES[4] },
        5 => const { TAKES[5] },
        6 => const { TAKES[6] },
        _ => 0,
    };
    const { assert!(TAKES[2] == 0 && TAKES[7] == 0) };
    word >> (number % 64) & 1 != 0
}

/// What a descriptor of the current thread is of, as [`file`] has it.
#[inline(always)]
pub(crate) fn kind_of(descriptor: u64) -> u16 {
    if config::task_files() == 0 {
        return file::NONE;
    }
    let Some(opened) = opened(descriptor as u32) else { return file::NONE };
    kind(opened).unwrap_or(file::OTHER)
}

/// The `struct file` of a descriptor (`files_lookup_fd_raw`, include/linux/fdtable.h).
#[inline(always)]
fn opened(descriptor: u32) -> Option<TaskStruct> {
    let files = TaskStruct::current().pointer(config::task_files())?;
    let table = files.pointer(config::files_fdt())?;
    if descriptor >= table.probe::<u32>(config::fdtable_max())? {
        return None;
    }
    table.pointer(config::fdtable_fd())?.pointer(descriptor * size_of::<*const u8>() as u32)
}

/// By the type of its inode (include/uapi/linux/stat.h).
#[inline(always)]
fn kind(opened: TaskStruct) -> Option<u16> {
    let inode = opened.pointer(config::file_inode())?;
    match inode.probe::<u16>(config::inode_mode())? >> 12 {
        0o01 => Some(file::PIPE),
        0o02 => Some(file::CHARACTER),
        0o04 => Some(file::DIRECTORY),
        0o06 => Some(file::BLOCK),
        0o14 => Some(file::SOCKET),
        _ => plain(opened, inode),
    }
}

/// Of no type, or a plain file, as what has no file is since Linux 6.16; those of the file system for such are told apart
/// by the name of their entry (`anon_inode_getfile` in fs/eventfd.c and its like).
#[inline(always)]
fn plain(opened: TaskStruct, inode: TaskStruct) -> Option<u16> {
    /// include/uapi/linux/magic.h
    const ANON_INODE_FS_MAGIC: u64 = 0x0904_1934;
    let magic = inode.pointer(config::inode_sb())?.probe::<u64>(config::super_magic())?;
    if magic != ANON_INODE_FS_MAGIC {
        return Some(file::REGULAR);
    }
    let name = opened.pointer(config::file_dentry())?.pointer(config::dentry_name())?;
    Some(match &name.probe::<u64>(0)?.to_le_bytes() {
        b"[eventfd" => file::EVENTFD,
        b"[timerfd" => file::TIMERFD,
        b"[eventpo" => file::EPOLL,
        b"[signalf" => file::SIGNALFD,
        b"inotify\0" => file::INOTIFY,
        _ => file::OTHER,
    })
}
