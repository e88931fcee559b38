//! The C and C++ examples of `ft-user`, built as their authors would and recorded by the agent.

#[path = "../ft-user/tests/common/c.rs"]
mod c;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use c::{Link, build, compilers, run};
use ft_trace::spool::frame::{Frame, Process};
use ft_trace::spool::{Reader, Spool};
use ft_trace::store::Trace;
use ft_trace::tables::{
    AsyncSwitch, AsyncTask, PollEnd, Scope, SiteKind, SiteRow, TaskEnd, UserEvent,
};
use ft_trace::warning::Warning;

/// Records the program; returns the trace.
fn record(program: &Path, out: &Path) -> Trace {
    record_with(&[], Command::new(program), out)
}

/// Records a command with these options.
fn record_with(options: &[&str], command: Command, out: &Path) -> Trace {
    let mut agent = Command::new(ft_tests::agent());
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

/// Formats of C are shown as those of Rust. One that does not fit stays, and a warning says so.
#[test]
fn a_number_in_a_format_of_c_is_a_position() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/formats.c");
    for compiler in compilers(&["gcc", "clang"]) {
        let name = format!("formats-{compiler}");
        let program = build(compiler, &["-std=gnu11", "-O2"], &[source], Link::Static, &name);
        let dir = tempfile::tempdir().unwrap();
        let trace = record(&program, &dir.path().join("trace"));
        let mut agent = Command::new(ft_tests::agent());
        let listing = run(agent.arg("events").arg(dir.path().join("trace")));
        for text in
            ["state 1 of fd 9", "1 2 3 4 5.5 six", "0x0009|   9|7   |+9", "of {none}", "of {fd"]
        {
            assert!(listing.lines().any(|line| line.ends_with(text)), "{text} in {listing}");
        }
        let warnings = trace.meta().warnings.iter().filter_map(|warning| match warning {
            Warning::Format { event, more, .. } => Some((&**event, *more)),
            _ => None,
        });
        assert_eq!(warnings.collect::<Vec<_>>(), [("format.missing", 1)]);
    }
}

#[test]
fn fibers_are_tasks_and_their_turns_are_polls() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/fibers.c");
    for compiler in compilers(&["gcc", "clang"]) {
        let name = format!("fibers-{compiler}");
        let program = build(compiler, &["-std=gnu11", "-O2"], &[source], Link::Static, &name);
        let dir = tempfile::tempdir().unwrap();
        let trace = record(&program, &dir.path().join("trace"));
        let tasks: Vec<AsyncTask> = trace.rows().map(Result::unwrap).collect();
        let polls: Vec<AsyncSwitch> = trace.rows().map(Result::unwrap).collect();
        assert_eq!((tasks.len(), polls.len()), (2, 102), "{tasks:?}");
        for task in &tasks {
            assert_eq!((task.end, task.polls, task.wakes), (TaskEnd::Ready, 51, 49), "{task:?}");
            assert!(task.place.contains("fibers.c:"), "{task:?}");
            let states = [task.unstarted_ns, task.queued_ns, task.waiting_ns, task.polled_ns];
            assert_eq!((states.iter().sum(), task.unknown_ns), (task.dur, 0), "{task:?}");
            let mine: Vec<_> = polls.iter().filter(|poll| poll.task == task.task).collect();
            let (last, before) = mine.split_last().unwrap();
            assert_eq!(last.end, PollEnd::Ready);
            assert!(before.iter().all(|poll| poll.end == PollEnd::Pending), "{before:?}");
            let other = tasks.iter().find(|other| other.task != task.task).unwrap().task;
            let by_other = mine.iter().filter(|poll| poll.waker_task == Some(other)).count();
            assert_eq!(by_other, 49, "{mine:?}");
        }
        // Each fiber's scope is its own: neither lies within the other, and who began first ends first.
        let scopes: Vec<Scope> = trace.rows().map(Result::unwrap).collect();
        let [first, second] = &scopes[..] else { panic!("{scopes:?}") };
        assert_eq!((first.depth, second.depth), (0, 0), "{scopes:?}");
        assert!(first.ts < second.ts && first.ts.0 + first.dur < second.ts.0 + second.dur);
    }
}

#[test]
fn coroutines_of_cpp_are_tasks_and_each_event_lies_in_the_turn_of_one() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/coroutines.cpp");
    // Debian 12's clang does not have its library's coroutines.
    for compiler in compilers(&["g++"]) {
        let name = format!("coroutines-{compiler}");
        let program = build(compiler, &["-std=c++20", "-O2"], &[source], Link::Static, &name);
        let dir = tempfile::tempdir().unwrap();
        let trace = record(&program, &dir.path().join("trace"));
        let mut tasks: Vec<AsyncTask> = trace.rows().map(Result::unwrap).collect();
        // Not by their times: where the counter goes in steps of 10 ns, two are made in one.
        let made = events(&trace, "async.new");
        tasks.sort_by_key(|task| made.iter().position(|new| new.arg[0] == Some(task.task)));
        let polls: Vec<AsyncSwitch> = trace.rows().map(Result::unwrap).collect();
        let steps = events(&trace, "coroutines.step");
        // Its end, polls, wake-ups, steps; whether it ever waited in a queue.
        let expected = [
            (TaskEnd::Ready, 21, 20, 20, true),
            (TaskEnd::Ready, 21, 19, 20, true),
            (TaskEnd::Dropped, 1, 0, 1, false),
            (TaskEnd::Dropped, 1, 1, 1, true),
            (TaskEnd::Ready, 2, 0, 2, false),
            (TaskEnd::Dropped, 0, 0, 0, false),
        ];
        let found = tasks.iter().enumerate().map(|(id, task)| {
            assert!(task.place.contains("coroutines.cpp:"), "{task:?}");
            let own = steps.iter().filter(|step| {
                let poll = polls.iter().find(|poll| {
                    poll.tid == step.tid && (poll.ts..=poll.ts + poll.dur).contains(&step.ts)
                });
                let is_in = poll.expect("each is in a turn").task == task.task;
                assert_eq!(is_in, step.arg[0] == Some(id as i64), "{step:?}");
                is_in
            });
            (task.end, task.polls, task.wakes, own.count(), task.queued_ns > 0)
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{tasks:#?}");
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

/// Two libraries in C that start tracing, one that does not, all with one copy of the tracer; and one in Rust with
/// another. Each as an argument of the host.
fn libraries(test: &str, compiler: &str) -> [String; 4] {
    let plugin = |name: &str, more: &[&str]| {
        let define = format!("-DPLUGIN={name}");
        let flags = [&["-std=c11", "-O2", "-shared", "-fPIC", &define], more].concat();
        let file = format!("libplugin-{test}-{compiler}-{name}.so");
        let path = build(compiler, &flags, &["tests/c/plugin.c"], Link::Shared, &file);
        format!("{name}={}", path.display())
    };
    let starts = ["-DSTARTS"];
    let rust = format!("plugin={}", rust_plugin().display());
    [plugin("first", &starts), plugin("second", &starts), plugin("third", &[]), rust]
}

/// A program that knows no tracer, and loads libraries. Of each test its own: one that runs cannot be written.
fn host(test: &str, compiler: &str) -> PathBuf {
    let name = format!("plugin-host-{test}-{compiler}");
    let host = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut cc = Command::new(compiler);
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&host);
    run(cc.arg(Path::new(c::SOURCES).join("tests/c/plugin_host.c")).arg("-ldl"));
    host
}

/// A host that knows no tracer loads libraries one after the other, while it is traced: two in C that start
/// tracing, one that does not, and one in Rust. What the agent has asked for is on in each of them.
#[test]
fn sites_of_each_library_that_is_loaded_later_are_on() {
    for compiler in compilers(&["gcc", "clang"]) {
        let [first, second, third, rust] = libraries("traced", compiler);
        let mut command = Command::new(host("traced", compiler));
        command.args([first, second, rust, third]);
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

/// Nobody tells what is loaded later into a process that is attached to what to switch on, but the agent from outside:
/// its libraries do not find a socket.
#[test]
fn sites_of_what_an_attached_process_loads_are_on() {
    for compiler in compilers(&["gcc"]) {
        let [first, second, third, rust] = libraries("attached", compiler);
        let mut host = Command::new(host("attached", compiler));
        host.args([&first, "-", &second, "-", &third, "-", &rust, "-"]);
        host.env("FT_SOCKET", "/dev/null/none").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut host = host.spawn().unwrap();
        let pid = host.id().to_string();
        let (mut stdin, stdout) = (host.stdin.take().unwrap(), host.stdout.take().unwrap());
        let mut said = BufReader::new(stdout).lines();
        let mut expect = |word: &str| assert_eq!(said.next().unwrap().unwrap(), word);
        expect("ready");
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("trace");
        let mut agent = Command::new(ft_tests::agent());
        agent.args(["record", "-k", "none", "-e", "plugin.*", "-p", &pid, "-o"]).arg(&out);
        let mut agent = agent.stdout(Stdio::null()).spawn().unwrap();
        wait_until_on(&pid, 1);
        for loaded in 2..=4 {
            stdin.write_all(b"next\n").unwrap();
            expect("ready");
            wait_until_on(&pid, loaded);
            stdin.write_all(b"run\n").unwrap();
            expect("ran");
        }
        // Both tracers are recorded, the one of the library in Rust too.
        while recorded_tracers(&out) < 2 {
            assert!(agent.try_wait().unwrap().is_none(), "it is over");
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(stdin);
        assert!(host.wait().unwrap().success() && agent.wait().unwrap().success());
        let mut runs: Vec<i64> = events(&Trace::open(&out).unwrap(), "plugin.run")
            .iter()
            // The library in Rust has no text.
            .filter_map(|event| event.arg[usize::from(event.argt[0].is_some())])
            .filter(|&n| n >= 100)
            .collect();
        runs.sort_unstable();
        assert_eq!(runs, [100, 100, 100, 101, 101, 101, 102, 102, 103]);
    }
}

/// Memfds of which a running recording knows.
fn recorded_tracers(out: &Path) -> usize {
    let mut registry = Reader::open(&Spool::of(out).registry()).unwrap();
    let frames = std::iter::from_fn(|| {
        let frame = registry.next().ok()??;
        Some(matches!(frame, Frame::Process(Process { source: Some(_), .. })))
    });
    frames.filter(|&is_tracer| is_tracer).count()
}

/// Waits until the process has so many triggers of the plugins, and all are on.
fn wait_until_on(pid: &str, count: u64) {
    let began = Instant::now();
    loop {
        let mut sites = Command::new(ft_tests::agent());
        let listing = run(sites.args(["sites", "-p", pid, "--json"]));
        let listing: serde_json::Value = serde_json::from_str(&listing).unwrap();
        let events = listing["events"].as_array().unwrap();
        let of = |key| {
            let plugins = events.iter().filter(|event| event["event"] == "plugin.run");
            plugins.map(|event| event[key].as_u64().unwrap()).sum::<u64>()
        };
        if of("on") == count && of("triggers") == count {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(300), "they stay off: {listing:#}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
