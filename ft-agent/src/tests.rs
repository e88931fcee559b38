//! Every command of ours that a page or a help text shows can be typed as it stands there. Tests alone.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cli;

/// The pages that show commands.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let docs = fs::read_dir(root.join("docs")).expect("the folder of pages");
    let docs = docs.map(|entry| entry.expect("an entry").path());
    let mut found: Vec<_> =
        docs.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    found.push(root.join("README.md"));
    found
}

/// The lines of a page's blocks of code for a shell.
fn of_blocks(page: &str) -> impl Iterator<Item = &str> {
    let blocks = page.split("\n```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    blocks.flat_map(str::lines)
}

/// The words of our command in a line: up to a comment, a pipe or a file, without quotes. `None` where it is another
/// program's, or has a part that the reader fills in.
fn words(line: &str) -> Option<Vec<String>> {
    let at = line.find("ft-agent ")?;
    let (before, ours) = line.split_at(at);
    // Only variables of the environment, `sudo`, and where the agent lies may stand before it.
    let may_stand = |word: &str| word == "sudo" || word.contains('=') || word.ends_with('/');
    if !before.split_ascii_whitespace().all(may_stand) || ours.contains('…') {
        return None;
    }
    let (mut words, mut quoted) = (vec![String::new()], false);
    for c in ours.chars() {
        let is_new = words.last().is_some_and(String::is_empty);
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted && is_new => {}
            ' ' if !quoted => words.push(String::new()),
            '#' | '|' | '>' if !quoted && is_new => break,
            _ => words.last_mut().expect("the word that goes on").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    Some(words)
}

fn check(where_: &str, line: &str) -> bool {
    let Some(words) = words(line) else { return false };
    if let Err(error) = cli::command().try_get_matches_from(&words) {
        // What is right at another time, or where that program runs.
        let text = error.to_string();
        let depends = ["no process is called", "is past by the clock"];
        assert!(depends.iter().any(|why| text.contains(why)), "{where_}: `{line}`: {text}");
    }
    true
}

#[test]
fn words_are_those_of_a_shell() {
    let is = |line, expected: &[&str]| assert_eq!(words(line).unwrap(), expected, "{line}");
    is("ft-agent report trace   # all", &["ft-agent", "report", "trace"]);
    is("  X=1 /usr/bin/ft-agent doctor > a", &["ft-agent", "doctor"]);
    is(
        "ft-agent record --when 'hold > 1ms' -- ./a#b",
        &["ft-agent", "record", "--when", "hold > 1ms", "--", "./a#b"],
    );
    assert_eq!(words("ft-agent record -- …"), None);
    assert_eq!(words("cargo install --path ft-agent --features s3"), None);
}

#[test]
fn commands_of_pages_can_be_typed() {
    let mut found = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        let name = page.display().to_string();
        found += of_blocks(&text).filter(|line| check(&name, line)).count();
    }
    assert!(found > 40, "the pages show {found} commands");
}

#[test]
fn examples_of_help_can_be_typed() {
    let command = cli::command();
    for sub in command.get_subcommands().chain([&command]) {
        let examples = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
        let typed = examples.lines().filter(|line| line.starts_with("  ft-agent "));
        // What the example does stands after two spaces.
        let typed = typed.map(|line| line.trim_start().split("  ").next().unwrap_or_default());
        let count = typed.filter(|line| check(sub.get_name(), line)).count();
        assert!(count > 0 || examples.is_empty(), "{}", sub.get_name());
    }
}
