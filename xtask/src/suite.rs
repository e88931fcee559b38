//! Packages of any suite of Debian's archive, which `apt` downloads and verifies, whatever suite this machine has.
//!
//! With a configuration, lists and a cache of its own: the machine's are neither used nor changed, but for the address
//! of its mirror and the key of the archive.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::workspace::{self, output};

/// Who signs the archive.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// An apt of one suite.
pub(crate) struct Suite {
    folder: PathBuf,
}

impl Suite {
    /// Fetches what there is in a suite; what that takes lies in `folder` until it is [cleared](Suite::clear).
    ///
    /// # Errors
    ///
    /// When the folder cannot be made, or the archive not be reached.
    pub(crate) fn open(folder: &Path, suite: &str) -> Result<Suite> {
        let opened = Suite { folder: folder.to_owned() };
        for name in ["lists/partial", "archives/partial", "empty"] {
            let path = opened.folder.join(name);
            fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        }
        let place = opened.folder.display();
        fs::write(
            opened.folder.join("sources.list"),
            format!("deb [arch=amd64 signed-by={KEYRING}] {} {suite} main\n", mirror()?),
        )?;
        fs::write(
            opened.folder.join("apt.conf"),
            format!(
                "Dir::State \"{place}\";\nDir::State::lists \"{place}/lists\";\n\
                 Dir::State::status \"/dev/null\";\nDir::Cache \"{place}\";\n\
                 Dir::Etc::sourcelist \"{place}/sources.list\";\n\
                 Dir::Etc::sourceparts \"{place}/empty\";\n\
                 Dir::Etc::preferences \"{place}/none\";\n\
                 Dir::Etc::preferencesparts \"{place}/empty\";\n\
                 APT::Architecture \"amd64\";\nAPT::Architectures \"amd64\";\n\
                 APT::Update::Error-Mode \"any\";\n\
                 APT::Sandbox::User \"root\";\nAcquire::Languages \"none\";\n\
                 Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n"
            ),
        )?;
        workspace::run(opened.command("apt-get").args(["-qq", "update"]))?;
        Ok(opened)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).env("APT_CONFIG", self.folder.join("apt.conf"));
        command
    }

    /// What a package depends on, and what that does, as `apt-cache` lists it.
    ///
    /// # Errors
    ///
    /// When there is no such package.
    pub(crate) fn dependencies(&self, package: &str) -> Result<String> {
        let mut depends = self.command("apt-cache");
        depends.args(["depends", "--recurse", "--no-recommends", "--no-suggests"]);
        depends.args(["--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances", package]);
        output(&mut depends)
    }

    /// Downloads packages, and these alone, and unpacks them below `root`.
    ///
    /// # Errors
    ///
    /// When one cannot be had.
    pub(crate) fn unpack(&self, packages: &[&str], root: &Path) -> Result<()> {
        fs::create_dir_all(root).with_context(|| format!("cannot make {}", root.display()))?;
        workspace::run(self.command("apt-get").args(["-qq", "download"]).args(packages))?;
        for entry in fs::read_dir(&self.folder)? {
            let deb = entry?.path();
            if deb.extension().is_some_and(|extension| extension == "deb") {
                workspace::run(Command::new("dpkg-deb").arg("-x").arg(deb).arg(root))?;
            }
        }
        Ok(())
    }

    /// Removes what was downloaded.
    ///
    /// # Errors
    ///
    /// When it cannot be removed.
    pub(crate) fn clear(self) -> Result<()> {
        Ok(fs::remove_dir_all(&self.folder)?)
    }
}

/// The mirror that this machine has Debian from.
fn mirror() -> Result<String> {
    let mut targets = Command::new("apt-get");
    targets.args(["indextargets", "--format", "$(REPO_URI)"]);
    targets.args(["Created-By: Packages", "Origin: Debian", "Label: Debian"]);
    let found = output(&mut targets)?;
    let first = found.lines().next();
    first.map(str::to_owned).context("apt has no list of Debian; run `apt-get update` once")
}
