//! The C and C++ examples of `ft-user`, built as their authors would and recorded by the agent.

#[path = "../../ft-user/tests/common/c.rs"]
mod c;

use std::path::{Path, PathBuf};
use std::process::Command;

use c::{Link, build, compilers, run};
use ft_trace::store::Trace;
use ft_trace::tables::{SiteKind, SiteRow, UserEvent};

/// Records the program; returns the trace.
fn record(program: &Path, out: &Path) -> Trace {
    record_with(&[], Command::new(program), out)
}

/// Records a command with these options.
fn record_with(options: &[&str], command: Command, out: &Path) -> Trace {
    let mut agent = Command::new(env!("CARGO_BIN_EXE_ft-agent"));
    agent.args(["record", "-k", "none", "-o"]).arg(out).args(options);
    run(agent.arg("--").arg(command.get_program()).args(command.get_args()));
    Trace::open(out).unwrap()
}

fn events(trace: &Trace, name: &str) -> Vec<UserEvent> {
    let rows = trace.rows::<UserEvent>().map(Result::unwrap);
    rows.filter(|row| &*row.event == name).collect()
}

#[test]
fn c_example_is_recorded() {
    for compiler in compilers(&["gcc", "clang"]) {
        for link in [Link::Static, Link::Shared] {
            let name = format!("hello-{compiler}-{link:?}");
            let program =
                build(compiler, &["-std=c11", "-O2"], &["examples/c/hello.c"], link, &name);
            let dir = tempfile::tempdir().unwrap();
            let trace = record(&program, &dir.path().join("trace"));

            let done = events(&trace, "hello.done");
            let [done] = &done[..] else { panic!("{} ends of {name}", done.len()) };
            assert_eq!((done.argt[0].as_deref(), done.arg[1]), (Some("hello.c"), Some(3142)));
            let steps = events(&trace, "hello.step");
            assert_eq!(steps.len(), 3142);
            // 2 is one step from 1, and the first that is not 1 already.
            assert_eq!((steps[0].arg[0], steps[0].arg[1]), (Some(0), Some(1)));
            assert_eq!(events(&trace, "hello.collatz").len(), 200);

            let sites: Vec<SiteRow> = trace.rows().map(Result::unwrap).collect();
            let step = sites.iter().find(|site| &*site.event == "hello.step").unwrap();
            assert_eq!((&*step.format, step.line), ("step {steps}: {n}", 15));
            assert_eq!(&*step.args, "steps:unsigned, n:unsigned");
            assert!(step.file.ends_with("examples/c/hello.c"), "{}", step.file);
            let kinds = [SiteKind::ScopeBegin, SiteKind::ScopeEnd].map(|kind| {
                sites.iter().filter(|s| &*s.event == "hello.collatz" && s.kind == kind).count()
            });
            assert!(kinds.iter().all(|&count| count > 0), "{kinds:?}");
        }
    }
}

#[test]
fn cpp_example_is_recorded() {
    for compiler in compilers(&["g++", "clang++"]) {
        let name = format!("hello-{compiler}");
        let flags = ["-std=c++17", "-O2"];
        let program = build(compiler, &flags, &["examples/c/hello.cpp"], Link::Shared, &name);
        let dir = tempfile::tempdir().unwrap();
        let trace = record(&program, &dir.path().join("trace"));
        let sums = events(&trace, "hello.sum");
        let [whole, real] = &sums[..] else { panic!("{} sums of {name}", sums.len()) };
        assert_eq!(whole.argt[0].as_deref(), Some("whole"));
        assert_eq!((whole.arg[1], whole.arg[2]), (Some(1), Some(100)));
        assert_eq!(real.argt[0].as_deref(), Some("real"));
        assert_eq!((real.argf[1], real.argf[2]), (Some(0.5), Some(99.5)));
    }
}

/// The Rust library of `ft-user/examples/plugin.rs`, with a tracer of its own.
fn rust_plugin() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rust-plugin");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--offline", "--example", "plugin", "--manifest-path"]);
    run(cargo.arg(Path::new(c::SOURCES).join("Cargo.toml")).arg("--target-dir").arg(&target));
    target.join("debug/examples/libplugin.so")
}

/// A host that knows no tracer loads libraries one after the other, while it is traced: two in C that start
/// tracing, one that does not, and one in Rust. What the agent has asked for is on in each of them.
#[test]
fn sites_of_each_library_that_is_loaded_later_are_on() {
    let rust = rust_plugin();
    for compiler in compilers(&["gcc", "clang"]) {
        let plugin = |name: &str, more: &[&str]| {
            let define = format!("-DPLUGIN={name}");
            let flags = [&["-std=c11", "-O2", "-shared", "-fPIC", &define], more].concat();
            let file = format!("libplugin-{compiler}-{name}.so");
            build(compiler, &flags, &["tests/c/plugin.c"], Link::Shared, &file)
        };
        let starts = ["-DSTARTS"];
        let libraries = [
            ("first", plugin("first", &starts)),
            ("second", plugin("second", &starts)),
            ("plugin", rust.clone()),
            ("third", plugin("third", &[])),
        ];
        let host = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("plugin-host-{compiler}"));
        let mut cc = Command::new(compiler);
        cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&host);
        run(cc.arg(Path::new(c::SOURCES).join("tests/c/plugin_host.c")).arg("-ldl"));

        let mut command = Command::new(&host);
        command.args(libraries.iter().map(|(name, path)| format!("{name}={}", path.display())));
        let dir = tempfile::tempdir().unwrap();
        let trace = record_with(&["-e", "plugin.*"], command, &dir.path().join("trace"));
        let runs: Vec<(Option<String>, Option<i64>)> = events(&trace, "plugin.run")
            .iter()
            .map(|event| (event.argt[0].as_deref().map(str::to_owned), event.arg[1]))
            .collect();
        let of = |name: &str, n| (Some(name.to_owned()), Some(n));
        // The library in Rust has no text, and counts on in its second argument.
        assert_eq!(runs, [of("first", 1), of("second", 2), (None, Some(4)), of("third", 4)]);
        assert!(events(&trace, "quiet.run").is_empty());
    }
}
