//! Where threads were, in functions.

use std::collections::HashMap;

use super::runtime::{JIT, Runtime, is_compiled};
use crate::code::{Code, Frame};

/// Functions of a chain that are kept.
///
/// Limit: none beyond them are named in JSON; the screen names fewer.
/// Shown by: no figure: which functions are named.
const MAX_FUNCTIONS: usize = 16;

/// The chain that has most time, by its functions: one chain has another number in each part of a trace.
pub(super) fn merged<'c>(stacks: &HashMap<i64, i64>, code: &'c Code) -> Vec<&'c Frame> {
    let mut by_functions: HashMap<Vec<&str>, (i64, i64)> = HashMap::new();
    for (&stack, &ns) in stacks {
        let chain = code.chain(Some(stack));
        let names = own(&chain).iter().map(|frame| &*frame.label).collect();
        let (sum, first) = by_functions.entry(names).or_insert((0, stack));
        *sum += ns;
        *first = stack.min(*first);
    }
    let known = by_functions.into_iter().filter(|(names, _)| !names.is_empty());
    let most = known.max_by(|(a, (x, _)), (b, (y, _))| x.cmp(y).then_with(|| b.cmp(a)));
    most.map_or(Vec::new(), |(_, (_, stack))| code.chain(Some(stack)))
}

/// What of a chain is in user space.
fn own<'c>(chain: &[&'c Frame]) -> Vec<&'c Frame> {
    chain.iter().filter(|frame| !frame.kernel).copied().collect()
}

/// The name of a function without its parameters, those of templates, and those of closures in it.
pub(super) fn short(label: &str) -> String {
    let (mut name, mut depth) = (String::new(), 0_u32);
    for c in label.chars() {
        match c {
            // A name that begins with one is that of a trait's function, or of an anonymous namespace.
            '<' | '(' if !name.is_empty() || depth > 0 => depth += 1,
            '>' | ')' if depth > 0 => depth -= 1,
            _ if depth == 0 => name.push(c),
            _ => {}
        }
    }
    while name.contains("::{{closure}}::{{closure}}") {
        name = name.replace("::{{closure}}::{{closure}}", "::{{closure}}");
    }
    if name.is_empty() { label.to_owned() } else { name }
}

/// Files of libraries that no program has as its own code, by the begins of their names.
const LIBRARIES: [&str; 9] = [
    "libc.so",
    "libc-",
    "libpthread",
    "ld-linux",
    "ld-musl",
    "libstdc++",
    "libgcc",
    "[vdso]",
    "libft_preload",
];

/// Whether a program or library is one of those.
pub(super) fn is_library(object: &str) -> bool {
    let file = object.rsplit('/').next().unwrap_or_default();
    LIBRARIES.iter().any(|library| file.starts_with(library))
}

/// The functions of the program's own code, the innermost first; those of libraries where there are no others. Where there are
/// functions that a runtime has compiled, that one's own are a library's.
pub(super) fn functions(chain: &[&Frame]) -> Vec<String> {
    let user = own(chain);
    let is_run = user.iter().any(|frame| is_compiled(frame));
    let of_library = |frame: &&&Frame| {
        is_library(&frame.object)
            || &*frame.object == JIT && !is_compiled(frame)
            || is_run && Runtime::of(&frame.object).is_some()
            || frame.label.starts_with("ft_user::")
            || frame.place.starts_with("/rustc/")
            || frame.place.contains("/registry/src/")
            || frame.place.contains("/include/c++/")
            || frame.label.starts_with("std::")
            || !frame.named
    };
    let name = |frame: &&Frame| match frame.place.rsplit('/').next() {
        Some(place) if !place.is_empty() => format!("{} ({place})", short(&frame.label)),
        _ if &*frame.object == JIT => without_folders(&short(&frame.label)),
        _ => short(&frame.label),
    };
    let program: Vec<String> =
        user.iter().filter(|f| !of_library(f)).take(MAX_FUNCTIONS).map(name).collect();
    match program.is_empty() {
        true => user.iter().take(MAX_FUNCTIONS).map(name).collect(),
        false => program,
    }
}

/// A name in which a file is one without the folders of that: `py::sum_squares:gil.py`.
fn without_folders(name: &str) -> String {
    match name.split_once('/') {
        Some((before, path)) => {
            format!("{before}{}", path.rsplit('/').next().unwrap_or_default())
        }
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(label: &str, object: &str) -> Frame {
        let (label, place, object) = (label.into(), "".into(), object.into());
        Frame { label, place, object, kernel: false, named: true }
    }

    fn names(chain: &[(&str, &str)]) -> Vec<String> {
        let frames: Vec<Frame> = chain.iter().map(|(label, object)| frame(label, object)).collect();
        functions(&frames.iter().collect::<Vec<_>>())
    }

    #[test]
    fn what_a_runtime_has_compiled_is_the_programs_and_the_runtime_is_a_library_then() {
        let interpreter = "/usr/bin/python3.13";
        let waits = ("take_gil", interpreter);
        let extension = ("hash_all", "/usr/lib/fast.so");
        let own = ("py::sum_squares:/srv/app/gil.py", "JIT");
        assert_eq!(
            names(&[waits, extension, ("_PyEval_Vector", interpreter), own]),
            ["hash_all", "py::sum_squares:gil.py"]
        );
        assert_eq!(names(&[waits, extension]), ["take_gil", "hash_all"]);
        let java = [
            ("os::PlatformEvent::park", "/opt/jdk/lib/server/libjvm.so"),
            ("Interpreter", "JIT"),
            ("void Monitor.countStock(java.lang.Object)", "JIT"),
        ];
        assert_eq!(names(&java), ["void Monitor.countStock"]);
        assert_eq!(names(&java[..2]), ["os::PlatformEvent::park"], "that is no function");
    }
}
