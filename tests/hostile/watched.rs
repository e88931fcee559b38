//! Files that nobody is to open: the kernel says whether somebody has (inotify(7)). To hold one (`O_PATH`) is not to open it.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Errno;

pub(crate) struct Watched(OwnedFd);

impl Watched {
    pub(crate) fn all<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Watched {
        let events = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).expect("inotify");
        for path in paths {
            add_watch(&events, path.as_ref(), WatchFlags::OPEN).expect("it is there");
        }
        Watched(events)
    }

    /// Whether one was opened since. That one was removed is no such event, though the kernel tells it unasked.
    pub(crate) fn is_opened(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(&self.0, &mut buffer);
        loop {
            match events.next() {
                Ok(event) if event.events().contains(ReadFlags::OPEN) => return true,
                Ok(_) => {}
                Err(Errno::AGAIN) => return false,
                Err(error) => panic!("inotify: {error}"),
            }
        }
    }
}
