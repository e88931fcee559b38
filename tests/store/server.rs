//! An object store for a test: moto, which speaks Amazon's protocol, on loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

/// A process that goes with the test.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: SocketAddr,
}

/// Starts moto's server on a port that is free, and says which; its clock is so many days behind. It ends when its input does,
/// which a test that is killed closes, too.
const SCRIPT: &str = "
import datetime, sys, threading
import moto.s3.models
now, behind = moto.s3.models.utcnow, datetime.timedelta(days=int(sys.argv[1]))
moto.s3.models.utcnow = lambda: now() - behind
from werkzeug.serving import make_server
from moto.server import DomainDispatcherApplication, create_backend_app
import logging
logging.getLogger('werkzeug').disabled = True
server = make_server('127.0.0.1', 0, DomainDispatcherApplication(create_backend_app), threaded=True)
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
";

impl Server {
    /// Starts it with a bucket `fleet`; none, with the reason, without a Python that has moto.
    pub(crate) fn start() -> Option<Server> {
        Server::start_behind(0)
    }

    /// The same, whose clock is so many days behind: what is brought now is as old there.
    pub(crate) fn start_behind(days: u32) -> Option<Server> {
        let Some(python) = std::env::var_os("FT_MOTO") else {
            crate::said::skipped("FT_MOTO is not set; run `cargo xtask test fleet`");
            return None;
        };
        let mut process = Command::new(python)
            .args(["-B", "-c", SCRIPT, &days.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("python starts");
        let mut line = String::new();
        let out = process.stdout.take().expect("it is piped");
        BufReader::new(out).read_line(&mut line).expect("it says its port");
        let port: u16 = line.trim().parse().expect("a port");
        let server = Server { process, address: ([127, 0, 0, 1], port).into() };
        assert!(server.asks("PUT", "/fleet").starts_with("HTTP/1.1 200"));
        crate::said::ran();
        Some(server)
    }

    /// What it answers to a request without contents.
    pub(crate) fn asks(&self, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        let host = self.address;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, \
             SignedHeaders=host, Signature=0\r\n\r\n"
        )
        .expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// The names of all objects whose name begins so.
    pub(crate) fn objects(&self, prefix: &str) -> Vec<String> {
        let prefix = prefix.replace('/', "%2F").replace('=', "%3D");
        let answer =
            self.asks("GET", &format!("/fleet?list-type=2&max-keys=100000&prefix={prefix}"));
        assert!(answer.contains("<IsTruncated>false"), "{answer}");
        let keys = answer.split("<Key>").skip(1);
        keys.map(|rest| rest.split('<').next().unwrap_or_default().to_owned()).collect()
    }

    /// What an object holds.
    pub(crate) fn object(&self, name: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        write!(
            stream,
            "GET /fleet/{name} HTTP/1.0\r\nHost: {}\r\nAuthorization: AWS4-HMAC-SHA256 \
             Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0\r\n\r\n",
            self.address
        )
        .expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head");
        assert!(
            answer.starts_with(b"HTTP/1.1 200") || answer.starts_with(b"HTTP/1.0 200"),
            "{name}"
        );
        answer.split_off(head + 4)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
