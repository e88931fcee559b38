//! A catalogue in a directory that nobody else can write to.

mod removal;

use std::cell::OnceCell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ft_trace::dir::{self, Dir};

use crate::error::io_error;
use crate::place::{LocalFile, Look, MAX_ROW_BYTES, Place, is_name};
use crate::{CatalogueError, INCOMING, Key, Result, TRACES};

/// What is not whole for longer than this, nobody fills any more.
pub(crate) const ABANDONED: Duration = Duration::from_secs(86_400);

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

    /// The directory of a trace that is there, for writing.
    fn trace(&self, key: &Key) -> Result<Dir> {
        let [host, date, name] = key.directories();
        let root = &self.held()?.root;
        let open = || root.dir(&host)?.dir(&date)?.dir(&name);
        open().map_err(io_error("read", &self.path.join(key.path())))
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

    /// The directory appears by one rename. One that another has brought is a whole trace of the same name.
    fn bring(&self, key: &Key, files: &[LocalFile]) -> Result<Option<Dir>> {
        let [_, _, name] = key.directories();
        let day = self.day(key)?;
        let place = day.path().join(&name);
        if !is_there(&day, &name) {
            let incoming = Incoming::new(&day)?;
            copy(files, &incoming.dir)?;
            incoming.publish(&day, &name).map_err(io_error("write", &place))?;
        }
        day.dir(&name).map(Some).map_err(io_error("read", &place))
    }

    /// By a link, which replaces nothing: of two that bring it at once, the labels of one are in the row, and the other
    /// learns of it.
    fn publish(&self, key: &Key, row: &Path, _: &[LocalFile]) -> Result<bool> {
        let traces = &self.held()?.traces;
        let incoming = Incoming::new(traces)?;
        copy_file(row, &incoming.dir, &key.row())?;
        let path = traces.path().join(key.row());
        let is_new = match incoming.dir.link(&key.row(), traces) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            // Files could be made here just now, so this is no lack of rights: link(2) says so of FAT and the like.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(CatalogueError::NoLinks(self.path.clone()));
            }
            linked => linked.map(|()| true).map_err(io_error("write", &path))?,
        };
        traces.sync().map_err(io_error("write", &path))?;
        // Whoever removes it may have found no row, and have taken the files since.
        match is_there(&self.held()?.root, &key.path()) {
            true => Ok(is_new),
            false => {
                traces.remove(&key.row()).map_err(io_error("remove", &path))?;
                Err(CatalogueError::BeingRemoved(key.path()))
            }
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
        let trace = self.trace(key)?;
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
        let trace = self.trace(key)?;
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

    /// It is complete: it appears under its name, unless another with this name did before.
    fn publish(&self, within: &Dir, name: &str) -> io::Result<()> {
        match within.move_to(&self.name, within, name) {
            Err(_) if is_there(within, name) => Ok(()),
            done => done,
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // It has gone under its name, or nobody will miss it.
        let _ = self.within.remove(&self.name);
    }
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
