//! What must not be linked where: the borders between the crates, as cargo sees them; that the map of them is of what is,
//! and that a name of the glossary is that of one type.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Whether the first words of the lines of `cargo tree` hold each of these packages, without dev-dependencies.
fn depends_on<const N: usize>(package: &str, others: [&str; N]) -> [bool; N] {
    depends_with(package, &[], others)
}

/// The same, with these arguments of cargo.
fn depends_with<const N: usize>(package: &str, more: &[&str], others: [&str; N]) -> [bool; N] {
    let cargo = std::env::var_os("CARGO").expect("cargo runs the tests");
    let tree = Command::new(cargo)
        .args(["tree", "--offline", "--package", package, "--edges", "normal", "--prefix", "none"])
        .args(more)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let tree = String::from_utf8_lossy(&tree.stdout).into_owned();
    let has = |name: &str| tree.lines().any(|line| line.split(' ').next() == Some(name));
    assert!(has(package), "the tree is shown: {tree}");
    others.map(has)
}

/// aya-ebpf defines `memcpy` and its like for whatever links it, so it must never reach a host program.
#[test]
fn the_agent_never_links_aya_ebpf() {
    assert_eq!(depends_on("ft-agent", ["ft-ebpf", "aya", "aya-ebpf"]), [true, true, false]);
    // Nor is it in anything else here, for whatever target and with whatever features.
    let lock = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock")).unwrap();
    let has = |name: &str| lock.contains(&format!("\nname = \"{name}\"\n"));
    assert_eq!(
        ["ft-ebpf", "aya", "aya-ebpf", "ft-ebpf-programs"].map(has),
        [true, true, false, false]
    );
}

#[test]
fn the_analyses_do_no_io() {
    let others = ["ft-trace", "arrow-array", "parquet", "rustix", "clap", "ft-agent"];
    assert_eq!(depends_on("ft-analysis", others), [true, false, false, false, false, false]);
}

#[test]
fn nothing_points_back_up() {
    let upper = ["ft-analysis", "ft-report", "ft-agent", "aya", "tokio", "clap"];
    assert_eq!(depends_on("ft-trace", upper), [false; 6]);
    let others = ["ft-trace", "ft-agent", "aya", "tokio", "clap"];
    assert_eq!(depends_on("ft-report", others), [true, false, false, false, false]);
    let others = ["ft-trace", "ft-analysis", "ft-report", "ft-agent", "tokio"];
    assert_eq!(depends_on("ft-catalogue", others), [true, false, false, false, false]);
}

/// An object store takes a hundred crates; the first look at this project does without.
#[test]
fn only_the_feature_for_object_stores_brings_their_clients() {
    let others = ["object_store", "hyper", "reqwest"];
    assert_eq!(depends_on("ft-agent", others), [true; 3]);
    assert_eq!(depends_with("ft-agent", &["--no-default-features"], others), [false; 3]);
}

/// A load disturbs what it measures with what it links; and whoever records pays for no load.
#[test]
fn the_loads_stand_alone() {
    let others = ["ft-user", "ft-trace", "ft-ebpf", "arrow-array", "parquet", "aya", "ft-agent"];
    assert_eq!(depends_on("ft-load", others), [true, false, false, false, false, false, false]);
    assert_eq!(depends_on("ft-agent", ["ft-load", "ft-papers"]), [false; 2]);
    assert_eq!(depends_on("xtask", ["ft-load", "plotters"]), [false; 2]);
}

/// Who adds a line to a program does not want the world with it; and whoever records pays for none of it.
#[test]
fn the_layer_brings_little() {
    let others =
        ["ft-user", "tracing-subscriber", "tokio", "hyper", "tracing-log", "regex", "ft-trace"];
    assert_eq!(depends_on("ft-tracing", others), [true, true, false, false, false, false, false]);
    assert_eq!(
        depends_on("ft-agent", ["ft-tracing", "tracing-subscriber", "ft-tokio"]),
        [false; 3]
    );
    let others = ["ft-user", "tokio", "mio", "tracing", "ft-trace"];
    assert_eq!(depends_on("ft-tokio", others), [true, true, false, false, false]);
}

/// Each row of the code map begins with a path, and names others beside it or above.
#[test]
fn every_path_of_the_code_map_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let map = page.split("\n## Code map\n").nth(1).and_then(|rest| rest.split("\n## ").next());
    let rows: Vec<_> = map.unwrap().lines().filter_map(|line| line.strip_prefix("| `")).collect();
    let mut count = 0;
    for row in rows {
        let cell = row.split(" |").next().unwrap();
        let mut paths = cell.split('`').step_by(2);
        let first = Path::new(paths.next().unwrap());
        assert!(root.join(first).exists(), "{} of the code map", first.display());
        count += 1;
        for path in paths.filter(|path| !path.is_empty()) {
            count += 1;
            let is_there = first.ancestors().any(|above| root.join(above).join(path).exists());
            assert!(is_there, "{path} beside {} in the code map", first.display());
        }
    }
    assert!(count > 50, "{count} paths");
}

/// How often types of these names are declared in the sources below a directory, in functions, too.
fn count_types<const N: usize>(dir: &Path, names: [&str; N], found: &mut [Vec<String>; N]) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            count_types(&path, names, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            for declared in text.lines().filter_map(declares) {
                if let Some(i) = names.iter().position(|name| *name == declared) {
                    found[i].push(path.display().to_string());
                }
            }
        }
    }
}

/// The name of the type that a line declares.
fn declares(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.split_once(' ')?.1,
        None => line,
    };
    let name =
        ["struct ", "enum ", "type ", "trait "].iter().find_map(|kind| line.strip_prefix(kind))?;
    name.split(|c: char| !c.is_alphanumeric()).next()
}

#[test]
fn a_name_of_the_glossary_is_that_of_one_type() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = fs::read_to_string(root.join("docs/words.md")).unwrap();
    let glossary =
        page.split("\n## In the code\n").nth(1).and_then(|rest| rest.split("\n## ").next());
    let names = ["Source", "Counts", "Meta", "Part", "Segment", "Cause"];
    let mut found = [const { Vec::new() }; 6];
    let packages = [root.to_owned(), root.join("ft-ebpf")].map(|dir| fs::read_dir(dir).unwrap());
    for package in packages.into_iter().flatten() {
        let package = package.unwrap().path();
        if package.join("Cargo.toml").exists() && package.join("src").is_dir() {
            count_types(&package.join("src"), names, &mut found);
        }
    }
    for (name, places) in names.into_iter().zip(found) {
        assert_eq!(places.len(), 1, "{name}: {places:?}");
        assert!(glossary.unwrap().contains(&format!("`{name}`")), "{name} is not in the glossary");
    }
}

#[test]
fn what_a_line_declares_is_found() {
    for line in [
        "struct Part {",
        "    pub(super) enum Part {",
        "pub struct Part<'a>(u8);",
        "type Part = u8;",
    ] {
        assert_eq!(declares(line), Some("Part"), "{line}");
    }
    for line in
        ["struct PartFile {", "let part = Part { first };", "/// struct Part", "impl Part {"]
    {
        assert_ne!(declares(line), Some("Part"), "{line}");
    }
}

/// Sources of what root runs that open files by other calls than those of `foreign_file.rs`, and whose files these are.
const OPENED: [(&str, &str); 17] = [
    ("ft-trace/src/foreign_file.rs", "this is the one way"),
    ("ft-trace/src/owners.rs", "root's lists of users"),
    ("ft-trace/src/dir.rs", "directories of traces, and what whoever runs us has named"),
    ("ft-trace/src/whole_dir.rs", "the directory of files that are written"),
    ("ft-trace/src/whole_file.rs", "the directory of a file that is written"),
    ("ft-trace/src/convert/kernel_symbols.rs", "the kernel's own"),
    ("ft-agent/src/cpus.rs", "the kernel's own"),
    ("ft-agent/src/doctor/checks.rs", "the kernel's own"),
    ("ft-agent/src/collect/attach.rs", "memory that a process has sent, and that is proved"),
    ("ft-agent/src/collect/cgroup.rs", "cgroupfs"),
    ("ft-agent/src/collect/discover.rs", "files of /proc"),
    (
        "ft-agent/src/collect/probe/binary.rs",
        "what whoever runs us has named, and the loader's lists",
    ),
    ("ft-agent/src/collect/kernel/load.rs", "the kernel's own"),
    ("ft-agent/src/collect/kernel/loss.rs", "the kernel's own"),
    ("ft-agent/src/clock", "the kernel's own"),
    ("ft-agent/src/control/client.rs", "the directory of sockets"),
    ("ft-agent/src/record/host.rs", "the kernel's own"),
];

/// Adds the lines of the sources below a directory that open a file by its path, but for their tests, and but for files of
/// `/proc` and `/sys` that are named in the line itself, and are no links to others.
fn opening(dir: &Path, found: &mut Vec<(String, String)>) {
    const CALLS: [&str; 8] = [
        "File::open(",
        "fs::read(",
        "fs::read_to_string(",
        "OpenOptions",
        "openat(",
        "openat2(",
        "fs::open(",
        "match open(",
    ];
    let own =
        |path: &Path| path.to_str().and_then(|path| path.split("/../").last()).map(str::to_owned);
    for entry in fs::read_dir(dir).expect("a directory of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if !path.ends_with("tests") {
                opening(&path, found);
            }
        } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).expect("a source");
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            let opens = |line: &&str| {
                let is_code = !line.starts_with("//") && !line.contains("fn open(");
                let has = |parts: &[&str]| parts.iter().any(|part| line.contains(part));
                // What links there lead to is whatever a process has.
                let leads_away = has(&["/fd/", "/map_files", "/root", "/cwd", "/exe"]);
                let of_kernel = has(&["\"/proc/", "\"/sys/", "open()"]) && !leads_away;
                is_code && !of_kernel && CALLS.iter().any(|call| line.contains(call))
            };
            let lines = text.lines().map(str::trim).filter(opens);
            let path = own(&path).expect("UTF-8");
            found.extend(lines.map(|line| (path.clone(), line.to_owned())));
        }
    }
}

/// A file that another user's process names is opened by `ForeignFile` alone, which looks at it first.
#[test]
fn what_others_have_named_is_opened_in_one_way() {
    let mut found = Vec::new();
    for package in ["ft-trace", "ft-agent", "ft-report", "ft-catalogue", "ft-analysis"] {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(package).join("src");
        opening(&sources, &mut found);
    }
    let is_known = |path: &str| OPENED.iter().any(|(known, _)| path.starts_with(known));
    let unknown: Vec<_> = found.iter().filter(|(path, _)| !is_known(path)).collect();
    assert!(unknown.is_empty(), "who has named these files? {unknown:#?}");
    let is_needed = |known: &str| found.iter().any(|(path, _)| path.starts_with(known));
    let gone: Vec<_> = OPENED.iter().filter(|(known, _)| !is_needed(known)).collect();
    assert!(gone.is_empty(), "these open no file: {gone:#?}");
}
