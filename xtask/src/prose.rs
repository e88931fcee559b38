//! Pages that people read are plain: short sentences, no phrases that say nothing, links that lead somewhere. Tests alone.

use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace::root;

/// Words of a sentence that 19 of 20 sentences of a page stay within.
const LONGEST: usize = 30;

/// Lines of the first page that a newcomer sees.
const README_LINES: usize = 150;

/// Bytes of all pages together, as far as they are written by hand.
const BY_HAND: usize = 150_000;

/// Phrases that a colleague would not say, or that say nothing.
const BANNED: [&str; 14] = [
    "whoever",
    "whosoever",
    "whomever",
    "simply",
    "obviously",
    "of course",
    "please note",
    "note that",
    "it should be noted",
    "in order to",
    "utilize",
    "leverage",
    "state of the art",
    "given up is",
];

/// Pages that are written by hand.
fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in [
        "",
        "docs",
        "python",
        "tests",
        "tests/cases",
        "tests/stored",
        "ft-user",
        "ft-tracing",
        "ft-tokio",
    ] {
        let entries = fs::read_dir(root().join(folder)).expect("a folder of the project");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        found.extend(paths.filter(|path| path.extension().is_some_and(|e| e == "md")));
    }
    // Tables of what is in the sources.
    found.retain(|path| !path.ends_with("TABLES.md") && !path.ends_with("LIMITS.md"));
    found.sort();
    found
}

/// A page without blocks of code, each stretch of code a word.
fn without_code(page: &str) -> String {
    let blocks = page.split("```").step_by(2);
    let plain = |block: &str| {
        let parts = block.split('`').enumerate();
        parts.map(|(i, part)| if i % 2 == 1 { "code" } else { part }).collect::<String>()
    };
    blocks.map(plain).collect::<Vec<_>>().join("\n\n")
}

/// Sentences of a page, and of the cells of its tables, as words.
fn sentences(page: &str) -> Vec<Vec<String>> {
    let mut paragraphs: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in without_code(page).lines() {
        let text = line.trim_start();
        let cells = text.split('|').map(str::to_owned);
        let begins = ["- ", "* ", "#"].iter().any(|mark| text.starts_with(mark));
        match (text.is_empty(), text.starts_with('|')) {
            (true, _) => is_open = false,
            (false, true) => {
                paragraphs.extend(cells);
                is_open = false;
            }
            (false, false) if is_open && !begins => {
                let last = paragraphs.last_mut().expect("it was begun");
                last.push(' ');
                last.push_str(text);
            }
            (false, false) => {
                paragraphs.push(text.to_owned());
                is_open = !text.starts_with('#');
            }
        }
    }
    let sentence = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '\'');
        words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
    };
    let ends = |text: &str| -> Vec<Vec<String>> {
        let ended = [". ", "? ", "! ", ": ", "; "]
            .iter()
            .fold(text.to_owned(), |text, end| text.replace(end, "\n"));
        ended.lines().map(sentence).filter(|words| words.len() > 2).collect()
    };
    paragraphs.iter().flat_map(|text| ends(text)).collect()
}

/// Where the links of a page lead, without those to other sites.
fn links(page: &str) -> Vec<String> {
    let plain = page.split("```").step_by(2).collect::<String>();
    let targets = plain.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets
        .filter(|to| !to.contains("://") && !to.starts_with("mailto:"))
        .map(str::to_owned)
        .collect()
}

/// What a heading is called in a link, as GitHub names it: lower case, `-` for blanks, nothing for other signs.
fn anchors(page: &str) -> Vec<String> {
    let plain = page.split("```").step_by(2).collect::<String>();
    let headings = plain.lines().filter(|line| line.starts_with('#'));
    let name = |heading: &str| -> String {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(name).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn a_sentence_ends_where_one_would_breathe() {
    let page = "# A head\n\nOne two three. Four\nfive `x y. z` seven; eight nine ten.\n\n- a b c\n- d e f\n\n| a b c | d e |\n\n```\nno words in here\n```\n";
    let words: Vec<String> = sentences(page).iter().map(|words| words.join(" ")).collect();
    assert_eq!(
        words,
        ["one two three", "four five code seven", "eight nine ten", "a b c", "d e f", "a b c"]
    );
    assert_eq!(links("[a](b.md#c-d) ```[x](y)``` [e](https://f)"), ["b.md#c-d"]);
    assert_eq!(anchors("## What `it` is: 2nd\n"), ["what-it-is-2nd"]);
}

#[test]
fn sentences_are_short() {
    let mut long = Vec::new();
    for path in pages() {
        let mut lengths: Vec<usize> = sentences(&read(&path)).iter().map(Vec::len).collect();
        lengths.sort_unstable();
        if let Some(&length) = lengths.get(lengths.len() * 19 / 20)
            && length > LONGEST
        {
            long.push(format!(
                "{}: a twentieth of its sentences have {length} words or more",
                path.display()
            ));
        }
    }
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn no_phrase_says_nothing() {
    let mut found = Vec::new();
    for path in pages() {
        for sentence in sentences(&read(&path)) {
            let sentence = format!(" {} ", sentence.join(" "));
            let banned = BANNED.iter().filter(|phrase| sentence.contains(&format!(" {phrase} ")));
            found.extend(banned.map(|phrase| format!("{}: {phrase}: {sentence}", path.display())));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    for path in pages() {
        let page = read(&path);
        for link in links(&page) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().expect("a folder").join(file),
            };
            let leads = target.exists()
                && (anchor.is_empty() || anchors(&read(&target)).iter().any(|name| name == anchor));
            if !leads {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn the_first_page_is_short() {
    let lines = read(&root().join("README.md")).lines().count();
    assert!(lines <= README_LINES, "README.md has {lines} lines");
}

/// A page without what is made: from a line that says so to the end of that, or of the page.
fn by_hand(page: &str) -> String {
    let mut made = false;
    let lines = page.lines().filter(|line| {
        made |= line.starts_with("<!-- Made of ") || line.contains(", written by `cargo xtask ");
        let is_ours = !made;
        made &= !line.starts_with("<!-- end");
        is_ours
    });
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn what_is_made_is_not_written_by_hand() {
    let page = "ours\n<!-- begin: x, written by `cargo xtask bench` -->\nmade\n<!-- end -->\nours\n<!-- Made of it -->\nmade\n";
    assert_eq!(by_hand(page), "ours\nours\n");
}

#[test]
fn pages_that_are_written_by_hand_are_few() {
    let mut git = std::process::Command::new("git");
    let listed = git.args(["ls-files", "*.md"]).current_dir(root()).output().expect("git starts");
    let pages = String::from_utf8(listed.stdout).expect("UTF-8");
    assert!(pages.lines().count() > 20, "{pages}");
    let written = pages.lines().filter(|page| *page != "TABLES.md");
    let bytes: usize = written.map(|page| by_hand(&read(&root().join(page))).len()).sum();
    assert!(bytes <= BY_HAND, "{bytes} bytes are written by hand");
}
