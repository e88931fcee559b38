//! What a context switch costs more, with its wake-up, while somebody records it.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::added::{Added, perf};
use crate::bench::Bench;
use crate::figures::Figures;
use crate::table::{Row, number};

const TRACEFS: &str = "/sys/kernel/tracing";

/// The events that our group `sched` records.
const EVENTS: [&str; 4] =
    ["sched_switch", "sched_waking", "sched_wakeup_new", "sched_migrate_task"];

/// Two threads that wake each other.
const SUBJECT: [&str; 1] = ["ping-pong"];

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let events = EVENTS.map(|event| format!("sched:{event}"));
    let events = events.each_ref().map(String::as_str);
    let added = Added::to(
        "switch",
        &SUBJECT,
        bench,
        9,
        &[("sched", &["-k", "sched"]), ("all", &["-k", "sched,irq,task"])],
        &[
            ("perf record", &|| tracefs().and_then(|()| perf(bench, &[], &events, &SUBJECT))),
            ("ftrace", &|| tracefs().and_then(|()| ftrace(bench))),
        ],
    )?;
    let (ours, ftrace) = (added.must("sched")?, added.by("ftrace"));
    let goal = match ftrace {
        Some(_) => "≤ 0.4 × ftrace for the same events",
        None => "",
    };
    let met = ftrace.is_none_or(|ftrace| ours <= 0.4 * ftrace);
    Ok(vec![
        Row::new("a switch with its wake-up, our group sched, added; ns", number(ours))
            .goal(goal, met)
            .beside([
                ("unwatched", added.by("unwatched")),
                ("error", added.by("error")),
                ("perf record adds", added.by("perf record")),
                ("ftrace into a file adds", ftrace),
            ])
            .remark(&added.remarks()),
        Row::new("the same, our groups sched, irq and task", number(added.must("all")?)),
    ])
}

/// Makes tracefs visible, if need be to this process and its children alone.
pub(super) fn tracefs() -> Result<()> {
    let events = Path::new(TRACEFS).join("events/sched");
    if events.exists() {
        return Ok(());
    }
    let (name, root) = (CString::new("tracefs")?, CString::new("/")?);
    let at = CString::new(TRACEFS)?;
    let none = std::ptr::null();
    // SAFETY: all strings are NUL-terminated and live through the calls.
    let mounted = unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                none,
                root.as_ptr(),
                none,
                libc::MS_REC | libc::MS_PRIVATE,
                std::ptr::null(),
            ) == 0
            && libc::mount(name.as_ptr(), at.as_ptr(), name.as_ptr(), 0, std::ptr::null()) == 0
    };
    if !mounted || !events.exists() {
        bail!("tracefs cannot be mounted: {}", std::io::Error::last_os_error());
    }
    Ok(())
}

/// An instance of ftrace, whose pages a thread here reads every 5 ms, as trace-cmd does.
fn ftrace(bench: &Bench) -> Result<Figures> {
    let instance = Instance::new()?;
    let pages: Vec<File> = instance.pages()?;
    let mut out = File::create(bench.path("ftrace"))?;
    let over = AtomicBool::new(false);
    let figures = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut page = [0; 4096];
            while !over.load(Ordering::Relaxed) {
                for mut file in &pages {
                    while let Ok(bytes @ 1..) = file.read(&mut page) {
                        // A full tmpfs only makes it cheaper, and then perf's file is not written either.
                        let _ = out.write_all(&page[..bytes]);
                    }
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let figures = bench.subject(&SUBJECT);
        over.store(true, Ordering::Relaxed);
        figures
    });
    let _ = fs::remove_file(bench.path("ftrace"));
    figures
}

/// A ring of its own in tracefs, with the events switched on. Dropped, it is removed.
struct Instance(PathBuf);

impl Instance {
    fn new() -> Result<Instance> {
        let path = Path::new(TRACEFS).join(format!("instances/ft-costs-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("{}", path.display()))?;
        let instance = Instance(path);
        fs::write(instance.0.join("buffer_size_kb"), "16384")?;
        for event in EVENTS {
            fs::write(instance.0.join("events/sched").join(event).join("enable"), "1")?;
        }
        Ok(instance)
    }

    fn pages(&self) -> Result<Vec<File>> {
        let cpus = fs::read_dir(self.0.join("per_cpu"))?.flatten();
        let open = |cpu: fs::DirEntry| {
            let path = cpu.path().join("trace_pipe_raw");
            OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
        };
        Ok(cpus.map(open).collect::<std::io::Result<_>>()?)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        for event in EVENTS {
            let _ = fs::write(self.0.join("events/sched").join(event).join("enable"), "0");
        }
        let _ = fs::remove_dir(&self.0);
    }
}
