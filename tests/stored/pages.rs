//! Each command of the pages that reads a trace, typed into a shell where `trace` is a stored recording.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::stage::Stage;

/// The pages that show commands.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let docs = fs::read_dir(root.join("docs")).expect("the folder of pages");
    let docs = docs.map(|entry| entry.expect("an entry").path());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    docs.filter(is_page).chain([root.join("README.md")]).collect()
}

/// The lines of a page's blocks of code for a shell in which our command reads what `trace` is, by its name or as the newest.
fn commands(page: &str) -> impl Iterator<Item = &str> {
    let blocks = page.split("\n```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let lines = blocks.flat_map(str::lines);
    // The trace is of who runs this.
    lines.map(|line| line.strip_prefix("sudo ").unwrap_or(line)).filter(|line| {
        let mut words = line.split_ascii_whitespace();
        let (ours, command, what) = (words.next(), words.next(), words.next());
        let is_newest = what.is_none_or(|word| word.starts_with('#') || word.starts_with("--"))
            && !matches!(command, Some("record" | "doctor"));
        ours == Some("ft-agent") && (is_newest || what == Some("trace"))
    })
}

#[test]
fn commands_of_pages_read_a_trace() {
    let stage = Stage::unpack("system");
    stage.agent(&["convert", "trace"]);
    stage.agent(&["analyze", "trace"]);
    let agent = Path::new(ft_tests::agent());
    let mut path = OsString::from(agent.parent().expect("the agent's folder"));
    path.push(":");
    path.push(std::env::var_os("PATH").expect("a search path"));
    let (mut ran, mut lacking) = (0, 0);
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for line in commands(&text) {
            let output = Command::new("sh")
                .args(["-c", line])
                .current_dir(stage.trace().parent().expect("a folder"))
                .env("PATH", &path)
                .stdin(Stdio::null())
                .output()
                .expect("a shell");
            let (said, errors) = [output.stdout, output.stderr]
                .map(|bytes| String::from_utf8(bytes).expect("UTF-8"))
                .into();
            // The page's program has threads and events that this one lacks, which is then said.
            let lacks =
                ["trace matches", "the trace has no "].iter().any(|why| errors.contains(why));
            let is_right =
                if lacks { said.is_empty() } else { output.status.success() && !said.is_empty() };
            assert!(is_right, "{}: `{line}`: {}\n{errors}", page.display(), output.status);
            lacking += usize::from(lacks);
            ran += 1;
        }
    }
    assert!(
        ran >= 15 && 3 * lacking < ran,
        "{lacking} of {ran} commands name something that the trace lacks"
    );
}
