//! What the CPU vouches for.

/// What a CPU announces whose TSC is a clock: it runs at one rate (`constant_tsc`), and goes on in every sleep state
/// (`nonstop_tsc`); both are *invariant TSC* in the manuals (`arch/x86/include/asm/cpufeatures.h`).
const INVARIANT: [&str; 2] = ["constant_tsc", "nonstop_tsc"];

/// Which of `constant_tsc` and `nonstop_tsc` are not among the flags of `/proc/cpuinfo`.
pub fn unannounced(cpuinfo: &str) -> Vec<&'static str> {
    INVARIANT.into_iter().filter(|flag| !has_flag(cpuinfo, flag)).collect()
}

/// The first CPU of `/proc/cpuinfo` has this flag.
pub fn has_flag(cpuinfo: &str, flag: &str) -> bool {
    let line = cpuinfo.lines().find_map(|line| line.strip_prefix("flags")?.split_once(':'));
    line.is_some_and(|(_, flags)| flags.split_whitespace().any(|word| word == flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_whole_words_of_the_first_cpu() {
        let check = |cpuinfo, expected: &[&str]| assert_eq!(unannounced(cpuinfo), expected);
        check("a: b\nflags\t\t: fpu constant_tsc nonstop_tsc\n", &[]);
        check("flags : fpu constant_tsc nonstop_tsc_s3\n", &["nonstop_tsc"]);
        check("flags : fpu\n\nflags : constant_tsc nonstop_tsc\n", &INVARIANT);
        check("", &INVARIANT);
        assert!(has_flag("a: b\nflags\t\t: fpu hypervisor\n", "hypervisor"));
        assert!(!has_flag("flags : fpu\n", "hypervisor") && !has_flag("", "hypervisor"));
    }
}
