//! A file system of one file that this program answers for, as FUSE's do (linux/fuse.h), until it says no more.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

use ft_tests::gate;

use crate::stage::{NOBODY, Stage};

/// Numbers of requests.
const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const RELEASE: u32 = 18;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const INTERRUPT: u32 = 36;
const BATCH_FORGET: u32 = 42;

/// The nodes: the directory, and the file in it.
const ROOT: u64 = 1;
const NODE: u64 = 2;

/// Bytes of what comes before each request.
const HEADER_BYTES: usize = 40;

/// Room for any request.
const REQUEST_BYTES: usize = 1 << 20;

/// Where one is mounted beside the trace.
const PLACE: &str = "answered";

/// The file of this name in the one beside the trace of the agent that listens here.
pub(crate) fn path(socket: &str, name: &str) -> PathBuf {
    let trace = Path::new(socket).parent().expect("a trace");
    trace.with_file_name(PLACE).join(name)
}

/// A file system that is mounted, for everybody.
pub(crate) struct Mounted {
    place: PathBuf,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    is_silent: AtomicBool,
    ignores_the_agent: AtomicBool,
    asked: AtomicUsize,
    waiting: AtomicUsize,
}

impl Mounted {
    /// Mounts one beside the trace, of the attacker's, with this file. `None` without the right, which is said.
    pub(crate) fn beside(stage: &Stage, name: &'static str, content: Vec<u8>) -> Option<Mounted> {
        let place = stage.path(PLACE);
        fs::create_dir(&place).expect("a directory");
        let mounted = Mounted::at(&place, NOBODY, name, content);
        if mounted.is_none() {
            gate::skipped("no file system can be mounted that a program answers for");
        }
        mounted
    }

    /// Mounts one at an empty directory, for this user, in which a file has this name and content. `None` without the right.
    pub(crate) fn at(
        place: &Path,
        user: u32,
        name: &'static str,
        content: Vec<u8>,
    ) -> Option<Mounted> {
        let device = File::options().read(true).write(true).open("/dev/fuse").ok()?;
        let options = format!(
            "fd={},rootmode=40000,user_id={user},group_id={user},allow_other",
            device.as_raw_fd()
        );
        let at = CString::new(place.as_os_str().as_bytes()).expect("no NUL");
        let options = CString::new(options).expect("no NUL");
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        let (from, kind) = (c"test".as_ptr(), c"fuse".as_ptr());
        // SAFETY: texts that end in NUL.
        if unsafe { libc::mount(from, at.as_ptr(), kind, flags, options.as_ptr().cast()) } != 0 {
            return None;
        }
        let state = Arc::new(State::default());
        let of_server = state.clone();
        // It ends with the file system.
        thread::spawn(move || serve(device, name, &content, user, &of_server));
        Some(Mounted { place: place.to_owned(), state })
    }

    /// Nobody is answered any more.
    pub(crate) fn fall_silent(&self) {
        self.state.is_silent.store(true, SeqCst);
    }

    /// The agent alone is not answered any more, and waits for ever.
    pub(crate) fn ignore_the_agent(&self) {
        self.state.ignores_the_agent.store(true, SeqCst);
    }

    /// How often an agent has asked since.
    pub(crate) fn asked(&self) -> usize {
        self.state.asked.load(SeqCst)
    }

    /// How many others wait for ever.
    pub(crate) fn waiting(&self) -> usize {
        self.state.waiting.load(SeqCst)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let at = CString::new(self.place.as_os_str().as_bytes()).expect("no NUL");
        // SAFETY: a path that ends in NUL. Whoever waits for an answer has an error then.
        unsafe { libc::umount2(at.as_ptr(), libc::MNT_FORCE | libc::MNT_DETACH) };
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(*bytes[at..].first_chunk().expect("a request is whole"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(*bytes[at..].first_chunk().expect("a request is whole"))
}

/// `struct fuse_attr`.
fn attributes(node: u64, bytes: usize, user: u32) -> Vec<u8> {
    let mode: u32 = if node == ROOT { 0o040_755 } else { 0o100_755 };
    let longs = [node, bytes as u64, bytes.div_ceil(512) as u64, 1, 1, 1];
    let words = [0, 0, 0, mode, 1, user, user, 0, 4096, 0];
    let longs = longs.iter().flat_map(|n| n.to_ne_bytes());
    longs.chain(words.iter().flat_map(|n| n.to_ne_bytes())).collect()
}

/// Whether the program of this thread is the agent.
fn is_the_agent(thread: u32) -> bool {
    let program = fs::read_link(format!("/proc/{thread}/exe")).ok();
    program == fs::canonicalize(ft_tests::agent()).ok()
}

fn serve(mut device: File, name: &str, content: &[u8], user: u32, state: &State) {
    let mut request = vec![0; REQUEST_BYTES];
    loop {
        let bytes = match device.read(&mut request) {
            Ok(bytes) if bytes >= HEADER_BYTES => bytes,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            _ => return,
        };
        let (request, body) = request[..bytes].split_at(HEADER_BYTES);
        let (kind, number, node, thread) =
            (word(request, 4), long(request, 8), long(request, 16), word(request, 32));
        if matches!(kind, FORGET | BATCH_FORGET | INTERRUPT) {
            continue;
        }
        let size = if node == ROOT { 0 } else { content.len() };
        let answer = match kind {
            _ if state.ignores_the_agent.load(SeqCst) && is_the_agent(thread) => {
                state.asked.fetch_add(1, SeqCst);
                continue;
            }
            _ if state.is_silent.load(SeqCst) => {
                // The agent has none of its files open. Of a thread that executes a program nobody is told which one it is.
                if kind == FLUSH || !is_the_agent(thread) {
                    state.waiting.fetch_add(1, SeqCst);
                    continue;
                }
                // That is seen; it need not wait for ever.
                state.asked.fetch_add(1, SeqCst);
                Err(libc::EIO)
            }
            INIT => {
                // Version 7.31, and as much at once as usual.
                let words = [7_u32, 31, 1 << 17, 0, 0, 1 << 17, 1];
                let words = words.iter().flat_map(|n| n.to_ne_bytes());
                Ok(words.chain([0; 36]).collect())
            }
            LOOKUP if body.strip_suffix(b"\0") == Some(name.as_bytes()) => {
                // What it says is good for no time.
                let entry = [NODE, 1, 0, 0, 0].iter().flat_map(|n| n.to_ne_bytes());
                Ok(entry.chain(attributes(NODE, content.len(), user)).collect())
            }
            LOOKUP => Err(libc::ENOENT),
            GETATTR => Ok([vec![0; 16], attributes(node, size, user)].concat()),
            OPEN => Ok(vec![0; 16]),
            READ => {
                let begin = (long(body, 8) as usize).min(size);
                Ok(content[begin..size.min(begin + word(body, 16) as usize)].to_vec())
            }
            FLUSH | RELEASE => Ok(Vec::new()),
            _ => Err(libc::ENOSYS),
        };
        let (error, body) = match answer {
            Ok(body) => (0, body),
            Err(error) => (-error, Vec::new()),
        };
        let length = (16 + body.len()) as u32;
        let head = [&length.to_ne_bytes()[..], &error.to_ne_bytes(), &number.to_ne_bytes()];
        // Who has asked may have been killed.
        let _ = device.write_all(&[&head.concat()[..], &body].concat());
    }
}
