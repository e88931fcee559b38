//! `cargo xtask package`: what is published. The crates, each built from its own package, a Debian package, and a tarball
//! of an agent that needs no library of the system.

mod deb;
mod tarball;

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{
    build::{self, Profile},
    steps::Steps,
    workspace::{self, cargo, cargo_home, output, step, target_dir},
};

/// Members of the workspace that are not published.
const UNPUBLISHED: [&str; 4] = ["xtask", "ft-papers", "ft-tests", "ft-user-capi"];

/// What only a publisher knows: keys of `[workspace.metadata.publisher]` in Cargo.toml. CONTRIBUTING.md says what each is for.
const PUBLISHER: [&str; 3] = ["repository", "maintainer", "security-contact"];

/// The status with which `packaging/try` says that nothing can be tried here.
const CANNOT: i32 = 75;

/// Makes and checks all packages, and says where they lie.
///
/// # Errors
///
/// When one of them cannot be made, or does not do what it should.
pub(crate) fn run() -> Result<()> {
    let mut steps = Steps::new(8);
    build::bpf(&mut steps);
    steps.next("the crates, each built from its own package", Some(300));
    crates(true)?;
    let programs = build::agent(&mut steps, Profile::Release, false)?;
    steps.next("ft-load", None);
    step(cargo().args(["build", "--release", "--package", "ft-load"]))?;
    steps.next("the Debian package", None);
    let programs = programs.parent().expect("a program is in a directory");
    let package = deb::build(programs, deb::Compression::Small)?;
    steps.next("installing, using and removing it", None);
    println!("{}", tried(&package)?);
    steps.next("the tarball with a static agent", Some(400));
    let tarball = tarball::build(&programs.join("libft_preload.so"))?;
    steps.next("what a publisher has to fill in", None);
    missing(&workspace::root())?.iter().for_each(|what| println!("missing: {what}"));
    let folder = target_dir().join("package");
    println!("{}\n{}\n{}", folder.display(), package.display(), tarball.display());
    Ok(())
}

/// Packages every crate that is published; `built`: and builds each from its package, as one who downloads it does.
fn crates(built: bool) -> Result<()> {
    let mut package = cargo();
    package.args(["package", "--workspace", "--allow-dirty", "--quiet"]);
    if built {
        crates(false)?;
        let programs = target_dir().join("from-packages");
        let home = cargo_home().context("neither CARGO_HOME nor HOME is set; set one")?;
        forget(&target_dir().join("package"), &home, &programs)?;
        // What several of them depend on is built once, and not below each package.
        package.env("CARGO_TARGET_DIR", programs);
    }
    package.args(UNPUBLISHED.iter().flat_map(|name| ["--exclude", *name]));
    if !built {
        package.arg("--no-verify");
    }
    step(&mut package)
}

/// Removes what cargo has unpacked of packages of these names in other runs, and notes that it has built it. It would use both
/// instead of the packages, as their version has not changed. Sources lie where it unpacks downloads, below registries without a
/// name, which is how it calls a folder of packages.
fn forget(packages: &Path, home: &Path, programs: &Path) -> Result<()> {
    let of_registry = |path: &PathBuf| name(path).starts_with('-');
    let sources: Vec<_> = entries(&home.join("registry/src"))?.filter(of_registry).collect();
    let built: Vec<_> = entries(&programs.join("debug/.fingerprint"))?.collect();
    for package in
        entries(packages)?.filter_map(|path| name(&path).strip_suffix(".crate").map(str::to_owned))
    {
        let unpacked = sources.iter().map(|registry| registry.join(&package));
        // Behind the name of a crate is a number, as behind that of a package its version.
        let of_crate = |path: &&PathBuf| {
            let crate_name = |name: &str| name.rsplit_once('-').map(|(name, _)| name.to_owned());
            crate_name(&name(path)) == crate_name(&package)
        };
        for old in unpacked.chain(built.iter().filter(of_crate).cloned()).filter(|old| old.exists())
        {
            fs::remove_dir_all(&old).with_context(|| format!("cannot remove {}", old.display()))?;
        }
    }
    Ok(())
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What a folder has; nothing if there is none.
fn entries(folder: &Path) -> Result<impl Iterator<Item = PathBuf> + use<>> {
    let read = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        read => Some(read.with_context(|| format!("cannot read {}", folder.display()))?),
    };
    Ok(read.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())))
}

/// The part of this that a test run makes: from programs that it has built anyway. Says what came of it.
///
/// # Errors
///
/// As [`run`].
pub(crate) fn check() -> Result<String> {
    crates(false)?;
    // All of them, and with examples: so their crates are those of tests, and what these have built is not built once more.
    let all = ["build", "--quiet", "--workspace", "--all-features", "--bins", "--examples"];
    step(cargo().args(all))?;
    step(cargo().args(["build", "--quiet", "--package", "ft-preload"]))?;
    tried(&deb::build(&target_dir().join("debug"), deb::Compression::Fast)?)
}

/// Installs the package into a copy of this system, uses and removes it.
fn tried(package: &Path) -> Result<String> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private"]);
    command.arg(workspace::root().join("packaging/try")).arg(package);
    let output = command.output().context("`unshare` could not be started; install util-linux")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let what = said.lines().collect::<Vec<_>>().join("; ");
    match output.status.code() {
        Some(0) => Ok(format!("Debian package: {what}")),
        Some(CANNOT) => Ok(format!("Debian package: skipped: {what}")),
        _ => bail!("{said}{}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// What a publisher has not said yet.
fn missing(root: &Path) -> Result<Vec<String>> {
    let said = publisher(root)?;
    let is_said = |key: &&str| said.iter().any(|(name, value)| name == key && !value.is_empty());
    let missing = PUBLISHER.into_iter().filter(|key| !is_said(key));
    Ok(missing.map(|key| format!("{key} in [workspace.metadata.publisher]")).collect())
}

/// What a publisher says: names and values.
fn publisher(root: &Path) -> Result<Vec<(String, String)>> {
    let manifest = read(&root.join("Cargo.toml"))?;
    let lines = manifest.lines().skip_while(|line| *line != "[workspace.metadata.publisher]");
    let lines = lines.skip(1).take_while(|line| !line.starts_with('['));
    let values =
        lines.filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" = "));
    Ok(values.map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned())).collect())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// When the newest commit was made, seconds since 1970; 0 outside of a repository.
fn commit_time() -> String {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"]).current_dir(workspace::root());
    output(&mut git).map_or_else(|_| "0".to_owned(), |time| time.trim().to_owned())
}

/// Where the packaging's own files lie.
fn files() -> PathBuf {
    workspace::root().join("packaging")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_unpacked_and_built_of_earlier_packages_is_forgotten_and_nothing_else() {
        let root = std::env::temp_dir().join(format!("xtask-unpacked-{}", std::process::id()));
        let [packages, home, programs] =
            ["package", "home", "programs"].map(|name| root.join(name));
        forget(&packages, &home, &programs).expect("there is nothing");
        fs::create_dir_all(packages.join("ft-trace-0.1.0")).unwrap();
        fs::write(packages.join("ft-user-0.1.0.crate"), "").unwrap();
        let kept = [
            "home/registry/src/-12ab/ft-user-0.2.0",
            "home/registry/src/-12ab/ft-trace-0.1.0",
            "home/registry/src/index.crates.io-56ef/ft-user-0.1.0",
            "programs/debug/.fingerprint/ft-user-more-12ab",
        ];
        let forgotten = [
            "home/registry/src/-12ab/ft-user-0.1.0",
            "home/registry/src/-34cd/ft-user-0.1.0",
            "programs/debug/.fingerprint/ft-user-12ab",
        ];
        for folder in kept.iter().chain(&forgotten) {
            fs::create_dir_all(root.join(folder).join("src")).unwrap();
        }
        forget(&packages, &home, &programs).unwrap();
        let all = kept.iter().chain(&forgotten);
        assert_eq!(all.filter(|name| root.join(name).exists()).copied().collect::<Vec<_>>(), kept);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_a_publisher_has_not_said_is_named() {
        let root = std::env::temp_dir().join(format!("xtask-publisher-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let manifest = "[workspace]\n[workspace.metadata.publisher]\n# a = \"\"\nrepository = \"\"\n\
                        maintainer = \"A <a@b.c>\"\n\n[other]\nsecurity-contact = \"b@c.d\"\n";
        fs::write(root.join("Cargo.toml"), manifest).unwrap();
        let unsaid = |key: &str| format!("{key} in [workspace.metadata.publisher]");
        assert_eq!(missing(&root).unwrap(), ["repository", "security-contact"].map(unsaid));
        assert_eq!(publisher(&root).unwrap()[1].1, "A <a@b.c>");
        fs::remove_dir_all(root).unwrap();
    }

    /// Folders of the members of the workspace that are published.
    fn published() -> Vec<PathBuf> {
        let root = workspace::root();
        let manifest = read(&root.join("Cargo.toml")).unwrap();
        let members = manifest.lines().find_map(|line| line.strip_prefix("members = ")).unwrap();
        let members = members.split('"').skip(1).step_by(2);
        let manifest = |member: &Path| read(&member.join("Cargo.toml")).unwrap();
        let members = members.map(|member| root.join(member));
        members.filter(|member| !manifest(member).contains("\npublish = false\n")).collect()
    }

    #[test]
    fn each_crate_that_is_published_has_the_licences() {
        let published = published();
        assert!(published.len() > 8, "{published:?}");
        for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let text = read(&workspace::root().join(file)).unwrap();
            assert!(published.iter().all(|member| read(&member.join(file)).unwrap() == text));
        }
    }

    #[test]
    fn each_crate_that_is_published_says_what_its_pages_show() {
        for member in published() {
            let manifest = read(&member.join("Cargo.toml")).unwrap();
            let says = |what: &str| manifest.lines().any(|line| line.starts_with(what));
            for what in ["description = ", "license", "readme", "keywords = ", "categories = "] {
                assert!(says(what), "{} has no {what}", member.display());
            }
            let builds = "[package.metadata.docs.rs]\ntargets = [\"x86_64-unknown-linux-gnu\"]\n";
            assert!(manifest.contains(builds), "docs.rs builds {} elsewhere", member.display());
        }
    }

    #[test]
    fn a_list_says_what_a_publisher_fills_in() {
        let page = read(&workspace::root().join("CONTRIBUTING.md")).unwrap();
        let (_, list) = page.split_once("[workspace.metadata.publisher]").unwrap();
        let keys = list.lines().filter_map(|line| line.strip_prefix("- `")?.split('`').next());
        assert_eq!(keys.collect::<Vec<_>>(), PUBLISHER);
    }
}
