//! Where an experiment runs: for how long, on which CPU, and where its files go.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use ft_load::hourglass::{Outcome, play, scenario};

use crate::csv::Csv;

/// Where experiments run.
#[derive(Debug)]
pub struct Lab {
    scale: f64,
    dir: PathBuf,
    cpu: usize,
    others: Vec<usize>,
}

/// No run is shorter: starting and ending one takes a tenth of a second.
const SHORTEST_S: f64 = 0.2;

impl Lab {
    /// One whose runs last `scale` times as long as the paper's, and are repeated as much less often; its files go to `dir`.
    ///
    /// # Errors
    ///
    /// When the scale makes no sense, or the directory cannot be made.
    pub fn new(scale: f64, dir: &Path) -> Result<Lab> {
        ensure!(
            scale > 0.0 && scale <= 1.0,
            "a scale lies above 0, and 1 is the paper's own length; give such a one"
        );
        fs::create_dir_all(dir).with_context(|| format!("{} cannot be made", dir.display()))?;
        let mut cpus = allowed_cpus();
        let cpu = cpus.pop().context("the kernel does not say which CPUs there are")?;
        Ok(Lab { scale, dir: dir.to_owned(), cpu, others: cpus })
    }

    /// How much of the paper's time runs last.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The CPU that is looked at: the papers' machines had one. It is the last one, because interrupts of devices usually
    /// go to the first.
    pub(crate) fn cpu(&self) -> usize {
        self.cpu
    }

    /// A CPU for what stands for another machine: another one, if there is.
    pub(crate) fn other_cpu(&self) -> usize {
        self.others.first().copied().unwrap_or(self.cpu)
    }

    /// Whether this is to see that all runs, and no more: where the scale is a thousandth or less.
    pub(crate) fn is_try(&self) -> bool {
        self.scale <= 0.001
    }

    /// Of several cases those that a try has time for: the first alone.
    pub(crate) fn cases<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        if self.is_try() { &all[..1] } else { all }
    }

    /// How long something runs for which the paper took that many seconds.
    pub(crate) fn seconds(&self, paper: f64) -> f64 {
        (paper * self.scale).max(SHORTEST_S.min(paper))
    }

    /// How often something is repeated for which the paper took that many trials: three times at least, for a variance.
    pub(crate) fn trials(&self, paper: usize) -> usize {
        ((paper as f64 * self.scale).ceil() as usize).max(3)
    }

    /// Where a program lies: ours beside this one, or in the directory above as for tests; others in the `PATH` or among the games.
    ///
    /// # Errors
    ///
    /// When it is not there.
    pub fn tool(&self, name: &str) -> Result<PathBuf> {
        let own = std::env::current_exe().context("this program does not know where it lies")?;
        if name.starts_with("ft-") {
            let found =
                own.ancestors().skip(1).take(2).map(|dir| dir.join(name)).find(|p| p.is_file());
            return found
                .with_context(|| format!("`{name}` is not built; run `cargo xtask paper`"));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut dirs = std::env::split_paths(&path).chain([PathBuf::from("/usr/games")]);
        match dirs.find(|dir| dir.join(name).is_file()) {
            Some(dir) => Ok(dir.join(name)),
            None => bail!("`{name}` is not installed; `cargo xtask paper` installs it"),
        }
    }

    /// Runs a line of Hourglass for a time for which the paper took that many seconds.
    pub(crate) fn hourglass(&self, paper_seconds: f64, line: &str) -> Result<Outcome> {
        self.hourglass_for(self.seconds(paper_seconds), line)
    }

    /// Runs a line of Hourglass for that many seconds.
    pub(crate) fn hourglass_for(&self, seconds: f64, line: &str) -> Result<Outcome> {
        let milliseconds = (seconds * 1e3).round();
        let line = format!("-d {milliseconds}ms {line}");
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let outcome = scenario(&words).and_then(|scenario| play(&scenario));
        outcome.with_context(|| format!("hourglass {line}"))
    }

    /// Waits until the kernel has taken back what was reserved by threads that are gone: it does so at the end of their
    /// periods (the *zero-lag time* of sched-deadline.rst), which are 33 ms here at most.
    pub(crate) fn settle(&self) {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }

    /// Writes a table of values; returns the name of its file.
    pub(crate) fn values(&self, name: &str, csv: &Csv) -> Result<String> {
        self.write(&format!("{name}.csv"), csv.text())
    }

    /// Writes a drawing; returns the name of its file.
    pub(crate) fn figure(&self, name: &str, svg: &str) -> Result<String> {
        self.write(&format!("{name}.svg"), svg)
    }

    /// Whole or not at all: beside it, then renamed.
    fn write(&self, name: &str, text: &str) -> Result<String> {
        let path = self.dir.join(name);
        let aside = self.dir.join(format!(".{name}"));
        fs::write(&aside, text)
            .and_then(|()| fs::rename(&aside, &path))
            .with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(name.to_owned())
    }
}

/// The CPUs that this process may run on.
fn allowed_cpus() -> Vec<usize> {
    // SAFETY: a set of bits, for which zero is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is as large as it is said to be; 0 is the calling thread.
    unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    // SAFETY: the numbers are below `CPU_SETSIZE`.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_as_long_as_the_scale_says_and_never_longer_than_the_papers() {
        let dir = tempfile::tempdir().unwrap();
        let lab = |scale| Lab::new(scale, dir.path()).unwrap();
        assert_eq!((lab(1.0).seconds(60.0), lab(1.0).trials(15)), (60.0, 15));
        assert_eq!((lab(0.1).seconds(60.0), lab(0.1).trials(15)), (6.0, 3));
        assert_eq!((lab(0.001).seconds(60.0), lab(0.001).seconds(0.1)), (SHORTEST_S, 0.1));
        assert!(Lab::new(0.0, dir.path()).is_err() && Lab::new(f64::NAN, dir.path()).is_err());
    }
}
