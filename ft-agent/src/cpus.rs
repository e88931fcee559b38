//! The machine's CPUs, by their numbers. Those may have holes, and CPUs come and go while a recording goes on.

use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;

/// Numbers beyond are none: `NR_CPUS` of x86-64 is at most 8192 (arch/x86/Kconfig).
const MOST: u32 = 8192;

/// Those that run now, in order; that of number 0 alone where the kernel does not tell.
pub(crate) fn online() -> Vec<u32> {
    listed("/sys/devices/system/cpu/online")
}

/// Those that can ever run, in order.
pub(crate) fn possible() -> Vec<u32> {
    listed("/sys/devices/system/cpu/possible")
}

/// The NUMA node of each CPU, as far as the kernel tells.
pub(crate) fn nodes() -> BTreeMap<u32, u32> {
    let nodes = fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
    let number = |name: &str| name.strip_prefix("node")?.parse::<u32>().ok();
    nodes
        .filter_map(|entry| Some((number(entry.file_name().to_str()?)?, entry.path())))
        .flat_map(|(node, path)| {
            let cpus = fs::read_to_string(path.join("cpulist")).unwrap_or_default();
            parse(&cpus).into_iter().map(move |cpu| (cpu, node))
        })
        .collect()
}

fn listed(path: &str) -> Vec<u32> {
    let cpus = parse(&fs::read_to_string(path).unwrap_or_default());
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// Reads a list of the kernel's like `0-3,8` (cpusets(7), list format). What is no number is left out.
pub(crate) fn parse(list: &str) -> Vec<u32> {
    list.trim().split(',').filter_map(range).flatten().filter(|cpu| *cpu < MOST).collect()
}

/// Reads a list that somebody wrote, such as `0,2-3`; `None` where a part of it names no CPU of 0 to 8191.
pub fn parse_strictly(list: &str) -> Option<Vec<u32>> {
    let named = |part| range(part).filter(|range| !range.is_empty() && *range.end() < MOST);
    let ranges: Option<Vec<_>> = list.split(',').map(named).collect();
    Some(ranges?.into_iter().flatten().collect())
}

/// `2-3`, or `8` alone.
fn range(part: &str) -> Option<RangeInclusive<u32>> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    Some(first.parse().ok()?..=last.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_may_have_holes() {
        let check = |list, expected: &[u32]| assert_eq!(parse(list), expected, "{list}");
        check("0\n", &[0]);
        check("0-3,8", &[0, 1, 2, 3, 8]);
        check("1,62-65,127\n", &[1, 62, 63, 64, 65, 127]);
        check("", &[]);
        check("x-3,2", &[2]);
        assert_eq!(parse("0-4294967295").len() as u32, MOST);
    }

    #[test]
    fn of_a_strict_list_each_part_names_cpus() {
        assert_eq!(parse_strictly("3"), Some(vec![3]));
        assert_eq!(parse_strictly("0,2-4"), Some(vec![0, 2, 3, 4]));
        for bad in ["", "a", "1,", "2-1", "-1", "0-8192"] {
            assert_eq!(parse_strictly(bad), None, "{bad}");
        }
    }

    #[test]
    fn whoever_runs_can_run() {
        let possible = possible();
        assert!(online().iter().all(|cpu| possible.contains(cpu)));
        assert!(nodes().keys().all(|cpu| possible.contains(cpu)));
    }
}
