//! `cargo xtask test checks`: what is held of the sources themselves, and of each choice of features.

use std::fs;

use anyhow::{Context, Result};

use crate::{
    packaged,
    workspace::{cargo, root, step, target_dir},
};

/// A check, and what it is called in a report.
type Check = (&'static str, fn() -> Result<()>);

/// All checks. What is a matrix of features belongs here, as one more line.
const ALL: [Check; 8] = [
    ("formatting", formatting),
    ("the packaged BPF object", packaged_object),
    ("lints", lints),
    ("documentation", documentation),
    ("examples of the documentation", examples),
    ("features of locks", lock_api),
    ("the feature slice", slice),
    ("tokio's hooks", tokio_hooks),
];

/// Runs all, whatever fails.
pub(crate) fn run() -> Vec<(String, Result<()>)> {
    ALL.iter().map(|(name, check)| ((*name).to_owned(), check())).collect()
}

fn formatting() -> Result<()> {
    step(cargo().args(["fmt", "--all", "--check"]))
}

fn packaged_object() -> Result<()> {
    println!("the packaged BPF object is {}", packaged::check()?);
    Ok(())
}

fn lints() -> Result<()> {
    step(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    for feature in ["off", "lock_api", "lock_api_0_4", "slice"] {
        let features = ["clippy", "--package", "ft-user", "--all-targets", "--features", feature];
        step(cargo().args(features).args(["--", "-D", "warnings"]))?;
    }
    Ok(())
}

fn documentation() -> Result<()> {
    let lints = "-D warnings -A rustdoc::private_intra_doc_links";
    let all = ["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"];
    step(cargo().env("RUSTDOCFLAGS", lints).args(all))?;
    // Its page has what features add, which nothing else here asks for.
    let page = docs_rs_features(&fs::read_to_string(root().join("ft-user/Cargo.toml"))?)?;
    let one = ["doc", "--package", "ft-user", "--no-deps", "--quiet", "--features", &page];
    step(cargo().env("RUSTDOCFLAGS", "-D warnings").args(one))
}

/// The features with which docs.rs documents a crate, by its manifest, with commas.
fn docs_rs_features(manifest: &str) -> Result<String> {
    let lines = manifest.lines().skip_while(|line| *line != "[package.metadata.docs.rs]").skip(1);
    let mut lines = lines.take_while(|line| !line.starts_with('['));
    let list = lines.find_map(|line| line.strip_prefix("features = [")?.strip_suffix(']'));
    let list = list.context("the manifest has no features for docs.rs")?;
    Ok(list.replace(['"', ' '], ""))
}

fn examples() -> Result<()> {
    step(cargo().args(["test", "--workspace", "--doc", "--no-fail-fast"]))
}

fn lock_api() -> Result<()> {
    let with = ["test", "--package", "ft-user", "--features", "lock_api,lock_api_0_4"];
    step(cargo().args(with).args(["--test", "lock_api*"]))?;
    step(cargo().args(with).args(["--doc", "lock_api"]))
}

fn slice() -> Result<()> {
    let with = ["test", "--package", "ft-user", "--features", "slice"];
    step(cargo().args(with).args(["--lib", "slice"]))?;
    step(cargo().args(with).args(["--test", "slice", "--test", "locks"]))
}

/// Tokio's hooks of tasks, for which all that uses tokio must be built.
fn tokio_hooks() -> Result<()> {
    for command in [&["clippy", "--all-targets", "--", "-D", "warnings"][..], &["test"]] {
        let hooks = "--cfg tokio_unstable";
        let mut tokio = cargo();
        tokio.env("RUSTFLAGS", hooks).env("RUSTDOCFLAGS", hooks);
        tokio.env("CARGO_TARGET_DIR", target_dir().join("tokio"));
        step(tokio.current_dir(root().join("ft-tokio")).args(command))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_docs_rs_has_the_features_of_its_manifest() {
        let manifest = "[features]\nfeatures = [\"x\"]\n[package.metadata.docs.rs]\ntargets = []\n\
                        features = [\"a\", \"b_c\"]\n\n[dependencies]\n";
        assert_eq!(docs_rs_features(manifest).unwrap(), "a,b_c");
        let none = manifest.replace("features = [\"a\"", "others = [\"a\"");
        assert!(docs_rs_features(&none).is_err());
    }
}
