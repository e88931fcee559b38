//! Programs of this workspace that tests run. Cargo builds them when a test first asks for one, unless `FT_BUILT` says that
//! they are there already: `cargo xtask test` has built them, or this machine has no compiler.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The agent's binary.
pub fn agent() -> &'static str {
    static BUILT: OnceLock<String> = OnceLock::new();
    // With this package, whose choice of features it then has: what was compiled for the tests is not compiled once more.
    BUILT.get_or_init(|| {
        let folder =
            build(&["--package", "ft-tests", "--package", "ft-agent", "--bin", "ft-agent"]);
        folder.join("ft-agent").to_str().expect("a path in UTF-8").to_owned()
    })
}

/// The preload library.
pub fn preload() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build(&["--package", "ft-preload"]).join("libft_preload.so"))
}

/// Builds something as this test was; returns the folder of what is built.
///
/// # Panics
///
/// When it does not build.
pub fn build(what: &[&str]) -> &'static Path {
    let folder = folder();
    if std::env::var_os("FT_BUILT").is_some() {
        return folder;
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(cargo);
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["build", "--quiet"]).args(what);
    let profile = folder.file_name().and_then(|name| name.to_str()).expect("the name of a profile");
    // Its folder is called otherwise.
    cargo.args(["--profile", if profile == "debug" { "dev" } else { profile }]);
    let output = cargo.output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
}

/// Builds an example of a package, which `cargo test --test` alone would not; returns its binary.
pub fn example(package: &str, name: &str) -> PathBuf {
    build(&["--package", package, "--example", name]).join("examples").join(name)
}

/// Where cargo puts programs: this one lies in `deps` there.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let test = std::env::current_exe().expect("a test knows where it lies");
        test.ancestors().nth(2).expect("a test lies in a target folder").to_owned()
    })
}
