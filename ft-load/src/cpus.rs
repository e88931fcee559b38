//! CPUs: which a thread may run on, and on which it is.

use std::io;

use crate::Error;

/// Reads a list such as `0-2,5`.
///
/// # Errors
///
/// For what is no such list, and for CPUs that no kernel has.
pub(crate) fn parse(text: &str) -> Result<Vec<usize>, Error> {
    let wrong = || {
        Error::usage(format!(
            "`{}` names no CPUs; write their numbers, such as 1 or 0-2,5",
            text.escape_debug()
        ))
    };
    let number = |text: &str| {
        let cpu = text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
        cpu.filter(|cpu: &usize| *cpu < libc::CPU_SETSIZE as usize).ok_or_else(wrong)
    };
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(wrong());
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// Lets the calling thread run on these CPUs alone, in the order of their numbers; isolated ones can be had, too.
///
/// # Errors
///
/// When one of them is not there, or not for this process.
pub(crate) fn pin(cpus: &[usize]) -> Result<(), Error> {
    let before = allowed();
    // The kernel leaves out those that the process may not have, as long as one remains.
    let result = bind(cpus);
    if result.is_ok() && allowed() == cpus {
        return Ok(());
    }
    let _ = bind(&before);
    let numbers =
        |cpus: &[usize]| cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    Err(Error::refused(match (cpus.iter().find(|cpu| !before.contains(cpu)), result) {
        (Some(cpu), _) => {
            format!("this process may not run on CPU {cpu}; choose of {}", numbers(&before))
        }
        (None, Err(error)) => format!("the CPUs are refused ({error}); choose others"),
        (None, Ok(())) => format!("the CPUs are {} now; choose of these", numbers(&before)),
    }))
}

fn bind(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: a set of bits, for which zero is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for cpu in cpus {
        // SAFETY: the number is below `CPU_SETSIZE`, as all that are read or allowed.
        unsafe { libc::CPU_SET(*cpu, &mut set) };
    }
    // SAFETY: the set is as large as it is said to be; 0 is the calling thread.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The CPUs that the kernel keeps free of threads that did not ask for them (`isolcpus=`, and isolated partitions of cpusets;
/// `Documentation/admin-guide/kernel-parameters.txt`). None where it does not say.
pub(crate) fn isolated() -> Vec<usize> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/isolated").unwrap_or_default();
    parse(list.trim()).unwrap_or_default()
}

/// The CPUs that the calling thread may run on; none where the kernel does not say.
pub(crate) fn allowed() -> Vec<usize> {
    // SAFETY: a set of bits, for which zero is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is as large as it is said to be; 0 is the calling thread. On failure it stays empty.
    unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    // SAFETY: the number is below `CPU_SETSIZE`.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

/// The CPU that the calling thread is on.
#[inline]
pub(crate) fn current() -> u16 {
    // SAFETY: takes no pointer. It fails on no x86-64 kernel.
    unsafe { libc::sched_getcpu() }.max(0) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        assert_eq!(parse("1"), Ok(vec![1]));
        assert_eq!(parse("0-2,5,1"), Ok(vec![0, 1, 2, 5]));
        for wrong in ["", "a", "1-", "-1", "2-1", "1,,2", "+1", "5000", "0-99999999999"] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(error.contains("write their numbers"), "{wrong}: {error}");
        }
    }

    #[test]
    fn cpus_that_are_not_there_are_refused_by_name() {
        let error = pin(&[libc::CPU_SETSIZE as usize - 1]).unwrap_err().to_string();
        assert!(error.contains("may not run on CPU 1023; choose of "), "{error}");
        // Nor where another one is, and then the thread is where it was.
        let before = allowed();
        let error = pin(&[before[0], libc::CPU_SETSIZE as usize - 1]).unwrap_err().to_string();
        assert!(error.contains("may not run on CPU 1023; choose of "), "{error}");
        assert_eq!(allowed(), before);
        assert!(allowed().contains(&usize::from(current())));
    }
}
