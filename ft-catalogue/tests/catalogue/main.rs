//! Traces brought, listed and removed, by several at once, and after each way in which that can end.

mod refused;
mod unfinished;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use ft_catalogue::{Catalogue, CatalogueError, Key, Labels, list};
use ft_trace::ids::{Cpu, Nanos, Pid, Tid};
use ft_trace::spool::frame::End;
use ft_trace::store::{
    Footer, HostClockMeta, Meta, Row, SCHEMA_VERSION, TableMeta, TableWriter, Trace,
};
use ft_trace::tables::{BinaryRow, HostClockState, SchedMigrate};

/// 2026-11-21T10:45:00Z.
const AT: i64 = 1_795_257_900_000_000_000;

fn table<R: Row>(dir: &Path, meta: &mut Meta, rows: Vec<R>) {
    let mut writer = TableWriter::create(dir, Footer::default()).unwrap();
    let count = rows.len() as u64;
    rows.into_iter().for_each(|row| writer.push(row).unwrap());
    writer.finish().unwrap();
    let parts = 1;
    meta.tables.insert(R::TABLE.into(), TableMeta { rows: count, parts, ..TableMeta::default() });
}

/// A trace of a host, that began so many seconds after [`AT`].
fn trace(dir: &Path, host: &str, second: i64) {
    fs::create_dir_all(dir).unwrap();
    let mut meta = Meta { schema_version: SCHEMA_VERSION, complete: true, ..Meta::default() };
    meta.start.host = host.into();
    meta.start.boot_id = format!("boot of {host}");
    meta.start.kernel = "6.18.0".into();
    meta.start.cpus = 4;
    meta.start.command = vec!["/usr/bin/server".into(), "--fast".into()];
    meta.start.start_ns = second * 1_000_000_000;
    meta.start.event_cost_ns = Some(12.5);
    let agent_cpu_ns = Some(7_000_000);
    meta.end = Some(End { ts: (second + 10) * 1_000_000_000, agent_cpu_ns, ..End::default() });
    meta.clock.realtime_offset_ns = AT;
    let (state, bound_ns) = (HostClockState::Synchronised, Some(316_000));
    meta.clock.host = Some(HostClockMeta { state, bound_ns, tai_s: None, samples: 11 });
    meta.lost.insert("ring".into(), 3);
    let moved = |n| SchedMigrate {
        ts: Nanos(n),
        cpu: Cpu(0),
        tid: Tid(7),
        pid: Pid(6),
        from_cpu: Cpu(0),
        to_cpu: Cpu(1),
    };
    table(dir, &mut meta, (0..5).map(moved).collect());
    let binary = |object: &str, build_id: &str| BinaryRow {
        functions: 1,
        framed: 1,
        object: object.into(),
        build_id: build_id.into(),
    };
    table(
        dir,
        &mut meta,
        vec![binary("/usr/bin/server", "c0ffee"), binary("/lib/libc.so.6", "11bc")],
    );
    fs::write(dir.join("views.sql"), "-- views").unwrap();
    meta.write(dir).unwrap();
}

struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Stage {
        Stage { folder: tempfile::tempdir().unwrap() }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("fleet")
    }

    fn url(&self) -> String {
        format!("file://{}", self.root().display())
    }

    fn catalogue(&self) -> Catalogue {
        Catalogue::open(&self.url()).unwrap()
    }

    fn row(&self, key: &Key) -> PathBuf {
        self.root().join("traces").join(format!("{}.parquet", key.trace))
    }

    /// What lies where a trace does; its row, which lies there too, is the one that is published.
    fn stored(&self, key: &Key) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut stored = files(&self.root().join(key.path()));
        let row = stored.remove(Path::new(&format!("{}.parquet", key.trace)));
        assert_eq!(row, fs::read(self.row(key)).ok());
        stored
    }

    fn trace(&self, host: &str, second: i64) -> PathBuf {
        let dir = self.folder.path().join(format!("{host}-{second}"));
        trace(&dir, host, second);
        dir
    }
}

#[test]
fn every_column_has_a_meaning_and_every_number_a_unit() {
    let table = ft_catalogue::Entry::table();
    assert_eq!((table.name, &*table.about), ("traces", "One trace of a catalogue."));
    for column in &table.columns {
        assert!(!column.meaning.is_empty(), "{column:?}");
        let is_number = matches!(column.kind, "int32" | "int64" | "double");
        assert_eq!(column.unit.is_some(), is_number, "{column:?}");
    }
}

/// All files beneath a directory, and what they hold.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(at) = dirs.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => dirs.push(path),
                false => {
                    found.insert(
                        path.strip_prefix(dir).unwrap().to_owned(),
                        fs::read(path).unwrap(),
                    );
                }
            }
        }
    }
    found
}

fn labels() -> Labels {
    [("build".to_owned(), "1.4".to_owned())].into()
}

#[test]
fn a_trace_is_brought_whole_and_once() {
    let stage = Stage::new();
    let (catalogue, dir) = (stage.catalogue(), stage.trace("web-1", 5));
    assert_eq!(list(&stage.url()).unwrap().entries.len(), 0);
    let put = catalogue.put(&dir, &labels()).unwrap();
    assert!(put.is_new);
    let path = put.key.path();
    assert!(path.starts_with("host=web-1/date=2026-11-21/trace=20261121T104505Z-"), "{path}");
    assert_eq!(stage.stored(&put.key), files(&dir));
    assert_eq!(Trace::open(&stage.root().join(&path)).unwrap().rows::<SchedMigrate>().count(), 5);

    let [entry] = &list(&stage.url()).unwrap().entries[..] else { panic!("one trace") };
    assert_eq!((entry.start_ns, entry.duration_ns), (AT + 5_000_000_000, Some(10_000_000_000)));
    assert_eq!((&*entry.host, &*entry.boot_id, entry.cpus), ("web-1", "boot of web-1", 4));
    assert_eq!((&*entry.program, &*entry.build_id), ("server", "c0ffee"));
    assert_eq!((&*entry.command, entry.labels()), ("/usr/bin/server --fast", labels()));
    assert_eq!((entry.clock, entry.clock_bound_ns), (HostClockState::Synchronised, Some(316_000)));
    assert_eq!((entry.events, entry.lost), (5, 3));
    assert_eq!((entry.agent_cpu_ns, entry.event_cost_ns), (Some(7_000_000), Some(12.5)));
    let bytes: usize = files(&dir).values().map(Vec::len).sum();
    assert_eq!((entry.bytes, &*entry.path), (bytes as i64, &*path));
    assert_eq!(entry.schema_version, SCHEMA_VERSION as i32);

    let before = files(&stage.root());
    let again = catalogue.put(&dir, &Labels::new()).unwrap();
    assert_eq!((again.is_new, again.key), (false, put.key));
    assert_eq!(files(&stage.root()), before);
}

/// What the agent has read of the program's file comes before what call chains have met, and stands alone without them.
#[test]
fn a_row_has_the_build_id_that_was_read_before_the_recording() {
    let stage = Stage::new();
    let dir = stage.trace("web-1", 5);
    let mut meta = Trace::open(&dir).unwrap().meta().clone();
    meta.start.build_id = Some("ab01".into());
    meta.write(&dir).unwrap();
    stage.catalogue().put(&dir, &labels()).unwrap();
    let other = stage.trace("web-1", 6);
    fs::remove_dir_all(other.join("binaries")).unwrap();
    meta.start.start_ns += 1;
    meta.tables.remove("binaries");
    meta.write(&other).unwrap();
    stage.catalogue().put(&other, &labels()).unwrap();
    let found = list(&stage.url()).unwrap().entries;
    assert_eq!(found.iter().map(|entry| &*entry.build_id).collect::<Vec<_>>(), ["ab01", "ab01"]);
}

/// Several bring a trace and several remove it, again and again: whenever all have done, it is there whole or not at all.
#[test]
fn bringing_and_removing_at_once_leave_all_or_nothing() {
    const EACH: usize = 2;
    let stage = Stage::new();
    let dir = stage.trace("web-1", 5);
    let put = stage.catalogue().put(&dir, &labels()).unwrap();
    let entry = list(&stage.url()).unwrap().entries.remove(0);
    for _ in 0..60 {
        let barrier = std::sync::Barrier::new(2 * EACH);
        std::thread::scope(|scope| {
            for _ in 0..EACH {
                scope.spawn(|| {
                    let catalogue = stage.catalogue();
                    barrier.wait();
                    match catalogue.put(&dir, &labels()) {
                        Ok(_) | Err(CatalogueError::BeingRemoved(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                });
                scope.spawn(|| {
                    let catalogue = stage.catalogue();
                    barrier.wait();
                    catalogue.remove(&entry).unwrap();
                });
            }
        });
        match stage.row(&put.key).exists() {
            true => assert_eq!(stage.stored(&put.key), files(&dir)),
            false => assert_eq!(list(&stage.url()).unwrap().entries.len(), 0),
        }
    }
    stage.catalogue().put(&dir, &labels()).unwrap();
    assert_eq!(stage.stored(&put.key), files(&dir));
}

#[test]
fn several_at_once_do_no_harm() {
    let stage = Stage::new();
    let same = stage.trace("web-1", 5);
    let others: Vec<PathBuf> = (0..4).map(|n| stage.trace("web-2", n)).collect();
    let barrier = std::sync::Barrier::new(8);
    let new: BTreeSet<String> = std::thread::scope(|scope| {
        let brings = |nth: usize, dir: &PathBuf| {
            let catalogue = stage.catalogue();
            let labels = Labels::from([("nth".to_owned(), nth.to_string())]);
            barrier.wait();
            (nth, catalogue.put(dir, &labels).unwrap().is_new)
        };
        let dirs = others.iter().chain([&same; 4]).enumerate();
        let threads: Vec<_> = dirs.map(|(n, dir)| scope.spawn(move || brings(n, dir))).collect();
        let done = threads.into_iter().map(|thread| thread.join().unwrap());
        done.filter(|(_, is_new)| *is_new).map(|(nth, _)| nth.to_string()).collect()
    });
    let listing = list(&stage.url()).unwrap();
    assert_eq!((listing.entries.len(), listing.wrong.len()), (5, 0));
    // Who is told that the trace is new has its labels there.
    let there: BTreeSet<String> =
        listing.entries.iter().map(|entry| entry.labels()["nth"].clone()).collect();
    assert_eq!((new.len(), new), (5, there));
    for entry in &listing.entries {
        let stored = stage.root().join(&*entry.path);
        assert_eq!(Trace::open(&stored).unwrap().rows::<SchedMigrate>().count(), 5);
    }
    let left = files(&stage.root());
    assert!(left.keys().all(|path| !path.to_string_lossy().contains(".incoming-")), "{left:?}");
}

#[test]
fn a_trace_goes_and_comes_again() {
    let stage = Stage::new();
    let catalogue = stage.catalogue();
    let dirs = [stage.trace("web-1", 5), stage.trace("web-1", 6)];
    dirs.iter().for_each(|dir| drop(catalogue.put(dir, &labels()).unwrap()));
    let whole = files(&stage.root());
    let entry = list(&stage.url()).unwrap().entries.remove(0);
    catalogue.remove(&entry).unwrap();
    let [left] = &list(&stage.url()).unwrap().entries[..] else { panic!("the other one") };
    assert_ne!(left.trace, entry.trace);
    assert!(!stage.root().join(&*entry.path).exists());
    assert_eq!(files(&stage.root()).len(), whole.len() / 2);
    catalogue.remove(&entry).unwrap();
    assert!(catalogue.put(&dirs[0], &labels()).unwrap().is_new);
    assert_eq!(files(&stage.root()), whole);
}
