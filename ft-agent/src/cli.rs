//! What can be typed. Each subcommand's flags stand beside the code that runs it, in
//! [`command`](crate::command); this is the list, and how the help groups it.
//!
//! The sections of a report have short forms (`ft-agent locks DIR`), which the help does not list: however many
//! sections there are, there are few commands.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use ft_report::sections::{self, Report};
use ft_trace::dir;

use crate::command::report::ShortArgs;
use crate::command::{
    analyze, catalogue, compare, completions, control, convert, doctor, events, export, fleet,
    live, manual, record, report, snapshot, study, tables,
};

/// Records applications and the kernel on one clock, and says why something was slow.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  ft-agent doctor                     what this machine can record, and what is missing
  ft-agent record -- ./server --port 8080
                                      run a program that embeds ft-user, until it ends
  ft-agent record -d 10s -p 4711      ten seconds of a process that already runs
  ft-agent report trace               the whole report of a trace again
  ft-agent report trace locks waits   two sections of it (`ft-agent report --help` lists them)
  ft-agent events trace               every event of a trace in words
  ft-agent compare before after       what differs between two traces, or two sets of them

Exit status: 0; 1 after an error; 2 where the command line has one; 128 + N after signal N.
That of `record` is the recorded command's, or 126 or 127 where it cannot be run; `compare --fail-if` has 3 and 4, a missed --deadline 3.";

/// One subcommand: its flags are the `Args` of the module of its name in `command`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Record(Box<record::Args>),
    Status(control::StatusArgs),
    Stop(control::StopArgs),
    Snapshot(snapshot::Args),
    #[cfg(feature = "top")]
    Top(Box<crate::command::top::Args>),
    /// Not in this agent; says how to get it.
    #[cfg(not(feature = "top"))]
    Top(crate::command::NotBuilt),
    /// Lists the sites of a running process, and which are on.
    Sites(live::SitesArgs),
    /// Switches sites of a running process, or of a recording, on.
    Enable(live::EnableArgs),
    /// Switches sites of a running process off.
    Disable(live::SwitchArgs),
    Convert(convert::Args),
    Analyze(analyze::Args),
    Report(report::Args),
    Compare(compare::Args),
    Study(study::Args),
    Events(events::Args),
    Export(export::Args),
    Catalogue(catalogue::Args),
    Fleet(fleet::Args),
    Tables(tables::Args),
    #[cfg(feature = "mcp")]
    Mcp(crate::command::mcp::Args),
    Doctor(doctor::Args),
    Completions(completions::Args),
    Manual(manual::Args),
}

/// What was meant where `--` is missing before the command that is to be recorded.
fn forgotten(error: &clap::Error, words: &[String]) -> Option<String> {
    let takes_command = ["record", "top", "study"].contains(&words.get(1)?.as_str());
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.kind() != ErrorKind::UnknownArgument || !takes_command || wrong.starts_with('-') {
        return None;
    }
    let at = words.iter().position(|word| word == wrong)?;
    Some(format!("ft-agent {} -- {}", words[1..at].join(" "), words[at..].join(" ")))
}

/// The help's groups of subcommands.
pub(crate) const GROUPS: [(&str, &[&str]); 5] = [
    ("Record", &["record", "top", "status", "snapshot", "stop", "sites", "enable", "disable"]),
    ("Look", &["report", "compare", "events", "catalogue", "fleet", "tables", "study", "mcp"]),
    ("Convert and analyse", &["convert", "analyze"]),
    ("Export", &["export"]),
    ("Check and set up the machine", &["doctor", "completions", "manual"]),
];

/// What was typed.
pub(crate) enum Typed {
    /// A subcommand.
    Command(Command),
    /// The short form of a section.
    Section(&'static Report, ShortArgs),
}

/// Reads the command line; help and mistakes in it end the program. Says who may read what this program writes.
pub(crate) fn parse() -> Typed {
    let matches = command().try_get_matches().unwrap_or_else(|error| {
        let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        let words: Vec<String> = words.collect();
        // Nothing can be done about a stream that does not take it.
        let _ = error.print();
        if let Some(meant) = forgotten(&error, &words) {
            eprintln!("\nThe command stands after `--`: {meant}");
        }
        std::process::exit(error.exit_code())
    });
    if let Some(rights) = rights(&matches) {
        dir::set_rights(rights);
    }
    of_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Of all commands.
const MODE: &str = "mode";

fn mode() -> Arg {
    let octal = |text: &str| match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err("write the rights as for chmod, for example 750"),
    };
    Arg::new(MODE)
        .hide_short_help(true)
        .long(MODE)
        .value_name("OCTAL")
        .value_parser(octal)
        .global(true)
        .help("Rights of new directories, as for chmod (750)")
        .long_help(
            "Rights of new directories, as for chmod. Files get the same rights without the one to execute. Nobody but the owner \
             may write. Without this option only the owner may read what root writes, and what has groups of the kernel. Everything \
             else follows the umask.",
        )
}

/// What was typed, wherever it stood.
fn rights(matches: &ArgMatches) -> Option<u32> {
    let deeper = matches.subcommand().and_then(|(_, matches)| rights(matches));
    deeper.or_else(|| matches.try_get_one(MODE).ok().flatten().copied())
}

fn of_matches(matches: &ArgMatches) -> Result<Typed, clap::Error> {
    if let Some((name, matches)) = matches.subcommand()
        && let Some(section) = short_forms().find(|section| section.name == name)
    {
        return Ok(Typed::Section(section, ShortArgs::from_arg_matches(matches)?));
    }
    Ok(Typed::Command(Cli::from_arg_matches(matches)?.command))
}

/// The sections that have one; `study` is a command of its own, because it can record.
fn short_forms() -> impl Iterator<Item = &'static Report> {
    sections::all().iter().filter(|section| section.name != "study")
}

/// The whole grammar.
pub(crate) fn command() -> clap::Command {
    let command = Cli::command();
    let groups = grouped(&command);
    let short = |section: &Report| {
        ShortArgs::augment_args(clap::Command::new(section.name))
            .mut_arg("by", |by| by.hide(section.name != "profile"))
            .about(format!("Short for `ft-agent report DIR {}`: {}", section.name, section.about))
            .hide(true)
    };
    command
        .help_template(format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\nOptions:\n{{options}}{{after-help}}"))
        .subcommands(short_forms().map(short))
        .arg(mode())
}

/// The subcommands by group, each with its first sentence.
fn grouped(command: &clap::Command) -> String {
    let mut text = String::new();
    for (title, names) in GROUPS {
        text += &format!("\n{title}:\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            text +=
                &format!("  {name:11}  {}\n", about.map(ToString::to_string).unwrap_or_default());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_lists_every_command_once_and_no_section() {
        let command = command();
        command.clone().debug_assert();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut visible: Vec<&str> = visible.map(clap::Command::get_name).collect();
        listed.sort_unstable();
        visible.sort_unstable();
        assert_eq!(listed, visible);
        let help = command.clone().render_help().to_string();
        assert!(help.contains("\n  report       Prints what the analyses have found"), "{help}");
        assert!(!help.contains("\n  locks"), "{help}");
    }

    #[test]
    fn every_command_has_examples_and_prints_json() {
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(examples.contains("Examples:\n  "), "{name}: {examples}");
            assert!(examples.contains(&format!("ft-agent {name} ")), "{name}: {examples}");
            let json = command.get_arguments().any(|arg| arg.get_long() == Some("json"));
            // A script for a shell, a page for `man`, and what is JSON both ways.
            assert_eq!(json, !["completions", "manual", "mcp"].contains(&name), "{name}");
        }
    }

    #[test]
    fn the_short_help_of_a_recording_is_a_screen() {
        let mut command = Cli::command();
        let record = command.find_subcommand_mut("record").expect("there is one");
        let (short, long) =
            (record.render_help().to_string(), record.render_long_help().to_string());
        assert!(short.lines().count() <= 40, "{short}");
        assert!(short.contains("--probe") && !short.contains("--ring-size"), "{short}");
        assert!(long.contains("--ring-size") && long.contains("Kernel:"), "{long}");
    }

    #[test]
    fn a_command_without_the_dashes_is_answered_with_what_was_meant() {
        let meant = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let error = command().try_get_matches_from(&words).expect_err(line);
            forgotten(&error, &words)
        };
        assert_eq!(meant("ft-agent record ls -l").as_deref(), Some("ft-agent record -- ls -l"));
        assert_eq!(
            meant("ft-agent record -d 5s ls").as_deref(),
            Some("ft-agent record -d 5s -- ls")
        );
        assert_eq!(meant("ft-agent record --nonsense"), None);
        assert_eq!(meant("ft-agent compare"), None);
    }

    #[test]
    fn rights_are_said_anywhere() {
        let said = |words: &str| {
            let words = words.split(' ');
            command().try_get_matches_from(words).map(|matches| rights(&matches))
        };
        for words in
            ["--mode 750 report trace", "report trace --mode 750", "locks --mode 750 trace"]
        {
            assert_eq!(said(&format!("ft-agent {words}")).unwrap(), Some(0o750), "{words}");
        }
        assert_eq!(said("ft-agent report trace").unwrap(), None);
        for wrong in ["rw", "8", "1777"] {
            assert!(said(&format!("ft-agent report trace --mode {wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_section_has_a_short_form() {
        for section in short_forms() {
            let typed =
                command().try_get_matches_from(["ft-agent", section.name, "trace", "--json"]);
            let typed = of_matches(&typed.unwrap()).unwrap();
            assert!(matches!(typed, Typed::Section(found, _) if found.name == section.name));
        }
    }
}
