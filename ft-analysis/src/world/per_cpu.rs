//! Something for each CPU.

use ft_trace::ids::Cpu;

/// CPU numbers at or above this one come from damaged data (`NR_CPUS` of x86-64 is at most 8192, arch/x86/Kconfig).
///
/// Limit: cannot be reached; a higher number is damaged data, and nobody is blamed.
/// Shown by: `nobody_is_blamed_for_what_is_not_known`.
const MAX_CPUS: usize = 8192;

/// Which CPU it is; `None` when there can be none with that number.
pub(crate) fn index(cpu: Cpu) -> Option<usize> {
    usize::try_from(cpu.0).ok().filter(|&i| i < MAX_CPUS)
}

/// A value for each CPU up to the highest that was asked for.
#[derive(Debug, Default)]
pub(crate) struct PerCpu<T>(Vec<T>);

impl<T: Default> PerCpu<T> {
    /// That of a CPU, if there can be one with that number.
    pub(crate) fn of(&mut self, cpu: Cpu) -> Option<&mut T> {
        let i = index(cpu)?;
        if i >= self.0.len() {
            self.0.resize_with(i + 1, T::default);
        }
        self.0.get_mut(i)
    }

    /// Those that were asked for.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut()
    }

    /// The same, if it was ever asked for.
    pub(crate) fn get(&self, cpu: Cpu) -> Option<&T> {
        self.0.get(index(cpu)?)
    }
}
