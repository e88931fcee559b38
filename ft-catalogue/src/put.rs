//! Bringing a trace.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ft_trace::dir::{self, Dir};
use ft_trace::store::{META_FILE, PartWriter, Trace};

use crate::error::io_error;
use crate::{Entry, INCOMING, Key, Labels, Result, TRACES, place};

/// A catalogue in a directory that nobody else can write to.
#[derive(Debug)]
pub struct Catalogue {
    pub(crate) root: Dir,
    pub(crate) traces: Dir,
}

/// What has become of a trace that was brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// Its name.
    pub key: Key,
    /// It was not there before.
    pub is_new: bool,
}

impl Catalogue {
    /// Opens a catalogue, made if it does not exist.
    ///
    /// # Errors
    ///
    /// When the URL names no directory, or one in which others can make names.
    pub fn open(url: &str) -> Result<Catalogue> {
        let path = place::directory(url)?;
        let (root, _) = Dir::create(&path).map_err(io_error("write", &path))?;
        let traces = root.ensure_dir(TRACES).map_err(io_error("write", &path.join(TRACES)))?;
        Ok(Catalogue { root, traces })
    }

    /// Brings a finished trace: whole, or not at all. One that is there stays as it is.
    ///
    /// # Errors
    ///
    /// When it cannot be read or written. Bringing it again goes on where that ended.
    pub fn put(&self, trace: &Path, labels: &Labels) -> Result<Put> {
        let trace = Trace::open(trace)?;
        let key = Key::of(trace.meta());
        if self.has(&key) {
            return Ok(Put { key, is_new: false });
        }
        let [host, date, name] = key.directories();
        let day = made(&made(&self.root, &host)?, &date)?;
        let place = day.path().join(&name);
        if !is_there(&day, &name) {
            let incoming = Incoming::new(&day)?;
            copy(trace.dir(), &incoming.dir)?;
            incoming.publish(&day, &name).map_err(io_error("write", &place))?;
        }
        // Of what lies there, which another may have brought: it is a whole trace of the same name.
        let stored = day.dir(&name).map_err(io_error("read", &place))?;
        let stored = Trace::open(&stored.anchored())?;
        let entry = Entry::of(&key, &stored, labels)?;
        self.publish(&key, &entry)?;
        Ok(Put { key, is_new: true })
    }

    /// Whether the trace exists.
    fn has(&self, key: &Key) -> bool {
        is_there(&self.traces, &key.row())
    }

    /// The trace exists from here on.
    fn publish(&self, key: &Key, entry: &Entry) -> Result<()> {
        let incoming = Incoming::new(&self.traces)?;
        let mut part = PartWriter::create(&incoming.dir.anchored(), 0, Default::default())?;
        part.push(entry)?;
        part.finish()?;
        let made = incoming.dir.dir(TRACES).map_err(io_error("read", incoming.dir.path()))?;
        let path = self.traces.path().join(key.row());
        made.move_to("part-00000.parquet", &self.traces, &key.row())
            .map_err(io_error("write", &path))
    }
}

/// A directory within another, made if it does not exist, durably.
fn made(dir: &Dir, name: &str) -> Result<Dir> {
    let inner = dir.ensure_dir(name).and_then(|inner| dir.sync().map(|()| inner));
    inner.map_err(io_error("write", &dir.path().join(name)))
}

/// Anything has this name.
pub(crate) fn is_there(dir: &Dir, name: &str) -> bool {
    fs::symlink_metadata(dir.anchored().join(name)).is_ok()
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

/// Copies a trace, durably: its tables, and the files beside them. What is not whole has other names.
fn copy(from: &Path, to: &Dir) -> Result<()> {
    for path in listed(from)? {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if fs::symlink_metadata(&path).map_err(io_error("read", &path))?.is_dir() {
            let mut parts = listed(&path)?;
            parts.retain(|part| part.extension().is_some_and(|e| e == "parquet"));
            if !parts.is_empty() {
                let table = to.make_dir(name).map_err(io_error("write", to.path()))?;
                parts.iter().try_for_each(|part| copy_file(part, &table))?;
                table.sync().map_err(io_error("write", table.path()))?;
            }
        } else if [META_FILE, "analysis.json", "views.sql"].contains(&name) {
            copy_file(&path, to)?;
        }
    }
    to.sync().map_err(io_error("write", to.path()))
}

fn listed(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).map_err(io_error("read", dir))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<io::Result<Vec<_>>>().map_err(io_error("read", dir))?;
    paths.sort_unstable();
    Ok(paths)
}

fn copy_file(from: &Path, to: &Dir) -> Result<()> {
    let Some(name) = from.file_name().and_then(|name| name.to_str()) else { return Ok(()) };
    let mut source = dir::open_regular(from).map_err(io_error("read", from))?;
    let target = to.path().join(name);
    let mut file = to.create_file(name).map_err(io_error("write", &target))?;
    io::copy(&mut source, &mut file)
        .and_then(|_| file.sync_all())
        .map_err(io_error("write", &target))
}
