//! Why a catalogue cannot be used.

use std::io;
use std::path::{Path, PathBuf};

use ft_trace::dir::Refused;
use ft_trace::store::StoreError;

/// Why a catalogue cannot be used: a sentence that ends in the remedy.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// It is no directory.
    #[error(
        "'{0}' is no place for traces that this agent knows; name a directory, as a path or as file:///PATH"
    )]
    Place(String),
    /// There is none.
    #[error("{path} holds no traces; `ft-agent convert TRACE --to {path}` brings one", path = .0.display())]
    NoCatalogue(PathBuf),
    /// Others can write there.
    #[error("{0}; name a directory that only this user can write to")]
    Refused(Refused),
    /// The operating system refused.
    #[error("cannot {action} {}: {source}; check the free space and the permissions there", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The trace cannot be read, or its row not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// For `map_err`: what was tried, and where.
pub(crate) fn io_error(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(io::Error) -> CatalogueError {
    move |error| match Refused::of(error) {
        Ok(refused) => CatalogueError::Refused(refused),
        Err(source) => CatalogueError::Io { action, path: path.to_owned(), source },
    }
}
