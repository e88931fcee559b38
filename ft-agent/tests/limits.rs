//! `LIMITS.md` has each constant of the sources that is named as a bound.

use std::fs;
use std::path::Path;

/// The names of the constants `MAX_…` and `MOST_…` below a directory, and where they are.
fn bounds(dir: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(dir).expect("a directory of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            bounds(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).expect("a source");
            let names = text.lines().filter_map(|line| {
                let (before, after) = line.trim_start().split_once("const ")?;
                let name = after.split(':').next()?;
                let bound = name.starts_with("MAX_") || name.starts_with("MOST_");
                (bound && (before.is_empty() || before.starts_with("pub"))).then(|| name.to_owned())
            });
            found.extend(names.map(|name| (name, path.display().to_string())));
        }
    }
}

#[test]
fn every_bound_is_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("LIMITS.md")).expect("LIMITS.md");
    let words: Vec<&str> = page.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let mut found = Vec::new();
    for package in [
        "ft-user",
        "ft-user/preload",
        "ft-ebpf",
        "ft-trace",
        "ft-analysis",
        "ft-report",
        "ft-load",
        "ft-agent",
    ] {
        bounds(&root.join(package).join("src"), &mut found);
    }
    assert!(found.len() > 40, "{found:?}");
    found.retain(|(name, _)| !words.contains(&name.as_str()));
    assert!(found.is_empty(), "not in LIMITS.md: {found:#?}");
}
