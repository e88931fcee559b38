//! Builds the BPF object, `target/bpf/ft-ebpf.o`, which the agent embeds.
//!
//! The pinned toolchain has no `core` for BPF. Debian packages one prebuilt, for its own compiler; failing
//! that, a nightly of rustup, one of a date, too, builds it from `rust-src`. Either way the object is made by `bpf-linker`.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::SystemTime,
};

use anyhow::{Context, Result, bail};

use crate::workspace::{self, cargo, find_in_path, in_path};

const TARGET: &str = "bpfel-unknown-none";

/// `--btf` keeps the types of maps and functions; v3 has 32-bit jumps and needs Linux 5.1.
const RUSTFLAGS: [&str; 4] =
    ["-Clinker=bpf-linker", "-Cdebuginfo=2", "-Clink-arg=--btf", "-Ctarget-cpu=v3"];

/// Compiler of Debian's package `rustc-web`, or `rustc`.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

/// What compiles for BPF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Toolchain {
    /// Debian's compiler with its prebuilt `core`.
    Debian,
    /// A nightly compiler of rustup by its whole name, which builds `core`.
    Nightly(String),
}

impl Toolchain {
    /// Finds the one to use; looks at files only.
    ///
    /// # Errors
    ///
    /// When neither is complete; the error names what is missing.
    pub(crate) fn find() -> Result<Self> {
        if find_in_path("bpf-linker").is_none() {
            bail!("bpf-linker is missing; run `cargo xtask setup`");
        }
        let compiler = Self::without_linker();
        compiler.with_context(|| {
            format!("no Rust compiler with `core` for {TARGET}; run `cargo xtask setup`")
        })
    }

    /// The same whether or not there is a linker.
    pub(crate) fn without_linker() -> Option<Self> {
        if debians(Path::new("/")) {
            return Some(Self::Debian);
        }
        let nightly = rustup_home().and_then(|home| nightly(&home));
        nightly.filter(|_| in_path("rustup")).map(Self::Nightly)
    }

    /// The command that builds the programs.
    fn command(&self) -> Command {
        match self {
            Self::Debian => {
                let mut command = cargo();
                // The package's `core` was built by this very compiler, which hides the unstable
                // features that aya-ebpf needs unless told otherwise.
                command.arg("build").env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
                command
            }
            Self::Nightly(name) => {
                let mut command = Command::new("rustup");
                command.args(["run", name, "cargo", "build", "-Zbuild-std=core"]);
                command.env_remove("RUSTC");
                command
            }
        }
    }
}

impl Toolchain {
    /// The command that prints the compiler's version.
    pub(crate) fn compiler(&self) -> Command {
        let mut command = match self {
            Self::Debian => Command::new(DEBIAN_RUSTC),
            Self::Nightly(name) => {
                let mut command = Command::new("rustup");
                command.args(["run", name, "rustc"]);
                command
            }
        };
        command.arg("--version").env_remove("RUSTUP_TOOLCHAIN");
        command
    }
}

/// Whether Debian's compiler and `core` for BPF are below `root`. Debian's package of rustup has a link of that name instead.
fn debians(root: &Path) -> bool {
    let compiler = root.join(DEBIAN_RUSTC.trim_start_matches('/'));
    let is_own = fs::symlink_metadata(compiler).is_ok_and(|file| file.is_file());
    is_own && root.join("usr/lib/rustlib").join(TARGET).exists()
}

/// Where rustup keeps its toolchains.
fn rustup_home() -> Option<PathBuf> {
    let home = |name| std::env::var_os(name).map(PathBuf::from);
    home("RUSTUP_HOME").or_else(|| Some(home("HOME")?.join(".rustup")))
}

/// The nightly of a home of rustup that has the sources of `core`: that without a date, else the latest one.
fn nightly(rustup: &Path) -> Option<String> {
    let folders = fs::read_dir(rustup.join("toolchains")).ok()?.flatten();
    let with_sources =
        folders.filter(|folder| folder.path().join("lib/rustlib/src/rust/library/core").exists());
    with_sources
        .filter_map(|folder| folder.file_name().into_string().ok())
        .filter(|name| name.starts_with("nightly-") && name.contains("-x86_64-"))
        // `nightly-x86_64-…` is behind all of `nightly-2026-11-24-x86_64-…`.
        .max()
}

/// Where the object lies.
pub(crate) fn object(root: &Path) -> PathBuf {
    root.join("target/bpf/ft-ebpf.o")
}

/// Builds the object when a source is newer than the last build; returns where it lies.
///
/// # Errors
///
/// When there is no toolchain or the build fails. An object of an earlier build then stays.
pub(crate) fn run() -> Result<PathBuf> {
    let root = workspace::root();
    let object = object(&root);
    // Its time is that of the last build: the object's own changes only when its content does, so
    // that the agent is not rebuilt for nothing.
    let stamp = object.with_extension("stamp");
    if object.exists() && is_newer_than_sources(&stamp, &root)? {
        return Ok(object);
    }
    let toolchain = Toolchain::find()?;
    let started = SystemTime::now();
    let target_dir = root.join("target/bpf-build");
    workspace::run(
        toolchain
            .command()
            .args(["--quiet", "--release", "--target", TARGET])
            .current_dir(root.join("ft-ebpf/programs"))
            .env("CARGO_TARGET_DIR", &target_dir)
            .env("CARGO_ENCODED_RUSTFLAGS", flags(&root).join("\x1f"))
            .env_remove("RUSTFLAGS")
            .env_remove("RUSTC_WRAPPER")
            .env_remove("RUSTC_WORKSPACE_WRAPPER"),
    )
    .context("the BPF programs did not build")?;
    let built = target_dir.join(TARGET).join("release/ft-ebpf-programs");
    let bytes = fs::read(&built).with_context(|| format!("cannot read {}", built.display()))?;
    if fs::read(&object).ok().as_ref() != Some(&bytes) {
        replace(&object, &bytes)?;
    }
    let file = fs::File::create(&stamp).and_then(|file| file.set_modified(started));
    file.with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(object)
}

/// The flags; paths stand in the object as they do in no machine's own directories, so that the same sources and the
/// same compiler make the same object.
fn flags(root: &Path) -> Vec<String> {
    let remapped = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let mut flags: Vec<String> = RUSTFLAGS.map(str::to_owned).to_vec();
    flags.push(remapped(root, "/feather-trace"));
    flags.extend(
        workspace::cargo_home().map(|home| remapped(&home.join("registry/src"), "/crates")),
    );
    flags
}

/// Writes a file, and the folder that it is in, so that nobody ever sees half of it.
fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    fs::create_dir_all(path.parent().expect("a file is in a folder"))
        .and_then(|()| fs::write(&temporary, bytes))
        .and_then(|()| fs::rename(&temporary, path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Whether `built` is newer than everything the programs are made from.
fn is_newer_than_sources(built: &Path, root: &Path) -> Result<bool> {
    let Ok(built) = fs::metadata(built).and_then(|file| file.modified()) else { return Ok(false) };
    // The common library takes its edition and its lints from the workspace.
    let sources = ["ft-ebpf", "Cargo.toml", "xtask/src/build_ebpf.rs"];
    for source in sources {
        let path = root.join(source);
        let newest = newest(&path).with_context(|| format!("cannot look at {}", path.display()))?;
        if newest >= built {
            return Ok(false);
        }
    }
    Ok(true)
}

/// When the newest file at or below `path` was changed.
fn newest(path: &Path) -> io::Result<SystemTime> {
    let metadata = fs::metadata(path)?;
    let mut time = metadata.modified()?;
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            time = time.max(newest(&entry?.path())?);
        }
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_of_a_fresh_clone_has_its_folder_made() {
        let root = std::env::temp_dir().join(format!("xtask-replace-{}", std::process::id()));
        let object = object(&root);
        for bytes in [b"first", b"again"] {
            replace(&object, bytes).unwrap();
            assert_eq!(fs::read(&object).unwrap(), bytes);
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_link_to_rustup_is_no_compiler_of_debian() {
        let root = std::env::temp_dir().join(format!("xtask-debians-{}", std::process::id()));
        let bin = root.join("usr/bin");
        fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink("rustup", bin.join("rustc")).unwrap();
        fs::write(bin.join("rustup"), "").unwrap();
        fs::create_dir_all(root.join("usr/lib/rustlib").join(TARGET)).unwrap();
        assert!(!debians(&root));
        fs::remove_file(bin.join("rustc")).unwrap();
        assert!(!debians(&root));
        fs::write(bin.join("rustc"), "").unwrap();
        assert!(debians(&root));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_nightly_may_have_a_date_and_needs_the_sources_of_core() {
        let home = std::env::temp_dir().join(format!("xtask-rustup-{}", std::process::id()));
        assert_eq!(nightly(&home), None, "no rustup");
        let add = |name: &str, below: &str| {
            fs::create_dir_all(home.join("toolchains").join(name).join(below)).unwrap();
        };
        let sources = "lib/rustlib/src/rust/library/core";
        add("stable-x86_64-unknown-linux-gnu", sources);
        add("nightly-x86_64-unknown-linux-gnu", "lib/rustlib");
        add("nightly-2026-11-24-aarch64-unknown-linux-gnu", sources);
        assert_eq!(
            nightly(&home),
            None,
            "one is no nightly, one has no sources, one runs elsewhere"
        );
        let dated = |date| format!("nightly-{date}-x86_64-unknown-linux-gnu");
        for date in ["2025-12-31", "2026-02-01"] {
            add(&dated(date), sources);
        }
        assert_eq!(nightly(&home), Some(dated("2026-02-01")));
        add("nightly-x86_64-unknown-linux-gnu", sources);
        assert_eq!(nightly(&home).as_deref(), Some("nightly-x86_64-unknown-linux-gnu"));
        fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn a_source_that_changes_makes_the_object_stale() {
        let root = std::env::temp_dir().join(format!("xtask-build-{}", std::process::id()));
        let at = |seconds| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let write = |name: &str, seconds| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::File::create(path).unwrap().set_modified(at(seconds)).unwrap();
        };
        let main = "ft-ebpf/programs/src/main.rs";
        for source in [main, "Cargo.toml", "xtask/src/build_ebpf.rs"] {
            write(source, 100);
        }
        for dir in ["ft-ebpf", "ft-ebpf/programs", "ft-ebpf/programs/src"] {
            fs::File::open(root.join(dir)).unwrap().set_modified(at(100)).unwrap();
        }
        let built = root.join("built");
        assert!(!is_newer_than_sources(&built, &root).unwrap(), "never built");
        write("built", 101);
        assert!(is_newer_than_sources(&built, &root).unwrap());
        fs::File::options()
            .write(true)
            .open(root.join(main))
            .unwrap()
            .set_modified(at(102))
            .unwrap();
        assert!(!is_newer_than_sources(&built, &root).unwrap());
        fs::remove_dir_all(root).unwrap();
    }
}
