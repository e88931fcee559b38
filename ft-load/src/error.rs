//! What goes wrong, in one sentence that ends in the remedy.

use std::fmt;

/// Why a load did not run, or ended early.
///
/// Nothing was half done: what had been started was ended before this was returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The command line or the scenario asks for what makes no sense. Exit status 2.
    Usage(String),
    /// The kernel or the machine refuses what was asked for. Exit status 1.
    Refused(String),
}

impl Error {
    pub(crate) fn usage(sentence: impl Into<String>) -> Self {
        Error::Usage(sentence.into())
    }

    pub(crate) fn refused(sentence: impl Into<String>) -> Self {
        Error::Refused(sentence.into())
    }

    /// What the process ends with.
    pub fn exit_status(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            Error::Refused(_) => 1,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Error::Usage(sentence) | Error::Refused(sentence)) = self;
        f.write_str(sentence)
    }
}

impl std::error::Error for Error {}
