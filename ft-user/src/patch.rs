//! The only place that writes program text: one byte of a site, on or off; and what stands behind the jump or the return of a
//! sled, once, where no thread is.
//!
//! [`Text`] means "may modify the text of this process". It refuses whatever is not a trigger. It writes
//! through `/proc/PID/mem`, for which the kernel gives the process a private copy of the page, so that no
//! page is ever writable and executable. Where the kernel forbids this to a process for its own text, or the process cannot open the
//! file (`memory`), [`Text::own`] falls back to `mprotect` and restores the protection.
//!
//! # Why one byte is enough
//!
//! The forms of a trigger differ in one byte only, and a store of one byte is atomic: a processor that
//! fetches meanwhile sees the old form or the new one, and each is complete. When a `Text` of the own
//! process goes away after a change, it asks for every core that runs the process to serialise
//! (`membarrier(2)`, `MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE`), so that all have the new form. Where the kernel does not do
//! that, a core may run the old form for some instructions more, which is as if the change had come that much later.
//!
//! # Why a breakpoint is left alone
//!
//! A debugger or a probe of the kernel (uprobe) writes `int3` over the first byte, which is the same in both forms, and later puts
//! back that byte alone. So a trigger under a breakpoint can be switched: when the breakpoint goes, the trigger is as it was
//! switched last. While it stands there, events can be missing, for the kernel goes on as the instruction of the *file* would, the
//! nop of eight bytes, which skips the jump. So switching such a site on is an error all the same ([`PatchError::Breakpoint`]).
//!
//! # Why nine bytes are safe where nobody is
//!
//! A bare sled ([`Sled`]) begins with a jump over its nop, or with a return, and nothing else leads into the nop. So while it is
//! bare no processor executes these bytes, however many of them are half written. Each core has serialised before
//! [`Text::prepare`] returns, and before anybody can switch the sled on: a core that then falls through finds the call, whole.
//! Where the kernel refuses `membarrier` (a seccomp filter can) and the process has more than one thread, the sleds are made bare
//! again, and cannot be switched.
//! gcc's patchable entries have no such jump: their nops are executed, and a thread can be between any two of them. So they are
//! written where a process has one thread, which is here with its signals blocked.

mod cores;
mod memory;

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::ops::Range;

use self::memory::Memory;
use crate::kernel;
use crate::layout::{
    BREAKPOINT, PAGE, SLED_BYTES, Sled, SledKind, SledState, TRIGGER_LENT, TRIGGER_OFF, TRIGGER_ON,
    TRIGGER_STATE,
};

#[cfg(all(feature = "sleds", target_arch = "x86_64", target_os = "linux", not(ft_off)))]
pub(crate) use cores::is_alone;

/// How often a write is repeated because another copy of this crate has protected its page meanwhile.
const ATTEMPTS: usize = 1000;

/// Why a site was not patched. The text is unchanged, but for [`PatchError::Breakpoint`].
#[derive(Debug)]
#[non_exhaustive]
pub enum PatchError {
    /// The memory of the process cannot be opened.
    Open {
        /// The file.
        path: Cow<'static, str>,
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
    /// A breakpoint stands on the site, which is on from when it goes; until then its events can be missing.
    Breakpoint {
        /// The address.
        address: u64,
        /// The site was off before.
        switched: bool,
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
            PatchError::Breakpoint { address, .. } => write!(
                f,
                "a breakpoint stands on the site at {address:#x}, so its events can be missing until the breakpoint goes; remove \
                 the probe or detach the debugger that has set it"
            ),
            PatchError::Unprepared { address } => write!(
                f,
                "the nops of clang at {address:#x} call nothing yet; let the process look for its sites (ft_enable), and allow \
                 it executable memory (mprotect) within 2 GiB of the program, and, once it has several threads, membarrier(2)"
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

/// Sleds that are to be prepared, and the memory that this takes.
#[derive(Debug)]
pub struct Preparation {
    sleds: Vec<(Sled, u64)>,
    window: Vec<u8>,
    /// Places of those that were bare, what stood there, and what was written of it.
    bare: Vec<(u64, [u8; SLED_BYTES as usize], Range<usize>)>,
}

impl Preparation {
    /// Of sleds and the stubs that they are to call, by the addresses of the sleds.
    pub fn of(sleds: Vec<(Sled, u64)>) -> Preparation {
        let bare = Vec::with_capacity(sleds.len());
        Preparation { sleds, window: Vec::with_capacity(WINDOW_BYTES), bare }
    }
}

/// The right to switch the sites of one process. Dropping it makes the changes visible everywhere.
#[derive(Debug)]
pub struct Text {
    memory: Memory,
    own: bool,
    changed: bool,
}

impl Text {
    /// The text of this process. Allocates nothing.
    ///
    /// # Errors
    ///
    /// `/proc` is not there, or closed to this process, and a system call filter forbids `process_vm_readv`, too.
    pub fn own() -> Result<Text, PatchError> {
        cores::register();
        Ok(Text { memory: Memory::own()?, own: true, changed: false })
    }

    /// The text of another process.
    ///
    /// # Errors
    ///
    /// The process has ended, or the caller may not trace it (ptrace(2)).
    pub fn of(pid: i32) -> Result<Text, PatchError> {
        Ok(Text { memory: Memory::of(pid)?, own: false, changed: false })
    }

    /// The text of this process, without allocating. Of what cannot be written through `/proc/self/mem` nothing is written.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(crate) fn own_within_event() -> Option<Text> {
        Some(Text { memory: Memory::own_file().ok()?, own: false, changed: false })
    }

    /// Switches the site at `address`; returns whether it was in the other state before. One that is on for an agent, and is
    /// switched on, stays on without it.
    ///
    /// # Errors
    ///
    /// See [`PatchError`]. Nothing is changed then, unless it is a [`PatchError::Breakpoint`].
    pub fn set(&mut self, address: u64, on: bool) -> Result<bool, PatchError> {
        let wanted = if on { TRIGGER_ON } else { TRIGGER_OFF };
        self.change(address, |_| wanted)
    }

    /// Switches the site at `address` on for an agent, unless it is on already; returns whether it was off before.
    ///
    /// # Errors
    ///
    /// As [`Text::set`].
    pub fn lend(&mut self, address: u64) -> Result<bool, PatchError> {
        self.change(address, |is| if is == TRIGGER_OFF { TRIGGER_LENT } else { is })
    }

    /// Switches the site at `address` off if it is on for an agent; returns whether it was.
    ///
    /// # Errors
    ///
    /// As [`Text::set`].
    pub fn take_back(&mut self, address: u64) -> Result<bool, PatchError> {
        self.change(address, |is| if is == TRIGGER_LENT { TRIGGER_OFF } else { is })
    }

    /// Writes the form that `to` makes of that of the trigger at `address`; returns whether one is on and the other is not.
    fn change(&mut self, address: u64, to: impl Fn(u32) -> u32) -> Result<bool, PatchError> {
        let mut found = [0; 4];
        if self.memory.read_exact_at(&mut found, address).is_err() {
            return Err(PatchError::NotText { address });
        }
        let beneath = without_breakpoint(found, TRIGGER_OFF.to_le_bytes()[0]);
        let was_on = state(beneath).ok_or(PatchError::NotATrigger { address, found })?;
        let wanted = to(u32::from_le_bytes(beneath)).to_le_bytes();
        if wanted != beneath {
            self.write(address + TRIGGER_STATE, &wanted[TRIGGER_STATE as usize..][..1])?;
        }
        let is_on = state(wanted) == Some(true);
        switched(address, was_on != is_on, is_on && beneath != found)
    }

    /// Switches a sled that has been prepared; returns whether it was in the other state before.
    ///
    /// # Errors
    ///
    /// As [`Text::set`].
    pub fn set_sled(&mut self, sled: Sled, on: bool) -> Result<bool, PatchError> {
        let found = self.sled_bytes(sled)?;
        // A return is its own state, and what a breakpoint has replaced cannot be switched.
        let beneath = match sled.kind {
            SledKind::Return => found,
            _ => without_breakpoint(found, sled.first_byte()),
        };
        let is_on = known_state(sled, beneath)? == SledState::On;
        let (at, byte) = sled.switch(on);
        let is_hidden = on && beneath != found && sled.kind != SledKind::Entry;
        if is_on != on {
            self.write(sled.address + at, &[byte])?;
        }
        switched(sled.address, is_on != on, is_hidden)
    }

    /// Has bare sleds call a stub each when they are switched on; returns how many were bare. They are off afterwards, as they were.
    /// Allocates nothing.
    ///
    /// Where there are patchable entries of gcc among them ([`SledKind::Entry`]), the caller's is the only thread of the process, and
    /// its signals are blocked.
    ///
    /// What cannot be prepared is left as it is: what something else has changed, what is too far from its stub, or cannot be
    /// written; and all of them where the cores that run other threads cannot be made to serialise. Whoever switches it gets an
    /// error.
    pub fn prepare(&mut self, preparation: &mut Preparation) -> usize {
        let Preparation { sleds, window, bare } = preparation;
        let mut at = 0;
        bare.clear();
        bare.extend(sleds.iter().filter_map(|&(sled, stub)| {
            // To read them one by one costs as much as to write them.
            let known = sled.address.wrapping_sub(at) as usize;
            if window.get(known..).is_none_or(|rest| rest.len() < SLED_BYTES as usize) {
                window.resize(WINDOW_BYTES, 0);
                let read = self.memory.read_at(window, sled.address).unwrap_or_default();
                window.truncate(read);
                at = sled.address;
            }
            let known = sled.address.wrapping_sub(at) as usize;
            let found: [u8; SLED_BYTES as usize] = *window.get(known..)?.first_chunk()?;
            (sled.state(found) == Some(SledState::Bare)).then_some(())?;
            let (off, written) = (sled.off(stub)?, sled.prepared());
            let place = sled.address + written.start as u64;
            self.write(place, &off[written.clone()]).ok()?;
            Some((place, found, written))
        }));
        if bare.is_empty() || cores::serialise() {
            return bare.len();
        }
        for (place, found, written) in bare {
            // Still nobody is there. What cannot be written back stays, and is as dead as before.
            self.write(*place, &found[written.clone()]).ok();
        }
        0
    }

    /// Whether a sled is on or off.
    ///
    /// # Errors
    ///
    /// It is not mapped, something else has changed it, or it has not been prepared.
    pub fn sled_state(&self, sled: Sled) -> Result<SledState, PatchError> {
        known_state(sled, self.sled_bytes(sled)?)
    }

    /// What is at an address, where that can be read.
    #[cfg(all(feature = "sleds", target_arch = "x86_64", target_os = "linux", not(ft_off)))]
    pub(crate) fn bytes<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let mut found = [0; N];
        self.memory.read_exact_at(&mut found, address).ok().map(|()| found)
    }

    fn sled_bytes(&self, sled: Sled) -> Result<[u8; SLED_BYTES as usize], PatchError> {
        let mut found = [0; SLED_BYTES as usize];
        match self.memory.read_exact_at(&mut found, sled.address) {
            Ok(()) => Ok(found),
            Err(_) => Err(PatchError::NotText { address: sled.address }),
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
            // Where the kernel does not do it, the change is seen a little later.
            cores::ask_to_serialise();
        }
    }
}

/// Whether the site at `address` was in the other state; an error if a breakpoint hides it.
fn switched(address: u64, differs: bool, is_hidden: bool) -> Result<bool, PatchError> {
    match is_hidden {
        true => Err(PatchError::Breakpoint { address, switched: differs }),
        false => Ok(differs),
    }
}

/// Whether a trigger that begins with these bytes is on; `None` if it is no trigger.
pub fn state(bytes: [u8; 4]) -> Option<bool> {
    match u32::from_le_bytes(bytes) {
        TRIGGER_ON | TRIGGER_LENT => Some(true),
        TRIGGER_OFF => Some(false),
        _ => None,
    }
}

/// These bytes as they are beneath a breakpoint, if one stands on the first, which is `first` without it.
pub fn without_breakpoint<const N: usize>(mut bytes: [u8; N], first: u8) -> [u8; N] {
    if bytes[0] == BREAKPOINT {
        bytes[0] = first;
    }
    bytes
}

fn known_state(sled: Sled, found: [u8; SLED_BYTES as usize]) -> Result<SledState, PatchError> {
    let address = sled.address;
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

/// Writes to the own text after `mprotect`, for kernels that refuse a forced write to `/proc/self/mem`
/// (`proc_mem.force_override`, from 6.12 on), and processes that cannot open it.
///
/// Another copy of this crate in the process may do the same to the same page, with a lock of its own. So only who finds the page
/// not writable changes its protection, and puts back what it has found; and the bytes are written by a system call, which fails
/// where the other one was faster, and is repeated.
fn write_unprotected(address: u64, bytes: &[u8]) -> Result<(), PatchError> {
    let failed = |source| PatchError::Write { address, source };
    let page = address & !(PAGE - 1);
    let length = (address + bytes.len() as u64).next_multiple_of(PAGE) - page;
    let protect = |protection| {
        // SAFETY: the pages are mapped, or it fails; other threads lose no right to them that they need.
        let protected = unsafe { kernel::mprotect(page as *mut libc::c_void, length, protection) };
        protected.map_err(|errno| failed(io::Error::from_raw_os_error(errno)))
    };
    let mut last = io::Error::from_raw_os_error(libc::EFAULT);
    for _ in 0..ATTEMPTS {
        let before = memory::protection_now(address)
            .filter(|before| before & libc::PROT_EXEC != 0)
            .ok_or(PatchError::NotText { address })?;
        let is_protected = before & libc::PROT_WRITE == 0;
        if is_protected {
            protect(before | libc::PROT_WRITE)?;
        }
        let written = copy(address, bytes);
        if is_protected {
            protect(before)?;
        }
        match written {
            Ok(()) => return Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EFAULT) => last = error,
            Err(error) => return Err(failed(error)),
        }
    }
    Err(failed(last))
}

/// Writes to memory of this process that may be protected meanwhile, which is an error and no signal. One byte is written at once.
fn copy(address: u64, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the text at the address is only executed, never read as data by Rust code.
    match unsafe { kernel::write_memory(bytes, address) } {
        Ok(copied) if copied == bytes.len() => Ok(()),
        Ok(_) => Err(io::Error::from_raw_os_error(libc::EFAULT)),
        Err(errno) => Err(io::Error::from_raw_os_error(errno)),
    }
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
mod tests;
