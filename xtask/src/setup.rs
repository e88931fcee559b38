//! `cargo xtask setup`: installs what building and testing need, and says what before it does.
//!
//! What is there is known from its files, without asking a package manager, so that a machine that has
//! everything loses no time. What the agent itself needs must be had. What only its kernel side or only
//! some tests need may be missing: that is a warning, and the rest goes on.

use std::{
    os::unix::fs::MetadataExt,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{
    build_ebpf::Toolchain,
    workspace::{cargo, find_in_path, in_path, line, run as run_command},
};

/// A package of Debian, and what shows that it, or another that does the same, is there.
struct Package {
    name: &'static str,
    /// Below the root directory; `*` stands for the rest of one name.
    file: &'static str,
    what_for: &'static str,
}

/// Without these the agent does not build.
const REQUIRED: &[Package] = &[
    Package { name: "gcc", file: "usr/bin/cc", what_for: "links programs" },
    Package {
        name: "libc6-dev",
        file: "usr/include/stdio.h",
        what_for: "headers of the C library",
    },
];

/// Without these the kernel side does not build (packages of Debian 12's own archives).
const KERNEL_SIDE: &[Package] = &[
    Package { name: "rustc-web", file: "usr/bin/rustc", what_for: "a compiler with a BPF target" },
    Package {
        name: "libstd-rust-web-dev-bpf",
        file: "usr/lib/rustlib/bpfel-unknown-none",
        what_for: "`core` for BPF",
    },
    Package {
        name: "llvm-22-dev",
        file: "usr/lib/llvm-22/bin/llvm-config",
        what_for: "bpf-linker is built with it",
    },
];

/// Without this the tests that open the trace in Python do not run.
const READERS: &[Package] = &[Package {
    name: "python3-venv",
    file: "usr/lib/python3*/ensurepip",
    what_for: "the tests read traces with Python",
}];

/// Without these the tests of the preload library leave programs out, and its benchmark the comparison.
/// Debian starts the two servers as services; the tests start their own and need no service.
const PRELOADED: &[Package] = &[
    Package { name: "make", file: "usr/bin/make", what_for: "traced by the tests" },
    Package { name: "memcached", file: "usr/bin/memcached", what_for: "traced by the tests" },
    Package { name: "pigz", file: "usr/bin/pigz", what_for: "traced by the tests" },
    Package { name: "redis-server", file: "usr/bin/redis-server", what_for: "traced by the tests" },
    Package { name: "sqlite3", file: "usr/bin/sqlite3", what_for: "traced by the tests" },
    Package { name: "xz-utils", file: "usr/bin/xz", what_for: "traced by the tests" },
    Package { name: "zstd", file: "usr/bin/zstd", what_for: "traced by the tests" },
    Package {
        name: "liblttng-ust-dev",
        file: "usr/lib/x86_64-linux-gnu/liblttng-ust-pthread-wrapper.so",
        what_for: "benchmarks compare with it",
    },
    Package {
        name: "lttng-tools",
        file: "usr/bin/lttng-sessiond",
        what_for: "benchmarks compare with it",
    },
];

/// Without these the tests of the C header run with fewer compilers.
const C_HEADER: &[Package] = &[
    Package { name: "g++", file: "usr/bin/c++", what_for: "the tests build C++ programs" },
    Package {
        name: "clang",
        file: "usr/bin/clang",
        what_for: "the tests build C programs with it too",
    },
    Package {
        name: "pkg-config",
        file: "usr/bin/pkg-config",
        what_for: "the tests link with its help",
    },
];

/// The version that is known to link what the compiler above makes.
const BPF_LINKER: &str = "0.13.0";

/// Installs what is missing.
///
/// # Errors
///
/// When something without which the agent does not build could not be installed. Everything else that
/// could not be is printed as a warning.
pub(crate) fn run() -> Result<()> {
    let root = Path::new("/");
    install(root, REQUIRED).context("the agent cannot be built")?;
    if Toolchain::find().is_err()
        && let Err(error) = install_bpf_toolchain(root)
    {
        eprintln!(
            "warning: the kernel side cannot be built: {error:#}. The agent works without it \
             (`record -k none`). With rustup, another way is: rustup toolchain install nightly \
             --component rust-src; and bpf-linker from its releases page, on the PATH"
        );
    }
    if let Err(error) = install(root, READERS) {
        eprintln!("warning: tests that open the trace in Python will be skipped: {error:#}");
    }
    if let Err(error) = install(root, PRELOADED) {
        eprintln!("warning: tests and benchmarks with other programs leave some out: {error:#}");
    }
    if let Err(error) = install(root, C_HEADER) {
        eprintln!("warning: some tests of the C header will be skipped: {error:#}");
    }
    Ok(())
}

fn install_bpf_toolchain(root: &Path) -> Result<()> {
    install(root, KERNEL_SIDE)?;
    if find_in_path("bpf-linker").is_none() {
        println!("setup: installing bpf-linker {BPF_LINKER} from crates.io (about a minute)");
        run_command(
            cargo()
                .args(["install", "bpf-linker", "--version", BPF_LINKER, "--locked"])
                .args(["--no-default-features", "--features", "llvm-22"])
                .env("LLVM_PREFIX", "/usr/lib/llvm-22")
                .env_remove("CARGO_TARGET_DIR"),
        )?;
    }
    Toolchain::find().map(drop)
}

/// Installs those of `packages` that are missing below `root`.
fn install(root: &Path, packages: &'static [Package]) -> Result<()> {
    let missing = missing(root, packages);
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    println!("setup: installing Debian packages:");
    for Package { name, what_for, .. } in &missing {
        println!("  {name}: {what_for}");
    }
    if !in_path("apt-get") {
        bail!("this is not a Debian system; install what it has for {} by hand", names.join(", "));
    }
    let Some(sudo) = privilege() else {
        bail!(
            "installing needs root and there is no sudo; run as root: apt-get update && apt-get \
             install -y {}",
            names.join(" ")
        );
    };
    let apt = |args: &[&str]| {
        let words = [sudo, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"], args].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdout(Stdio::null());
        command
    };
    // Without a network this fails, and what apt has in its cache may still do.
    if let Err(error) = run_command(&mut apt(&["update", "-q"])) {
        eprintln!("warning: {error:#}");
    }
    let mut command =
        apt(&[&["install", "-y", "-q", "--no-install-recommends"], &names[..]].concat());
    run_command(&mut command)
        .with_context(|| format!("check the network, then run: {}", line(&command)))
}

/// What to put before a command that needs root; `None` when there is no way.
fn privilege() -> Option<&'static [&'static str]> {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    match (is_root, in_path("sudo")) {
        (true, _) => Some(&[]),
        (false, true) => Some(&["sudo"]),
        (false, false) => None,
    }
}

fn missing<'p>(root: &Path, packages: &'p [Package]) -> Vec<&'p Package> {
    packages.iter().filter(|package| !exists(root, package.file)).collect()
}

/// Whether a file is there; one `*` at most, at the end of a component.
fn exists(root: &Path, file: &str) -> bool {
    let Some((before, after)) = file.split_once('*') else { return root.join(file).exists() };
    let (dir, prefix) = before.rsplit_once('/').unwrap_or(("", before));
    let Ok(entries) = std::fs::read_dir(root.join(dir)) else { return false };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .any(|entry| entry.path().join(after.trim_start_matches('/')).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_missing_until_its_file_is_there() {
        let root = std::env::temp_dir().join(format!("xtask-setup-{}", std::process::id()));
        std::fs::create_dir_all(root.join("usr/lib/python3")).unwrap();
        assert_eq!(missing(&root, READERS).len(), 1);
        std::fs::create_dir_all(root.join("usr/lib/python3.11/ensurepip")).unwrap();
        assert_eq!(missing(&root, READERS).len(), 0);

        assert_eq!(missing(&root, REQUIRED).len(), REQUIRED.len());
        std::fs::create_dir_all(root.join("usr/include/stdio.h")).unwrap();
        let left: Vec<_> = missing(&root, REQUIRED).iter().map(|package| package.name).collect();
        assert_eq!(left, ["gcc"]);
        std::fs::remove_dir_all(root).unwrap();
    }
}
