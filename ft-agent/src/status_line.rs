//! One line on stderr that is drawn over itself, for what takes long, and messages that do not get mixed with it.
//!
//! Whoever draws the line sees to it that stderr is a terminal.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// Whether the line is there. There is one stderr; whoever writes to it holds this.
static DRAWN: Mutex<bool> = Mutex::new(false);

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

fn put(text: &str, drawn: bool) {
    let mut state = DRAWN.lock().unwrap_or_else(PoisonError::into_inner);
    let text = joined(text, std::mem::replace(&mut *state, drawn) && !drawn);
    if !text.is_empty() {
        // Nothing is left to show it on when stderr is gone.
        let _ = io::stderr().write_all(text.as_bytes());
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
}
