//! The Debian package: a tree of what is installed, and its description.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::{commit_time, files, publisher, read};
use crate::workspace::{self, output, run, target_dir};

/// How hard the package is compressed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Compression {
    /// For those who download it.
    Small,
    /// For a test.
    Fast,
}

/// Who maintains the package as long as no publisher has said so. `.invalid` is nobody's (RFC 2606).
const NOBODY: &str = "The Feather-Trace developers <nobody@feather-trace.invalid>";

/// Where the completions of each shell lie.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/ft-agent"),
    ("zsh", "usr/share/zsh/vendor-completions/_ft-agent"),
    ("fish", "usr/share/fish/vendor_completions.d/ft-agent.fish"),
];

/// Builds the package from programs that lie in one directory; returns where it lies.
pub(crate) fn build(programs: &Path, compression: Compression) -> Result<PathBuf> {
    let directory = target_dir().join("package/debian");
    let tree = Tree(directory.join("tree"));
    if tree.0.exists() {
        fs::remove_dir_all(&tree.0)
            .with_context(|| format!("cannot empty {}", tree.0.display()))?;
    }
    for program in ["ft-agent", "ft-load"] {
        tree.add(&format!("usr/bin/{program}"), &programs.join(program), 0o755)?;
    }
    tree.add("usr/lib/feather-trace/libft_preload.so", &programs.join("libft_preload.so"), 0o644)?;
    let objects = ["usr/bin/ft-agent", "usr/bin/ft-load", "usr/lib/feather-trace/libft_preload.so"];
    run(Command::new("strip").arg("--strip-debug").args(objects).current_dir(&tree.0))?;
    tree.generated(&programs.join("ft-agent"))?;
    for (to, from, mode) in [
        ("usr/sbin/feather-trace-members", "feather-trace-members", 0o755),
        ("usr/lib/systemd/system/feather-trace.service", "feather-trace.service", 0o644),
        ("usr/lib/tmpfiles.d/feather-trace.conf", "feather-trace.tmpfiles", 0o644),
        ("DEBIAN/postinst", "debian/postinst", 0o755),
        ("DEBIAN/prerm", "debian/prerm", 0o755),
        ("DEBIAN/postrm", "debian/postrm", 0o755),
    ] {
        tree.add(to, &files().join(from), mode)?;
    }
    let root = workspace::root();
    for document in ["README.md", "CHANGELOG.md", "SECURITY.md"] {
        tree.add(&format!("usr/share/doc/feather-trace/{document}"), &root.join(document), 0o644)?;
    }
    for page in fs::read_dir(root.join("docs")).context("docs cannot be listed")? {
        let page = page?;
        let to = format!("usr/share/doc/feather-trace/docs/{}", page.file_name().display());
        tree.add(&to, &page.path(), 0o644)?;
    }
    let licence = read(&root.join("LICENSE-MIT"))?;
    let indented: Vec<String> = licence
        .lines()
        .map(|line| if line.is_empty() { " .".to_owned() } else { format!(" {line}") })
        .collect();
    let copyright =
        read(&files().join("debian/copyright"))?.replace("@EXPAT@", &indented.join("\n"));
    tree.write("usr/share/doc/feather-trace/copyright", copyright.as_bytes(), 0o644)?;
    let version = env!("CARGO_PKG_VERSION");
    tree.describe(&directory, &objects, version)?;
    let package = directory.join(format!("feather-trace_{version}_{}.deb", architecture()?));
    let compression = match compression {
        Compression::Small => "-Zxz",
        Compression::Fast => "-Znone",
    };
    run(Command::new("dpkg-deb")
        .args(["--root-owner-group", compression, "--build"])
        .args([&tree.0, &package])
        // The same source makes the same package.
        .env("SOURCE_DATE_EPOCH", commit_time())
        .stdout(std::process::Stdio::null()))?;
    Ok(package)
}

/// What will be installed, and beside it `DEBIAN`.
struct Tree(PathBuf);

impl Tree {
    fn write(&self, name: &str, bytes: &[u8], mode: u32) -> Result<()> {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("a file is in a directory"))
            .and_then(|()| fs::write(&path, bytes))
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn add(&self, name: &str, from: &Path, mode: u32) -> Result<()> {
        let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
        self.write(name, &bytes, mode)
    }

    /// What the agent itself prints: manual pages and completions.
    fn generated(&self, agent: &Path) -> Result<()> {
        let manual = self.0.join("usr/share/man/man1");
        fs::create_dir_all(&manual).with_context(|| format!("cannot make {}", manual.display()))?;
        run(Command::new(agent).args(["manual", "--output"]).arg(&manual))?;
        for page in fs::read_dir(&manual).context("manual pages cannot be listed")? {
            run(Command::new("gzip").args(["--best", "--no-name"]).arg(page?.path()))?;
        }
        for (shell, name) in COMPLETIONS {
            let script = output(Command::new(agent).args(["completions", shell]))?;
            self.write(name, script.as_bytes(), 0o644)?;
        }
        Ok(())
    }

    /// The package's description, and the sums of its files.
    fn describe(&self, directory: &Path, objects: &[&str], version: &str) -> Result<()> {
        // It looks for the source's description, which it does not use.
        let stub = directory.join("debian/control");
        fs::create_dir_all(directory.join("debian"))
            .and_then(|()| fs::write(&stub, "Source: feather-trace\n"))
            .with_context(|| format!("cannot write {}", stub.display()))?;
        let depends = output(
            Command::new("dpkg-shlibdeps")
                .arg("-O")
                .args(objects.iter().map(|object| self.0.join(object)))
                .current_dir(directory),
        )?;
        let depends = depends.trim().strip_prefix("shlibs:Depends=");
        let depends = depends.context("dpkg-shlibdeps named no packages")?;
        let maintainer = publisher(&workspace::root())?
            .into_iter()
            .find(|(name, value)| name == "maintainer" && !value.is_empty())
            .map_or_else(|| NOBODY.to_owned(), |(_, value)| value);
        let control = read(&files().join("debian/control.in"))?
            .replace("@VERSION@", version)
            .replace("@ARCHITECTURE@", &architecture()?)
            .replace("@MAINTAINER@", &maintainer)
            .replace("@DEPENDS@", depends);
        self.write("DEBIAN/control", control.as_bytes(), 0o644)?;
        let sums = "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum";
        let sums = output(Command::new("sh").args(["-c", sums]).current_dir(&self.0))?;
        self.write("DEBIAN/md5sums", sums.as_bytes(), 0o644)
    }
}

fn architecture() -> Result<String> {
    Ok(output(Command::new("dpkg").arg("--print-architecture"))?.trim().to_owned())
}
