//! Removing traces from a store, which has no request for that: whoever does it says so first, and anybody can finish it.

use std::collections::BTreeMap;

use object_store::path::Path as Name;
use object_store::{ObjectMeta, ObjectStore, PutMode};

use super::Objects;
use crate::directory::ABANDONED;
use crate::{Key, Result, TRACES};

/// Where removals are announced: one object a trace, with the trace's path, and who removes it.
const REMOVING: &str = "removing";

/// Objects of a catalogue among which those are looked for that somebody has left behind.
///
/// Limit: nothing is swept, with that reason; what was to be removed has been.
/// Shown by: not shown: it takes as many objects, or 16,777 pages.
const MAX_SWEPT: usize = 1 << 24;

impl Objects {
    /// Where the removal of a trace is announced.
    pub(super) fn removing(&self, key: &Key) -> Result<Name> {
        self.name(&format!("{REMOVING}/{}", key.trace))
    }

    /// Says that a trace is being removed; false where another has said so.
    pub(super) async fn announce(&self, key: &Key) -> Result<bool> {
        let name = self.removing(key)?;
        let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_nanos());
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let text = format!("{}\n{host} {} {now}\n", key.path(), std::process::id());
        match self.store.put_opts(&name, text.clone().into(), PutMode::Create.into()).await {
            Ok(_) => Ok(true),
            // By another, or by a request of ours whose answer was lost.
            Err(object_store::Error::AlreadyExists { .. }) => {
                Ok(self.small(&name).await?.is_some_and(|said| said == text.as_bytes()))
            }
            Err(error) => Err(self.failed("write", &name)(error)),
        }
    }

    /// Removes a trace whose removal is announced, and the announcement last.
    pub(super) async fn remove_announced(&self, key: &Key) -> Result<()> {
        let row = self.row(key)?;
        self.delete(&row).await?;
        self.delete_below(&self.name(&key.path())?).await?;
        // Of a writer that was killed before it could take it back.
        self.delete(&row).await?;
        self.delete(&self.removing(key)?).await
    }

    /// Traces without a row, all of whose objects are old, and removals that nobody has finished.
    pub(super) async fn abandoned(&self) -> Result<Vec<Key>> {
        let rows = self.below(&self.name(TRACES)?).await?;
        let mut keys: BTreeMap<Key, bool> = BTreeMap::new();
        let root = self.name("")?;
        self.each(&root, MAX_SWEPT, |object| {
            let path = object.location.as_ref().strip_prefix(&self.prefix).unwrap_or_default();
            let path: Vec<&str> = path.trim_start_matches('/').split('/').take(3).collect();
            if let Some(key) = Key::of_path(&path.join("/"))
                && !rows.contains_key(&key.row())
            {
                *keys.entry(key).or_insert(true) &= is_old(&object);
            }
        })
        .await?;
        let mut keys: Vec<Key> =
            keys.into_iter().filter_map(|(key, old)| old.then_some(key)).collect();
        for object in self.below(&self.name(REMOVING)?).await?.into_values() {
            let name = &object.location;
            if is_old(&object)
                && let Some(said) = self.small(name).await?
            {
                let path = std::str::from_utf8(&said).ok().and_then(|said| said.lines().next());
                let key = path.and_then(Key::of_path);
                keys.extend(key.filter(|key| name.filename() == Some(&key.trace)));
            }
        }
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }
}

/// What the store says of an object's age, against our clock.
fn is_old(object: &ObjectMeta) -> bool {
    let modified = std::time::SystemTime::from(object.last_modified);
    modified.elapsed().is_ok_and(|age| age > ABANDONED)
}
