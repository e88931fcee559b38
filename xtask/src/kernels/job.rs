//! What a guest is to do, and what came of all of it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::guest::{busy, shared};
use super::outcome::{Outcome, doctor, kernel_tests, said};
use super::releases::Release;
use crate::{
    build, programs,
    workspace::{cargo, root, step, target_dir},
};

/// What is checked, in the order of [`judge`].
pub(super) const CHECKS: [&str; 10] = [
    "doctor",
    "demo",
    "hotplug",
    "groups",
    "preload",
    "cgroup",
    "kernel tests",
    "truths",
    "clock",
    "oracle",
];

/// With more CPUs than this one is so slow that it does the first three of [`CHECKS`], which the last two then judge.
const MOST_CPUS: u32 = 8;

/// With more than this, the timers of samples would be all that the CPUs get done: page faults show then that one is recorded.
const MOST_CPUS_WITH_TIMERS: u32 = 32;

/// Recordings that come back.
const TRACES: [&str; 5] = ["demo", "hotplug", "groups", "preload", "cgroup"];

/// Tests of `end_to_end`, recorded in the guest and judged outside: those that hold however late a subject comes, as it
/// does where one thread of a busy machine is all CPUs.
pub(crate) const TRUTHS: [&str; 5] = [
    "nesting::nesting_to_depth_four_gives_exactly_the_known_counts",
    "kernel_groups::system_calls_faults_and_lock_waits_are_in_their_tables",
    "counters::each_stretch_on_a_cpu_has_the_page_faults_that_were_recorded_in_it",
    "futexes::every_wait_at_a_futex_has_its_end_its_waker_and_its_time",
    "real_time_clock::ticks_of_the_real_time_clock_wake_a_worker",
];

/// Seconds that each check may take on an idle machine.
const LIMIT: f64 = 100.0;

const JOB: &str = include_str!("job.sh");

/// What the guest runs: built here, as the tests are, for there is no compiler's time in an emulated machine.
pub(super) struct Built {
    /// Where the agent lies, and beside it the rest.
    folder: PathBuf,
    /// Binaries of tests.
    end_to_end: PathBuf,
    kernel_programs: PathBuf,
    /// A program with pthread locks that knows nothing of tracing.
    locks: PathBuf,
}

impl Built {
    /// Builds all.
    ///
    /// # Errors
    ///
    /// When something does not build.
    pub(super) fn find() -> Result<Built> {
        build::for_tests()?;
        let folder = target_dir().join("debug");
        let locks = super::folder().join("locks");
        fs::create_dir_all(super::folder())?;
        let source = root().join("tests/programs/locks.c");
        let mut compile = Command::new("cc");
        compile.args(["-std=gnu17", "-g", "-O1", "-pthread", "-o"]).arg(&locks).arg(source);
        step(&mut compile)?;
        let mut tests = cargo();
        // With other features all crates would be compiled once more.
        tests.args(["test", "--no-run", "--workspace", "--all-features"]);
        tests.args(["--test", "end_to_end", "--test", "kernel_programs"]);
        let tests = programs::build(&mut tests)?;
        let test = |name: &str| {
            let of_it = tests.iter().find(|program| program.name == format!("tests {name}"));
            of_it
                .map(|program| program.executable.clone())
                .with_context(|| format!("no test {name}"))
        };
        Ok(Built {
            folder,
            end_to_end: test("end_to_end")?,
            kernel_programs: test("kernel_programs")?,
            locks,
        })
    }

    fn agent(&self) -> PathBuf {
        self.folder.join("ft-agent")
    }
}

/// Writes the script of a guest into `out`; returns where it lies.
///
/// # Errors
///
/// When it cannot be written.
pub(super) fn write(out: &Path, built: &Built, cpus: u32) -> Result<PathBuf> {
    let job = out.join("job.sh");
    let paths = [
        ("out", out),
        ("agent", &built.agent()),
        ("built", &built.folder),
        ("locks", &built.locks),
        ("programs", &built.kernel_programs),
        ("end_to_end", &built.end_to_end),
    ];
    let mut text: String =
        paths.iter().map(|(name, path)| format!("{name}='{}'\n", path.display())).collect();
    let [short, slow] =
        [MOST_CPUS, MOST_CPUS_WITH_TIMERS].map(|most| if cpus > most { "yes" } else { "" });
    let limit = (LIMIT * busy()).ceil() * shared(cpus).ceil();
    let (going, missing) = going_and_missing(cpus);
    text +=
        &format!("going={going}\nmissing={missing}\nlimit={limit}\nshort={short}\nslow={slow}\n");
    text += &format!("truths='{}'\n{JOB}", TRUTHS.join(" "));
    fs::write(&job, text).with_context(|| format!("cannot write {}", job.display()))?;
    Ok(job)
}

/// The CPU that goes and comes back, and the one that is missing until then, where there is one of that number: behind the
/// first word of a mask of CPUs where there are so many.
fn going_and_missing(cpus: u32) -> (u32, u32) {
    let first = if cpus > u64::BITS + 3 { u64::BITS } else { 0 };
    (first + 1, first + 3)
}

/// What came of each of [`CHECKS`], by what a guest has left in `out`.
pub(super) fn judge(
    out: &Path,
    built: &Built,
    python: Option<&Path>,
    cpus: u32,
    release: &Release,
) -> Vec<Outcome> {
    let lacks_lock = release.lacks_lock();
    let results = fs::read_to_string(out.join("results")).unwrap_or_default();
    let log = |name: &str| fs::read_to_string(out.join(format!("{name}.log"))).unwrap_or_default();
    let said = |name: &str| said(&results, name, &log(name));
    let truths = TRUTHS.map(|truth| match said(&format!("truth-{truth}")) {
        Outcome::Ok(_) => judge_truth(truth, out, built, python),
        other => other,
    });
    let mut outcomes = vec![
        doctor(&log("doctor")),
        said("demo"),
        Outcome::Skipped(String::new()),
        said("groups"),
        said("preload"),
        judge_cgroup(said("cgroup"), release.lacks_cgroup()),
        kernel_tests(
            said("programs"),
            &log("programs"),
            &fs::read_to_string(out.join("ledger")).unwrap_or_default(),
        ),
        all(&truths),
    ];
    let traces: Vec<PathBuf> = TRACES
        .iter()
        .map(|name| out.join(format!("trace-{name}")))
        .filter(|trace| trace.join("spool").exists())
        .collect();
    outcomes.extend(judge_traces(&traces, built, python));
    if let Outcome::Ok(lacks) = &outcomes[0]
        && (lacks == "no lock") != lacks_lock
    {
        outcomes[0] = Outcome::Failed(format!("it says: {lacks:?}"));
    }
    if let Outcome::Ok(_) = outcomes[3] {
        let meta = out.join("trace-groups/meta.json");
        let meta = fs::read_to_string(meta).unwrap_or_default();
        outcomes[3] = judge_groups(&log("groups"), &meta, lacks_lock);
    }
    outcomes[2] = match said("hotplug") {
        Outcome::Ok(_) => judge_hotplug(out, python),
        other => other,
    };
    if cpus > MOST_CPUS {
        outcomes[3..8].fill(Outcome::Skipped("too many CPUs".into()));
    }
    outcomes
}

/// Whether a cgroup is recorded, or the agent refuses it where the kernel lacks what that needs.
fn judge_cgroup(said: Outcome, lacks: bool) -> Outcome {
    match said {
        Outcome::Failed(why) if lacks && why.contains("; use Linux 6.1 ") => {
            Outcome::Skipped("needs Linux 6.1".into())
        }
        other => other,
    }
}

/// Whether a recording of all groups says what this kernel lacks of them, while it lasts and in what it leaves.
fn judge_groups(log: &str, meta: &str, lacks_lock: bool) -> Outcome {
    let said = [
        log.contains("of the group lock, and no loss counts it"),
        meta.contains("\"missing-tracepoints\"") && meta.contains("\"contention_begin\""),
    ];
    match said == [lacks_lock; 2] {
        true => Outcome::Ok(String::new()),
        false => Outcome::Failed(format!("lock is missing: {lacks_lock}, and they say: {said:?}")),
    }
}

/// Whether a CPU that went and came is recorded while it is there, and only then.
fn judge_hotplug(out: &Path, python: Option<&Path>) -> Outcome {
    let Some(python) = python else {
        return Outcome::Skipped("no Python that reads Parquet".into());
    };
    let paths = [out.join("trace-hotplug"), out.join("hotplug.times")];
    judged(python, "hotplug.py", &paths)
}

/// What a script says of files: its last line, or all of it when it finds something wrong.
fn judged(python: &Path, script: &str, paths: &[PathBuf]) -> Outcome {
    let mut judge = Command::new(python);
    judge.arg("-B").arg(root().join("tests/python").join(script));
    match judge.args(paths).output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let last = text.lines().last().unwrap_or_default().to_owned();
            let why = || format!("{text}{}", String::from_utf8_lossy(&output.stderr));
            if output.status.success() { Outcome::Ok(last) } else { Outcome::Failed(why()) }
        }
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

/// All truths in one.
fn all(truths: &[Outcome]) -> Outcome {
    let failed: Vec<String> = TRUTHS
        .iter()
        .zip(truths)
        .filter_map(|(name, outcome)| match outcome {
            Outcome::Ok(_) => None,
            other => Some(format!("{}: {other}", name.split("::").next().unwrap_or(name))),
        })
        .collect();
    match failed[..] {
        [] => Outcome::Ok(format!("{} of {0}", truths.len())),
        _ => Outcome::Failed(failed.join("; ")),
    }
}

/// Has a test judge what it has recorded in the guest.
fn judge_truth(truth: &str, out: &Path, built: &Built, python: Option<&Path>) -> Outcome {
    let mut judge = Command::new(&built.end_to_end);
    judge.args(["--exact", truth]).env("FT_RECORDED", out.join("truths")).env("FT_BUILT", "1");
    judge.envs(python.map(|python| ("FT_PYTHON", python)));
    match judge.output() {
        Ok(output) if output.status.success() => Outcome::Ok(String::new()),
        Ok(output) => said(&format!("{truth} 1"), truth, &String::from_utf8_lossy(&output.stdout)),
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

/// Converts the traces here, and has their clocks and tables judged.
fn judge_traces(traces: &[PathBuf], built: &Built, python: Option<&Path>) -> [Outcome; 2] {
    let failed = |why: String| [Outcome::Failed(why.clone()), Outcome::Failed(why)];
    if traces.is_empty() {
        return failed("no trace came back".into());
    }
    for trace in traces {
        // The second one analyses.
        for command in ["convert", "report"] {
            match Command::new(built.agent()).arg(command).arg(trace).output() {
                Ok(output) if output.status.success() => {}
                Ok(output) => return failed(String::from_utf8_lossy(&output.stderr).into_owned()),
                Err(error) => return failed(error.to_string()),
            }
        }
    }
    let Some(python) = python else {
        let skipped = || Outcome::Skipped("no Python that reads Parquet".into());
        return [skipped(), skipped()];
    };
    ["clocks.py", "recomputed.py"].map(|script| judged(python, script, traces))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_a_kernel_lacks_is_named_where_it_lacks_it() {
        let log =
            "warning: the trace lacks what they record of the group lock, and no loss counts it";
        let meta = "\"warning\": \"missing-tracepoints\", \"tracepoints\": [\"contention_begin\"]";
        for (log, meta, lacks, expected) in [
            (log, meta, true, true),
            (log, "", true, false),
            ("", meta, true, false),
            ("", "", true, false),
            ("", "", false, true),
            (log, meta, false, false),
        ] {
            let found = matches!(judge_groups(log, meta, lacks), Outcome::Ok(_));
            assert_eq!(found, expected, "{log} {meta} {lacks}");
        }
    }

    #[test]
    fn a_cgroup_may_be_refused_by_an_old_kernel_and_no_other() {
        let refused = Outcome::Failed("no cgroup.ancestors; use Linux 6.1 or later".into());
        let needs = Outcome::Skipped("needs Linux 6.1".into());
        assert_eq!(judge_cgroup(refused.clone(), true), needs);
        assert_eq!(judge_cgroup(refused.clone(), false), refused);
        let other = Outcome::Failed("no room".into());
        assert_eq!(judge_cgroup(other.clone(), true), other);
    }

    #[test]
    fn a_cpu_that_goes_is_there_and_one_behind_64_where_there_are_so_many() {
        for (cpus, expected) in
            [(2, (1, 3)), (8, (1, 3)), (67, (1, 3)), (68, (65, 67)), (72, (65, 67))]
        {
            assert_eq!(going_and_missing(cpus), expected, "{cpus} CPUs");
        }
    }
}
