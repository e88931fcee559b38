//! Removing traces from a directory, and what was begun there and given up.
//!
//! Files go in two steps. A rename takes a trace away whole, to a name that begins with [`GONE`], so that whoever brings it again
//! finds all of it or nothing; as long as it has that name it can go back. Then it is moved into a directory that is
//! removed with all in it. So whoever is killed leaves a whole trace, or what nobody takes for one.

use std::fs;
use std::io;
use std::path::Path;

use ft_trace::dir::Dir;

use super::{ABANDONED, Directory, Held, Incoming, is_there, names};
use crate::error::io_error;
use crate::place::Place;
use crate::{INCOMING, Key, Result};

/// What begins the name of a whole trace that was moved away, to be removed.
const GONE: &str = ".incoming-gone-";

impl Directory {
    /// Removes a trace: its row, then its files.
    pub(super) fn remove_trace(&self, key: &Key) -> Result<()> {
        let Held { root, traces } = self.held()?;
        let row = traces.path().join(key.row());
        traces.remove(&key.row()).map_err(io_error("remove", &row))?;
        let [host, date, name] = key.directories();
        let place = root.path().join(key.path());
        if !is_there(root, &format!("{host}/{date}/{name}")) {
            return Ok(());
        }
        let open = || root.dir(&host)?.dir(&date);
        let day = open().map_err(io_error("remove", &place))?;
        self.set_aside(&day, key)?;
        // Whoever found the files before they went may have written a row since.
        if !is_there(&day, &name) {
            traces.remove(&key.row()).map_err(io_error("remove", &row))?;
        }
        self.discard(&day, key)
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
                swept += u64::from(self.sweep_incoming(&day, &name)?);
            }
            for name in names(&day.anchored(), "trace=") {
                let trace = name.strip_prefix("trace=").and_then(|trace| self.key_in(&day, trace));
                let Some(key) = trace else { continue };
                swept += u64::from(self.sweep_trace(&day, &key)?);
                // Of results that were being stored.
                let Ok(trace) = day.dir(&name) else { continue };
                for name in names(&trace.anchored(), INCOMING) {
                    swept += u64::from(self.sweep_incoming(&trace, &name)?);
                }
            }
        }
        Ok(swept)
    }

    /// The trace of this name in the directory of its day.
    fn key_in(&self, day: &Dir, trace: &str) -> Option<Key> {
        let place = day.path().join(format!("trace={trace}"));
        let path = place.strip_prefix(self.held().ok()?.root.path()).ok();
        path.and_then(Path::to_str).and_then(Key::of_path)
    }

    /// Moves the files of a trace away in one step: whoever brings it again now must not find half of it. False where they
    /// are not there: another removes them.
    fn set_aside(&self, day: &Dir, key: &Key) -> Result<bool> {
        // What a removal that was killed has left.
        self.discard(day, key)?;
        moved(day, &key.directory(), day, &aside(key))
    }

    /// Moves the files of a trace back that has its row: whoever found them may have written it just before they went;
    /// afterwards it finds none, and takes the row back. Whether they were.
    fn put_back(&self, day: &Dir, key: &Key) -> Result<bool> {
        let is_amiss = self.has_row(key)? && !is_there(day, &key.directory());
        Ok(is_amiss && moved(day, &aside(key), day, &key.directory())?)
    }

    /// Removes what was set aside of a trace, in a directory of its own: what lies under the name for that is whole, and
    /// can be put back, whoever is killed.
    fn discard(&self, day: &Dir, key: &Key) -> Result<()> {
        if !is_there(day, &aside(key)) {
            return Ok(());
        }
        let doomed = Incoming::new(day)?;
        moved(day, &aside(key), &doomed.dir, &key.directory())?;
        day.remove(&doomed.name).map_err(io_error("remove", &day.path().join(&doomed.name)))
    }

    /// Removes a trace that has long had no row: whoever brought or removed it was killed. Whether it did.
    fn sweep_trace(&self, day: &Dir, key: &Key) -> Result<bool> {
        let is_given_up = || is_abandoned(&day.anchored().join(key.directory()));
        if self.has_row(key)? || !is_given_up() || !self.set_aside(day, key)? {
            return Ok(false);
        }
        if self.put_back(day, key)? {
            return Ok(false);
        }
        self.discard(day, key).map(|()| true)
    }

    /// Removes what nobody fills any more; but a trace that a sweep has set aside, and was killed before it had put it back,
    /// goes back. Whether it was removed.
    fn sweep_incoming(&self, day: &Dir, name: &str) -> Result<bool> {
        let gone = name.strip_prefix(GONE).and_then(|trace| self.key_in(day, trace));
        if let Some(key) = &gone
            && self.put_back(day, key)?
        {
            return Ok(false);
        }
        if !is_abandoned(&day.anchored().join(name)) {
            return Ok(false);
        }
        match gone {
            Some(key) => self.discard(day, &key)?,
            None => day.remove(name).map_err(io_error("remove", &day.path().join(name)))?,
        }
        Ok(true)
    }
}

/// Where a trace's files go before they are removed, in the directory of its day.
fn aside(key: &Key) -> String {
    format!("{GONE}{}", key.trace)
}

/// Moves what has this name; false where it is not there, or another came before.
fn moved(from: &Dir, name: &str, to: &Dir, new: &str) -> Result<bool> {
    match from.move_to(name, to, new) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound
                    | io::ErrorKind::DirectoryNotEmpty
                    // Of some file systems (rename(2)).
                    | io::ErrorKind::AlreadyExists
            ) =>
        {
            Ok(false)
        }
        done => done.map(|()| true).map_err(io_error("move", &from.path().join(name))),
    }
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
