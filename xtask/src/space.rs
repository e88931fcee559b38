//! Whether there is room for what a test run makes: a compiler that has none says so in the midst of much else.

use std::{path::Path, process::Command};

/// MiB that a run from nothing takes: the target directory 13,300, and what is installed beside it.
const NEEDED_MIB: u64 = 17 << 10;

/// What is said before a run from nothing that may find no room; nothing where that cannot be found out.
pub(crate) fn warning(target: &Path) -> Option<String> {
    // Behind the first run there is what it has made.
    if target.join("tests").exists() {
        return None;
    }
    let there = target.ancestors().find(|folder| folder.exists())?;
    let mut df = Command::new("df");
    let output = df.args(["-BM", "--output=avail"]).arg(there).output().ok()?;
    said(&String::from_utf8_lossy(&output.stdout), target)
}

fn said(df: &str, target: &Path) -> Option<String> {
    let free: u64 = df.lines().last()?.trim().strip_suffix('M')?.parse().ok()?;
    let gib = |mib: u64| mib as f64 / 1024.0;
    (free < NEEDED_MIB).then(|| {
        format!(
            "There are {:.1} GiB free for {}, and a whole run takes {:.0}: free some, or set CARGO_TARGET_DIR to a folder on a \
             larger disk.",
            gib(free),
            target.display(),
            gib(NEEDED_MIB)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_no_room_is_told_how_much_is_needed() {
        let target = Path::new("/x/target");
        let said = |df: &str| said(df, target);
        let text = said(" Avail\n  2048M\n").expect("that is too little");
        assert!(
            text.starts_with("There are 2.0 GiB free for /x/target, and a whole run takes 17"),
            "{text}"
        );
        assert_eq!(said(" Avail\n 17408M\n"), None);
        assert_eq!(said("df: no such file"), None);
        assert_eq!(said(""), None);
    }

    #[test]
    fn room_is_sought_where_the_folder_will_be() {
        let here = std::env::temp_dir().join("not/yet/there");
        let mut df = Command::new("df");
        let output = df.args(["-BM", "--output=avail"]).arg(std::env::temp_dir()).output();
        let text = String::from_utf8(output.expect("df starts").stdout).expect("text");
        assert_eq!(warning(&here).is_some(), said(&text, &here).is_some());
    }
}
