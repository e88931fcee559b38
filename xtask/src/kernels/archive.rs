//! Kernels out of Debian's archive, which `apt` downloads and verifies.
//!
//! With a configuration, lists and a cache of its own: the machine's are neither used nor changed, but for the address
//! of its mirror and the key of the archive.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::{
    guest::{self, Image},
    releases::Release,
};
use crate::workspace::{self, output};

/// Who signs the archive.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The kernel and its first file system, made when they are not there yet: removing `folder` downloads them again.
///
/// # Errors
///
/// When the archive cannot be reached, or does not have it.
pub(super) fn image(release: &Release, folder: &Path) -> Result<Image> {
    let image = Image::of(&folder.join(release.name));
    if image.exists() {
        return Ok(image);
    }
    println!("kernels: downloading Linux {} from Debian's {}", release.name, release.suite);
    let work = folder.join(format!("{}.new", release.name));
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    let root = work.join("root");
    fs::create_dir_all(&root).with_context(|| format!("cannot make {}", root.display()))?;
    let apt = Apt::new(&work, release.suite)?;
    for deb in apt.download(release.package)? {
        workspace::run(Command::new("dpkg-deb").arg("-x").arg(deb).arg(&root))?;
    }
    guest::make_image(&root, &Image::of(&work))?;
    fs::remove_dir_all(root)?;
    apt.clear()?;
    let place = folder.join(release.name);
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    fs::rename(&work, &place)?;
    Ok(image)
}

/// An apt of one suite.
struct Apt {
    folder: PathBuf,
}

impl Apt {
    fn new(folder: &Path, suite: &str) -> Result<Apt> {
        let apt = Apt { folder: folder.join("apt") };
        for name in ["lists/partial", "archives/partial", "empty"] {
            let path = apt.folder.join(name);
            fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        }
        let place = apt.folder.display();
        fs::write(
            apt.folder.join("sources.list"),
            format!("deb [arch=amd64 signed-by={KEYRING}] {} {suite} main\n", mirror()?),
        )?;
        fs::write(
            apt.folder.join("apt.conf"),
            format!(
                "Dir::State \"{place}\";\nDir::State::lists \"{place}/lists\";\n\
                 Dir::State::status \"/dev/null\";\nDir::Cache \"{place}\";\n\
                 Dir::Etc::sourcelist \"{place}/sources.list\";\n\
                 Dir::Etc::sourceparts \"{place}/empty\";\n\
                 Dir::Etc::preferences \"{place}/none\";\n\
                 Dir::Etc::preferencesparts \"{place}/empty\";\n\
                 APT::Architecture \"amd64\";\nAPT::Architectures \"amd64\";\n\
                 APT::Sandbox::User \"root\";\nAcquire::Languages \"none\";\n\
                 Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n"
            ),
        )?;
        workspace::run(apt.command("apt-get").args(["-qq", "update"]))?;
        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).env("APT_CONFIG", self.folder.join("apt.conf"));
        command
    }

    /// Downloads the kernel that a package depends on; returns its files.
    fn download(&self, package: &str) -> Result<Vec<PathBuf>> {
        let mut depends = self.command("apt-cache");
        depends.args(["depends", "--recurse", "--no-recommends", "--no-suggests"]);
        depends.args(["--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances", package]);
        let list = output(&mut depends)?;
        let packages = kernels(&list);
        if packages.is_empty() {
            bail!("`{package}` depends on no kernel");
        }
        workspace::run(self.command("apt-get").args(["-qq", "download"]).args(&packages))?;
        let entries = fs::read_dir(&self.folder)?.collect::<Result<Vec<_>, _>>()?;
        let paths = entries.into_iter().map(|entry| entry.path());
        Ok(paths.filter(|path| path.extension().is_some_and(|e| e == "deb")).collect())
    }

    fn clear(&self) -> Result<()> {
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

/// The packages of a list of dependencies that are a kernel's, which have a version in their name.
fn kernels(depends: &str) -> Vec<&str> {
    let is_kernel = |name: &&str| {
        let version = ["linux-image-", "linux-binary-", "linux-modules-"]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix));
        version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
    };
    let mut names: Vec<&str> = depends.lines().filter(is_kernel).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_of_a_kernel_have_its_version() {
        let of_7 = "linux-image-cloud-amd64\n  Depends: linux-image-7.3.4+deb13-cloud-amd64\n\
                    linux-image-7.3.4+deb13-cloud-amd64\n  PreDepends: linux-base\nlinux-base\n\
                    linux-base-7.3.4+deb13-cloud-amd64\nlinux-modules-7.3.4+deb13-cloud-amd64\n\
                    linux-modules-cloud-amd64\nlinux-binary-7.3.4+deb13-cloud-amd64\ninitramfs-tools\n";
        assert_eq!(
            kernels(of_7),
            [
                "linux-binary-7.3.4+deb13-cloud-amd64",
                "linux-image-7.3.4+deb13-cloud-amd64",
                "linux-modules-7.3.4+deb13-cloud-amd64"
            ]
        );
        assert!(kernels("linux-image-cloud-amd64\nkmod\n").is_empty());
    }
}
