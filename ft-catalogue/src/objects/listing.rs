//! The names of objects, page by page: a store can have pages without end, and nothing on them.

use std::collections::BTreeMap;

use object_store::ObjectMeta;
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::path::Path as Name;

use super::retries::Retries;
use super::{Objects, failed};
use crate::Result;

/// Objects below one name that are looked at.
///
/// Limit: the catalogue, or the trace, is refused with that reason; rows are cut by `MAX_TRACES` first.
/// Shown by: `lies_about_all_are_one_failure`, by pages without end.
const MAX_OBJECTS: usize = (1 << 20) + 1;

/// For how many a page counts that is not the last one, at least: S3's have a thousand then.
///
/// Limit: as `MAX_OBJECTS`.
const LEAST_OF_PAGE: usize = 1000;

impl Objects {
    /// The objects below a name, by the rest of theirs.
    pub(super) async fn below(&self, name: &Name) -> Result<BTreeMap<String, ObjectMeta>> {
        let mut found = BTreeMap::new();
        self.each(name, MAX_OBJECTS, |object| {
            let rest = object.location.as_ref().strip_prefix(name.as_ref());
            if let Some(rest) = rest.and_then(|rest| rest.strip_prefix('/')) {
                found.insert(rest.to_owned(), object);
            }
        })
        .await?;
        Ok(found)
    }

    /// Shows the objects below a name, of which there may be so many.
    pub(super) async fn each(
        &self,
        name: &Name,
        most: usize,
        mut see: impl FnMut(ObjectMeta),
    ) -> Result<()> {
        let (mut seen, mut next) = (0, None);
        loop {
            let page = self.page(name, next, None).await?;
            next = page.page_token;
            let least = if next.is_some() { LEAST_OF_PAGE } else { 0 };
            seen += page.result.objects.len().max(least);
            if seen > most {
                let why = format!("there are more than {most} objects, or pages without end");
                return Err(failed("list", name.as_ref(), &why));
            }
            page.result.objects.into_iter().for_each(&mut see);
            if next.is_none() {
                return Ok(());
            }
        }
    }

    /// The first page of the objects below a name, or that of this token; of so many at most.
    pub(super) async fn page(
        &self,
        name: &Name,
        token: Option<String>,
        max_keys: Option<usize>,
    ) -> Result<PaginatedListResult> {
        let prefix = Some(name.as_ref()).filter(|name| !name.is_empty());
        let prefix = prefix.map(|name| format!("{name}/"));
        let mut retries = Retries::default();
        loop {
            let page_token = token.clone();
            let options = PaginatedListOptions { page_token, max_keys, ..Default::default() };
            match self.store.list_paginated(prefix.as_deref(), options).await {
                Ok(page) => return Ok(page),
                Err(error) if retries.again(&error).await => {}
                Err(error) => return Err(self.failed("list", name)(error)),
            }
        }
    }
}
