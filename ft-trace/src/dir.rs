//! A directory that only we write to, held open.
//!
//! The agent is often root, and works where others can write: in `/tmp`, in the home of whoever called `sudo`.
//! There a name may lead somewhere else each time it is used. So whatever writes into a trace goes through a [`Dir`]:
//!
//! - It is opened once, and refused unless it belongs to us, and nobody else can make names in it.
//! - Every name is a single component beneath it, and is not followed when it is a symbolic link. So `openat` does what
//!   `openat2` would with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS`, under seccomp filters that do not know it, too.
//! - A file to be written is always new (`O_EXCL`): no link, FIFO or device that stood there before is opened.
//!
//! What is read only ([`open_regular`]) may belong to anybody, but must be a regular file: a FIFO would block.

use std::collections::hash_map::RandomState;
use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

/// Rights of new directories, less the umask; 0 while nobody has said any.
static RIGHTS: AtomicU32 = AtomicU32::new(0);

/// Says who may read what this process makes from now on, by the rights of a directory: nobody but its user, say, by `0o700`.
/// Others write to nothing, whatever it says. Without it, others may read all that the umask lets them.
pub fn set_rights(rights: u32) {
    RIGHTS.store(rights | 0o700, Relaxed);
}

/// The same, if nothing was said yet.
pub fn set_rights_unless_said(rights: u32) {
    // Who has said something stands.
    let _ = RIGHTS.compare_exchange(0, rights | 0o700, Relaxed, Relaxed);
}

fn new_dir() -> Mode {
    match RIGHTS.load(Relaxed) {
        0 => Mode::from_raw_mode(0o755),
        said => Mode::from_raw_mode(said & 0o755),
    }
}

/// Rights of new files.
pub(crate) fn new_file() -> Mode {
    Mode::from_raw_mode(new_dir().as_raw_mode() & 0o666)
}

/// Others may pass through it, to the socket of a recording, and see nothing of what is in it.
const PASSED: Mode = Mode::from_raw_mode(0o711);

/// A directory, not followed if it is a symbolic link.
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Symbolic links in a row, as the kernel's limit (path_resolution(7)).
///
/// Limit: as `MAX_REPLY_BYTES` of `socket.rs`.
const MOST_LINKS: u32 = 40;

/// Why a directory is not written to. The sentence lacks its remedy, which depends on what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It belongs to another user.
    #[error(
        "{path} belongs to the user with number {owner}, who could lead elsewhere what is written there"
    )]
    Foreign {
        /// Directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// Other users may make names in it.
    #[error("other users can write to {path}, and could lead elsewhere what is written there")]
    Open {
        /// Directory.
        path: PathBuf,
    },
    /// It is a symbolic link of another user.
    #[error(
        "{path} is a symbolic link of the user with number {owner}, who can change where it leads"
    )]
    Link {
        /// The link.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
}

impl Refused {
    /// The refusal behind an error of this module, if it is one.
    pub fn of(error: io::Error) -> Result<Refused, io::Error> {
        error.downcast()
    }
}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> io::Error {
        io::Error::new(io::ErrorKind::PermissionDenied, refused)
    }
}

/// A directory that only we write to. Clones share the descriptor.
#[derive(Clone, Debug)]
pub struct Dir {
    fd: Arc<OwnedFd>,
    /// How it was named: for messages only.
    path: PathBuf,
}

impl Dir {
    /// Opens a directory. Links on the way to it, and itself, are followed when they are ours or root's.
    ///
    /// # Errors
    ///
    /// A [`Refused`] as the inner error, or what the kernel says.
    pub fn open(path: &Path) -> io::Result<Dir> {
        let fd = rustix::fs::openat(walk(path, false)?, c".", DIRECTORY, Mode::empty())?;
        Dir::checked(fd, path.to_owned())
    }

    /// Opens a directory, made if it does not exist, like those above it. Tells whether it was made.
    ///
    /// # Errors
    ///
    /// As [`Dir::open`].
    pub fn create(path: &Path) -> io::Result<(Dir, bool)> {
        let made = match path.file_name() {
            Some(name) => {
                let parent = walk(path.parent().unwrap_or(Path::new("/")), true)?;
                match rustix::fs::mkdirat(&parent, name, new_dir() | PASSED) {
                    Ok(()) => true,
                    Err(Errno::EXIST) => false,
                    Err(e) => return Err(e.into()),
                }
            }
            None => false,
        };
        Ok((Dir::open(path)?, made))
    }

    /// Makes a directory in the one that `parent` holds; `path` is for messages.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` when anything has that name, a link too.
    pub(crate) fn make_in(parent: &OwnedFd, name: &OsStr, path: PathBuf) -> io::Result<Dir> {
        rustix::fs::mkdirat(parent, name, new_dir())?;
        Dir::checked(rustix::fs::openat(parent, name, DIRECTORY, Mode::empty())?, path)
    }

    /// Opens the directory `name`.
    ///
    /// # Errors
    ///
    /// As [`Dir::open`]; `NotADirectory` for a link.
    pub fn dir(&self, name: &str) -> io::Result<Dir> {
        let fd = rustix::fs::openat(&*self.fd, single(name)?, DIRECTORY, Mode::empty())?;
        Dir::checked(fd, self.path.join(name))
    }

    /// Makes the directory `name`.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` when anything has that name, a link too.
    pub fn make_dir(&self, name: &str) -> io::Result<Dir> {
        self.make_dir_with(name, new_dir())
    }

    /// Makes the directory `name`, which nobody else may enter.
    ///
    /// # Errors
    ///
    /// As [`Dir::make_dir`].
    pub fn make_closed_dir(&self, name: &str) -> io::Result<Dir> {
        self.make_dir_with(name, Mode::RWXU)
    }

    fn make_dir_with(&self, name: &str, rights: Mode) -> io::Result<Dir> {
        rustix::fs::mkdirat(&*self.fd, single(name)?, rights)?;
        self.dir(name)
    }

    /// Opens the directory `name`, made if it does not exist.
    ///
    /// # Errors
    ///
    /// As [`Dir::dir`].
    pub fn ensure_dir(&self, name: &str) -> io::Result<Dir> {
        match self.make_dir(name) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => self.dir(name),
            made => made,
        }
    }

    /// Makes the file `name`, for writing.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` when anything has that name, a link too.
    pub fn create_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&*self.fd, single(name)?, flags, new_file())?.into())
    }

    /// Makes the file `name` anew; what had that name goes.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn replace_file(&self, name: &str) -> io::Result<File> {
        self.remove(name)?;
        self.create_file(name)
    }

    /// Opens the file `name` for reading.
    ///
    /// # Errors
    ///
    /// `InvalidInput` when it is no regular file.
    pub fn open_file(&self, name: &str) -> io::Result<File> {
        regular(self.fd.as_fd(), Path::new(single(name)?), OFlags::NOFOLLOW)
    }

    /// Writes the file `name`, whole or not at all: under another name first, synced, then renamed.
    ///
    /// # Errors
    ///
    /// What the kernel says; a file of that name is then as it was.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let aside = format!("{name}.tmp");
        let mut file = self.replace_file(&aside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        self.publish(&aside, name)
    }

    /// Renames `from` to `to`; what had that name goes. Durable behind [`Dir::sync`].
    ///
    /// # Errors
    ///
    /// What the kernel says; `from` is then still there.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&*self.fd, single(from)?, &*self.fd, single(to)?)?)
    }

    /// Renames `from`, which is synced, to `to`, durably.
    ///
    /// # Errors
    ///
    /// As [`Dir::rename`], and as [`Dir::sync`].
    pub fn publish(&self, from: &str, to: &str) -> io::Result<()> {
        self.rename(from, to)?;
        self.sync()
    }

    /// Moves `name`, which is synced, into `other`, durably, as `to`. A file there of that name is replaced.
    ///
    /// # Errors
    ///
    /// What the kernel says: also when a directory of that name is there that is not empty. `name` is then still there.
    pub fn move_to(&self, name: &str, other: &Dir, to: &str) -> io::Result<()> {
        rustix::fs::renameat(&*self.fd, single(name)?, &*other.fd, single(to)?)?;
        Ok(rustix::fs::fsync(&*other.fd)?)
    }

    /// Exchanges the files `name` in it and in `other`, in one step: nothing is made where none was.
    ///
    /// # Errors
    ///
    /// What the kernel says: `NotFound` when there is none in one of them, `InvalidInput` where the file system cannot (rename(2)).
    pub fn exchange(&self, name: &str, other: &Dir) -> io::Result<()> {
        let (name, flags) = (single(name)?, RenameFlags::EXCHANGE);
        Ok(rustix::fs::renameat_with(&*self.fd, name, &*other.fd, name, flags)?)
    }

    /// What tells it apart from all others while it is open, whatever its name is: device and inode.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn id(&self) -> io::Result<(u64, u64)> {
        let stat = rustix::fs::fstat(&*self.fd)?;
        Ok((stat.st_dev, stat.st_ino))
    }

    /// What was made, moved and removed in it is durable.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&*self.fd)?)
    }

    /// Gives the file `name` a second name in `other`.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn link(&self, name: &str, other: &Dir) -> io::Result<()> {
        let name = single(name)?;
        Ok(rustix::fs::linkat(&*self.fd, name, &*other.fd, name, AtFlags::empty())?)
    }

    /// Removes `name`, with everything in it if it is a directory. That there is none is no error.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        single(name)?;
        match remove(self.fd.as_fd(), &std::ffi::CString::new(name)?) {
            Err(Errno::NOENT) => Ok(()),
            done => Ok(done?),
        }
    }

    /// Removes everything in it. Another may do so at the same time.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn clear(&self) -> io::Result<()> {
        match clear(self.fd.as_fd()) {
            // It has gone itself.
            Err(Errno::NOENT) => Ok(()),
            done => Ok(done?),
        }
    }

    /// Removes the directory `name`, which is empty.
    ///
    /// # Errors
    ///
    /// What the kernel says: also when it is not empty.
    pub fn remove_empty(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&*self.fd, single(name)?, AtFlags::REMOVEDIR)?)
    }

    /// Nothing is in it.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn is_empty(&self) -> io::Result<bool> {
        for entry in rustix::fs::Dir::read_from(&*self.fd)? {
            if !is_self_or_parent(entry?.file_name()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// How it was named: for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path to it that is valid in this process, whatever becomes of its name: for calls that take nothing else.
    pub fn anchored(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.fd.as_raw_fd()).into()
    }

    fn checked(fd: OwnedFd, path: PathBuf) -> io::Result<Dir> {
        let stat = rustix::fs::fstat(&fd)?;
        let owner = stat.st_uid;
        if owner != geteuid().as_raw() {
            return Err(Refused::Foreign { path, owner }.into());
        }
        // Whoever is in our own group was let in by the umask.
        let (others, group) = (stat.st_mode & 0o002 != 0, stat.st_mode & 0o020 != 0);
        if others || group && stat.st_gid != getegid().as_raw() {
            return Err(Refused::Open { path }.into());
        }
        Ok(Dir { fd: Arc::new(fd), path })
    }
}

/// Makes a directory for temporary files with these rights. Its name cannot be foreseen: whoever had made it before could exchange what
/// is put there.
///
/// # Errors
///
/// What mkdir(2) says.
pub fn temporary(rights: u32) -> io::Result<PathBuf> {
    let name = RandomState::new().build_hasher().finish();
    let directory = std::env::temp_dir().join(format!("feather-trace-{name:016x}"));
    std::fs::DirBuilder::new().mode(rights).create(&directory)?;
    Ok(directory)
}

/// Opens a file for reading, whoever owns it.
///
/// # Errors
///
/// `InvalidInput` when it is no regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    regular(CWD, path, OFlags::empty())
}

/// Opens such a file that is no link itself: in a directory of somebody else a link can name what they may not read.
///
/// # Errors
///
/// As [`open_regular`], and when it is a link.
pub fn open_no_link(path: &Path) -> io::Result<File> {
    regular(CWD, path, OFlags::NOFOLLOW)
}

/// Largest file that is read as a whole, bytes: what a trace says of itself takes some KB, or some MB with many thousand parts.
///
/// Limit: the trace is refused, with the reason: none of ours is near.
/// Shown by: `what_is_too_large_is_not_read`, `lies_about_one_trace_cost_no_other`,
/// `what_cannot_be_read_is_named_with_its_remedy`, `what_a_column_says_to_take_of_memory_is_bounded`.
pub const MAX_WHOLE_BYTES: u64 = 64 << 20;

/// Reads such a file, which may be reached by a link.
///
/// # Errors
///
/// As [`open_regular`]; `FileTooLarge` for one of more than 64 MiB, of which nothing is read.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    if file.metadata()?.len() > MAX_WHOLE_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 64 MiB"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_WHOLE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn regular(at: BorrowedFd<'_>, path: &Path, more: OFlags) -> io::Result<File> {
    // Without blocking: a FIFO waits for a writer, a lease for its holder (open(2)).
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | more;
    let fd = rustix::fs::openat(at, path, flags, Mode::empty())?;
    match FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) {
        FileType::RegularFile => Ok(fd.into()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
    }
}

/// Holds a directory (`O_PATH`) by its path, made where it does not exist if `make` says so. A link on the way leads elsewhere only if it
/// is ours or root's: who else has made it can change it at any time.
pub(crate) fn walk(path: &Path, make: bool) -> io::Result<OwnedFd> {
    const HELD: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
    let begin = |path: &Path| {
        let begin = if path.is_absolute() { c"/" } else { c"." };
        rustix::fs::open(begin, HELD | OFlags::DIRECTORY, Mode::empty())
    };
    // The last first.
    let names = |path: &Path| -> Vec<OsString> {
        let names = path.components().filter(|name| !matches!(name, Component::RootDir));
        names.map(|name| name.as_os_str().to_owned()).rev().collect()
    };
    let (mut at, mut left, mut links) = (begin(path)?, names(path), 0);
    while let Some(name) = left.pop() {
        let found = match rustix::fs::openat(&at, &name, HELD, Mode::empty()) {
            Err(Errno::NOENT) if make => {
                match rustix::fs::mkdirat(&at, &name, new_dir() | PASSED) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(e) => return Err(e.into()),
                }
                rustix::fs::openat(&at, &name, HELD, Mode::empty())?
            }
            found => found?,
        };
        let stat = rustix::fs::fstat(&found)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            at = found;
            continue;
        }
        let owner = stat.st_uid;
        if owner != 0 && owner != geteuid().as_raw() {
            let beyond = left.len();
            let up_to_it = path.components().count().saturating_sub(beyond);
            // Of a link's own target its last name must do.
            let is_ours = links == 0;
            let path = path.components().take(up_to_it).collect::<PathBuf>();
            let path = if is_ours { path } else { PathBuf::from(&name) };
            return Err(Refused::Link { path, owner }.into());
        }
        links += 1;
        if links > MOST_LINKS {
            return Err(Errno::LOOP.into());
        }
        let target = rustix::fs::readlinkat(&found, c"", Vec::new())?;
        let target = Path::new(OsStr::from_bytes(target.as_bytes()));
        if target.is_absolute() {
            at = begin(target)?;
        }
        left.extend(names(target));
    }
    Ok(at)
}

/// A name that leads nowhere but into its directory.
fn single(name: &str) -> io::Result<&str> {
    let outside = name.is_empty() || name == "." || name == ".." || name.contains('/');
    if outside { Err(io::ErrorKind::InvalidInput.into()) } else { Ok(name) }
}

fn is_self_or_parent(name: &CStr) -> bool {
    name == c"." || name == c".."
}

/// Removes a name, and first what is beneath it.
fn remove(dir: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<()> {
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        done => return done,
    }
    let inner = rustix::fs::openat(dir, name, DIRECTORY, Mode::empty())?;
    clear(inner.as_fd())?;
    rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)
}

/// Removes what is in a directory; what another removes meanwhile has gone.
fn clear(dir: BorrowedFd<'_>) -> rustix::io::Result<()> {
    for entry in rustix::fs::Dir::read_from(dir)? {
        let entry = entry?;
        if !is_self_or_parent(entry.file_name()) {
            match remove(dir, entry.file_name()) {
                Err(Errno::NOENT) => {}
                done => done?,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
