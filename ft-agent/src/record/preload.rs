//! The preload library: where it lies, and the environment with it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::RecordError;

/// Name of the library.
const LIBRARY: &str = "libft_preload.so";

/// Where a package puts it, from the directory above that of the agent.
const INSTALLED: &str = "lib/feather-trace";

/// The value of `LD_PRELOAD` for the command: what is in `before`, then the library.
///
/// # Errors
///
/// When the library is not found, or its path cannot stand in the list.
pub(super) fn variable(before: Option<OsString>) -> Result<OsString, RecordError> {
    let library = match std::env::var_os("FT_PRELOAD") {
        Some(path) => PathBuf::from(path),
        None => {
            let agent = std::env::current_exe().map_err(RecordError::system("find the agent"))?;
            of(&agent)
        }
    };
    let library = std::path::absolute(library).map_err(RecordError::system("find a directory"))?;
    if !library.is_file() {
        return Err(RecordError::NoPreload(library));
    }
    list(before, &library)
}

/// The library of an agent: beside it, as both are built, or where a package puts it.
fn of(agent: &Path) -> PathBuf {
    let beside = agent.with_file_name(LIBRARY);
    let prefix = agent.ancestors().nth(2).filter(|_| !beside.is_file());
    let installed = prefix.map(|prefix| prefix.join(INSTALLED).join(LIBRARY));
    installed.filter(|library| library.is_file()).unwrap_or(beside)
}

/// Both in one list. Its separators are spaces and colons, and nothing quotes them.
fn list(before: Option<OsString>, library: &Path) -> Result<OsString, RecordError> {
    if library.as_os_str().as_bytes().iter().any(|byte| b" :".contains(byte)) {
        return Err(RecordError::PreloadPath(library.to_owned()));
    }
    Ok(joined(before.unwrap_or_default(), library.into()))
}

/// The value of `ASAN_OPTIONS` for the command: AddressSanitizer's library, where a program is linked to it, must come
/// before all that replace `malloc`, and ends the program when anything at all comes before it. Ours replaces no such
/// function, so it need not look. What the user has set stands.
pub(super) fn asan_options(before: Option<OsString>) -> OsString {
    joined("verify_asan_link_order=0".into(), before.unwrap_or_default())
}

/// Two lists, of which one may be empty.
fn joined(mut first: OsString, second: OsString) -> OsString {
    if !first.is_empty() && !second.is_empty() {
        first.push(":");
    }
    first.push(second);
    first
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn the_library_lies_beside_the_agent_or_where_a_package_puts_it() {
        let prefix = tempfile::tempdir().unwrap();
        let at = |path: &str| prefix.path().join(path);
        let agent = at("bin/ft-agent");
        assert_eq!(of(&agent), at("bin/libft_preload.so"), "what is missing is named so");
        for library in ["lib/feather-trace/libft_preload.so", "bin/libft_preload.so"] {
            std::fs::create_dir_all(at(library).parent().unwrap()).unwrap();
            std::fs::write(at(library), "").unwrap();
            assert_eq!(of(&agent), at(library));
        }
    }

    #[test]
    fn the_list_keeps_what_was_in_it() {
        let check = |before: Option<&str>, library: &str, expected: Option<&str>| {
            let list = list(before.map(OsString::from), Path::new(library)).ok();
            assert_eq!(list, expected.map(OsString::from));
        };
        check(None, "/a/x.so", Some("/a/x.so"));
        check(Some(""), "/a/x.so", Some("/a/x.so"));
        check(Some("/b.so c.so"), "/a/x.so", Some("/b.so c.so:/a/x.so"));
        let odd = OsStr::from_bytes(b"/\xff.so");
        let both = OsStr::from_bytes(b"/\xff.so:/\xff.so");
        assert_eq!(list(Some(odd.into()), Path::new(odd)).unwrap(), both, "byte by byte");
        check(None, "/a b/x.so", None);
        check(None, "/a:b/x.so", None);
    }

    #[test]
    fn the_order_of_sanitizers_is_not_looked_at_unless_asked_for() {
        let check = |before: Option<&str>, expected| {
            assert_eq!(asan_options(before.map(OsString::from)), expected);
        };
        check(None, "verify_asan_link_order=0");
        check(
            Some("verify_asan_link_order=1"),
            "verify_asan_link_order=0:verify_asan_link_order=1",
        );
    }
}
