//! Traces, and the agent that brings them to a store.

use std::ffi::OsStr;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::files::{Files, files};
use crate::server::Server;

/// The catalogue.
pub(crate) const URL: &str = "s3://fleet/of/traces";

/// Names in the bucket begin so.
pub(crate) const PREFIX: &str = "of/traces/";

pub(crate) struct Stage {
    folder: tempfile::TempDir,
    /// What the agent takes for its store.
    pub(crate) endpoint: SocketAddr,
}

impl Stage {
    pub(crate) fn new(endpoint: SocketAddr) -> Stage {
        Stage { folder: tempfile::tempdir().unwrap(), endpoint }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A program that has the keys of the store, and its address.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("AWS_") {
                command.env_remove(name);
            }
        }
        let temporary = self.path("tmp");
        fs::create_dir_all(&temporary).unwrap();
        command
            .current_dir(self.folder.path())
            .env("TMPDIR", temporary)
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ENDPOINT_URL", format!("http://{}", self.endpoint))
            .env("AWS_ALLOW_HTTP", "true")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn agent(&self, args: &[&str]) -> Command {
        let mut command = self.command(ft_tests::agent());
        command.args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.agent(args).output().unwrap()
    }

    /// What it prints; it must succeed.
    pub(crate) fn says(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Why it fails.
    pub(crate) fn fails(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(!output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// A trace without events, and what lies in it.
    pub(crate) fn empty_trace(&self, name: &str) -> Files {
        self.says(&["record", "-k", "none", "-o", name, "--", "true"]);
        files(&self.path(name))
    }

    /// Makes a part of a trace larger, by bytes before its footer, which no reader looks at. The trace's manifest says so.
    pub(crate) fn enlarge(&self, name: &str, by: &[u8]) {
        let path = self.path(name).join("clock/part-00000.parquet");
        let mut part = fs::read(&path).unwrap();
        // At the end is the footer, its length in four bytes, and the format's name in four (parquet-format, README).
        let (rest, end) = part.split_last_chunk::<8>().unwrap();
        let [a, b, c, d, ..] = *end;
        let before = rest.len() - u32::from_le_bytes([a, b, c, d]) as usize;
        part.splice(before..before, by.iter().copied());
        fs::write(&path, &part).unwrap();
        let path = self.path(name).join("meta.json");
        let mut meta: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        meta["tables"]["clock"]["files"][0]["bytes"] = part.len().into();
        fs::write(&path, meta.to_string()).unwrap();
    }

    /// A trace that was recorded once, not analysed.
    pub(crate) fn stored_trace(&self, recording: &str, name: &str) -> Files {
        let spools = Path::new(env!("CARGO_MANIFEST_DIR")).join("stored/spools");
        let spool = self.path(name).join("spool");
        fs::create_dir_all(&spool).unwrap();
        for entry in fs::read_dir(spools.join(recording)).unwrap() {
            let packed = entry.unwrap().path();
            let bytes = zstd::decode_all(&fs::read(&packed).unwrap()[..]).unwrap();
            fs::write(spool.join(packed.file_stem().unwrap()), bytes).unwrap();
        }
        self.says(&["convert", name]);
        files(&self.path(name))
    }

    /// The paths of a catalogue's traces.
    pub(crate) fn traces(&self, url: &str) -> Vec<String> {
        let output = self.run(&["catalogue", url, "--json"]);
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(why.contains("holds no traces"), "{why}");
            return Vec::new();
        }
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["wrong"].as_array().unwrap().len(), 0, "{answer}");
        let traces = answer["traces"].as_array().unwrap().iter();
        traces.map(|trace| trace["path"].as_str().unwrap().to_owned()).collect()
    }
}

/// All objects of the catalogue, or of one trace.
pub(crate) fn objects(server: &Server, below: &str) -> Files {
    let prefix = format!("{PREFIX}{below}");
    let names = server.objects(&prefix).into_iter();
    let rest = |name: &str| name[prefix.len()..].trim_start_matches('/').to_owned();
    names.map(|name| (rest(&name), server.object(&name))).collect()
}
