//! The vDSO: the library that the kernel maps into every process, so that to ask for the time need not be a system call.
//!
//! It is no file, but one image for all 64-bit processes of a kernel (`vdso64_image`, arch/x86/entry/vdso/vma.c), ours
//! among them: what another one executes in it is looked up in our own, which is copied into a file in memory once. Whether a
//! trace of another boot or machine is of the same image is said by the build id.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use crate::spool::mapping::Mapping;

/// What the kernel calls it in place of a path (proc_pid_maps(5)).
pub const NAME: &str = "[vdso]";

/// What only has addresses below this has another one (`vdso32_image`, `vdsox32_image`).
const FIRST_OF_64_BITS: u64 = 1 << 32;

/// A file that holds the image of this process; `None` where it has none.
pub fn image() -> Option<File> {
    static IMAGE: OnceLock<Option<File>> = OnceLock::new();
    IMAGE.get_or_init(copied).as_ref()?.try_clone().ok()
}

/// The same, unless what a process has mapped here is another one.
pub(crate) fn image_of(mapping: &Mapping) -> Option<File> {
    let file = image().filter(|_| mapping.start >= FIRST_OF_64_BITS)?;
    let bytes = file.metadata().ok()?.len();
    (mapping.end.checked_sub(mapping.start)? == bytes).then_some(file)
}

fn copied() -> Option<File> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with(NAME))?;
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    let [start, end] = [start, end].map(|number| u64::from_str_radix(number, 16).ok());
    let mut bytes = vec![0; usize::try_from(end?.checked_sub(start?)?).ok()?];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, start?).ok()?;
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(memfd_create("vdso", flags).ok()?);
    file.write_all(&bytes).ok()?;
    // Readers without rights get it, each of which reads for another user.
    let whole = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&file, whole).ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_changes_it() {
        image().expect("Linux maps one").write_at(b"forged", 0).unwrap_err();
    }

    #[test]
    fn only_what_can_be_the_same_image_is_taken_for_it() {
        let bytes = image().expect("Linux maps one").metadata().unwrap().len();
        let start = 0x7fff_0000_0000;
        let own = Mapping { start, end: start + bytes, path: NAME.into(), ..Mapping::default() };
        assert!(image_of(&own).is_some());
        assert!(image_of(&Mapping { end: own.end + 1, ..own.clone() }).is_none());
        assert!(image_of(&Mapping { end: own.start - 1, ..own.clone() }).is_none());
        assert!(image_of(&Mapping { start: 0x1000, end: 0x1000 + bytes, ..own }).is_none());
    }
}
