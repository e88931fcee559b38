//! What anybody may have put into a catalogue, or may want to have brought, and is refused.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use ft_catalogue::{Catalogue, CatalogueError, Labels, Tasks, list};
use ft_trace::store::{Footer, PartWriter};

use crate::{Stage, files, labels};

/// A file of a few kilobytes can hold any number of equal rows: it is refused by its footer.
#[test]
fn a_file_of_many_rows_is_refused_before_they_are_read() {
    let stage = Stage::new();
    let good = stage.catalogue().put(&stage.trace("web-1", 5), &labels()).unwrap();
    let entry = list(&stage.url()).unwrap().entries.remove(0);
    let made = tempfile::tempdir().unwrap();
    let mut part = PartWriter::create(made.path(), 0, Footer::default()).unwrap();
    (0..50_000).for_each(|_| part.push(&entry).unwrap());
    part.finish().unwrap();
    let row = stage.root().join("traces").join(format!("{}.parquet", good.key.trace));
    fs::copy(ft_trace::store::part_path(made.path(), "traces", 0), &row).unwrap();
    assert!(fs::metadata(&row).unwrap().len() < 1 << 20);
    let listing = list(&stage.url()).unwrap();
    assert!(listing.entries.is_empty());
    let [(_, why)] = &listing.wrong[..] else { panic!("{:?}", listing.wrong) };
    assert!(why.starts_with("it has 50000 rows of "), "{why}");
}

#[test]
fn what_lies_under_a_traces_name_is_looked_at() {
    let stage = Stage::new();
    let catalogue = stage.catalogue();
    let (one, other) = (stage.trace("web-1", 5), stage.trace("web-1", 6));
    let (one, other) = (
        catalogue.put(&one, &labels()).unwrap(),
        (other.clone(), catalogue.put(&other, &labels()).unwrap()),
    );
    // The second has lost its row, and has the files of the first.
    let [of_one, of_other] = [&one.key, &other.1.key].map(|key| stage.root().join(key.path()));
    fs::remove_file(stage.root().join("traces").join(format!("{}.parquet", other.1.key.trace)))
        .unwrap();
    fs::remove_dir_all(&of_other).unwrap();
    fs::rename(&of_one, &of_other).unwrap();
    let error = catalogue.put(&other.0, &labels()).unwrap_err().to_string();
    assert!(error.starts_with("another trace lies in host=web-1/"), "{error}");
    assert_eq!(list(&stage.url()).unwrap().entries.len(), 1);
}

/// They can name what the owner of the trace may not read, and whoever brings it may.
#[test]
fn links_are_not_followed() {
    let stage = Stage::new();
    let dir = stage.trace("web-1", 5);
    let secret = stage.trace("web-2", 6);
    let part = "sched_migrate/part-00000.parquet";
    fs::rename(dir.join(part), dir.join("aside")).unwrap();
    symlink(secret.join(part), dir.join(part)).unwrap();
    let catalogue = stage.catalogue();
    let error = catalogue.put(&dir, &labels()).unwrap_err().to_string();
    assert!(error.contains(part), "{error}");
    assert!(
        !stage.root().join("host=web-1").exists() || list(&stage.url()).unwrap().entries.is_empty()
    );

    fs::rename(dir.join("aside"), dir.join(part)).unwrap();
    symlink(secret.join("binaries"), dir.join("irq")).unwrap();
    let put = catalogue.put(&dir, &labels()).unwrap();
    let stored = stage.root().join(put.key.path());
    assert!(!stored.join("irq").exists(), "a table that lies elsewhere is none of the trace");
    // In the catalogue of somebody else.
    fs::remove_file(stored.join(part)).unwrap();
    symlink(secret.join(part), stored.join(part)).unwrap();
    symlink(secret.join("binaries"), stored.join("irq")).unwrap();
    let task = Tasks::of(&stage.url()).unwrap().task(&put.key);
    let error = task.fetch(|_| true).unwrap_err().to_string();
    assert!(error.contains(part), "{error}");
}

/// Everything but the one good row is left out, with the reason; nothing outside is touched.
#[test]
fn a_catalogue_of_somebody_else_can_hold_anything() {
    let stage = Stage::new();
    let catalogue = stage.catalogue();
    let good = catalogue.put(&stage.trace("web-1", 5), &labels()).unwrap();
    let rows = stage.root().join("traces");
    let row = rows.join(format!("{}.parquet", good.key.trace));
    fs::write(rows.join("garbage.parquet"), "PAR1 and nothing else PAR1").unwrap();
    fs::write(rows.join("empty.parquet"), "").unwrap();
    fs::write(rows.join("large.parquet"), vec![0; (1 << 20) + 1]).unwrap();
    fs::create_dir(rows.join("directory.parquet")).unwrap();
    symlink("/dev/zero", rows.join("endless.parquet")).unwrap();
    // A row under another name than its own, and a table with other columns.
    fs::copy(&row, rows.join("20261121T104505Z-0000000000000000.parquet")).unwrap();
    let moves = stage.root().join(good.key.path()).join("sched_migrate/part-00000.parquet");
    fs::copy(moves, rows.join("moves.parquet")).unwrap();
    fs::write(rows.join("no-row.txt"), "").unwrap();

    let listing = list(&stage.url()).unwrap();
    assert_eq!(listing.entries.len(), 1);
    let wrong: Vec<String> = listing
        .wrong
        .iter()
        .map(|(path, _)| Path::new(path).file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(
        wrong,
        [
            "20261121T104505Z-0000000000000000",
            "directory",
            "empty",
            "endless",
            "garbage",
            "large",
            "moves"
        ]
    );
    assert!(listing.wrong.iter().all(|(_, why)| !why.is_empty()));

    // A row that leads elsewhere names no trace, and removing it removes nothing.
    let outside = stage.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let mut entry = listing.entries[0].clone();
    for path in [
        "../outside",
        "host=../date=x/trace=y",
        "host=a/date=2026-11-21/trace=../../outside",
        "/etc",
    ] {
        entry.path = path.into();
        assert_eq!(entry.key(), None, "{path}");
        catalogue.remove(&entry).unwrap();
    }
    entry.labels = "[1, 2".into();
    assert_eq!(entry.labels(), Labels::new());
    assert!(outside.is_dir() && row.exists());
}

#[test]
fn nothing_is_brought_where_others_can_write() {
    let stage = Stage::new();
    fs::create_dir(stage.root()).unwrap();
    fs::set_permissions(stage.root(), fs::Permissions::from_mode(0o777)).unwrap();
    let error = Catalogue::open(&stage.url()).unwrap_err();
    assert!(matches!(error, CatalogueError::Refused(_)), "{error}");
    assert!(error.to_string().ends_with("name a directory that only this user can write to"));
    let error = list(&stage.url()).unwrap_err();
    assert!(matches!(error, CatalogueError::NoCatalogue(_)), "{error}");
}

#[test]
fn what_is_no_trace_is_not_brought() {
    let stage = Stage::new();
    let catalogue = stage.catalogue();
    let empty = stage.folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    catalogue.put(&empty, &labels()).unwrap_err();
    let unfinished = stage.trace("web-1", 5);
    fs::create_dir(unfinished.join("spool")).unwrap();
    catalogue.put(&unfinished, &labels()).unwrap_err();
    assert!(files(&stage.root()).is_empty());
}
