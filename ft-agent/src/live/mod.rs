//! Sites of a running process: which there are, which are on, and switching them.
//!
//! Nothing runs in the process and nothing of it stops: sites are found from outside
//! ([`outside`]), their state is the byte in the text, and switching is writing that byte
//! ([`Remote`]). So it also works for a process that hangs, that nobody records, or that loaded the
//! library with the site a moment ago.

mod listing;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use ft_user::glob;
use ft_user::layout::{SLED_BYTES, SledState};
use ft_user::patch;
use ft_user::patch::PatchError;

use crate::collect::discover::{self, ForeignProc, Identity};
use crate::collect::outside::{self, Site};
use crate::collect::remote::{Place, Remote};
use ft_trace::mounts::Mounts;
pub use listing::{Event, Listing};

/// Why sites of a process cannot be listed or switched. Each sentence ends in the remedy.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// There is no process with this number.
    #[error("process {0} does not exist; look its number up, for example with `pgrep -l NAME`")]
    NoSuchProcess(i32),
    /// `/proc` is that of another PID namespace.
    #[error(transparent)]
    ForeignProc(#[from] ForeignProc),
    /// It has no memfd of ours.
    #[error(
        "process {0} embeds no ft-user, or has not started it; call ft_user::init() in it, or record its \
         pthread locks with `ft-agent record --preload`"
    )]
    NotEmbedded(i32),
    /// `/proc/PID` is closed to us.
    #[error(
        "cannot look into process {pid}: {source}; run as root, or with CAP_SYS_PTRACE, or as its user \
         where kernel.yama.ptrace_scope is 0"
    )]
    Forbidden {
        /// Process.
        pid: i32,
        /// What the kernel said.
        source: io::Error,
    },
    /// Its memory cannot be opened for writing.
    #[error(
        "cannot write the text of process {pid}: {source}; run as root, or with CAP_SYS_PTRACE, or as its \
         user where kernel.yama.ptrace_scope is 0"
    )]
    NoWrite {
        /// Process.
        pid: i32,
        /// What the kernel said.
        source: PatchError,
    },
    /// Globs without a site.
    #[error(
        "no site of process {pid} matches '{globs}'; there are {sites}{}",
        functions(globs, sites)
    )]
    NoMatch {
        /// Process.
        pid: i32,
        /// The globs.
        globs: String,
        /// Names of all its sites.
        sites: String,
    },
}

/// What to do where functions are asked for that are not there.
fn functions(globs: &str, sites: &str) -> &'static str {
    let of_function = |name: &str| name.starts_with("fn.") && name != "fn.instrumented";
    match (globs.starts_with("fn"), sites.split(", ").any(of_function)) {
        (false, _) => "",
        (true, true) => {
            "; functions are called fn.NAME, and clang leaves sleds in short ones without a loop only with \
             -fxray-instruction-threshold=1; in those that are inlined there are none, nor does the preload library know those of \
             libraries that are loaded later"
        }
        (true, false) => {
            "; functions that can be switched one by one are called fn.NAME, and are those in which clang has left sleds \
             (-fxray-instrument), or gcc eleven nops at the begin (-fpatchable-function-entry=11, and FT_PATCHABLE=1 in the \
             environment of the process), or that have the attribute #[ft_user::function]; -finstrument-functions has them recorded \
             all"
        }
    }
}

/// What became of the sites that matched.
#[derive(Debug)]
pub struct Switched {
    /// Triggers that were switched.
    pub triggers: usize,
    /// Triggers that were so already.
    pub already: usize,
    /// Triggers that were left alone, the first reason of each kind.
    pub refused: Vec<PatchError>,
}

/// A running process that embeds `ft-user`.
#[derive(Debug)]
pub struct Process {
    identity: Identity,
    sites: Vec<Site>,
}

impl Process {
    /// Finds the sites of the process `pid`.
    ///
    /// # Errors
    ///
    /// When it is gone, embeds no `ft-user`, or may not be looked into.
    pub fn open(pid: i32) -> Result<Process, LiveError> {
        discover::check_proc()?;
        let identity = Identity::of(pid).map_err(|_| LiveError::NoSuchProcess(pid))?;
        let fail = |source| match identity.has_ended() {
            true => LiveError::NoSuchProcess(pid),
            false => LiveError::Forbidden { pid, source },
        };
        if !discover::is_traceable(pid).map_err(fail)? {
            return Err(LiveError::NotEmbedded(pid));
        }
        let sites = without_collisions(outside::sites(pid, &Mounts::of(pid)).map_err(fail)?);
        Ok(Process { identity, sites })
    }

    /// All sites and their present state, by name.
    ///
    /// # Errors
    ///
    /// When the process has ended meanwhile.
    pub fn listing(&self) -> Result<Listing, LiveError> {
        let pid = self.identity.pid;
        let memory = File::open(format!("/proc/{pid}/mem"))
            .map_err(|source| LiveError::Forbidden { pid, source })?;
        // An object that was unloaded meanwhile has no site that is on.
        let is_on = |site: &Site| match site.sled {
            None => {
                let mut found = [0; 4];
                memory.read_exact_at(&mut found, site.address).is_ok()
                    && patch::state(found) == Some(true)
            }
            Some(sled) => {
                let mut found = [0; SLED_BYTES as usize];
                memory.read_exact_at(&mut found, site.address).is_ok()
                    && sled.state(found) == Some(SledState::On)
            }
        };
        let listing = Listing::new(pid, self.sites.iter().map(|site| (site, is_on(site))));
        // Its number may belong to another process now.
        if self.identity.has_ended() { Err(LiveError::NoSuchProcess(pid)) } else { Ok(listing) }
    }

    /// Switches the sites that match one of the globs, until somebody switches them back.
    ///
    /// # Errors
    ///
    /// When one of the globs matches none (nothing is switched then), the process has ended, or its text
    /// may not be written.
    pub fn switch(&self, globs: &[String], on: bool) -> Result<Switched, LiveError> {
        let pid = self.identity.pid;
        let matches = |glob: &&String| self.sites.iter().any(|s| glob::matches(glob, &s.name));
        let unmatched: Vec<&str> =
            globs.iter().filter(|g| !matches(g)).map(String::as_str).collect();
        if !unmatched.is_empty() {
            let (globs, sites) = (unmatched.join("', '"), listing::names(&self.sites));
            return Err(LiveError::NoMatch { pid, globs, sites });
        }
        let mut remote = Remote::open(pid).map_err(|source| LiveError::NoWrite { pid, source })?;
        // The file that was opened belongs to this process if it still lives now.
        if self.identity.has_ended() {
            return Err(LiveError::NoSuchProcess(pid));
        }
        let place = |s: &Site| s.sled.map_or(Place::Trigger(s.address), Place::Sled);
        let places: Vec<_> = self.sites.iter().map(|s| (s.name.clone(), place(s))).collect();
        let outcome = remote.switch(&places, globs, on);
        Ok(Switched {
            triggers: outcome.switched.len(),
            already: outcome.already,
            refused: outcome.refused,
        })
    }
}

/// Leaves out sites of which two share a key: their events could not be told apart. The process itself
/// would refuse the later of the two; which one that is does not show from outside.
fn without_collisions(sites: Vec<Site>) -> Vec<Site> {
    let mut owners: HashMap<u32, Option<u64>> = HashMap::new();
    for site in &sites {
        let owner = owners.entry(site.key()).or_insert(Some(site.meta));
        if *owner != Some(site.meta) {
            *owner = None;
        }
    }
    sites.into_iter().filter(|site| owners[&site.key()].is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(address: u64, meta: u64) -> Site {
        Site { address, ..listing::tests::site(meta, "a.b", "a.rs", 1) }
    }

    #[test]
    fn sites_whose_events_look_alike_are_left_out() {
        let both = [site(1, 0x1_0000_0040), site(2, 0x2_0000_0040)];
        let other = [site(3, 0x1_0000_0080), site(4, 0x1_0000_0080)];
        let all = [both.to_vec(), other.to_vec(), both.to_vec()].concat();
        assert_eq!(without_collisions(all), other);
    }

    #[test]
    fn what_cannot_be_looked_into_is_told() {
        let check = |pid, expected: &str| {
            let error = Process::open(pid).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(-1, "does not exist");
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        check(child.id() as i32, "embeds no ft-user");
        child.kill().unwrap();
        child.wait().unwrap();
        check(child.id() as i32, "does not exist");
    }
}
