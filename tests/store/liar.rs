//! An object store that lies: it has the files of a directory, and what it says of them is changed as a test likes. It speaks as much of
//! Amazon's protocol as bringing nothing and reading all takes.

use std::fs;
use std::io::{self, BufRead, BufReader, Cursor, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::files;
use crate::stage::PREFIX;

/// What is said to a request.
pub(crate) struct Answer {
    pub(crate) status: &'static str,
    /// Lines of its head beside those that each answer has.
    pub(crate) head: String,
    /// How long it says to be.
    pub(crate) length: u64,
    pub(crate) body: Box<dyn Read>,
}

impl Answer {
    pub(crate) fn of(body: impl Into<Vec<u8>>) -> Answer {
        let body: Vec<u8> = body.into();
        let length = body.len() as u64;
        Answer { status: "200 OK", head: String::new(), length, body: Box::new(Cursor::new(body)) }
    }

    fn status(status: &'static str) -> Answer {
        Answer { status, ..Answer::of("") }
    }

    /// What is said without end, and to be so long.
    pub(crate) fn without_end(text: &'static str, length: u64) -> Answer {
        Answer { length, body: Box::new(Endless(text.as_bytes().iter().cycle())), ..Answer::of("") }
    }
}

struct Endless(std::iter::Cycle<std::slice::Iter<'static, u8>>);

impl Read for Endless {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        room.iter_mut().zip(&mut self.0).for_each(|(byte, next)| *byte = *next);
        Ok(room.len())
    }
}

/// What becomes of the answer to a request, whose first line this is.
type Lie = dyn Fn(&str, Answer) -> Answer + Send + Sync;

/// Starts one with the files of a catalogue's directory.
pub(crate) fn liar(
    root: &Path,
    lie: impl Fn(&str, Answer) -> Answer + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it has one");
    let (root, lie): (PathBuf, Arc<Lie>) = (root.to_owned(), Arc::new(lie));
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (root, lie) = (root.clone(), lie.clone());
            // Whoever has heard enough hangs up.
            std::thread::spawn(move || drop(serve(&client, &root, &*lie)));
        }
    });
    address
}

fn serve(mut client: &TcpStream, root: &Path, lie: &Lie) -> io::Result<()> {
    // The head of an answer is not to wait for its body.
    client.set_nodelay(true)?;
    let mut reader = BufReader::new(client);
    loop {
        let (mut lines, mut length) = (Vec::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.trim_end().to_owned();
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            if line.is_empty() {
                break;
            }
            lines.push(line);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let line = lines[0].replace("%3D", "=").replace("%2F", "/");
        let Answer { status, head, length, body } = lie(&line, honest(root, &line, body));
        write!(
            client,
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nETag: \"1\"\r\n{head}\
             Last-Modified: Sat, 21 Nov 2026 10:00:00 GMT\r\n\r\n"
        )?;
        if !line.starts_with("HEAD ") {
            let sent = io::copy(&mut body.take(length), &mut client)?;
            if sent < length {
                return client.shutdown(std::net::Shutdown::Both);
            }
        }
    }
}

/// What a store would say that has this directory's files.
fn honest(root: &Path, line: &str, body: Vec<u8>) -> Answer {
    let (method, rest) = line.split_once(' ').expect("a request");
    let place = rest.split(' ').next().unwrap_or_default();
    if place.contains("list-type=2") {
        let (_, below) = place.split_once("prefix=").unwrap_or_default();
        let below = below.split('&').next().unwrap_or_default();
        return Answer::of(page(&objects(root, below), None));
    }
    let path = place.split('?').next().unwrap_or_default().strip_prefix("/fleet/");
    let path = path.and_then(|path| path.strip_prefix(PREFIX)).map(|path| root.join(path));
    let Some(path) = path else { return Answer::status("404 Not Found") };
    match method {
        "PUT" => {
            let there = path.parent().map(fs::create_dir_all);
            let put = there.expect("a folder").and_then(|()| fs::write(&path, body));
            put.map_or_else(|_| Answer::status("500 No"), |()| Answer::of(""))
        }
        "DELETE" => fs::remove_file(path)
            .map_or_else(|_| Answer::status("404 Not Found"), |()| Answer::of("")),
        _ => fs::read(path).map_or_else(|_| Answer::status("404 Not Found"), Answer::of),
    }
}

/// Names of the objects that begin so, and their sizes.
fn objects(root: &Path, below: &str) -> Vec<(String, u64)> {
    let all = files(root)
        .into_iter()
        .map(|(name, content)| (format!("{PREFIX}{name}"), content.len() as u64));
    all.filter(|(name, _)| name.starts_with(below)).collect()
}

/// A page of a list, behind which there are others if it has a token for them.
pub(crate) fn page(objects: &[(String, u64)], token: Option<&str>) -> String {
    let object = |(name, bytes): &(String, u64)| {
        format!(
            "<Contents><Key>{name}</Key><LastModified>2026-11-21T10:00:00.000Z</LastModified><ETag>\"1\"</ETag>\
             <Size>{bytes}</Size></Contents>"
        )
    };
    let all: String = objects.iter().map(object).collect();
    let more = token.map(|token| format!("<NextContinuationToken>{token}</NextContinuationToken>"));
    format!(
        "<ListBucketResult><IsTruncated>{}</IsTruncated>{}{all}</ListBucketResult>",
        token.is_some(),
        more.unwrap_or_default()
    )
}
