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

/// Lets the calling thread run on these CPUs alone.
///
/// # Errors
///
/// When one of them is not there, or not for this process.
pub(crate) fn pin(cpus: &[usize]) -> Result<(), Error> {
    let allowed = allowed();
    if let Some(cpu) = cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        return Err(Error::refused(format!(
            "this process may not run on CPU {cpu}; choose of {}",
            allowed.join(",")
        )));
    }
    // SAFETY: a set of bits, for which zero is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for cpu in cpus {
        // SAFETY: the number is below `CPU_SETSIZE`, as all that are allowed.
        unsafe { libc::CPU_SET(*cpu, &mut set) };
    }
    // SAFETY: the set is as large as it is said to be; 0 is the calling thread.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) } {
        0 => Ok(()),
        _ => Err(Error::refused(format!(
            "the CPUs are refused ({}); choose others",
            io::Error::last_os_error()
        ))),
    }
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
        assert!(allowed().contains(&usize::from(current())));
    }
}
