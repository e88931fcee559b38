use std::path::Path;

use ft_trace::build_id;
use ft_trace::foreign_file::regular;

use super::*;

fn own() -> Inspected {
    Inspected::new(std::process::id() as i32, 0)
}

#[test]
fn this_process_is_introduced() {
    let found = own().introduce(&BuildIds::default());
    let mappings = found.mappings.unwrap();
    let here = this_process_is_introduced as *const () as u64;
    let mine = mappings.mappings.iter().find(|m| (m.start..m.end).contains(&here)).unwrap();
    assert_eq!(Path::new(&mine.path), std::env::current_exe().unwrap());
    let file = regular(Path::new(&mine.path)).unwrap();
    assert_eq!(mine.build_id, build_id::of_opened(&file).unwrap_or_default());
    assert!(found.threads.iter().any(|thread| thread.tid == mappings.pid));
}

#[test]
fn of_very_many_threads_the_first_are_named() {
    let most = MAX_THREADS as i32;
    let named = own().named(1..=2 * most, |tid| Some(format!("thread {tid}")));
    assert_eq!((named.len(), &*named[MAX_THREADS - 1].name), (MAX_THREADS, "thread 4096"));
}

#[test]
fn only_changes_are_told() {
    let (subject, files) = (own(), BuildIds::default());
    let first = subject.look(&files);
    assert!(first.mappings.is_some() && !first.sites.is_empty());
    // Another thread of this test binary may map a file in between.
    while subject.look(&files).mappings.is_some() {}
    while !subject.look(&files).sites.is_empty() {}
    subject.forget();
    let again = subject.look(&files);
    assert!(again.mappings.is_some());
    let gone = Inspected::new(-1, 0).look(&files);
    assert!(gone.mappings.is_none() && gone.sites.is_empty());
}

#[test]
fn a_program_that_was_left_behind_is_found() {
    let subject = own();
    assert!(!subject.look(&BuildIds::default()).left, "not known");
    let mapped = |maps: &str, memfd| {
        subject.holds(memfd);
        !subject.has_left(maps)
    };
    let maps = "7f00-7f10 rw-s 00000000 00:01 77 /memfd:feather-trace (deleted)\n\
                8f00-8f10 r-xp 00001000 08:01 78 /usr/bin/a b\n";
    assert!(mapped(maps, Some(77)) && mapped(maps, None) && !mapped(maps, Some(7)));
    assert!(mapped("", Some(7)), "the process is gone, or may not be looked at");
    let found = |maps| tracers(maps).map(Iterator::collect::<Vec<_>>);
    assert_eq!((found(maps), found("")), (Some(vec![77]), None));
    subject.holds(Some(u64::MAX));
    assert!(subject.look(&BuildIds::default()).left);
}

/// With the kernel's own way to what is mapped, and without, as for who may not use it.
#[test]
fn a_program_whose_file_is_gone_or_replaced_keeps_its_build_id() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    let build_id = |path: &Path| build_id::of_opened(&regular(path)?).filter(|id| !id.is_empty());
    for is_replaced in [false, true] {
        std::fs::copy("/bin/sleep", &path).unwrap();
        let expected = build_id(&path).expect("distributions give one");
        let mut program = std::process::Command::new(&path).arg("1000").spawn().unwrap();
        // Who has executed it may go on before all of it is mapped.
        let is_there = || {
            let maps = maps::read(program.id() as i32).unwrap();
            maps::parse(&maps).any(|m| Path::new(&m.path) == path)
        };
        while !is_there() {
            std::thread::yield_now();
        }
        std::fs::remove_file(&path).unwrap();
        if is_replaced {
            std::fs::copy("/bin/cat", &path).unwrap();
            assert_ne!(build_id(&path).as_ref(), Some(&expected));
        }
        let pid = program.id() as i32;
        let found = Inspected::new(pid, 0).locate(&BuildIds::default(), |_| true);
        let of_it = |m: &Mapping| Path::new(&m.path) == path && m.is_gone;
        let mapping = found.and_then(|found| found.mappings.into_iter().find(of_it));
        let elsewhere = mapping.clone().map(|m| Mapping { start: 1, end: 2, ..m });
        let elsewhere = elsewhere.and_then(|m| {
            let file = ForeignFile::mapped(pid, &m, &Mounts::of(pid))?;
            Some(build_id::of_mapped(&file, &m).0)
        });
        program.kill().unwrap();
        program.wait().unwrap();
        let mapping = mapping.expect("its text");
        assert_eq!((&mapping.build_id, elsewhere.as_ref()), (&expected, Some(&expected)));
        assert!(mapping.address.is_some() && mapping.has_file());
    }
}

#[test]
fn one_at_a_time() {
    let subject = own();
    assert!(subject.begin() && !subject.begin());
    subject.end();
    assert!(subject.begin());
}
