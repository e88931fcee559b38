//! The kernel's own symbols (`/proc/kallsyms`): of the kernel that runs, so only for what was recorded since it was booted.

use std::fs;
use std::ops::Range;

/// Where the boot that runs is told from others.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Where the kernel's image ends, and all else begins that lies above it (`KERNEL_IMAGE_SIZE` above `__START_KERNEL_map`,
/// arch/x86/include/asm/page_64_types.h).
const IMAGE_END: u64 = 0xffff_ffff_c000_0000;

/// Functions and variables by address.
#[derive(Debug, Default)]
pub(crate) struct KernelSymbols {
    /// What they were read from, which has their names.
    kallsyms: String,
    functions: Vec<(u64, Range<usize>)>,
    /// Variables; many kernels do not name them (`CONFIG_KALLSYMS_ALL`).
    variables: Vec<(u64, Range<usize>)>,
    /// Where there is code, by its first address: the address behind its end, and whose it is.
    code: Vec<(u64, u64, String)>,
}

impl KernelSymbols {
    /// Those of the kernel that runs, if it is this boot; else, or without the right to see addresses, none.
    pub(crate) fn of_boot(boot_id: &str) -> KernelSymbols {
        let runs = fs::read_to_string(BOOT_ID).unwrap_or_default();
        if boot_id.is_empty() || runs.trim() != boot_id {
            return KernelSymbols::default();
        }
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        KernelSymbols::parse(read("/proc/kallsyms"), &read("/proc/modules"))
    }

    /// `kallsyms`: address, kind, name, perhaps the module in brackets. `modules`: name, size, …, state, address.
    pub(super) fn parse(kallsyms: String, modules: &str) -> KernelSymbols {
        let (mut functions, mut variables) = (Vec::new(), Vec::new());
        let (mut begin, mut end) = (0, 0);
        let mut behind = 0;
        // There are hundreds of thousands, of which hardly any is asked for: their names are left where they are.
        for line in kallsyms.split_inclusive('\n') {
            let at = behind;
            behind += line.len();
            let line = line.trim_end_matches('\n');
            let Some((address, rest)) = line.split_once(' ') else { continue };
            let Some((kind, rest)) = rest.split_once(' ') else { continue };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            let name = rest.split_once('\t').map_or(rest, |(name, _)| name);
            let from = at + line.len() - rest.len();
            let named = (address, from..from + name.len());
            match name {
                "_stext" => begin = address,
                "_etext" => end = address,
                _ if address != 0 && matches!(kind, "t" | "T" | "w" | "W") => functions.push(named),
                _ if matches!(kind, "d" | "D" | "b" | "B" | "r" | "R") => variables.push(named),
                _ => {}
            }
        }
        for symbols in [&mut functions, &mut variables] {
            symbols.sort_by(|(a, a_name), (b, b_name)| {
                a.cmp(b).then_with(|| kallsyms[a_name.clone()].cmp(&kallsyms[b_name.clone()]))
            });
        }
        let mut code = vec![(begin, end, "kernel".to_owned())];
        for line in modules.lines() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let [name, size, _, _, _, at, ..] = words[..] else { continue };
            let at = at.strip_prefix("0x").and_then(|at| u64::from_str_radix(at, 16).ok());
            if let (Some(at), Ok(size)) = (at, size.parse::<u64>()) {
                code.push((at, at.saturating_add(size), format!("[{name}]")));
            }
        }
        KernelSymbols { kallsyms, functions, variables, code }
    }

    /// The function at an address, and whose it is. Code that comes and goes (BPF programs, trampolines) has no name: it
    /// may be another's by now.
    pub(super) fn find(&self, address: u64) -> Option<(String, String)> {
        let (_, _, object) = self.object(address)?;
        Some((self.function(address)?.to_owned(), object.clone()))
    }

    /// The function at an address.
    pub(crate) fn function(&self, address: u64) -> Option<&str> {
        self.object(address)?;
        Some(self.nearest(&self.functions, address)?.1)
    }

    fn object(&self, address: u64) -> Option<&(u64, u64, String)> {
        self.code.iter().find(|(begin, end, _)| (*begin..*end).contains(&address))
    }

    /// The static variable at an address, or in which it lies; the address in hexadecimal digits where the kernel does not
    /// name its variables. `None` of what is no static variable, and without symbols. Of modules only what begins there: what
    /// lies between their variables is not known.
    pub(crate) fn variable(&self, address: u64) -> Option<String> {
        let begin = self.code.first().map(|(begin, ..)| *begin).filter(|begin| *begin != 0)?;
        let variable = self.nearest(&self.variables, address);
        match variable {
            Some((at, name)) if at == address => return Some(name.to_owned()),
            _ if !(begin..IMAGE_END).contains(&address) => return None,
            _ => {}
        }
        Some(match variable {
            Some((at, name)) if at >= begin => format!("{name}+{:#x}", address - at),
            _ => format!("{address:#x}"),
        })
    }

    /// The last of them that is not above the address.
    fn nearest(&self, symbols: &[(u64, Range<usize>)], address: u64) -> Option<(u64, &str)> {
        let behind = symbols.partition_point(|(at, _)| *at <= address);
        let (at, name) = symbols.get(behind.checked_sub(1)?)?;
        Some((*at, self.kallsyms.get(name.clone())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_told_from_what_lies_between() {
        let kallsyms = "\
ffffffff81000000 T _stext
ffffffff81000000 T startup
ffffffff81000100 t do_work
ffffffff81000180 d data
ffffffff81000200 T _etext
ffffffffc0000000 t in_module\t[virtio]
0000000000000000 T hidden
";
        let modules = "virtio 4096 2 - Live 0xffffffffc0000000\n";
        let symbols = KernelSymbols::parse(kallsyms.into(), modules);
        let find = |address| symbols.find(address);
        let found = |name: &str, object: &str| Some((name.to_owned(), object.to_owned()));
        assert_eq!(find(0xffffffff81000000), found("startup", "kernel"));
        assert_eq!(find(0xffffffff810001ff), found("do_work", "kernel"));
        assert_eq!(find(0xffffffffc0000fff), found("in_module", "[virtio]"));
        assert_eq!(find(0xffffffff81000200), None, "behind the kernel");
        assert_eq!(find(0xffffffffc0001000), None, "behind the module");
        assert_eq!(find(0), None);
    }

    #[test]
    fn static_variables_are_told_from_what_is_allocated() {
        let functions = "\
ffffffff81000000 T _stext
ffffffff81000200 T _etext
";
        let variables = "\
ffffffff82000000 D uts_sem
ffffffff82000040 b table
ffffffffc0800000 d in_module\t[virtio]
0000000000012345 D runqueues
";
        let check = |kallsyms: &str, address, expected: Option<&str>| {
            let symbols = KernelSymbols::parse(kallsyms.into(), "");
            assert_eq!(symbols.variable(address).as_deref(), expected, "{address:#x}");
        };
        let all = [functions, variables].concat();
        check(&all, 0xffffffff82000000, Some("uts_sem"));
        check(&all, 0xffffffff82000050, Some("table+0x10"));
        check(&all, 0xffffffffc0800000, Some("in_module"));
        check(&all, 0xffffffffc0800008, None);
        check(&all, 0xffff888001234560, None);
        check(&all, 0x20000, None);
        check(functions, 0xffffffff82000000, Some("0xffffffff82000000"));
        check("", 0xffffffff82000000, None);
    }

    #[test]
    fn another_boot_has_other_addresses() {
        assert!(KernelSymbols::of_boot("of another boot").functions.is_empty());
        assert!(KernelSymbols::of_boot("").functions.is_empty());
    }
}
