//! Which packages of Debian the work on this project needs, for what, and which of them are missing.
//!
//! What is there is known from its files, without asking a package manager: that takes no time, and
//! another package that does the same is as good. The C compiler is not in the list: without one
//! there would be no `xtask`.

use std::path::Path;

/// A package, and what shows that it, or another that does the same, is there.
#[derive(Clone, Copy)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    /// What it is called where there is none of that name.
    elsewhere: Option<&'static str>,
    /// Below the root directory; `*` stands for the rest of one name.
    file: &'static str,
    pub(crate) what_for: &'static str,
}

/// Packages that serve one end.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    packages: &'static [Package],
    /// None of them is of use without the others.
    pub(crate) together: bool,
    /// What happens when one of them is missing.
    pub(crate) without: &'static str,
}

const fn package(name: &'static str, file: &'static str, what_for: &'static str) -> Package {
    Package { name, elsewhere: None, file, what_for }
}

impl Package {
    const fn or(self, elsewhere: &'static str) -> Package {
        Package { elsewhere: Some(elsewhere), ..self }
    }

    /// All names that it has.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        [Some(self.name), self.elsewhere].into_iter().flatten()
    }
}

/// What the kernel side is built with: in the archives of Debian 11 to 13, with their security updates, and, by the other
/// names, of sid.
/// `/usr/bin/rustc` can be rustup's, too, which has no `core` for BPF.
pub(crate) const KERNEL_SIDE: Group = Group {
    packages: &[
        package("rustc-web", "usr/share/rustc/architecture.mk", "a compiler with a BPF target")
            .or("rustc"),
        package(
            "libstd-rust-web-dev-bpf",
            "usr/lib/rustlib/bpfel-unknown-none",
            "`core` for BPF, prebuilt",
        )
        .or("libstd-rust-dev-bpf"),
        LLVM_22,
    ],
    together: true,
    without: "the kernel side is not built, and the agent gets the one that is packaged; another way is rustup's nightly with rust-src, and bpf-linker on the PATH",
};

const LINKER: &str = "bpf-linker is built with it";
const LLVM_21: Package = package("llvm-21-dev", "usr/lib/llvm-21/bin/llvm-config", LINKER);
const LLVM_22: Package = package("llvm-22-dev", "usr/lib/llvm-22/bin/llvm-config", LINKER);
const LLVM_23: Package = package("llvm-23-dev", "usr/lib/llvm-23/bin/llvm-config", LINKER);

/// What bpf-linker can be built with, by the version, where there is a compiler: the oldest first.
pub(crate) const LLVMS: [(u32, Group); 3] =
    [(21, llvm(&[LLVM_21])), (22, llvm(&[LLVM_22])), (23, llvm(&[LLVM_23]))];

const fn llvm(packages: &'static [Package]) -> Group {
    let without = "the kernel side is not built, and the agent gets the one that is packaged; another way is a bpf-linker on the PATH";
    Group { packages, together: false, without }
}

/// What the tests open the traces with.
pub(crate) const READERS: Group = Group {
    packages: &[package(
        "python3-venv",
        "usr/lib/python3*/ensurepip",
        "DuckDB, Polars and pyarrow open the traces in a test",
    )],
    together: false,
    without: "the tests that open a trace in Python are skipped",
};

/// What Spark runs on.
pub(crate) const SPARK: Group = Group {
    packages: &[package(
        "default-jre-headless",
        "usr/bin/java",
        "Spark opens the traces, and has them analysed, in tests",
    )],
    together: false,
    without: "the tests that use Spark are skipped",
};

/// What the page of a report is looked at with.
pub(crate) const BROWSER: Group = Group {
    packages: &[
        package("chromium", "usr/bin/chromium", "opens the page of a report in a test"),
        package(
            "nodejs",
            "usr/bin/node",
            "drives the browser in a test, and runs Perfetto's trace processor in another",
        ),
        package("npm", "usr/bin/npm", "gets what it drives the browser by, and TypeScript"),
    ],
    together: true,
    without: "the tests of the report's page, and of exports to Perfetto, are skipped",
};

/// Programs that are recorded by tests. Debian starts the servers as services; the tests start their own.
pub(crate) const RECORDED: Group = Group {
    packages: &[
        package("curl", "usr/bin/curl", "a test asks a web server with it"),
        // Both are written in Go, and use libc.
        package(
            "direnv",
            "usr/bin/direnv",
            "a test compares what it writes with and without the library",
        ),
        package(
            "fzf",
            "usr/bin/fzf",
            "a test compares what it prints with and without the library",
        ),
        package("default-jdk-headless", "usr/bin/javac", "a program of Java is recorded by a test"),
        package("make", "usr/bin/make", "recorded by a test"),
        package("memcached", "usr/bin/memcached", "recorded by a test"),
        package(
            "nginx-light",
            "usr/sbin/nginx",
            "a test compares what it serves with and without the library",
        ),
        package("pigz", "usr/bin/pigz", "recorded by a test"),
        package("postgresql", "usr/lib/postgresql", "recorded by a test"),
        package("redis-server", "usr/bin/redis-server", "recorded by a test"),
        package("sqlite3", "usr/bin/sqlite3", "recorded by a test"),
        package(
            "systemd",
            "usr/bin/systemd-socket-activate",
            "a test has it start a server with and without the library",
        ),
        package("xz-utils", "usr/bin/xz", "recorded by a test"),
        package(
            "zsh",
            "usr/bin/zsh",
            "a test compares what it writes with and without the library",
        ),
        package("zstd", "usr/bin/zstd", "recorded by a test"),
    ],
    together: false,
    without: "the tests that record these programs are skipped",
};

/// Whose own figures of a run are held against ours. What is too large for every test run `tests/README.md` names.
pub(crate) const JUDGES: Group = Group {
    packages: &[
        package("babeltrace2", "usr/bin/babeltrace2", "a test reads exported traces with it"),
        package("bpftrace", "usr/bin/bpftrace", "tests compare counts with it"),
        package("gdb", "usr/bin/gdb", "a test has it walk stacks within events"),
        package(
            "libgoogle-perftools4",
            "usr/lib/x86_64-linux-gnu/libprofiler.so.0",
            "a test has it walk stacks within events",
        ),
        package(
            "libunwind-dev",
            "usr/include/x86_64-linux-gnu/libunwind.h",
            "a test has it walk stacks within events",
        ),
        package("linux-perf", "usr/bin/perf", "tests compare samples with it"),
        package("pajeng", "usr/bin/pj_dump", "a test reads exported traces with it"),
        package("rt-tests", "usr/bin/cyclictest", "a test compares latencies with it"),
        package("strace", "usr/bin/strace", "tests compare counts of system calls with it"),
        package("vite", "usr/bin/vite", "a test has it draw exported traces"),
        package("xvfb", "usr/bin/xvfb-run", "a display for it"),
    ],
    together: false,
    without: "the tests that compare with these programs are skipped",
};

/// What runs beside the papers' experiments, or measures the same.
pub(crate) const LOADS: Group = Group {
    packages: &[
        package("iperf3", "usr/bin/iperf3", "network load of the papers' experiments"),
        package("stress-ng", "usr/bin/stress-ng", "load of the papers' experiments"),
        package("iproute2", "bin/ip", "a network of their own"),
        package("rt-app", "usr/bin/rt-app", "an experiment compares missed deadlines with it"),
    ],
    together: false,
    without: "the experiments that run these programs fail, and their tests are skipped",
};

/// What other kernels are booted with.
pub(crate) const GUESTS: Group = Group {
    packages: &[
        package("qemu-system-x86", "usr/bin/qemu-system-x86_64", "boots other kernels in a test"),
        package("busybox-static", "bin/busybox", "the first program of such a kernel"),
        package("cpio", "usr/bin/cpio", "packs what such a kernel begins with"),
        package("kmod", "sbin/depmod", "finds the modules that it needs"),
        package("xz-utils", "usr/bin/xz", "unpacks them"),
    ],
    together: true,
    without: "the tests on other kernels are skipped",
};

/// How a guest sees this machine's files: part of QEMU in Debian 12, and from Debian 13 on a package of its own.
pub(crate) const VIRTIOFSD: Group = Group {
    packages: &[package("virtiofsd", "usr/libexec/virtiofsd", "shares files with other kernels")],
    together: false,
    without: "the tests on other kernels are skipped",
};

/// The applications of the Feather-Trace paper's study, and what they play and where they draw.
pub(crate) const PLAYERS: Group = Group {
    packages: &[
        package("vlc-bin", "usr/bin/cvlc", "recorded by an experiment of the papers"),
        package(
            "vlc-plugin-base",
            "usr/lib/x86_64-linux-gnu/vlc/plugins/codec",
            "what it decodes with",
        ),
        package("xine-ui", "usr/bin/xine", "recorded by an experiment of the papers"),
        package("extremetuxracer", "usr/games/etr", "recorded by an experiment of the papers"),
        package("ffmpeg", "usr/bin/ffmpeg", "makes the film that they play"),
        package("xvfb", "usr/bin/xvfb-run", "a display for them"),
    ],
    together: false,
    without: "the experiment that records them fails, and its test is skipped",
};

/// What C and C++ programs are built with.
pub(crate) const COMPILERS: Group = Group {
    packages: &[
        package("g++", "usr/bin/c++", "the tests build C++ programs"),
        package("clang", "usr/bin/clang", "the tests build C programs with it, too"),
        package("pkg-config", "usr/bin/pkg-config", "the tests link with its help"),
    ],
    together: false,
    without: "the tests of the C header try fewer compilers",
};

/// What makes a Debian package, and tries it.
pub(crate) const PACKAGERS: Group = Group {
    packages: &[
        package("dpkg-dev", "usr/bin/dpkg-shlibdeps", "says what a package depends on"),
        package("libcap2-bin", "usr/sbin/setcap", "gives capabilities to members of its group"),
    ],
    together: false,
    without: "no Debian package is made or tried",
};

/// The header of LTTng-UST, without which the subject that it traces does not build.
pub(crate) const LTTNG_HEADER: &str = "usr/include/x86_64-linux-gnu/lttng/tracepoint.h";

/// What an experiment of the papers, in the tests, too, and the benchmarks compare with.
pub(crate) const LTTNG: Group = Group {
    packages: &[
        package("liblttng-ust-dev", LTTNG_HEADER, "an experiment compares with it"),
        package("lttng-tools", "usr/bin/lttng-sessiond", "an experiment compares with it"),
    ],
    together: true,
    without: "the experiment and the benchmarks that compare with it leave it out, and say so",
};

/// What the benchmarks compare with.
pub(crate) const PEERS: Group = Group {
    packages: &[
        package("linux-perf", "usr/bin/perf", "the benchmarks compare with it"),
        package("libbpf-tools", "usr/sbin/offcputime", "the benchmarks compare with it"),
        package("uftrace", "usr/bin/uftrace", "the benchmarks compare with it"),
        package("bpftrace", "usr/bin/bpftrace", "the benchmarks compare with it"),
    ],
    together: false,
    without: "the benchmarks leave out what is missing",
};

/// Whole programs, of which the benchmarks show what they lose while they are recorded.
pub(crate) const PROGRAMS: Group = Group {
    packages: &[
        package("libmemcached-tools", "usr/bin/memcslap", "drives memcached in a benchmark"),
        package("make", "usr/bin/make", "recorded by a benchmark"),
        package("memcached", "usr/bin/memcached", "recorded by a benchmark"),
        package("postgresql", "usr/lib/postgresql", "recorded by a benchmark"),
        package("redis-server", "usr/bin/redis-server", "recorded by a benchmark"),
    ],
    together: false,
    without: "the benchmarks leave out the programs that are missing",
};

impl Group {
    /// Those that are missing below `root`.
    pub(crate) fn missing(&self, root: &Path) -> Vec<&'static Package> {
        self.packages.iter().filter(|package| !exists(root, package.file)).collect()
    }
}

/// Whether a file is there; one `*` at most, at the end of a component.
fn exists(root: &Path, file: &str) -> bool {
    let Some((before, after)) = file.split_once('*') else { return root.join(file).exists() };
    let (dir, prefix) = before.rsplit_once('/').unwrap_or(("", before));
    let Ok(entries) = std::fs::read_dir(root.join(dir)) else { return false };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .any(|entry| entry.path().join(after.trim_start_matches('/')).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_missing_until_its_file_is_there() {
        let root = std::env::temp_dir().join(format!("xtask-packages-{}", std::process::id()));
        let missing = |group: &Group| -> Vec<&str> {
            group.missing(&root).iter().map(|package| package.name).collect()
        };
        std::fs::create_dir_all(root.join("usr/lib/python3")).unwrap();
        assert_eq!(missing(&READERS), ["python3-venv"]);
        std::fs::create_dir_all(root.join("usr/lib/python3.11/ensurepip")).unwrap();
        assert!(missing(&READERS).is_empty());

        std::fs::create_dir_all(root.join("usr/bin/clang")).unwrap();
        assert_eq!(missing(&COMPILERS), ["g++", "pkg-config"]);
        std::fs::remove_dir_all(root).unwrap();
    }
}
