//! Exports traces, and has a script compare what a reader of that format says with the tables.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use ft_trace::store::Trace;
use tempfile::TempDir;

use crate::{gate, hostile, stage};

/// Stored recordings: all kernel groups, losses, a program that is not changed, a recording without an end.
const RECORDINGS: [&str; 4] = ["scenarios", "system", "preload", "killed"];

/// A script with what it needs.
pub(crate) struct Judge {
    python: PathBuf,
    script: PathBuf,
    /// What it is given beside trace and export.
    pub(crate) beside: Option<PathBuf>,
    folder: TempDir,
}

impl Judge {
    /// A script of `tests/python` that runs `reader`; where this machine lacks one of them, reports that and returns
    /// nothing.
    pub(crate) fn new(reader: &str, script: &str) -> Option<Judge> {
        let Some(python) = std::env::var_os("FT_PYTHON") else {
            gate::skipped("FT_PYTHON is not set; run `cargo xtask test readers`");
            return None;
        };
        if Command::new(reader).arg("--version").output().is_err() {
            gate::skipped(&format!("there is no {reader}; run `cargo xtask setup`"));
            return None;
        }
        gate::ran();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(script);
        let folder = TempDir::new().expect("a folder");
        Some(Judge { python: python.into(), script, beside: None, folder })
    }

    /// A path of its own.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Exports the stored recordings, the middle third of the first one, and a trace of hostile names, and has the script
    /// compare each.
    pub(crate) fn compare_all(&self, format: &str) {
        for name in RECORDINGS {
            let trace = self.stored(name);
            self.compare(&trace, format, None);
            if name == RECORDINGS[0] {
                self.compare(&trace, format, Some(window(&trace)));
            }
        }
        let hostile = self.file("hostile");
        std::fs::create_dir(&hostile).expect("a folder");
        hostile::write(&hostile);
        self.analyze(&hostile);
        self.compare(&hostile, format, None);
    }

    /// A stored recording, as a trace.
    pub(crate) fn stored(&self, name: &str) -> PathBuf {
        let trace = self.folder.path().join(name);
        stage::unpack(name, &trace);
        agent(&["convert".as_ref(), trace.as_ref()]);
        self.analyze(&trace);
        trace
    }

    /// Analyses a trace, for scripts that compare with the tables of results.
    pub(crate) fn analyze(&self, trace: &Path) {
        agent(&["analyze".as_ref(), trace.as_ref()]);
    }

    /// Exports a trace, or what lies in a window of it, and has the script compare.
    pub(crate) fn compare(&self, trace: &Path, format: &str, window: Option<Range<i64>>) {
        let part = if window.is_some() { "window." } else { "" };
        let out = trace.with_extension(format!("{part}{format}"));
        let mut words = vec!["export", "--format", format, "--from", "--to"];
        let meta = Trace::open(trace).expect("a trace");
        let begin = meta.meta().start.start_ns;
        let ends = window.as_ref().map(|w| [w.start, w.end].map(|at| format!("{}ns", at - begin)));
        match &ends {
            Some([from, to]) => {
                words.insert(4, from);
                words.push(to);
            }
            None => words.truncate(3),
        }
        let mut words: Vec<&std::ffi::OsStr> = words.iter().map(AsRef::as_ref).collect();
        words.extend(["-o".as_ref(), out.as_os_str(), trace.as_os_str()]);
        agent(&words);
        let mut script = Command::new(&self.python);
        script.arg("-B").arg(&self.script).arg(trace).arg(&out).args(&self.beside);
        script.args(window.iter().flat_map(|w| [w.start.to_string(), w.end.to_string()]));
        let done = script.output().expect("the script starts");
        let text = String::from_utf8_lossy(&done.stdout);
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{} as {format}:\n{text}{errors}", trace.display());
        let name = trace.file_name().unwrap_or_default().to_string_lossy();
        gate::measured(&format!("{name} as {part}{format}: {}", text.trim()));
    }
}

fn agent(words: &[&std::ffi::OsStr]) {
    let output = Command::new(ft_tests::agent()).args(words).output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {errors}");
}

/// The middle third of a recording.
fn window(trace: &Path) -> Range<i64> {
    let meta = Trace::open(trace).expect("a trace").meta().clone();
    let (begin, end) = (meta.start.start_ns, meta.end.expect("it has ended").ts);
    let third = (end - begin) / 3;
    begin + third..begin + 2 * third
}
