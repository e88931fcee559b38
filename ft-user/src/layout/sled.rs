//! Sleds: the nops that clang leaves at the begins and ends of functions (`-fxray-instrument`), and gcc at their begins
//! (`-fpatchable-function-entry=11`), in the form that one byte switches.
//!
//! ```text
//! begin, and end by a jump (a tail call):
//!   bare      eb 09    nop, nine bytes             jmp over the nop
//!   off       eb 09    data    e8 rel32            jmp over data and call
//!   on        eb 04    data    e8 rel32            jmp over data; call
//! begin, of gcc:
//!   bare      90, eleven times                     nops
//!   off       90    eb 08    data    e8 rel32      nop; jmp over data and call
//!   on        90    eb 03    data    e8 rel32      nop; jmp over data; call
//! end by a return:
//!   bare      c3       nop, ten bytes              ret
//!   off       c3       e8 rel32    c3    data      ret
//!   on        90       e8 rel32    c3    data      nop; call; ret
//! ```
//!
//! A bare sled is what the compiler has made. Who *prepares* it writes behind the jump or the return, where no thread ever is;
//! from then on one byte decides, as with a trigger. gcc leaves no jump: its nops are executed, so one is written while the
//! process has one thread. The data are the distance from where the call returns to the function; of gcc's nops, at which functions
//! begin, or behind an `endbr64`, a byte of it.
//!
//! The first byte of each form is that of the bare one: a probe of the kernel that stands there goes on as the file's instruction
//! would (kernel/events/uprobes.c, `copy_insn`), and leaves that byte when it is removed (`set_orig_insn`).
//!
//! The call leads to a routine that keeps all registers, by way of a stub where that is too far ([`crate::sled`]).
//!
//! The bytes of bare sleds are those of LLVM (lib/Target/X86/X86MCInstLower.cpp, `LowerPATCHABLE_FUNCTION_ENTER`, `_RET`,
//! `_TAIL_CALL`), where the CPU that it compiles for takes long nops; and of GCC (gcc/targhooks.cc,
//! `default_print_patchable_function_entry`).

/// Bytes of a sled.
pub const SLED_BYTES: u64 = 11;

/// Where the data of a begin or a jump stand, from where its call returns.
pub(crate) const DATA_OF_JUMP: i64 = -9;
/// The same of a return.
pub(crate) const DATA_OF_RETURN: i64 = 1;
/// The same of an entry, whose data are one byte.
pub(crate) const DATA_OF_ENTRY: i64 = -8;

const BARE_JUMP: [u8; 11] = [0xeb, 9, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 2, 0, 0];
const BARE_ENTRY: [u8; 11] = [0x90; 11];
const BARE_RETURN: [u8; 11] = [0xc3, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 2, 0, 0];
/// The same prefixes in the other order, as assemblers write them.
const BARE_RETURN_TOO: [u8; 11] = [0xc3, 0x2e, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 2, 0, 0];

/// `int3`.
pub(crate) const BREAKPOINT: u8 = 0xcc;

/// What a sled stands at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SledKind {
    /// The begin of a function.
    Begin = 0,
    /// A return.
    Return = 1,
    /// A jump to another function.
    Jump = 2,
    /// The begin of a function whose ends have no sled: a patchable entry of gcc.
    Entry = 3,
}

impl SledKind {
    /// The kind with this number.
    pub const fn from_u8(n: u8) -> Option<SledKind> {
        Some(match n {
            0 => SledKind::Begin,
            1 => SledKind::Return,
            2 => SledKind::Jump,
            3 => SledKind::Entry,
            _ => return None,
        })
    }

    /// The kind with this number in a section `xray_instr_map`; `None` for what else there can be.
    pub const fn of_xray(n: u8) -> Option<SledKind> {
        match n {
            0..=2 => SledKind::from_u8(n),
            // A begin whose first argument was to be logged, too, is the same sled.
            3 => Some(SledKind::Begin),
            _ => None,
        }
    }
}

/// What a sled is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SledState {
    /// As the compiler left it.
    Bare,
    /// It can be switched on.
    Off,
    /// It calls.
    On,
}

/// A sled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sled {
    /// Address of its first byte.
    pub address: u64,
    /// Address of the function.
    pub function: u64,
    /// What it stands at.
    pub kind: SledKind,
}

impl Sled {
    /// What it is by its bytes; `None` where they are none of its forms: something else has changed it. A breakpoint at the first
    /// of gcc's nops, as a probe of the kernel writes, is in nobody's way.
    pub fn state(self, mut found: [u8; SLED_BYTES as usize]) -> Option<SledState> {
        let [state, call, _] = self.places();
        if self.kind == SledKind::Entry && found[0] == BREAKPOINT {
            found[0] = BARE_ENTRY[0];
        }
        let is_bare = match self.kind {
            SledKind::Return => [BARE_RETURN, BARE_RETURN_TOO].contains(&found),
            SledKind::Begin | SledKind::Jump => found == BARE_JUMP,
            SledKind::Entry => found == BARE_ENTRY,
        };
        if is_bare {
            return Some(SledState::Bare);
        }
        // Where it calls is whoever's that has prepared it.
        let mut target = [0; 4];
        target.copy_from_slice(&found[call + 1..call + 5]);
        let mut off = self.with_call(target)?;
        if found == off {
            return Some(SledState::Off);
        }
        off[state] = self.state_byte(true);
        (found == off).then_some(SledState::On)
    }

    /// Its bytes while it is off, with a call of `stub`; `None` where that is too far.
    pub fn off(self, stub: u64) -> Option<[u8; SLED_BYTES as usize]> {
        let distance = i32::try_from(stub.wrapping_sub(self.returns_to()) as i64).ok()?;
        self.with_call(distance.to_le_bytes())
    }

    /// The byte that is its state, as its distance from the first, and the byte's value.
    pub fn switch(self, on: bool) -> (u64, u8) {
        (self.places()[0] as u64, self.state_byte(on))
    }

    /// Where its call returns to.
    pub fn returns_to(self) -> u64 {
        self.address.wrapping_add(self.places()[1] as u64 + 5)
    }

    /// The byte that it begins with while nothing else has changed it; not for a return, which begins with its state.
    pub fn first_byte(self) -> u8 {
        match self.kind {
            SledKind::Return => 0xc3,
            SledKind::Begin | SledKind::Jump => 0xeb,
            SledKind::Entry => BARE_ENTRY[0],
        }
    }

    /// Which bytes are written to prepare it: those that no thread executes while it is bare, and of gcc's nops all but the first.
    pub fn prepared(self) -> core::ops::Range<usize> {
        match self.kind {
            SledKind::Return | SledKind::Entry => 1..11,
            SledKind::Begin | SledKind::Jump => 2..11,
        }
    }

    fn with_call(self, target: [u8; 4]) -> Option<[u8; SLED_BYTES as usize]> {
        let distance = self.function.wrapping_sub(self.returns_to()) as i64;
        let (distance, [state, call, data]) = (i32::try_from(distance).ok()?, self.places());
        let mut bytes = match self.kind {
            SledKind::Return => [0xc3; 11],
            SledKind::Begin | SledKind::Jump => [0xeb; 11],
            SledKind::Entry => [0x90, 0xeb, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        };
        match self.kind {
            SledKind::Entry => bytes[data] = i8::try_from(distance).ok()? as u8,
            _ => bytes[data..data + 4].copy_from_slice(&distance.to_le_bytes()),
        }
        bytes[state] = self.state_byte(false);
        bytes[call] = 0xe8;
        bytes[call + 1..call + 5].copy_from_slice(&target);
        Some(bytes)
    }

    fn state_byte(self, on: bool) -> u8 {
        match (self.kind, on) {
            (SledKind::Return, false) => 0xc3,
            (SledKind::Return, true) => 0x90,
            (SledKind::Entry, false) => 8,
            (SledKind::Entry, true) => 3,
            (_, false) => 9,
            (_, true) => 4,
        }
    }

    /// Where its state, its call and its data stand.
    fn places(self) -> [usize; 3] {
        let (state, call, data) = match self.kind {
            SledKind::Return => (0, 1, DATA_OF_RETURN),
            SledKind::Begin | SledKind::Jump => (1, 6, DATA_OF_JUMP),
            SledKind::Entry => (2, 6, DATA_OF_ENTRY),
        };
        [state, call, (call as i64 + 5 + data) as usize]
    }
}

/// The sleds that a process has found in itself, for whoever looks from outside: the note [`SLEDS_NOTE`] leads to it.
#[repr(C)]
pub struct SledTable {
    /// 1; 0 before there are any.
    pub version: u64,
    /// Address of the metadata of the begins' event.
    pub meta: u64,
    /// Number of entries. Stored after `entries`, and read before it: an array that is replaced begins the next one.
    pub len: u64,
    /// Address of the first [`SledEntry`].
    pub entries: u64,
}

/// One sled of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SledEntry {
    /// [`Sled::address`]; 0 of an object that is not loaded any more.
    pub address: u64,
    /// [`Sled::function`].
    pub function: u64,
    /// Address of the name of its event, UTF-8.
    pub name: u64,
    /// Bytes of that.
    pub name_bytes: u32,
    /// [`SledKind`].
    pub kind: u32,
}

/// Type of the ELF note, of the owner [`NOTE_OWNER`](super::NOTE_OWNER), whose descriptor is `i32 table - .`, the place of the
/// [`SledTable`].
pub const SLEDS_NOTE: u32 = 0x4654_0002;

const _: () = assert!(size_of::<SledTable>() == 32 && size_of::<SledEntry>() == 32);

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [SledKind; 4] =
        [SledKind::Begin, SledKind::Return, SledKind::Jump, SledKind::Entry];

    fn sled(kind: SledKind) -> Sled {
        let function = if kind == SledKind::Entry { 0x40_1230 } else { 0x40_1000 };
        Sled { address: 0x40_1234, function, kind }
    }

    #[test]
    fn on_and_off_differ_in_one_byte() {
        for sled in KINDS.map(sled) {
            let off = sled.off(0x41_0000).unwrap();
            let (at, byte) = sled.switch(true);
            let mut on = off;
            on[at as usize] = byte;
            assert_eq!(sled.state(off), Some(SledState::Off), "{sled:?}");
            assert_eq!(sled.state(on), Some(SledState::On), "{sled:?}");
            assert_eq!(sled.switch(false).1, off[at as usize]);
        }
    }

    #[test]
    fn preparing_changes_of_clangs_sleds_only_what_they_skip() {
        let bare = [BARE_JUMP, BARE_RETURN, BARE_JUMP, BARE_ENTRY];
        for (sled, bare) in KINDS.map(sled).into_iter().zip(bare) {
            assert_eq!(sled.state(bare), Some(SledState::Bare), "{sled:?}");
            let off = sled.off(0x3f_0000).unwrap();
            let mut changed = (0..11).filter(|&i| off[i] != bare[i]);
            assert!(changed.all(|i| sled.prepared().contains(&i)), "{sled:?}");
            // Of gcc's nops only what a probe of the kernel goes by is kept.
            let kept = if matches!(sled.kind, SledKind::Begin | SledKind::Jump) { 2 } else { 1 };
            assert_eq!(sled.prepared(), kept..11, "{sled:?}");
        }
    }

    #[test]
    fn the_call_leads_to_the_stub_and_the_data_to_the_function() {
        let data = [DATA_OF_JUMP, DATA_OF_RETURN, DATA_OF_JUMP, DATA_OF_ENTRY];
        for (sled, data) in KINDS.map(sled).into_iter().zip(data) {
            let off = sled.off(0x41_0000).unwrap();
            let call = off.iter().position(|&byte| byte == 0xe8).unwrap();
            let word = |at: usize| i32::from_le_bytes(off[at..at + 4].try_into().unwrap()) as i64;
            let returns = sled.address + call as u64 + 5;
            assert_eq!(returns.wrapping_add_signed(word(call + 1)), 0x41_0000, "{sled:?}");
            let data = (call as i64 + 5 + data) as usize;
            let distance = match sled.kind {
                SledKind::Entry => (off[data] as i8).into(),
                _ => word(data),
            };
            assert_eq!(returns.wrapping_add_signed(distance), sled.function, "{sled:?}");
        }
    }

    #[test]
    fn what_something_else_has_written_is_no_form() {
        for sled in KINDS.map(sled) {
            let off = sled.off(0x41_0000).unwrap();
            let call = off.iter().position(|&byte| byte == 0xe8).unwrap();
            for at in (0..11).filter(|at| !(call + 1..call + 5).contains(at)) {
                let mut other = off;
                other[at] ^= 0x21;
                assert_eq!(sled.state(other), None, "{sled:?}, byte {at}");
            }
            // XRay's own runtime: mov r10d, id; call.
            let xray = [0x41, 0xba, 1, 0, 0, 0, 0xe8, 1, 2, 3, 4];
            assert_eq!(sled.state(xray), None);
            // A breakpoint.
            assert_eq!(sled.state([0xcc; 11]), None);
        }
    }

    #[test]
    fn a_breakpoint_at_the_first_of_gccs_nops_is_in_nobodys_way_and_elsewhere_it_is() {
        for (sled, bare) in
            KINDS.map(sled).into_iter().zip([BARE_JUMP, BARE_RETURN, BARE_JUMP, BARE_ENTRY])
        {
            let off = sled.off(0x41_0000).unwrap();
            for (mut bytes, state) in [(bare, SledState::Bare), (off, SledState::Off)] {
                bytes[0] = BREAKPOINT;
                let expected = (sled.kind == SledKind::Entry).then_some(state);
                assert_eq!(sled.state(bytes), expected, "{sled:?}");
            }
        }
    }

    #[test]
    fn a_stub_that_is_too_far_is_refused() {
        for sled in KINDS.map(sled) {
            for far in [sled.address + (1 << 31) + 16, sled.address.wrapping_sub((1 << 31) + 16)] {
                assert_eq!(sled.off(far), None, "{sled:?}");
            }
            let far = Sled { function: sled.address + (1 << 32), ..sled };
            assert_eq!(far.off(sled.address), None);
        }
    }
}
