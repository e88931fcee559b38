//! Pajé, drawn by ViTE: as a picture that can be read, and in its window.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{gate, hostile, stage::Stage};

/// What has not come by then never will.
const PATIENCE: Duration = Duration::from_secs(300);

/// Whether these programs are there; else reports which is not.
fn all_there(programs: &[&str]) -> bool {
    let paths: Vec<PathBuf> =
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    let is_there = |program: &&&str| paths.iter().any(|path| path.join(program).exists());
    match programs.iter().find(|program| !is_there(program)) {
        Some(missing) => gate::skipped(&format!("there is no {missing}; run `cargo xtask setup`")),
        None => gate::ran(),
    }
    programs.iter().all(|program| is_there(&program))
}

/// ViTE, with no settings but its own.
fn vite(home: &Path, export: &Path) -> Command {
    let mut vite = Command::new("vite");
    vite.arg(export).env("HOME", home).env("XDG_RUNTIME_DIR", home).env_remove("WAYLAND_DISPLAY");
    vite.stdin(Stdio::null());
    vite
}

/// The Pajé of a stored recording, in whose directory it is.
fn exported(recording: &str) -> (Stage, PathBuf) {
    let stage = Stage::unpack(recording);
    stage.agent(&["convert", "trace"]);
    stage.agent(&["export", "trace", "-f", "paje", "-o", "trace.paje"]);
    let export = stage.trace().with_extension("paje");
    (stage, export)
}

/// Has ViTE draw a file, without a warning; returns the file and the picture, as text.
fn drawn(export: &Path) -> [String; 2] {
    let home = TempDir::new().expect("a folder");
    let picture = home.path().join("picture.svg");
    let mut vite = vite(home.path(), export);
    let done = vite.arg("-e").arg(&picture).env("QT_QPA_PLATFORM", "offscreen").output();
    let done = done.expect("ViTE starts");
    let said = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let said = said.concat();
    assert!(done.status.success(), "{said}");
    assert!(said.contains("0 errors and 0 warnings were found during parsing"), "{said}");
    [export, &picture]
        .map(|file| String::from_utf8_lossy(&fs::read(file).expect("written")).into_owned())
}

/// Lines of an export that begin with the number of their event.
fn lines<'a>(export: &'a str, event: &str) -> Vec<&'a str> {
    let number =
        export.lines().find_map(|line| line.strip_prefix("%EventDef ")?.strip_prefix(event));
    let begins = format!("{} ", number.expect("it is defined").trim());
    export.lines().filter(|line| line.starts_with(&begins)).collect()
}

#[test]
fn vite_draws_a_box_for_each_container_and_an_arrow_for_each_wake_up() {
    if !all_there(&["vite"]) {
        return;
    }
    let count = |text: &str, what: &str| text.matches(what).count();
    for recording in ["scenarios", "system", "preload", "killed"] {
        let (_stage, export) = exported(recording);
        let [export, picture] = drawn(&export);
        let containers = lines(&export, "PajeCreateContainer");
        // The blue of its boxes, which no state of ours has.
        assert_eq!(count(&picture, "fill=\"rgb(0,0,153)\""), containers.len(), "{recording}");
        let arrows = lines(&export, "PajeEndLink").len();
        assert_eq!(count(&picture, "<polygon"), arrows, "{recording}");
        for container in &containers {
            let name = container.trim_end_matches('"').rsplit('"').next().expect("a name");
            assert!(
                picture.contains(&format!(">{name}<")),
                "{recording}: {name} is not in the picture"
            );
        }
        gate::measured(&format!(
            "ViTE draws {recording}: {} containers, {arrows} arrows",
            containers.len()
        ));
    }
    let folder = TempDir::new().expect("a folder");
    let trace = folder.path().join("trace");
    fs::create_dir(&trace).expect("a folder");
    hostile::write(&trace);
    let export = folder.path().join("trace.paje");
    let agent = |args: &[&str]| {
        let mut agent = Command::new(ft_tests::agent());
        let done = agent.args(args).arg(&trace).output().expect("it starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    agent(&["export", "-f", "paje", "-o", export.to_str().expect("text")]);
    let [export, picture] = drawn(&export);
    assert_eq!(
        count(&picture, "fill=\"rgb(0,0,153)\""),
        lines(&export, "PajeCreateContainer").len()
    );
}

/// A program that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A display without a screen, and the file that has what would be on it.
fn display(folder: &Path) -> (Running, String, PathBuf) {
    let mut server = Command::new("Xvfb");
    server.args(["-displayfd", "1", "-nolisten", "tcp", "-screen", "0", "1280x900x24", "-fbdir"]);
    server.arg(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = Running(server.spawn().expect("Xvfb starts"));
    let mut number = String::new();
    let mut said = BufReader::new(server.0.stdout.take().expect("its output"));
    said.read_line(&mut number).expect("the number of its display");
    (server, format!(":{}", number.trim()), folder.join("Xvfb_screen0"))
}

/// Pixels of a screenshot in any shade of a colour, of red, green and blue. The file is of the form of xwd: a header of big-endian
/// words, the first its length, a palette of 12 bytes each, and pixels of four bytes, blue first.
fn pixels(screenshot: &[u8], color: [f64; 3]) -> usize {
    let word = |i: usize| {
        let bytes = screenshot[4 * i..4 * i + 4].try_into().expect("a word");
        u32::from_be_bytes(bytes) as usize
    };
    let brightest = color.into_iter().fold(0.0, f64::max);
    let is_a_shade = |pixel: &&[u8]| {
        let rgb = [pixel[2], pixel[1], pixel[0]].map(f64::from);
        let shade = rgb.into_iter().fold(0.0, f64::max) / brightest;
        let is_near = |(has, want): (f64, f64)| (has - want * shade).abs() <= 1.5;
        // In the dark all colours are alike.
        shade * brightest >= 60.0 && rgb.into_iter().zip(color).all(is_near)
    };
    screenshot[word(0) + 12 * word(19)..].chunks_exact(4).filter(is_a_shade).count()
}

#[test]
fn vite_shows_the_states_of_threads_in_its_window() {
    if !all_there(&["vite", "Xvfb"]) {
        return;
    }
    let (_stage, export) = exported("scenarios");
    // The colours of states, which the file has.
    let file = fs::read_to_string(&export).expect("Pajé");
    let colors = ["running", "preempted", "blocked"].map(|state| {
        let defined = format!("5 \"{state}\" \"state\" \"{state}\" \"");
        let color = file.lines().find_map(|line| line.strip_prefix(&defined)).expect("a state");
        let parts =
            color.trim_end_matches('"').split(' ').map(|part| part.parse().expect("a number"));
        <[f64; 3]>::try_from(parts.collect::<Vec<_>>()).expect("red, green and blue")
    });
    let folder = TempDir::new().expect("a folder");
    let (_server, display, screen) = display(folder.path());
    let shown = || colors.map(|color| pixels(&fs::read(&screen).expect("a screen"), color));
    assert_eq!(shown(), [0; 3], "of an empty screen");
    let mut vite = vite(folder.path(), &export);
    vite.env("DISPLAY", display).env("QT_QPA_PLATFORM", "xcb");
    let mut vite =
        Running(vite.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("ViTE starts"));
    let began = Instant::now();
    let found = loop {
        let found = shown();
        if found.iter().all(|&pixels| pixels >= 50) {
            break found;
        }
        assert!(began.elapsed() < PATIENCE, "pixels of running, preempted, blocked: {found:?}");
        assert!(vite.0.try_wait().expect("a child").is_none(), "it ended");
        std::thread::sleep(Duration::from_millis(100));
    };
    if let Some(kept) = std::env::var_os("FT_SCREENSHOT") {
        fs::copy(&screen, kept).expect("the screenshot is kept");
    }
    let [running, preempted, blocked] = found;
    gate::measured(&format!(
        "ViTE's window has {running} pixels of running, {preempted} of preempted, {blocked} of blocked threads"
    ));
}
