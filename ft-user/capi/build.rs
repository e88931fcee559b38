//! Names the shared library by its interface: a later one that differs gets another number.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libfeather_trace.so.1");
}
