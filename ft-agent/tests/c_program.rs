//! The C and C++ examples of `ft-user`, built as their authors would and recorded by the agent.

#[path = "../../ft-user/tests/common/c.rs"]
mod c;

use std::path::Path;
use std::process::Command;

use c::{Link, build, compilers, run};
use ft_agent::store::Trace;
use ft_agent::store::rows::{SiteRow, UserEvent};

/// Records the program; returns the trace.
fn record(program: &Path, out: &Path) -> Trace {
    let mut agent = Command::new(env!("CARGO_BIN_EXE_ft-agent"));
    run(agent.args(["record", "-k", "none", "-o"]).arg(out).arg("--").arg(program));
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
            let kinds = ["scope_begin", "scope_end"].map(|kind| {
                sites.iter().filter(|s| &*s.event == "hello.collatz" && &*s.kind == kind).count()
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
