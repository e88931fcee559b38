//! Compiles what is in C: work in a known chain of calls, for the subjects; and the loops with LTTng tracepoints, which
//! are macros of C, for the binary `lttng` alone.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=c");
    let chain = ["-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"];
    println!("cargo:rustc-link-arg-bin=subject={}", object("deep", &chain).display());
    if env::var_os("CARGO_FEATURE_LTTNG").is_none() {
        return;
    }
    let object = object("lttng", &["-Ic"]);
    // Its tracepoints are found between the bounds of a section that nothing else refers to.
    let keep = "-Wl,-z,nostart-stop-gc";
    for argument in [&*object.to_string_lossy(), keep, "-llttng-ust", "-ldl"] {
        println!("cargo:rustc-link-arg-bin=lttng={argument}");
    }
}

fn object(name: &str, flags: &[&str]) -> PathBuf {
    let object =
        PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join(format!("{name}.o"));
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-g"]).args(flags).args(["-c", &format!("c/{name}.c"), "-o"]).arg(&object);
    assert!(cc.status().expect("a C compiler").success(), "c/{name}.c does not compile");
    object
}
