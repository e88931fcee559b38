//! `cargo xtask roots [NAME…]`: what a newcomer does first, in other distributions than this machine's.
//!
//! Each is a root directory that `debootstrap` makes with what a developer has; in it, on this machine's kernel and with its
//! Rust, a clone of what is committed here is built, and the demo recorded. By hand: each takes some minutes and a gigabyte.
//! What is said in Fedora and Arch, which have no `debootstrap`, tests of `setup.rs` say.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::{self, cargo_home, in_path, is_root, output, root, target_dir};

/// The suite of the archive, and what it is.
type Release = (&'static str, &'static str);

const ALL: [Release; 7] = [
    ("bullseye", "Debian 11"),
    ("bookworm", "Debian 12"),
    ("trixie", "Debian 13"),
    ("sid", "Debian sid"),
    ("jammy", "Ubuntu 22.04"),
    ("noble", "Ubuntu 24.04"),
    ("resolute", "Ubuntu 26.04"),
];

/// Runs in mounts of its own, which end with it: the root, the toolchain, the clone, what is downloaded, what is built.
const ENTER: &str = r#"
for dir in proc sys dev; do mount --rbind /$dir "$1/$dir"; done
for pair in "$2:opt/rust" "$3:root/.cargo/registry" "$4:root/feather-trace" "$5:root/feather-trace/target"; do
    mkdir -p "${pair%%:*}" "$1/${pair#*:}"
    mount --bind "${pair%%:*}" "$1/${pair#*:}"
done
cp /etc/resolv.conf "$1/etc/resolv.conf"
exec chroot "$1" /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/opt/rust/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -c "$6"
"#;

/// What is done there.
const NEWCOMER: &str = "cd /root/feather-trace
gcc -dumpfullversion && ldd --version | head -1
cargo xtask run-agent && echo recorded
cargo xtask setup --dry-run";

/// Tries the distributions that are named, or all; prints a table of what came of it.
///
/// # Errors
///
/// When a root cannot be made, or the demo not be recorded in one.
pub(crate) fn run(names: &[String]) -> Result<()> {
    let releases = named(names)?;
    let can = is_root() && in_path("debootstrap");
    ensure!(can, "`roots` makes root directories; run as root, with debootstrap installed");
    let folder = target_dir().join("roots");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut table =
        String::from("| distribution | gcc, glibc | run-agent | has not |\n|---|---|---|---|");
    let mut failed = Vec::new();
    for (suite, what) in releases {
        println!("roots: {what}");
        let said = Said(newcomer(&folder, suite, what)?);
        table += &format!("\n| {what} | {} |", said.cells().join(" | "));
        if !said.is_recorded() {
            failed.push(folder.join(format!("{suite}.txt")));
        }
    }
    println!("{table}");
    ensure!(failed.is_empty(), "no demo was recorded; what was said is in {failed:?}");
    Ok(())
}

/// Those of these names, or all.
fn named(names: &[String]) -> Result<Vec<&'static Release>> {
    let is_none = |name: &&String| ALL.iter().all(|(suite, _)| suite != name);
    if let Some(name) = names.iter().find(is_none) {
        bail!("there is no release `{name}`; `cargo xtask help` has their names");
    }
    let is_meant = |suite: &str| names.is_empty() || names.iter().any(|name| name == suite);
    Ok(ALL.iter().filter(|(suite, _)| is_meant(suite)).collect())
}

/// Makes the root if need be, and does there what a newcomer does; all that was said, which is kept beside it.
fn newcomer(folder: &Path, suite: &str, what: &str) -> Result<String> {
    let place = |extension: &str| folder.join(suite).with_extension(extension);
    let dir = made(folder, suite, what)?;
    let clone = place("src");
    let _ = fs::remove_dir_all(&clone);
    workspace::run(Command::new("git").args(["clone", "--quiet"]).arg(root()).arg(&clone))?;
    let rust = output(Command::new("rustc").args(["--print", "sysroot"]).current_dir(root()))?;
    let registry = cargo_home().context("cargo has no home")?.join("registry");
    let said = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-ec", ENTER, "sh"])
        .args([&dir, Path::new(rust.trim()), &registry, &clone, &place("target")])
        .arg(format!("exec 2>&1\n{NEWCOMER}"))
        .output()
        .context("`unshare` could not be started")?;
    let text = String::from_utf8_lossy(&said.stdout) + String::from_utf8_lossy(&said.stderr);
    fs::write(place("txt"), text.as_bytes())?;
    Ok(text.into_owned())
}

/// The root directory; what of one is left that could not be finished is removed.
fn made(folder: &Path, suite: &str, what: &str) -> Result<PathBuf> {
    let dir = folder.join(suite);
    if dir.exists() {
        return Ok(dir);
    }
    let new = folder.join(format!("{suite}.new"));
    let _ = fs::remove_dir_all(&new);
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.args(["--variant=minbase", "--include=gcc,libc6-dev,git,ca-certificates"]);
    // Ubuntu's releases are made by one script, which Debian's package has under the name of the first of them, and signed
    // by keys that it does not have.
    let mut place = vec![OsStr::new(suite), new.as_os_str()];
    if what.starts_with("Ubuntu") {
        debootstrap.args(["--components=main,universe", "--no-check-gpg"]);
        place.extend(["", "gutsy"].map(OsStr::new));
    }
    output(debootstrap.args(place))?;
    let sources = new.join("etc/apt/sources.list");
    let line = fs::read_to_string(&sources)?;
    fs::write(sources, line.clone() + &updates(&line, suite))?;
    // A mirror may be days behind.
    fs::write(new.join("etc/apt/apt.conf.d/late"), "Acquire::Check-Valid-Until \"false\";\n")?;
    fs::rename(&new, &dir)?;
    Ok(dir)
}

/// The sources beside that of a release which bring what is newer, as every installer writes them.
fn updates(line: &str, suite: &str) -> String {
    let of = |what| line.replace(&format!(" {suite} "), &format!(" {suite}-{what} "));
    let security = of("security").replace("/debian ", "/debian-security ");
    if suite == "sid" { String::new() } else { of("updates") + &security }
}

/// What was said in a root.
struct Said(String);

impl Said {
    /// The demo was recorded, with holds of its locks and with the BPF programs that are checked in.
    fn is_recorded(&self) -> bool {
        let has = |text: &str| self.0.contains(text);
        has("\nrecorded\n") && has(" holds of ") && has("programs are those that are checked in")
    }

    /// Of the table's row.
    fn cells(&self) -> [String; 3] {
        let version = |line: &str| line.rsplit(' ').next().unwrap_or_default().to_owned();
        let versions: Vec<_> = self.0.lines().take(2).map(version).collect();
        let lacking = |line: &str| {
            let names = line.split_once("this release has no package ")?.1;
            Some(names.split(';').next().unwrap_or_default().to_owned())
        };
        let lacking: Vec<_> = self.0.lines().filter_map(lacking).collect();
        let came = if self.is_recorded() { "ok" } else { "**failed**" };
        [versions.join(", "), came.into(), lacking.join(", ")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_made_of_what_was_said() {
        let text = "10.2.1\nldd (Debian GLIBC 2.31-13+deb11u11) 2.31\n\
            The BPF programs are those that are checked in, of these sources; …\n\
            locks     1,074,813 holds of 10 locks, 42.9 % nested\nrecorded\n\
            warning: this release has no package libbpf-tools, uftrace; without them …\n\
            warning: this release has no package virtiofsd; without it …\n";
        let said = Said(text.into());
        assert_eq!(said.cells(), ["10.2.1, 2.31", "ok", "libbpf-tools, uftrace, virtiofsd"]);
        for without in ["recorded\n", " holds of ", "checked in"] {
            assert_eq!(Said(text.replace(without, "")).cells()[1], "**failed**", "{without}");
        }
    }

    #[test]
    fn a_release_has_its_updates() {
        let line = "deb http://a/debian bullseye main\n";
        let expected = "deb http://a/debian bullseye-updates main\n\
                        deb http://a/debian-security bullseye-security main\n";
        assert_eq!(updates(line, "bullseye"), expected);
        let ubuntu = updates("deb http://b/ubuntu noble main\n", "noble");
        assert!(ubuntu.ends_with("deb http://b/ubuntu noble-security main\n"), "{ubuntu}");
        assert_eq!(updates("deb http://a/debian sid main\n", "sid"), "");
    }

    #[test]
    fn releases_are_chosen_by_name() {
        assert_eq!(named(&[]).unwrap().len(), ALL.len());
        assert_eq!(named(&["sid", "bullseye"].map(str::to_owned)).unwrap(), [&ALL[0], &ALL[3]]);
        let error = named(&["arch".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("no release `arch`"), "{error}");
    }
}
