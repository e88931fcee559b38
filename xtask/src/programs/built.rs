//! The test programs that cargo builds.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use super::Program;
use crate::workspace::{line, root};

/// Builds test programs by a `cargo test --no-run`.
///
/// # Errors
///
/// When they do not build.
pub(crate) fn build(build: &mut Command) -> Result<Vec<Program>> {
    println!("+ {}", line(build));
    build.current_dir(root());
    build.args(["--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit());
    let output = build.output().context("cargo could not be started")?;
    if !output.status.success() {
        bail!("the tests do not build");
    }
    Ok(programs(&String::from_utf8_lossy(&output.stdout)))
}

/// The test programs among cargo's messages, of which each is a line.
fn programs(messages: &str) -> Vec<Program> {
    messages.lines().filter_map(program).collect()
}

fn program(message: &str) -> Option<Program> {
    let profile = message.split("\"profile\":{").nth(1)?.split('}').next()?;
    if !profile.contains("\"test\":true") {
        return None;
    }
    let text = |key: &str| message.split(&format!("\"{key}\":\"")).nth(1)?.split('"').next();
    let package = Path::new(text("manifest_path")?).parent()?.to_owned();
    let kind = message.split("\"kind\":[\"").nth(1)?.split('"').next()?;
    let kind = if kind == "test" { String::new() } else { format!("{kind} ") };
    let folder = package.file_name()?.to_string_lossy();
    let name = format!("{folder} {kind}{}", text("name")?);
    let executable = text("executable")?.into();
    Some(Program { name, executable, package, arguments: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_of_tests_are_found_among_the_messages_of_cargo() {
        let artifact = |kind: &str, name: &str, test: bool, executable: &str| {
            format!(
                "{{\"reason\":\"compiler-artifact\",\"manifest_path\":\"/w/ft-agent/Cargo.toml\",\"target\":{{\"kind\":[\"{kind}\"],\
                 \"name\":\"{name}\",\"test\":true}},\"profile\":{{\"opt_level\":\"0\",\"test\":{test}}},\
                 \"executable\":{executable},\"fresh\":true}}\n"
            )
        };
        let messages = [
            artifact("lib", "ft_agent", false, "null"),
            artifact("lib", "ft_agent", true, "\"/t/ft_agent-1\""),
            artifact("bin", "ft-agent", false, "\"/t/ft-agent\""),
            artifact("test", "page", true, "\"/t/page-2\""),
            "{\"reason\":\"build-finished\",\"success\":true}\n".into(),
        ];
        let found = programs(&messages.concat());
        let program = |name: &str, executable: &str| Program {
            name: name.into(),
            executable: executable.into(),
            package: "/w/ft-agent".into(),
            arguments: Vec::new(),
        };
        let expected = [
            program("ft-agent lib ft_agent", "/t/ft_agent-1"),
            program("ft-agent page", "/t/page-2"),
        ];
        assert_eq!(found, expected);
    }
}
