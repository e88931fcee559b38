//! Firefox Profiler's format, whose viewer is a web site. Its own command judges it, which loads a profile as the site
//! does; a profile that a library of the format's authors writes, and the published types; and the tables.

use std::path::Path;
use std::process::Command;

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerFieldFlags,
    MarkerFieldFormat, MarkerTiming, Profile, ReferenceTimestamp, SamplingInterval,
    StaticSchemaMarker, StaticSchemaMarkerField, StringHandle, Timestamp,
};

use crate::gate;
use crate::judge::Judge;

/// A marker with one field.
struct Text(StringHandle);

impl StaticSchemaMarker for Text {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "Text";
    const CHART_LABEL: Option<&'static str> = Some("{marker.name}");
    const TOOLTIP_LABEL: Option<&'static str> = Some("{marker.name}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.data.text}");
    const DESCRIPTION: Option<&'static str> = Some("Text.");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "text",
        label: "Text",
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.0
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.0
    }

    fn number_field_value(&self, _: u32) -> f64 {
        unreachable!("it has a text only")
    }
}

/// A profile with a row in each table that an export fills.
fn reference(path: &Path) {
    let time = Timestamp::from_millis_since_reference;
    let day = ReferenceTimestamp::from_millis_since_unix_epoch(1.7e12);
    let mut profile = Profile::new("test", day, SamplingInterval::from_millis(1));
    profile.set_symbolicated(true);
    let process = profile.add_process("process", 1, time(0.0));
    let thread = profile.add_thread(process, 1, time(0.0), true);
    profile.set_thread_show_markers_in_timeline(thread, true);
    let category_pair = profile.add_category("Regular", CategoryColor::Green).into();
    let label = profile.intern_string("label");
    let frame = FrameInfo { frame: Frame::Label(label), category_pair, flags: FrameFlags::empty() };
    let stack = profile.intern_stack_frames(thread, std::iter::once(frame));
    profile.add_sample(thread, time(1.0), stack, CpuDelta::ZERO, 1);
    profile.add_marker(thread, MarkerTiming::Interval(time(0.0), time(1.0)), Text(label));
    std::fs::write(path, serde_json::to_string(&profile).expect("JSON")).expect("a file");
}

fn judge() -> Option<Judge> {
    let mut judge = Judge::new("true", "firefox.py")?;
    let path = judge.file("reference.json");
    reference(&path);
    judge.beside = Some(path);
    Some(judge)
}

#[test]
fn a_profile_has_the_published_shape_and_what_the_tables_say_and_so_has_a_window() {
    let Some(judge) = judge() else { return };
    judge.compare_all("firefox");
}

#[test]
fn the_viewers_own_command_shows_what_the_tables_say() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("page/node_modules");
    let command = home.join("@firefox-devtools/profiler-cli/dist/profiler-cli.js");
    if std::env::var_os("FT_NODE").is_none() || !command.exists() {
        return gate::skipped("there is no Node with profiler-cli; run `cargo xtask test readers`");
    }
    if node_major() < Some(NODE) {
        return gate::skipped(&format!("profiler-cli runs with Node {NODE} or newer"));
    }
    let Some(mut judge) = Judge::new("true", "firefox_viewer.py") else { return };
    judge.beside = Some(command);
    judge.compare(&judge.stored("killed"), "firefox", None);
}

/// Oldest Node with which profiler-cli was seen to run; what it asks for is newer.
const NODE: u32 = 20;

/// Of `v20.1.0` the 20.
fn node_major() -> Option<u32> {
    let output = Command::new(std::env::var_os("FT_NODE")?).arg("--version").output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    version.trim_start_matches('v').split('.').next()?.parse().ok()
}
