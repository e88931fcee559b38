//! Building C programs against an installed `libfeather_trace`, as their authors do.

#![allow(dead_code, reason = "each test uses its part")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

#[path = "../../../tests/common/said.rs"]
mod said;
pub(crate) use said::skipped;

/// Sources of `ft-user`.
pub(crate) const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ft-user");

/// How a program is linked with the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Static,
    Shared,
}

/// A directory of this test program alone: another one that runs beside it builds programs of the same names.
fn own_directory() -> &'static Path {
    static OWN: OnceLock<PathBuf> = OnceLock::new();
    OWN.get_or_init(|| {
        let program = std::env::current_exe().expect("the test program");
        let name = program.file_stem().expect("its name");
        let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c").join(name);
        std::fs::create_dir_all(&own).unwrap_or_else(|error| panic!("{}: {error}", own.display()));
        own
    })
}

/// Where `ft-user/capi/install` has put the library for these tests.
pub(crate) fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let prefix = own_directory().join("prefix");
        let mut install = Command::new(Path::new(SOURCES).join("capi/install"));
        install.arg(&prefix).args(["--offline", "--quiet"]);
        install.env("CARGO", env!("CARGO")).env("CARGO_TARGET_DIR", scratch.join("c-target"));
        run(&mut install);
        prefix
    })
}

/// Those of `names` that are on the PATH. Says which are not, so that their absence can be seen.
pub(crate) fn compilers<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let works = |name: &&&str| {
        let found = Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
        if !found {
            skipped(&format!("{name} is not installed; `cargo xtask setup` gets it"));
        }
        found
    };
    names.iter().filter(works).copied().collect()
}

/// Compiles `sources` (below `ft-user/`) to a program of this file name. One that another test has built in the same way stays as it is:
/// it may run. Each other one has a directory of its own.
pub(crate) fn build(
    compiler: &str,
    flags: &[&str],
    sources: &[&str],
    link: Link,
    name: &str,
) -> PathBuf {
    static BUILT: Mutex<Vec<(String, PathBuf)>> = Mutex::new(Vec::new());
    let way = format!("{compiler} {flags:?} {sources:?} {link:?} {name}");
    // A compiler that fails has built nothing.
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, program)) = built.iter().find(|(before, _)| *before == way) {
        return program.clone();
    }
    let directory = own_directory().join(built.len().to_string());
    std::fs::create_dir_all(&directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let out = directory.join(name);
    let mut command = Command::new(compiler);
    command.args(["-Wall", "-Wextra", "-Werror", "-pedantic"]).args(flags).arg("-o").arg(&out);
    command.arg("-I").arg(prefix().join("include"));
    command.args(sources.iter().map(|source| Path::new(SOURCES).join(source)));
    let library = prefix().join("lib");
    match link {
        Link::Shared => {
            let mut search = std::ffi::OsString::from("-Wl,-rpath,");
            search.push(&library);
            command.arg("-L").arg(&library).arg("-lfeather_trace").arg(search);
        }
        Link::Static => {
            command.args(["-x", "none"]).arg(library.join("libfeather_trace.a"));
            command.args(["-lpthread", "-ldl", "-lm", "-lgcc_s"]);
        }
    }
    run(&mut command);
    built.push((way, out.clone()));
    out
}

/// Runs a command that must succeed; returns what it prints.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
