//! The tables of `LIMITS.md` are made of the sources: each constant that is named as a bound or a tolerance says behind its
//! documentation what happens at the limit, and which tests show it, or why none does.
//!
//! ```text
//! /// Locks that one thread holds.
//! ///
//! /// Limit: the oldest hold has no row and is counted.
//! /// Shown by: `memory_is_bounded`.
//! const MAX_HELD: usize = 256;
//! ```
//!
//! One that takes effect with another says `Limit: as` that one. Any other constant may say this, too.

use std::collections::BTreeSet;
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

/// Behind this line of the page all is made.
const MADE: &str =
    "<!-- Made of the sources: FT_ACCEPT=1 cargo test -p ft-tests --test limits -->\n";

/// Where the project begins.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All sources below a directory, in order, with their text.
fn sources(dir: &Path, each: &mut impl FnMut(&Path, &str)) {
    let entries = fs::read_dir(dir).expect("a directory of sources");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            sources(&path, each);
        } else if path.extension().is_some_and(|e| e == "rs") {
            each(&path, &fs::read_to_string(&path).expect("a source"));
        }
    }
}

/// A constant that bounds something.
#[derive(Debug)]
struct Bound {
    /// Its file, below the sources of its package.
    file: String,
    name: String,
    value: String,
    /// What it bounds: the first paragraph of its documentation.
    bounds: String,
    limit: String,
    shown_by: String,
}

impl Bound {
    /// One that takes effect with another, of its file or of a file with this end.
    fn other(&self) -> Option<(&str, &str)> {
        let mut words = self.limit.strip_prefix("as `")?.split('`');
        let name = words.next()?;
        Some((name, words.nth(1).filter(|_| words.next().is_some()).unwrap_or(&self.file)))
    }

    fn row(&self) -> String {
        let Bound { file, name, value, bounds, limit, shown_by } = self;
        let value = if value.is_empty() { String::new() } else { format!("`{value}`") };
        let cells =
            [format!("`{file}` `{name}`"), value, bounds.clone(), limit.clone(), shown_by.clone()];
        format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
    }
}

/// The name of the constant that is declared in a line, and whether it is no place of memory.
fn declared(line: &str) -> Option<(&str, bool)> {
    let (before, after) = line.split_once("const ").or_else(|| line.split_once("static "))?;
    let (name, _) = after.split_once(": ")?;
    let is_name = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let is_declared = before.is_empty() || before.starts_with("pub");
    (is_name && is_declared).then(|| (name, line.contains("const ")))
}

/// A paragraph of documentation up to the next one, without its title and its full stop.
fn paragraph(text: &str, title: &str, next: &str) -> String {
    let Some((_, text)) = text.split_once(title) else { return String::new() };
    let text = text.split(next).next().unwrap_or_default();
    let text = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<_> = text.split_ascii_whitespace().collect();
    words.join(" ").trim_end_matches('.').to_owned()
}

/// The bounds of a source, `file`: those that are named as such, or say that they are.
fn bounds(file: &str, text: &str, found: &mut Vec<Bound>) {
    let mut documentation = String::new();
    let mut lines = text.lines().map(str::trim_start);
    while let Some(line) = lines.next() {
        if let Some(more) = line.strip_prefix("///") {
            documentation += &format!("\n{}", more.trim());
            continue;
        }
        if line.starts_with("#[") {
            continue;
        }
        let documentation = std::mem::take(&mut documentation);
        let Some((name, is_constant)) = declared(line) else { continue };
        let limit = paragraph(&documentation, "\nLimit: ", "\nShown by: ");
        if limit.is_empty() && !(is_constant && NAMED.iter().any(|word| name.contains(word))) {
            continue;
        }
        let mut declaration = line.to_owned();
        while !declaration.trim_end().ends_with(';') {
            let Some(more) = lines.next() else { break };
            declaration += " ";
            declaration += more;
        }
        let value = declaration.split_once(" = ").filter(|_| is_constant);
        let value = value.map(|(_, value)| value.trim_end().trim_end_matches(';').to_owned());
        found.push(Bound {
            file: file.to_owned(),
            name: name.to_owned(),
            value: value.filter(|value| value.len() < 60).unwrap_or_default(),
            bounds: paragraph(&format!("\n{}", documentation.trim_start()), "\n", "\nLimit: "),
            limit,
            shown_by: paragraph(&documentation, "\nShown by: ", "\n\n"),
        });
    }
}

/// Those of all packages.
fn all() -> Vec<(&'static str, Vec<Bound>)> {
    let of_package = |package: &'static str| {
        let (folder, mut found) = (root().join(package).join("src"), Vec::new());
        sources(&folder, &mut |path, text| {
            let file = path.strip_prefix(&folder).expect("a source of it").display().to_string();
            bounds(&file, text, &mut found);
        });
        (package, found)
    };
    PACKAGES.map(of_package).into()
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

#[test]
fn every_bound_says_what_happens_at_the_limit() {
    let all = all();
    let count: usize = all.iter().map(|(_, bounds)| bounds.len()).sum();
    assert!(count > 300, "{count}");
    let mut wrong = Vec::new();
    for (package, bounds) in &all {
        for bound in bounds {
            let is_there = |(name, file): (&str, &str)| {
                let mut others = all.iter().flat_map(|(_, bounds)| bounds);
                others.any(|other| {
                    other.name == name && other.file.ends_with(file) && other.other().is_none()
                })
            };
            let is_right = match bound.other() {
                Some(other) => is_there(other),
                None => !bound.limit.is_empty() && !bound.shown_by.is_empty(),
            };
            if !is_right || bound.bounds.is_empty() {
                wrong.push(format!("{package}: {bound:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "no limit, or none that says what shows it: {wrong:#?}");
}

#[test]
fn the_page_is_made_of_the_sources() {
    let path = root().join("LIMITS.md");
    let page = fs::read_to_string(&path).expect("LIMITS.md");
    let (written, _) = page.split_once(MADE).expect("the line behind which all is made");
    let mut made = format!("{written}{MADE}");
    for (package, bounds) in all().iter().filter(|(_, bounds)| !bounds.is_empty()) {
        made +=
            &format!("\n## {package}\n\n| constant | value | bounds | at the limit | shown by |\n");
        made += "|---|---|---|---|---|\n";
        made.extend(bounds.iter().map(Bound::row));
    }
    if ft_tests::accepts() {
        fs::write(&path, &made).expect("LIMITS.md");
    }
    let page = fs::read_to_string(&path).expect("LIMITS.md");
    assert!(
        page == made,
        "the sources have other limits: FT_ACCEPT=1 cargo test -p ft-tests --test limits"
    );
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
    let named: Vec<&str> = cells.into_iter().flat_map(names).collect();
    assert!(named.len() > 80 && known.len() > 1000, "{} of {}", named.len(), known.len());
    let is_there = |name: &&str| match name.strip_suffix('…') {
        Some(begin) => known.range(begin.to_owned()..).next().is_some_and(|n| n.starts_with(begin)),
        None => known.contains(*name),
    };
    let missing: Vec<_> = named.into_iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "named in LIMITS.md, and no test: {missing:#?}");
}
