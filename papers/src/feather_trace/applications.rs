//! Section 3.4, Figures 8 and 9: how deep the mutexes of multimedia programs are nested, and how long they are held.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::csv::Csv;
use crate::experiment::{Experiment, Finding, Row};
use crate::lab::Lab;
use crate::load::{Load, output};
use crate::plot::curves::{self, Axes, Curve};
use crate::quantity::{ns, percent};
use crate::recorded::Reports;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "feather-trace-3.4",
    title: "Feather-Trace, section 3.4, Figures 8 and 9: mutexes of soft real-time applications",
    full_minutes: 375.0,
    programs: &[
        "ft-agent",
        "cvlc",
        "xine",
        "etr",
        "xvfb-run",
        "ffmpeg",
        "stress-ng",
        "setpriv",
        "c++",
    ],
    run,
};

/// An application: its name, how long the paper traced it in seconds, and whether it plays the film.
struct Application {
    name: &'static str,
    seconds: f64,
    command: &'static [&'static str],
    plays: bool,
}

const APPLICATIONS: [Application; 3] = [
    Application {
        name: "VLC",
        seconds: 3600.0,
        // It refuses to be root.
        command: &[
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "env",
            "HOME=/nonexistent",
            "cvlc",
            "--quiet",
            "--repeat",
            "--aout",
            "dummy",
            "--vout",
            "dummy",
        ],
        plays: true,
    },
    Application {
        name: "Xine",
        seconds: 3600.0,
        command: &[
            "xvfb-run",
            "-a",
            "xine",
            "--no-splash",
            "-V",
            "xshm",
            "-A",
            "null",
            "--no-lirc",
            "--loop",
            "--hide-gui",
        ],
        plays: true,
    },
    Application {
        name: "Tux Racer",
        seconds: 60.0,
        command: &["xvfb-run", "-a", "etr"],
        plays: false,
    },
];

/// What runs beside: a name, and a script that is run again and again.
const LOADS: [(&str, &str); 3] = [
    ("idle", ""),
    (
        "compile",
        "for n in 1 2; do echo '#include <regex>' | c++ -O2 -x c++ -S -o /dev/null - & done; wait",
    ),
    ("stress", "stress-ng --quiet --vm 1 --vm-bytes 256M --io 1 --cpu 1 --timeout 3600"),
];

/// No program has shown anything before: starting takes a second or two.
const SHORTEST_S: f64 = 2.5;

/// What `ft-agent report DIR study` says of a recording.
struct Study {
    sections: u64,
    depths: Vec<u64>,
    mean_ns: f64,
    /// Edges in ns, and how many are shorter.
    shorter: Vec<(f64, u64)>,
    lost: u64,
}

/// `100 ns`, `1 µs`.
fn power(at: f64) -> String {
    ns(at).replace(".00", "").replace(".0", "")
}

fn run(lab: &Lab) -> Result<Finding> {
    let dir = Dir::new()?;
    let film = dir.0.join("film.mp4");
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args([
        "-loglevel",
        "error",
        "-f",
        "lavfi",
        "-i",
        "testsrc2=size=640x360:rate=30",
        "-f",
        "lavfi",
        "-i",
    ]);
    ffmpeg.args([
        "sine=frequency=440",
        "-t",
        "20",
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
        "-c:a",
        "aac",
    ]);
    output(ffmpeg.arg(&film))?;

    let mut csv = Csv::new(["application", "load", "figure", "at", "critical_sections"]);
    let mut curves = Vec::new();
    let mut rows = Vec::new();
    for application in &APPLICATIONS {
        for (load, script) in lab.cases(&LOADS) {
            let beside = if script.is_empty() { None } else { Some(Load::repeat(script)?) };
            let study = recorded(lab, application, &film, &dir.0)?;
            drop(beside);
            for (depth, count) in study.depths.iter().enumerate() {
                csv.row([&application.name, &load, &"nesting depth", &depth, count]);
            }
            for (edge_ns, count) in &study.shorter {
                csv.row([&application.name, &load, &"shorter than (ns)", edge_ns, count]);
            }
            if *load == "idle" {
                let share = |count: u64| count as f64 / study.sections.max(1) as f64 * 100.0;
                let points = study.shorter.iter().map(|(edge, count)| (*edge, share(*count), 0.0));
                curves.push(Curve { name: application.name.into(), points: points.collect() });
            }
            rows.push(row(application.name, load, &study));
        }
    }
    let svg = curves::draw(
        &curves,
        &Axes {
            x: "length of critical sections",
            y: "shorter, %",
            log_x: 10.0,
            y_range: 0.0..100.0,
            names_below: true,
            x_label: &power,
        },
    )?;
    Ok(Finding {
        how: "`ft-agent record --preload -e 'lock.mutex*' -e 'lock.cond*' -- …` of VLC, Xine and Extreme Tux Racer, the successor of Tux Racer, alone and \
              beside two compilers or `stress-ng` (memory, I/O, CPU). VLC draws nothing and Xine into Xvfb a test film of 640 × 360, \
              30 frames a second, without sound card; the game shows its menu in Xvfb, drawn without a graphics card. Drawing: \
              without load."
            .into(),
        figures: vec![lab.figure(EXPERIMENT.id, &svg)?],
        values: vec![lab.values(EXPERIMENT.id, &csv)?],
        rows,
    })
}

/// A directory that everybody may read, which goes with this.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Result<Dir> {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("ft-papers-3.4-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        let dir = Dir(path);
        fs::set_permissions(&dir.0, fs::Permissions::from_mode(0o755))?;
        Ok(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn recorded(lab: &Lab, application: &Application, film: &Path, dir: &Path) -> Result<Study> {
    let trace = dir.join("trace");
    let seconds = lab.seconds(application.seconds).max(SHORTEST_S);
    let mut record = Command::new(lab.tool("ft-agent")?);
    // Without the waits for conditions, which release a mutex, they would be part of its critical section.
    record.args([
        "record",
        "--preload",
        "-k",
        "none",
        "-e",
        "lock.mutex*",
        "-e",
        "lock.cond*",
        "-o",
    ]);
    record.arg(&trace);
    // Ends the game, too, which knows no end; with the shell and the X server around it. It is no failure.
    record.args(["--", "sh", "-c", "timeout -k 2 \"$@\"; exit 0", "sh", &seconds.to_string()]);
    record.args(application.command).args(application.plays.then_some(film));
    record.env("PATH", path_with_games());
    output(&mut record)?;
    let reports = Reports::of(lab, &trace, &["study"]);
    fs::remove_dir_all(&trace)?;
    study(&reports?)
}

/// Debian has games in a directory of their own.
fn path_with_games() -> String {
    format!("{}:/usr/games", std::env::var("PATH").unwrap_or_default())
}

fn study(reports: &Reports) -> Result<Study> {
    let values = reports.values("study");
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let shorter = values["shorter"].as_array().context("the study has lengths")?;
    Ok(Study {
        sections: number(&values["critical_sections"]),
        depths: values["depths"]
            .as_array()
            .context("the study has depths")?
            .iter()
            .map(number)
            .collect(),
        mean_ns: values["mean_ns"].as_f64().unwrap_or(0.0),
        shorter: shorter.iter().map(|pair| (number(&pair[0]) as f64, number(&pair[1]))).collect(),
        lost: reports.lost(),
    })
}

fn row(application: &str, load: &str, study: &Study) -> Row {
    let all = study.sections.max(1) as f64;
    let below = |edge: f64| {
        let found = study.shorter.iter().find(|(at, _)| *at == edge);
        found.map_or("–".into(), |(_, count)| percent(*count as f64 / all))
    };
    let flat = study.depths.first().copied().unwrap_or(0) as f64 / all;
    let (paper, why) = match application {
        "VLC" => (
            "over 70 % not nested, deepest at most 3; over 95 % below 5 µs, over 99 % below 10 µs",
            "it decodes by threads today: a recording names three mutexes of libavcodec, each held for about a frame (33 ms), which are \
             nearly all of the mean; and what its threads lock meanwhile is nested",
        ),
        "Xine" => (
            "very rarely nested, deepest at most 3; over 95 % below 5 µs, over 99 % below 10 µs",
            "Xine's own locks, and those of X11's libraries",
        ),
        _ => (
            "almost never nested; over 95 % below 5 µs, over 99 % below 10 µs",
            "the game has few locks of its own: those seen are of Mesa, which draws by the CPU, and of the sound library",
        ),
    };
    let lost = if study.lost > 0 { format!("; {} events lost", study.lost) } else { String::new() };
    let ours = format!(
        "{} of {} not nested, deepest {}; {} below 5 µs, {} below 10 µs; mean {}{lost}",
        percent(flat),
        study.sections,
        study.depths.len().saturating_sub(1),
        below(5e3),
        below(1e4),
        ns(study.mean_ns)
    );
    Row::new(format!("{application}, {load}"), paper, ours, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_is_read_and_told() {
        let reports = Reports::from_json(serde_json::json!({
            "trace": { "lost_user_events": 3 },
            "sections": { "study": { "values": {
                "critical_sections": 10, "depths": [7, 2, 1], "mean_ns": 1500.0, "shorter": [[5000, 9], [10000, 10]],
            } } },
        }));
        let row = row("VLC", "idle", &study(&reports).unwrap());
        assert_eq!(
            row.ours,
            "70.0 % of 10 not nested, deepest 2; 90.0 % below 5 µs, 100.0 % below 10 µs; mean 1.50 µs; 3 events lost"
        );
        assert!(study(&Reports::from_json(Value::Null)).is_err());
    }
}
