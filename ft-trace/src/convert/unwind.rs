//! Who called whom, by what the files of a program say of their frames.
//!
//! A chain that frame pointers lead through ends, or goes wrong, in the first function that has none, as nearly all of the C
//! library. Beside it, its record has the registers of the thread and a piece of its stack. Each return address in question is a
//! word of that piece which points into the text of the process: so the rules of all these words are [asked for](Questions) at
//! once, by what reads files without rights ([`names`](super::names)), and then [followed](Unwinder::chain) without asking
//! anybody.
//!
//! The files and the stack are the traced program's own, which may lie. A rule leads to words of this stack only, each frame
//! lies above the one that it called, and a chain has no more functions than any other.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use ft_ebpf::{Chain, Header, kind, read};

use super::fair::Fair;
use super::kernel_record_len;
use super::names::{Base, CallersBp, Names, Query, Rule, Spending, Step, What};
use super::registry::Registry;
use super::symbols::Layout;
use crate::foreign_file::FileKey;
use crate::ids::Pid;
use crate::owners::owner_of;
use crate::spool::mapping::Mapping;
use crate::warning::Warning;

/// Addresses of one segment whose rules are asked for.
///
/// Limit: a chain of the user who has most of them goes on by frame pointers from a further one, if it has one, and a warning names that
/// user; further answers are asked for again. A user with an equal share or less loses none.
/// Shown by: `addresses_beyond_those_that_are_asked_have_no_rule`, `stacks_of_one_user_leave_those_of_others_their_rules`.
const MAX_ASKED_RULES: usize = 1 << 18;

/// Rules that are kept for the segments to come.
///
/// Limit: as `MAX_ASKED_RULES`.
const MAX_KEPT_RULES: usize = 1 << 20;

/// Where the text of a process lies: ranges that do not touch, by address.
#[derive(Debug, Default)]
struct Text(Vec<(u64, u64)>);

impl Text {
    fn of(mappings: &[Mapping]) -> Text {
        let mut ranges: Vec<_> = mappings.iter().map(|m| (m.start, m.end)).collect();
        ranges.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (start, end) in ranges {
            match merged.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        Text(merged)
    }

    fn has(&self, address: u64) -> bool {
        let behind = self.0.partition_point(|&(start, _)| start <= address);
        behind.checked_sub(1).is_some_and(|at| address < self.0[at].1)
    }
}

/// Who has a process, where that is known.
type User = Option<u32>;

/// The rules that a conversion knows, by file and place in it, and what it took to get them. What is known is each user's own: what could
/// not be read for one can be for another one.
#[derive(Debug, Default)]
pub(super) struct Rules {
    files: HashMap<(String, String, Option<FileKey>), u32>,
    known: HashMap<(User, u32, u64), Option<Rule>>,
    pub(super) spent: Spending,
}

impl Rules {
    /// A user, a file and a place in it, by which a rule is known.
    fn key(&mut self, user: User, mapping: &Mapping, address: u64) -> (User, u32, u64) {
        let file = (mapping.path.clone(), mapping.build_id.clone(), mapping.file);
        let next = self.files.len() as u32;
        let file = *self.files.entry(file).or_insert(next);
        (user, file, address.wrapping_sub(mapping.start).wrapping_add(mapping.offset))
    }
}

/// The words of the stacks of a segment that may be return addresses.
pub(super) struct Questions<'r> {
    registry: &'r Registry,
    users: HashMap<Pid, u32>,
    processes: HashMap<u32, (Text, User)>,
    /// Processes and addresses, by who answers for the users.
    asked: Fair<User, (u32, u64)>,
}

impl<'r> Questions<'r> {
    pub(super) fn new(registry: &'r Registry) -> Questions<'r> {
        let users = registry.known_users();
        Questions { registry, users, processes: HashMap::new(), asked: Fair::new(MAX_ASKED_RULES) }
    }

    /// Takes note of the chains among the records of a frame of the spool.
    pub(super) fn note(&mut self, mut records: &[u8]) {
        while let Some(header) = read::<Header>(records) {
            let Some((record, rest)) =
                kernel_record_len(records).and_then(|length| records.split_at_checked(length))
            else {
                return;
            };
            if matches!(header.kind, kind::CHAIN_OFF_CPU | kind::CHAIN_WAKE | kind::SAMPLE)
                && let Some(chain) = read::<Chain>(record)
            {
                self.chain(&chain, &record[size_of::<Chain>()..]);
            }
            records = rest;
        }
    }

    fn chain(&mut self, chain: &Chain, tail: &[u8]) {
        let Questions { registry, users, processes, asked } = self;
        let (text, user) = processes.entry(chain.tgid).or_insert_with(|| {
            let pid = Pid(chain.tgid as i32);
            let mappings = registry.mappings.get(&pid);
            (Text::of(mappings.map_or(&[], Vec::as_slice)), users.get(&pid).copied())
        });
        let Some(stack) = Stack::of(chain, tail) else { return };
        let mut ask = |at: u64| {
            if text.has(at) {
                asked.insert(user.map(owner_of), (chain.tgid, at));
            }
        };
        ask(chain.ip);
        for (i, &word) in stack.words.iter().enumerate().filter(|(_, word)| **word != 0) {
            // Whoever was interrupted has called nobody; see `Stack::is_interrupted`.
            if stack.is_interrupted(i) {
                ask(word);
            }
            ask(word.wrapping_sub(1));
        }
    }

    /// The answers, as far as they are not known; and what could not be had.
    pub(super) fn answered(self, rules: &mut Rules) -> (Unwinder, Vec<Warning>) {
        let Questions { registry, users, processes: texts, asked: all } = self;
        let mut names =
            Names::new(&users, &registry.mappings).having_spent(std::mem::take(&mut rules.spent));
        let (mut queries, mut keys) = (Vec::new(), Vec::new());
        let mut places = Vec::new();
        let all_asked: Vec<_> =
            all.all().map(|(_, asked)| asked.iter().collect::<Vec<_>>()).collect();
        let of_processes = all_asked.iter().flat_map(|asked| asked.chunk_by(|a, b| a.0 == b.0));
        for asked in of_processes {
            let process = asked[0].0;
            let user = texts.get(&process).and_then(|(_, user)| *user);
            let pid = Pid(process as i32);
            let mappings = registry.mappings.get(&pid).map_or(&[][..], Vec::as_slice);
            let layout = Layout::of(mappings);
            for &&(_, address) in asked {
                let Some(mapping) = layout.only_mapping(address) else { continue };
                let key = rules.key(user, mapping, address);
                if let Entry::Vacant(unknown) = rules.known.entry(key) {
                    unknown.insert(None);
                    queries.push(Query { pid, mapping, what: What::Frame, address });
                    keys.push(key);
                }
                places.push((process, address, key));
            }
        }
        for (key, answer) in keys.into_iter().zip(names.ask(&queries)) {
            rules.known.insert(key, answer.at.and_then(Rule::of));
        }
        let mut processes: HashMap<u32, Process> = HashMap::new();
        for (process, (text, user)) in texts {
            processes.insert(process, Process { text, user, rules: HashMap::new() });
        }
        for (process, address, key) in places {
            if let (Some(process), Some(Some(rule))) =
                (processes.get_mut(&process), rules.known.get(&key))
            {
                process.rules.insert(address, *rule);
            }
        }
        let cut = all.cut().map(|user| Warning::Unwound { user });
        let warnings = names.warnings().chain(cut).collect();
        rules.spent = names.into_spending();
        if rules.known.len() > MAX_KEPT_RULES {
            rules.known.clear();
        }
        (Unwinder { processes }, warnings)
    }
}

/// The piece of a stack that a record has, up to its last address; words that are no addresses are 0.
struct Stack {
    sp: u64,
    words: Vec<u64>,
}

impl Stack {
    /// `None` where there are no registers.
    fn of(chain: &Chain, tail: &[u8]) -> Option<Stack> {
        let from = 8 * chain.user.max(0) as usize;
        let bytes = tail.get(from..)?.get(..usize::try_from(chain.stack).ok()?)?;
        let there = bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word));
        let words = match chain.kept {
            [0, ..] if chain.kept == [0; Chain::STACK_BITS] => there.collect(),
            _ => {
                let mut words = vec![0; 64 * Chain::STACK_BITS];
                let bits = (0..)
                    .zip(&chain.kept)
                    .flat_map(|(n, &bits)| ones(bits).map(move |bit| 64 * n + bit));
                let mut end = 0;
                for (at, word) in bits.zip(there) {
                    (words[at as usize], end) = (word, at as usize + 1);
                }
                // Whether more was looked at is not known.
                words.truncate(end);
                words
            }
        };
        (chain.ip != 0).then_some(Stack { sp: chain.sp, words })
    }

    fn word(&self, at: usize) -> Option<u64> {
        self.words.get(at).copied()
    }

    /// The word at an address.
    fn read(&self, address: u64) -> Option<u64> {
        let bytes = address.checked_sub(self.sp)?;
        bytes.is_multiple_of(8).then(|| self.word(usize::try_from(bytes / 8).ok()?))?
    }

    /// The address behind its last word.
    fn end(&self) -> u64 {
        self.sp.saturating_add(8 * self.words.len() as u64)
    }

    /// Whether this word can be the instruction at which a signal has interrupted the thread: in what the kernel leaves for the
    /// return (`struct sigcontext`, arch/x86/include/uapi/asm/sigcontext.h) the flags and the segments follow it, neither of which is
    /// an address.
    fn is_interrupted(&self, at: usize) -> bool {
        const USER_CS: u64 = 0x33;
        const FLAGS: u64 = 1 << 22;
        let is = |word: Option<u64>, is: fn(u64) -> bool| word.is_some_and(is);
        is(self.word(at + 1), |flags| flags < FLAGS)
            && is(self.word(at + 2), |segments| segments == 0 || segments & 0xffff == USER_CS)
    }
}

/// Which bits of a word are set, the lowest first.
fn ones(mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let first = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        (first < u64::BITS).then_some(first)
    })
}

/// Callers that frame pointers and rules must have in common before the former are believed.
const SAME_WAY: usize = 2;

/// What is known of a process.
#[derive(Debug, Default)]
struct Process {
    text: Text,
    user: User,
    rules: HashMap<u64, Rule>,
}

/// The rules of a segment.
#[derive(Debug, Default)]
pub(crate) struct Unwinder {
    processes: HashMap<u32, Process>,
}

/// The functions of user space in a chain.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Functions {
    /// Where to look each up, the innermost first: where the thread is, or the last byte of the call.
    pub(super) addresses: Vec<u64>,
    /// There were more than could be followed.
    pub(super) cut: bool,
}

/// The registers of a frame.
#[derive(Clone, Copy)]
struct Frame {
    ip: u64,
    sp: u64,
    /// `None` where it is not known.
    bp: Option<u64>,
    /// `ip` is where the thread is; else a call returns to it.
    is_exact: bool,
}

impl Frame {
    /// Where to look its function up.
    fn place(self) -> u64 {
        if self.is_exact { self.ip } else { self.ip.wrapping_sub(1) }
    }

    /// The caller's frame by a rule; `None` where it leads nowhere, or out of this piece of the stack.
    fn caller(self, step: Step, stack: &Stack) -> Option<Frame> {
        let from = if step.by_sp { self.sp } else { self.bp? };
        let at = from.checked_add_signed(step.offset.into())?;
        let cfa = if step.is_read { stack.read(at)? } else { at };
        // A signal can be handled on a stack of its own.
        if cfa <= self.sp && !step.interrupted {
            return None;
        }
        let saved = |base, offset: i16| {
            let base = match base {
                Base::Cfa => cfa,
                Base::Sp => self.sp,
                Base::Bp => self.bp?,
            };
            stack.read(base.checked_add_signed(offset.into())?)
        };
        let bp = match step.bp {
            CallersBp::Same => self.bp,
            CallersBp::At(place) => saved(place.base, place.offset),
            CallersBp::Lost => None,
        };
        let ip = saved(step.ra.base, step.ra.offset)?;
        Some(Frame { ip, sp: cfa, bp, is_exact: step.interrupted })
    }

    /// The caller's by the frame pointer, as of code that no file has a rule for.
    fn framed_caller(self, stack: &Stack) -> Option<Frame> {
        let bp = self.bp.filter(|bp| *bp >= self.sp)?;
        let (above, ip) = (stack.read(bp)?, stack.read(bp.checked_add(8)?)?);
        Some(Frame { ip, sp: bp.checked_add(16)?, bp: Some(above), is_exact: false })
    }
}

impl Unwinder {
    /// Who answers for the user of a process, where that is known.
    pub(super) fn user(&self, process: u32) -> Option<u32> {
        self.processes.get(&process)?.user.map(owner_of)
    }

    /// Of processes of these users, of which nothing else is known.
    #[cfg(test)]
    pub(super) fn of_users<const N: usize>(users: [(u32, u32); N]) -> Unwinder {
        let process = |user| Process { user: Some(user), ..Process::default() };
        Unwinder { processes: users.map(|(pid, user)| (pid, process(user))).into() }
    }

    /// The functions of user space in a chain.
    pub(super) fn chain(&self, chain: &Chain, tail: &[u8]) -> Functions {
        let user = chain.user.max(0) as usize;
        let words = tail.get(..8 * user).unwrap_or_default().as_chunks::<8>().0;
        let mut framed: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        // What lies below the stack pointer is no frame.
        if chain.ip != 0 && chain.bp < chain.sp {
            framed.truncate(1);
        }
        let process = self.processes.get(&chain.tgid).filter(|process| !process.text.0.is_empty());
        let walked =
            process.and_then(|process| process.walk(chain, &Stack::of(chain, tail)?, &framed));
        walked.unwrap_or_else(|| by_frame_pointers(&framed, process.map(|process| &process.text)))
    }
}

impl Process {
    /// The functions by rules; `None` where not one of them has a rule.
    fn walk(&self, chain: &Chain, stack: &Stack, framed: &[u64]) -> Option<Functions> {
        let mut frame = Frame { ip: chain.ip, sp: chain.sp, bp: Some(chain.bp), is_exact: true };
        let mut found = Functions::default();
        let mut has_rule = false;
        loop {
            found.addresses.push(frame.place());
            if found.addresses.len() == Chain::MAX_USER {
                found.cut = true;
                return Some(found).filter(|_| has_rule);
            }
            let next = match self.rules.get(&frame.place()) {
                Some(Rule::Outermost) => return Some(found),
                Some(Rule::Other) => break,
                Some(Rule::Step(step)) => {
                    has_rule = true;
                    let next = frame.caller(*step, stack);
                    found.cut = next.is_none();
                    next
                }
                None => frame.framed_caller(stack),
            };
            match next {
                Some(next) if self.text.has(next.place()) => frame = next,
                _ if self.go_on(frame, stack, framed, &mut found) => break,
                // Code that was made while the program ran; but nothing returns to 0.
                Some(next) if next.ip != 0 => frame = next,
                _ => break,
            }
        }
        self.text.trim(&mut found);
        self.splice(framed, &mut found);
        Some(found).filter(|_| has_rule)
    }

    /// Where rules have not led to an outermost function, frame pointers may lead further: a runtime that changes the stack, as that of Go,
    /// has rules that lead to whatever was there before. Both must have come the same way until then.
    fn splice(&self, framed: &[u64], found: &mut Functions) {
        let callers = |from: usize| framed.iter().skip(from).map(|ip| ip.wrapping_sub(1));
        let (mut common, mut behind) = (0, 0);
        for (i, caller) in callers(1).enumerate() {
            match found.addresses[behind..].iter().position(|&address| address == caller) {
                Some(at) => (common, behind) = (i + 1, behind + at + 1),
                None => break,
            }
        }
        let rest: Vec<u64> = callers(common + 1).take_while(|&at| self.text.has(at)).collect();
        if common >= SAME_WAY && rest.len() > found.addresses.len() - behind {
            found.addresses.truncate(behind);
            found.addresses.extend(rest.into_iter().take(Chain::MAX_USER - behind));
        }
    }

    /// Goes on outside of this piece of the stack, where a frame pointer leads there: above it, or on another stack, as of the runtime of
    /// Go. The kernel has followed it. Returns whether it has led to a caller.
    fn go_on(&self, frame: Frame, stack: &Stack, framed: &[u64], found: &mut Functions) -> bool {
        let Some(at) = framed.iter().position(|&ip| ip == frame.ip) else { return false };
        let leads_out = frame.bp.is_some_and(|bp| !(frame.sp..stack.end()).contains(&bp));
        // Rules need not tell of frame pointers, as those of Go do not: then both must have come the same way.
        let mut known = found.addresses.iter();
        let mut same = framed[1..=at].iter().map(|ip| ip.wrapping_sub(1));
        if !leads_out && (at < SAME_WAY || !same.all(|ip| known.any(|&found| found == ip))) {
            return false;
        }
        let callers = framed[at + 1..].iter().filter(|&&ip| ip != 0).map(|ip| ip.wrapping_sub(1));
        let (room, before) = (Chain::MAX_USER - found.addresses.len(), found.addresses.len());
        found.addresses.extend(callers.take(room));
        if found.addresses.len() == before || !self.text.has(found.addresses[before]) {
            found.addresses.truncate(before);
            return false;
        }
        found.cut = framed.len() == Chain::MAX_USER || found.addresses.len() == Chain::MAX_USER;
        true
    }
}

impl Text {
    /// Leaves out what is outside of all text at the end of a chain: a word that was no address. Within a chain it is code that was made
    /// while the program ran.
    fn trim(&self, found: &mut Functions) {
        let inside = found.addresses.iter().rposition(|&address| self.has(address));
        found.addresses.truncate(inside.unwrap_or(0) + 1);
    }
}

/// The functions that frame pointers lead to.
fn by_frame_pointers(framed: &[u64], text: Option<&Text>) -> Functions {
    // Code without frame pointers can have led to a word that is no address: nothing returns to 0.
    let returns = |(i, ip): &(usize, &u64)| *i == 0 || **ip != 0;
    let place = |(i, &ip): (usize, &u64)| if i == 0 { ip } else { ip.wrapping_sub(1) };
    let addresses = framed.iter().enumerate().filter(returns).map(place).collect();
    let mut found = Functions { addresses, cut: framed.len() == Chain::MAX_USER };
    if let Some(text) = text.filter(|_| !found.cut) {
        text.trim(&mut found);
    }
    found
}

#[cfg(test)]
mod tests;
