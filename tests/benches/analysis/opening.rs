//! How soon a page answers in headless Chromium.

use std::path::Path;
use std::process::Command;

/// A page answers within this time of its opening, s.
pub(crate) const LIMIT_S: f64 = 3.0;

/// Medians of several openings, s: until the timeline is ready, has zoomed, and has said what was clicked. `None`, with the
/// reason on stderr, where the script `tests/page/opening.js` cannot run.
pub(crate) fn seconds(page: &Path) -> Option<[f64; 3]> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
    if !scripts.join("node_modules").exists() {
        eprintln!("the page is not opened: `cargo xtask test page` sets up what that needs");
        return None;
    }
    let node = std::env::var_os("FT_NODE").unwrap_or_else(|| "node".into());
    let output =
        Command::new(node).arg("opening.js").arg(page).current_dir(scripts).output().expect("Node");
    let text = String::from_utf8_lossy(&output.stdout);
    let seconds: Vec<f64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let error = || panic!("{text}{}", String::from_utf8_lossy(&output.stderr));
    Some(seconds.try_into().unwrap_or_else(|_| error()))
}
