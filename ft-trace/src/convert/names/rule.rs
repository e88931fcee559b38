//! How a frame is left: where at an address of a program its caller's registers are.
//!
//! A rule is a few numbers, which an agent and a worker exchange as one. The worker has them of a file that anybody may have
//! written, so what they lead to is checked by whoever follows them.

/// A register that a rule begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::convert) enum Base {
    /// The canonical frame address: the stack pointer of the caller behind the call.
    Cfa,
    /// The stack pointer.
    Sp,
    /// `rbp`.
    Bp,
}

/// The place of a saved register: so many bytes from a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::convert) struct Saved {
    pub(in crate::convert) base: Base,
    pub(in crate::convert) offset: i16,
}

/// Where the caller has its `rbp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::convert) enum CallersBp {
    /// Where it is now.
    Same,
    At(Saved),
    /// It is not known.
    Lost,
}

/// What leads from a frame to its caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::convert) struct Step {
    /// The register that the frame's address is found by: the stack pointer, or else `rbp`.
    pub(in crate::convert) by_sp: bool,
    /// Bytes from there; of 24 bits.
    pub(in crate::convert) offset: i32,
    /// The frame's address is what stands there.
    pub(in crate::convert) is_read: bool,
    pub(in crate::convert) ra: Saved,
    pub(in crate::convert) bp: CallersBp,
    /// The frame is one that the kernel made for a signal: whoever comes next was interrupted, and has called nobody.
    pub(in crate::convert) interrupted: bool,
}

/// The rule of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::convert) enum Rule {
    Step(Step),
    /// Nobody has called: the function is the first of its thread.
    Outermost,
    /// There is a rule, which is none of these.
    Other,
}

/// Smallest and largest offset of a frame's address.
const OFFSETS: std::ops::Range<i64> = -(1 << 23)..1 << 23;

impl Step {
    /// The offset of a frame's address, unless it is too large.
    pub(in crate::convert) fn offset(offset: i64) -> Option<i32> {
        OFFSETS.contains(&offset).then_some(offset as i32)
    }
}

const BASES: [Base; 3] = [Base::Cfa, Base::Sp, Base::Bp];

/// Bits: where in a number what stands.
mod bits {
    pub(super) const BY_SP: u64 = 1;
    pub(super) const IS_READ: u64 = 2;
    /// Number of a base, 1 more; 0: none.
    pub(super) const RA: u32 = 2;
    /// The same of `rbp`, three bits: 0 is the same one, 4 a lost one.
    pub(super) const BP: u32 = 4;
    pub(super) const INTERRUPTED: u64 = 1 << 7;
    pub(super) const OFFSET: u32 = 8;
    pub(super) const RA_OFFSET: u32 = 32;
    pub(super) const BP_OFFSET: u32 = 48;
}

const OUTERMOST: u64 = 0;
const OTHER: u64 = bits::INTERRUPTED;
const LOST: u64 = 4;

impl Rule {
    /// As one number.
    pub(in crate::convert) fn packed(self) -> u64 {
        let step = match self {
            Rule::Outermost => return OUTERMOST,
            Rule::Other => return OTHER,
            Rule::Step(step) => step,
        };
        let flag = |is: bool, bit| if is { bit } else { 0 };
        let base = |saved: Saved| 1 + saved.base as u64;
        let offset = |saved: Saved| u64::from(saved.offset as u16);
        let (bp, bp_offset) = match step.bp {
            CallersBp::Same => (0, 0),
            CallersBp::At(saved) => (base(saved), offset(saved)),
            CallersBp::Lost => (LOST, 0),
        };
        flag(step.by_sp, bits::BY_SP)
            | flag(step.is_read, bits::IS_READ)
            | base(step.ra) << bits::RA
            | bp << bits::BP
            | flag(step.interrupted, bits::INTERRUPTED)
            | (step.offset as u64 & 0xff_ffff) << bits::OFFSET
            | offset(step.ra) << bits::RA_OFFSET
            | bp_offset << bits::BP_OFFSET
    }

    /// What a number says; `None` where it says nothing.
    pub(in crate::convert) fn of(packed: u64) -> Option<Rule> {
        let base = |at: u32, mask: u64| (packed >> at & mask) as usize;
        let saved = |base: usize, offset: u32| {
            let base = *BASES.get(base.checked_sub(1)?)?;
            Some(Saved { base, offset: (packed >> offset) as i16 })
        };
        let Some(ra) = saved(base(bits::RA, 3), bits::RA_OFFSET) else {
            return match packed {
                OUTERMOST => Some(Rule::Outermost),
                OTHER => Some(Rule::Other),
                _ => None,
            };
        };
        let bp = match base(bits::BP, 7) {
            0 => CallersBp::Same,
            base if base as u64 == LOST => CallersBp::Lost,
            base => CallersBp::At(saved(base, bits::BP_OFFSET)?),
        };
        Some(Rule::Step(Step {
            by_sp: packed & bits::BY_SP != 0,
            // Of 24 bits, with its sign.
            offset: ((packed >> bits::OFFSET) as i32) << 8 >> 8,
            is_read: packed & bits::IS_READ != 0,
            ra,
            bp,
            interrupted: packed & bits::INTERRUPTED != 0,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_a_number_and_the_number_is_the_rule() {
        let offsets = [i16::MIN, -8, 0, 168, i16::MAX];
        let saved = |base| move |offset| Saved { base, offset };
        let all: Vec<Saved> = BASES.iter().flat_map(|&base| offsets.map(saved(base))).collect();
        let bps = all.iter().map(|&saved| CallersBp::At(saved));
        let bps: Vec<_> = bps.chain([CallersBp::Same, CallersBp::Lost]).collect();
        let cfas =
            [-(1 << 23), -8, 0, 16, (1 << 23) - 1].map(|n| Step::offset(n).expect("24 bits"));
        for (&ra, &bp) in all.iter().flat_map(|ra| bps.iter().map(move |bp| (ra, bp))) {
            for (flags, offset) in (0..8).flat_map(|flags| cfas.map(|offset| (flags, offset))) {
                let [by_sp, is_read, interrupted] = [1, 2, 4].map(|flag| flags & flag != 0);
                let rule = Rule::Step(Step { by_sp, offset, is_read, ra, bp, interrupted });
                assert_eq!(Rule::of(rule.packed()), Some(rule));
            }
        }
        for rule in [Rule::Outermost, Rule::Other] {
            assert_eq!(Rule::of(rule.packed()), Some(rule));
        }
        assert_eq!(Step::offset(1 << 23), None);
    }

    #[test]
    fn any_number_is_a_rule_or_none() {
        for kind in 0..=0xff_u64 {
            for rest in [0, u64::MAX << 8, 0x1234_5678_9abc_de00] {
                let packed = kind | rest;
                let is_same = |rule: Rule| Rule::of(rule.packed()) == Some(rule);
                assert!(Rule::of(packed).is_none_or(is_same), "{packed:#x}");
            }
        }
        assert_eq!(Rule::of(5 << bits::BP | 1 << bits::RA), None, "there is no such base");
        assert_eq!(Rule::of(1 << bits::OFFSET), None, "who has no caller has no frame");
    }
}
