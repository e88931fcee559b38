//! Names the shared library by its interface: a later one that differs gets another number. It stays once it is loaded: a plugin that is
//! linked with it may be unloaded, while threads of the host have rings, and handlers of `fork` and of their ends lead here.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libfeather_trace.so.1");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
