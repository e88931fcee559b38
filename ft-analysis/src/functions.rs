//! How often each function was called, and where the time inside of it went.
//!
//! **Goal.** A row for each function and thread: its calls, the time inside of it with what it called (*total*), and
//! without that (*self*), both divided into running, preempted, blocked, interrupts and unexplained; and how often something
//! happened to the thread in the latter.
//!
//! **Rule.** Per thread, the calls in which it is. Each event settles the time since the one before: it was the
//! innermost call's own. So the self times of a thread sum to the time inside its outermost calls by construction. The
//! total of a function grows while at least one call of it goes on: recursion counts once.
//!
//! **Calls that are left.** A call that `longjmp` leaves, or with clang an exception, has no end. Its [`Frame`] shows that:
//! - a call lies lower in the stack than whoever made it, so an event of a higher frame shows that the lower ones are left;
//! - functions that are inlined into each other have one frame, but return to one place, too: at the same height, one that
//!   returns elsewhere has taken the place of another that was left;
//! - so has a call of the same function, if it was recorded by the same instruction: in a loop, say. (A function that is inlined
//!   into itself records its copies by different ones.)
//!
//! An end that is recorded when the frame is gone has its upper end: of the calls within it the outermost one of the function has
//! ended, and the others are left: those around it before it began, so that some of their time is its own. Another end that is
//! not the innermost call's is that of the newest call of its function, and those inside of that are left.
//! When they were, nobody knows: it was after the last event, so their time ends there, and what lies between is the row
//! *(unknown)*.
//!
//! **What cannot be distinguished**, by the frames alone:
//! - a call of another function by the same instruction at the same height, as in a loop over pointers to functions, from a call
//!   that was inlined: it is taken for that;
//! - a call after a jump that needs more of the stack than the call that was left, from one that this made: it is taken for
//!   that, and the total of what was left goes on until the next event of a function around both. So the figures of a function
//!   of which a call was left are no bounds ([`Mark::Censored`]).
//!
//! **Situations.**
//! - *An end without a begin* is counted ([`Function::begun_before`](ft_trace::tables::Function::begun_before)) and changes nothing else.
//! - *A begin without an end*: the thread, its memory (exec) or the recording ended first; the time until then counts.
//! - *Events of the thread were lost*: the same, at the begin of the loss; then it is in no call that is known.
//! - *A begin whose end is never recorded*, of a function in which gcc left a patchable entry, is counted
//!   ([`Function::entered`](ft_trace::tables::Function::entered)) and changes nothing else.
//! - *A tail call* is made when the caller's end has been recorded: what is called is as deep as the caller was.
//! - *A signal handler on a stack of its own*, above that of the thread, looks as if what it interrupts had been left; and so
//!   do fibers that a thread changes between without a word. Both are counted and marked as such.
//! - *A fiber* whose switches are told (`FT_TASK_SWITCH`) has calls of its own, in which time passes while it runs (`fibers.rs`).
//!
//! Memory: for each thread that lives, 65,536 calls, as many of its fibers, and 4096 functions.

mod fibers;
mod row;
mod stack;

use std::collections::HashMap;
use std::ops::AddAssign;

use crate::analysis::Analysis;
use crate::world::{Began, Change, Over, PerThread, Site, Thread, World};
use crate::{Rows, Tally};
use fibers::{Fibers, Homes};
use ft_trace::Mark;
use ft_trace::event::LeanUserEvent;
use ft_trace::ids::Name;
use ft_trace::tables::{Counts, Decomposition, SiteKind};
use ft_user::layout::Frame;
use row::row;
use serde::{Deserialize, Serialize};
use stack::Stack;

/// Calls in which one thread is that are kept. A stack of 8 MiB has room for twice as many.
///
/// Limit: the outermost counts as ended in its figures, and is counted (`too_many`); all rows of the thread are `lower
/// bound`s.
/// Shown by: `calls_and_functions_are_bounded_and_say_so`.
const MAX_CALLS: usize = 1 << 16;

/// Functions of one thread that are distinguished.
///
/// Limit: the others share one row `(others)`, in which a call within a call of another of them counts once, too.
/// Shown by: `calls_and_functions_are_bounded_and_say_so`.
const MAX_FUNCTIONS: usize = 4096;

/// Calls of functions, and those of which not both ends were recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FunctionCounts {
    /// Begins.
    pub calls: u64,
    /// Of those, with neither an end nor anything that shows one.
    pub unfinished: u64,
    /// Of those, left without an end.
    pub left: u64,
    /// Ends without a begin.
    pub begun_before: u64,
    /// Of the calls, the outermost of more than 65,536 in which one thread was: their time ends there.
    pub too_many: u64,
    /// Calls besides, of which no end is ever recorded.
    pub entered: u64,
}

impl FunctionCounts {
    fn add(&mut self, other: &FunctionCounts) {
        self.calls += other.calls;
        self.unfinished += other.unfinished;
        self.left += other.left;
        self.begun_before += other.begun_before;
        self.too_many += other.too_many;
        self.entered += other.entered;
    }

    /// There was no event of a function.
    pub fn is_none(&self) -> bool {
        *self == FunctionCounts::default()
    }
}

/// Which function it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Which {
    /// The one that begins here.
    At(i64),
    /// The one whose sites have this name; it is where they are.
    Named(Name, Name),
    /// One of those behind the 4096th.
    Others,
    /// Nobody knows.
    Unknown,
}

/// A length with its parts.
#[derive(Clone, Copy, Debug, Default)]
struct Time {
    ns: i64,
    parts: Decomposition,
    /// Of that, what the agent had the CPU while the thread waited for it.
    agent_ns: i64,
}

impl Time {
    fn between(from: &Began, to: &Began) -> Time {
        Time { ns: to.ts - from.ts, parts: from.until(to), agent_ns: from.agent_until(to) }
    }

    fn without(self, earlier: Time) -> Time {
        Time {
            ns: self.ns - earlier.ns,
            parts: self.parts - earlier.parts,
            agent_ns: self.agent_ns - earlier.agent_ns,
        }
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, other: Time) {
        self.ns += other.ns;
        self.parts += other.parts;
        self.agent_ns += other.agent_ns;
    }
}

/// What is known of one function in one thread.
#[derive(Debug)]
struct Sum {
    which: Which,
    first: i64,
    counts: FunctionCounts,
    total: Time,
    own: Time,
    /// What happened in `own`.
    happened: Counts,
    /// What counters counted in it, as far as that is known.
    counter: [Option<i64>; 2],
    /// A call of it was left at a time that nobody knows, or came back into.
    is_doubtful: bool,
}

/// A call in which a thread is.
#[derive(Clone, Copy, Debug)]
struct Call {
    function: usize,
    /// Where that is known.
    frame: Option<Frame>,
}

impl Call {
    /// An event of a call with this frame, whose begin it is if the function is named, shows that this one was left.
    fn is_left(&self, frame: Option<Frame>, begins: Option<usize>) -> bool {
        let (Some(own), Some(other)) = (self.frame, frame) else { return false };
        own.height() < other.height()
            || own.height() == other.height()
                && (own.caller() != other.caller()
                    || begins == Some(self.function) && own.told() == other.told())
    }
}

/// The calls and the functions of one thread.
#[derive(Debug, Default)]
struct Calls {
    /// Of what it runs now.
    stack: Stack,
    /// Of the fibers that it has run, and runs no longer.
    fibers: Fibers,
    sums: Vec<Sum>,
    by_function: HashMap<Which, usize>,
    /// The newest event.
    last: Began,
    /// The first one.
    first: i64,
    /// Calls were dropped because there were too many.
    overflowed: bool,
}

impl Calls {
    /// The number of a function.
    fn function(&mut self, which: Which, now: &Began) -> usize {
        if let Some(&known) = self.by_function.get(&which) {
            return known;
        }
        // Room is left for the two that are no function.
        let which = match which {
            Which::At(_) | Which::Named(..) if self.sums.len() >= MAX_FUNCTIONS => {
                return self.function(Which::Others, now);
            }
            which => which,
        };
        if self.sums.is_empty() {
            self.first = now.ts;
        }
        let number = self.sums.len();
        self.by_function.insert(which.clone(), number);
        self.sums.push(Sum {
            which,
            first: now.ts,
            counts: FunctionCounts::default(),
            total: Time::default(),
            own: Time::default(),
            happened: Counts { faults: Some([0; 2]), ..Counts::default() },
            counter: [Some(0); 2],
            is_doubtful: false,
        });
        number
    }

    /// How many of the innermost calls an event shows to have been left.
    fn left(&self, frame: Option<Frame>, begins: Option<usize>) -> usize {
        self.stack.open.iter().rev().take_while(|call| call.is_left(frame, begins)).count()
    }

    /// How many of the innermost calls are as low as this frame, or lower.
    fn within(&self, frame: Option<Frame>) -> usize {
        let height = |frame: Option<Frame>| frame.map(Frame::height);
        let is_within = |call: &&Call| call.frame.is_some() && height(call.frame) <= height(frame);
        self.stack.open.iter().rev().take_while(is_within).count()
    }

    /// Settles the time until `now`; the innermost `left` calls have been left in it.
    fn settle(&mut self, left: usize, now: &Began) {
        let last = std::mem::replace(&mut self.last, *now);
        let Some(innermost) = self.stack.open.back().map(|call| call.function) else { return };
        let spent = Time::between(&last, now);
        let owner = if left == 0 { innermost } else { self.function(Which::Unknown, &last) };
        self.sums[owner].own += spent;
        self.sums[owner].happened += last.counts_until(now);
        for (sum, count) in self.sums[owner].counter.iter_mut().zip(last.counter_until(now)) {
            *sum = sum.zip(count).and_then(|(sum, count)| sum.checked_add(count));
        }
        if left > 0 {
            self.sums[owner].total += spent;
        }
        self.leave(left);
        self.stack.run(spent);
    }

    /// So many of the innermost calls have been left.
    fn leave(&mut self, left: usize) {
        for _ in 0..left {
            let call = self.stack.open.pop_back().expect("no more are left than were open");
            let sum = &mut self.sums[call.function];
            sum.counts.left += 1;
            self.over(call);
        }
        if left > 0
            && let Some(back_in) = self.stack.open.back()
        {
            self.sums[back_in.function].is_doubtful = true;
        }
    }

    /// A call is over.
    fn over(&mut self, call: Call) {
        if let Some(total) = self.stack.ended(call) {
            self.sums[call.function].total += total;
        }
    }

    fn enter(&mut self, which: Which, frame: Option<Frame>, now: &Began) {
        let function = self.function(which, now);
        self.settle(self.left(frame, Some(function)), now);
        if self.stack.open.len() == MAX_CALLS {
            let outermost = self.stack.open.pop_front().expect("as many as there can be");
            self.sums[outermost.function].counts.too_many += 1;
            self.over(outermost);
            self.overflowed = true;
        }
        self.sums[function].counts.calls += 1;
        self.stack.push(Call { function, frame });
    }

    /// A function is called, and when that call ends is not recorded.
    fn called(&mut self, which: Which, now: &Began) {
        let function = self.function(which, now);
        self.sums[function].counts.entered += 1;
    }

    fn exit(&mut self, which: Which, frame: Option<Frame>, now: &Began) {
        let function = self.function(which, now);
        let of_it = |call: &Call| call.function == function;
        let (left, is_open, around) = if frame.is_some_and(Frame::is_gone) {
            let within = self.within(frame);
            match self.stack.open.range(self.stack.open.len() - within..).position(of_it) {
                Some(around) => (within - 1 - around, true, around),
                None => (within, false, 0),
            }
        } else {
            let left = self.left(frame, None);
            let gone = self.stack.open.iter().rev().take(left).filter(|call| of_it(call)).count();
            let is_open = self.stack.calls_of(function) > gone;
            // Those inside of the newest call of it.
            let inner =
                self.stack.open.iter().rev().skip(left).take_while(|call| is_open && !of_it(call));
            (left + inner.count(), is_open, 0)
        };
        self.settle(left, now);
        if is_open {
            let call = self.stack.open.pop_back().expect("it is the innermost now");
            self.over(call);
            self.leave(around);
        } else {
            self.sums[function].counts.begun_before += 1;
        }
    }

    /// Nothing more is known of the calls in which the thread is, nor of those of its fibers.
    fn drop_open(&mut self, now: &Began) {
        self.begin_held();
        self.settle(0, now);
        self.drop_stack();
        for stack in self.fibers.all() {
            self.stack = stack;
            self.drop_stack();
        }
    }

    /// Nothing more is known of the calls of the present stack.
    fn drop_stack(&mut self) {
        while let Some(call) = self.stack.open.pop_back() {
            self.sums[call.function].counts.unfinished += 1;
            self.over(call);
        }
    }
}

/// Makes the table `functions`.
#[derive(Debug, Default)]
pub struct Functions {
    threads: PerThread<Calls>,
    homes: Homes,
    counts: FunctionCounts,
}

impl Analysis for Functions {
    #[inline]
    fn see(&mut self, change: &Change<'_>, world: &World, rows: &mut Rows) {
        match *change {
            Change::Own { thread, event, site } if site.kind.is_function() => {
                let (which, frame) = called(event, site);
                let (calls, now) = (self.threads.of(thread), Began::now(thread, world));
                if site.kind == SiteKind::FunctionEnter && calls.hold(&which, frame, &now) {
                    return;
                }
                calls.begin_held();
                match site.kind {
                    SiteKind::FunctionEnter => calls.enter(which, frame, &now),
                    SiteKind::FunctionCalled => calls.called(which, &now),
                    _ => calls.exit(which, frame, &now),
                }
            }
            Change::Own { thread, event, site } if site.kind == SiteKind::TaskSwitch => {
                let now = Began::now(thread, world);
                self.switch(thread, (site.source, event.arg[0]), &now, world);
            }
            Change::Dropping { thread, why } => {
                let Some(calls) = self.threads.get(thread) else { return };
                calls.drop_open(&Began::now(thread, world));
                if why != Over::Loss {
                    self.ended(thread, world, rows);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, _: &World, _: &mut Rows, tally: &mut Tally) {
        tally.functions = self.counts;
    }
}

impl Functions {
    /// The rows of a thread of whose program nothing follows.
    fn ended(&mut self, thread: &Thread, world: &World, rows: &mut Rows) {
        let calls = std::mem::take(self.threads.of(thread));
        let (key, first) = (thread.key, calls.first);
        // Calls may be among the events that were lost before a function's first known one; no time of it is.
        let calls_lost = world.losses().of_events(key, first) || calls.overflowed;
        for sum in &calls.sums {
            self.counts.add(&sum.counts);
            // Only entered, it has no time of which some could be unknown.
            let has_time = sum.counts.entered == 0 || sum.counts.calls > 0;
            let time_lost = has_time
                && (world.losses().kernel_since(sum.first) || thread.doubtful_since(sum.first));
            let lost = Mark::lower_bound_if(calls_lost || time_lost);
            let mark = lost.max(sum.mark()).max(thread.disturbed.mark(sum.first));
            rows.functions.push(row(thread, sum, mark, world));
        }
    }
}

impl Sum {
    fn mark(&self) -> Mark {
        let FunctionCounts { unfinished, begun_before, left, .. } = self.counts;
        if unfinished > 0 || begun_before > 0 || left > 0 {
            Mark::Censored
        } else {
            Mark::lower_bound_if(self.is_doubtful)
        }
    }
}

/// Which function an event is about, and its frame.
fn called(event: &LeanUserEvent, site: &Site) -> (Which, Option<Frame>) {
    let [function, frame, _] = event.arg;
    match site.has_function {
        true => (Which::At(function), Some(Frame(frame as u64))),
        false => (Which::Named(site.event.clone(), site.at.clone().unwrap_or_default()), None),
    }
}

#[cfg(test)]
mod tests;
