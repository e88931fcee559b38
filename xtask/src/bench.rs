//! `cargo xtask bench [NAME]…`: the cost tables.

use anyhow::{Result, bail};

use crate::{
    setup,
    workspace::{cargo, step},
};

/// Benchmarks, as package and target.
const BENCHES: [(&str, &str); 2] = [("ft-user", "trigger"), ("ft-preload", "pair")];

/// Runs all benchmarks, or the named ones.
///
/// # Errors
///
/// When a name is not known, or a benchmark fails.
pub(crate) fn run(names: &[String]) -> Result<()> {
    if let Some(name) = names.iter().find(|name| BENCHES.iter().all(|(_, bench)| bench != name)) {
        let known: Vec<&str> = BENCHES.iter().map(|(_, bench)| *bench).collect();
        bail!("there is no benchmark `{name}`; there are: {}", known.join(", "));
    }
    setup::run(setup::BENCHMARKS);
    for (package, bench) in BENCHES {
        if names.is_empty() || names.iter().any(|name| name == bench) {
            step(cargo().args(["bench", "--quiet", "--package", package, "--bench", bench]))?;
        }
    }
    Ok(())
}
