//! Files that harm who looks for names in them: functions inlined into each other without end, names without end, a
//! section that inflates to gigabytes, and a link in the place of a compiler's map, to a file that only root may read. And a trace of root that the attacker wants to read, or to lock.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ft_trace::convert::synthetic::program::{deep, exploding, named, zeros};
use ft_trace::tables::FrameRow;

use crate::Attack;
use crate::code::{run, run_compiled};
use crate::forged::recorded;
use crate::stage::{Attacker, NOBODY, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "files", program, test };

/// A file beside the trace that only root may read. It reads as a compiler's map.
const SECRET: &str = "secret";

/// How long each function keeps a CPU: the agent takes some hundred samples meanwhile.
const LONG: Duration = Duration::from_secs(1);

/// What the agent may use of memory, KiB, and each process that it starts.
const MODEST: u64 = 1 << 20;

/// What a file of 100 KB inflates to.
const LARGE: u64 = 3 << 30;

pub(super) fn program(attacker: &Attacker) {
    let trace = Path::new(&attacker.socket).parent().expect("a trace");
    let _memfd = recorded(&attacker.socket);
    let closed = |path: PathBuf| {
        let error = File::open(&path).expect_err("it is root's");
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{path:?}");
    };
    closed(trace.join("spool/registry.ft"));
    closed(trace.to_owned());

    let folder = tempfile::tempdir().expect("a folder");
    // With it their build ids would be there, too; who has none is known by its inode.
    let long = named(&vec![b'A'; 1 << 20]);
    let files = [
        ("deep", deep(400_000)),
        ("mangled", named(exploding().as_bytes())),
        ("long", long),
        ("inflated", zeros(LARGE)),
    ];
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::write(&path, content).expect("a file");
        run(&path, LONG);
    }
    let map = format!("/tmp/perf-{}.map", std::process::id());
    symlink(trace.with_file_name(SECRET), &map).expect("a link");
    run_compiled(LONG);
    attacker.stay();
    let _ = fs::remove_file(map);
}

fn test(stage: &Stage) {
    let secret = stage.path(SECRET);
    fs::write(&secret, "0 ffffffffffffffff a secret of root\n").expect("a file");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("its rights");
    let options = ["-k", "default,profile"];
    let recorded = stage.attack_in(&ATTACK, &Scene { options: &options, ..Scene::default() });
    let warnings = recorded.trace.meta().warnings.iter().map(ToString::to_string);
    let own = format!("of the user with number {NOBODY} ");
    let warnings: Vec<String> = warnings.filter(|warning| warning.contains(&own)).collect();
    assert!(matches!(&warnings[..], [one] if one.contains("/deep")), "{warnings:?}");
    let frames = recorded.trace.rows::<FrameRow>().map(|row| row.expect("a row"));
    let frames: Vec<FrameRow> = frames.filter(|row| row.pid.0 == recorded.attacker).collect();
    for name in ["deep", "mangled", "long", "inflated"] {
        let its = |row: &&FrameRow| row.object.ends_with(&format!("/{name}"));
        let row = frames.iter().find(its).unwrap_or_else(|| panic!("no sample in {name}"));
        assert!(row.function.len() <= 4096, "{name}: {}", row.function.len());
        assert_eq!(row.function.is_empty(), name == "deep", "{row:?}");
    }
    let secret = frames.iter().find(|row| row.function.contains("secret"));
    assert!(secret.is_none(), "{secret:?}");
    assert!(
        recorded.peak_kib < MODEST,
        "the agent, or a child, has used {} KiB",
        recorded.peak_kib
    );
}
