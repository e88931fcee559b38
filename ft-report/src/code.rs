//! Call chains by name: what the tables `stacks` and `frames` say of the numbers that other tables have.
//!
//! Memory: what was recorded of different chains, which the conversion bounds.

use std::collections::HashMap;

use ft_trace::ids::{Name, Pid, Tid};
use ft_trace::store::{Result, Trace};
use ft_trace::tables::{FrameRow, KERNEL_PID, StackRow, ThreadRow, UNSEEN};

/// A function in a call chain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Its name; where that is not known, its file and the address in it, or the address.
    pub label: Name,
    /// Source place, `file:line`; empty when not known.
    pub place: Name,
    /// Program or library, as [`FrameRow::object`]; empty when not known.
    pub object: Name,
    /// It is the kernel's.
    pub kernel: bool,
    /// Its name is known.
    pub named: bool,
}

/// The chains of a trace.
#[derive(Debug)]
pub struct Code {
    stacks: HashMap<i64, Vec<(Pid, i64)>>,
    /// What is at an address: the function inlined deepest first.
    frames: HashMap<(Pid, i64), Vec<Frame>>,
    /// Stands for an address of which the conversion has kept nothing.
    not_kept: Vec<Frame>,
}

impl Default for Code {
    /// No chain.
    fn default() -> Code {
        let (label, empty) = ("(not kept)".into(), Name::from(""));
        let (place, object) = (empty.clone(), empty);
        let frame = Frame { label, place, object, kernel: false, named: false };
        Code { stacks: HashMap::new(), frames: HashMap::new(), not_kept: vec![frame] }
    }
}

impl Code {
    /// Those of a trace; none of one that was recorded before there were any.
    ///
    /// # Errors
    ///
    /// When a table cannot be read.
    pub fn read(trace: &Trace) -> Result<Code> {
        let mut code = Code::default();
        if trace.has::<StackRow>() {
            for row in trace.rows::<StackRow>() {
                let StackRow { stack, pid, address, .. } = row?;
                code.stacks.entry(stack).or_default().push((pid, address));
            }
        }
        if trace.has::<FrameRow>() {
            for row in trace.rows::<FrameRow>() {
                code.add(&row?);
            }
        }
        Ok(code)
    }

    /// Chains of functions, each by its number, the innermost function first.
    #[cfg(test)]
    pub(crate) fn of(chains: &[(i64, &str)]) -> Code {
        let chains: Vec<(i64, Vec<_>)> = chains
            .iter()
            .map(|(stack, names)| (*stack, names.split_whitespace().map(|f| (f, "")).collect()))
            .collect();
        Code::of_objects(&chains)
    }

    /// The same with the object of each function.
    #[cfg(test)]
    pub(crate) fn of_objects<'n>(chains: &[(i64, impl AsRef<[(&'n str, &'n str)]>)]) -> Code {
        let mut code = Code::default();
        for (stack, functions) in chains {
            for (at, (function, object)) in (0..).zip(functions.as_ref()) {
                let address = (Pid(1), 1000 * stack + at);
                let (label, place, object) = ((*function).into(), "".into(), (*object).into());
                let frame = Frame { label, place, object, kernel: false, named: true };
                code.stacks.entry(*stack).or_default().push(address);
                code.frames.insert(address, vec![frame]);
            }
        }
        code
    }

    fn add(&mut self, row: &FrameRow) {
        let kernel = row.pid == KERNEL_PID;
        let named = !row.function.is_empty();
        let file = match &*row.object {
            UNSEEN => "",
            object => object.rsplit('/').next().unwrap_or_default(),
        };
        let label = match (named, file.is_empty()) {
            (true, _) => row.function.clone(),
            (false, false) => format!("{file}+{:#x}", row.offset).into(),
            (false, true) => format!("{:#x}", row.address).into(),
        };
        let place = match &*row.file {
            "" => "".into(),
            file => format!("{file}:{}", row.line).into(),
        };
        let frame = Frame { label, place, object: row.object.clone(), kernel, named };
        // The rows of an address go inwards.
        self.frames.entry((row.pid, row.address)).or_default().insert(0, frame);
    }

    /// Every function that is in a chain, and of which process.
    pub(crate) fn frames(&self) -> impl Iterator<Item = (Pid, &Frame)> {
        self.frames.iter().flat_map(|((pid, _), frames)| frames.iter().map(|frame| (*pid, frame)))
    }

    /// A chain, from the innermost function to the outermost. What a wake-up was traced with is left out.
    pub fn chain(&self, stack: Option<i64>) -> Vec<&Frame> {
        let chain = self.sampled(stack);
        // The last function before the tracepoint's own, through which the kernel has called the program that looked.
        let own = chain.iter().rposition(|f| f.kernel && f.label.starts_with("__traceiter_"));
        chain[own.map_or(0, |last| last + 1)..].to_vec()
    }

    /// The chain of a sample, whole: it can have met what traces, whose time is no other function's.
    pub fn sampled(&self, stack: Option<i64>) -> Vec<&Frame> {
        let addresses = stack.and_then(|stack| self.stacks.get(&stack));
        let frames = |at| self.frames.get(at).unwrap_or(&self.not_kept);
        addresses.into_iter().flatten().flat_map(frames).collect()
    }
}

/// The newest names of threads.
#[derive(Debug, Default)]
pub struct Comms(HashMap<Tid, Name>);

impl Comms {
    /// Those of a trace.
    ///
    /// # Errors
    ///
    /// When the table cannot be read.
    pub fn read(trace: &Trace) -> Result<Comms> {
        let row = |row: Result<ThreadRow>| row.map(|r| (r.tid, r.name));
        trace.rows::<ThreadRow>().map(row).collect::<Result<_>>().map(Comms)
    }

    /// That of a thread, or its number.
    pub fn of(&self, tid: Tid) -> Name {
        match self.0.get(&tid) {
            // Its name in the tables is the kernel's, `swapper`.
            _ if tid.0 == 0 => "idle".into(),
            Some(name) if !name.is_empty() => name.clone(),
            _ => tid.to_string().into(),
        }
    }
}

/// What of a chain is the kernel's says in a word: the system call, or what else the thread was in; `None` when it was
/// in user space.
pub fn kernel_entry(chain: &[&Frame]) -> Option<String> {
    let mut kernel = chain.iter().filter(|frame| frame.kernel).rev().peekable();
    kernel.peek()?;
    let innermost = chain.iter().find(|frame| frame.kernel)?;
    let entry = kernel.find_map(|frame| {
        let label = &*frame.label;
        if let Some(call) = label.strip_prefix("__x64_sys_").or(label.strip_prefix("__ia32_sys_")) {
            return Some(call.to_owned());
        }
        match label {
            "asm_exc_page_fault" => Some("page fault".to_owned()),
            "ret_from_fork" => Some("a thread of the kernel".to_owned()),
            _ if is_interrupt(label) => Some("interrupt".to_owned()),
            _ => None,
        }
    });
    Some(entry.unwrap_or_else(|| innermost.label.to_string()))
}

/// Whether an interrupt had the CPU: of a waker it says that not the thread's own code has woken somebody.
pub fn in_interrupt(chain: &[&Frame]) -> bool {
    chain.iter().any(|frame| frame.kernel && is_interrupt(&frame.label))
}

/// The assembly entries of arch/x86/include/asm/idtentry.h.
fn is_interrupt(label: &str) -> bool {
    label.starts_with("asm_sysvec_") || label == "asm_common_interrupt"
}

/// Functions of one chain that are shown.
///
/// Limit: `…` stands for the rest, and JSON has it.
/// Shown by: `a_line_has_room_for_some_functions_of_a_chain`.
const MAX_SHOWN_FUNCTIONS: usize = 8;

/// The first `shown` functions of a chain in a line, at least one, and no more than there is room for.
pub fn way<N: AsRef<str>>(functions: &[N], shown: usize) -> String {
    let most = shown.clamp(1, MAX_SHOWN_FUNCTIONS);
    let more = if functions.len() > most { " < …" } else { "" };
    let shown: Vec<&str> = functions.iter().take(most).map(AsRef::as_ref).collect();
    format!("{}{more}", shown.join(" < "))
}

/// How many functions of each chain, from its beginning on, distinguish it from all others: the shortest beginnings that no
/// other chain has, or the whole chain where it is the beginning of another.
pub fn distinguishing<N: Ord>(chains: &[&[N]]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..chains.len()).collect();
    order.sort_by(|&a, &b| chains[a].cmp(chains[b]));
    let common =
        |a: usize, b: usize| chains[a].iter().zip(chains[b]).take_while(|(a, b)| a == b).count();
    let mut shown: Vec<usize> = chains.iter().map(|chain| chain.len().min(1)).collect();
    for pair in order.windows(2) {
        let common = common(pair[0], pair[1]);
        for &i in pair {
            shown[i] = shown[i].max((common + 1).min(chains[i].len()));
        }
    }
    shown
}

/// The same of chains of which text shows the first `shown`, and a page all: those are distinguished from each other, the rest from
/// all.
pub fn distinguishing_first<N: Ord>(chains: &[&[N]], shown: usize) -> Vec<usize> {
    let mut lengths = distinguishing(&chains[..chains.len().min(shown)]);
    lengths.extend(distinguishing(chains).into_iter().skip(shown));
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(label: &str, kernel: bool) -> Frame {
        let (label, place, object) = (label.into(), "".into(), "".into());
        Frame { label, place, object, kernel, named: true }
    }

    #[test]
    fn a_chain_is_as_long_as_it_must_be() {
        let chains = ["f a x", "f a y", "f b", "g", "f a", ""];
        let chains = chains.map(|text| text.split_whitespace().collect::<Vec<_>>());
        assert_eq!(distinguishing(&chains.each_ref().map(|c| &c[..])), [3, 3, 2, 1, 2, 0]);
    }

    #[test]
    fn a_line_has_room_for_some_functions_of_a_chain() {
        let functions = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        assert_eq!(way(&functions, 2), "a < b < …");
        assert_eq!(way(&functions, usize::MAX), "a < b < c < d < e < f < g < h < …");
        assert_eq!(way(&functions[..8], usize::MAX), "a < b < c < d < e < f < g < h");
        assert_eq!(way(&functions[..1], 0), "a");
    }

    #[test]
    fn the_way_into_the_kernel_has_a_name() {
        let check = |labels: &[&str], expected: Option<&str>| {
            let frames: Vec<_> = labels.iter().map(|label| frame(label, true)).collect();
            let user = frame("main", false);
            let chain: Vec<&Frame> = frames.iter().chain([&user]).collect();
            assert_eq!(kernel_entry(&chain).as_deref(), expected, "{labels:?}");
        };
        check(&[], None);
        check(&["futex_wait", "__x64_sys_futex", "do_syscall_64"], Some("futex"));
        check(&["folio_wait", "exc_page_fault", "asm_exc_page_fault"], Some("page fault"));
        check(&["exit_to_user_mode_loop", "asm_sysvec_apic_timer_interrupt"], Some("interrupt"));
        check(&["something_else"], Some("something_else"));
    }

    #[test]
    fn inlined_functions_come_before_the_one_that_has_their_code() {
        let row = |pid, address, inlined, function: &str| FrameRow {
            pid,
            address,
            inlined,
            function: function.into(),
            file: "".into(),
            line: 0,
            object: "/usr/lib/lib x.so".into(),
            build_id: "".into(),
            offset: 0x10,
        };
        let mut code = Code::default();
        let user = Pid(7);
        for (i, name) in ["outer", "inner"].iter().enumerate() {
            code.add(&row(user, 100, i as i32, name));
        }
        code.add(&row(user, 200, 0, ""));
        for (address, name) in [(1, ""), (2, "__traceiter_sched_waking"), (3, "try_to_wake_up")] {
            code.add(&row(KERNEL_PID, address, 0, name));
        }
        let kernel = [1, 2, 3].map(|address| (KERNEL_PID, address));
        code.stacks.insert(5, [&kernel[..], &[(user, 100), (user, 200)]].concat());
        let labels = |chain: Vec<&Frame>| -> Vec<String> {
            chain.iter().map(|frame| frame.label.to_string()).collect()
        };
        let whole = labels(code.sampled(Some(5)));
        let of_waking = ["try_to_wake_up", "inner", "outer", "lib x.so+0x10"];
        assert_eq!(labels(code.chain(Some(5))), of_waking);
        assert_eq!(
            whole,
            [&["lib x.so+0x10", "__traceiter_sched_waking"][..], &of_waking].concat()
        );
        assert!(code.chain(None).is_empty() && code.chain(Some(6)).is_empty());
    }
}
