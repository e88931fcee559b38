//! A conversion that was killed is repeated, and ends in the same files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{EXPECTED, events, recording};
use crate::convert::ledger::Ledger;
use crate::convert::{Converter, convert, summary};
use crate::spool::Spool;
use crate::store::Trace;

/// Everything in a trace directory, by relative path.
fn snapshot(dir: &Path, below: &Path, out: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            snapshot(dir, &path, out);
        } else {
            let name = path.strip_prefix(dir).unwrap().to_owned();
            // The views name the directory that they were written in.
            let bytes =
                if name == Path::new("views.sql") { vec![] } else { fs::read(&path).unwrap() };
            out.insert(name, bytes);
        }
    }
}

/// A conversion that was killed after each of its steps must end, when it is repeated, in the same
/// files as one that was not.
#[test]
fn a_conversion_can_be_killed_at_any_step() {
    let whole = tempfile::tempdir().unwrap();
    recording(whole.path());
    convert(whole.path(), |_, _| {}).unwrap();
    let mut expected = BTreeMap::new();
    snapshot(whole.path(), whole.path(), &mut expected);

    let check = |step: &str, kill: &dyn Fn(&Path)| {
        let dir = tempfile::tempdir().unwrap();
        recording(dir.path());
        kill(dir.path());
        convert(dir.path(), |_, _| {}).unwrap();
        let mut files = BTreeMap::new();
        snapshot(dir.path(), dir.path(), &mut files);
        assert_eq!(files.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{step}");
        assert!(files == expected, "{step}: the same bytes");
    };
    // Puts the spool back as it was before the conversion, except that `keep` stay as they are.
    let again = |dir: &Path, keep: &dyn Fn(&Path)| {
        let ledger = Spool::of(dir).dir().join(Ledger::name(0));
        let mut converter = Converter::new(dir).unwrap();
        let segment = fs::read(Spool::of(dir).segment(0)).unwrap();
        converter.segment(0).unwrap();
        fs::write(Spool::of(dir).segment(0), segment).unwrap();
        keep(&ledger);
    };
    check("a part half written", &|dir| {
        fs::create_dir(dir.join("user_events")).unwrap();
        fs::write(dir.join("user_events/part-00000.parquet.tmp"), "half").unwrap();
    });
    check("parts in place, no ledger", &|dir| {
        again(dir, &|ledger| fs::remove_file(ledger).unwrap())
    });
    check("ledger in place, segment not deleted", &|dir| again(dir, &|_| {}));
    check("ledger half written", &|dir| {
        again(dir, &|ledger| fs::rename(ledger, ledger.with_extension("json.tmp")).unwrap());
    });
    check("one segment done", &|dir| {
        Converter::new(dir).unwrap().segment(0).unwrap();
    });
    check("all segments done, nothing else", &|dir| {
        let mut converter = Converter::new(dir).unwrap();
        converter.segment(0).unwrap();
        converter.segment(1).unwrap();
    });
    check("summary written, spool not removed", &|dir| {
        let mut converter = Converter::new(dir).unwrap();
        converter.segment(0).unwrap();
        converter.segment(1).unwrap();
        {
            let Converter { spool, registry, ledgers, .. } = &converter;
            summary::write(dir, spool, registry, ledgers, Default::default()).unwrap()
        };
    });
}

#[test]
fn a_spool_removed_by_half_is_a_finished_trace() {
    let dir = tempfile::tempdir().unwrap();
    recording(dir.path());
    let meta = convert(dir.path(), |_, _| {}).unwrap();
    fs::create_dir(dir.path().join("spool.done")).unwrap();
    assert_eq!(convert(dir.path(), |_, _| {}).unwrap(), meta);
    assert_eq!(events(&Trace::open(dir.path()).unwrap()), EXPECTED);
}
