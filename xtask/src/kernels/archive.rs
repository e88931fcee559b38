//! Kernels out of Debian's archive.

use std::{fs, path::Path};

use anyhow::{Result, bail};

use super::{
    guest::{self, Image},
    releases::Release,
};
use crate::suite::Suite;

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
    let suite = Suite::open(&work.join("apt"), release.suite)?;
    let list = suite.dependencies(release.package)?;
    let packages = kernels(&list);
    if packages.is_empty() {
        bail!("`{}` depends on no kernel", release.package);
    }
    suite.unpack(&packages, &root)?;
    guest::make_image(&root, &Image::of(&work))?;
    fs::remove_dir_all(root)?;
    suite.clear()?;
    let place = folder.join(release.name);
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    fs::rename(&work, &place)?;
    Ok(image)
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
