//! What is asked of Debian's package manager, and of those of the systems that are made of it.

use std::{
    collections::HashSet,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::workspace::line;

/// What one would type behind `apt-get` to install these packages. Debian's `rustc` cannot stand beside Debian's `rustup`, which
/// nobody would give for it; what else stands in the way is another version of the same.
pub(crate) fn installation<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let keep = names.contains(&"rustc").then_some("--no-remove");
    let flags = ["install", "-y", "--no-install-recommends"];
    flags.into_iter().chain(keep).chain(names.iter().copied()).collect()
}

/// An `apt-get` with the rights to install.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Apt {
    /// What stands before a command that needs root.
    sudo: &'static [&'static str],
}

impl Apt {
    pub(crate) fn with(sudo: &'static [&'static str]) -> Apt {
        Apt { sudo }
    }

    /// Fetches what there is.
    ///
    /// # Errors
    ///
    /// When the network or the archive cannot be reached.
    pub(crate) fn update(self) -> Result<()> {
        self.run(&["update"])
    }

    /// Installs these packages, all or none.
    ///
    /// # Errors
    ///
    /// When one of them cannot be had.
    pub(crate) fn install(self, names: &[&str]) -> Result<()> {
        self.run(&installation(names))
    }

    fn run(self, args: &[&str]) -> Result<()> {
        let frontend = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"];
        let words = [self.sudo, &frontend, args].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        quietly(&mut command)
    }
}

/// Which of these packages this release of the distribution has; `None` where apt does not say.
pub(crate) fn offered(names: &[&str]) -> Option<HashSet<String>> {
    let mut policy = Command::new("apt-cache");
    let output = policy.arg("policy").args(names).env("LC_ALL", "C").output().ok()?;
    output.status.success().then(|| candidates(&String::from_utf8_lossy(&output.stdout)))
}

/// The packages of `apt-cache policy` that have a version to install. One that is not known has no lines; one that others
/// only mention has a candidate `(none)`.
fn candidates(policy: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    let mut package = "";
    for line in policy.lines() {
        if let Some(name) = line.strip_suffix(':').filter(|name| !name.starts_with(' ')) {
            package = name;
        } else if let Some(version) = line.trim_start().strip_prefix("Candidate: ")
            && version != "(none)"
        {
            found.insert(package.to_owned());
        }
    }
    found
}

/// Runs a command that says nothing unless it fails: then the error has its last words.
fn quietly(command: &mut Command) -> Result<()> {
    let line = line(command);
    let output = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .with_context(|| format!("`{line}` could not be started"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    // `apt-get update` succeeds without a network, and warns.
    let complaint =
        stderr.lines().rfind(|line| line.starts_with("E:") || line.starts_with("W: Failed"));
    match (output.status.success(), complaint) {
        (true, None) => Ok(()),
        (_, Some(complaint)) => bail!("`{line}` failed: {complaint}"),
        (false, None) => bail!("`{line}` failed ({}): {}", output.status, stderr.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_offered_when_it_has_a_version() {
        let policy = "clang:\n  Installed: (none)\n  Candidate: 1:11.0-51+nmu5\n  Version table:\n     1:11.0-51+nmu5 500\n        \
                      500 http://archive bullseye/main amd64 Packages\nchromium:\n  Installed: (none)\n  Candidate: (none)\n  \
                      Version table:\npkg-config:\n  Installed: 0.29.2-1\n  Candidate: 0.29.2-1\n";
        let expected = ["clang", "pkg-config"].map(str::to_owned);
        assert_eq!(candidates(policy), HashSet::from(expected));
        assert!(candidates("").is_empty());
    }

    #[test]
    fn a_compiler_is_not_installed_in_place_of_another() {
        let keeps = |names: &[&str]| installation(names).contains(&"--no-remove");
        assert!(keeps(&["rustc", "llvm-22-dev"]));
        assert!(!keeps(&["rustc-web", "llvm-22-dev"]) && !keeps(&["qemu-system-x86"]));
        let words = installation(&["clang"]).join(" ");
        assert_eq!(words, "install -y --no-install-recommends clang");
    }

    #[test]
    fn a_command_that_fails_tells_its_last_words_only() {
        let run =
            |script| quietly(Command::new("sh").args(["-c", script])).map_err(|e| e.to_string());
        assert_eq!(run("echo noise; echo more >&2"), Ok(()));
        let error = run("echo 'W: Failed to fetch a' >&2; echo 'E: no package b' >&2; exit 100")
            .unwrap_err();
        assert!(error.ends_with("failed: E: no package b"), "{error}");
        let error = run("echo 'W: Failed to fetch a' >&2").unwrap_err();
        assert!(
            error.ends_with("W: Failed to fetch a"),
            "apt-get update without a network: {error}"
        );
        let error = run("echo rubbish >&2; exit 3").unwrap_err();
        assert!(error.contains("exit status: 3") && error.ends_with("rubbish"), "{error}");
    }
}
