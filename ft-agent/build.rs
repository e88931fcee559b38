//! Hands the BPF object to the library, which embeds it; an empty file stands for none.
//!
//! `cargo xtask build` makes the object. `FT_EBPF_OBJECT` names another one.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

fn main() {
    println!("cargo:rerun-if-env-changed=FT_EBPF_OBJECT");
    let object = env::var_os("FT_EBPF_OBJECT").map_or_else(default_object, PathBuf::from);
    let bytes = fs::read(&object).unwrap_or_default();
    // Cargo takes a file that does not exist for one that always changes; its directory does not.
    let watched = if bytes.is_empty() {
        let directory = object.parent().unwrap_or(Path::new("."));
        let _ = fs::create_dir_all(directory);
        directory
    } else {
        &object
    };
    println!("cargo:rerun-if-changed={}", watched.display());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("ft-ebpf.o"), bytes).expect("cargo's own directory can be written");
}

fn default_object() -> PathBuf {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    package.join("../target/bpf/ft-ebpf.o")
}
