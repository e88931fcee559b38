//! Whether tests on the running kernel can run; each says whether it did (`said.rs`).

pub use crate::said::{measured, ran, skipped};

use std::sync::OnceLock;

use ft_agent::collect::kernel::{Kernel, KernelError, KernelOptions};

/// Loads the kernel side; where this machine does not let it be loaded, reports why and returns nothing.
///
/// A kernel that has all it needs and still refuses is a failure, not a reason to skip.
pub fn kernel_or_skip(options: &KernelOptions) -> Option<Kernel> {
    ran_or_skipped(complete(options))
}

/// The same, for a test that looks by itself at what is missing in a kernel, and says whether it ran.
pub fn incomplete_or_skip(options: &KernelOptions) -> Option<Kernel> {
    load(options).map_err(|reason| skipped(&reason)).ok()
}

/// Whether the default groups can be recorded here, for a test whose agent loads them: a program of tests tries it once.
pub fn recordable_or_skip() -> bool {
    static TRIED: OnceLock<Result<(), String>> = OnceLock::new();
    let tried = TRIED.get_or_init(|| complete(&KernelOptions::default()).map(drop));
    ran_or_skipped(tried.clone()).is_some()
}

fn ran_or_skipped<T>(loaded: Result<T, String>) -> Option<T> {
    match loaded {
        Ok(loaded) => {
            ran();
            Some(loaded)
        }
        Err(reason) => {
            skipped(&reason);
            None
        }
    }
}

/// Loads the kernel side with every tracepoint that it asks for, or says why this cannot be.
fn complete(options: &KernelOptions) -> Result<Kernel, String> {
    let kernel = load(options)?;
    let lacks: Vec<&str> = kernel.missing().iter().map(|m| m.tracepoint).collect();
    match lacks.is_empty() {
        true => Ok(kernel),
        false => Err(format!("this kernel has no {}", lacks.join(", "))),
    }
}

fn load(options: &KernelOptions) -> Result<Kernel, String> {
    match Kernel::load(options) {
        Ok(kernel) => Ok(kernel),
        Err(
            error @ (KernelError::NoObject
            | KernelError::MissingCapability { .. }
            | KernelError::PidNamespace
            | KernelError::NoBtf(_)
            | KernelError::NoCgroups { .. }
            | KernelError::NoSections(_)),
        ) => Err(error.to_string()),
        Err(error) => panic!("{error}"),
    }
}
