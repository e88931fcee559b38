//! A catalogue in an object store of Amazon's interface.
//!
//! A file is an object of the same name. It appears whole, by one request; a trace has no such request, so its files come one
//! by one, and only its row makes it one. Whoever brings a trace looks which of its files are there, by size and by a digest of
//! their contents, and sends the others.
//!
//! Who removes a trace says so first, by an object in `removing/`, which the store lets only one make; then goes the row, then the
//! files, then that object. Whoever has just put a row looks for that object, takes the row back if it is there, and looks after its
//! files if it is not: had the removal ended before, they are missing, and are sent again. So a row without its trace takes two
//! events in one instant: a removal of the same trace, and a writer that is killed between its row and its next request. Whoever reads
//! such a trace learns that it has no `meta.json`, and bringing it again repairs it.
//!
//! The crate's clients need a runtime. It has one thread, the calling one, and runs only while a method here waits; it looks up
//! names of hosts on a second one.

mod listing;
mod patience;
mod progress;
mod removal;
mod retries;
mod transfer;

use std::path::{Path, PathBuf};

use ft_trace::store::META_FILE;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path as Name;
use object_store::{ObjectStore, ObjectStoreExt, PutMode};
use tokio::runtime::{Builder, Runtime};

use self::patience::Patience;
use self::retries::Retries;
use crate::directory::too_large;
use crate::place::{LocalFile, Look, MAX_ROW_BYTES, Place, TRACES_AT_ONCE, Wanted, is_name};
use crate::scratch::Scratch;
use crate::{CatalogueError, Key, Result, TRACES};

/// Files of a trace on their way at once.
///
/// Limit: as `PIECE_BYTES` of `transfer.rs`.
const AT_ONCE: usize = 4;

/// Rows read at once.
///
/// Limit: as `PIECE_BYTES` of `transfer.rs`.
const ROWS_AT_ONCE: usize = 16;

/// A bucket, or what begins with a prefix in it.
#[derive(Debug)]
pub(crate) struct Objects {
    url: String,
    prefix: String,
    store: AmazonS3,
    runtime: Runtime,
}

impl Objects {
    /// What `BUCKET/PREFIX` of a URL names; the rest is in the environment.
    pub(crate) fn open(url: &str, rest: &str) -> Result<Objects> {
        let wrong = || CatalogueError::Place(url.to_owned());
        let rest = rest.trim_end_matches('/');
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let plain = |text: &str| {
            !text.is_empty()
                && !matches!(text, "." | "..")
                && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-=%".contains(c))
        };
        if !plain(bucket) || !(prefix.is_empty() || prefix.split('/').all(plain)) {
            return Err(wrong());
        }
        let environment = AmazonS3Builder::from_env().with_bucket_name(bucket);
        let patience = Patience::of(&environment).map_err(|why| failed("open", url, &why))?;
        Objects::of(url, prefix, environment, &patience)
    }

    /// The same of a store that is known.
    fn of(url: &str, prefix: &str, store: AmazonS3Builder, patience: &Patience) -> Result<Objects> {
        let store = patience.given(store).build();
        let store = store.map_err(|error| failed("open", url, &error))?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| away(url, &error))?;
        Ok(Objects { url: url.trim_end_matches('/').into(), prefix: prefix.into(), store, runtime })
    }

    /// The object of a name in the catalogue.
    fn name(&self, name: &str) -> Result<Name> {
        let path = format!("{}/{name}", self.prefix);
        Name::parse(path.trim_start_matches('/'))
            .map_err(|_| CatalogueError::Place(format!("{}/{name}", self.url)))
    }

    fn row(&self, key: &Key) -> Result<Name> {
        self.name(&format!("{TRACES}/{}", key.row()))
    }

    fn file(&self, key: &Key, name: &str) -> Result<Name> {
        self.name(&format!("{}/{name}", key.path()))
    }

    /// What went wrong, where the store was asked to do this.
    fn failed(
        &self,
        action: &'static str,
        name: &Name,
    ) -> impl FnOnce(object_store::Error) -> CatalogueError {
        let name = format!("{}/{name}", self.url.split_once("://").map_or("", |_| "s3:/"));
        let url = self.url.clone();
        move |error| match error {
            object_store::Error::Generic { .. } if !retries::is_refused(&error) => {
                away(&url, &error)
            }
            error => failed(action, &name, &error),
        }
    }

    async fn exists(&self, name: &Name) -> Result<bool> {
        match self.store.head(name).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.failed("read", name)(error)),
        }
    }

    async fn delete(&self, name: &Name) -> Result<()> {
        match self.store.delete(name).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed("remove", name)(error)),
        }
    }

    async fn delete_below(&self, name: &Name) -> Result<()> {
        let found = self.below(name).await?;
        stream::iter(found.into_values())
            .map(|object| async move { self.delete(&object.location).await })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }

    /// What an announcement or a row holds, if it is still there.
    async fn small(&self, name: &Name) -> Result<Option<Vec<u8>>> {
        let mut retries = Retries::default();
        loop {
            let found = match self.store.get(name).await {
                Ok(found) if found.meta.size > MAX_ROW_BYTES => return Ok(None),
                Ok(found) => found.bytes().await,
                Err(error) => Err(error),
            };
            match found {
                Ok(bytes) => return Ok(Some(bytes.to_vec())),
                Err(object_store::Error::NotFound { .. }) => return Ok(None),
                Err(error) if retries.again(&error).await => {}
                Err(error) => return Err(self.failed("read", name)(error)),
            }
        }
    }
}

impl Place for Objects {
    fn prepare(&self) -> Result<()> {
        self.runtime.block_on(async {
            let name = self.name(TRACES)?;
            self.page(&name, None, Some(1)).await.map(drop)
        })
    }

    fn rows(&self, most: usize, look: Look<'_>) -> Result<bool> {
        let scratch = Scratch::new()?;
        self.runtime.block_on(async {
            let root = self.name(TRACES)?;
            let rows = self.below(&root).await?;
            if rows.is_empty() {
                return Err(CatalogueError::NoCatalogue(self.url.clone()));
            }
            let is_row = |name: &str| name.ends_with(".parquet") && !name.contains('/');
            let count = rows.keys().filter(|name| is_row(name)).count();
            let wanted = rows.iter().filter(|(name, _)| is_row(name)).take(most);
            let mut found = stream::iter(wanted.enumerate())
                .map(|(n, (name, object))| {
                    let path = scratch.path().join(n.to_string());
                    async move {
                        if object.size > MAX_ROW_BYTES {
                            return Ok((name, Err(too_large(object.size))));
                        }
                        match self.receive(&object.location, &path, MAX_ROW_BYTES).await {
                            Ok(()) => Ok((name, Ok(path))),
                            Err(error @ CatalogueError::Away { .. }) => Err(error),
                            Err(error) => Ok((name, Err(error.to_string()))),
                        }
                    }
                })
                .buffered(ROWS_AT_ONCE);
            while let Some(row) = found.next().await {
                let (name, row) = row?;
                look(name, row.as_deref().map_err(Clone::clone));
                if let Ok(path) = row {
                    let _ = std::fs::remove_file(path);
                }
            }
            Ok(count > most)
        })
    }

    fn has_row(&self, key: &Key) -> Result<bool> {
        self.runtime.block_on(async { self.exists(&self.row(key)?).await })
    }

    fn has_trace(&self, key: &Key) -> Result<bool> {
        self.runtime.block_on(async {
            let has_row = self.exists(&self.row(key)?).await?;
            Ok(has_row && self.exists(&self.file(key, META_FILE)?).await?)
        })
    }

    fn bring(&self, key: &Key, files: &[LocalFile], _: &Path) -> Result<()> {
        self.runtime.block_on(async {
            if self.exists(&self.removing(key)?).await? {
                return Err(CatalogueError::BeingRemoved(format!("{}/{}", self.url, key.path())));
            }
            self.settle(key, files, true).await
        })
    }

    fn publish(&self, key: &Key, files: &[LocalFile], row: &Path) -> Result<bool> {
        let bytes =
            ft_trace::dir::read_regular(row).map_err(crate::error::io_error("read", row))?;
        self.runtime.block_on(async {
            let name = self.row(key)?;
            let put = self.store.put_opts(&name, bytes.clone().into(), PutMode::Create.into());
            let is_new = match put.await {
                Ok(_) => true,
                // By another, or by a request of ours whose answer was lost.
                Err(object_store::Error::AlreadyExists { .. }) => {
                    self.small(&name).await?.is_some_and(|there| there == bytes)
                }
                Err(error) => return Err(self.failed("write", &name)(error)),
            };
            if self.exists(&self.removing(key)?).await? {
                self.delete(&name).await?;
                return Err(CatalogueError::BeingRemoved(format!("{}/{}", self.url, key.path())));
            }
            self.settle(key, files, false).await.map(|()| is_new)
        })
    }

    fn local(&self, _: &Key) -> Option<PathBuf> {
        None
    }

    fn remove(&self, key: &Key) -> Result<()> {
        self.runtime.block_on(async {
            match self.announce(key).await? {
                true => self.remove_announced(key).await,
                // Another does it.
                false => Ok(()),
            }
        })
    }

    fn sweep(&self) -> Result<u64> {
        self.runtime.block_on(async {
            let keys = self.abandoned().await?;
            for key in &keys {
                // What was announced a day ago, nobody removes any more.
                self.announce(key).await?;
                self.remove_announced(key).await?;
            }
            Ok(keys.len() as u64)
        })
    }

    fn names(&self, key: &Key) -> Result<Vec<String>> {
        let found = self.runtime.block_on(async { self.below(&self.name(&key.path())?).await })?;
        Ok(found.into_keys().filter(|name| is_name(name)).collect())
    }

    fn fetch(&self, key: &Key, name: &str, to: &Path) -> Result<()> {
        self.runtime.block_on(async {
            self.receive(&self.file(key, name)?, to, transfer::most(name)).await
        })
    }

    fn fetch_traces(&self, traces: &[(&Key, &Path)], is_wanted: Wanted<'_>) -> Vec<Result<()>> {
        let fetched = stream::iter(traces)
            .map(|(key, to)| self.receive_trace(key, to, is_wanted))
            .buffered(TRACES_AT_ONCE);
        self.runtime.block_on(fetched.collect())
    }

    fn put_within(&self, key: &Key, files: &[&LocalFile]) -> Result<()> {
        let sent = stream::iter(files)
            .map(|file| async move { self.send(&self.file(key, &file.name)?, &file.path).await })
            .buffer_unordered(AT_ONCE);
        self.runtime.block_on(sent.try_collect())
    }

    fn remove_within(&self, key: &Key, name: &str) -> Result<()> {
        self.runtime.block_on(async { self.delete(&self.file(key, name)?).await })
    }
}

fn failed(action: &'static str, name: &str, error: &dyn std::fmt::Display) -> CatalogueError {
    CatalogueError::Object { action, name: name.to_owned(), why: words(error) }
}

fn away(url: &str, error: &dyn std::fmt::Display) -> CatalogueError {
    CatalogueError::Away { url: url.to_owned(), why: words(error) }
}

/// What a store says may be long, and anything.
fn words(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    let mut words: String = text.escape_debug().take(300).collect();
    if words.len() < text.len() {
        words.push('…');
    }
    words
}
