//! How wide the text is that is printed.

use std::io::{self, IsTerminal};

/// Where it is not a terminal that shows the text.
const PIPED: usize = 100;

/// Narrower, the numbers of a table alone do not fit.
const NARROWEST: usize = 80;

/// Columns of standard output: `COLUMNS` if it is set, else those of the terminal, else 100; at least 80.
pub(crate) fn columns() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    choose(told, io::stdout().is_terminal().then(of_terminal).flatten())
}

fn of_terminal() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    // A terminal that does not know its size says 0.
    (size.ws_col > 0).then_some(size.ws_col.into())
}

fn choose(told: Option<usize>, terminal: Option<usize>) -> usize {
    told.filter(|n| *n > 0).or(terminal).unwrap_or(PIPED).clamp(NARROWEST, u16::MAX.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_counts_before_the_terminal() {
        for (told, terminal, expected) in [
            (None, None, 100),
            (None, Some(212), 212),
            (Some(132), Some(212), 132),
            (Some(132), None, 132),
            (Some(0), Some(212), 212),
            (Some(10), None, 80),
            (Some(usize::MAX), None, 65_535),
        ] {
            assert_eq!(choose(told, terminal), expected, "{told:?} {terminal:?}");
        }
    }
}
