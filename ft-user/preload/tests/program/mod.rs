//! C programs of `tests/programs`, compiled and run as they are and under the library.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Duration;

use crate::common::{Event, Memory};

/// What became of a program.
pub(crate) struct Trace {
    /// Numbers that the program told: addresses of locks, ids of threads.
    names: HashMap<String, u64>,
    /// Its events, in order for each thread.
    pub(crate) events: Vec<Event>,
    /// The events of a child that it has told.
    pub(crate) child: Vec<Event>,
    /// Events for which there was no room, as a reader that has no CPU leaves none.
    pub(crate) lost: u64,
    /// Forked children that told no agent of themselves.
    pub(crate) unknown_children: u32,
}

/// The library that Cargo has built for this test.
pub(crate) fn library() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("libft_preload.so")
}

/// Sets a command to run under the library, with these events and without an agent.
pub(crate) fn preload(command: &mut Command, events: &str) {
    command.env("LD_PRELOAD", library()).env("FT_ENABLE", events).env("FT_SOCKET", "/nonexistent");
}

/// Runs the program plain, then with its events off, then traced; it must succeed each time, and nothing is lost.
pub(crate) fn trace(name: &str) -> Trace {
    let trace = trace_with_losses(name);
    assert_eq!(trace.lost, 0, "{name}");
    trace
}

/// The same of a program that writes more than its rings hold, of which the reader may come too late for some.
pub(crate) fn trace_with_losses(name: &str) -> Trace {
    let program = compile(name);
    for events in [None, Some("nothing.*")] {
        let mut command = Command::new(&program);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        events.inspect(|events| preload(&mut command, events));
        assert!(command.status().unwrap().success(), "{name}, events {events:?}");
    }
    let mut command = Command::new(&program);
    preload(&mut command, "lock.*");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let trace = follow(&mut child);
    // One that has failed reads no more; its status says so.
    let _ = child.stdin.take().unwrap().write_all(b"\n");
    assert!(child.wait().unwrap().success(), "{name} traced");
    trace
}

/// Takes names and events until the program says that it is done.
fn follow(child: &mut Child) -> Trace {
    let mut trace = Trace {
        names: HashMap::new(),
        events: Vec::new(),
        child: Vec::new(),
        lost: 0,
        unknown_children: 0,
    };
    let (send, lines) = mpsc::channel();
    let output = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        let lines = output.lines().map_while(Result::ok);
        lines.take_while(|line| line != "done").try_for_each(|line| send.send(line))
    });
    let mut memory = None;
    loop {
        match lines.recv_timeout(Duration::from_millis(1)) {
            Ok(line) => {
                let (name, number) = line.split_once(" 0x").expect("a name and a number");
                trace.names.insert(name.to_owned(), u64::from_str_radix(number, 16).unwrap());
                // The library has started before `main`.
                memory.get_or_insert_with(|| Memory::of(child.id()));
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
        trace.events.extend(memory.iter_mut().flat_map(Memory::take));
    }
    reader.join().unwrap().unwrap();
    trace.events.extend(memory.iter_mut().flat_map(Memory::take));
    trace.lost = memory.as_ref().map_or(0, Memory::lost);
    trace.unknown_children =
        memory.as_ref().map_or(0, |memory| memory.shared().0.unknown_children.load(Relaxed));
    if let Some(&child) = trace.names.get("child") {
        trace.child = Memory::of(child as u32).take();
    }
    trace
}

/// Compiles a program with its warnings as errors.
pub(crate) fn compile(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
    // Tests that run at once may compile the same program.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let file = format!("{name}-{}", NUMBER.fetch_add(1, Relaxed));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
    let mut command = Command::new("cc");
    command.args(["-std=gnu17", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-pthread", "-o"]);
    command.arg(&program).arg(source.with_extension("c"));
    assert!(command.status().expect("a C compiler, cc").success(), "{name} compiles");
    program
}

impl Trace {
    /// A number that the program told.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.names[name]
    }

    /// The events of one thread on locks with a name: `mutex_acquire outer`, one a line.
    pub(crate) fn thread(&self, name: &str) -> Vec<String> {
        let tid = self.number(name);
        self.words(self.events.iter().filter(|event| u64::from(event.tid) == tid))
    }

    /// Events on locks with a name, in words.
    pub(crate) fn words<'a>(&self, events: impl Iterator<Item = &'a Event>) -> Vec<String> {
        let words = events.filter_map(|event| {
            let (lock, _) = self.names.iter().find(|(_, number)| **number == event.words[0])?;
            Some(format!("{} {lock}", event.name.strip_prefix("lock.").unwrap()))
        });
        words.collect()
    }

    /// Number of events with this name on this lock.
    pub(crate) fn count(&self, name: &str, lock: &str) -> usize {
        let lock = self.number(lock);
        self.events.iter().filter(|event| event.name == name && event.words[0] == lock).count()
    }
}
