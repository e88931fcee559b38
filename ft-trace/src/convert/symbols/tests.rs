use super::program::Function;
use super::*;
use crate::build_id;
use crate::demangle::demangled;
use crate::foreign_file::ForeignFile;
use crate::vdso;

fn mapping(start: u64, offset: u64, path: &str) -> Mapping {
    Mapping { start, end: start + 0x100, offset, path: path.to_owned(), ..Mapping::default() }
}

/// This process, which recorded itself.
fn of_self(programs: &mut Programs) -> OfProcess<'_> {
    let user = Some(rustix::process::geteuid().as_raw());
    OfProcess { programs, pid: Pid(std::process::id() as i32), user }
}

/// The files that this process has mapped (proc_pid_maps(5)).
fn own_mappings() -> Vec<Mapping> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mappings = maps.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [range, _, offset, _, _, path] = words[..] else { return None };
        let (start, end) = range.split_once('-')?;
        let number = |hex| u64::from_str_radix(hex, 16).ok();
        let mut mapping = Mapping {
            start: number(start)?,
            end: number(end)?,
            offset: number(offset)?,
            path: path.to_owned(),
            ..Mapping::default()
        };
        let file = ForeignFile::mapped(std::process::id() as i32, &mapping)?;
        (mapping.build_id, mapping.address) = build_id::of_mapped(&file, &mapping);
        mapping.file = file.facts().map(|facts| facts.key);
        Some(mapping)
    });
    mappings.collect()
}

#[test]
fn what_is_ambiguous_is_not_told() {
    let check = |mappings: &[Mapping], address, expected: Option<&str>| {
        assert_eq!(only_mapping(mappings, address).map(|m| m.path.as_str()), expected);
    };
    let (a, b) = (mapping(0x1000, 0, "/a"), mapping(0x1000, 0, "/b"));
    check(std::slice::from_ref(&a), 0x10ff, Some("/a"));
    check(std::slice::from_ref(&a), 0x1100, None);
    check(&[a.clone(), b], 0x1000, None);
    // Read twice while it grew.
    check(&[a, Mapping { end: 0x2000, ..mapping(0x1000, 0, "/a") }], 0x1001, Some("/a"));
}

#[test]
fn functions_of_the_vdso_are_found_in_our_own() {
    let own = own_mappings();
    let mapping = own.iter().find(|mapping| mapping.path == vdso::NAME).expect("Linux maps one");
    assert!(!mapping.build_id.is_empty() && mapping.address.is_some(), "{mapping:?}");
    let mut programs = Programs::default();
    let mut programs = of_self(&mut programs);
    let program = programs.get(mapping).unwrap();
    let is_it = |function: &&Function| function.name == "__vdso_clock_gettime";
    let function = program.functions().iter().find(is_it).unwrap();
    let names: Vec<_> = program.frames(function.address + 1).into_iter().map(|s| s.name).collect();
    assert!(matches!(&names[..], [name] if name.ends_with("clock_gettime")), "{names:?}");
    // That of another kernel is another one.
    assert!(programs.get(&Mapping { build_id: "00".into(), ..mapping.clone() }).is_none());
}

#[test]
fn own_function_and_variable_are_found() {
    static VARIABLE: [std::sync::atomic::AtomicU64; 4] =
        [const { std::sync::atomic::AtomicU64::new(1) }; 4];
    let own = own_mappings();
    let mut programs = Programs::default();
    let mut programs = of_self(&mut programs);

    let here = own_function_and_variable_are_found as *const () as u64;
    let (_, symbol) = programs.call(only_mapping(&own, here).unwrap(), here);
    assert!(symbol.name.contains("own_function_and_variable"), "{symbol:?}");
    assert!(symbol.file.ends_with("symbols/tests.rs") && symbol.line > 40, "{symbol:?}");

    let third = &raw const VARIABLE[2] as u64;
    let (_, _, symbol) = programs.variable(&own, third).unwrap();
    assert!(symbol.name.contains("VARIABLE") && symbol.name.ends_with("+0x10"), "{symbol:?}");
    assert!(programs.variable(&own, &raw const own as u64).is_none(), "on the stack");
}

#[test]
fn only_mangled_names_are_demangled() {
    let names = ["m", "a", "s", "_Z1mv", "_RNvC1a1f", "_ZN1a1b17h0123456789abcdefE"];
    assert_eq!(names.map(demangled), ["m", "a", "s", "m()", "a::f", "a::b"]);
}

/// An address in a function is its own, and one behind its end is not.
#[test]
fn functions_have_names_and_ends() {
    let own = own_mappings();
    let here = functions_have_names_and_ends as *const () as u64;
    let mapping = only_mapping(&own, here).unwrap();
    let mut programs = Programs::default();
    let mut programs = of_self(&mut programs);
    let program = programs.get(mapping).unwrap();
    let at = program.address(here - mapping.start + mapping.offset).unwrap();
    let frames = program.frames(at);
    assert!(frames[0].name.contains("functions_have_names"), "{frames:?}");
    let functions = program.functions();
    let (function, gap) = functions
        .windows(2)
        .map(|pair| (&pair[0], pair[0].address + pair[0].size, pair[1].address))
        .find_map(|(f, end, next)| (f.size > 0 && end < next).then_some((f, end)))
        .expect("functions are aligned");
    let name = demangled(&function.name);
    assert!(program.frames(gap).iter().all(|symbol| symbol.name != name), "{name}");
    let (looked_at, framed) = program.framed();
    assert!(looked_at > 100 && framed <= looked_at, "{framed} of {looked_at}");
}

/// One that has taken the place of a file without a build id would be taken for it.
#[test]
fn what_has_the_path_of_a_file_that_is_gone_is_not_asked_without_a_build_id() {
    let own = std::env::current_exe().unwrap();
    let there = mapping(0x1000, 0, own.to_str().unwrap());
    let gone = Mapping { is_gone: true, ..there.clone() };
    assert!(there.has_file() && !gone.has_file());
    assert!(Mapping { build_id: "ab".into(), ..gone.clone() }.has_file());
    let mut programs = Programs::default();
    assert!(of_self(&mut programs).get(&gone).is_none());
}
