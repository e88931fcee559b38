//! `LIMITS.md` has each constant of the sources that is named as a bound or a tolerance.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What such a constant has in its name.
const NAMED: [&str; 8] =
    ["MAX_", "MOST_", "KEPT", "FASTEST", "TOLERANCE", "OVERHEAD", "BELIEVED", "LOST_AT_ONCE"];

/// The files below a directory that declare constants of each such name.
fn bounds(dir: &Path, found: &mut BTreeMap<String, Vec<PathBuf>>) {
    for entry in fs::read_dir(dir).expect("a directory of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            bounds(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).expect("a source");
            for line in text.lines() {
                let Some((before, after)) = line.trim_start().split_once("const ") else {
                    continue;
                };
                let Some((name, _)) = after.split_once(": ") else { continue };
                let is_declared = before.is_empty() || before.starts_with("pub");
                if is_declared && NAMED.iter().any(|word| name.contains(word)) {
                    found.entry(name.to_owned()).or_default().push(path.clone());
                }
            }
        }
    }
}

/// What a file is called: by its own name, or by that of its folder.
fn stem(path: &Path) -> &str {
    fn name(path: &Path) -> &str {
        path.file_stem().and_then(|name| name.to_str()).expect("a name")
    }
    match (name(path), path.parent()) {
        ("mod" | "lib", Some(folder)) => name(folder),
        (own, _) => own,
    }
}

#[test]
fn every_bound_is_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("LIMITS.md")).expect("LIMITS.md");
    let is_between = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let rows: Vec<Vec<&str>> = page.lines().map(|line| line.split(is_between).collect()).collect();
    let mut found = BTreeMap::new();
    for package in [
        "ft-user",
        "ft-user/preload",
        "ft-tracing",
        "ft-tokio",
        "ft-ebpf",
        "ft-trace",
        "ft-analysis",
        "ft-report",
        "ft-catalogue",
        "ft-load",
        "ft-agent",
    ] {
        bounds(&root.join(package).join("src"), &mut found);
    }
    assert!(found.len() > 80, "{found:?}");
    let mut missing = Vec::new();
    for (name, paths) in &found {
        for path in paths {
            let is_its = |row: &Vec<&str>| {
                row.contains(&&**name) && (paths.len() == 1 || row.contains(&stem(path)))
            };
            if !rows.iter().any(is_its) {
                missing.push(format!("{name} of {}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "not in LIMITS.md: {missing:#?}");
}
