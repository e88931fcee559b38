//! The rules by which the frames of a program are left, as its compiler wrote them for exceptions and debuggers: the sections
//! `.eh_frame` and `.debug_frame` (Linux Standard Base, DWARF 5 section 6.4).
//!
//! Most rules are the offset of a frame's address from a register, and that of what is saved from the frame's address. Some are
//! programs: where the stack is realigned, in the stubs of calls to libraries, and in a frame that the kernel made for a signal.
//! Those that come down to an offset, too, are executed here, without their registers.

use addr2line::gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, EndianSlice, Expression, LittleEndian,
    Operation, Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection,
    UnwindTableRow, X86_64,
};

use super::rule::{Base, CallersBp, Rule, Saved, Step};

/// Values that a rule's program has at once.
///
/// Limit: a chain ends at a function with a longer one; those of compilers have ten.
/// Shown by: `a_rule_that_is_a_program_is_executed_within_bounds`.
const MAX_VALUES: usize = 16;

/// Operations of a rule's program.
///
/// Limit: as `MAX_VALUES`.
const MAX_OPERATIONS: usize = 64;

type Slice<'d> = EndianSlice<'d, LittleEndian>;

/// The rules of a file.
pub(super) struct Unwinding<'d> {
    eh_frame: Entries<EhFrame<Slice<'d>>>,
    debug_frame: Entries<DebugFrame<Slice<'d>>>,
}

/// Where the sections of a file lie in its own address space, 0 where it has none.
#[derive(Clone, Copy, Default)]
pub(super) struct Addresses {
    pub(super) eh_frame: u64,
    pub(super) text: u64,
    pub(super) got: u64,
}

/// A section, and what it has.
struct Entries<S> {
    section: S,
    bases: BaseAddresses,
    /// First address, the one behind the last, and the place of the entry, by address.
    found: Vec<(u64, u64, usize)>,
}

impl<'d> Unwinding<'d> {
    pub(super) fn new(
        eh_frame: Slice<'d>,
        debug_frame: Slice<'d>,
        addresses: Addresses,
    ) -> Unwinding<'d> {
        let bases = BaseAddresses::default()
            .set_eh_frame(addresses.eh_frame)
            .set_text(addresses.text)
            .set_got(addresses.got);
        let (mut eh_frame, mut debug_frame) =
            (EhFrame::from(eh_frame), DebugFrame::from(debug_frame));
        eh_frame.set_address_size(8);
        debug_frame.set_address_size(8);
        Unwinding {
            eh_frame: Entries::new(eh_frame, bases.clone()),
            debug_frame: Entries::new(debug_frame, bases),
        }
    }

    /// The rule at an address; `None` where there is none.
    pub(super) fn rule(&self, at: u64) -> Option<Rule> {
        self.eh_frame.rule(at).or_else(|| self.debug_frame.rule(at))
    }
}

impl<'d, S: UnwindSection<Slice<'d>, Offset: From<usize>>> Entries<S> {
    fn new(section: S, bases: BaseAddresses) -> Entries<S> {
        let mut found = Vec::new();
        let mut entries = section.entries(&bases);
        // What is damaged hides what stands behind it.
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(entry) = entry else { continue };
            let Ok(entry) = entry.parse(S::cie_from_offset) else { continue };
            if entry.initial_address() < entry.end_address() {
                found.push((entry.initial_address(), entry.end_address(), entry.offset()));
            }
        }
        found.sort_unstable();
        Entries { section, bases, found }
    }

    fn rule(&self, at: u64) -> Option<Rule> {
        let behind = self.found.partition_point(|&(begin, ..)| begin <= at);
        let &(_, end, offset) = self.found.get(behind.checked_sub(1)?)?;
        if at >= end {
            return None;
        }
        let (section, bases) = (&self.section, &self.bases);
        let entry = section.fde_from_offset(bases, offset.into(), S::cie_from_offset).ok()?;
        let mut context = Box::new(UnwindContext::new());
        let Ok(row) = entry.unwind_info_for_address(section, bases, &mut context, at) else {
            return Some(Rule::Other);
        };
        let at = Program { section, ip: at };
        let returns = entry.cie().return_address_register();
        let step = at.step(row, returns, entry.is_signal_trampoline());
        Some(step.unwrap_or(Rule::Other))
    }
}

/// A value in a rule's program, as far as it is known without registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Number(u64),
    /// So many bytes from a register.
    From(Base, i64),
    /// What stands there.
    Read(Base, i64),
}

/// Where programs of rules are executed.
struct Program<'s, S> {
    section: &'s S,
    ip: u64,
}

impl<'d, S: UnwindSection<Slice<'d>>> Program<'_, S> {
    /// The rule of a row; `None` where it is none that is known here.
    fn step(
        &self,
        row: &UnwindTableRow<usize>,
        returns: Register,
        interrupted: bool,
    ) -> Option<Rule> {
        let (by_sp, offset, is_read) = match row.cfa() {
            &CfaRule::RegisterAndOffset { register: X86_64::RSP, offset } => (true, offset, false),
            &CfaRule::RegisterAndOffset { register: X86_64::RBP, offset } => (false, offset, false),
            CfaRule::RegisterAndOffset { .. } => return None,
            CfaRule::Expression(program) => match self.execute(program, None)? {
                Value::From(base, offset) => (is_sp(base)?, offset, false),
                Value::Read(base, offset) => (is_sp(base)?, offset, true),
                Value::Number(_) => return None,
            },
        };
        let ra = match row.register(returns) {
            // It has no rule where its row says nothing, too.
            Some(RegisterRule::Undefined) => return Some(Rule::Outermost),
            rule => self.saved(rule?)?,
        };
        let bp = match row.register(X86_64::RBP) {
            None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => CallersBp::Same,
            Some(rule) => self.saved(rule).map_or(CallersBp::Lost, CallersBp::At),
        };
        let offset = Step::offset(offset)?;
        Some(Rule::Step(Step { by_sp, offset, is_read, ra, bp, interrupted }))
    }

    /// Where a register is saved.
    fn saved(&self, rule: RegisterRule<usize>) -> Option<Saved> {
        let (base, offset) = match rule {
            RegisterRule::Offset(offset) => (Base::Cfa, offset),
            RegisterRule::Expression(program) => {
                match self.execute(&program, Some(Value::From(Base::Cfa, 0)))? {
                    Value::From(base, offset) => (base, offset),
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some(Saved { base, offset: offset.try_into().ok()? })
    }

    /// What a program comes to, which begins with a value, or with none.
    fn execute(&self, program: &UnwindExpression<usize>, first: Option<Value>) -> Option<Value> {
        let Expression(program) = program.get(self.section).ok()?;
        let encoding = addr2line::gimli::Encoding {
            address_size: 8,
            format: addr2line::gimli::Format::Dwarf32,
            version: 5,
        };
        let mut operations = Expression(program).operations(encoding);
        let mut values: Vec<Value> = first.into_iter().collect();
        for _ in 0..MAX_OPERATIONS {
            let Some(operation) = operations.next().ok()? else { return values.pop() };
            let value = match operation {
                Operation::RegisterOffset { register: X86_64::RSP, offset, .. } => {
                    Value::From(Base::Sp, offset)
                }
                Operation::RegisterOffset { register: X86_64::RBP, offset, .. } => {
                    Value::From(Base::Bp, offset)
                }
                Operation::RegisterOffset { register: X86_64::RA, offset, .. } => {
                    Value::Number(self.ip.wrapping_add_signed(offset))
                }
                Operation::UnsignedConstant { value } => Value::Number(value),
                Operation::SignedConstant { value } => Value::Number(value as u64),
                Operation::PlusConstant { value } => plus(values.pop()?, Value::Number(value))?,
                Operation::Plus => plus(values.pop()?, values.pop()?)?,
                Operation::And => of_numbers(&mut values, |a, b| Some(a & b))?,
                Operation::Shl => {
                    of_numbers(&mut values, |a, b| a.checked_shl(b.try_into().ok()?))?
                }
                Operation::Ge => {
                    of_numbers(&mut values, |a, b| Some((a as i64 >= b as i64).into()))?
                }
                Operation::Deref { size: 8, space: false, .. } => match values.pop()? {
                    Value::From(base, offset) => Value::Read(base, offset),
                    _ => return None,
                },
                _ => return None,
            };
            values.push(value);
            if values.len() > MAX_VALUES {
                return None;
            }
        }
        None
    }
}

fn is_sp(base: Base) -> Option<bool> {
    match base {
        Base::Cfa => None,
        Base::Sp => Some(true),
        Base::Bp => Some(false),
    }
}

fn plus(a: Value, b: Value) -> Option<Value> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Some(Value::Number(a.wrapping_add(b))),
        (Value::From(base, offset), Value::Number(n))
        | (Value::Number(n), Value::From(base, offset)) => {
            Some(Value::From(base, offset.checked_add(n as i64)?))
        }
        _ => None,
    }
}

/// What comes of the last two numbers, the last one second.
fn of_numbers(values: &mut Vec<Value>, make: impl Fn(u64, u64) -> Option<u64>) -> Option<Value> {
    match (values.pop()?, values.pop()?) {
        (Value::Number(b), Value::Number(a)) => make(a, b).map(Value::Number),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
