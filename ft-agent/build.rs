//! Hands the BPF object to the library, which embeds it; an empty file stands for none.
//!
//! `cargo xtask build` makes the object. Where no compiler for BPF is to be had, the packaged one takes its place
//! (`bpf/ft-ebpf.o`), as long as it is of the sources that lie beside it. `FT_EBPF_OBJECT` names another one.

#[path = "bpf/digest.rs"]
mod digest;

use std::{
    env, fs,
    path::{Path, PathBuf},
};

fn main() {
    println!("cargo:rerun-if-env-changed=FT_EBPF_OBJECT");
    println!("cargo:rerun-if-changed=bpf");
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let named = env::var_os("FT_EBPF_OBJECT").map(PathBuf::from);
    let object = named.clone().unwrap_or_else(|| package.join("../target/bpf/ft-ebpf.o"));
    let mut bytes = fs::read(&object).unwrap_or_default();
    // Cargo takes a file that does not exist for one that always changes; its directory does not.
    let watched = if bytes.is_empty() {
        let directory = object.parent().unwrap_or(Path::new("."));
        if package.join("../ft-ebpf").exists() {
            let _ = fs::create_dir_all(directory);
        }
        directory
    } else {
        &object
    };
    if watched.exists() {
        println!("cargo:rerun-if-changed={}", watched.display());
    }
    if bytes.is_empty() && named.is_none() {
        bytes = packaged(&package);
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("ft-ebpf.o"), bytes).expect("cargo's own directory can be written");
}

/// The packaged object; none where it is of other sources than those that lie beside the package.
fn packaged(package: &Path) -> Vec<u8> {
    let sources = package.join("../ft-ebpf");
    if sources.exists() {
        println!("cargo:rerun-if-changed={}", sources.display());
        let told = fs::read_to_string(package.join("bpf/ft-ebpf.txt")).unwrap_or_default();
        let of_these = digest::digest(&sources)
            .is_ok_and(|digest| told.lines().any(|line| line == format!("sources {digest}")));
        if !of_these {
            println!(
                "cargo:warning=the packaged BPF programs are of other sources: the agent is built without its \
                 kernel side; run `cargo xtask build`"
            );
            return Vec::new();
        }
    }
    let bytes = fs::read(package.join("bpf/ft-ebpf.o")).unwrap_or_default();
    if !bytes.is_empty() {
        println!(
            "cargo:warning=no BPF programs were built here: the agent gets those of its package"
        );
    }
    bytes
}
