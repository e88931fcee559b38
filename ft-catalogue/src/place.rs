//! What names a catalogue.

use std::path::PathBuf;

use crate::{CatalogueError, Result};

/// The directory that a path or a `file:` URL means.
pub(crate) fn directory(url: &str) -> Result<PathBuf> {
    let wrong = || CatalogueError::Place(url.to_owned());
    match url.split_once("://") {
        None if url.is_empty() => Err(wrong()),
        None => Ok(PathBuf::from(url)),
        // A URL writes some characters otherwise than a path does, and may name a host.
        Some(("file", path)) if path.starts_with('/') && !path.contains(['%', '?', '#']) => {
            Ok(PathBuf::from(path))
        }
        Some(_) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalogue_is_a_directory() {
        for (url, path) in
            [("fleet", "fleet"), ("/srv/fleet", "/srv/fleet"), ("file:///srv/a b", "/srv/a b")]
        {
            assert_eq!(directory(url).unwrap(), PathBuf::from(path));
        }
        for url in ["", "s3://bucket/fleet", "file://host/srv", "file://", "file:///a%20b"] {
            let error = directory(url).unwrap_err().to_string();
            assert!(error.ends_with("name a directory, as a path or as file:///PATH"), "{error}");
        }
    }
}
