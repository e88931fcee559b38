//! Channels that record who waited, and for which: [`std::sync::mpsc`]'s with the same interface.
//!
//! ```
//! use ft_user::sync::mpsc;
//! let (sender, receiver) = mpsc::named_channel("jobs");
//! std::thread::spawn(move || sender.send(7));
//! assert_eq!(receiver.recv(), Ok(7));
//! ```
//!
//! Only a wait is recorded: an attempt that finds a value, or room, leaves no event. Who sent the value that ended a wait is
//! not recorded either; the kernel's record of the wake-up is there.

use std::fmt;
use std::panic::Location;
use std::sync::{Arc, mpsc};
use std::time::Duration;

pub use std::sync::mpsc::{
    RecvError, RecvTimeoutError, SendError, TryIter, TryRecvError, TrySendError,
};

use super::place::{Place, tell};

/// What both sides of a channel share: its name, and by its address which channel it is.
#[derive(Clone, Debug)]
struct Channel {
    shared: Arc<Option<&'static str>>,
    name: Option<&'static str>,
}

impl Channel {
    fn new(name: Option<&'static str>) -> Self {
        // An allocation of its own even without a name, so that no two channels have one address.
        Channel { shared: Arc::new(name), name }
    }

    /// What the events call this channel.
    fn address(&self) -> *const () {
        Arc::as_ptr(&self.shared).cast()
    }

    #[cold]
    #[inline(never)]
    fn receive<T>(&self, at: Place, block: impl FnOnce() -> T) -> T {
        tell!(WaitBegin, "lock.receive_wait", self, at);
        let result = block();
        tell!(WaitEnd, "lock.receive_wake", self, at);
        result
    }

    #[cold]
    #[inline(never)]
    fn send<T>(&self, at: Place, block: impl FnOnce() -> T) -> T {
        tell!(WaitBegin, "lock.send_wait", self, at);
        let result = block();
        tell!(WaitEnd, "lock.send_wake", self, at);
        result
    }
}

/// [`std::sync::mpsc::channel`], traced, without a name.
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    unbounded(None)
}

/// [`std::sync::mpsc::channel`], traced, with a name for reports. Several may share one name.
pub fn named_channel<T>(name: &'static str) -> (Sender<T>, Receiver<T>) {
    unbounded(Some(name))
}

/// [`std::sync::mpsc::sync_channel`], traced, without a name.
pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
    bounded(None, bound)
}

/// [`std::sync::mpsc::sync_channel`], traced, with a name for reports. Several may share one name.
pub fn named_sync_channel<T>(name: &'static str, bound: usize) -> (SyncSender<T>, Receiver<T>) {
    bounded(Some(name), bound)
}

fn unbounded<T>(name: Option<&'static str>) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::channel();
    (Sender(sender), Receiver { channel: Channel::new(name), inner: receiver })
}

fn bounded<T>(name: Option<&'static str>, bound: usize) -> (SyncSender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::sync_channel(bound);
    let channel = Channel::new(name);
    (SyncSender { channel: channel.clone(), inner: sender }, Receiver { channel, inner: receiver })
}

/// [`std::sync::mpsc::Sender`]. It never waits.
#[derive(Debug)]
pub struct Sender<T>(mpsc::Sender<T>);

impl<T> Sender<T> {
    /// Sends a value.
    ///
    /// # Errors
    ///
    /// As [`std::sync::mpsc::Sender::send`]: nobody can receive it any more.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.0.send(value)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Sender(self.0.clone())
    }
}

/// [`std::sync::mpsc::SyncSender`], traced: waits for room.
pub struct SyncSender<T> {
    channel: Channel,
    inner: mpsc::SyncSender<T>,
}

impl<T> SyncSender<T> {
    /// Sends a value, waits for room when there is none.
    ///
    /// # Errors
    ///
    /// As [`std::sync::mpsc::SyncSender::send`]: nobody can receive it any more.
    #[track_caller]
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        let at = Location::caller();
        match self.inner.try_send(value) {
            Ok(()) => Ok(()),
            Err(TrySendError::Disconnected(value)) => Err(SendError(value)),
            Err(TrySendError::Full(value)) => self.channel.send(at, || self.inner.send(value)),
        }
    }

    /// Sends a value if there is room.
    ///
    /// # Errors
    ///
    /// As [`std::sync::mpsc::SyncSender::try_send`].
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.inner.try_send(value)
    }
}

impl<T> Clone for SyncSender<T> {
    fn clone(&self) -> Self {
        SyncSender { channel: self.channel.clone(), inner: self.inner.clone() }
    }
}

impl<T> fmt::Debug for SyncSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// [`std::sync::mpsc::Receiver`], traced: waits for a value.
pub struct Receiver<T> {
    channel: Channel,
    inner: mpsc::Receiver<T>,
}

impl<T> Receiver<T> {
    /// Takes a value, waits for one when there is none.
    ///
    /// # Errors
    ///
    /// As [`std::sync::mpsc::Receiver::recv`]: there is none, and nobody can send any.
    #[track_caller]
    pub fn recv(&self) -> Result<T, RecvError> {
        self.recv_at(Location::caller())
    }

    fn recv_at(&self, at: Place) -> Result<T, RecvError> {
        match self.inner.try_recv() {
            Ok(value) => Ok(value),
            Err(TryRecvError::Disconnected) => Err(RecvError),
            Err(TryRecvError::Empty) => self.channel.receive(at, || self.inner.recv()),
        }
    }

    /// Takes a value if there is one.
    ///
    /// # Errors
    ///
    /// As [`std::sync::mpsc::Receiver::try_recv`].
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.inner.try_recv()
    }

    /// [`Receiver::recv`], for `limit` at most.
    ///
    /// # Errors
    ///
    /// As [`std::sync::mpsc::Receiver::recv_timeout`].
    #[track_caller]
    pub fn recv_timeout(&self, limit: Duration) -> Result<T, RecvTimeoutError> {
        let at = Location::caller();
        match self.inner.try_recv() {
            Ok(value) => Ok(value),
            Err(TryRecvError::Disconnected) => Err(RecvTimeoutError::Disconnected),
            Err(TryRecvError::Empty) => self.channel.receive(at, || self.inner.recv_timeout(limit)),
        }
    }

    /// The values until nobody can send any more; waits for each. The place of its waits is that of this call.
    #[track_caller]
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { receiver: self, at: Location::caller() }
    }

    /// The values that are there.
    pub fn try_iter(&self) -> TryIter<'_, T> {
        self.inner.try_iter()
    }
}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    #[track_caller]
    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// The values of a [`Receiver`] that is borrowed, until nobody can send any more.
#[derive(Debug)]
pub struct Iter<'a, T> {
    receiver: &'a Receiver<T>,
    at: Place,
}

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.recv_at(self.at).ok()
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    #[track_caller]
    fn into_iter(self) -> IntoIter<T> {
        IntoIter { receiver: self, at: Location::caller() }
    }
}

/// The values of a [`Receiver`] until nobody can send any more.
#[derive(Debug)]
pub struct IntoIter<T> {
    receiver: Receiver<T>,
    at: Place,
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.recv_at(self.at).ok()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
