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

/// Whether the packaged object is of the sources that lie beside it.
pub(crate) fn is_of_these_sources() -> bool {
    let root = workspace::root();
    sources(&root).is_ok_and(|sources| says(&root, "sources", &sources))
}

/// Whether the agent gets the packaged object unless another one is made: nothing here was built or can be, and it is of
/// these sources.
pub(crate) fn will_do() -> bool {
    let root = workspace::root();
    let built = build_ebpf::object(&root).exists() || Toolchain::find().is_ok();
    !built && is_of_these_sources()
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
