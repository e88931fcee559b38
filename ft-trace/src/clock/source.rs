//! Whether what the kernel itself uses as its clock is made from the TSC.

/// Clock sources that are computed from the TSC: its own, and those of hypervisors that publish its rate.
const FROM_TSC: [&str; 5] = ["tsc", "tsc-early", "kvm-clock", "hyperv_clocksource_tsc_page", "xen"];

/// The kernel uses another clock than the TSC: it has found the TSC unstable (Documentation/timers/timekeeping.rst),
/// or was configured so. Of a source that is not known (empty) nothing is said.
pub fn is_doubtful(source: &str) -> bool {
    !source.is_empty() && !FROM_TSC.contains(&source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_are_not_the_tsc_are_doubtful() {
        for good in ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", ""] {
            assert!(!is_doubtful(good), "{good}");
        }
        for bad in ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "hyperv_clocksource_msr"] {
            assert!(is_doubtful(bad), "{bad}");
        }
    }
}
