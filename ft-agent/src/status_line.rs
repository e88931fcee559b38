//! One line on stderr that is drawn over itself, for what takes long. Its user sees to it that stderr is a
//! terminal.

use std::io::{self, Write};

/// The line. Dropped, it is taken away.
#[derive(Debug, Default)]
pub struct StatusLine {
    drawn: bool,
}

impl StatusLine {
    /// Draws a text in the place of the one before.
    pub fn draw(&mut self, text: &str) {
        self.drawn = true;
        // Nothing is left to show it on when stderr is gone.
        let _ = write!(io::stderr(), "\r\x1b[2K{text}");
    }

    /// Takes the line away, so that something else can be printed.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.clear();
    }
}
