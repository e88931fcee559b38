//! A site of a shared library that is loaded later is found, and can be switched and run through.
#![cfg(not(ft_off))]

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ft_user::{patch::Text, site};

fn build() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugin");
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "--example", "plugin"])
        .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")])
        .arg("--target-dir")
        .arg(&target)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target.join("debug/examples/libplugin.so")
}

fn sites() -> Vec<u64> {
    let mut found = Vec::new();
    site::for_each(|site| {
        if site.meta.name() == "plugin.run" {
            found.push(site.trigger as u64);
        }
    });
    found
}

#[test]
fn site_of_a_library_that_is_loaded_later() {
    let path = CString::new(build().as_os_str().as_bytes()).expect("a path has no NUL");
    assert_eq!(sites(), []);
    // SAFETY: the library was built from `examples/plugin.rs` just now, and has no initialiser that
    // asks for anything; the symbol has the type that stands there.
    let run: extern "C" fn(u64) -> u64 = unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        assert!(!library.is_null(), "the library cannot be loaded");
        let symbol = libc::dlsym(library, c"plugin_run".as_ptr());
        assert!(!symbol.is_null(), "the library has no plugin_run");
        std::mem::transmute(symbol)
    };
    let found = sites();
    assert_eq!(found.len(), 1);
    assert_eq!(run(7), 7);
    assert!(Text::own().unwrap().set(found[0], true).unwrap());
    assert_eq!(run(8), 8);
    assert!(Text::own().unwrap().set(found[0], false).unwrap());
    assert_eq!(run(9), 9);
}
