//! What the sources of the BPF programs are, in a number: by it the packaged object is known to be theirs.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A digest of `ft-ebpf`: the names and the bytes of all files that its programs are made from. It tells sources apart that
/// were changed, not ones that somebody forges (FNV-1a, 64 bits).
///
/// # Errors
///
/// When one of them cannot be read.
pub(crate) fn digest(ft_ebpf: &Path) -> io::Result<String> {
    let mut files = ["common/Cargo.toml", "programs/Cargo.toml", "programs/Cargo.lock"]
        .map(PathBuf::from)
        .to_vec();
    let mut directories = ["common/src", "programs/src"].map(PathBuf::from).to_vec();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(ft_ebpf.join(&directory))? {
            let entry = entry?;
            let path = directory.join(entry.file_name());
            if entry.file_type()?.is_dir() { &mut directories } else { &mut files }.push(path);
        }
    }
    files.sort();
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        let bytes = fs::read(ft_ebpf.join(&file))?;
        // A length each, so that nothing moves from one file to the next.
        let (name, length) = (file.to_string_lossy().into_owned(), bytes.len().to_le_bytes());
        for byte in name.bytes().chain(length).chain(bytes) {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    Ok(format!("{digest:016x}"))
}
