//! The whole analysis, from tables to tables, of longer and longer traces, and what compares two: time and peak memory.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use ft_report::analyze::{analyze, tally};
use ft_report::compare::{Comparison, Run, slices};
use ft_report::document::Document;
use ft_report::render::html::Page;
use ft_report::sections::{self, Asked};
use ft_report::timeline::Timeline;
use ft_trace::store::Trace;

use crate::{opening, trace};

/// Argument of the process that analyses one trace, so that its peak memory is its own.
pub(crate) const CHILD: &str = "analyze-one";

/// Argument of the process that compares one trace with itself.
pub(crate) const COMPARING: &str = "compare-one";

/// Events of one part: about as many as a segment of 64 MiB holds.
pub(crate) const PART_EVENTS: u64 = 2_000_000;

/// The analysis, its reports and exports stay below, whatever the length.
pub(crate) const LIMIT_MIB: f64 = 1024.0;

/// A page stays below, whatever the length.
const PAGE_LIMIT_MB: f64 = 20.0;

/// The page of a trace, in its directory.
const PAGE: &str = "page.html";

/// Prints a line for each length, in millions of events; keeps the pages in a directory.
pub(crate) fn table(millions: &[u64], pages: Option<&Path>) {
    println!(
        "{:>12} {:>10} {:>11} {:>15} {:>13} {:>10} {:>10} {:>20} {:>13} {:>11} {:>13}",
        "events",
        "trace",
        "analysis",
        "per M events",
        "all reports",
        "page",
        "its size",
        "ready, zoom, click",
        "peak memory",
        "compare",
        "peak memory"
    );
    for million in millions {
        let dir = tempfile::tempdir().expect("a directory");
        let rounds = million * 1_000_000 / trace::events_of(1);
        trace::write(dir.path(), rounds, PART_EVENTS).expect("the trace is written");
        let bytes = size(dir.path());
        let [events, holds, analysis, reports, page, peak] = figures(CHILD, dir.path());
        let file = dir.path().join(PAGE);
        let megabytes = file.metadata().expect("a page").len() as f64 / 1e6;
        let opened = opening::seconds(&file);
        let shown = opened.map_or("-".into(), |[ready, zoomed, clicked]| {
            format!("{ready:.2} {zoomed:.2} {clicked:.2} s")
        });
        if let Some(pages) = pages {
            fs::copy(&file, pages.join(format!("{million}.html"))).expect("the page is kept");
        }
        let [compare, compare_peak] = figures(COMPARING, dir.path());
        assert_eq!(events as u64, trace::events_of(rounds));
        assert_eq!(holds as u64, trace::holds_of(rounds));
        println!(
            "{events:>12} {:>7.1} MB {analysis:>9.1} s {:>13.2} s {reports:>11.1} s \
             {page:>8.1} s {megabytes:>7.1} MB {shown:>20} {peak:>9.0} MiB {compare:>9.1} s {compare_peak:>9.0} MiB",
            bytes as f64 / 1e6,
            analysis / events * 1e6,
        );
        assert!(peak.max(compare_peak) < LIMIT_MIB, "more than {LIMIT_MIB} MiB");
        assert!(megabytes < PAGE_LIMIT_MB, "a page of more than {PAGE_LIMIT_MB} MB");
        let answered = opened.is_none_or(|seconds| seconds[2] < opening::LIMIT_S);
        assert!(answered, "no answer within {} s of opening", opening::LIMIT_S);
    }
}

/// What a process of its own prints of a trace.
fn figures<const N: usize>(what: &str, dir: &Path) -> [f64; N] {
    let me = std::env::current_exe().expect("this program");
    let output = Command::new(me).arg(what).arg(dir).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let figures: Vec<f64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let error = || panic!("{text}{}", String::from_utf8_lossy(&output.stderr));
    figures.try_into().unwrap_or_else(|_| error())
}

/// Compares an analysed trace with itself, as if it were two; prints seconds and peak MiB.
pub(crate) fn compare(dir: &Path) {
    let start = Instant::now();
    let trace = Trace::open(dir).expect("a trace");
    let tally = tally(dir).expect("read").expect("analysed");
    let read = || vec![Run::read(&trace, &tally, slices(1, 1)).expect("read")];
    let comparison = Comparison::of(read(), read(), &[]);
    assert_eq!(comparison.differing().count(), 0, "a trace does not differ from itself");
    println!("{} {}", start.elapsed().as_secs_f64(), peak_mib());
}

/// Analyses one trace and writes its page; prints events, holds, seconds of the analysis, of the reports and of the page,
/// and peak MiB.
pub(crate) fn child(dir: &Path) {
    let trace = Trace::open(dir).expect("a trace");
    let start = Instant::now();
    let tally = analyze(&trace).expect("analysed");
    let analysis = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let document =
        Document::of(&trace, &tally, sections::usual(&[], &tally, false), Asked::default())
            .expect("reports");
    assert!(document.to_string().contains("LOCKS"));
    let reports = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let timeline = Timeline::read(&trace, &tally, None).expect("a timeline").fragment();
    let page = Page::of(&document).with_timeline(&timeline).to_string();
    fs::write(dir.join(PAGE), page).expect("the page is written");
    let page = start.elapsed().as_secs_f64();
    println!("{} {} {analysis} {reports} {page} {}", tally.events, tally.holds, peak_mib());
}

/// Peak resident memory of this process, `VmHWM` of proc(5).
pub(crate) fn peak_mib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().expect("kB");
    kib / 1024.0
}

pub(crate) fn size(dir: &Path) -> u64 {
    let entries =
        fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path());
    entries
        .map(
            |path| if path.is_dir() { size(&path) } else { path.metadata().map_or(0, |m| m.len()) },
        )
        .sum()
}
