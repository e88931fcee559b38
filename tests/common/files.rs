//! What lies in a directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Contents by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// All files beneath a directory, by their paths in it.
pub fn files(dir: &Path) -> Files {
    let (mut found, mut dirs) = (Files::new(), vec![dir.to_owned()]);
    while let Some(at) = dirs.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_string_lossy().into_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}
