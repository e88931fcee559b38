//! Compiles the loops with LTTng tracepoints, which are macros of C, for the binary `lttng` alone.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=c");
    if env::var_os("CARGO_FEATURE_LTTNG").is_none() {
        return;
    }
    let object = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("lttng.o");
    let status = Command::new("cc")
        .args(["-O2", "-g", "-Ic", "-c", "c/lttng.c", "-o"])
        .arg(&object)
        .status()
        .expect("a C compiler");
    assert!(status.success(), "c/lttng.c does not compile");
    // Its tracepoints are found between the bounds of a section that nothing else refers to.
    let keep = "-Wl,-z,nostart-stop-gc";
    for argument in [&*object.to_string_lossy(), keep, "-llttng-ust", "-ldl"] {
        println!("cargo:rustc-link-arg-bin=lttng={argument}");
    }
}
