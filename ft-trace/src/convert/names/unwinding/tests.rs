use super::*;

/// Where the function is that has rules, and how long it is.
const FUNCTION: (u64, u64) = (0x1000, 0x100);

/// `DW_OP_breg7` and the like (DWARF 5, section 7.7.1) with an offset of one byte.
fn breg(register: u8, offset: i8) -> [u8; 2] {
    [0x70 + register, offset as u8 & 0x7f]
}
const DEREF: u8 = 0x06;
const AND: u8 = 0x1a;
const PLUS: u8 = 0x22;
const SHL: u8 = 0x24;
const GE: u8 = 0x2a;
const LIT0: u8 = 0x30;

/// An entry, of a length that is a multiple of eight.
fn entry(content: &[&[u8]]) -> Vec<u8> {
    let mut bytes = content.concat();
    bytes.resize(bytes.len().next_multiple_of(8) + 4, 0);
    let length = (bytes.len() as u32).to_le_bytes();
    length.into_iter().chain(bytes).collect()
}

/// A `.debug_frame` of one function, whose rule is what these instructions add to the usual one: the frame's address lies 8 bytes
/// above the stack pointer, the return address 8 below it.
fn section(instructions: &[u8]) -> Vec<u8> {
    let usual = [0x0c, 7, 8, 0x90, 1];
    // The version, no augmentation, the factors of code and of data (-8), and the number of the return address.
    let common = entry(&[&u32::MAX.to_le_bytes(), &[1, 0, 1, 0x78, 16], &usual]);
    let (begin, length) = FUNCTION;
    let own = [&0_u32.to_le_bytes()[..], &begin.to_le_bytes(), &length.to_le_bytes()];
    [common, entry(&[&own.concat(), instructions])].concat()
}

fn rule_of(section: &[u8], at: u64) -> Option<Rule> {
    let [none, section] = [&[], section].map(|bytes| EndianSlice::new(bytes, LittleEndian));
    Unwinding::new(none, section, Addresses::default()).rule(at)
}

/// The rule at an address behind these instructions.
fn rule(instructions: &[u8], at: u64) -> Option<Rule> {
    rule_of(&section(instructions), at)
}

fn usual() -> Step {
    Step {
        by_sp: true,
        offset: 8,
        is_read: false,
        ra: Saved { base: Base::Cfa, offset: -8 },
        bp: CallersBp::Same,
        interrupted: false,
    }
}

/// `DW_CFA_def_cfa_expression`.
fn frame_at(program: &[u8]) -> Vec<u8> {
    [&[0x0f, program.len() as u8], program].concat()
}

#[test]
fn a_rule_holds_where_its_function_is() {
    let (begin, length) = FUNCTION;
    for at in [begin, begin + length - 1] {
        assert_eq!(rule(&[], at), Some(Rule::Step(usual())));
    }
    for at in [0, begin - 1, begin + length, u64::MAX] {
        assert_eq!(rule(&[], at), None, "{at:#x}");
    }
    // From the second byte on rbp is saved, and the frame larger.
    let pushed = [0x41, 0x0e, 16, 0x86, 2];
    assert_eq!(rule(&pushed, begin), Some(Rule::Step(usual())));
    let bp = CallersBp::At(Saved { base: Base::Cfa, offset: -16 });
    assert_eq!(rule(&pushed, begin + 1), Some(Rule::Step(Step { offset: 16, bp, ..usual() })));
}

#[test]
fn who_was_called_by_nobody_is_the_outermost() {
    assert_eq!(rule(&[0x07, 16], FUNCTION.0), Some(Rule::Outermost));
}

#[test]
fn frames_that_are_found_by_other_registers_are_told_from_none() {
    let by_rbx = [0x0d, 3];
    assert_eq!(rule(&by_rbx, FUNCTION.0), Some(Rule::Other));
    let far = [0x0e, 0xff, 0xff, 0xff, 0xff, 0x0f];
    assert_eq!(rule(&far, FUNCTION.0), Some(Rule::Other));
    let bp_in_rax = [0x09, 6, 0];
    assert_eq!(
        rule(&bp_in_rax, FUNCTION.0),
        Some(Rule::Step(Step { bp: CallersBp::Lost, ..usual() }))
    );
}

#[test]
fn a_rule_that_is_a_program_is_executed_within_bounds() {
    // A realigned frame: what stands 8 bytes below where rbp points.
    let realigned = frame_at(&[&breg(6, -8)[..], &[DEREF]].concat());
    let expected = Step { by_sp: false, offset: -8, is_read: true, ..usual() };
    assert_eq!(rule(&realigned, FUNCTION.0), Some(Rule::Step(expected)));

    // The stub of a call to a library: 8 bytes more from its eleventh byte on.
    let stub =
        [&breg(7, 8)[..], &breg(16, 0), &[LIT0 + 15, AND, LIT0 + 11, GE, LIT0 + 3, SHL, PLUS]];
    let stub = frame_at(&stub.concat());
    for (at, offset) in [(0, 8), (10, 8), (11, 16), (15, 16), (16, 8)] {
        let expected = Step { offset, ..usual() };
        assert_eq!(rule(&stub, FUNCTION.0 + at), Some(Rule::Step(expected)), "{at}");
    }

    // The return address of whom a signal has interrupted.
    let saved = [0x10, 16, 3, 0x77, 0xa8, 0x01];
    let expected = Step { ra: Saved { base: Base::Sp, offset: 168 }, ..usual() };
    assert_eq!(rule(&saved, FUNCTION.0), Some(Rule::Step(expected)));

    let numbers = |n| [&breg(7, 8)[..], &vec![LIT0; n]].concat();
    let sums = |n| [&breg(7, 8)[..], &[LIT0, PLUS].repeat(n)].concat();
    assert_eq!(
        rule(&frame_at(&sums(MAX_OPERATIONS / 2 - 1)), FUNCTION.0),
        Some(Rule::Step(usual()))
    );
    assert_eq!(rule(&frame_at(&sums(MAX_OPERATIONS / 2)), FUNCTION.0), Some(Rule::Other));
    assert_eq!(rule(&frame_at(&numbers(MAX_VALUES)), FUNCTION.0), Some(Rule::Other));
    for program in [&[][..], &[PLUS], &[LIT0], &[0x2f, 0xfd, 0xff], &[DEREF], &[LIT0, DEREF]] {
        assert_eq!(rule(&frame_at(program), FUNCTION.0), Some(Rule::Other), "{program:?}");
    }
}

#[test]
fn a_damaged_section_is_survived() {
    let whole = section(&[0x41, 0x0e, 16, 0x86, 2, 0x0f, 3, 0x76, 0x78, DEREF, 0x0a, 0x0b]);
    for at in 0..whole.len() {
        for value in [0, 1, 0x0a, 0x0f, 0x7f, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = value;
            rule_of(&damaged, FUNCTION.0 + 1);
            rule_of(&damaged[..at], FUNCTION.0 + 1);
        }
    }
    // Rows that are remembered without end.
    assert_eq!(rule(&vec![0x0a; 1 << 16], FUNCTION.0), Some(Rule::Other));
}
