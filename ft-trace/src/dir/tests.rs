use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};

use tempfile::TempDir;

use super::*;

/// Whoever is not us.
const ANOTHER: u32 = 65534;

fn refused<T: std::fmt::Debug>(result: io::Result<T>) -> Refused {
    Refused::of(result.unwrap_err()).unwrap()
}

fn temporary() -> (TempDir, Dir) {
    let place = tempfile::tempdir().unwrap();
    let dir = Dir::open(place.path()).unwrap();
    (place, dir)
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A directory of another user: root can make one, everybody else has those of root.
fn foreign(place: &TempDir) -> PathBuf {
    if !geteuid().is_root() {
        return "/usr".into();
    }
    let path = place.path().join("foreign");
    fs::create_dir(&path).unwrap();
    chown(&path, Some(ANOTHER), Some(ANOTHER)).unwrap();
    path
}

#[test]
fn only_what_nobody_else_can_write_to_is_opened() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("own");
    assert!(Dir::create(&path).unwrap().1, "made");
    assert!(!Dir::create(&path).unwrap().1, "there already");
    for open in [0o777, 0o1777, 0o702] {
        mode(&path, open);
        assert!(matches!(refused(Dir::open(&path)), Refused::Open { .. }), "{open:o}");
    }
    mode(&path, 0o775);
    Dir::open(&path).unwrap();
    if geteuid().is_root() {
        chown(&path, None, Some(ANOTHER)).unwrap();
        assert!(matches!(refused(Dir::open(&path)), Refused::Open { .. }), "of another group");
    }
    let foreign = foreign(&place);
    assert!(matches!(refused(Dir::open(&foreign)), Refused::Foreign { .. }));
    assert!(matches!(refused(Dir::create(&foreign)), Refused::Foreign { .. }));
}

/// What is made does not depend on the umask, which may let everybody write.
#[test]
fn what_is_made_is_ours_alone() {
    let (place, dir) = temporary();
    let made = dir.make_dir("made").unwrap();
    made.create_file("file").unwrap();
    for name in ["made", "made/file"] {
        let found = fs::metadata(place.path().join(name)).unwrap();
        assert_eq!(found.mode() & 0o022, 0, "{name}");
    }
}

#[test]
fn a_link_is_followed_only_if_it_is_ours() {
    let place = tempfile::tempdir().unwrap();
    let own = place.path().join("own");
    fs::create_dir(&own).unwrap();
    let link = place.path().join("link");
    symlink("own", &link).unwrap();
    Dir::open(&link).unwrap().create_file("here").unwrap();
    assert!(own.join("here").exists());
    let round = place.path().join("round");
    symlink("round", &round).unwrap();
    assert!(Dir::open(&round).is_err());
    if geteuid().is_root() {
        lchown(&link, Some(ANOTHER), Some(ANOTHER)).unwrap();
        for name in ["link", "link/", "link/."] {
            let found = refused(Dir::open(&place.path().join(name)));
            assert!(matches!(found, Refused::Link { .. }), "{name}");
        }
    }
}

/// Who can make names in a directory above can lead elsewhere what is made below it.
#[test]
fn a_link_on_the_way_is_followed_only_if_it_is_ours() {
    let place = tempfile::tempdir().unwrap();
    let at = |path: &str| place.path().join(path);
    fs::create_dir_all(at("own/deep")).unwrap();
    symlink("own/../own", at("link")).unwrap();
    symlink(at("link"), at("whole")).unwrap();
    for path in ["link/deep/new/trace", "whole/deep/new/second", "own/./deep/../other/trace"] {
        assert!(Dir::create(&at(path)).unwrap().1, "{path}");
    }
    assert!(at("own/deep/new/second").is_dir() && at("own/other/trace").is_dir());
    assert!(Dir::create(&at("own/file/x")).is_ok());
    fs::write(at("plain"), "").unwrap();
    assert!(Dir::create(&at("plain/x")).is_err() && Dir::create(&at("plain")).is_err());
    if geteuid().is_root() {
        lchown(at("link"), Some(ANOTHER), Some(ANOTHER)).unwrap();
        for path in ["link/deep/third", "whole/deep/third", "link/none/third"] {
            let Refused::Link { path, owner } = refused(Dir::create(&at(path))) else {
                panic!("{path}")
            };
            assert_eq!((owner, path.file_name()), (ANOTHER, Some("link".as_ref())));
            assert!(crate::whole_file::WholeFile::create(&at("link/deep/page.html")).is_err());
        }
        assert!(!at("own/deep/third").exists() && !at("own/none").exists());
    }
}

/// One that takes no room on the disk would take all memory.
#[test]
fn what_is_too_large_is_not_read() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "{}").unwrap();
    assert_eq!(read_regular(file.path()).unwrap(), b"{}");
    file.as_file().set_len(MAX_WHOLE_BYTES + 1).unwrap();
    assert_eq!(read_regular(file.path()).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
}

/// Others may pass to a socket in it, and see nothing.
#[test]
fn what_is_made_is_as_private_as_was_said() {
    let place = tempfile::tempdir().unwrap();
    let rights = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    set_rights(0o700);
    let (dir, _) = Dir::create(&place.path().join("above/trace")).unwrap();
    dir.make_dir("table").unwrap();
    dir.create_file("file").unwrap();
    set_rights(0o777);
    dir.make_dir("open").unwrap();
    dir.make_closed_dir("spool").unwrap();
    dir.create_file("opened").unwrap();
    set_rights(0o755);
    let found = ["../../above", "", "table", "file", "open", "spool", "opened"]
        .map(|name| rights(&dir.path().join(name)));
    // The umask of who runs this can take away, too.
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:")).unwrap();
    let umask = u32::from_str_radix(umask.trim(), 8).unwrap();
    let expected = [0o711, 0o711, 0o700, 0o600, 0o755, 0o700, 0o644];
    assert_eq!(found, expected.map(|mode| mode & !umask));
}

/// Everything that can stand in the way of a new file, made before we came.
#[test]
fn what_was_planted_is_neither_opened_nor_followed() {
    let (place, dir) = temporary();
    let outside = tempfile::tempdir().unwrap();
    let victim = outside.path().join("victim");
    fs::write(&victim, "secret").unwrap();
    let at = |name: &str| place.path().join(name);
    let plant = || {
        symlink(&victim, at("link")).unwrap();
        symlink(outside.path().join("none"), at("dangling")).unwrap();
        fs::hard_link(&victim, at("hard")).unwrap();
        rustix::fs::mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    };
    plant();
    for name in ["link", "dangling", "hard", "fifo"] {
        let error = dir.create_file(name).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{name}");
        dir.replace_file(name).unwrap().write_all(b"ours").unwrap();
        dir.remove(name).unwrap();
    }
    plant();
    for name in ["link", "dangling", "fifo"] {
        dir.open_file(name).unwrap_err();
    }
    assert!(open_regular(&at("fifo")).is_err(), "nor blocks");
    for name in ["link", "dangling", "hard", "fifo"] {
        symlink(&victim, at(&format!("{name}.tmp"))).unwrap();
        dir.write(name, b"ours").unwrap();
        assert_eq!(fs::read(at(name)).unwrap(), b"ours", "{name}");
    }
    assert_eq!(fs::read(&victim).unwrap(), b"secret");
    assert!(!outside.path().join("none").exists());
}

#[test]
fn a_planted_directory_is_neither_entered_nor_emptied() {
    let (place, dir) = temporary();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("victim"), "secret").unwrap();
    symlink(outside.path(), place.path().join("spool")).unwrap();
    assert!(dir.dir("spool").is_err() && dir.make_dir("spool").is_err());
    assert!(dir.ensure_dir("spool").is_err());
    dir.remove("spool").unwrap();
    dir.make_dir("spool").unwrap().make_dir("deep").unwrap().create_file("x").unwrap();
    symlink(outside.path(), place.path().join("spool/deep/link")).unwrap();
    dir.remove("spool").unwrap();
    dir.remove("spool").unwrap();
    assert!(dir.is_empty().unwrap());
    assert_eq!(fs::read(outside.path().join("victim")).unwrap(), b"secret");
}

/// Swapped between the check and the use, as whoever owns the directory above can do.
#[test]
fn a_directory_that_is_held_stays_the_same() {
    let place = tempfile::tempdir().unwrap();
    let (path, outside) = (place.path().join("trace"), place.path().join("outside"));
    fs::create_dir(&outside).unwrap();
    let (dir, _) = Dir::create(&path).unwrap();
    fs::rename(&path, place.path().join("away")).unwrap();
    symlink(&outside, &path).unwrap();
    dir.make_dir("spool").unwrap().create_file("segment").unwrap();
    dir.write("meta.json", b"{}").unwrap();
    fs::write(dir.anchored().join("anchored"), "").unwrap();
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(fs::read_dir(place.path().join("away")).unwrap().count(), 3);
}

#[test]
fn names_lead_nowhere_else() {
    let (_place, dir) = temporary();
    for name in ["", ".", "..", "../x", "a/b", "/etc/passwd"] {
        assert!(dir.create_file(name).is_err() && dir.make_dir(name).is_err(), "{name}");
        assert!(dir.open_file(name).is_err() && dir.dir(name).is_err(), "{name}");
        assert!(dir.remove(name).is_err() && dir.publish("x", name).is_err(), "{name}");
    }
}

#[test]
fn an_exchange_makes_no_file_where_none_was() {
    let (_place, dir) = temporary();
    let (one, other) = (dir.make_dir("one").unwrap(), dir.make_dir("other").unwrap());
    one.write("row", b"1").unwrap();
    assert_eq!(one.exchange("row", &other).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(other.is_empty().unwrap() && !one.is_empty().unwrap());
    other.write("row", b"2").unwrap();
    one.exchange("row", &other).unwrap();
    let read = |dir: &Dir| fs::read(dir.anchored().join("row")).unwrap();
    assert_eq!((read(&one), read(&other)), (b"2".to_vec(), b"1".to_vec()));
}
