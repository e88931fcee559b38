//! Functions in which clang has left sleds, or gcc patchable entries, switched one by one while they run.
#![cfg(not(ft_off))]

#[path = "common/c.rs"]
mod c;
mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use c::{Link, build, compilers};
use common::{Event, Memory};
use ft_user::layout::{Frame, SLED_BYTES, SiteKind, Sled, SledKind, SledState};

const SLEDS: [&str; 4] =
    ["-std=gnu11", "-fxray-instrument", "-fxray-instruction-threshold=1", "-fnoxray-link-deps"];

/// The program in several forms: near the library, which is in it, and far from it; where the linker wants it, and anywhere.
fn programs() -> &'static [PathBuf] {
    static PROGRAMS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    PROGRAMS.get_or_init(built)
}

fn built() -> Vec<PathBuf> {
    let mut programs = Vec::new();
    for compiler in compilers(&["clang"]) {
        for (name, link, flags) in [
            ("sleds-shared", Link::Shared, &["-O2", "-fPIE", "-pie"][..]),
            ("sleds-plain", Link::Shared, &["-O0", "-fno-pie", "-no-pie"]),
            ("sleds-static", Link::Static, &["-O2"]),
        ] {
            let flags = [&SLEDS[..], flags, &["-Wno-unused-command-line-argument"]].concat();
            programs.push(build(compiler, &flags, &["tests/c/sleds.c"], link, name));
        }
    }
    programs
}

/// The same with nops of gcc: at the begin, or behind an `endbr64`.
fn patchable() -> &'static [PathBuf] {
    static PROGRAMS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let build = |compiler, name, link, flags: &[&str]| {
            let flags = [&["-std=gnu11", "-fpatchable-function-entry=11"], flags].concat();
            build(compiler, &flags, &["tests/c/sleds.c"], link, name)
        };
        compilers(&["gcc"])
            .into_iter()
            .flat_map(|gcc| {
                [
                    build(gcc, "entries-shared", Link::Shared, &["-O2", "-fPIE", "-pie"]),
                    build(gcc, "entries-plain", Link::Shared, &["-O0", "-fno-pie", "-no-pie"]),
                    build(gcc, "entries-static", Link::Static, &["-O2", "-fcf-protection"]),
                ]
            })
            .collect()
    })
}

struct Running {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

fn run(program: &Path, arguments: &[&str]) -> Running {
    start(Command::new(program).args(arguments).env("FT_PATCHABLE", "1"))
}

fn start(command: &mut Command) -> Running {
    let mut child = command
        .env("FT_SOCKET", "/dev/null/none")
        .env_remove("FT_ENABLE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    Running { child, output }
}

impl Running {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("text");
        line.trim_end().to_owned()
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }
}

/// Begins and ends of functions by their addresses; each end is that of the newest begin, in the same frame.
fn calls(events: &[Event]) -> Vec<(SiteKind, u64)> {
    let mut open = Vec::new();
    for event in events {
        assert_eq!(event.name, "fn.instrumented");
        let (function, frame) = (event.words[0], Frame(event.words[1]));
        let call = (function, frame.height(), frame.caller());
        match event.kind {
            SiteKind::FunctionEnter => open.push(call),
            _ => assert_eq!(open.pop(), Some(call), "{event:?}"),
        }
    }
    assert_eq!(open, []);
    events.iter().map(|event| (event.kind, event.words[0])).collect()
}

#[test]
fn single_functions_tell_their_calls_and_keep_all_registers() {
    for program in programs() {
        let mut running = run(program, &[]);
        let line = running.line();
        let words: Vec<&str> = line.split(' ').collect();
        let [leaf, tail, branch, one, all, off] = words[..] else { panic!("{line:?}") };
        let address = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
        let [leaf, tail, branch] = [leaf, tail, branch].map(address);
        let [one, all, off] = [one, all, off].map(|number| number.parse::<usize>().unwrap());
        // A begin and an end each; the others have as many, and so has the pair of the hooks.
        assert_eq!((one, all), (2, off), "{line}");
        assert!(all >= 2 * 8 + 2, "{line}");
        let calls = calls(&Memory::of(running.child.id()).take());
        let (begin, end) = (SiteKind::FunctionEnter, SiteKind::FunctionExit);
        let of_leaf = [(begin, leaf), (end, leaf)];
        // A tail call begins when its caller has ended.
        let is_tail = !program.ends_with("sleds-plain");
        let of_tail = match is_tail {
            true => [(begin, tail), (end, tail), (begin, leaf), (end, leaf)],
            false => [(begin, tail), (begin, leaf), (end, leaf), (end, tail)],
        };
        let of_branch = [&[(begin, branch)][..], &of_leaf, &of_tail, &[(end, branch)]].concat();
        let expected = [&of_leaf[..], &of_leaf, &of_branch].concat();
        assert_eq!(calls[..expected.len()], expected, "{}", program.display());
        // Those of what followed while all were on.
        assert!(calls.len() >= expected.len() + 2 * 4, "{}", program.display());
        running.end();
    }
}

#[test]
fn patchable_entries_tell_their_calls_and_keep_all_registers() {
    for program in patchable() {
        let mut running = run(program, &[]);
        let line = running.line();
        let words: Vec<&str> = line.split(' ').collect();
        let [leaf, tail, branch, one, all, off] = words[..] else { panic!("{line:?}") };
        // One each, and three of the hooks.
        assert_eq!((one, all), ("1", off), "{line}");
        assert!(all.parse::<usize>().unwrap() >= 8 + 3, "{line}");
        let events = Memory::of(running.child.id()).take();
        assert!(events.iter().all(|event| event.kind == SiteKind::FunctionCalled));
        let called: Vec<_> = events.iter().map(|event| format!("{:#x}", event.words[0])).collect();
        // Alone in two calls of it; then all.
        let expected = [leaf, leaf, branch, leaf, tail, leaf];
        assert_eq!(called[..6], expected, "{}", program.display());
        assert!(called.len() >= 6 + 4, "{}", program.display());
        // `leaf` and `tail` are called by `branch`, whose frame is higher, though perhaps within the same 16 bytes.
        let height = |n: usize| Frame(events[n].words[1]).height();
        let by_branch = [height(3), height(4)].map(|below| height(2) - below);
        assert!(by_branch.iter().all(|&far| far < 8), "{by_branch:?}, {}", program.display());
        running.end();
    }
}

/// The text of a program is that of its file.
fn is_untouched(running: &Running, program: &Path) {
    let file = fs::read(program).expect("the program");
    for (offset, bytes) in text(running.child.id(), program) {
        let known = bytes.len().min(file.len() - offset);
        let differ = (0..known).find(|&at| bytes[at] != file[offset + at]);
        assert_eq!(differ, None, "{}", program.display());
    }
}

/// A thread could be in the nops then.
#[test]
fn patchable_entries_are_left_alone_where_there_are_threads() {
    for program in patchable() {
        let mut running = run(program, &["late"]);
        assert_eq!(running.line(), "0", "{}", program.display());
        is_untouched(&running, program);
        running.end();
    }
}

/// The program may have them for itself.
#[test]
fn patchable_entries_are_left_alone_where_nobody_says_that_they_are_for_this() {
    for program in patchable() {
        for command in [&mut Command::new(program), Command::new(program).env("FT_PATCHABLE", "0")]
        {
            let mut running = start(command);
            let line = running.line();
            assert_eq!(line.split(' ').nth(3), Some("0"), "{line}");
            is_untouched(&running, program);
            running.end();
        }
    }
}

/// Fewer nops, and those of a function's own behind them; nops in front of functions.
#[test]
fn what_may_be_no_entry_is_left_alone() {
    for gcc in compilers(&["gcc"]) {
        let few = ["5", "6", "7", "10", "16,5"]
            .map(|nops| [(nops, "-UNEVER", "0"), (nops, "-DNEVER", "0")]);
        let enough = [("11", "-UNEVER", "2"), ("11", "-DNEVER", "3")];
        for (nops, never, expected) in few.into_iter().flatten().chain(enough) {
            for optimised in ["-Os", "-O2"] {
                let option = format!("-fpatchable-function-entry={nops}");
                let flags = ["-std=gnu11", optimised, &option, never];
                let program =
                    build(gcc, &flags, &["tests/c/nops.c"], Link::Shared, &format!("nops-{nops}"));
                let mut running = run(&program, &[]);
                assert_eq!(running.line(), expected, "{flags:?}");
                running.end();
            }
        }
    }
}

/// They would be called to record that they are called.
#[test]
fn a_programs_own_functions_that_recording_calls_are_left_alone() {
    let forms = [("clang", &SLEDS[..]), ("gcc", &["-std=gnu11", "-fpatchable-function-entry=11"])];
    for (compiler, flags) in forms {
        for compiler in compilers(&[compiler]) {
            for link in [Link::Static, Link::Shared] {
                let flags = [
                    flags,
                    &["-O1", "-fno-builtin", "-rdynamic", "-Wno-unused-command-line-argument"],
                ]
                .concat();
                let name = format!("own-{compiler}");
                let mut command =
                    Command::new(build(compiler, &flags, &["tests/c/own.c"], link, &name));
                command.env("FT_PATCHABLE", "1").env("FT_RING_SLOTS", "256").env("FT_RINGS", "1");
                let mut running = start(&mut command);
                assert_eq!(running.line(), "1 1 0 0", "{compiler}");
                running.end();
            }
        }
    }
}

/// What is far from the text is not called; and of functions that are one, the linker tells the entry twice.
#[test]
fn gigabytes_of_zeros_and_functions_that_are_one_are_in_nobodys_way() {
    let has_gold = Command::new("ld.gold").arg("--version").output().is_ok();
    if !has_gold {
        c::skipped("functions that are one: ld.gold is not installed");
    }
    let gold = ["-ffunction-sections", "-fuse-ld=gold", "-Wl,--icf=all"];
    let forms = [("large", &[][..], "2"), ("one", &gold, "1")];
    for gcc in compilers(&["gcc"]) {
        for (name, linker, expected) in
            forms.into_iter().filter(|form| has_gold || form.0 == "large")
        {
            let flags = ["-O1", "-mcmodel=medium", "-fpatchable-function-entry=11"];
            let flags = [&flags, linker].concat();
            let program = build(gcc, &flags, &["tests/c/large.c"], Link::Shared, name);
            let mut running = run(&program, &[]);
            assert_eq!(running.line(), expected, "{name}");
            running.end();
        }
    }
}

/// Where another library was mapped before.
#[test]
fn a_library_that_was_built_anew_has_its_own_functions() {
    for gcc in compilers(&["gcc"]) {
        let host = build(gcc, &["-O1"], &["tests/c/reload.c"], Link::Shared, "reload");
        let places = ["plug.so", "plug-1.so", "plug-2.so"].map(|name| host.with_file_name(name));
        for (place, more) in [(&places[1], None), (&places[2], Some("-DMORE"))] {
            let mut command = Command::new(gcc);
            command.args(["-O1", "-shared", "-fPIC", "-fpatchable-function-entry=11"]).args(more);
            // What begins elsewhere lies elsewhere, where pages are this large.
            command.arg("-Wl,-z,max-page-size=0x200000");
            command.arg(Path::new(c::SOURCES).join("tests/c/plug.c")).arg("-o").arg(place);
            c::run(&mut command);
        }
        let [place, one, more] = places.each_ref().map(|place| place.to_str().expect("a path"));
        let mut running = run(&host, &[place, one, more, one, more, more]);
        assert_eq!(running.line(), "1 3 1 3 3");
        running.end();
    }
}

#[test]
fn patchable_entries_become_sleds_between_the_signals_of_their_thread() {
    for program in patchable() {
        let mut running = run(program, &["signals"]);
        assert_eq!(running.line(), "fine", "{}", program.display());
        running.end();
    }
}

#[test]
fn sleds_flip_under_a_storm_of_calls() {
    for program in programs().iter().chain(patchable()) {
        let mut running = run(program, &["4"]);
        assert_eq!(running.line(), "running");
        assert_eq!(running.line(), "fine", "{}", program.display());
        running.end();
    }
}

/// What the program has in memory, of the parts of its file that are text: offset in the file, and bytes.
fn text(pid: u32, program: &Path) -> Vec<(usize, Vec<u8>)> {
    let memory = fs::File::open(format!("/proc/{pid}/mem")).expect("its memory");
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("its maps");
    let part = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_text =
            fields.get(5).is_some_and(|path| Path::new(path) == program) && fields[1] == "r-xp";
        let number = |text| u64::from_str_radix(text, 16).expect("a number");
        is_text.then(|| {
            let (start, end) = fields[0].split_once('-').expect("a range");
            let (start, end) = (number(start), number(end));
            let mut bytes = vec![0; (end - start) as usize];
            memory.read_exact_at(&mut bytes, start).expect("text");
            (number(fields[2]) as usize, bytes)
        })
    };
    assert!(!maps.lines().any(|line| line.contains(" rwx")), "{maps}");
    maps.lines().filter_map(part).collect()
}

#[test]
fn nothing_but_what_is_skipped_is_written_and_the_death_of_a_program_loses_nothing_told() {
    for program in programs() {
        let mut running = run(program, &["1", "wait"]);
        assert_eq!(running.line(), "running");
        let file = fs::read(program).expect("the program");
        let (mut prepared, pid) = (0, running.child.id());
        for (offset, bytes) in text(pid, program) {
            let mut at = 0;
            while at < bytes.len() {
                let bare = |at: usize| file.get(offset + at).copied().unwrap_or_default();
                if bytes[at] == bare(at) {
                    at += 1;
                    continue;
                }
                // The first byte that differs is behind a jump over nine bytes, or a return.
                let (start, kind) = match (bare(at.wrapping_sub(2)), bare(at.wrapping_sub(1))) {
                    (0xeb, 9) => (at - 2, SledKind::Begin),
                    (_, 0xc3) => (at - 1, SledKind::Return),
                    other => panic!("{other:x?} before {at:#x} of {}", program.display()),
                };
                let all: [u8; SLED_BYTES as usize] = bytes[start..start + 11].try_into().unwrap();
                let before: [u8; SLED_BYTES as usize] =
                    file[offset + start..offset + start + 11].try_into().unwrap();
                // Its data say which function's it is.
                let data = if kind == SledKind::Return { start + 7 } else { start + 2 };
                let returns = start + if kind == SledKind::Return { 6 } else { 11 };
                let distance = i32::from_le_bytes(bytes[data..data + 4].try_into().unwrap());
                let function = (returns as u64).wrapping_add_signed(distance.into());
                let sled = Sled { address: start as u64, function, kind };
                assert_eq!(sled.state(before), Some(SledState::Bare), "{before:x?}");
                assert_eq!(sled.state(all), Some(SledState::Off), "{all:x?}");
                prepared += 1;
                at = start + 11;
            }
        }
        assert!(prepared >= 2 * 8, "{prepared} of {}", program.display());
        // On, and killed among its calls: what was committed lies in the memfd.
        let mut memory = Memory::of(pid);
        drop(running.child.stdin.take());
        let mut events = Vec::new();
        while events.len() < 1000 {
            let is_over = running.child.try_wait().expect("its state").is_some();
            events.extend(memory.take());
            assert!(!is_over || events.len() >= 1000, "{} events", events.len());
        }
        running.child.kill().expect("it runs, or has ended");
        running.child.wait().expect("it has ended");
        let rest = memory.take();
        let both = events.iter().chain(&rest);
        // A reader too slow for the storm, as on a busy machine, finds losses among the calls.
        let mut others = both.filter(|event| event.name != "fn.instrumented");
        assert!(others.all(|event| event.name == "loss"));
    }
}

/// What a disassembler makes of the forms.
#[test]
fn the_forms_are_these_instructions() {
    if Command::new("objdump").arg("--version").output().is_err() {
        c::skipped("objdump is not installed; `cargo xtask setup` gets it");
        return;
    }
    for (kind, off, on) in [
        (SledKind::Begin, &["jmp 0x40100b"][..], &["jmp 0x401006", "call 0x402000"][..]),
        (SledKind::Jump, &["jmp 0x40100b"], &["jmp 0x401006", "call 0x402000"]),
        (SledKind::Entry, &["nop", "jmp 0x40100b"], &["nop", "jmp 0x401006", "call 0x402000"]),
        (SledKind::Return, &["ret"], &["nop", "call 0x402000", "ret"]),
    ] {
        let sled = Sled { address: 0x40_1000, function: 0x40_1000, kind };
        let mut bytes = sled.off(0x40_2000).expect("it is near");
        assert_eq!(executed(&bytes), off, "{kind:?}");
        let (at, byte) = sled.switch(true);
        bytes[at as usize] = byte;
        assert_eq!(executed(&bytes), on, "{kind:?}");
    }
}

/// The instructions of a sled at 0x401000 that are executed: jumps are followed, and calls return.
fn executed(bytes: &[u8]) -> Vec<String> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sled.bin");
    let mut at = 0;
    let mut found = Vec::new();
    while at < bytes.len() {
        fs::write(&path, bytes).expect("a file");
        let output = Command::new("objdump")
            .args(["-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "--no-show-raw-insn"])
            .args(["--adjust-vma=0x401000", &format!("--start-address={:#x}", 0x40_1000 + at)])
            .arg(&path)
            .output()
            .expect("objdump starts");
        let text = String::from_utf8(output.stdout).expect("text");
        let lines = text.lines().filter_map(|line| line.split_once(":\t"));
        let mut lines = lines.filter(|(address, _)| address.trim().starts_with("401"));
        let (_, instruction) = lines.next().expect("an instruction");
        let words: Vec<&str> = instruction.split_whitespace().collect();
        found.push(words.join(" "));
        at = match words[..] {
            ["ret", ..] => break,
            ["jmp", to] => {
                let to = u64::from_str_radix(to.trim_start_matches("0x"), 16).expect("a place");
                (to - 0x40_1000) as usize
            }
            _ => match lines.next() {
                Some((next, _)) => {
                    usize::from_str_radix(next.trim(), 16).expect("a place") - 0x40_1000
                }
                None => break,
            },
        };
    }
    found
}
