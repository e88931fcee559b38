//! Formats of call chains, of traces that have none. What they are with chains is tested where these are recorded.

use std::process::Command;

use crate::stage::Stage;

#[test]
fn a_trace_without_chains_is_not_exported_but_says_what_would_record_them() {
    let stage = Stage::unpack("preload");
    stage.agent(&["convert", "trace"]);
    for format in ["collapsed", "flamegraph", "pprof"] {
        let out = stage.trace().with_extension(format);
        let mut export = Command::new(ft_tests::agent());
        export.arg("export").arg(stage.trace()).args(["-f", format, "-o"]).arg(&out);
        let export = export.output().expect("the agent starts");
        let error = String::from_utf8_lossy(&export.stderr);
        assert!(!export.status.success() && !out.exists(), "{format}: {error}");
        assert!(error.contains("no call chains: record with `-k default,stack,"), "{error}");
        assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    }
}
