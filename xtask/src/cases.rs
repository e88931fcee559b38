//! `cargo xtask cases [--agent FILE] [NAME]…`: does the first screen of a recording name the cause that a program knows?
//!
//! Each program below `tests/cases` is slow for one reason, and says at its end who lost how much time, behind whom and where
//! that one was. It is recorded as a newcomer would, by `ft-agent record -o DIR -- PROGRAM`; what that prints is to have one
//! finding with all of it.

#[path = "../../tests/common/accept.rs"]
mod accept;
mod programs;
mod screen;
mod truth;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    build::{self, Profile},
    packaged, setup,
    steps::Steps,
    workspace::{root, target_dir},
};
use programs::Case;
use screen::{Answer, Screen};
use truth::Truth;

/// A case runs for 3 s at most; the rest is for the agent, which may be one that is not optimised, on a busy machine.
const LONGEST_SECONDS: &str = "180";

/// What became of a case.
enum Outcome {
    Recorded {
        truth: Truth,
        answer: Answer,
    },
    /// It cannot run on this machine.
    NotRun(String),
    Failed(String),
}

/// Builds and records all cases, or those that are named: by their path below `tests/cases`, without its end, or a part of it.
///
/// Prints a table. With `FT_ACCEPT=1` what has been answered is added to the list of what must stay answered.
///
/// # Errors
///
/// When nothing has such a name, or a case that is on the list is not answered.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (agent, names) = match arguments {
        [option, agent, names @ ..] if option == "--agent" => (Some(PathBuf::from(agent)), names),
        _ => (None, arguments),
    };
    let folder = root().join("tests/cases");
    let cases = chosen(programs::find(&folder)?, names)?;
    let agent = agent.map_or_else(build_agent, Ok)?;
    let out = target_dir().join("cases");
    let mut answered = BTreeSet::new();
    let mut counts = [0; 4];
    let mut unanswered = Vec::new();
    println!("{}", line("case", "language", ["who", "behind", "where", "time"], "truth"));
    for case in &cases {
        match record(&agent, case, &out) {
            Outcome::Recorded { truth, answer } => {
                let found = answer
                    .parts
                    .map(|part| part.map_or("-", |found| if found { "yes" } else { "no" }));
                println!("{}", line(&case.name, case.language.name(), found, &truth.to_string()));
                for (count, part) in counts.iter_mut().zip(answer.parts) {
                    *count += usize::from(part == Some(true));
                }
                if answer.is_whole() {
                    answered.insert(case.name.clone());
                } else {
                    unanswered.push((case.name.clone(), answer.nearest));
                }
            }
            Outcome::NotRun(why) => {
                println!(
                    "{}",
                    line(&case.name, case.language.name(), [""; 4], &format!("not run: {why}"))
                );
            }
            Outcome::Failed(why) => {
                println!(
                    "{}",
                    line(&case.name, case.language.name(), [""; 4], &format!("failed: {why}"))
                );
                unanswered.push((case.name.clone(), why));
            }
        }
    }
    let [who, behind, place, time] = counts.map(|count| count.to_string());
    println!("{}", line("found", "", [&who, &behind, &place, &time], ""));
    println!("answered {} of {}", answered.len(), answered.len() + unanswered.len());
    for (name, nearest) in &unanswered {
        println!("  {name}: {nearest}");
    }
    println!("screens: {}", out.join("screens").display());
    let list = folder.join("answered.txt");
    if accept::accepts() {
        accept(&list, &answered)?;
    }
    let must = read_list(&list)?;
    let lost: Vec<_> = unanswered
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| must.contains(*name))
        .collect();
    ensure!(lost.is_empty(), "answered once and not any more: {}", lost.join(", "));
    Ok(())
}

/// One row of the table.
fn line(case: &str, language: &str, parts: [&str; 4], truth: &str) -> String {
    let [who, behind, place, time] = parts;
    format!("{case:<30} {language:<8} {who:<4} {behind:<6} {place:<5} {time:<4} {truth}")
        .trim_end()
        .to_owned()
}

/// The cases with one of the names; all, if there is none.
fn chosen(cases: Vec<Case>, names: &[String]) -> Result<Vec<Case>> {
    for name in names {
        let folder = "tests/cases";
        ensure!(
            cases.iter().any(|case| case.is_named(name)),
            "there is no case `{name}` below {folder}"
        );
    }
    let wanted = |case: &Case| names.is_empty() || names.iter().any(|name| case.is_named(name));
    Ok(cases.into_iter().filter(wanted).collect())
}

/// The agent as `run-agent` builds it.
fn build_agent() -> Result<PathBuf> {
    let mut steps = Steps::new(if packaged::will_do() { 1 } else { 3 });
    if !packaged::will_do() {
        steps.next("tools for the BPF programs", None);
        setup::run(&[]);
        build::bpf(&mut steps);
    }
    build::agent(&mut steps, Profile::Quick, false)
}

/// Builds and records one case, and compares what both said. What the recording printed stays in a file.
fn record(agent: &Path, case: &Case, out: &Path) -> Outcome {
    match try_record(agent, case, out) {
        Ok(outcome) => outcome,
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

fn try_record(agent: &Path, case: &Case, out: &Path) -> Result<Outcome> {
    if let Some(missing) = case.language.missing() {
        return Ok(Outcome::NotRun(format!("there is no {missing} here")));
    }
    let program = programs::build(case, &out.join("programs"))?;
    let trace = out.join("trace");
    if trace.exists() {
        fs::remove_dir_all(&trace)?;
    }
    let mut recording = Command::new("timeout");
    recording
        .args(["-k", "5", LONGEST_SECONDS])
        .arg(agent)
        .args(["record", "-o"])
        .arg(&trace)
        .arg("--");
    let output = recording.args(program).output().context("`timeout` could not be started")?;
    let (printed, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let screen = out.join("screens").join(&case.name).with_extension("txt");
    fs::create_dir_all(screen.parent().expect("a folder"))?;
    // Which of both it is printed to does not matter to who reads it.
    let said_by_agent = format!("{printed}\n{errors}");
    fs::write(&screen, &said_by_agent)?;
    let Some(said) = errors.lines().find_map(|line| line.strip_prefix("TRUTH ")) else {
        bail!("no truth ({}): {}", output.status, errors.lines().last().unwrap_or_default());
    };
    if let Some(why) = said.strip_prefix("none ") {
        return Ok(Outcome::NotRun(why.to_owned()));
    }
    // What a case ends with is what its recording ends with.
    ensure!(output.status.success(), "the recording ended with {}", output.status);
    let truth = Truth::parse(said)?;
    let answer = Screen::new(&said_by_agent).answer(&truth);
    Ok(Outcome::Recorded { truth, answer })
}

/// The names of a list: one in each line that is no comment.
fn read_list(list: &Path) -> Result<BTreeSet<String>> {
    let text =
        fs::read_to_string(list).with_context(|| format!("{} cannot be read", list.display()))?;
    Ok(text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(str::to_owned)
        .collect())
}

/// Adds names to a list.
fn accept(list: &Path, answered: &BTreeSet<String>) -> Result<()> {
    let text = fs::read_to_string(list)?;
    let head: String =
        text.lines().filter(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    let all = &read_list(list)? | answered;
    let names: String = all.iter().map(|name| format!("{name}\n")).collect();
    Ok(fs::write(list, head + &names)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_cases() {
        let folder = root().join("tests/cases");
        let cases = programs::find(&folder).unwrap();
        for name in read_list(&folder.join("answered.txt")).unwrap() {
            assert!(cases.iter().any(|case| case.name == name), "{name}");
        }
    }

    #[test]
    fn a_name_is_a_folder_or_a_part() {
        let cases = || programs::find(&root().join("tests/cases")).unwrap();
        let names = |name: &str| chosen(cases(), &[name.to_owned()]);
        assert_eq!(names("locks/mutex_sleep").unwrap().len(), 1);
        assert!(names("locks").unwrap().len() > 5);
        assert_eq!(names("mutex_sleep").unwrap().len(), 1);
        assert!(names("no such case").is_err());
        assert_eq!(chosen(cases(), &[]).unwrap().len(), cases().len());
    }
}
