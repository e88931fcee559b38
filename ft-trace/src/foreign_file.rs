//! Files that somebody else has named: the only way in which one is opened.
//!
//! Which file a process has mapped, where a compiler leaves its map, what a descriptor is: all of that is said by a
//! program that may belong to another user, and who opens it is often root. So nothing is opened for reading before
//! it is known what it is:
//!
//! - A place is held first (`O_PATH`), which has no effect on what is there: no pipe keeps us waiting, no device starts.
//! - It is found where the process finds it, in its own root directory, and no symbolic link leads there.
//! - Then the kernel is asked what it is ([`Facts`]): whoever opens it compares that with what it must be.
//! - Only a regular file is opened, without waiting for the holder of a lease, and none of a file system in which
//!   reading does something or shows what the kernel hides (procfs, sysfs and the like).
//! - Nothing is looked up where a program of some user answers for the files ([`Mounts`]), which may never answer.
//!
//! The file may still lie on a file system that does not answer: whoever must not wait has it done aside.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags, fstatfs, open, openat, openat2,
    readlink, statx,
};
use serde::{Deserialize, Serialize};

use crate::look;
use crate::mounts::Mounts;
use crate::spool::mapping::Mapping;
use crate::vdso;

/// How a place is held.
const HELD: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// File systems of the kernel, whose files are none: their `f_type` (linux/magic.h).
const OF_THE_KERNEL: [u32; 15] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x6265_6570, // configfs
    0x6e73_6673, // nsfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0xcafe_4a11, // bpf
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0xde5e_81e4, // efivarfs
    0x6165_676c, // pstore
    0x4249_4e4d, // binfmt_misc
];

/// What distinguishes a file from all others, and from what it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileKey {
    /// Device, major and minor number.
    pub device: (u32, u32),
    /// Inode.
    pub inode: u64,
    /// When it was changed last, ns since 1970.
    pub changed: i64,
}

/// What the kernel says of a file that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Which one it is.
    pub key: FileKey,
    /// Whose it is.
    pub owner: u32,
    /// How many names it has.
    pub links: u32,
    /// Its group may read it, and others have no right to it. Who has it mapped is in its group, or is its owner or root. (Where it has an
    /// access control list, some of its group may only execute it.)
    pub is_for_its_group: bool,
    rights: u16,
    is_regular: bool,
}

impl Facts {
    /// Whether this user may, as its owner, as root or as everybody, by its own rights. `None` is a user who is not known.
    pub fn may_be_read_by(&self, user: Option<u32>) -> bool {
        self.may(0o004, user)
    }

    /// The same of a directory in which something is looked up.
    pub fn may_be_searched_by(&self, user: Option<u32>) -> bool {
        self.may(0o001, user)
    }

    fn may(&self, right: u16, user: Option<u32>) -> bool {
        self.rights & right != 0 || user == Some(self.owner) || user == Some(0)
    }
}

/// A file that somebody else has named, whatever has its name now. It is not opened for reading yet.
#[derive(Debug)]
pub struct ForeignFile(OwnedFd);

impl ForeignFile {
    /// What a process has mapped, or the [vDSO](vdso). `None` where it cannot be had: of a file that is gone, without
    /// CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN, unless it is the program that the process executes.
    pub fn mapped(pid: i32, mapping: &Mapping, mounts: &Mounts) -> Option<ForeignFile> {
        let Mapping { start, end, path, is_gone, .. } = mapping;
        if path == vdso::NAME {
            return vdso::image_of(mapping).map(|image| ForeignFile(image.into()));
        }
        let mapped = format!("/proc/{pid}/map_files/{start:x}-{end:x}");
        if let Ok(held) = open(mapped, HELD, Mode::empty()) {
            return ForeignFile(held).answered_by_nobody(mounts);
        }
        if *is_gone {
            let program = format!("/proc/{pid}/exe");
            let named = readlink(&program, Vec::new()).ok()?;
            let is_it = named.to_bytes().strip_suffix(b" (deleted)") == Some(path.as_bytes());
            let held = is_it.then(|| open(program, HELD, Mode::empty()).ok().map(ForeignFile))?;
            return held?.answered_by_nobody(mounts);
        }
        // Another file may be there by now, or for us.
        let found = ForeignFile::of_process(pid, path, mounts)?;
        let is_it = mapping.inode == 0 || found.facts()?.key.inode == mapping.inode;
        is_it.then_some(found)
    }

    /// What a process with these mounts finds at an absolute path: in its own root directory, by no symbolic link.
    pub fn of_process(pid: i32, path: &str, mounts: &Mounts) -> Option<ForeignFile> {
        if mounts.ask_a_program_at(path) {
            return None;
        }
        // The link waits for a process that executes a program.
        let root = look::at(pid, move || open(format!("/proc/{pid}/root"), HELD, Mode::empty()));
        let root = root?.ok()?;
        let inside =
            ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        openat2(root, path, HELD, Mode::empty(), inside).ok().map(ForeignFile)
    }

    /// What we, who have these mounts, find at an absolute path, by no symbolic link.
    pub fn here(path: &Path, mounts: &Mounts) -> Option<ForeignFile> {
        let no_links = ResolveFlags::NO_SYMLINKS;
        if mounts.ask_a_program_at(path.to_str()?) {
            return None;
        }
        let held = path.is_absolute().then(|| openat2(CWD, path, HELD, Mode::empty(), no_links));
        held?.ok().map(ForeignFile)
    }

    /// What a process has open, by one of the links in its `/proc/PID/fd` or `/proc/PID/map_files`.
    pub fn behind(link: &Path) -> rustix::io::Result<ForeignFile> {
        open(link, HELD, Mode::empty()).map(ForeignFile)
    }

    /// Itself, if no program answers for its file system.
    fn answered_by_nobody(self, mounts: &Mounts) -> Option<ForeignFile> {
        let device = self.facts()?.key.device;
        (!mounts.ask_a_program_of(device)).then_some(self)
    }

    /// What the kernel knows of it already: its file system is not asked.
    pub fn facts(&self) -> Option<Facts> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let wanted = StatxFlags::BASIC_STATS;
        let s = statx(&self.0, "", flags, wanted).ok()?;
        let changed = s.stx_ctime.tv_sec.saturating_mul(1_000_000_000);
        Some(Facts {
            key: FileKey {
                device: (s.stx_dev_major, s.stx_dev_minor),
                inode: s.stx_ino,
                changed: changed.saturating_add(s.stx_ctime.tv_nsec.into()),
            },
            owner: s.stx_uid,
            links: s.stx_nlink,
            is_for_its_group: s.stx_mode & 0o047 == 0o040,
            rights: s.stx_mode & 0o777,
            is_regular: FileType::from_raw_mode(s.stx_mode.into()) == FileType::RegularFile,
        })
    }

    /// Opens it for reading, if it is a regular file of no file system of the kernel.
    pub fn open(&self) -> Option<File> {
        let is_file = self.facts()?.is_regular && !OF_THE_KERNEL.contains(&self.file_system()?);
        is_file.then(|| self.reopened(OFlags::RDONLY).ok())?
    }

    /// Opens it for reading and writing; what is known of it must be enough for that.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn open_to_write(&self) -> rustix::io::Result<File> {
        self.reopened(OFlags::RDWR)
    }

    /// The `f_type` of its file system (fstatfs(2)).
    pub fn file_system(&self) -> Option<u32> {
        Some(fstatfs(&self.0).ok()?.f_type as u32)
    }

    /// A path to it that is valid in this process, for calls that take nothing else.
    pub fn anchored(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }

    fn reopened(&self, access: OFlags) -> rustix::io::Result<File> {
        let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        open(self.anchored(), flags, Mode::empty()).map(File::from)
    }
}

impl From<OwnedFd> for ForeignFile {
    fn from(held: OwnedFd) -> ForeignFile {
        ForeignFile(held)
    }
}

impl AsFd for ForeignFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Two that hold the same file.
impl PartialEq for ForeignFile {
    fn eq(&self, other: &ForeignFile) -> bool {
        self.facts() == other.facts()
    }
}

impl Eq for ForeignFile {}

/// Opens for reading what whoever runs us has named, links and all, if it is a regular file of no file system of the kernel.
pub fn regular(path: &Path) -> Option<File> {
    ForeignFile(openat(CWD, path, HELD, Mode::empty()).ok()?).open()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};

    use rustix::fs::mkfifoat;

    use super::*;

    fn own() -> i32 {
        std::process::id() as i32
    }

    #[test]
    fn what_is_no_file_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        mkfifoat(CWD, &fifo, Mode::RWXU).unwrap();
        // Nobody writes to it: to open it would take for ever.
        for path in [&*fifo, Path::new("/dev/zero"), Path::new("/dev/ptmx"), dir.path()] {
            let held = ForeignFile::here(path, &Mounts::default()).unwrap();
            assert!(held.open().is_none(), "{path:?}");
            assert!(regular(path).is_none(), "{path:?}");
        }
        assert!(ForeignFile::here(Path::new("/nonexistent"), &Mounts::default()).is_none());
        assert!(ForeignFile::here(Path::new("relative"), &Mounts::default()).is_none());
    }

    #[test]
    fn files_of_the_kernel_are_not_opened() {
        // What they show, or what reading does, is for whoever may read them.
        let paths = ["maps", "syscall", "status"].map(|name| format!("/proc/{}/{name}", own()));
        for path in paths.iter().map(Path::new).chain([Path::new("/sys/kernel/uevent_seqnum")]) {
            let held = ForeignFile::here(path, &Mounts::default()).unwrap();
            assert!(held.facts().unwrap().is_regular, "{path:?} looks like a file");
            assert!(held.open().is_none(), "{path:?}");
        }
    }

    #[test]
    fn no_symbolic_link_leads_to_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "text").unwrap();
        let (link, folder) = (dir.path().join("link"), dir.path().join("folder"));
        symlink(&path, &link).unwrap();
        symlink(dir.path(), &folder).unwrap();
        let of_process = |path: &Path| {
            ForeignFile::of_process(own(), path.to_str().unwrap(), &Mounts::default())
        };
        for path in [link, folder.join("file")] {
            assert!(
                ForeignFile::here(&path, &Mounts::default()).is_none()
                    && of_process(&path).is_none(),
                "{path:?}"
            );
            assert!(regular(&path).is_some(), "named by whoever runs us: {path:?}");
        }
        let (here, there) =
            (ForeignFile::here(&path, &Mounts::default()).unwrap(), of_process(&path).unwrap());
        assert!(here == there && here.open().is_some() && there.open().is_some());
        std::fs::hard_link(&path, dir.path().join("second")).unwrap();
        let facts = here.facts().unwrap();
        let metadata = std::fs::metadata(&path).unwrap();
        assert_eq!((facts.links, facts.owner), (2, metadata.uid()));
        assert_eq!(facts.key.inode, metadata.ino());
    }
}
