//! What is left of a trace when whoever brought or removed it was killed, or somebody has taken files away: the next one goes on.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ft_catalogue::{Labels, list};

use crate::{Stage, files, labels};

#[test]
fn whoever_comes_after_one_that_was_killed_goes_on() {
    let stage = Stage::new();
    let (catalogue, dir) = (stage.catalogue(), stage.trace("web-1", 5));
    let put = catalogue.put(&dir, &labels()).unwrap();
    let whole = files(&stage.root());
    let (place, row) = (stage.root().join(put.key.path()), stage.row(&put.key));

    // Killed before the row, and before the directory has its name.
    fs::remove_file(&row).unwrap();
    assert_eq!(list(&stage.url()).unwrap().entries.len(), 0, "it does not exist without its row");
    assert!(catalogue.put(&dir, &labels()).unwrap().is_new);
    assert_eq!(files(&stage.root()), whole);
    fs::remove_file(&row).unwrap();
    fs::rename(&place, place.with_file_name(".incoming-half")).unwrap();
    fs::remove_file(place.with_file_name(".incoming-half").join("meta.json")).unwrap();
    assert!(catalogue.put(&dir, &labels()).unwrap().is_new);
    let left = files(&stage.root());
    assert!(whole.iter().all(|(path, bytes)| left.get(path) == Some(bytes)));
    // What is left of it goes when it is old enough.
    assert_eq!(catalogue.sweep().unwrap(), 0);
    age_of_one(&place.with_file_name(".incoming-half"));
    assert_eq!(catalogue.sweep().unwrap(), 0, "somebody still fills it");
    age(&place.with_file_name(".incoming-half"));
    // And of whoever was killed while it stored a result.
    fs::create_dir(place.join(".incoming-result")).unwrap();
    age(&place.join(".incoming-result"));
    assert_eq!(catalogue.sweep().unwrap(), 2);
    assert!(!place.join(".incoming-result").exists());
    assert_eq!(files(&stage.root()), whole);
}

/// Whoever was killed before the row had another label: the catalogue did not have the trace, so the second one counts.
#[test]
fn the_labels_of_a_trace_are_those_of_whoever_published_it() {
    let stage = Stage::new();
    let (catalogue, dir) = (stage.catalogue(), stage.trace("web-1", 5));
    let key = catalogue.put(&dir, &labels()).unwrap().key;
    fs::remove_file(stage.row(&key)).unwrap();
    let second = Labels::from([("build".to_owned(), "1.5".to_owned())]);
    assert!(catalogue.put(&dir, &second).unwrap().is_new);
    assert_eq!(stage.stored(&key), files(&dir));
    let [entry] = &list(&stage.url()).unwrap().entries[..] else { panic!("one trace") };
    assert_eq!(entry.labels(), second);
    assert!(!catalogue.put(&dir, &labels()).unwrap().is_new);
    assert_eq!(list(&stage.url()).unwrap().entries[0].labels(), second);
}

#[test]
fn a_trace_that_has_long_had_no_row_is_swept() {
    let stage = Stage::new();
    let catalogue = stage.catalogue();
    let keys = [0, 1, 2].map(|n| catalogue.put(&stage.trace("web-1", n), &labels()).unwrap().key);
    let stored = keys.each_ref().map(|key| stage.root().join(key.path()));
    let [whole, recent, left] = &stored;
    for key in &keys[1..] {
        // As whoever was killed between the row and the files leaves it.
        fs::remove_file(stage.row(key)).unwrap();
    }
    for dir in &stored {
        age(dir);
    }
    // Somebody still writes to this one.
    fs::write(recent.join("sched_migrate/part-00001.parquet"), "begun").unwrap();
    age_of_one(&recent.join("sched_migrate"));
    assert_eq!(catalogue.sweep().unwrap(), 1);
    assert_eq!((whole.exists(), recent.exists(), left.exists()), (true, true, false));
    assert_eq!(catalogue.sweep().unwrap(), 0);
}

/// Whoever removes a trace was killed: before its row went, after that, and when some of its files had gone. The trace is there
/// whole, or not at all, and can be brought again.
#[test]
fn whoever_comes_after_one_that_removed_it_and_was_killed_goes_on() {
    let stage = Stage::new();
    let (catalogue, dir) = (stage.catalogue(), stage.trace("web-1", 5));
    let key = catalogue.put(&dir, &labels()).unwrap().key;
    let whole = files(&stage.root());
    let (place, row) = (stage.root().join(key.path()), stage.row(&key));
    let own = place.join(format!("{}.parquet", key.trace));

    fs::remove_file(&own).unwrap();
    assert_eq!(list(&stage.url()).unwrap().entries.len(), 1);
    assert!(!catalogue.put(&dir, &labels()).unwrap().is_new, "it is there still");
    assert_eq!(catalogue.sweep().unwrap(), 0);
    catalogue.remove(&list(&stage.url()).unwrap().entries[0]).unwrap();
    assert_eq!(files(&stage.root()), BTreeMap::new());

    for lost in [&[][..], &["meta.json"], &["meta.json", "sched_migrate/part-00000.parquet"]] {
        assert!(catalogue.put(&dir, &labels()).unwrap().is_new);
        assert_eq!(files(&stage.root()), whole);
        let lost = lost.iter().map(|name| place.join(name));
        lost.chain([own.clone(), row.clone()]).for_each(|path| fs::remove_file(path).unwrap());
        assert_eq!(list(&stage.url()).unwrap().entries.len(), 0);
    }
    assert!(catalogue.put(&dir, &labels()).unwrap().is_new);
    [&own, &row].into_iter().for_each(|path| fs::remove_file(path).unwrap());
    age(&place);
    assert_eq!((catalogue.sweep().unwrap(), place.exists()), (1, false));
}

/// Somebody has taken its files away by hand: it is brought again, and its row is that which it had.
#[test]
fn a_trace_that_has_lost_its_files_is_brought_again() {
    let stage = Stage::new();
    let (catalogue, dir) = (stage.catalogue(), stage.trace("web-1", 5));
    let put = catalogue.put(&dir, &labels()).unwrap();
    fs::remove_dir_all(stage.root().join(put.key.path())).unwrap();
    assert!(catalogue.put(&dir, &labels()).unwrap().is_new);
    assert_eq!(stage.stored(&put.key), files(&dir));
}

/// The same where `meta.json` alone has gone: whoever removes a trace takes it last, so nobody does, whichever name of the row is left.
#[test]
fn a_trace_that_has_lost_what_it_says_of_itself_is_brought_again() {
    let stage = Stage::new();
    let (catalogue, dir) = (stage.catalogue(), stage.trace("web-1", 5));
    let key = catalogue.put(&dir, &labels()).unwrap().key;
    let whole = files(&stage.root());
    let place = stage.root().join(key.path());
    let (own, row) = (place.join(format!("{}.parquet", key.trace)), stage.row(&key));
    for lost in [&[][..], &[&own], &[&row], &[&own, &row]] {
        fs::remove_file(place.join("meta.json")).unwrap();
        lost.iter().for_each(|path| fs::remove_file(path).unwrap());
        assert!(catalogue.put(&dir, &labels()).unwrap().is_new, "{lost:?}");
        assert!(files(&stage.root()) == whole, "{lost:?}");
    }
}

/// Makes everything in this directory look as if it had not been changed for long.
fn age(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { age(&path) } else { age_of_one(&path) }
    }
    age_of_one(dir);
}

fn age_of_one(path: &Path) {
    fs::File::open(path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
}
