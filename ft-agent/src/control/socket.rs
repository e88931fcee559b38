//! The control socket of a recording: `control.sock` in the directory of the trace.
//!
//! A client connects, sends one [`Request`] as a line of JSON, and gets one [`Answer`] as a line of JSON. It is for the user
//! who records and for root: the kernel says who connects, and the socket has no rights for others. Each connection is a
//! task; the recording takes the requests one by one, also while it ends.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, chmod};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use ft_trace::dir::Dir;

/// Name of the socket in the directory of the trace.
pub const NAME: &str = "control.sock";

/// Longest request and longest answer, bytes.
///
/// Limit: a longer request is refused with a sentence; further ones wait.
/// Shown by: `what_is_no_request_is_answered_with_a_sentence`.
pub(super) const MAX_LINE: u64 = 1 << 16;

/// How long a client may take to send its request.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long the end of a recording may wait for answers to be sent. Those to snapshots come later.
///
/// Limit: who does not read meanwhile gets no answer.
/// Shown by: no figure depends.
const LAST_ANSWERS: Duration = Duration::from_millis(100);

/// Clients that are served at once; whoever has more to ask waits.
///
/// Limit: as `MAX_LINE`.
const MOST_CLIENTS: usize = 64;

/// Room for a usual request. A client that says little needs no more memory.
const USUAL_LINE: usize = 512;

/// What is answered when it is too late.
pub(crate) const ENDED: &str = "the recording has ended";

/// Requests that wait for the recording at most; whoever has more to ask waits.
///
/// Limit: as `MAX_LINE`.
const WAITING: usize = 16;

/// What a recording is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// How far it is.
    Status,
    /// A snapshot of a flight recorder; the answer comes when it can be read.
    Snapshot,
    /// To end as if its duration were over; what was recorded is complete then.
    Stop,
    /// To enable more sites, in the processes that are recorded and in those that come.
    Enable {
        /// Globs over their names.
        globs: Vec<String>,
    },
}

/// What a recording answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// How far it is.
    Status(Status),
    /// The directory of a snapshot that can be read.
    Snapshot(PathBuf),
    /// It ends.
    Stopping,
    /// The globs are taken.
    Enabled {
        /// Processes in which sites are enabled now.
        processes: u64,
    },
    /// Nothing was done; a sentence that says why.
    Error(String),
}

/// How far a recording is. Counts are as new as its last progress.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The agent's process.
    pub pid: u32,
    /// The recorded command; empty when there is none.
    pub command: Vec<String>,
    /// It keeps a window, of which snapshots can be taken.
    pub flight_recorder: bool,
    /// Time since it began, s.
    pub seconds: f64,
    /// Events of applications that were copied.
    pub events: u64,
    /// Records of the kernel that were copied.
    pub kernel_records: u64,
    /// Events and records that were lost.
    pub lost: u64,
    /// Bytes that were written.
    pub bytes: u64,
    /// Bytes of these that wait for their conversion.
    pub bytes_to_convert: u64,
    /// Processes that are recorded through their rings.
    pub processes: u64,
    /// Threads of these that own a ring.
    pub threads: u64,
    /// Why nothing more is recorded, though the command still runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// A request, and the way back.
pub(crate) type Asked = (Request, oneshot::Sender<Answer>);

/// The socket; dropped, it is gone. Connections that wait for their answer stay.
#[derive(Debug)]
pub(crate) struct Control {
    requests: mpsc::Receiver<Asked>,
    accepting: JoinHandle<()>,
    path: Socket,
    over: watch::Sender<()>,
}

/// The path of the socket; removed when this is dropped.
#[derive(Debug)]
struct Socket(Dir);

impl Control {
    /// Opens the socket in the directory of a trace. To be called within [`run`](super::run).
    ///
    /// # Errors
    ///
    /// Where the file system has no sockets, or the kernel no descriptor.
    pub(crate) fn open(dir: &Dir) -> io::Result<Control> {
        let listener = listener(&dir.anchored().join(NAME))?;
        let (ask, requests) = mpsc::channel(WAITING);
        let (over, is_over) = watch::channel(());
        let accepting = tokio::spawn(accept(listener, ask, is_over));
        Ok(Control { requests, accepting, path: Socket(dir.clone()), over })
    }

    /// The next request.
    pub(crate) async fn next(&mut self) -> Option<Asked> {
        self.requests.recv().await
    }

    /// Ends it. Who has connected by now is told that it is too late.
    pub(crate) async fn finish(self) {
        let Control { requests, accepting, path, over } = self;
        drop((path, requests, over));
        // Who waits for a snapshot is answered by whoever makes it, perhaps later.
        let _ = timeout(LAST_ANSWERS, accepting).await;
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Somebody may have removed it.
        let _ = self.0.remove(NAME);
    }
}

/// Whoever is faster than the change of its mode is not allowed either.
fn listener(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    chmod(path, Mode::RUSR | Mode::WUSR)?;
    Ok(listener)
}

async fn accept(listener: UnixListener, ask: mpsc::Sender<Asked>, mut over: watch::Receiver<()>) {
    let mut clients = JoinSet::new();
    let is_over = over.clone();
    let serve = |clients: &mut JoinSet<()>, connection| {
        if is_allowed(&connection) {
            let (ask, over) = (ask.clone(), is_over.clone());
            // A client that goes away is told nothing.
            clients.spawn(async move { drop(serve(connection, ask, over).await) });
        }
    };
    loop {
        tokio::select! {
            _ = over.changed() => break,
            Some(_) = clients.join_next() => {}
            accepted = listener.accept(), if clients.len() < MOST_CLIENTS => match accepted {
                Ok((connection, _)) => serve(&mut clients, connection),
                // No descriptor left.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }
    // Those that wait in the kernel's queue.
    while clients.len() < 2 * MOST_CLIENTS
        && let Ok(Ok((connection, _))) = timeout(Duration::ZERO, listener.accept()).await
    {
        serve(&mut clients, connection);
    }
    clients.join_all().await;
}

fn is_allowed(connection: &UnixStream) -> bool {
    let own = geteuid().as_raw();
    connection.peer_cred().is_ok_and(|peer| [0, own].contains(&peer.uid()))
}

async fn serve(
    connection: UnixStream,
    ask: mpsc::Sender<Asked>,
    mut over: watch::Receiver<()>,
) -> io::Result<()> {
    let (reader, mut writer) = connection.into_split();
    let mut line = Vec::new();
    let mut reader = BufReader::with_capacity(USUAL_LINE, reader.take(MAX_LINE));
    let answer = tokio::select! {
        read = timeout(PATIENCE, reader.read_until(b'\n', &mut line)) => match read {
            Ok(read) => answer(read.map(|_| &*line)?, &ask).await,
            Err(_) => no_request("the line does not end"),
        },
        _ = over.changed() => Answer::Error(ENDED.into()),
    };
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    writer.write_all(&line).await
}

async fn answer(line: &[u8], ask: &mpsc::Sender<Asked>) -> Answer {
    match serde_json::from_slice(line) {
        Ok(request) => {
            let (reply, answer) = oneshot::channel();
            // Both fail when the recording ends.
            let _ = ask.send((request, reply)).await;
            answer.await.unwrap_or_else(|_| Answer::Error(ENDED.into()))
        }
        Err(error) => no_request(&error.to_string()),
    }
}

fn no_request(why: &str) -> Answer {
    Answer::Error(format!(
        "this is no request: {why}; send a line such as {{\"request\":\"status\"}}"
    ))
}
