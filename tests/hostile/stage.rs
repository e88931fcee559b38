//! An agent that is root, an honest program that it records, and an attacker that is another user.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use ft_trace::Mark;
use ft_trace::store::Trace;
use ft_trace::tables::{CriticalSection, LossRow, Part, ThreadTime, UserEvent};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::TempDir;

use crate::numbered::{self, Numbered};
use crate::running::Running;
use crate::{Attack, honest};

/// First argument of the attacker's program.
pub(crate) const ATTACKER: &str = "attacker";

/// User and group of the attacker: `nobody`.
pub(crate) const NOBODY: u32 = 65_534;

/// User and group of honest programs that come later: `daemon`.
const DAEMON: u32 = 1;

/// What the attacker says when its attack is in place.
const READY: &str = "ready";

/// What an attacker has not said by then it never will.
const PATIENCE: Timespec = Timespec { tv_sec: 300, tv_nsec: 0 };

/// What is staged beside an attack.
pub(crate) struct Scene<'a> {
    /// Of the agent.
    pub(crate) options: &'a [&'a str],
    /// Who attack, each in a process of its own.
    pub(crate) users: &'a [u32],
    /// Honest programs of a third user that begin when the attack is in place, and must be recorded as well.
    pub(crate) newcomers: usize,
    /// The attackers say to be threads of numbers that honest ones get later: rows under these are theirs by the process.
    pub(crate) claims_numbers: bool,
    /// Where strace writes what the agent and its workers open, start and give up; nothing watches them otherwise.
    pub(crate) opens: Option<&'a Path>,
    /// What happens then, in the end: what honest programs have said that took part.
    pub(crate) then: &'a dyn Fn(&Stage, &mut [Attacking]) -> String,
}

impl Default for Scene<'_> {
    fn default() -> Self {
        Scene {
            options: &[],
            users: &[NOBODY],
            newcomers: 0,
            claims_numbers: false,
            opens: None,
            then: &|_, _| String::new(),
        }
    }
}

/// An attacker at work, as the suite sees it.
pub(crate) struct Attacking {
    process: Child,
    said: BufReader<ChildStdout>,
}

impl Attacking {
    /// The next line that it says; none of one that has ended.
    pub(crate) fn hear(&mut self) -> String {
        // An attacker says whole lines.
        if self.said.buffer().is_empty() {
            let mut said = [PollFd::new(self.said.get_ref(), PollFlags::IN)];
            let ready = poll(&mut said, Some(&PATIENCE)).expect("a pipe");
            assert!(ready > 0, "the attacker says nothing within {} s", PATIENCE.tv_sec);
        }
        let mut line = String::new();
        self.said.read_line(&mut line).expect("the attacker speaks");
        line.trim_end().to_owned()
    }

    /// Says a line to it.
    pub(crate) fn say(&mut self, line: &str) {
        let stdin = self.process.stdin.as_mut().expect("a pipe");
        writeln!(stdin, "{line}").expect("the attacker listens");
    }

    pub(crate) fn pid(&self) -> i32 {
        self.process.id() as i32
    }

    fn end(mut self) -> i32 {
        let pid = self.pid();
        self.process.kill().and_then(|()| self.process.wait()).expect("the attacker ends");
        pid
    }
}

/// The attacker's view.
pub(crate) struct Attacker {
    /// Where the agent listens.
    pub(crate) socket: String,
    /// How many attackers were started before.
    pub(crate) number: usize,
}

impl Attacker {
    pub(crate) fn new(socket: &str, number: usize) -> Attacker {
        Attacker { socket: socket.to_owned(), number }
    }

    /// Says that the attack is in place. The honest program does as much again, and ends, and with it the recording.
    pub(crate) fn ready(&self) {
        println!("{READY}");
    }

    /// Says so, and stays, with everything that it holds, until the recording has ended.
    pub(crate) fn stay(&self) {
        self.ready();
        self.wait();
    }

    /// Whether the suite has said something, or the recording has ended.
    pub(crate) fn hears(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let stdin = std::io::stdin();
        poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Waits until the recording has ended.
    pub(crate) fn wait(&self) {
        // The suite keeps the other end until then.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
    }
}

/// A folder that every user can enter and only root can write to.
pub(crate) struct Stage {
    folder: TempDir,
    program: PathBuf,
    /// The default groups of the kernel are recorded, too.
    kernel: bool,
}

/// What came of an attack.
pub(crate) struct Recorded {
    /// Process of the first attacker.
    pub(crate) attacker: i32,
    /// Of all.
    pub(crate) attackers: Vec<i32>,
    /// What the agent printed.
    pub(crate) output: String,
    /// What it, or a process that it has started, used of memory at most.
    pub(crate) peak_kib: u64,
    pub(crate) trace: Trace,
}

impl Stage {
    pub(crate) fn new(kernel: bool) -> Stage {
        let folder = TempDir::new().expect("a folder");
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))
            .expect("a folder for all");
        let program = folder.path().join("hostile");
        fs::copy("/proc/self/exe", &program).expect("a copy of this program");
        fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("a program for all");
        Stage { folder, program, kernel }
    }

    /// Path of a file of this test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Records an honest program, with these options, while the attack goes on. Fails unless the agent survives and
    /// ends, and the trace holds all that the honest program did.
    pub(crate) fn attack(&self, attack: &Attack, options: &[&str]) -> Recorded {
        self.attack_in(attack, &Scene { options, ..Scene::default() })
    }

    /// The same with more in the scene.
    pub(crate) fn attack_in(&self, attack: &Attack, scene: &Scene<'_>) -> Recorded {
        let (trace, enough) = (self.path("trace"), self.path("enough"));
        let mut agent = match scene.opens {
            // The agent is our child, and strace is none of its.
            Some(log) => {
                let mut strace = Command::new("strace");
                strace.args(["-D", "-f", "--seccomp-bpf", "-s", "4096", "-e"]);
                strace.arg("trace=open,openat,openat2,execve,clone,clone3,seccomp,prctl");
                strace.arg("-o").arg(log).arg(ft_tests::agent());
                // What cargo sets for tests leads the dynamic loader to where the compiler lies.
                strace.env_remove("LD_LIBRARY_PATH");
                strace
            }
            None => Command::new(ft_tests::agent()),
        };
        let agent = agent
            .args(["record", "--ring-size", "8M"])
            .args(if self.kernel { &[][..] } else { &["-k", "none"][..] })
            .arg("-o")
            .arg(&trace)
            .args(scene.options)
            .arg("--")
            .arg(&self.program)
            .arg(honest::ROLE)
            .arg(&enough)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the agent starts");
        let agent = Running::watch(agent);
        let socket = self.socket();
        let is_open = |file: fs::Metadata| file.permissions().mode() & 0o006 == 0o006;
        agent.wait_for("the socket of the agent", || fs::metadata(&socket).is_ok_and(is_open));
        let start = |(number, &user): (usize, &u32)| self.start_attacker(attack, user, number);
        let mut attackers: Vec<Attacking> = scene.users.iter().enumerate().map(start).collect();
        for attacker in &mut attackers {
            assert_eq!(attacker.hear(), READY, "it has ended before its attack was in place");
        }
        let newcomers: Vec<Child> = (0..scene.newcomers).map(|_| self.start_newcomer()).collect();
        let mut said = (scene.then)(self, &mut attackers);
        said.extend(newcomers.into_iter().map(words_of));
        fs::write(&enough, "").expect("a file");

        let (output, peak_kib) = agent.end();
        let output = output + &said;
        // Now they may go.
        let attackers: Vec<i32> = attackers.into_iter().map(Attacking::end).collect();
        let recorded = Recorded {
            attacker: attackers[0],
            attackers,
            trace: Trace::open(&trace).unwrap_or_else(|e| panic!("no trace: {e}\n{output}")),
            output,
            peak_kib,
        };
        recorded.assert_honest_is_whole(scene.claims_numbers);
        if self.kernel {
            recorded.assert_honest_time_is_known();
        }
        recorded
    }

    /// Where the agent listens.
    fn socket(&self) -> PathBuf {
        self.path("trace").join("agent.sock")
    }

    /// What an honest program of a third user says, which begins now, and ends.
    pub(crate) fn newcomer(&self) -> String {
        words_of(self.start_newcomer())
    }

    fn start_newcomer(&self) -> Child {
        let mut program = Command::new(&self.program);
        // The folder is there: it ends as soon as it has done its part.
        program.arg(honest::ROLE).arg(self.folder.path()).env("FT_SOCKET", self.socket());
        program.uid(DAEMON).gid(DAEMON).current_dir("/").stdin(Stdio::null());
        program.stdout(Stdio::piped()).spawn().expect("a newcomer starts")
    }

    /// The same under this number.
    pub(crate) fn start_numbered(&self, number: i32) -> io::Result<Numbered> {
        let socket = format!("FT_SOCKET={}", self.socket().display());
        let words = [&self.program, Path::new(honest::ROLE), self.folder.path()];
        numbered::start(number, DAEMON, &words, &[socket])
    }

    fn start_attacker(&self, attack: &Attack, user: u32, number: usize) -> Attacking {
        let mut process = Command::new(&self.program)
            .args([ATTACKER, attack.name, &number.to_string()])
            .arg(self.socket())
            .uid(user)
            .gid(user)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the attacker starts");
        let said = BufReader::new(process.stdout.take().expect("a pipe"));
        Attacking { process, said }
    }
}

/// What an honest program says that it did, at its end.
fn words_of(program: Child) -> String {
    let output = program.wait_with_output().expect("an honest program ends");
    String::from_utf8(output.stdout).expect("numbers")
}

impl Recorded {
    /// The agent has told, of the attacker's process, something with these words.
    pub(crate) fn assert_named(&self, words: &str) {
        let pid = self.attacker.to_string();
        let names = |line: &str| {
            line.contains(words) && line.split(|c: char| !c.is_ascii_digit()).any(|n| n == pid)
        };
        let named = self.output.lines().any(names);
        assert!(named, "{words:?} is not told of process {pid}\n{}", self.output);
    }

    /// Threads of the honest program.
    pub(crate) fn honest_threads(&self) -> Vec<i32> {
        self.truth().into_iter().map(|(tid, _)| tid).collect()
    }

    /// Each honest thread and its steps.
    fn truth(&self) -> Vec<(i32, u64)> {
        let told = self.output.lines().filter_map(|line| line.strip_prefix("honest "));
        let numbers = |line: &str| {
            let (tid, steps) = line.split_once(' ').expect("two numbers");
            (tid.parse().expect("a thread"), steps.parse().expect("a number"))
        };
        told.map(numbers).collect()
    }

    /// The agent has told something with all of these words, and so does the trace.
    pub(crate) fn assert_told(&self, words: &[&str]) {
        let has_all = |text: &str| words.iter().all(|word| text.contains(word));
        assert!(self.output.lines().any(has_all), "{words:?} are not told\n{}", self.output);
        let warnings = &self.trace.meta().warnings;
        assert!(warnings.iter().any(|w| has_all(&w.to_string())), "{warnings:?}");
    }

    /// Events and holds of each honest thread are those that it says it made, and no loss is reported. Rows of an attacker
    /// under a thread's number count as the thread's, unless the attackers have claimed it before it was one.
    fn assert_honest_is_whole(&self, claims_numbers: bool) {
        let truth = self.truth();
        assert!(!truth.is_empty(), "the honest program has said nothing\n{}", self.output);
        let (mut steps, mut holds) = (HashMap::<i32, u64>::new(), HashMap::<i32, u64>::new());
        for event in self.trace.rows::<UserEvent>() {
            let event = event.expect("a row");
            let tid = event.tid.0;
            let is_theirs = claims_numbers && self.attackers.contains(&event.pid.0);
            if !is_theirs
                && &*event.event == "honest.step"
                && truth.iter().any(|&(honest, _)| honest == tid)
            {
                let step = steps.entry(tid).or_default();
                *step += 1;
                assert_eq!(event.arg[0], Some(*step as i64), "steps of thread {tid} in order");
            }
        }
        for hold in self.trace.rows::<CriticalSection>() {
            let hold = hold.expect("a row");
            if !(claims_numbers && self.attackers.contains(&hold.pid.0)) {
                *holds.entry(hold.tid.0).or_default() += 1;
            }
        }
        for (tid, made) in truth {
            assert_eq!(steps.get(&tid), Some(&made), "steps of thread {tid}\n{}", self.output);
            assert_eq!(holds.get(&tid), Some(&made), "holds of thread {tid}\n{}", self.output);
        }
        for loss in self.trace.rows::<LossRow>() {
            let loss = loss.expect("a row");
            // On a busy machine records of the kernel may be lost, whoever attacks.
            let is_kernels = loss.origin.is_kernel();
            assert!(is_kernels || self.attackers.contains(&loss.pid.0), "{loss:?}");
        }
    }

    /// Each honest thread ran by the kernel's records, its parts sum to its time, and so do those of its holds.
    fn assert_honest_time_is_known(&self) {
        let honest = self.honest_threads();
        let mut running = HashMap::<i32, i64>::new();
        for time in self.trace.rows::<ThreadTime>() {
            let time = time.expect("a row");
            if time.part == Part::Running && !self.attackers.contains(&time.pid.0) {
                *running.entry(time.tid.0).or_default() += time.spent_ns;
            }
        }
        for tid in &honest {
            assert!(running.get(tid).is_some_and(|&ns| ns > 0), "thread {tid}\n{}", self.output);
        }
        for hold in self.trace.rows::<CriticalSection>() {
            let hold = hold.expect("a row");
            if honest.contains(&hold.tid.0) && hold.mark == Mark::Exact {
                assert_eq!(hold.parts.map(|parts| parts.total_ns()), Some(hold.dur), "{hold:?}");
            }
        }
    }
}
