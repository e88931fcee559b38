//! No report turns a number into characters: the types of [`document::value`](crate::document) say what a number is, and
//! only `render/number.rs` writes it. This reads the sources.

use std::fs;
use std::path::{Path, PathBuf};

/// Where nothing formats a number.
const WITHOUT: [&str; 6] = ["sections", "fleet", "compare", "document", "stats", "render"];

/// Where numbers are formatted.
const FORMATS: &str = "render/number.rs";

/// What a placeholder with a number of digits has, or a percentage.
const BY_HAND: [&str; 3] = [":.", "} %", "}%"];

/// All sources below a directory, without those of tests.
fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match (path.is_dir(), path.file_stem().unwrap().to_str().unwrap()) {
            (_, "tests" | "golden") => {}
            (true, _) => sources(&path, found),
            (false, _) if path.extension().is_some_and(|e| e == "rs") => found.push(path),
            _ => {}
        }
    }
}

/// The lines of a source that format a number by hand, without its tests.
fn by_hand(source: &str) -> Vec<&str> {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let placeholder = |text: &str| {
        // From each brace that opens one to its end, and two characters behind it.
        text.match_indices('{').any(|(at, _)| {
            let end = text[at..].find('}').map_or(text.len(), |end| at + end);
            let behind: String = text[end..].chars().take(3).collect();
            let name = text[at + 1..end].chars().take_while(|c| c.is_alphanumeric() || *c == '_');
            let rest = &text[at + 1 + name.map(char::len_utf8).sum::<usize>()..end];
            let is_one = rest.is_empty() || rest.starts_with(':');
            is_one
                && (rest.starts_with(BY_HAND[0])
                    || BY_HAND[1..].iter().any(|p| behind.starts_with(p)))
        })
    };
    code.lines().filter(|line| !line.trim_start().starts_with("//") && placeholder(line)).collect()
}

#[test]
fn what_formats_a_number_by_hand_is_found() {
    for line in [
        "format!(\"{p:.4}\")",
        "format!(\"{:.0} %\", share)",
        "format!(\"slowest {percent} %\")",
        "write!(f, \"--w:{}%\", part)",
        "format!(\"{n:.digits$}\")",
    ] {
        assert_eq!(by_hand(line), [line]);
    }
    for line in [
        "format!(\"{name} {}\", self.word)",
        "// format!(\"{p:.4}\")",
        "text!(\"{} held for {}\", lock, Ns(5))",
        "style=\"--share:{}\\\"\", style_share(part, 1)",
        "over 70 %",
    ] {
        assert!(by_hand(line).is_empty(), "{line}");
    }
    assert!(by_hand("#[cfg(test)]\nmod tests {\n format!(\"{p:.4}\")").is_empty());
}

#[test]
fn no_report_formats_a_number() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    WITHOUT.iter().for_each(|dir| sources(&src.join(dir), &mut files));
    assert!(files.len() > 60, "only {} sources were found", files.len());
    for path in files.iter().filter(|path| !path.ends_with(FORMATS)) {
        let source = fs::read_to_string(path).unwrap();
        let found = by_hand(&source);
        assert!(found.is_empty(), "{} formats a number itself: {found:#?}", path.display());
        // The renderers call the functions that format; what they render does not.
        let is_rendered = !path.starts_with(src.join("render"));
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        assert!(
            !is_rendered || !code.contains("render::number"),
            "{} says itself how a number looks; wrap it in a type of the document",
            path.display()
        );
    }
}
