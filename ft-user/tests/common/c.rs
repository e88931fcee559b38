//! Building C programs against an installed `libfeather_trace`, as their authors do.

#![allow(dead_code, reason = "each test uses its part")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Sources of `ft-user`.
pub(crate) const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ft-user");

/// How a program is linked with the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Static,
    Shared,
}

/// Where `ft-user/capi/install` has put the library for these tests.
pub(crate) fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let prefix = scratch.join("c-prefix");
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
            println!("SKIPPED: {name} is not installed; `cargo xtask setup` gets it");
        }
        found
    };
    names.iter().filter(works).copied().collect()
}

/// Compiles `sources` (below `ft-user/`) to the program `name`.
pub(crate) fn build(
    compiler: &str,
    flags: &[&str],
    sources: &[&str],
    link: Link,
    name: &str,
) -> PathBuf {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
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
