//! One line on stderr that is drawn over itself, for what takes long, and messages that do not get mixed with it.
//!
//! Whoever draws the line sees to it that stderr is a terminal.
//!
//! A terminal can be stopped (Ctrl-S), and whoever reads a pipe can be slow: then a write waits. So during a recording a thread of its own
//! writes ([`Aside`]), and nobody else waits for stderr.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::threads;

/// Messages that wait for stderr at most.
///
/// Limit: of further ones it is told how many they were.
/// Shown by: `messages_that_cannot_be_printed_are_counted`.
const MAX_WAITING: usize = 1 << 10;

/// There is one stderr.
static STDERR: Mutex<Stderr> = Mutex::new(Stderr::new());

/// What waits has changed, or who wants a thread that writes.
static CHANGED: Condvar = Condvar::new();

struct Stderr {
    /// The line is there, once all that waits is written.
    is_drawn: bool,
    waiting: VecDeque<String>,
    /// Messages that were too many.
    left_out: u64,
    /// How many want the thread.
    wanted: usize,
    has_thread: bool,
    /// The thread writes.
    is_busy: bool,
}

/// Takes the line away.
const CLEAR: &str = "\r\x1b[2K";

/// The line. Dropped, it is taken away.
#[derive(Debug, Default)]
pub struct StatusLine;

impl StatusLine {
    /// Draws a text in the place of the one before.
    pub fn draw(&mut self, text: &str) {
        put(&format!("{CLEAR}{text}"), true);
    }

    /// Takes the line away, so that something else can be printed.
    pub fn clear(&mut self) {
        put("", false);
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Prints a line of its own, of any thread. The status line, if there is one, comes again when it is drawn next.
pub fn say(message: &str) {
    put(&format!("{message}\n"), false);
}

/// While it lives, nobody who draws or says something waits for stderr. Dropped, it waits until all is written.
#[derive(Debug)]
pub struct Aside(());

impl Aside {
    /// Where there can be no thread, all is written as before.
    pub fn begin() -> Aside {
        let mut stderr = lock();
        stderr.wanted += 1;
        if !stderr.has_thread {
            stderr.has_thread = threads::spawn("ft-stderr", write_all).is_ok();
        }
        Aside(())
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        let mut stderr = lock();
        stderr.wanted -= 1;
        CHANGED.notify_all();
        while stderr.has_thread && (stderr.is_busy || !stderr.waiting.is_empty()) {
            stderr = CHANGED.wait(stderr).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The thread.
fn write_all() {
    let mut stderr = lock();
    loop {
        while let Some(text) = stderr.waiting.pop_front() {
            stderr.is_busy = true;
            drop(stderr);
            write(&text);
            stderr = lock();
            stderr.is_busy = false;
        }
        CHANGED.notify_all();
        if stderr.wanted == 0 {
            stderr.has_thread = false;
            return;
        }
        stderr = CHANGED.wait(stderr).unwrap_or_else(PoisonError::into_inner);
    }
}

fn write(text: &str) {
    // Nothing is left to show it on when stderr is gone.
    let _ = io::stderr().write_all(text.as_bytes());
}

fn lock() -> MutexGuard<'static, Stderr> {
    STDERR.lock().unwrap_or_else(PoisonError::into_inner)
}

fn put(text: &str, drawn: bool) {
    let mut stderr = lock();
    if !stderr.has_thread {
        if let Some(text) = stderr.next(text, drawn) {
            write(&text);
        }
    } else if stderr.queue(text, drawn) {
        CHANGED.notify_all();
    }
}

impl Stderr {
    const fn new() -> Stderr {
        Stderr {
            is_drawn: false,
            waiting: VecDeque::new(),
            left_out: 0,
            wanted: 0,
            has_thread: false,
            is_busy: false,
        }
    }

    /// What is to be written for a text; `drawn`: it is the line.
    fn next(&mut self, text: &str, drawn: bool) -> Option<String> {
        let text = joined(text, std::mem::replace(&mut self.is_drawn, drawn) && !drawn);
        (!text.is_empty()).then_some(text)
    }

    /// Leaves it to the thread. The line is as new as can be: it does not wait behind anything.
    fn queue(&mut self, text: &str, drawn: bool) -> bool {
        if drawn && !self.waiting.is_empty() {
            return false;
        }
        if self.waiting.len() >= MAX_WAITING {
            self.left_out += u64::from(!text.is_empty());
            return false;
        }
        let left_out = match std::mem::take(&mut self.left_out) {
            0 => None,
            count => {
                self.next(&format!("ft-agent: {count} more lines could not be printed\n"), false)
            }
        };
        let text = self.next(text, drawn);
        self.waiting.extend(left_out.into_iter().chain(text));
        true
    }
}

/// In one piece: other processes write to the terminal, too.
fn joined(text: &str, clear: bool) -> String {
    let before = if clear { CLEAR } else { "" };
    format!("{before}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_takes_the_place_of_the_line() {
        assert_eq!(joined("message\n", true), "\r\x1b[2Kmessage\n");
        assert_eq!(joined("message\n", false), "message\n");
    }

    #[test]
    fn messages_that_cannot_be_printed_are_counted() {
        let mut stderr = Stderr::new();
        assert!(stderr.queue("line", true) && !stderr.queue("newer", true));
        for n in 0..MAX_WAITING + 2 {
            assert_eq!(stderr.queue(&format!("{n}\n"), false), n < MAX_WAITING - 1);
        }
        let written: Vec<String> = stderr.waiting.drain(..).collect();
        assert_eq!(written[..3], ["line", "\r\x1b[2K0\n", "1\n"]);
        assert!(stderr.queue("last\n", false));
        assert_eq!(stderr.waiting, ["ft-agent: 3 more lines could not be printed\n", "last\n"]);
    }

    #[test]
    fn all_is_written_when_it_ends() {
        let asides = [Aside::begin(), Aside::begin()];
        assert!(lock().has_thread);
        say("said aside");
        drop(asides);
        assert!(lock().waiting.is_empty());
    }
}
