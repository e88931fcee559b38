//! A catalogue in a directory that nobody else can write to.

mod removal;

use std::cell::OnceCell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ft_trace::dir::{self, Dir};
use ft_trace::store::{META_FILE, Trace};

use crate::error::io_error;
use crate::place::{LocalFile, Look, MAX_ROW_BYTES, Place, is_name};
use crate::{CatalogueError, INCOMING, Key, Result, TRACES};

/// What is not whole for longer than this, nobody fills any more.
///
/// Limit: `catalogue --delete` removes it after that; a writer that writes nothing for a day fails, and can be run
/// again.
/// Shown by: `whoever_comes_after_one_that_was_killed_goes_on`, `a_trace_that_has_long_had_no_row_is_swept`.
pub(crate) const ABANDONED: Duration = Duration::from_secs(86_400);

/// How often a trace is brought anew that others remove meanwhile.
///
/// Limit: it is not brought, and the message says so.
/// Shown by: not shown: no figure.
const ROUNDS: usize = 4;

/// Whoever reads may do so from a directory of somebody else; it is held open once something is to be written.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    held: OnceCell<Held>,
}

#[derive(Debug)]
struct Held {
    root: Dir,
    traces: Dir,
}

impl Directory {
    pub(crate) fn new(path: PathBuf) -> Directory {
        Directory { path, held: OnceCell::new() }
    }

    fn held(&self) -> Result<&Held> {
        if let Some(held) = self.held.get() {
            return Ok(held);
        }
        let path = &self.path;
        let (root, _) = Dir::create(path).map_err(io_error("write", path))?;
        let traces = root.ensure_dir(TRACES).map_err(io_error("write", &path.join(TRACES)))?;
        Ok(self.held.get_or_init(|| Held { root, traces }))
    }

    /// The directory of a trace's day, made if it does not exist.
    fn day(&self, key: &Key) -> Result<Dir> {
        let [host, date, _] = key.directories();
        made(&made(&self.held()?.root, &host)?, &date)
    }

    /// The directory of a trace, for writing, if it is there.
    fn trace(&self, key: &Key) -> Result<Option<Dir>> {
        let [host, date, name] = key.directories();
        let root = &self.held()?.root;
        match root.dir(&host).and_then(|host| host.dir(&date)?.dir(&name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some).map_err(io_error("read", &self.path.join(key.path()))),
        }
    }

    /// The same of one that must be there.
    fn there(&self, key: &Key) -> Result<Dir> {
        self.trace(key)?.ok_or_else(|| CatalogueError::NoTrace(key.path()))
    }
}

impl Place for Directory {
    fn prepare(&self) -> Result<()> {
        self.held().map(drop)
    }

    fn rows(&self, most: usize, look: Look<'_>) -> Result<bool> {
        let traces = self.path.join(TRACES);
        let entries = fs::read_dir(&traces).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => CatalogueError::NoCatalogue(self.path.display().to_string()),
            _ => io_error("read", &traces)(source),
        })?;
        let mut paths = Vec::new();
        let mut is_cut = false;
        for entry in entries {
            let path = entry.map_err(io_error("read", &traces))?.path();
            if path.extension().is_some_and(|e| e == "parquet") {
                is_cut = paths.len() == most;
                if is_cut {
                    break;
                }
                paths.push(path);
            }
        }
        paths.sort_unstable();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let size = dir::open_no_link(&path).and_then(|file| file.metadata());
            match size.map(|metadata| metadata.len()) {
                Ok(bytes) if bytes > MAX_ROW_BYTES => look(&name, Err(too_large(bytes))),
                Ok(_) => look(&name, Ok(&path)),
                Err(error) => look(&name, Err(error.to_string())),
            }
        }
        Ok(is_cut)
    }

    fn has_row(&self, key: &Key) -> Result<bool> {
        Ok(is_there(&self.held()?.traces, &key.row()))
    }

    fn has_trace(&self, key: &Key) -> Result<bool> {
        let meta = format!("{}/{META_FILE}", key.path());
        Ok(self.has_row(key)? && is_there(&self.held()?.root, &meta))
    }

    /// The directory appears by one rename, with the row in it. One that another has brought is a whole trace of the same name,
    /// unless it has lost that row: then it is being removed. One that has lost `meta.json`, which goes after the row, goes too.
    fn bring(&self, key: &Key, files: &[LocalFile], row: &Path) -> Result<()> {
        let day = self.day(key)?;
        let name = key.directory();
        let place = day.path().join(&name);
        for _ in 0..ROUNDS {
            let trace = match day.dir(&name) {
                Ok(trace) => trace,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let incoming = Incoming::new(&day)?;
                    copy(files, &incoming.dir)?;
                    copy_file(row, &incoming.dir, &key.row())?;
                    incoming.dir.sync().map_err(io_error("write", &place))?;
                    if moved(&day, &incoming.name, &day, &name)? {
                        return Ok(());
                    }
                    continue;
                }
                Err(error) => return Err(io_error("read", &place)(error)),
            };
            let found = Trace::open(&trace.anchored()).ok();
            if found.is_some_and(|found| Key::of(found.meta()) != *key) {
                return Err(CatalogueError::Taken(key.path()));
            }
            let is_lost = is_missing(&trace, META_FILE);
            if !is_lost && (self.has_row(key)? || relabelled(&day, &trace, key, row)?) {
                return Ok(());
            }
            self.remove_held(key, Some(&trace))?;
        }
        Err(CatalogueError::BeingRemoved(key.path()))
    }

    /// By a link of the row that came with the files, which replaces nothing: of two that bring a trace at once, the labels of
    /// one are there, and the other learns of it.
    fn publish(&self, key: &Key, _: &[LocalFile], row: &Path) -> Result<bool> {
        let traces = &self.held()?.traces;
        let path = traces.path().join(key.row());
        let removed = || CatalogueError::BeingRemoved(key.path());
        let linked = self.trace(key).and_then(|trace| match trace {
            Some(trace) => trace.link(&key.row(), traces).map_err(|error| match error.kind() {
                // It has lost its row: whoever removes it was faster.
                io::ErrorKind::NotFound => removed(),
                // Files could be made here just now, so this is no lack of rights: link(2) says so of FAT and the like. Others do not
                // have the call, or `traces` or a host's directory is a mount of its own.
                io::ErrorKind::PermissionDenied
                | io::ErrorKind::Unsupported
                | io::ErrorKind::CrossesDevices => CatalogueError::NoLinks(self.path.clone()),
                _ => io_error("write", &path)(error),
            }),
            None => Err(removed()),
        });
        match linked {
            Err(CatalogueError::Io { source, .. })
                if source.kind() == io::ErrorKind::AlreadyExists => {}
            linked => linked?,
        }
        traces.sync().map_err(io_error("write", &path))?;
        let read = |path: &Path| dir::read_regular(path).map_err(io_error("read", path));
        match dir::read_regular(&traces.anchored().join(key.row())) {
            Ok(there) => Ok(there == read(row)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(removed()),
            Err(error) => Err(io_error("read", &path)(error)),
        }
    }

    fn local(&self, key: &Key) -> Option<PathBuf> {
        Some(self.path.join(key.path()))
    }

    fn remove(&self, key: &Key) -> Result<()> {
        self.remove_trace(key)
    }

    fn sweep(&self) -> Result<u64> {
        self.sweep_days()
    }

    fn names(&self, key: &Key) -> Result<Vec<String>> {
        let trace = self.path.join(key.path());
        let mut found = Vec::new();
        for entry in fs::read_dir(&trace).map_err(io_error("read", &trace))? {
            let entry = entry.map_err(io_error("read", &trace))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let parts = names(&entry.path(), "part-").into_iter();
                found.extend(parts.map(|part| format!("{name}/{part}")));
            } else {
                found.push(name);
            }
        }
        found.retain(|name| is_name(name));
        found.sort_unstable();
        Ok(found)
    }

    fn fetch(&self, key: &Key, name: &str, to: &Path) -> Result<()> {
        let from = self.path.join(key.path()).join(name);
        let mut source = dir::open_no_link(&from).map_err(io_error("read", &from))?;
        let copied = fs::File::create_new(to).and_then(|mut file| io::copy(&mut source, &mut file));
        copied.map(drop).map_err(io_error("write", to))
    }

    fn put_within(&self, key: &Key, files: &[&LocalFile]) -> Result<()> {
        let trace = self.there(key)?;
        for file in files {
            let (dir, name) = match file.name.split_once('/') {
                Some((table, part)) => (made(&trace, table)?, part),
                None => (trace.clone(), &*file.name),
            };
            let incoming = Incoming::new(&trace)?;
            copy_file(&file.path, &incoming.dir, "file")?;
            let path = dir.path().join(name);
            incoming.dir.move_to("file", &dir, name).map_err(io_error("write", &path))?;
        }
        Ok(())
    }

    fn remove_within(&self, key: &Key, name: &str) -> Result<()> {
        let trace = self.there(key)?;
        let path = trace.path().join(name);
        let removed = match name.split_once('/') {
            Some((table, part)) => trace.dir(table).and_then(|table| table.remove(part)),
            None => trace.remove(name),
        };
        removed.map_err(io_error("remove", &path))
    }
}

pub(crate) fn too_large(bytes: u64) -> String {
    format!("it has {bytes} bytes, which no row has")
}

/// A directory within another, made if it does not exist, durably.
fn made(dir: &Dir, name: &str) -> Result<Dir> {
    let inner = dir.ensure_dir(name).and_then(|inner| dir.sync().map(|()| inner));
    inner.map_err(io_error("write", &dir.path().join(name)))
}

/// Anything has this name.
fn is_there(dir: &Dir, name: &str) -> bool {
    fs::symlink_metadata(dir.anchored().join(name)).is_ok()
}

/// Nothing has this name, for certain.
fn is_missing(dir: &Dir, name: &str) -> bool {
    let found = fs::symlink_metadata(dir.anchored().join(name));
    found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// The names in a directory that begin so.
fn names(dir: &Path, prefix: &str) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(prefix)).collect()
}

/// A directory that is being filled. Dropped, it goes away with what is left in it.
struct Incoming {
    dir: Dir,
    within: Dir,
    name: String,
}

impl Incoming {
    fn new(within: &Dir) -> Result<Incoming> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Agents of other hosts, and of containers, may have our number.
        let host = rustix::system::uname().nodename().to_string_lossy().replace('/', "-");
        let (pid, next) = (std::process::id(), NEXT.fetch_add(1, Relaxed));
        let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_nanos());
        let name = format!("{INCOMING}{host:.64}-{pid}-{now}-{next}");
        let dir = within.make_dir(&name).map_err(io_error("write", &within.path().join(&name)))?;
        Ok(Incoming { dir, within: within.clone(), name })
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // It has gone under its name, or nobody will miss it.
        let _ = self.within.remove(&self.name);
    }
}

/// Puts this row into a trace's directory, in place of that of whoever brought it and was killed before it was published. False where
/// none is, for whoever removes the trace has taken it: it must not lie there again, hence an exchange.
fn relabelled(day: &Dir, trace: &Dir, key: &Key, row: &Path) -> Result<bool> {
    if !is_there(trace, &key.row()) {
        return Ok(false);
    }
    let incoming = Incoming::new(day)?;
    copy_file(row, &incoming.dir, &key.row())?;
    match incoming.dir.exchange(&key.row(), trace).and_then(|()| trace.sync()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        // Some file systems cannot, as NFS: then the labels are those of the first.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
        {
            Ok(true)
        }
        done => done.map(|()| true).map_err(io_error("write", trace.path())),
    }
}

/// Moves what has this name; false where it is not there, or another is there that is not empty.
fn moved(from: &Dir, name: &str, to: &Dir, new: &str) -> Result<bool> {
    match from.move_to(name, to, new) {
        Err(error) if is_in_use(&error) => Ok(false),
        done => done.map(|()| true).map_err(io_error("move", &from.path().join(name))),
    }
}

/// A directory is there that is not empty, or none.
fn is_in_use(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::DirectoryNotEmpty
            // Of some file systems (rename(2)).
            | io::ErrorKind::AlreadyExists
    )
}

/// Copies a trace, durably. Parts of a table follow each other.
fn copy(files: &[LocalFile], to: &Dir) -> Result<()> {
    let mut table: Option<(&str, Dir)> = None;
    let synced = |table: Option<(&str, Dir)>| match table {
        Some((_, dir)) => dir.sync().map_err(io_error("write", dir.path())),
        None => Ok(()),
    };
    for file in files {
        let Some((name, part)) = file.name.split_once('/') else {
            copy_file(&file.path, to, &file.name)?;
            continue;
        };
        if table.as_ref().is_none_or(|(of, _)| *of != name) {
            synced(table.take())?;
            table = Some((name, to.make_dir(name).map_err(io_error("write", to.path()))?));
        }
        if let Some((_, dir)) = &table {
            copy_file(&file.path, dir, part)?;
        }
    }
    synced(table)?;
    to.sync().map_err(io_error("write", to.path()))
}

fn copy_file(from: &Path, to: &Dir, name: &str) -> Result<()> {
    let mut source = dir::open_no_link(from).map_err(io_error("read", from))?;
    let target = to.path().join(name);
    let mut file = to.create_file(name).map_err(io_error("write", &target))?;
    io::copy(&mut source, &mut file)
        .and_then(|_| file.sync_all())
        .map_err(io_error("write", &target))
}
