//! The programs below `tests/cases`: where they are, and how each language is built.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::workspace::{in_path, output, run};

/// A program with known truth.
#[derive(Debug)]
pub(super) struct Case {
    /// Its path below `tests/cases` without its end: `locks/mutex_sleep`. No two differ in their ends alone.
    pub(super) name: String,
    pub(super) language: Language,
    source: PathBuf,
}

impl Case {
    /// Whether it is meant by a name: its own, its folder's, or its last part.
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.name == name || self.name.split('/').any(|part| part == name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    C,
    Cpp,
    Rust,
    Python,
    Shell,
    Java,
    Go,
    Node,
}

impl Language {
    /// By the end of a file's name; headers and shared files have none.
    fn of(file: &Path) -> Option<Language> {
        Some(match file.extension()?.to_str()? {
            "c" => Language::C,
            "cpp" => Language::Cpp,
            "rs" => Language::Rust,
            "py" => Language::Python,
            "sh" => Language::Shell,
            "java" => Language::Java,
            "go" => Language::Go,
            "js" => Language::Node,
            _ => return None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Language::C => "C",
            Language::Cpp => "C++",
            Language::Rust => "Rust",
            Language::Python => "Python",
            Language::Shell => "shell",
            Language::Java => "Java",
            Language::Go => "Go",
            Language::Node => "Node",
        }
    }

    /// What builds or runs it.
    fn tool(self) -> &'static str {
        match self {
            Language::C => "cc",
            Language::Cpp => "c++",
            Language::Rust => "rustc",
            Language::Python => "python3",
            Language::Shell => "bash",
            Language::Java => "javac",
            Language::Go => "go",
            Language::Node => "node",
        }
    }

    /// The tool that this machine does not have.
    pub(super) fn missing(self) -> Option<&'static str> {
        (!in_path(self.tool())).then(|| self.tool())
    }
}

/// All cases, by name: the sources one folder below this one. What lies in it itself is shared.
///
/// # Errors
///
/// When a folder cannot be read.
pub(super) fn find(folder: &Path) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for below in entries(folder)?.iter().filter(|path| path.is_dir()) {
        for source in entries(below)? {
            let Some(language) = Language::of(&source) else { continue };
            let name = source.strip_prefix(folder).expect("it is below it").with_extension("");
            let name = name.to_str().context("a name that is no text")?.to_owned();
            cases.push(Case { name, language, source });
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cases)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let read =
        fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    read.map(|entry| Ok(entry?.path())).collect()
}

/// Builds a case below `out`, as distributions do: optimised, with debugging information; returns the command that runs it.
///
/// # Errors
///
/// When it does not build.
pub(super) fn build(case: &Case, out: &Path) -> Result<Vec<OsString>> {
    let program = out.join(&case.name);
    fs::create_dir_all(program.parent().expect("a folder"))?;
    let tool = case.language.tool();
    let mut build = Command::new(tool);
    match case.language {
        Language::C | Language::Cpp => {
            build.args(["-O2", "-g", "-pthread", "-o"]).arg(&program).arg(&case.source);
        }
        Language::Rust => {
            build.args(["--edition", "2024", "-O", "-g", "-o"]).arg(&program).arg(&case.source);
        }
        Language::Go => {
            build.args(["build", "-o"]).arg(&program).arg(&case.source);
            build.env("GO111MODULE", "off").env("GOFLAGS", "").env("GOCACHE", out.join("go"));
        }
        Language::Java => {
            // Its class has the name of the file with a capital letter.
            let stem = case.source.file_stem().and_then(|stem| stem.to_str()).context("no name")?;
            let class = stem[..1].to_uppercase() + &stem[1..];
            run(build.arg("-d").arg(&program).arg(&case.source))?;
            return Ok(vec!["java".into(), "-cp".into(), program.into(), class.into()]);
        }
        Language::Python => {
            // Itself: what is on the path may be a script that looks for it, whose processes are none of the case's.
            let python = output(build.args(["-c", "import sys; print(sys.executable)"]))?;
            return Ok(vec![python.trim().into(), case.source.clone().into()]);
        }
        Language::Node => return Ok(vec![tool.into(), case.source.clone().into()]),
        // By its own name, which its process has then.
        Language::Shell => return Ok(vec![case.source.clone().into()]),
    }
    run(&mut build)?;
    Ok(vec![program.into()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::root;

    #[test]
    fn no_two_cases_have_one_name() {
        let cases = find(&root().join("tests/cases")).unwrap();
        assert!(cases.len() >= 30);
        for two in cases.windows(2) {
            assert!(two[0].name < two[1].name, "{}", two[0].name);
        }
    }
}
