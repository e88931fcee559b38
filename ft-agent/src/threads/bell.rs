//! What ends the pause of a thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};

/// Wakes a thread from its [`Pause`], whoever rings.
#[derive(Clone, Debug)]
pub struct Bell(Arc<OwnedFd>);

impl Bell {
    /// A new one.
    ///
    /// # Errors
    ///
    /// When the kernel gives no descriptor.
    pub(crate) fn new() -> io::Result<Bell> {
        Ok(Bell(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Ends the pause that is, or the next one.
    pub(crate) fn ring(&self) {
        // Fails when it has been rung 2^64 times and nobody has heard it.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

/// Pauses of one thread.
pub(crate) struct Pause {
    bell: Bell,
    epoll: OwnedFd,
}

impl Pause {
    /// Pauses that end when `bell` rings, and when one of these descriptors has something new: not while it has something.
    ///
    /// # Errors
    ///
    /// When the kernel gives no descriptor, or one of these cannot be waited for.
    pub(crate) fn new<'d>(
        bell: Bell,
        others: impl IntoIterator<Item = BorrowedFd<'d>>,
    ) -> io::Result<Pause> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let none = epoll::EventData::new_u64(0);
        epoll::add(&epoll, &*bell.0, none, epoll::EventFlags::IN)?;
        for other in others {
            epoll::add(&epoll, other, none, epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        }
        Ok(Pause { bell, epoll })
    }

    /// Waits for so long at most.
    pub(crate) fn wait(&mut self, most: Duration) {
        // None, of more seconds than the kernel counts: for ever.
        let most = Timespec::try_from(most).ok();
        // By `poll`, which takes nanoseconds on every kernel. Interrupted, the thread goes on.
        let mut is_over = [PollFd::from_borrowed_fd(self.epoll.as_fd(), PollFlags::IN)];
        if poll(&mut is_over, most.as_ref()).is_ok_and(|ready| ready > 0) {
            // What is taken does not end the next pause.
            let none = Timespec { tv_sec: 0, tv_nsec: 0 };
            let mut events = [const { std::mem::MaybeUninit::<epoll::Event>::uninit() }; 64];
            let _ = epoll::wait(&self.epoll, &mut events, Some(&none));
            let _ = rustix::io::read(&*self.bell.0, &mut [0u8; 8][..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a pause is over before an hour is.
    fn is_over(pause: &Pause) -> bool {
        let mut ready = [PollFd::from_borrowed_fd(pause.epoll.as_fd(), PollFlags::IN)];
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut ready, Some(&none)).unwrap() > 0
    }

    #[test]
    fn a_bell_ends_one_pause() {
        let bell = Bell::new().unwrap();
        let mut pause = Pause::new(bell.clone(), []).unwrap();
        assert!(!is_over(&pause));
        std::thread::scope(|scope| {
            scope.spawn(|| bell.ring());
            pause.wait(Duration::from_secs(3600));
        });
        assert!(!is_over(&pause));
        // Rung before the pause, twice.
        bell.ring();
        bell.ring();
        pause.wait(Duration::from_secs(3600));
        assert!(!is_over(&pause));
    }

    #[test]
    fn what_is_there_already_ends_no_pause_and_what_is_new_does() {
        let (reader, writer) = io::pipe().unwrap();
        let mut pause = Pause::new(Bell::new().unwrap(), [reader.as_fd()]).unwrap();
        rustix::io::write(&writer, b"a").unwrap();
        pause.wait(Duration::from_secs(3600));
        assert!(!is_over(&pause), "nobody has read it");
        rustix::io::write(&writer, b"b").unwrap();
        assert!(is_over(&pause));
    }
}
