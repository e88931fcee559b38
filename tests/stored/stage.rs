//! A recording in a directory of its own, and the agent that works on it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Columns of the texts.
const COLUMNS: &str = "120";

/// Where recordings and goldens are.
pub(crate) fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("stored")
}

/// The golden files of a recording.
pub(crate) fn golden(recording: &str) -> PathBuf {
    home().join("golden").join(recording)
}

/// Names of all recordings.
pub(crate) fn recordings() -> Vec<String> {
    let entries = std::fs::read_dir(home().join("spools")).expect("recordings");
    let name = |entry: std::fs::DirEntry| entry.file_name().into_string().expect("UTF-8");
    let mut names: Vec<String> = entries.map(|entry| name(entry.expect("an entry"))).collect();
    names.sort();
    names
}

/// Unpacks the spool of a recording into a directory, which is to become its trace.
pub(crate) fn unpack(recording: &str, trace: &Path) {
    let spool = trace.join("spool");
    std::fs::create_dir_all(&spool).expect("a folder");
    for entry in std::fs::read_dir(home().join("spools").join(recording)).expect("a recording") {
        let packed = entry.expect("an entry").path();
        let name = packed.file_stem().expect("NAME.zst");
        let bytes = std::fs::read(&packed).expect("a file of the spool");
        let bytes = zstd::decode_all(&bytes[..]).expect("what zstd has packed");
        std::fs::write(spool.join(name), bytes).expect("a file");
    }
}

/// The copy of a recording.
pub(crate) struct Stage {
    folder: TempDir,
}

impl Stage {
    /// Unpacks the spool of a recording.
    pub(crate) fn unpack(recording: &str) -> Stage {
        let stage = Stage { folder: TempDir::new().expect("a folder") };
        unpack(recording, &stage.trace());
        stage
    }

    /// The directory of the trace.
    pub(crate) fn trace(&self) -> PathBuf {
        self.folder.path().join("trace")
    }

    /// A file of the trace without the sizes and checksums of parts, which are those of the libraries that write them.
    pub(crate) fn json_without_parts(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.trace().join(name)).expect("a file of the trace");
        let mut json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        for table in json["tables"].as_object_mut().expect("tables").values_mut() {
            let files = match table.as_object_mut() {
                Some(about) => about.remove("files").expect("files"),
                None => table.take(),
            };
            assert!(files[0]["bytes"].as_u64() > Some(0), "{name}");
        }
        if name == "analysis.json" {
            json.as_object_mut().expect("an object").remove("tables");
        }
        serde_json::to_string(&json).expect("JSON")
    }

    /// Runs the agent beside `trace`; returns its output with its warnings before it. It gets nothing of the
    /// environment, so that no path of this machine is searched.
    pub(crate) fn agent(&self, args: &[&str]) -> String {
        self.agent_in(COLUMNS, args)
    }

    /// The same in a terminal of so many columns.
    pub(crate) fn agent_in(&self, columns: &str, args: &[&str]) -> String {
        let output = Command::new(ft_tests::agent())
            .args(args)
            .current_dir(self.folder.path())
            .env_clear()
            .env("COLUMNS", columns)
            .stdin(Stdio::null())
            .output()
            .expect("the agent starts");
        let errors = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(output.status.success(), "{args:?}: {}\n{errors}", output.status);
        errors + &String::from_utf8(output.stdout).expect("UTF-8")
    }
}
