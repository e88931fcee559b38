//! `LIMITS.md` has each constant of the sources that is named as a bound or a tolerance, and each row names tests that exist,
//! or says why there is none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What such a constant has in its name.
const NAMED: [&str; 17] = [
    "MAX_",
    "MOST_",
    "KEPT",
    "FASTEST",
    "SLOWEST",
    "LONGEST",
    "LARGEST",
    "LEAST",
    "LAST",
    "STEP_NS",
    "BURST",
    "AT_ONCE",
    "WAITING",
    "REFUSALS",
    "TOLERANCE",
    "OVERHEAD",
    "BELIEVED",
];

/// Packages whose sources have bounds.
const PACKAGES: [&str; 12] = [
    "ft-user",
    "ft-user/preload",
    "ft-tracing",
    "ft-tokio",
    "ft-ebpf/common",
    "ft-ebpf/programs",
    "ft-trace",
    "ft-analysis",
    "ft-report",
    "ft-catalogue",
    "ft-load",
    "ft-agent",
];

/// Where the project begins.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All sources below a directory, with their text.
fn sources(dir: &Path, each: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(dir).expect("a directory of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, each);
        } else if path.extension().is_some_and(|e| e == "rs") {
            each(&path, &fs::read_to_string(&path).expect("a source"));
        }
    }
}

/// The files below a directory that declare constants of each such name.
fn bounds(dir: &Path, found: &mut BTreeMap<String, Vec<PathBuf>>) {
    sources(dir, &mut |path, text| {
        for line in text.lines() {
            let Some((before, after)) = line.trim_start().split_once("const ") else {
                continue;
            };
            let Some((name, _)) = after.split_once(": ") else { continue };
            let is_declared = before.is_empty() || before.starts_with("pub");
            if is_declared && NAMED.iter().any(|word| name.contains(word)) {
                found.entry(name.to_owned()).or_default().push(path.to_owned());
            }
        }
    });
}

/// The names of the tests below a directory: functions behind the attribute, whatever other ones are between.
fn tests(dir: &Path, found: &mut BTreeSet<String>) {
    sources(dir, &mut |_, text| {
        let mut is_test = false;
        for line in text.lines().map(str::trim_start) {
            if let Some((name, _)) = line.strip_prefix("fn ").and_then(|f| f.split_once('(')) {
                if is_test {
                    found.insert(name.to_owned());
                }
                is_test = false;
            }
            is_test |= line == "#[test]";
        }
    });
}

/// The last cells of the rows that say by which tests they are shown.
fn shown_by(page: &str) -> Vec<&str> {
    let mut cells = Vec::new();
    let mut is_shown = false;
    for line in page.lines() {
        let Some((_, last)) = line.strip_suffix('|').and_then(|row| row.rsplit_once('|')) else {
            is_shown = false;
            continue;
        };
        if is_shown && !last.starts_with("--") {
            cells.push(last.trim());
        }
        is_shown |= last.trim() == "shown by";
    }
    cells
}

/// What such a cell names in the form of a test's name; one that ends in `…` is a beginning.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    let is_name = |word: &&str| {
        let word = word.trim_end_matches('…');
        word.contains('_') && word.chars().all(|c| c.is_ascii_lowercase() || c == '_')
    };
    cell.split('`').skip(1).step_by(2).filter(is_name)
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
    let root = root();
    let page = fs::read_to_string(root.join("LIMITS.md")).expect("LIMITS.md");
    let is_between = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let rows: Vec<Vec<&str>> = page.lines().map(|line| line.split(is_between).collect()).collect();
    let mut found = BTreeMap::new();
    for package in PACKAGES {
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

#[test]
fn every_row_is_shown_by_tests_that_exist_or_says_why_not() {
    let root = root();
    let page = fs::read_to_string(root.join("LIMITS.md")).expect("LIMITS.md");
    let mut known = BTreeSet::new();
    tests(&root.join("tests"), &mut known);
    for package in PACKAGES {
        tests(&root.join(package).join("src"), &mut known);
        let beside = root.join(package).join("tests");
        if beside.is_dir() {
            tests(&beside, &mut known);
        }
    }
    let cells = shown_by(&page);
    assert!(!cells.contains(&""), "a row says neither what shows it nor why nothing does");
    let named: Vec<&str> = cells.into_iter().flat_map(names).collect();
    assert!(named.len() > 80 && known.len() > 1000, "{} of {}", named.len(), known.len());
    let is_there = |name: &&str| match name.strip_suffix('…') {
        Some(begin) => known.range(begin.to_owned()..).next().is_some_and(|n| n.starts_with(begin)),
        None => known.contains(*name),
    };
    let missing: Vec<_> = named.into_iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "named in LIMITS.md, and no test: {missing:#?}");
}
