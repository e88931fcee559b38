//! The only place that writes program text: one byte of a site, on or off; and what stands behind the jump or the return of a
//! sled, once, where no thread is.
//!
//! [`Text`] means "may modify the text of this process". It refuses whatever is not a trigger. It writes
//! through `/proc/PID/mem`, for which the kernel gives the process a private copy of the page, so that no
//! page is ever writable and executable. Where the kernel forbids this to a process for its own text,
//! [`Text::own`] falls back to `mprotect` and restores the protection.
//!
//! # Why one byte is enough
//!
//! The two forms of a trigger differ in one byte only, and a store of one byte is atomic: a processor that
//! fetches meanwhile sees the old form or the new one, and each is complete. When a `Text` of the own
//! process goes away after a change, it makes every core that runs the process serialise
//! (`membarrier(2)`, `MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE`), so that all have the new form.
//!
//! # Why nine bytes are safe where nobody is
//!
//! A bare sled ([`Sled`]) begins with a jump over its nop, or with a return, and nothing else leads into the nop. So while it is
//! bare no processor executes these bytes, however many of them are half written. The `Text` that has written them goes away,
//! and each core has serialised, before another one can switch the sled on: a core that then falls through finds the call, whole.
//! gcc's patchable entries have no such jump: their nops are executed, and a thread can be between any two of them. So they are
//! written where a process has one thread, which is here with its signals blocked.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use crate::layout::{
    PAGE, SLED_BYTES, Sled, SledKind, SledState, TRIGGER_OFF, TRIGGER_ON, TRIGGER_STATE,
};

// linux/membarrier.h
const SYNC_CORE: libc::c_long = 1 << 5;
const REGISTER_SYNC_CORE: libc::c_long = 1 << 6;

/// Why a site was not patched. The text is unchanged.
#[derive(Debug)]
#[non_exhaustive]
pub enum PatchError {
    /// The memory of the process cannot be opened.
    Open {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The address is not mapped, or its page is not of the kind that holds program text.
    NotText {
        /// The address.
        address: u64,
    },
    /// Something that is not a trigger stands there.
    NotATrigger {
        /// The address.
        address: u64,
        /// The first four bytes there.
        found: [u8; 4],
    },
    /// A sled calls nothing yet.
    Unprepared {
        /// The address.
        address: u64,
    },
    /// The nops of gcc call nothing, and threads may be in them.
    Executed {
        /// The address.
        address: u64,
    },
    /// The byte could not be written.
    Write {
        /// The address.
        address: u64,
        /// Why.
        source: io::Error,
    },
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatchError::Open { path, source } => write!(
                f,
                "cannot open {path}: {source}; run as the user of the process, or as root, where \
                 ptrace is allowed (kernel.yama.ptrace_scope)"
            ),
            PatchError::NotText { address } => write!(
                f,
                "no program text at {address:#x}; the object may have been unloaded, list its sites again"
            ),
            PatchError::NotATrigger { address, found } => write!(
                f,
                "the bytes at {address:#x} are {found:02x?}, which is no trigger, so the site is left \
                 alone; detach the debugger or tool that changed it"
            ),
            PatchError::Unprepared { address } => write!(
                f,
                "the nops of clang at {address:#x} call nothing yet; let the process look for its sites (ft_enable), and allow \
                 it executable memory (mprotect) within 2 GiB of the program"
            ),
            PatchError::Executed { address } => write!(
                f,
                "the nops of gcc at {address:#x} call nothing: they are made fit for that only if tracing starts, with the preload library \
                 or ft_init, before the process makes its first thread, which constructors of libraries can do, for threads may be in \
                 them; and if it may have executable memory (mprotect) within 2 GiB of them"
            ),
            PatchError::Write { address, source } => write!(
                f,
                "cannot write the trigger at {address:#x}: {source}; allow /proc/PID/mem or mprotect \
                 in the security profile of the process"
            ),
        }
    }
}

impl std::error::Error for PatchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PatchError::Open { source, .. } | PatchError::Write { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Bytes of text that are read at once.
const WINDOW_BYTES: usize = 64 << 10;

/// The right to switch the sites of one process. Dropping it makes the changes visible everywhere.
#[derive(Debug)]
pub struct Text {
    memory: File,
    own: bool,
    changed: bool,
}

impl Text {
    /// The text of this process.
    ///
    /// # Errors
    ///
    /// `/proc` is not there, or closed to this process.
    pub fn own() -> Result<Text, PatchError> {
        // Fails on kernels older than 4.16. There, a core may run the old form for some instructions
        // more, which is as if the change had come that much later.
        membarrier(REGISTER_SYNC_CORE);
        Ok(Text { memory: open("/proc/self/mem")?, own: true, changed: false })
    }

    /// The text of another process.
    ///
    /// # Errors
    ///
    /// The process has ended, or the caller may not trace it (ptrace(2)).
    pub fn of(pid: i32) -> Result<Text, PatchError> {
        Ok(Text { memory: open(&format!("/proc/{pid}/mem"))?, own: false, changed: false })
    }

    /// Switches the site at `address`; returns whether it was in the other state before.
    ///
    /// # Errors
    ///
    /// See [`PatchError`]. Nothing is changed then.
    pub fn set(&mut self, address: u64, on: bool) -> Result<bool, PatchError> {
        let mut found = [0; 4];
        if self.memory.read_exact_at(&mut found, address).is_err() {
            return Err(PatchError::NotText { address });
        }
        let is_on = state(found).ok_or(PatchError::NotATrigger { address, found })?;
        if is_on == on {
            return Ok(false);
        }
        let wanted = if on { TRIGGER_ON } else { TRIGGER_OFF };
        let byte = wanted.to_le_bytes()[TRIGGER_STATE as usize];
        self.write(address + TRIGGER_STATE, &[byte])?;
        Ok(true)
    }

    /// Switches a sled that has been prepared; returns whether it was in the other state before.
    ///
    /// # Errors
    ///
    /// See [`PatchError`]. Nothing is changed then.
    pub fn set_sled(&mut self, sled: Sled, on: bool) -> Result<bool, PatchError> {
        if (self.sled_state(sled)? == SledState::On) == on {
            return Ok(false);
        }
        let (at, byte) = sled.switch(on);
        self.write(sled.address + at, &[byte])?;
        Ok(true)
    }

    /// Has bare sleds, which come by their addresses, call a stub each when they are switched on; returns how many were bare.
    /// They are off afterwards, as they were. Drop this before one is switched.
    ///
    /// Where there are patchable entries of gcc among them ([`SledKind::Entry`]), the caller's is the only thread of the process, and
    /// its signals are blocked.
    ///
    /// What cannot be prepared is left as it is: what something else has changed, what is too far from its stub, or cannot be
    /// written. Whoever switches it gets an error.
    pub fn prepare(&mut self, sleds: impl Iterator<Item = (Sled, u64)>) -> usize {
        let (mut at, mut window) = (0, Vec::new());
        let bare = sleds.filter(|&(sled, stub)| {
            // To read them one by one costs as much as to write them.
            let known = sled.address.wrapping_sub(at) as usize;
            if window.get(known..).is_none_or(|rest| rest.len() < SLED_BYTES as usize) {
                window.resize(WINDOW_BYTES, 0);
                let read = self.memory.read_at(&mut window, sled.address).unwrap_or_default();
                window.truncate(read);
                at = sled.address;
            }
            let known = sled.address.wrapping_sub(at) as usize;
            let found = window.get(known..).and_then(|rest| rest.first_chunk());
            found.is_some_and(|found| sled.state(*found) == Some(SledState::Bare))
                && sled.off(stub).is_some_and(|off| {
                    let written = sled.prepared();
                    self.write(sled.address + written.start as u64, &off[written]).is_ok()
                })
        });
        bare.count()
    }

    /// Whether a sled is on or off.
    ///
    /// # Errors
    ///
    /// It is not mapped, something else has changed it, or it has not been prepared.
    pub fn sled_state(&self, sled: Sled) -> Result<SledState, PatchError> {
        let (mut found, address) = ([0; SLED_BYTES as usize], sled.address);
        if self.memory.read_exact_at(&mut found, address).is_err() {
            return Err(PatchError::NotText { address });
        }
        let [a, b, c, d, ..] = found;
        match sled.state(found) {
            None => Err(PatchError::NotATrigger { address, found: [a, b, c, d] }),
            Some(SledState::Bare) if sled.kind == SledKind::Entry => {
                Err(PatchError::Executed { address })
            }
            Some(SledState::Bare) => Err(PatchError::Unprepared { address }),
            Some(state) => Ok(state),
        }
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), PatchError> {
        match self.memory.write_all_at(bytes, at) {
            Err(_) if self.own => write_unprotected(at, bytes)?,
            written => written.map_err(|source| PatchError::Write { address: at, source })?,
        }
        self.changed = true;
        Ok(())
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        if self.changed && self.own {
            membarrier(SYNC_CORE);
        }
    }
}

/// Whether a trigger that begins with these bytes is on; `None` if it is no trigger.
pub fn state(bytes: [u8; 4]) -> Option<bool> {
    match u32::from_le_bytes(bytes) {
        TRIGGER_ON => Some(true),
        TRIGGER_OFF => Some(false),
        _ => None,
    }
}

fn open(path: &str) -> Result<File, PatchError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|source| PatchError::Open { path: path.to_owned(), source })
}

fn membarrier(command: libc::c_long) {
    // SAFETY: takes no pointer.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
}

/// Writes to the own text after `mprotect`, one byte after the other, for kernels that refuse a forced write to
/// `/proc/self/mem` (`proc_mem.force_override`, from 6.12 on).
fn write_unprotected(address: u64, bytes: &[u8]) -> Result<(), PatchError> {
    let maps = std::fs::read_to_string("/proc/self/maps")
        .map_err(|source| PatchError::Open { path: "/proc/self/maps".to_owned(), source })?;
    let before = protection(&maps, address)
        .filter(|before| before & libc::PROT_EXEC != 0)
        .ok_or(PatchError::NotText { address })?;
    let page = address & !(PAGE - 1);
    let length = (address + bytes.len() as u64).next_multiple_of(PAGE) - page;
    let protect = |protection| {
        // SAFETY: the pages are mapped, or it fails; other threads lose no right to them.
        match unsafe { libc::mprotect(page as *mut libc::c_void, length as usize, protection) } {
            0 => Ok(()),
            _ => Err(PatchError::Write { address, source: io::Error::last_os_error() }),
        }
    };
    protect(before | libc::PROT_WRITE)?;
    for (at, &byte) in (address..).zip(bytes) {
        // SAFETY: the pages are writable now; the text at the address is only executed, never read as data
        // by Rust code. A volatile store of one byte is one instruction.
        unsafe { (at as *mut u8).write_volatile(byte) };
    }
    protect(before)
}

/// The protection of the page of `address` by `/proc/self/maps` (proc_pid_maps(5)).
fn protection(maps: &str, address: u64) -> Option<libc::c_int> {
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let parse = |number| u64::from_str_radix(number, 16).ok();
        if !(parse(start)?..parse(end)?).contains(&address) {
            return None;
        }
        let flags = [libc::PROT_READ, libc::PROT_WRITE, libc::PROT_EXEC];
        let set = rest.bytes().zip(flags).filter(|(letter, _)| *letter != b'-');
        Some(set.fold(0, |all, (_, flag)| all | flag))
    })
}

#[cfg(all(test, target_arch = "x86_64", target_os = "linux", not(ft_off)))]
mod tests {
    use super::*;
    use crate::site;

    /// The form of code that a test may patch without disturbing another: its own site.
    fn site_named(name: &str) -> u64 {
        let mut found = None;
        site::for_each(|site| found = found.or((site.meta.name() == name).then_some(site.trigger)));
        found.expect("the site is in this program") as u64
    }

    fn found(address: u64) -> [u8; 4] {
        let mut found = [0; 4];
        open("/proc/self/mem").unwrap().read_exact_at(&mut found, address).unwrap();
        found
    }

    #[test]
    fn site_goes_on_and_off() {
        crate::event!("patch.on_and_off");
        let at = site_named("patch.on_and_off");
        let mut text = Text::own().unwrap();
        assert!(!text.set(at, false).unwrap());
        assert!(text.set(at, true).unwrap());
        assert_eq!(found(at), TRIGGER_ON.to_le_bytes());
        assert!(!text.set(at, true).unwrap());
        assert!(text.set(at, false).unwrap());
        assert_eq!(found(at), TRIGGER_OFF.to_le_bytes());
    }

    #[test]
    fn anything_else_is_refused_and_kept() {
        // One bit of each byte differs; a breakpoint; the form of another tool.
        static DATA: [u32; 6] = [
            TRIGGER_OFF ^ 1,
            TRIGGER_OFF ^ 1 << 8,
            TRIGGER_OFF ^ 1 << 18,
            TRIGGER_ON ^ 1 << 31,
            TRIGGER_ON & !0xff | 0xcc,
            0xe9,
        ];
        let mut text = Text::own().unwrap();
        for cell in &DATA {
            let (at, bytes) = (cell as *const u32 as u64, cell.to_le_bytes());
            let error = text.set(at, true).unwrap_err();
            assert!(
                matches!(error, PatchError::NotATrigger { address, found } if address == at && found == bytes)
            );
            assert!(error.to_string().contains(&format!("{at:#x} are {bytes:02x?}")));
            assert_eq!(found(at), bytes);
        }
        assert!(matches!(text.set(0, true), Err(PatchError::NotText { address: 0 })));
    }

    #[test]
    fn fallback_restores_the_protection() {
        crate::event!("patch.fallback");
        let at = site_named("patch.fallback");
        let maps = || std::fs::read_to_string("/proc/self/maps").unwrap();
        let before = protection(&maps(), at);
        let [on, off] =
            [TRIGGER_ON, TRIGGER_OFF].map(|form| form.to_le_bytes()[TRIGGER_STATE as usize]);
        write_unprotected(at + TRIGGER_STATE, &[on]).unwrap();
        assert_eq!(found(at), TRIGGER_ON.to_le_bytes());
        write_unprotected(at + TRIGGER_STATE, &[off]).unwrap();
        assert_eq!(before, protection(&maps(), at));
        assert_eq!(before, Some(libc::PROT_READ | libc::PROT_EXEC));
        let data = &0u8 as *const u8 as u64;
        assert!(matches!(write_unprotected(data, &[0]), Err(PatchError::NotText { .. })));
    }

    #[test]
    fn protection_is_read() {
        let maps = "1000-3000 r-xp 0 0:0 0 /bin/x\n3000-4000 rw-p 0 0:0 0\n";
        for (address, expected) in [
            (0xfff, None),
            (0x1000, Some(libc::PROT_READ | libc::PROT_EXEC)),
            (0x2fff, Some(libc::PROT_READ | libc::PROT_EXEC)),
            (0x3000, Some(libc::PROT_READ | libc::PROT_WRITE)),
            (0x4000, None),
        ] {
            assert_eq!(protection(maps, address), expected, "{address:#x}");
        }
    }
}
