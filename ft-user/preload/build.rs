//! Link options of the library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Never unmapped: calls go through it, and threads end in it (ld(1), `-z nodelete`).
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
