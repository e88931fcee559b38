//! What can go wrong between an agent and its store: a proxy that reads each request whole, and then does as it is told.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fate {
    /// It is handed on.
    Pass,
    /// The store never sees it; the connection ends.
    CutBefore,
    /// The store does it; the connection ends in the middle of the answer.
    CutWithin,
    /// The store never sees it; the answer is a 500.
    Fail,
    /// The store does it; the answer is a 500.
    FailAfter,
    /// It is handed on a moment later, its answer in small pieces.
    Slow,
    /// It is handed on; a byte of its answer comes now and then.
    Drip,
    /// It is handed on; its answer comes in pieces of 64 KiB, one a second.
    Trickle,
}

pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    traffic: Arc<Mutex<Traffic>>,
}

/// What has come by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    /// Requests by their methods; `LIST` for those that ask for names, and `DELETE` also for those that remove several objects.
    pub(crate) requests: BTreeMap<String, usize>,
    /// Contents of requests, and of answers, bytes.
    pub(crate) sent: usize,
    pub(crate) received: usize,
    /// The most requests that were not answered yet at one time.
    pub(crate) most_at_once: usize,
    at_once: usize,
}

impl Traffic {
    /// Of these methods.
    pub(crate) fn of(&self, methods: &[&str]) -> usize {
        methods.iter().filter_map(|method| self.requests.get(*method)).sum()
    }

    /// All of them.
    pub(crate) fn count(&self) -> usize {
        self.requests.values().sum()
    }
}

/// A request that is not answered yet.
struct Asked<'a>(&'a Mutex<Traffic>);

impl<'a> Asked<'a> {
    fn begins(traffic: &'a Mutex<Traffic>, line: &str, request: &Message) -> Asked<'a> {
        let mut all = locked(traffic);
        let method = match line.split(' ').next().unwrap_or_default() {
            "GET" if line.contains("list-type=2") => "LIST",
            // Of several objects at once: their names are its contents.
            "POST" if line.contains("?delete") => "DELETE",
            method => method,
        };
        *all.requests.entry(method.to_owned()).or_default() += 1;
        all.sent += if method == "DELETE" { 0 } else { request.body.len() };
        all.at_once += 1;
        all.most_at_once = all.most_at_once.max(all.at_once);
        Asked(traffic)
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        locked(self.0).at_once -= 1;
    }
}

fn locked(traffic: &Mutex<Traffic>) -> MutexGuard<'_, Traffic> {
    traffic.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nobody gets an answer before so many wait for one.
pub(crate) struct Gate {
    waiting: Mutex<usize>,
    opened: Condvar,
    opens_at: usize,
}

impl Gate {
    pub(crate) fn new(opens_at: usize) -> Gate {
        Gate { waiting: Mutex::new(0), opened: Condvar::new(), opens_at }
    }

    /// Whoever comes too late, or alone, goes on in the end: the agent would have given up by then.
    pub(crate) fn pass(&self) {
        let mut waiting = self.waiting.lock().unwrap();
        *waiting += 1;
        self.opened.notify_all();
        let still = |waiting: &mut usize| *waiting < self.opens_at;
        drop(self.opened.wait_timeout_while(waiting, Duration::from_secs(120), still).unwrap());
    }
}

/// A request or an answer.
struct Message {
    head: Vec<u8>,
    body: Vec<u8>,
}

impl Proxy {
    /// Starts one before a server; `fate` is asked with the number of each request, from 1 on, and its first line.
    pub(crate) fn start(
        server: SocketAddr,
        fate: impl Fn(usize, &str) -> Fate + Send + Sync + 'static,
    ) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has one");
        let (count, fate) = (Arc::new(AtomicUsize::new(0)), Arc::new(fate));
        let traffic: Arc<Mutex<Traffic>> = Arc::default();
        let seen = traffic.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (count, fate, seen) = (count.clone(), fate.clone(), seen.clone());
                // A connection that ends is what is tested.
                std::thread::spawn(move || drop(serve(&client, server, &count, &*fate, &seen)));
            }
        });
        Proxy { address, traffic }
    }

    /// What has come by since this was asked before.
    pub(crate) fn traffic(&self) -> Traffic {
        let mut all = locked(&self.traffic);
        let at_once = all.at_once;
        std::mem::replace(&mut *all, Traffic { at_once, ..Traffic::default() })
    }
}

fn serve(
    client: &TcpStream,
    server: SocketAddr,
    count: &AtomicUsize,
    fate: &dyn Fn(usize, &str) -> Fate,
    traffic: &Mutex<Traffic>,
) -> io::Result<()> {
    let mut reader = BufReader::new(client);
    loop {
        let Some(request) = message(&mut reader, false)? else { return Ok(()) };
        let line = String::from_utf8_lossy(&request.head);
        let line = line.lines().next().unwrap_or_default().to_owned();
        let asked = Asked::begins(traffic, &line, &request);
        let fate = fate(count.fetch_add(1, SeqCst) + 1, &line);
        let mut client = client;
        if fate == Fate::CutBefore {
            return client.shutdown(std::net::Shutdown::Both);
        }
        let failed = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n";
        if fate == Fate::Fail {
            client.write_all(failed)?;
            continue;
        }
        if fate == Fate::Slow {
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut upstream = TcpStream::connect(server)?;
        upstream.write_all(&request.head)?;
        upstream.write_all(&request.body)?;
        let no_body = line.starts_with("HEAD ");
        let answer = message(&mut BufReader::new(&upstream), no_body)?;
        let Some(answer) = answer else { return Ok(()) };
        locked(traffic).received += answer.body.len();
        // Before its last byte: the next request may come on another connection at once.
        drop(asked);
        match fate {
            Fate::CutWithin => {
                let bytes = [&answer.head[..], &answer.body].concat();
                client.write_all(&bytes[..bytes.len() / 2])?;
                return client.shutdown(std::net::Shutdown::Both);
            }
            Fate::FailAfter => client.write_all(failed)?,
            Fate::Slow => {
                client.write_all(&answer.head)?;
                for piece in answer.body.chunks(answer.body.len() / 4 + 1) {
                    std::thread::sleep(Duration::from_millis(5));
                    client.write_all(piece)?;
                }
            }
            Fate::Drip | Fate::Trickle => {
                client.write_all(&answer.head)?;
                let (size, millis) = if fate == Fate::Drip { (1, 100) } else { (64 << 10, 1000) };
                for piece in answer.body.chunks(size) {
                    std::thread::sleep(Duration::from_millis(millis));
                    client.write_all(piece)?;
                }
            }
            _ => client.write_all(&[answer.head, answer.body].concat())?,
        }
    }
}

/// Reads a message; its length is that of its head, or it ends with the connection.
fn message(from: &mut impl BufRead, no_body: bool) -> io::Result<Option<Message>> {
    let (mut head, mut length, mut line) = (Vec::new(), 0, Vec::new());
    loop {
        line.clear();
        if from.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&line).to_ascii_lowercase();
        if let Some(value) = text.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        assert!(!text.starts_with("transfer-encoding:"), "the length is known: {text}");
        if !text.starts_with("connection:") {
            head.extend_from_slice(&line);
        }
        if line == b"\r\n" {
            break;
        }
    }
    let mut body = vec![0; if no_body { 0 } else { length }];
    from.read_exact(&mut body)?;
    Ok(Some(Message { head, body }))
}
