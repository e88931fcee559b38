//! A task that listens to the network, and the machine at the other end of it: a thread that sends datagrams by the loopback
//! device, so that both have one clock.

use std::collections::VecDeque;
use std::io;
use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use ft_user::event;
use serde::Serialize;

use super::executor::{Executor, Join, locked, yields};
use crate::Error;
use crate::clock::monotonic_ns;

/// How the task learns that there is a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listener {
    /// It asks the kernel, and lets others run if there is none: the paper's, because a call that blocks would stop a worker.
    Asks,
    /// A thread blocks for it, and wakes the task, which comes before all others: what the paper misses in thread libraries.
    Woken,
}

/// A message, and when it was sent and received, ns of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Message {
    message: u64,
    sent_ns: u64,
    received_ns: u64,
}

/// The number of the last one, which is none.
///
/// Limit: cannot be reached: nobody counts so far.
/// Shown by: `every_message_is_received`.
const LAST: u64 = u64::MAX;

/// Of a message: its number and when it was sent.
const BYTES: usize = 16;

/// Two messages lie two to five rounds apart, at random: not in step with the turns.
const APART: [u64; 2] = [2, 3];

/// The other machine, and what listens to it.
pub(super) struct Network {
    how: Listener,
    socket: UdpSocket,
}

impl Network {
    /// Sends from now on until `end`, and then the last one.
    ///
    /// # Errors
    ///
    /// When a socket or a thread is refused.
    pub(super) fn start(how: Listener, round_ns: u64, end: u64) -> Result<Network, Error> {
        let (to, socket) = sockets(how).map_err(|error| {
            Error::refused(format!(
                "the loopback device has no sockets ({error}); see `ip link show lo`"
            ))
        })?;
        let sender = thread::Builder::new().name("network".into());
        sender.spawn(move || send(&to, round_ns, end)).map_err(|error| {
            Error::refused(format!("no thread sends messages ({error}); raise `ulimit -u`"))
        })?;
        Ok(Network { how, socket })
    }

    /// The task, which ends with the last message, and has the others.
    pub(super) fn listens(self, executor: &Executor) -> Join<Vec<Message>> {
        let socket = self.socket;
        match self.how {
            Listener::Asks => executor.spawn("daemon", async move {
                let mut messages = Vec::new();
                loop {
                    match receive(&socket) {
                        None => yields().await,
                        Some([LAST, _]) => return messages,
                        Some(message) => messages.push(received(message)),
                    }
                }
            }),
            Listener::Woken => {
                let inbox = Arc::new(Inbox::default());
                let to = inbox.clone();
                let reads = move || {
                    let mut is_last = false;
                    while !is_last {
                        let message = receive(&socket).expect("it blocks");
                        is_last = message[0] == LAST;
                        to.put(message);
                    }
                };
                let reader = thread::Builder::new().name("listener".into()).spawn(reads);
                reader.expect("one more thread");
                executor.spawn_urgent("daemon", async move {
                    let mut messages = Vec::new();
                    loop {
                        match inbox.next().await {
                            [LAST, _] => return messages,
                            message => messages.push(received(message)),
                        }
                    }
                })
            }
        }
    }
}

/// Messages that nobody has taken yet, and who waits for one.
#[derive(Default)]
struct Inbox(Mutex<(VecDeque<[u64; 2]>, Option<Waker>)>);

impl Inbox {
    fn put(&self, message: [u64; 2]) {
        let mut inbox = locked(&self.0);
        inbox.0.push_back(message);
        let waker = inbox.1.take();
        drop(inbox);
        waker.into_iter().for_each(Waker::wake);
    }

    async fn next(&self) -> [u64; 2] {
        std::future::poll_fn(|context| {
            let mut inbox = locked(&self.0);
            match inbox.0.pop_front() {
                Some(message) => Poll::Ready(message),
                None => {
                    inbox.1 = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

/// Two that are connected; who asks does not wait for the second.
fn sockets(how: Listener) -> io::Result<(UdpSocket, UdpSocket)> {
    let (to, from) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    to.connect(from.local_addr()?)?;
    from.connect(to.local_addr()?)?;
    from.set_nonblocking(how == Listener::Asks)?;
    Ok((to, from))
}

fn send(to: &UdpSocket, round_ns: u64, end: u64) {
    let mut random = monotonic_ns() | 1;
    for message in 0.. {
        // xorshift64
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let [least, more] = APART.map(|rounds| rounds * round_ns);
        let pause = least + random % more.max(1);
        // So that the tasks still run when it is received.
        if monotonic_ns() + pause + round_ns >= end {
            break;
        }
        thread::sleep(Duration::from_nanos(pause));
        let now = monotonic_ns();
        event!("tasks.sent", message: u64);
        put(to, [message, now]);
    }
    thread::sleep(Duration::from_nanos(end.saturating_sub(monotonic_ns())));
    put(to, [LAST, 0]);
}

fn put(to: &UdpSocket, message: [u64; 2]) {
    // To this machine, and the receiver has room for thousands of them.
    to.send(&message.map(u64::to_ne_bytes).concat()).expect("a datagram by the loopback device");
}

/// A message; none where it does not block and there is none.
fn receive(socket: &UdpSocket) -> Option<[u64; 2]> {
    let mut bytes = [0; BYTES];
    match socket.recv(&mut bytes) {
        Ok(_) => {
            let (words, _) = bytes.as_chunks::<8>();
            Some([u64::from_ne_bytes(words[0]), u64::from_ne_bytes(words[1])])
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
        Err(error) => panic!("a socket of the loopback device fails: {error}"),
    }
}

fn received([message, sent_ns]: [u64; 2]) -> Message {
    event!("tasks.received", message: u64);
    Message { message, sent_ns, received_ns: monotonic_ns() }
}
