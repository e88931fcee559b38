//! Sites of C and C++ programs: what they leave in the buffers, with the compilers that are there.
#![cfg(not(ft_off))]

#[path = "common/c.rs"]
mod c;
mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use c::{Link, build, compilers, prefix, run};
use common::{Event, Memory};
use ft_user::directory::Entry;
use ft_user::layout::{ArgType, SiteKind};

/// Types and names of the arguments of a site.
type Args = Vec<(ArgType, String)>;

/// Runs a program until it says that it is ready; its events, and its sites by name.
fn events_of(program: &Path) -> (Vec<Event>, Vec<(String, Args)>) {
    let mut child = Command::new(program)
        .env("FT_SOCKET", "/dev/null/none")
        .env_remove("FT_ENABLE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let mut memory = Memory::of(child.id());
    let events = memory.take();
    let own = |(ty, name): &(ArgType, &str)| (*ty, (*name).to_owned());
    let metas = memory.directory().into_iter().filter_map(|entry| match entry {
        Entry::SiteMeta { name, args, .. } => {
            Some((name.to_owned(), args.iter().map(own).collect()))
        }
        _ => None,
    });
    let metas = metas.collect();
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    (events, metas)
}

/// A linker takes nothing from the library that a program has itself.
#[test]
fn who_has_hooks_of_its_own_keeps_them() {
    for compiler in compilers(&["gcc", "clang"]) {
        for link in [Link::Static, Link::Shared] {
            let name = format!("own-hooks-{compiler}-{link:?}");
            let flags = ["-std=gnu11", "-O0", "-finstrument-functions"];
            let program = build(compiler, &flags, &["tests/c/own_hooks.c"], link, &name);
            assert_eq!(run(&mut Command::new(program)), "4 begins, 3 ends\n", "{name}");
        }
    }
}

/// What compilers take for a function of the program is one of its own, and none of the header's.
#[test]
fn the_header_adds_no_function_to_those_of_a_program() {
    let hooks: &[&str] = &["-finstrument-functions"];
    let sleds: &[&str] =
        &["-DSLEDS", "-fxray-instrument", "-fxray-instruction-threshold=1", "-fnoxray-link-deps"];
    let c = &["-std=gnu11"][..];
    let cpp = &["-x", "c++", "-std=gnu++17"][..];
    for (compiler, language, way) in [
        ("gcc", c, hooks),
        ("g++", cpp, hooks),
        ("clang", c, hooks),
        ("clang++", cpp, hooks),
        ("clang", c, sleds),
        ("clang++", cpp, sleds),
    ] {
        for compiler in compilers(&[compiler]) {
            for level in ["-O0", "-O2"] {
                let flags = [language, way, &[level]].concat();
                let name = format!("only-own-{compiler}{}{level}", way[0]);
                let program = build(compiler, &flags, &["tests/c/only_own.c"], Link::Shared, &name);
                let told = run(&mut Command::new(program));
                assert_eq!(told, "3 of its own, 0 others, 4 sites\n", "{name}");
            }
        }
    }
}

/// Nor has a count of lines or branches any of them.
#[test]
fn the_header_adds_no_counters() {
    for (compiler, way, counter) in
        [("gcc", "-fprofile-arcs", "__gcov0."), ("clang", "-fprofile-instr-generate", "__profc_")]
    {
        for compiler in compilers(&[compiler]) {
            let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("counted-{compiler}.s"));
            let mut command = Command::new(compiler);
            command.args(["-std=gnu11", "-O0", way, "-S", "-Iinclude", "tests/c/only_own.c", "-o"]);
            run(command.arg(&out).current_dir(c::SOURCES));
            let assembly = std::fs::read_to_string(out).unwrap();
            // Clang puts the file in front of what is static.
            let name = |text: &str| {
                let end = text.find(|c: char| !c.is_alphanumeric() && !"_.$".contains(c));
                text[..end.unwrap_or(text.len())].to_owned()
            };
            let counted: Vec<String> = assembly.split(counter).skip(1).map(name).collect();
            assert!(counted.iter().any(|name| name.contains("leaf")), "{compiler}: {counted:?}");
            let ours: Vec<_> = counted.iter().filter(|name| name.contains("ft_")).collect();
            assert!(ours.is_empty(), "{compiler}: {ours:?}");
        }
    }
}

/// In all standards that it is for, without a warning.
#[test]
fn the_header_compiles_without_warnings_in_every_standard() {
    let c = ["c99", "c11", "c17", "gnu99", "gnu11", "gnu17", "c2x"].map(|std| ("c", std));
    let cpp = ["c++17", "c++20", "c++2b", "gnu++17"].map(|std| ("c++", std));
    for compiler in compilers(&["gcc", "clang"]) {
        for (language, std) in c.into_iter().chain(cpp) {
            for off in [&[][..], &["-DFT_OFF"]] {
                let mut command = Command::new(compiler);
                command.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]);
                command.args(["-x", language, &format!("-std={std}"), "-Iinclude"]).args(off);
                run(command.arg("tests/c/events.c").current_dir(c::SOURCES));
            }
        }
    }
}

/// gcc refuses, at any level, a format of C that asks for an argument that the event does not have, and no other.
#[test]
fn a_format_of_what_is_not_there_does_not_compile() {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("formats.c");
    let refusal = |compiler: &str, level: &str, event: &str| {
        let program = format!(
            "#include <feather_trace.h>\nvoid f(int a, int b);\nvoid f(int a, int b) {{ {event}; (void)b; (void)a; }}\n"
        );
        std::fs::write(&source, program).expect("a file");
        let mut command = Command::new(compiler);
        command.args([
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pedantic",
            level,
            "-Iinclude",
            "-c",
            "-o",
            "/dev/null",
        ]);
        let output = command.arg(&source).current_dir(c::SOURCES).output().expect("a compiler");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.success(), said.is_empty(), "{event}: {said}");
        said
    };
    for compiler in compilers(&["gcc"]) {
        for level in ["-O0", "-O1", "-O2", "-Os", "-Og"] {
            for fits in [
                r#"FT_EVENT("c.f", "{} {}", a, b)"#,
                r#"FT_EVENT("c.f", "{b} {b:>4} {} {1}", a, b)"#,
                r#"FT_EVENT("c.f", "{} {} {} {} {} {5}", a, b, a, b, a, b)"#,
                r#"FT_EVENT("c.f", "{{}} {{9}}")"#,
                r#"FT_EVENT("c.f", "")"#,
                r#"FT_EVENT("c.f")"#,
            ] {
                assert_eq!(refusal(compiler, level, fits), "", "{level} {fits}");
            }
            for lacks in [
                r#"FT_EVENT("c.f", "{}")"#,
                r#"FT_EVENT("c.f", "{} {}", a)"#,
                r#"FT_EVENT("c.f", "{1}", a)"#,
                r#"FT_EVENT("c.f", "{2:#x}", a, b)"#,
                r#"FT_EVENT("c.f", "{} {} {} {} {} {} {}", a, b, a, b, a, b)"#,
            ] {
                let said = refusal(compiler, level, lacks);
                assert!(
                    said.contains("refers to an argument that the event does not have"),
                    "{level} {lacks}: {said}"
                );
            }
        }
    }
}

fn named(names: &[(ArgType, &str)]) -> Args {
    names.iter().map(|&(ty, name)| (ty, name.to_owned())).collect()
}

/// The words of a text.
fn text(text: &[u8]) -> Vec<u64> {
    let mut bytes = text.to_vec();
    bytes.resize(text.len().next_multiple_of(8), 0);
    let words = bytes.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
    std::iter::once(text.len() as u64).chain(words).collect()
}

/// What `tests/c/events.c` does, in order.
fn check(program: &Path) {
    let (events, metas) = events_of(program);
    let texts =
        [&text(b"literal")[..], &text(b"array"), &[0], &text(&[0, 255, 7]), &text(b"cu"), &[77]];
    let expected: Vec<(&str, SiteKind, Vec<u64>)> = vec![
        ("c.none", SiteKind::Event, vec![]),
        ("c.one", SiteKind::Event, vec![0]),
        ("c.one", SiteKind::Event, vec![1]),
        ("c.one", SiteKind::Event, vec![2]),
        ("c.types", SiteKind::Event, vec![u64::MAX, 65535, 1.5f64.to_bits(), 1, 16, 1]),
        ("c.wide", SiteKind::Event, vec![-5i64 as u64, u64::MAX, 2.25f64.to_bits()]),
        ("c.six", SiteKind::Event, vec![1, 2, 3, 4, 5, 6]),
        ("c.text", SiteKind::Event, texts.concat()),
        ("c.scope", SiteKind::ScopeBegin, vec![9]),
        ("c.scope", SiteKind::ScopeEnd, vec![]),
        ("async.new", SiteKind::TaskNew, vec![7]),
        ("async.switch", SiteKind::TaskSwitch, vec![7]),
        ("async.wake", SiteKind::TaskWake, vec![7]),
        ("async.switch", SiteKind::TaskSwitch, vec![0]),
        ("async.polled", SiteKind::TaskPolled, vec![7, 1]),
        ("async.drop", SiteKind::TaskDrop, vec![8]),
        ("c.library", SiteKind::Event, vec![41, 42]),
    ];
    assert_eq!(events.len(), expected.len(), "{events:#?}");
    for (event, (name, kind, words)) in events.iter().zip(expected) {
        assert_eq!((&*event.name, event.kind), (name, kind));
        assert_eq!(event.words[..words.len()], words, "{name}");
        assert!(event.words[words.len()..].iter().all(|&word| word == 0), "{name}");
    }
    let args = |wanted: &str| {
        metas.iter().find(|(name, _)| name == wanted).map(|(_, args)| args.clone()).unwrap()
    };
    use ArgType::*;
    let types: Vec<_> = args("c.types").into_iter().map(|(ty, _)| ty).collect();
    // An enumeration without negative values is unsigned in both languages.
    assert_eq!(types, [Signed, Unsigned, Float, Bool, Pointer, Unsigned]);
    assert_eq!(args("c.one"), named(&[(Signed, "i")]));
    assert_eq!(args("c.none"), []);
    let types: Vec<_> = args("c.text").into_iter().map(|(ty, _)| ty).collect();
    assert_eq!(types, [Str, Str, Str, Bytes, Str, Signed]);
}

/// Builds the program in all ways for one compiler and language.
fn check_language(compiler: &str, language: &[&str]) {
    for (level, link) in [("-O0", Link::Shared), ("-O2", Link::Shared), ("-O2", Link::Static)] {
        let name = format!("{compiler}-{level}-{link:?}");
        let flags = [language, &[level]].concat();
        // With the static library there is no other object: the site of the library is in the program.
        let library = format!("lib{name}.so");
        if link == Link::Static {
            let sources = ["tests/c/events.c", "tests/c/library.c"];
            check(&build(compiler, &flags, &sources, link, &name));
            continue;
        }
        let shared = [&flags[..], &["-shared", "-fPIC"]].concat();
        let library = build(compiler, &shared, &["tests/c/library.c"], link, &library);
        let directory = format!("-Wl,-rpath,{}", library.parent().unwrap().display());
        let object = library.to_str().unwrap();
        // Behind the sources, whose language must not be taken for that of the library.
        let flags = [&flags[..], &[&directory, "-Wl,--no-as-needed", "-Xlinker", object]].concat();
        check(&build(compiler, &flags, &["tests/c/events.c"], link, &name));
    }
}

#[test]
fn c_program() {
    for compiler in compilers(&["gcc", "clang"]) {
        check_language(compiler, &["-std=c11"]);
        let sources = ["tests/c/events.c", "tests/c/library.c"];
        for language in ["-std=c99", "-std=c17"] {
            let name = format!("{compiler}{language}");
            check(&build(compiler, &[language, "-O2"], &sources, Link::Shared, &name));
        }
    }
}

#[test]
fn cpp_program() {
    for compiler in compilers(&["g++", "clang++"]) {
        check_language(compiler, &["-std=c++17", "-x", "c++"]);
    }
}

#[test]
fn inline_functions_and_templates_of_several_sources() {
    for compiler in compilers(&["g++", "clang++"]) {
        for level in ["-O0", "-O2"] {
            let name = format!("inline-{compiler}{level}");
            let sources = ["tests/c/inline_first.cc", "tests/c/inline_second.cc"];
            let flags = ["-std=c++17", level, "-Wl,--gc-sections", "-ffunction-sections"];
            let (events, _) = events_of(&build(compiler, &flags, &sources, Link::Shared, &name));
            let first: Vec<_> = events.iter().map(|e| (&*e.name, e.words[0])).collect();
            let half = 2.5f64.to_bits();
            let of = ["c.inline", "c.template"];
            assert_eq!(first, [(of[0], 1), (of[0], 3), (of[1], 4), (of[1], 2), (of[1], half)]);
            assert_eq!(events[4].words[1..4], text(b"of a temporary"));
        }
    }
}

#[test]
fn header_alone_compiles_events_out() {
    for compiler in compilers(&["gcc", "clang"]) {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("off-{compiler}"));
        let mut command = Command::new(compiler);
        command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-DFT_OFF", "-I"]);
        command.arg(prefix().join("include")).arg("-o").arg(&out);
        command.arg(Path::new(c::SOURCES).join("examples/c/hello.c"));
        run(&mut command);
        assert_eq!(run(&mut Command::new(out)), "3142 steps\n");
    }
}

/// A library with a site, to be loaded.
fn plugin(compiler: &str, level: &str, link: Link) -> String {
    let name = format!("first-{compiler}{level}-{link:?}.so");
    let flags = ["-std=gnu11", level, "-shared", "-fPIC", "-DPLUGIN=first", "-DSTARTS"];
    let library = build(compiler, &flags, &["tests/c/plugin.c"], link, &name);
    format!("first={}", library.display())
}

/// A program that does not have the tracer itself.
fn host(source: &str) -> Command {
    let flags = ["-std=gnu11", "-Wl,--as-needed"];
    let mut host = Command::new(build("cc", &flags, &[source], Link::Shared, "host"));
    host.env("FT_ENABLE", "plugin.*").env("FT_SOCKET", "/dev/null/none");
    host
}

#[test]
fn the_static_library_becomes_part_of_a_shared_one() {
    for compiler in compilers(&["gcc", "clang"]) {
        for level in ["-O0", "-O2"] {
            let plugin = plugin(compiler, level, Link::Static);
            assert_eq!(run(host("tests/c/plugin_host.c").arg(plugin)), "");
        }
    }
}

#[test]
fn who_unloads_what_is_linked_with_the_shared_library_goes_on() {
    let plugin = plugin("cc", "-O2", Link::Shared);
    for events in ["plugin.*", "none.*"] {
        let mut host = host("tests/c/unloads.c");
        assert_eq!(run(host.arg(&plugin).env("FT_ENABLE", events)), "done\n", "{events}");
    }
}

#[test]
fn threads_may_be_cancelled_at_any_instruction() {
    for link in [Link::Static, Link::Shared] {
        let name = format!("cancelled-{link:?}");
        let program = build("cc", &["-std=gnu11", "-O2"], &["tests/c/cancelled.c"], link, &name);
        let mut cancelled = Command::new(program);
        cancelled.env("FT_ENABLE", "cancelled.*").env("FT_SOCKET", "/dev/null/none");
        assert_eq!(run(cancelled.env("FT_RING_SLOTS", "4096")), "done\n");
    }
}

/// The package file says what a program needs, also one that links everything statically.
#[test]
fn package_file_is_enough() {
    if compilers(&["pkg-config", "cc"]).len() < 2 {
        return;
    }
    for link in [&[][..], &["-static"], &["-static-pie"]] {
        let mut config = Command::new("pkg-config");
        config.env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
        config.args(["--cflags", "--libs", "feather_trace"]);
        config.args((!link.is_empty()).then_some("--static"));
        let flags = run(&mut config);
        let name = format!("hello-pkg-config{}", link.concat());
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let source = Path::new(c::SOURCES).join("examples/c/hello.c");
        let mut cc = Command::new("cc");
        run(cc.args(link).arg(source).arg("-o").arg(&out).args(flags.split_whitespace()));
        let mut hello = Command::new(out);
        hello.env("LD_LIBRARY_PATH", prefix().join("lib")).env("FT_SOCKET", "/dev/null/none");
        assert_eq!(run(&mut hello), "3142 steps\n");
    }
}

/// The optimiser at link time keeps every site; its LLVM need not be that of Rust.
#[test]
fn optimised_at_link_time() {
    for compiler in compilers(&["gcc", "clang"]) {
        let sources = ["tests/c/events.c", "tests/c/library.c"];
        let name = format!("{compiler}-lto");
        check(&build(compiler, &["-O2", "-flto"], &sources, Link::Static, &name));
    }
}

/// What C++ compilers say of an event with these, in either compiler; empty where they accept it.
fn said_of_format(format: &str, args: &str) -> Vec<String> {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = out.join("format.cc");
    let event = format!("FT_EVENT(\"a.b\", \"{format}\"{args});");
    let variables = "unsigned id, double rate, const char *name, int *p";
    let code = format!(
        "#include <feather_trace.h>\nstatic int f(int a, int b) {{ return a + b; }}\nvoid g({variables}) {{\n{event}\n}}\n"
    );
    std::fs::write(&source, format!("{code}int h() {{ return f(1, 2); }}\n")).unwrap();
    let compilers = compilers(&["g++", "clang++"]);
    let said = |compiler: &&str| {
        let mut command = Command::new(compiler);
        command.args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic"]);
        command.args(["-Wno-unused-parameter", "-fsyntax-only", "-I"]);
        let output = command.arg(prefix().join("include")).arg(&source).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.success(), said.is_empty(), "{said}");
        said
    };
    compilers.iter().map(said).collect()
}

/// A format that does not fit its arguments does not compile in C++, by the rules that hold for Rust.
#[test]
fn formats_of_cpp_fit_their_arguments() {
    use ft_user::layout::{ArgType, format};
    let args = [("id", ArgType::Unsigned), ("rate", ArgType::Float), ("name", ArgType::Str)];
    let more = [("p", ArgType::Pointer), ("f(1, 2)", ArgType::Signed)];
    let all = [&args[..], &more].concat();
    let check = |format: &str, args: &[(&str, ArgType)]| {
        let named: String = args.iter().map(|(name, _)| format!(", {name}")).collect();
        let fault = format::fault(format, args);
        for said in said_of_format(format, &named) {
            match fault {
                // The words are the same but for how they are quoted.
                Some(fault) => {
                    assert!(said.contains(&fault.replace('`', "")), "{format}: {fault}: {said}");
                    assert_eq!(said.matches("error: ").count(), 1, "{format}: {said}");
                }
                None => assert!(said.is_empty(), "{format}: {said}"),
            }
        }
        fault.is_none()
    };
    let good = [
        "",
        "{} {} {} {} {} {{}}",
        "{0} {4}",
        "{id:#010x} {rate:.2} {name:>8.3} {p:p} {f(1,2):+} {f(1, 2):e}",
        "{id:ü^8} {name:?<4} {rate:e} {p:X}",
    ];
    for format in good {
        assert!(check(format, &all), "{format}");
    }
    let bad = [
        "{",
        "}",
        "a } b",
        "{id",
        "{5}",
        "{9999}",
        "{ids}",
        "{ id }",
        "{} {} {} {} {} {}",
        "{id:z}",
        "{id:1$}",
        "{id:.}",
        "{id:x8}",
        "{id:99999}",
        "{rate:x}",
        "{name:x}",
        "{id:p}",
        "{name:e}",
    ];
    for format in bad {
        assert!(!check(format, &all), "{format}");
    }
    assert!(check("none", &[]) && !check("{}", &[]) && !check("{0}", &[]));
}

#[test]
fn an_event_without_arguments_needs_no_format() {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no_format.c");
    let code = "void f(void) { FT_EVENT(\"a.b\"); FT_BEGIN(\"a.c\"); FT_END(\"a.c\"); }";
    std::fs::write(&source, format!("#include <feather_trace.h>\nvoid f(void);\n{code}\n"))
        .unwrap();
    for compiler in compilers(&["gcc", "clang", "g++", "clang++"]) {
        let (language, standard) =
            if compiler.ends_with('+') { ("c++", "-std=c++17") } else { ("c", "-std=c99") };
        let mut command = Command::new(compiler);
        command.args(["-x", language, standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
        command.args(["-S", "-o", "/dev/null", "-I"]).arg(prefix().join("include"));
        let output = command.arg(&source).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{compiler}: {said}");
    }
}

const CATEGORY: &str = "the name of an event is";

/// A function with this event.
fn wrong(event: &str) -> String {
    format!("void f(__int128 wide) {{ (void)wide; {event}; }}")
}

/// What cannot be is refused in words.
#[test]
fn refusals_say_why() {
    let seven = "void f(void) { FT_EVENT(\"a.b\", \"\", 1, 2, 3, 4, 5, 6, 7); }";
    let mut cases = vec![("gcc", "-mcmodel=large", String::new(), "-mcmodel=medium")];
    let refused = [
        (seven.to_owned(), "at most six arguments"),
        (wrong("FT_EVENT(\"ab\", \"\")"), CATEGORY),
        (wrong("FT_EVENT(\"ab\")"), CATEGORY),
        (wrong("FT_EVENT(\"ab\", \"{}\", wide > 0)"), CATEGORY),
        (wrong("FT_BEGIN(\"\", \"\")"), CATEGORY),
        (wrong("FT_EVENT(\"a.b\", \"\", wide)"), "at most 64 bits wide"),
    ];
    for (code, expected) in refused {
        for (compiler, flag) in [("gcc", "-O0"), ("gcc", "-O2"), ("clang", "-O0"), ("clang", "-O2")]
        {
            cases.push((compiler, flag, code.clone(), expected));
        }
    }
    for (compiler, flag, code, expected) in cases {
        if compilers(&[compiler]).is_empty() {
            continue;
        }
        let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("refused.c");
        std::fs::write(&source, format!("#include <feather_trace.h>\n{code}\n")).unwrap();
        let mut command = Command::new(compiler);
        command.args(["-std=c11", "-S", "-o", "/dev/null", flag, "-I"]);
        command.arg(prefix().join("include"));
        let output = command.arg(&source).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(expected), "{compiler} {flag}: {said}");
        let errors = said.lines().filter(|line| line.contains(": error: ")).count();
        assert_eq!(errors, 1, "{said}");
    }
}
