//! What takes long to be given back, and is so by a thread of its own: memory of programs, whose size they choose.

use std::any::Any;
use std::ops::Deref;
use std::sync::LazyLock;
use std::sync::mpsc::{Sender, channel};

use crate::threads;

/// Dropped later, in the order of the drops.
#[derive(Debug)]
pub struct Later<T: Send + 'static>(Option<T>);

impl<T: Send + 'static> Later<T> {
    /// Whatever is given back.
    pub fn new(it: T) -> Later<T> {
        Later(Some(it))
    }
}

impl<T: Send + 'static> Deref for Later<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("it is there until the drop")
    }
}

/// `None` where no thread can be started.
static THREAD: LazyLock<Option<Sender<Box<dyn Any + Send>>>> = LazyLock::new(|| {
    let (sender, given) = channel::<Box<dyn Any + Send>>();
    threads::spawn("ft-release", move || given.into_iter().for_each(drop)).ok().map(|_| sender)
});

impl<T: Send + 'static> Drop for Later<T> {
    fn drop(&mut self) {
        if let (Some(it), Some(thread)) = (self.0.take(), &*THREAD) {
            // It does not end.
            let _ = thread.send(Box::new(it));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_thread_gives_it_back() {
        struct Slow(Sender<std::thread::ThreadId>);
        impl Drop for Slow {
            fn drop(&mut self) {
                self.0.send(std::thread::current().id()).expect("the test listens");
            }
        }
        let (sender, by) = channel();
        let held = Later::new(Slow(sender));
        assert!(by.try_recv().is_err());
        drop(held);
        assert_ne!(by.recv(), Ok(std::thread::current().id()));
    }
}
