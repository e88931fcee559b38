//! The BPF object that is checked in, for machines without a compiler for BPF: made by `cargo xtask bpf --packaged`, and
//! held to be what the sources beside it make.

#[path = "../../ft-agent/bpf/digest.rs"]
mod digest;
mod types;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{
    build_ebpf::{self, Toolchain},
    workspace,
};

/// Where it lies, and beside it what it is made of.
fn object(root: &Path) -> PathBuf {
    root.join("ft-agent/bpf/ft-ebpf.o")
}

/// What the packaged object is made of, a line each.
fn told(root: &Path) -> PathBuf {
    object(root).with_extension("txt")
}

/// Builds the object and puts it into the package; returns where it lies.
///
/// # Errors
///
/// When it cannot be built or written.
pub(crate) fn make() -> Result<PathBuf> {
    let root = workspace::root();
    let built = build_ebpf::run()?;
    let object = object(&root);
    strip(&built, &object)?;
    let line = |what: &str, value: String| format!("{what} {value}\n");
    let text = line("sources", sources(&root)?) + &line("made-by", made_by()?);
    fs::write(told(&root), text).with_context(|| format!("cannot write {}", object.display()))?;
    Ok(object)
}

/// Whether the packaged object is what its sources make: byte for byte where the compiler is the one that made it. What was
/// compared.
///
/// # Errors
///
/// When it is of other sources, or the same compiler makes another one.
pub(crate) fn check() -> Result<&'static str> {
    let root = workspace::root();
    const REMEDY: &str = "run `cargo xtask bpf --packaged` and commit what it writes";
    if !says(&root, "sources", &sources(&root)?) {
        bail!("the packaged BPF object is of other sources; {REMEDY}");
    }
    if Toolchain::find().is_err() {
        return Ok("of these sources; not built again, for want of a compiler");
    }
    if !says(&root, "made-by", &made_by()?) {
        return Ok("of these sources; not compared, because another compiler made it");
    }
    let again = workspace::target_dir().join("bpf/packaged.o");
    strip(&build_ebpf::run()?, &again)?;
    if without_hashes(fs::read(&again)?) != without_hashes(fs::read(object(&root))?) {
        bail!("the packaged BPF object is not what its sources make; {REMEDY}");
    }
    Ok("what its sources make")
}

/// An object without what follows from where the sources lie: the disambiguators of crates (`Cs…_` of symbols) and the hashes of
/// constants without a name (`anon.…`).
fn without_hashes(mut object: Vec<u8>) -> Vec<u8> {
    for (name, most) in [("Cs", 11), ("anon.", 32)] {
        for at in name.len()..object.len().saturating_sub(most) {
            if object[..at].ends_with(name.as_bytes()) {
                let hash = object[at..at + most].iter_mut();
                hash.take_while(|byte| byte.is_ascii_alphanumeric()).for_each(|byte| *byte = b'0');
            }
        }
    }
    object
}

/// Whether the agent gets the packaged object unless another one is made: none was built here, and it is of these sources. A
/// compiler that could build it makes no difference.
pub(crate) fn will_do() -> bool {
    does(&workspace::root())
}

fn does(root: &Path) -> bool {
    !build_ebpf::object(root).exists()
        && sources(root).is_ok_and(|sources| says(root, "sources", &sources))
}

/// Whether this is what the packaged object is made of.
fn says(root: &Path, what: &str, value: &str) -> bool {
    let told = fs::read_to_string(told(root)).unwrap_or_default();
    told.lines().any(|line| line == format!("{what} {value}"))
}

fn sources(root: &Path) -> Result<String> {
    digest::digest(&root.join("ft-ebpf")).context("the sources of the BPF programs cannot be read")
}

/// The compiler and the linker.
fn made_by() -> Result<String> {
    let linker = workspace::find_in_path("bpf-linker").context("bpf-linker is missing")?;
    let compiler = workspace::output(&mut Toolchain::find()?.compiler())?;
    let linker = workspace::output(Command::new(linker).arg("--version"))?;
    Ok(format!("{}, {}", compiler.trim(), linker.trim()))
}

/// Without what only a debugger wants; the types (BTF) stay, in one order wherever it was made.
fn strip(from: &Path, to: &Path) -> Result<()> {
    let tool = ["llvm-objcopy", "llvm-objcopy-22"].into_iter().find_map(workspace::find_in_path);
    let debians =
        || Some(PathBuf::from("/usr/lib/llvm-22/bin/llvm-objcopy")).filter(|p| p.exists());
    let tool = tool.or_else(debians).context("llvm-objcopy is missing; install llvm")?;
    let section = |name: &str| workspace::target_dir().join(format!("bpf/ft-ebpf{name}"));
    let sections = [".BTF", ".BTF.ext"];
    let each = |option: &'static str| {
        let of = move |name: &str| format!("--{option}={name}={}", section(name).display());
        sections.map(of)
    };
    workspace::run(
        Command::new(&tool).arg("--strip-debug").args(each("dump-section")).args([from, to]),
    )?;
    let [mut btf, mut ext] = [fs::read(section(sections[0]))?, fs::read(section(sections[1]))?];
    types::sort(&mut btf, &mut ext).context("the types of the BPF object are not as expected")?;
    for (name, bytes) in sections.into_iter().zip([btf, ext]) {
        fs::write(section(name), bytes)?;
    }
    workspace::run(Command::new(&tool).args(each("update-section")).arg(to))?;
    sections.into_iter().try_for_each(|name| Ok(fs::remove_file(section(name))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies a folder.
    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            let to = to.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => copy(&entry.path(), &to),
                false => drop(fs::copy(entry.path(), to).unwrap()),
            }
        }
    }

    #[test]
    fn a_clone_needs_no_compiler_until_its_sources_change_or_one_has_built() {
        let root = std::env::temp_dir().join(format!("xtask-clone-{}", std::process::id()));
        for folder in ["ft-ebpf/common", "ft-ebpf/programs", "ft-agent/bpf"] {
            copy(&workspace::root().join(folder), &root.join(folder));
        }
        assert!(does(&root), "also where a compiler is, as on machines that run this");
        let built = build_ebpf::object(&root);
        fs::create_dir_all(built.parent().unwrap()).unwrap();
        fs::write(&built, "").unwrap();
        assert!(!does(&root), "the agent gets what was built");
        fs::remove_file(&built).unwrap();
        fs::write(root.join("ft-ebpf/programs/src/new.rs"), "").unwrap();
        assert!(!does(&root));
        fs::remove_dir_all(root).unwrap();
    }
}
