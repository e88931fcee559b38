//! A trace of a catalogue as a task: read where it lies, or fetched, worked on where it is nobody else's, and its results brought back.
//!
//! It is copied first, because the reader opens each part several times and out of order, which would be a request to a store each
//! time; and because results are kept somewhere until all are complete.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use ft_trace::store::{ANALYSIS_FILE, META_FILE, PartMeta, Parts, faults};

use crate::error::io_error;
use crate::place::{self, LocalFile, Place, TRACES_AT_ONCE, Wanted};
use crate::put::local_files;
use crate::scratch::Scratch;
use crate::{CatalogueError, Key, Result};

/// The file that says of what version a trace's results are; it goes before they do, and comes last.
const MARKER: &str = ANALYSIS_FILE;

/// The traces of a catalogue, for whoever reads them or computes their results.
#[derive(Clone, Debug)]
pub struct Tasks {
    url: String,
    place: Rc<dyn Place>,
}

/// One of them.
#[derive(Debug)]
pub struct Task {
    place: Rc<dyn Place>,
    key: Key,
}

/// A copy of some of a trace's tables. Dropped, it goes away.
#[derive(Debug)]
pub struct Copy {
    scratch: Scratch,
}

impl Copy {
    /// Its directory.
    pub fn dir(&self) -> &Path {
        self.scratch.path()
    }
}

/// A trace where it can be read.
#[derive(Debug)]
pub enum Readable {
    /// The catalogue is on this machine: its directory there.
    Here(PathBuf),
    /// Some of its tables.
    Copied(Copy),
}

impl Readable {
    /// Its directory.
    pub fn dir(&self) -> &Path {
        match self {
            Readable::Here(dir) => dir,
            Readable::Copied(copy) => copy.dir(),
        }
    }
}

impl Tasks {
    /// Those of the catalogue with this URL. Nothing is looked at yet.
    ///
    /// # Errors
    ///
    /// When the URL names no place.
    pub fn of(url: &str) -> Result<Tasks> {
        Ok(Tasks { url: url.to_owned(), place: place::open(url)?.into() })
    }

    /// Those of a place that a test has made.
    #[cfg(all(test, feature = "s3"))]
    pub(crate) fn at(url: &str, place: impl Place + 'static) -> Tasks {
        Tasks { url: url.to_owned(), place: Rc::new(place) }
    }

    /// The catalogue.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Asks the place whether it is there: it tells a store that is away from one that cannot read a trace.
    ///
    /// # Errors
    ///
    /// As [`crate::Catalogue::open`].
    pub fn ask(&self) -> Result<()> {
        self.place.prepare()
    }

    /// Shows these traces to `see`, one after the other and in this order, each with what belongs to it: where they lie, or as copies
    /// with these tables at least. A store is asked for some at once, for it takes its time to answer; no more copies are there at a time.
    pub fn read_each<T>(
        &self,
        traces: &[(Key, T)],
        is_wanted: impl Fn(&str) -> bool,
        mut see: impl FnMut(&T, Result<Readable>),
    ) {
        let is_wanted = |name: &str| is_copied(name, &is_wanted);
        let mut away = None;
        for some in traces.chunks(TRACES_AT_ONCE) {
            let keys: Vec<&Key> = some.iter().map(|(key, _)| key).collect();
            let read: Vec<Result<Readable>> = match &away {
                None => self.read_some(&keys, &is_wanted),
                Some(away) => keys.iter().map(|_| Err(again(away))).collect(),
            };
            // A store that fell silent is waited for once.
            away = away.or_else(|| all_away(&read));
            some.iter().zip(read).for_each(|((_, of), trace)| see(of, trace));
        }
    }

    fn read_some(&self, keys: &[&Key], is_wanted: Wanted<'_>) -> Vec<Result<Readable>> {
        let here: Option<Vec<PathBuf>> = keys.iter().map(|key| self.place.local(key)).collect();
        if let Some(here) = here {
            return here.into_iter().map(|dir| Ok(Readable::Here(dir))).collect();
        }
        let copies: Vec<Result<Scratch>> = keys.iter().map(|_| Scratch::new()).collect();
        let made = keys.iter().zip(&copies);
        let made: Vec<(&Key, &Path)> =
            made.filter_map(|(key, copy)| Some((*key, copy.as_ref().ok()?.path()))).collect();
        let mut fetched = self.place.fetch_traces(&made, is_wanted).into_iter();
        let read = |scratch: Result<Scratch>| {
            let scratch = scratch?;
            // One for each directory that could be made.
            fetched.next().transpose()?;
            Ok(Readable::Copied(Copy { scratch }))
        };
        copies.into_iter().map(read).collect()
    }

    /// The trace with this key, which need not be there.
    pub fn task(&self, key: &Key) -> Task {
        Task { place: self.place.clone(), key: key.clone() }
    }
}

/// URL and reason, where nothing could be read because the store is away.
fn all_away(read: &[Result<Readable>]) -> Option<(String, String)> {
    let why = |read: &Result<Readable>| match read {
        Err(CatalogueError::Away { url, why }) => Some((url.clone(), why.clone())),
        _ => None,
    };
    let all: Option<Vec<_>> = read.iter().map(why).collect();
    all?.pop()
}

fn again((url, why): &(String, String)) -> CatalogueError {
    CatalogueError::Away { url: url.clone(), why: why.clone() }
}

/// Divides the URL of a trace in a catalogue into that of the catalogue and the trace's key; `None` of any other.
pub fn trace_of(url: &str) -> Option<(String, Key)> {
    let url = url.trim_end_matches('/');
    let (start, _) = url.match_indices("host=").find(|(at, _)| {
        let is_name = *at == 0 || url[..*at].ends_with('/');
        is_name && Key::of_path(&url[*at..]).is_some()
    })?;
    let catalogue = match &url[..start] {
        "" => ".",
        "/" => "/",
        before => &before[..start - 1],
    };
    Some((catalogue.to_owned(), Key::of_path(&url[start..])?))
}

impl Task {
    /// Its name.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Its directory, where the catalogue is on this machine.
    pub fn local(&self) -> Option<PathBuf> {
        self.place.local(&self.key)
    }

    /// Of these tables those that are whole there; of a store, as far as the names of their parts say it.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be read.
    pub fn whole(&self, tables: &Parts) -> Result<Parts> {
        let names = self.place.names(&self.key)?;
        let local = self.local();
        let is_whole = |name: &str, parts: &[PartMeta]| {
            let there = names.iter().filter(|file| table(file) == Some(name)).count();
            let has = |part: &PartMeta| names.contains(&part.file(name));
            let is_named = !parts.is_empty() && there == parts.len() && parts.iter().all(has);
            is_named && local.as_ref().is_none_or(|dir| faults(dir, name, parts).is_empty())
        };
        let whole = tables.iter().filter(|(name, parts)| is_whole(name, parts));
        Ok(whole.map(|(name, parts)| (name.clone(), parts.clone())).collect())
    }

    /// What its results say of themselves, as they were stored; `None` where it has none.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be read.
    pub fn marker(&self) -> Result<Option<Vec<u8>>> {
        if !self.place.names(&self.key)?.iter().any(|name| name == MARKER) {
            return Ok(None);
        }
        let scratch = Scratch::new()?;
        let path = scratch.path().join(MARKER);
        self.place.fetch(&self.key, MARKER, &path)?;
        Ok(Some(ft_trace::dir::read_regular(&path).map_err(io_error("read", &path))?))
    }

    /// The trace with these tables at least: where it lies, if on this machine, or else a copy.
    ///
    /// # Errors
    ///
    /// As [`Task::fetch`] where it is copied; what is here is not looked at.
    pub fn read(&self, is_wanted: impl Fn(&str) -> bool) -> Result<Readable> {
        match self.local() {
            Some(dir) => Ok(Readable::Here(dir)),
            None => self.fetch(is_wanted).map(Readable::Copied),
        }
    }

    /// Copies these tables of the trace to a directory for temporary files, with what it says of itself and what its results say of
    /// themselves.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or there is no room.
    pub fn fetch(&self, is_wanted: impl Fn(&str) -> bool) -> Result<Copy> {
        let scratch = Scratch::new()?;
        let is_wanted = |name: &str| is_copied(name, &is_wanted);
        let fetched = self.place.fetch_traces(&[(&self.key, scratch.path())], &is_wanted);
        fetched.into_iter().collect::<Result<()>>()?;
        Ok(Copy { scratch })
    }

    /// Stores these tables of a copy's results. The others of `results` go, but for those that `stay`: of the same version, and whole.
    ///
    /// # Errors
    ///
    /// When they cannot be written. The trace then counts as not analysed, and storing them again goes on.
    pub fn store(
        &self,
        copy: &Copy,
        tables: &[&str],
        results: &[&str],
        stay: &Parts,
    ) -> Result<()> {
        let files = local_files(copy.dir())?;
        let is_brought = |file: &&LocalFile| table(&file.name).is_some_and(|t| tables.contains(&t));
        self.place.remove_within(&self.key, MARKER)?;
        for name in self.place.names(&self.key)? {
            let stays = |table| stay.contains_key(table) && !tables.contains(&table);
            let is_stale =
                table(&name).is_some_and(|table| results.contains(&table) && !stays(table));
            if is_stale && !files.iter().filter(is_brought).any(|file| file.name == name) {
                self.place.remove_within(&self.key, &name)?;
            }
        }
        let tables: Vec<&LocalFile> = files.iter().filter(is_brought).collect();
        self.place.put_within(&self.key, &tables)?;
        let marker: Vec<&LocalFile> = files.iter().filter(|file| file.name == MARKER).collect();
        self.place.put_within(&self.key, &marker)
    }
}

/// Whether a copy with these tables has the file of this name.
fn is_copied(name: &str, is_wanted: impl Fn(&str) -> bool) -> bool {
    match table(name) {
        Some(table) => is_wanted(table),
        None => name == META_FILE || name == MARKER,
    }
}

/// The table of a file's name.
fn table(name: &str) -> Option<&str> {
    name.split_once('/').map(|(table, _)| table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_of_a_catalogue_is_known_by_its_url() {
        let path = "host=a%2Fb/date=2026-11-21/trace=20261121T104500Z-c7c061a6b51c7ba7";
        for (url, catalogue) in [
            ("s3://fleet/x", "s3://fleet/x"),
            ("/srv/host=x", "/srv/host=x"),
            ("/", "/"),
            ("", "."),
        ] {
            let joined = match url {
                "" | "/" => format!("{url}{path}/"),
                url => format!("{url}/{path}"),
            };
            let (found, key) = trace_of(&joined).unwrap();
            assert_eq!((&*found, &*key.path()), (catalogue, path));
        }
        for url in ["s3://fleet", "trace", "host=a", &format!("x{path}"), &format!("{path}/irq")] {
            assert_eq!(trace_of(url), None, "{url}");
        }
    }
}
