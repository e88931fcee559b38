//! Removing traces from a directory, and what was begun there and given up.
//!
//! A row is a second name of a file in its trace's directory, and only that file can become it. So whoever removes a trace takes that
//! file first, and nobody can publish the row any more; then the row, if there is one; and only then what the trace consists of,
//! through the directory that is held open: what another brings under its name meanwhile is another directory, whose row stays.
//! Whoever is killed at whichever step, and whoever else is at work, there is no row without all of its files.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ft_trace::dir::Dir;
use ft_trace::store::META_FILE;

use super::{ABANDONED, Directory, Held, is_in_use, names};
use crate::error::io_error;
use crate::place::Place;
use crate::{INCOMING, Key, Result};

impl Directory {
    /// Removes a trace: its row, then its files.
    pub(super) fn remove_trace(&self, key: &Key) -> Result<()> {
        self.remove_held(key, self.trace(key)?.as_ref())
    }

    /// The same of one whose directory was opened before, if it had one.
    pub(super) fn remove_held(&self, key: &Key, trace: Option<&Dir>) -> Result<()> {
        trace.map_or(Ok(()), |trace| forbid(trace, key))?;
        // Otherwise another has removed it, and the row is that of a trace which was brought anew. Only if all that happens between this
        // look and the next call does that trace lose its row, and must be brought again.
        if self.is_under_its_name(key, trace)? {
            let traces = &self.held()?.traces;
            let removed = traces.remove(&key.row()).and_then(|()| traces.sync());
            removed.map_err(io_error("remove", &traces.path().join(key.row())))?;
        }
        trace.map_or(Ok(()), |trace| self.empty(&self.day(key)?, trace, key))
    }

    /// Whether this is what lies under a trace's name, or none does.
    fn is_under_its_name(&self, key: &Key, trace: Option<&Dir>) -> Result<bool> {
        let there = self.trace(key)?;
        let (Some(there), Some(trace)) = (&there, trace) else {
            return Ok(there.is_none() && trace.is_none());
        };
        let look = |dir: &Dir| fs::metadata(dir.anchored()).map_err(io_error("read", dir.path()));
        let (there, trace) = (look(there)?, look(trace)?);
        Ok((there.dev(), there.ino()) == (trace.dev(), trace.ino()))
    }

    /// Removes what was begun and given up, in the directories of all rows and of all days; how many there were.
    pub(super) fn sweep_days(&self) -> Result<u64> {
        let Held { root, traces } = self.held()?;
        let mut swept = 0;
        let mut days = vec![traces.clone()];
        for host in names(&root.anchored(), "host=") {
            let Ok(host) = root.dir(&host) else { continue };
            days.extend(
                names(&host.anchored(), "date=").iter().filter_map(|day| host.dir(day).ok()),
            );
        }
        for day in days {
            for name in names(&day.anchored(), INCOMING) {
                swept += u64::from(sweep_incoming(&day, &name)?);
            }
            for name in names(&day.anchored(), "trace=") {
                let (Ok(trace), Some(key)) = (day.dir(&name), self.key_in(&day, &name)) else {
                    continue;
                };
                if self.sweep_trace(&day, &trace, &key)? {
                    swept += 1;
                    continue;
                }
                // Of results that were being stored.
                for name in names(&trace.anchored(), INCOMING) {
                    swept += u64::from(sweep_incoming(&trace, &name)?);
                }
            }
        }
        Ok(swept)
    }

    /// The trace whose directory has this name in that of its day.
    fn key_in(&self, day: &Dir, name: &str) -> Option<Key> {
        let place = day.path().join(name);
        let path = place.strip_prefix(self.held().ok()?.root.path()).ok();
        path.and_then(Path::to_str).and_then(Key::of_path)
    }

    /// Removes a trace that has long had no row: whoever brought or removed it was killed. Whether it did.
    fn sweep_trace(&self, day: &Dir, trace: &Dir, key: &Key) -> Result<bool> {
        if self.has_row(key)? || !is_abandoned(&trace.anchored().join(".")) {
            return Ok(false);
        }
        forbid(trace, key)?;
        // Whoever brings it was faster: then it exists.
        if self.has_row(key)? {
            return Ok(false);
        }
        self.empty(day, trace, key).map(|()| true)
    }

    /// Removes what is in a trace's directory, for which nobody can publish a row any more, and which has none; then its name, unless
    /// it is another's by now.
    pub(super) fn empty(&self, day: &Dir, trace: &Dir, key: &Key) -> Result<()> {
        // Whoever lists it meanwhile finds no trace, and not half of one.
        let emptied = trace.remove(META_FILE).and_then(|()| trace.clear());
        emptied.map_err(io_error("remove", trace.path()))?;
        match day.remove_empty(&key.directory()) {
            Err(error) if is_in_use(&error) => Ok(()),
            done => done.map_err(io_error("remove", trace.path())),
        }
    }
}

/// From now on nobody can publish the row of what is in this directory.
fn forbid(trace: &Dir, key: &Key) -> Result<()> {
    let done = trace.remove(&key.row()).and_then(|()| trace.sync());
    done.map_err(io_error("remove", &trace.path().join(key.row())))
}

/// Removes what nobody fills any more. Whether it did.
fn sweep_incoming(within: &Dir, name: &str) -> Result<bool> {
    if !is_abandoned(&within.anchored().join(name)) {
        return Ok(false);
    }
    let removed = within.remove(name).map_err(io_error("remove", &within.path().join(name)));
    removed.map(|()| true)
}

/// Nothing in this directory, and not itself, has changed for so long that nobody fills it any more. What cannot be
/// looked at, or changed in the future, counts as in progress.
fn is_abandoned(path: &Path) -> bool {
    let look = || {
        let metadata = fs::symlink_metadata(path)?;
        let is_old = metadata.modified()?.elapsed().is_ok_and(|age| age > ABANDONED);
        if !is_old || !metadata.is_dir() {
            return Ok(is_old);
        }
        for entry in fs::read_dir(path)? {
            if !is_abandoned(&entry?.path()) {
                return Ok(false);
            }
        }
        Ok::<bool, io::Error>(true)
    };
    look().unwrap_or(false)
}
