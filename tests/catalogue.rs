//! `--to` and `ft-agent catalogue`: traces in a catalogue. Everything here runs without rights: `-k none`.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use ft_trace::foreign_file::regular;
use ft_trace::{build_id, reach};
use object::Object as _;

use ft_tests::files;
#[path = "catalogue/killed.rs"]
mod killed;
use ft_tests::said;

use files::{Files, files};

struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Stage {
        Stage { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    fn agent(&self, args: &[&str]) -> Output {
        self.command(ft_tests::agent()).args(args).output().unwrap()
    }

    /// What it prints; it must succeed.
    fn says(&self, args: &[&str]) -> String {
        let output = self.agent(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Why it fails.
    fn fails(&self, args: &[&str]) -> String {
        let output = self.agent(args);
        assert!(!output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// What lies where a trace of the catalogue `fleet` does, by its row; that lies there, too, and is the one that is published.
    fn stored(&self, row: &serde_json::Value) -> Files {
        let path = row["path"].as_str().unwrap();
        let name = format!("{}.parquet", path.rsplit("trace=").next().unwrap());
        let mut stored = files(&self.path("fleet").join(path));
        if let Some(own) = stored.remove(&name) {
            assert_eq!(own, std::fs::read(self.path("fleet/traces").join(name)).unwrap());
        }
        stored
    }

    /// The traces of the catalogue `fleet`.
    fn traces(&self, more: &[&str]) -> Vec<serde_json::Value> {
        let args = [&["catalogue", "fleet", "--json"], more].concat();
        let answer: serde_json::Value = serde_json::from_str(&self.says(&args)).unwrap();
        assert_eq!(answer["wrong"].as_array().unwrap().len(), 0, "{answer}");
        answer["traces"].as_array().unwrap().clone()
    }
}

#[test]
fn a_recording_is_brought_listed_and_removed() {
    let stage = Stage::new();
    let record = ["record", "-k", "none", "-o", "first", "--to", "fleet", "--label", "build=1.4"];
    stage.says(&[&record[..], &["--label", "ring=canary", "--", "true"]].concat());
    stage.says(&["record", "-k", "none", "-o", "second", "--", "true"]);
    stage.says(&["convert", "second", "--to", "fleet"]);

    let traces = stage.traces(&[]);
    let [first, second] = &traces[..] else { panic!("{traces:?}") };
    assert_eq!(first["labels"], serde_json::json!({"build": "1.4", "ring": "canary"}));
    assert_eq!((&first["program"], &second["command"]), (&"true".into(), &"true".into()));
    assert_eq!((&first["complete"], &second["labels"]), (&true.into(), &serde_json::json!({})));
    let stored = stage.path("fleet").join(first["path"].as_str().unwrap());
    assert_eq!(stage.stored(first), files(&stage.path("first")));
    stage.says(&["report", stored.to_str().unwrap(), "time"]);

    let columns: serde_json::Value =
        serde_json::from_str(&stage.says(&["tables", "traces", "--json"])).unwrap();
    assert_eq!(columns["columns"][0]["name"], "start_ns");
    assert!(!stage.says(&["tables"]).contains("traces  "), "no trace has it");

    // A trace that is there already.
    let again = stage.agent(&["convert", "first", "--to", "fleet"]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("was there already: fleet/host="));
    assert_eq!(stage.traces(&[]), traces);
    let host = traces[0]["host"].as_str().unwrap();
    assert_eq!(stage.traces(&["--host", host]).len(), 2);
    assert_eq!(stage.traces(&["--host", "no.such.host"]).len(), 0);

    // Nothing goes before it was said what would.
    assert_eq!(stage.traces(&["--older-than", "1h"]).len(), 0);
    let would = stage.says(&["catalogue", "fleet", "--older-than", "1us"]);
    assert!(would.contains("2 traces, ") && would.ends_with("would be removed by --delete\n"));
    assert_eq!(stage.traces(&[]).len(), 2);
    let removed = stage.says(&["catalogue", "fleet", "--older-than", "1us", "--delete"]);
    assert!(removed.ends_with("removed\n"), "{removed}");
    assert_eq!(stage.traces(&[]).len(), 0);
    assert_eq!(files(&stage.path("fleet")).len(), 0);
}

/// By the default options and without call chains; the build id is that of the file, as other code reads it.
#[test]
fn a_trace_has_the_build_id_of_its_program() {
    let stage = Stage::new();
    let own = std::env::current_exe().unwrap();
    let bytes = std::fs::read(&own).unwrap();
    let id =
        object::File::parse(&*bytes).unwrap().build_id().unwrap().expect("the linker gives one");
    let expected: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    symlink(&own, stage.path("a-link")).unwrap();
    std::fs::write(stage.path("a-script"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(stage.path("a-script"), Permissions::from_mode(0o755)).unwrap();
    let sleeps = Sleeps(stage.command("sleep").arg("1000").spawn().unwrap());
    let (running, of_sleep) = (sleeps.0.id().to_string(), of_command("sleep"));
    assert!(!of_sleep.is_empty(), "distributions give one");
    for (name, what, expected) in [
        ("link", &["--", "./a-link", "--list"][..], &expected),
        ("script", &["--", "./a-script"], &String::new()),
        ("on-path", &["--", "sleep", "0"], &of_sleep),
        ("attached", &["-d", "10ms", "-p", &running], &of_sleep),
    ] {
        let trace = format!("trace-{name}");
        stage.says(&[&["record", "-k", "none", "-o", &trace, "--to", name], what].concat());
        let rows = stage.says(&["catalogue", name, "--json"]);
        let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
        assert_eq!(rows["traces"][0]["build_id"], **expected, "{name}");
    }
}

/// A process that ends with the test.
struct Sleeps(std::process::Child);

impl Drop for Sleeps {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The build id of a program on the PATH.
fn of_command(name: &str) -> String {
    let file = regular(&reach::find(name).unwrap()).unwrap();
    build_id::of_opened(&file).unwrap_or_default()
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_recorded() {
    let stage = Stage::new();
    let record = |more: &[&str]| {
        let why = stage.fails(&[&["record", "-k", "none"], more, &["--", "true"]].concat());
        assert!(!stage.path("trace").exists(), "{why}");
        why
    };
    assert!(record(&["--to", "gopher://bucket/fleet"]).contains("name a directory, as a path"));
    assert!(record(&["--to", "/proc/fleet"]).contains("check the free space and the permissions"));
    assert!(record(&["--label", "build=1"]).contains("--to <URL>"));
    assert!(record(&["--to", "fleet", "--label", "build"]).contains("for example build=1.4.2"));
    assert!(record(&["--to", "fleet", "--no-convert"]).contains("cannot be used with"));
    assert!(stage.fails(&["catalogue", "nowhere"]).contains("nowhere holds no traces; "));
    assert!(stage.fails(&["catalogue", "fleet", "--delete"]).contains("--older-than <TIME>"));
}

/// As where somebody has removed its directory by hand: it is named, and in no figure; the others go on.
#[test]
fn a_trace_whose_files_are_missing_is_told_and_left_out() {
    let stage = Stage::new();
    for name in ["lost", "left"] {
        stage.says(&["record", "-k", "none", "-o", name, "--to", "fleet", "--", "true"]);
    }
    stage.says(&["analyze", "fleet"]);
    let traces = stage.traces(&[]);
    let [lost, left] = [0, 1].map(|nth| traces[nth]["path"].as_str().unwrap());
    std::fs::remove_dir_all(stage.path("fleet").join(lost)).unwrap();
    let of = stage.says(&["fleet", "fleet", "--json"]);
    let of: serde_json::Value = serde_json::from_str(&of).unwrap();
    assert!(of.to_string().contains(lost) && !of.to_string().contains(left), "{of}");
    let output = stage.agent(&["analyze", "fleet"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains(&format!("{lost}: failed: ")), "{said}");
    assert!(said.contains(&format!("{left}: was analysed already")), "{said}");
    stage.says(&["convert", "lost", "--to", "fleet"]);
    stage.says(&["analyze", "fleet"]);
    assert!(!stage.says(&["fleet", "fleet", "--json"]).contains(lost));
}

/// As on a FAT file system, where `link` is not permitted to anybody, on others that have none, and from one file system to another.
#[test]
fn a_file_system_without_hard_links_is_named_as_such() {
    let stage = Stage::new();
    stage.says(&["record", "-k", "none", "-o", "trace", "--", "true"]);
    for error in ["EPERM", "EXDEV", "EOPNOTSUPP", "ENOSYS"] {
        let mut strace = stage.command("strace");
        strace.args(["-f", "-o", "/dev/null", "-e", &format!("inject=linkat:error={error}")]);
        strace.args([ft_tests::agent(), "convert", "trace", "--to", "fleet"]);
        let output = strace.output().ok().filter(|output| !output.stderr.starts_with(b"strace"));
        let Some(output) = output else {
            return said::skipped("strace is not installed, or cannot trace here (Debian: strace)");
        };
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{error}: {why}");
        assert!(why.contains("fleet is not on one file system with hard links"), "{error}: {why}");
        assert!(why.contains("ext4, XFS, Btrfs, NFS"), "{error}: {why}");
        assert_eq!(stage.traces(&[]).len(), 0);
    }
    said::ran();
    stage.says(&["convert", "trace", "--to", "fleet"]);
    assert_eq!(stage.traces(&[]).len(), 1);
}
