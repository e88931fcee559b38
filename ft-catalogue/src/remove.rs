//! Taking traces away.

use std::fs;
use std::time::Duration;

use crate::error::io_error;
use crate::put::is_there;
use crate::{Catalogue, Entry, INCOMING, Result};

/// What is not whole for longer than this, nobody fills any more.
const ABANDONED: Duration = Duration::from_secs(86_400);

impl Catalogue {
    /// Removes a trace: first its row, with which it exists; then its files.
    ///
    /// # Errors
    ///
    /// When it cannot be. Without its row it does not exist, whatever is left of it.
    pub fn remove(&self, entry: &Entry) -> Result<()> {
        let Some(key) = entry.key() else { return Ok(()) };
        let row = self.traces.path().join(key.row());
        self.traces.remove(&key.row()).map_err(io_error("remove", &row))?;
        let [host, date, name] = key.directories();
        let place = self.root.path().join(key.path());
        if !is_there(&self.root, &format!("{host}/{date}/{name}")) {
            return Ok(());
        }
        let open = || self.root.dir(&host)?.dir(&date);
        let day = open().map_err(io_error("remove", &place))?;
        // In one step: whoever brings it again now must not find half of it.
        let aside = format!("{INCOMING}gone-{}", key.trace);
        day.remove(&aside).map_err(io_error("remove", &place))?;
        day.move_to(&name, &day, &aside).map_err(io_error("remove", &place))?;
        day.remove(&aside).map_err(io_error("remove", &place))
    }

    /// Removes what was not finished for a day, in the directories of these traces' days and hosts; how many there were.
    ///
    /// # Errors
    ///
    /// When something cannot be removed.
    pub fn sweep(&self) -> Result<u64> {
        let mut swept = 0;
        let mut days = vec![self.traces.clone()];
        for host in names(&self.root.anchored(), "host=") {
            let Ok(host) = self.root.dir(&host) else { continue };
            days.extend(
                names(&host.anchored(), "date=").iter().filter_map(|day| host.dir(day).ok()),
            );
        }
        for day in days {
            for name in names(&day.anchored(), INCOMING) {
                let path = day.anchored().join(&name);
                let modified = fs::symlink_metadata(&path).and_then(|metadata| metadata.modified());
                let is_old = modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > ABANDONED));
                if is_old {
                    day.remove(&name).map_err(io_error("remove", &day.path().join(&name)))?;
                    swept += 1;
                }
            }
        }
        Ok(swept)
    }
}

/// The names in a directory that begin so.
fn names(dir: &std::path::Path, prefix: &str) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(prefix)).collect()
}
