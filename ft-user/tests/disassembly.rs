//! What a site costs while it is off, read from the machine code of `examples/hot_path.rs`: one
//! instruction. No call, no register saved on entry, no use of the stack, no load of an argument.
#![cfg(all(target_arch = "x86_64", not(ft_off)))]

#[path = "../../tests/common/said.rs"]
mod said;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::Command;

use ft_user::layout::{TRIGGER_BYTES, TRIGGER_LENT, TRIGGER_OFF, TRIGGER_ON, TRIGGER_STATE};

/// The assembly that the compiler makes of the example.
fn compile(opt_level: &str) -> String {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hot-path-{opt_level}"));
    let output = Command::new(env!("CARGO"))
        .args(["rustc", "--quiet", "--offline", "--release", "--example", "hot_path"])
        .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")])
        .args(["--config", &format!("profile.release.opt-level={opt_level}")])
        .args(["--config", "profile.release.debug=false", "--target-dir"])
        .arg(&target)
        .args(["--", "--emit=asm", "-Ccodegen-units=1"])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let files = target.join("release/examples").read_dir().expect("there is output");
    let newest = files
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "s"))
        .max_by_key(|path| path.metadata().and_then(|m| m.modified()).expect("a time"))
        .expect("an assembly file");
    std::fs::read_to_string(newest).expect("assembly is text")
}

/// What the program runs through while every site of a function is off.
#[derive(Debug, Default)]
struct HotPath<'a> {
    sites: usize,
    instructions: Vec<&'a str>,
}

/// The first four bytes of a site that is off, as a compiler prints them.
fn is_trigger(line: &str) -> bool {
    let number = line.strip_prefix(".long").map(str::trim);
    number.is_some_and(|n| n == TRIGGER_OFF.to_string() || n == format!("{TRIGGER_OFF:#x}"))
}

/// Follows every path from the entry of `function`, except into the cold block of a site: only the
/// displacement of its trigger names that, which is data here.
fn hot_path<'a>(assembly: &'a str, function: &str) -> HotPath<'a> {
    let lines: Vec<&str> = assembly
        .lines()
        .skip_while(|line| line.strip_suffix(':') != Some(function))
        .take_while(|line| !line.starts_with(".Lfunc_end") && !line.starts_with("\t.size"))
        .map(str::trim)
        .collect();
    assert!(!lines.is_empty(), "{function} is not in the assembly");
    let labels: HashMap<&str, usize> = lines
        .iter()
        .enumerate()
        .filter_map(|(i, line)| Some((line.strip_suffix(':')?, i)))
        .collect();
    let mut hot = HotPath::default();
    let (mut open, mut seen) = (vec![0], HashSet::new());
    while let Some(mut at) = open.pop() {
        while at < lines.len() && seen.insert(at) {
            let line = lines[at];
            at += 1;
            if is_trigger(line) {
                hot.sites += 1;
            }
            if line.is_empty() || line.starts_with(['.', '#']) || line.ends_with(':') {
                continue;
            }
            hot.instructions.push(line);
            if let Some((mnemonic, target)) = line.split_once('\t')
                && mnemonic.starts_with('j')
            {
                open.extend(labels.get(target));
                if mnemonic == "jmp" {
                    break;
                }
            } else if line.starts_with("ret") {
                break;
            }
        }
    }
    hot
}

/// Checks that the hot path of `function` has `sites` sites, and, beside them, `accesses` instructions
/// that read or write memory: those of its own work.
fn check(assembly: &str, function: &str, sites: usize, accesses: usize) {
    let hot = hot_path(assembly, function);
    assert_eq!(hot.sites, sites, "sites of {function}: {hot:#?}");
    let stack = |line: &&&str| {
        ["push", "pop", "call"].iter().any(|m| line.starts_with(m)) || line.contains("%rsp")
    };
    assert_eq!(hot.instructions.iter().find(stack), None, "{function} uses the stack: {hot:#?}");
    let access = |line: &&&str| line.contains('(') && !line.starts_with("lea");
    assert_eq!(hot.instructions.iter().filter(access).count(), accesses, "{function}: {hot:#?}");
}

fn check_all(opt_level: &str) {
    let assembly = compile(opt_level);
    check(&assembly, "no_argument", 1, 0);
    check(&assembly, "two_arguments", 1, 0);
    check(&assembly, "six_parameters", 1, 0);
    check(&assembly, "six_fields", 1, 1);
    check(&assembly, "six_in_a_loop", 1, 1);
    check(&assembly, "six_in_a_generic_loop", 1, 1);
    check(&assembly, "two_sites", 2, 2);
    check(&assembly, "one_scope", 2, 0);
    check(&assembly, "one_function", 2, 0);
    check(&assembly, "text_parameters", 1, 0);
    check(&assembly, "text_in_a_loop", 1, 1);
    check(&assembly, "optional_parameters", 1, 0);
}

#[test]
fn disabled_site_is_one_instruction_at_level_2() {
    check_all("2");
}

#[test]
fn disabled_site_is_one_instruction_at_level_3() {
    check_all("3");
}

/// The assembly that a compiler of C or C++ makes of `tests/c/hot_path.c`; none where there is none.
fn compile_c(compiler: &str, language: &[&str]) -> Option<String> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/c/hot_path.c");
    let output = Command::new(compiler)
        .args(language)
        .args(["-O2", "-fno-verbose-asm", "-S", "-o", "-", "-I"])
        .args([concat!(env!("CARGO_MANIFEST_DIR"), "/include"), source])
        .output();
    let Ok(output) = output else {
        said::skipped(&format!("{compiler} is not installed; `cargo xtask setup` gets it"));
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("assembly is text"))
}

#[test]
fn disabled_site_of_c_is_one_instruction() {
    let (c, cpp) = (["-std=c11", "-x", "c"], ["-std=c++17", "-x", "c++"]);
    for (compiler, language) in [("gcc", c), ("clang", c), ("g++", cpp), ("clang++", cpp)] {
        let Some(assembly) = compile_c(compiler, &language) else { continue };
        check(&assembly, "six_parameters", 1, 0);
        check(&assembly, "six_in_a_loop", 1, 1);
        check(&assembly, "text_parameters", 1, 0);
    }
}

/// The instructions that a disassembler finds in the bytes of a trigger: first four bytes, and the
/// displacement of its jump.
fn disassemble(form: u32, displacement: i32) -> Vec<String> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("trigger-{form:x}"));
    std::fs::write(&file, [form.to_le_bytes(), displacement.to_le_bytes()].concat()).unwrap();
    let output = Command::new("objdump")
        .args(["-D", "-b", "binary", "-m", "i386:x86-64", "--no-show-raw-insn"])
        .arg(&file)
        .output()
        .expect("objdump is installed, of the package binutils, as the linker is");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("disassembly is text");
    text.lines()
        .filter_map(|line| line.trim_start().split_once(":\t"))
        .map(|(address, instruction)| format!("{address} {}", instruction.trim()))
        .collect()
}

/// Off, all eight bytes are one nop; on, a nop ends before the jump, which leads to the same place.
#[test]
fn the_forms_are_what_a_disassembler_reads() {
    assert_eq!(disassemble(TRIGGER_OFF, 0x1234), ["0 nopl   0x1234(%rcx,%rbp,8)"]);
    let end = TRIGGER_BYTES + 0x1234;
    assert_eq!(disassemble(TRIGGER_ON, 0x1234), ["0 nopl   (%rax)", &format!("3 jmp    {end:#x}")]);
    assert_eq!(
        disassemble(TRIGGER_LENT, 0x1234),
        ["0 nopl   (%rbx)", &format!("3 jmp    {end:#x}")]
    );
    for on in [TRIGGER_ON, TRIGGER_LENT] {
        let changed = (TRIGGER_OFF ^ on).to_le_bytes();
        assert_eq!(changed.map(|byte| byte != 0), [0, 1, 2, 3].map(|n| n == TRIGGER_STATE));
    }
}

/// The test itself: it finds what it looks for.
#[test]
fn spill_and_load_are_seen() {
    let assembly = "f:\n\tpushq\t%rbx\n\t.long\t0xe9841f0f\n\t.long\t.LBB0_2-.L1\n\tjmp\t.LBB0_1\n\
                    .LBB0_2:\n\tcallq\twrite\n.LBB0_1:\n\tmovq\t(%rdi), %rax\n\tretq\n.Lfunc_end0:\n";
    let hot = hot_path(assembly, "f");
    assert_eq!(hot.sites, 1);
    assert_eq!(hot.instructions, ["pushq\t%rbx", "jmp\t.LBB0_1", "movq\t(%rdi), %rax", "retq"]);
}
