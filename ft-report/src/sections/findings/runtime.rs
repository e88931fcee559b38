//! Runtimes of languages, whose functions have names only where the runtime has left a map of what it compiled.

use std::collections::{BTreeSet, HashSet};

use super::Finding;
use crate::code::{Code, Frame};
use ft_trace::ids::Pid;

/// The object of what was compiled while its program ran.
pub(super) const JIT: &str = "JIT";

/// What runtimes call a piece of their own that they have made while they ran.
const MADE_FOR_ITSELF: [&str; 3] = ["Interpreter", "StubRoutines", "Stub Generator"];

/// A runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Runtime {
    Java,
    Python,
    Node,
}

impl Runtime {
    /// That of a program or library, by the name of its file.
    pub(super) fn of(object: &str) -> Option<Runtime> {
        let file = object.rsplit('/').next().unwrap_or_default();
        let begins = |with: &[&str]| with.iter().any(|begin| file.starts_with(begin));
        match () {
            () if begins(&["libjvm."]) => Some(Runtime::Java),
            () if begins(&["python", "libpython"]) => Some(Runtime::Python),
            () if file == "node" || begins(&["libnode."]) => Some(Runtime::Node),
            () => None,
        }
    }

    /// How its functions get names.
    pub(super) fn advice(self) -> &'static str {
        match self {
            Runtime::Java => {
                "Java's functions have no names without `-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit \
                 -XX:+PreserveFramePointer`"
            }
            Runtime::Python => "Python's functions have no names without `-X perf` (3.12 or newer)",
            Runtime::Node => "JavaScript's functions have no names without `--perf-basic-prof`",
        }
    }
}

/// Whether a function is the program's, and was compiled while it ran.
pub(super) fn is_compiled(frame: &Frame) -> bool {
    let for_itself = || MADE_FOR_ITSELF.iter().any(|begin| frame.label.starts_with(begin));
    frame.named && &*frame.object == JIT && !for_itself()
}

/// The runtimes of the processes of some findings that have left no map.
pub(super) fn unmapped(findings: &[Finding], code: &Code) -> BTreeSet<Runtime> {
    let longest = findings.iter().filter_map(|finding| finding.longest.as_ref());
    let concerned: HashSet<Pid> = longest.map(|longest| Pid(longest.pid)).collect();
    let (mut found, mut mapped) = (HashSet::new(), HashSet::new());
    for (pid, frame) in code.frames().filter(|(pid, _)| concerned.contains(pid)) {
        if &*frame.object == JIT {
            mapped.insert(pid);
        } else if let Some(runtime) = Runtime::of(&frame.object) {
            found.insert((pid, runtime));
        }
    }
    found.into_iter().filter(|(pid, _)| !mapped.contains(pid)).map(|(_, runtime)| runtime).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{MS, behind_logger, report_of, text};
    use super::super::{All, SHOWN};
    use super::*;

    const THREADS: [(i32, &str); 2] = [(7, "worker-0"), (9, "logger")];

    fn said(objects: &[&str], findings: usize) -> String {
        let objects: Vec<_> = objects.iter().map(|object| ("f", *object)).collect();
        let code = Code::of_objects(&[(1, &objects)]);
        let rows: Vec<_> = (0..findings as i64)
            .map(|i| {
                let mut row = behind_logger(7, "worker-0", 100);
                row.object = Some(0x1000 * (i + 1));
                row.longest_ns = 5 * MS;
                row
            })
            .collect();
        text(report_of(All::default(), &THREADS, &rows, &code))
    }

    #[test]
    fn a_note_says_how_functions_of_a_runtime_get_names() {
        let jvm = "/opt/jdk/lib/server/libjvm.so";
        assert!(said(&[jvm], 1).contains("\nnote      Java's functions have no names without"));
        assert!(said(&["/usr/bin/python3.11"], 1).contains("note      Python's functions"));
        assert!(!said(&["/usr/bin/pythonic/own"], 1).contains("note"));
        assert!(!said(&[jvm, "JIT"], 1).contains("note"), "there is a map");
        assert!(!said(&[jvm], 0).contains("note"), "nothing is lost");
        let full = said(&[jvm, "/usr/bin/node"], SHOWN + 1);
        assert!(full.contains("note") && full.lines().count() <= 24, "{full}");
    }
}
