//! Why a catalogue cannot be used.

use std::io;
use std::path::{Path, PathBuf};

use ft_trace::dir::Refused;
use ft_trace::store::StoreError;

/// Why a catalogue cannot be used: a sentence that ends in the remedy.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// It names no place.
    #[error(
        "'{0}' is no place for traces that this agent knows; name a directory, as a path or as file:///PATH, or s3://BUCKET/PREFIX"
    )]
    Place(String),
    /// It is in an object store, and this program was built without them.
    #[error(
        "'{0}' is in an object store, for which this ft-agent was not built; build it with `cargo install --path ft-agent --features s3`"
    )]
    NoObjectStores(String),
    /// There is none.
    #[error("{0} holds no traces; `ft-agent convert TRACE --to {0}` brings one")]
    NoCatalogue(String),
    /// No trace of that name exists.
    #[error("the catalogue has no trace {0}; `ft-agent catalogue URL` lists those it has")]
    NoTrace(String),
    /// The store cannot be reached, or fails.
    #[error(
        "cannot reach {url}: {why}; try again when the store answers, and check AWS_ENDPOINT_URL"
    )]
    Away {
        /// The catalogue.
        url: String,
        /// What was tried last.
        why: String,
    },
    /// The store does not do what it was asked for.
    #[error(
        "cannot {action} {name}: {why}; check the bucket, and AWS_ACCESS_KEY_ID and the other variables of the store"
    )]
    Object {
        /// What was tried.
        action: &'static str,
        /// Of what.
        name: String,
        /// What the store said.
        why: String,
    },
    /// Another trace lies under its name.
    #[error(
        "another trace lies in {0}; remove that directory, which `ft-agent catalogue` does not list, and bring it again"
    )]
    Taken(String),
    /// Another removes the trace.
    #[error("{0} is being removed; bring it again when `ft-agent catalogue` with --delete is done")]
    BeingRemoved(String),
    /// Another changes the same trace again and again.
    #[error("another changes {0} meanwhile; bring it again when that is done")]
    Unsettled(String),
    /// Others can write there.
    #[error("{0}; name a directory that only this user can write to")]
    Refused(Refused),
    /// Its file system has no hard links, by which a row appears whole, and only once; or what is in it is on several.
    #[error(
        "{} is not on one file system with hard links, which a catalogue needs; name a directory that is, with all that is in it (ext4, XFS, Btrfs, NFS), or s3://BUCKET/PREFIX", .0.display()
    )]
    NoLinks(PathBuf),
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
