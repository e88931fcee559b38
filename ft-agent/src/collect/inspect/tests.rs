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

/// Who maps the same file otherwise changes nothing of what is said about the others.
#[test]
fn what_a_file_says_of_a_mapping_is_said_of_that_mapping_alone() {
    // Of two segments the first one fills most of the page in which it begins, and the second one most of all.
    let mut file = vec![0; 0x8000];
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    file[32..40].copy_from_slice(&64_u64.to_le_bytes());
    file[54..58].copy_from_slice(&[56, 0, 2, 0]);
    for (at, offset, bytes) in [(64, 0x1000_u64, 0xa00_u64), (120, 0x1a00, 0x5000)] {
        file[at] = 1;
        file[at + 8..at + 16].copy_from_slice(&offset.to_le_bytes());
        let address = offset + 0x10_0000 * bytes;
        file[at + 16..at + 24].copy_from_slice(&address.to_le_bytes());
        file[at + 32..at + 40].copy_from_slice(&bytes.to_le_bytes());
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    std::fs::write(&path, file).unwrap();
    let (pid, mounts) = (std::process::id() as i32, Mounts::own());
    let tell = |files: &BuildIds, bytes: u64| {
        let (path, start) = (path.to_str().unwrap().to_owned(), 0x1000);
        let (end, offset) = (start + bytes, 0x1000);
        let mut mapping = Mapping { start, end, offset, path, ..Mapping::default() };
        files.tell(pid, &mut mapping, &mounts);
        mapping.address
    };
    let alone = [0x1000, 0x6000].map(|bytes| tell(&BuildIds::default(), bytes));
    assert!(alone[0].is_some() && alone[1].is_some() && alone[0] != alone[1]);
    let files = BuildIds::default();
    let told = [0x1000, 0x6000, 0x1000].map(|bytes| tell(&files, bytes));
    assert_eq!(told, [alone[0], alone[1], alone[0]]);
    assert_eq!(files.known().len(), 2, "it is read once for each");
}

#[test]
fn one_at_a_time() {
    let subject = own();
    assert!(subject.begin() && !subject.begin());
    subject.end();
    assert!(subject.begin());
}
