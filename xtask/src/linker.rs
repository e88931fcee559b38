//! bpf-linker: which LLVM it is built with, and how it is installed.
//!
//! It reads what the compiler writes, which is bitcode of the compiler's LLVM; an older LLVM cannot, a newer one can.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use crate::{
    build_ebpf::Toolchain,
    packages::LLVMS,
    workspace::{cargo, find_in_path, output, run},
};

/// The version that is known to link what the compilers make, with any of [`LLVMS`].
const VERSION: &str = "0.13.0";

/// An LLVM with what programs are built with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Llvm {
    pub(crate) version: u32,
    /// Where it lies; `None`: its `llvm-config` is on the `PATH`.
    prefix: Option<PathBuf>,
}

impl Llvm {
    /// All that are here, the oldest first.
    pub(crate) fn all() -> Vec<Llvm> {
        let config = Command::new("llvm-config").arg("--version").output().ok();
        let said = config.filter(|said| said.status.success());
        let said = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
        Llvm::below(Path::new("/"), said.as_deref())
    }

    /// Those of Debian's packages below `root`, and the one whose version `llvm-config` on the `PATH` says, as in Fedora
    /// and Arch.
    fn below(root: &Path, said: Option<&str>) -> Vec<Llvm> {
        let packaged = LLVMS.iter().filter(|(_, group)| group.missing(root).is_empty());
        let mut all: Vec<Llvm> = packaged
            .map(|&(version, _)| Llvm { version, prefix: Some(prefix(root, version)) })
            .collect();
        let other = said.and_then(|said| said.split('.').next()?.trim().parse().ok());
        let is_known = |version: &u32| LLVMS.iter().any(|(known, _)| known == version);
        all.extend(other.filter(is_known).map(|version| Llvm { version, prefix: None }));
        // Debian's own before the other one of the same version.
        all.sort_by_key(|llvm| llvm.version);
        all
    }
}

/// Where Debian's packages have an LLVM.
fn prefix(root: &Path, version: u32) -> PathBuf {
    root.join(format!("usr/lib/llvm-{version}"))
}

/// What the kernel side cannot be built without, and is not here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    Nothing,
    /// There is none, or none whose output the linker reads.
    Compiler,
    /// The one of this version, or a newer one, to build the linker with.
    Llvm(u32),
    /// The linker, which can be built with this.
    Linker(Llvm),
}

impl Lack {
    /// What is lacking on this machine.
    pub(crate) fn find() -> Lack {
        let compiler = Toolchain::without_linker();
        if compiler.is_some() && find_in_path("bpf-linker").is_some() {
            return Lack::Nothing;
        }
        let writes = compiler.and_then(|compiler| bitcode(&compiler).ok().flatten());
        Lack::of(writes, &Llvm::all())
    }

    /// The same without a linker, of the LLVM of the compiler, if there is one, and those that a linker can be built with.
    fn of(compiler: Option<u32>, here: &[Llvm]) -> Lack {
        let Some(needed) = compiler.filter(|needed| LLVMS.iter().any(|(known, _)| known >= needed))
        else {
            return Lack::Compiler;
        };
        match here.iter().find(|llvm| llvm.version >= needed) {
            Some(llvm) => Lack::Linker(llvm.clone()),
            None => Lack::Llvm(needed),
        }
    }
}

/// The version of the LLVM that a compiler writes bitcode of.
fn bitcode(compiler: &Toolchain) -> Result<Option<u32>> {
    Ok(of_compiler(&output(compiler.compiler().arg("--verbose"))?))
}

/// The same of what `rustc --version --verbose` says.
fn of_compiler(said: &str) -> Option<u32> {
    let version = said.lines().find_map(|line| line.strip_prefix("LLVM version: "))?;
    version.split('.').next()?.parse().ok()
}

/// Builds and installs it from crates.io.
///
/// # Errors
///
/// When it cannot be downloaded or built.
pub(crate) fn install(llvm: &Llvm) -> Result<()> {
    println!("setup: installing {} (about a minute)", what(llvm));
    run(&mut installation(llvm))
}

/// What is installed, in words.
pub(crate) fn what(llvm: &Llvm) -> String {
    format!("bpf-linker {VERSION} from crates.io, built with LLVM {}", llvm.version)
}

fn installation(llvm: &Llvm) -> Command {
    let mut install = cargo();
    install.args(["install", "--quiet", "bpf-linker", "--version", VERSION, "--locked"]);
    install.args(["--no-default-features", "--features", &format!("llvm-{}", llvm.version)]);
    install.env_remove("CARGO_TARGET_DIR");
    match &llvm.prefix {
        Some(prefix) => install.env("LLVM_PREFIX", prefix),
        None => install.env_remove("LLVM_PREFIX"),
    };
    install
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, fs};

    use super::*;

    fn debians(version: u32) -> Llvm {
        Llvm { version, prefix: Some(prefix(Path::new("/"), version)) }
    }

    fn on_path(version: u32) -> Llvm {
        Llvm { version, prefix: None }
    }

    #[test]
    fn a_nightly_of_rustup_gets_a_linker_that_reads_what_it_writes() {
        let here = [debians(21), debians(22), on_path(23)];
        for (needed, llvm) in [(21, &here[0]), (22, &here[1]), (23, &here[2])] {
            assert_eq!(Lack::of(Some(needed), &here), Lack::Linker(llvm.clone()));
        }
        // One of an old date, whose LLVM no linker is built with any more, writes what newer ones read.
        assert_eq!(Lack::of(Some(19), &here), Lack::Linker(debians(21)));
        assert_eq!(Lack::of(Some(22), &[debians(21)]), Lack::Llvm(22));
        assert_eq!(Lack::of(Some(22), &[]), Lack::Llvm(22));
    }

    #[test]
    fn without_a_compiler_or_with_one_that_is_too_new_another_one_is_wanted() {
        assert_eq!(Lack::of(None, &[debians(22)]), Lack::Compiler);
        assert_eq!(Lack::of(Some(24), &[debians(22), on_path(23)]), Lack::Compiler);
    }

    #[test]
    fn a_compiler_says_which_llvm_it_has() {
        let nightly = "rustc 1.97.0-nightly (f4c1be96a 2026-05-02)\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\n\
                       release: 1.97.0-nightly\nLLVM version: 22.1.4\n";
        assert_eq!(of_compiler(nightly), Some(22));
        assert_eq!(of_compiler("rustc 1.97.0-nightly\n"), None);
    }

    #[test]
    fn an_llvm_is_debians_or_the_one_on_the_path() {
        let root = std::env::temp_dir().join(format!("xtask-llvm-{}", std::process::id()));
        let of = |said| -> Vec<(u32, bool)> {
            let all = Llvm::below(&root, said).into_iter();
            all.map(|llvm| (llvm.version, llvm.prefix.is_some())).collect()
        };
        assert_eq!(of(None), []);
        assert_eq!(of(Some("22.1.4\n")), [(22, false)], "Fedora, Arch");
        assert_eq!(of(Some("14.0.6\n")), [], "Debian 12's own");
        fs::create_dir_all(root.join("usr/lib/llvm-22/bin")).unwrap();
        assert_eq!(of(None), [], "the library alone");
        fs::write(root.join("usr/lib/llvm-22/bin/llvm-config"), "").unwrap();
        assert_eq!(of(Some("21.1.8\n")), [(21, false), (22, true)]);
        assert_eq!(of(Some("22.1.4\n")), [(22, true), (22, false)]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_linker_is_built_with_the_llvm_that_was_chosen_and_no_other() {
        let prefix_of = |llvm: &Llvm| {
            let install = installation(llvm);
            let words: Vec<_> = install.get_args().map(|word| word.to_string_lossy()).collect();
            let features = format!("--no-default-features --features llvm-{}", llvm.version);
            assert!(words.join(" ").ends_with(&features), "{words:?}");
            let mut envs = install.get_envs().filter(|(name, _)| *name == "LLVM_PREFIX");
            envs.next().and_then(|(_, value)| value.map(OsStr::to_owned))
        };
        assert_eq!(prefix_of(&debians(23)).as_deref(), Some(OsStr::new("/usr/lib/llvm-23")));
        assert_eq!(prefix_of(&on_path(22)), None);
    }
}
