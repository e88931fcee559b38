//! Files to objects and back, in bounded memory.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::Path;

use ft_trace::dir::{MAX_WHOLE_BYTES, open_no_link};
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path as Name;
use object_store::{
    Attribute, Attributes, GetOptions, GetResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions,
};

use super::retries::{Retries, Short};
use super::{AT_ONCE, Objects, failed};
use crate::error::io_error;
use crate::place::{FILES, LocalFile, Wanted, is_name, made_for};
use crate::{CatalogueError, Key, Result, key};

/// What goes in one request, and what is in memory of each file on its way; S3 takes 5 MiB to 5 GiB, and 10,000 of them.
///
/// Limit: nothing: a larger file is sent in several pieces, of which S3 takes 10,000, so 78 GiB.
/// Shown by: `files_that_are_larger_than_the_memory_go_to_a_store_and_come_back`.
const PIECE_BYTES: usize = 8 << 20;

/// How often it is looked whether all files are there, before somebody else is said to change them.
///
/// Limit: as `ROUNDS` of `directory.rs`.
const ROUNDS: usize = 4;

/// Digest of an object's contents, beside it: sizes alone do not distinguish files.
const CONTENT: &str = "ft-content";

fn size(path: &Path) -> Result<u64> {
    fs::metadata(path).map(|metadata| metadata.len()).map_err(io_error("read", path))
}

impl Objects {
    /// Sends what is missing until all is there, and nothing else in these tables. Only of what was there before it is asked
    /// whether it is the same, a request each; what has been sent is known by its size.
    pub(super) async fn settle(
        &self,
        key: &Key,
        files: &[LocalFile],
        mut is_first: bool,
    ) -> Result<()> {
        let root = self.name(&key.path())?;
        for _ in 0..ROUNDS {
            let there = &self.below(&root).await?;
            let missing: Vec<&LocalFile> = stream::iter(files)
                .map(|file| async move {
                    let is_there = match there.get(&file.name) {
                        Some(object) if object.size != size(&file.path)? => false,
                        Some(object) if is_first => self.has(&object.location, &file.path).await?,
                        Some(_) => true,
                        None => false,
                    };
                    Ok::<_, CatalogueError>((!is_there).then_some(file))
                })
                .buffered(AT_ONCE)
                .try_filter_map(|file| async move { Ok(file) })
                .try_collect()
                .await?;
            // Parts of tables that an earlier version brought, and did not finish.
            let is_ours = |name: &str| files.iter().any(|file| file.name == name);
            let table = |name: &str| name.split_once('/').map(|(table, _)| table.to_owned());
            let ours: BTreeSet<_> = files.iter().filter_map(|file| table(&file.name)).collect();
            let others: Vec<&ObjectMeta> = there
                .iter()
                .filter(|(name, _)| !is_ours(name))
                .filter(|(name, _)| table(name).is_some_and(|table| ours.contains(&table)))
                .map(|(_, object)| object)
                .collect();
            if missing.is_empty() && others.is_empty() {
                return Ok(());
            }
            for object in others {
                self.delete(&object.location).await?;
            }
            stream::iter(missing)
                .map(
                    |file| async move { self.send(&self.file(key, &file.name)?, &file.path).await },
                )
                .buffer_unordered(AT_ONCE)
                .try_collect::<()>()
                .await?;
            is_first = false;
        }
        Err(CatalogueError::Unsettled(format!("{}/{}", self.url, key.path())))
    }

    /// Fetches the files that are wanted of a trace into a directory.
    pub(super) async fn receive_trace(
        &self,
        key: &Key,
        to: &Path,
        is_wanted: Wanted<'_>,
    ) -> Result<()> {
        if !self.exists(&self.row(key)?).await? {
            return Err(CatalogueError::NoTrace(key.path()));
        }
        let there = self.below(&self.name(&key.path())?).await?;
        let wanted = there.keys().filter(|name| is_name(name) && is_wanted(name));
        stream::iter(wanted)
            .map(|name| async move {
                self.receive(&self.file(key, name)?, &made_for(to, name)?, most(name)).await
            })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }

    /// Whether the object is there, and holds what the file does.
    pub(super) async fn has(&self, name: &Name, path: &Path) -> Result<bool> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        let found = match self.store.get_opts(name, options).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(self.failed("read", name)(error)),
        };
        let digest = found.attributes.get(&Attribute::Metadata(CONTENT.into()));
        let is_it = found.meta.size == size(path)?;
        Ok(is_it && digest.map(|digest| &**digest) == Some(&*content(path)?))
    }

    /// Sends a file: the object is then this one, or what it was.
    pub(super) async fn send(&self, name: &Name, path: &Path) -> Result<()> {
        let mut retries = Retries::default();
        loop {
            match self.send_once(name, path).await? {
                Ok(()) => return Ok(()),
                Err(error) if retries.again(&error).await => {}
                Err(error) => return Err(self.failed("write", name)(error)),
            }
            // It may be there, and only the answer was lost.
            if self.has(name, path).await? {
                return Ok(());
            }
        }
    }

    /// The store's errors are inside of ours.
    async fn send_once(&self, name: &Name, path: &Path) -> Result<object_store::Result<()>> {
        let mut file = open_no_link(path).map_err(io_error("read", path))?;
        let content = (Attribute::Metadata(CONTENT.into()), content(path)?);
        let attributes = Attributes::from_iter([content]);
        let first = piece(&mut file, path)?;
        if first.len() < PIECE_BYTES {
            let options = PutOptions { attributes, ..PutOptions::default() };
            return Ok(self.store.put_opts(name, first.into(), options).await.map(drop));
        }
        let options = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
        let mut upload = match self.store.put_multipart_opts(name, options).await {
            Ok(upload) => upload,
            Err(error) => return Ok(Err(error)),
        };
        let sent = pieces(&mut *upload, first, &mut file, path).await;
        if !matches!(sent, Ok(Ok(()))) {
            // The store keeps pieces, and has them paid for, until it is told that they are not wanted.
            let _ = upload.abort().await;
        }
        sent
    }

    /// Fetches an object of at most so many bytes into a new file.
    pub(super) async fn receive(&self, name: &Name, to: &Path, most: u64) -> Result<()> {
        let mut retries = Retries::default();
        loop {
            let found = self.store.get(name).await.map_err(self.failed("read", name))?;
            if found.meta.size > most {
                let why =
                    format!("it has {} bytes, and no more than {most} are read", found.meta.size);
                return Err(failed("read", name.as_ref(), &why));
            }
            let mut file = File::create(to).map_err(io_error("write", to))?;
            match save(found, &mut file, most).await {
                Ok(written) => return written.map_err(io_error("write", to)),
                Err(error) if retries.again(&error).await => {}
                Err(error) => return Err(self.failed("read", name)(error)),
            }
        }
    }
}

/// The rest of a file after its first piece, piece by piece. The store's errors are inside of ours.
async fn pieces(
    upload: &mut dyn MultipartUpload,
    first: Vec<u8>,
    file: &mut File,
    path: &Path,
) -> Result<object_store::Result<()>> {
    let mut next = first;
    while !next.is_empty() {
        if let Err(error) = upload.put_part(next.into()).await {
            return Ok(Err(error));
        }
        next = piece(file, path)?;
    }
    Ok(upload.complete().await.map(drop))
}

/// The next piece of a file; a shorter one is the last.
fn piece(file: &mut File, path: &Path) -> Result<Vec<u8>> {
    let left = file.stream_position().and_then(|at| Ok(file.metadata()?.len().saturating_sub(at)));
    let left = left.map_err(io_error("read", path))?;
    // As large as it gets: grown step by step it would be twice that.
    let mut bytes =
        Vec::with_capacity(PIECE_BYTES.min(usize::try_from(left).unwrap_or(usize::MAX)));
    let read = file.take(PIECE_BYTES as u64).read_to_end(&mut bytes);
    read.map(|_| bytes).map_err(io_error("read", path))
}

/// Bytes of a trace's file of this name. Tables may have any number: they are not read as a whole.
pub(super) fn most(name: &str) -> u64 {
    if FILES.contains(&name) { MAX_WHOLE_BYTES } else { u64::MAX }
}

/// Writes what comes; the errors of the file are inside of the store's.
async fn save(
    found: GetResult,
    file: &mut File,
    most: u64,
) -> object_store::Result<std::io::Result<()>> {
    let (expected, mut received) = (found.meta.size, 0);
    let mut stream = found.into_stream();
    while let Some(bytes) = stream.next().await {
        let bytes = bytes?;
        received += bytes.len() as u64;
        if received > most {
            return Ok(Err(std::io::Error::other("the store sends more than it said")));
        }
        if let Err(error) = file.write_all(&bytes) {
            return Ok(Err(error));
        }
    }
    match received == expected {
        true => Ok(Ok(())),
        false => Err(object_store::Error::Generic {
            store: "S3",
            source: Short { received, expected }.into(),
        }),
    }
}

/// Digest of a file: it distinguishes what two versions of an agent wrote, not what somebody forged.
fn content(path: &Path) -> Result<String> {
    let mut file = open_no_link(path).map_err(io_error("read", path))?;
    let mut digest = key::FNV_START;
    let mut bytes = vec![0; 1 << 16];
    loop {
        match file.read(&mut bytes).map_err(io_error("read", path))? {
            0 => return Ok(format!("{digest:016x}")),
            n => digest = key::fnv_on(digest, &bytes[..n]),
        }
    }
}
