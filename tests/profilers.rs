//! Profilers of others find `main` from wherever in an event, or in a call of the preload library, they strike.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

#[path = "../ft-user/tests/common/c.rs"]
mod c;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use c::{Link, build, run};
use ft_tests::built::preload;
use ft_tests::gate;
use object::{Object as _, ObjectSymbol as _};

/// CPU time of a program, and samples of it that are not too few: profilers ask for 1000 a second, and some kernels tick 100 times.
const MS: &str = "3000";
const LEAST: usize = 150;

/// How `perf` unwinds, and the bytes of the stack that it does so by: without optimisation the library makes sure of 8 KiB before a lock
/// is taken.
const STACK: &str = "dwarf,16384";

/// Where Debian has gperftools' library.
const GPERFTOOLS: &str = "/usr/lib/x86_64-linux-gnu/libprofiler.so.0";

/// A program, and the library that it runs with, if any.
struct Traced {
    program: PathBuf,
    library: Option<&'static str>,
}

impl Traced {
    /// One with events of all kinds, and one with calls of all kinds of locks. Both are loaded where their files say.
    fn all() -> &'static [Traced; 2] {
        static ALL: OnceLock<[Traced; 2]> = OnceLock::new();
        // Each test wants them, and one that is being compiled cannot be run.
        ALL.get_or_init(Traced::compile)
    }

    fn compile() -> [Traced; 2] {
        let flags = ["-std=gnu11", "-O2", "-no-pie"];
        let embedding = build("cc", &flags, &["tests/c/stepped.c"], Link::Static, "embedding");
        let locking = embedding.with_file_name("locking");
        let source = Path::new(c::SOURCES).join("preload/tests/programs/stepped.c");
        run(Command::new("cc").args(flags).arg("-pthread").arg(source).arg("-o").arg(&locking));
        [
            Traced { program: embedding, library: None },
            Traced { program: locking, library: preload().to_str() },
        ]
    }

    /// With sites switched on or off, and another library before its own one.
    fn command(&self, is_on: bool, first: Option<&str>) -> Command {
        let libraries: Vec<&str> = first.into_iter().chain(self.library).collect();
        let mut command = Command::new("env");
        command.arg(if is_on { "FT_ENABLE=*" } else { "FT_ENABLE=none.*" });
        command.arg("FT_SOCKET=/nonexistent");
        command.arg(format!("LD_PRELOAD={}", libraries.join(":")));
        command.arg(&self.program).args(["busy", MS]);
        command
    }

    /// The addresses of its `main`.
    fn main(&self) -> Range<u64> {
        let file = std::fs::read(&self.program).unwrap();
        let file = object::File::parse(&*file).unwrap();
        let main = file.symbols().find(|symbol| symbol.name() == Ok("main")).unwrap();
        main.address()..main.address() + main.size()
    }
}

/// Of samples, and of those in whose chains is no `main`, which only a few at the start and the end may be.
fn judge(of: &str, traced: &Traced, samples: usize, without: usize) {
    let program = traced.program.file_name().unwrap().display();
    gate::measured(&format!("{of}, {program}: {without} of {samples} samples without main"));
    assert!(samples >= LEAST, "{of}, {program}: {samples} samples");
    assert!(without * 100 <= samples, "{of}, {program}: {without} of {samples} without main");
}

/// The chains of a profile of gperftools, as its documentation has it (cpuprofile-fileformat): words; a header, whose second one is
/// the number of those behind it; then a count, a length and so many addresses each; one with the count 0 is the last.
fn chains(profile: &[u8]) -> Vec<(u64, Vec<u64>)> {
    let mut words =
        profile.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    let mut next = || words.next().expect("a word");
    let (_, header) = (next(), next());
    for _ in 0..header {
        next();
    }
    let mut chains = Vec::new();
    loop {
        let (count, length) = (next(), next());
        let chain = (0..length).map(|_| next()).collect();
        if count == 0 {
            return chains;
        }
        chains.push((count, chain));
    }
}

#[test]
fn gperftools_finds_main() {
    if !Path::new(GPERFTOOLS).exists() {
        return gate::skipped("gperftools is not installed (Debian: libgoogle-perftools4)");
    }
    let directory = tempfile::tempdir().unwrap();
    let profile = directory.path().join("profile");
    for traced in Traced::all() {
        let main = traced.main();
        for is_on in [false, true] {
            let mut command = traced.command(is_on, Some(GPERFTOOLS));
            run(command.env("CPUPROFILE", &profile).env("CPUPROFILE_FREQUENCY", "1000"));
            let (mut samples, mut without) = (0, 0);
            for (count, chain) in chains(&std::fs::read(&profile).unwrap()) {
                samples += count as usize;
                if !chain.iter().any(|address| main.contains(address)) {
                    without += count as usize;
                }
            }
            let of = if is_on { "gperftools, on" } else { "gperftools, off" };
            judge(of, traced, samples, without);
        }
    }
}

#[test]
fn perf_finds_main_by_dwarf() {
    if !Command::new("perf").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return gate::skipped("perf is not installed (Debian: linux-perf)");
    }
    if !rustix::process::geteuid().is_root() {
        return gate::skipped("perf samples a program for root only, here");
    }
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    for traced in Traced::all() {
        let mut record = Command::new("perf");
        record.args(["record", "-q", "--call-graph", STACK, "-e", "cpu-clock:u"]);
        let command = traced.command(true, None);
        record.args(["-F", "499", "-o"]).arg(&data).arg("--").arg(command.get_program());
        run(record.args(command.get_args()));
        let mut script = Command::new("perf");
        let text =
            run(script.args(["script", "--no-inline", "-F", "comm,ip,sym,dso", "-i"]).arg(&data));
        // Within libc it loses its way in some runs, in those of the bare program, too.
        let files = [Some(&*traced.program), traced.library.map(Path::new)];
        let files: Vec<_> = files.iter().flatten().map(|f| format!("({})", f.display())).collect();
        let is_ours = |sample: &&str| {
            // Behind the line with the program's name.
            let innermost = sample.trim_start().lines().nth(1).unwrap_or("");
            files.iter().any(|file| innermost.ends_with(file))
        };
        let has_main = |sample: &&str| sample.contains(" main (");
        // What a library does at the start is not called by it.
        let samples = text.split("\n\n").skip_while(|sample| !has_main(sample)).filter(is_ours);
        let (with, without): (Vec<_>, Vec<_>) = samples.partition(has_main);
        let (samples, without) = (with.len() + without.len(), without.len());
        judge("perf", traced, samples, without);
    }
}
