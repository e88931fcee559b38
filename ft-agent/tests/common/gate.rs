//! Whether tests on the running kernel can run; each says whether it did (`said.rs`).

#[path = "said.rs"]
mod said;

#[allow(unused_imports, reason = "not every test binary measures")]
pub(crate) use said::{measured, ran, skipped};

use ft_agent::collect::kernel::{Kernel, KernelError, KernelOptions};

/// Loads the kernel side; where this machine does not let it be loaded, reports why and returns nothing.
///
/// A kernel that has all it needs and still refuses is a failure, not a reason to skip.
pub(crate) fn kernel_or_skip(options: &KernelOptions) -> Option<Kernel> {
    let kernel = incomplete_or_skip(options)?;
    if !kernel.missing().is_empty() {
        let lacks: Vec<&str> = kernel.missing().iter().map(|m| m.tracepoint).collect();
        skipped(&format!("this kernel has no {}", lacks.join(", ")));
        return None;
    }
    ran();
    Some(kernel)
}

/// The same, for a test that looks by itself at what is missing in a kernel, and says whether it ran.
pub(crate) fn incomplete_or_skip(options: &KernelOptions) -> Option<Kernel> {
    match Kernel::load(options) {
        Ok(kernel) => Some(kernel),
        Err(
            error @ (KernelError::NoObject
            | KernelError::MissingCapability { .. }
            | KernelError::PidNamespace
            | KernelError::NoBtf(_)
            | KernelError::NoSections(_)),
        ) => {
            skipped(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}
