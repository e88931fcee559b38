//! Functions of programs that are compiled with `-finstrument-functions`: what the hooks of the compiler write.
//!
//! There is one pair of sites for all functions, with the address as an argument, and not a pair for each. So the first call
//! of a function needs no table, no lock and no name, which a signal handler could not have; any number of functions fits;
//! and what an address means is found out later, by whoever reads the trace. What it costs is the choice: all of them are on
//! or none (the compiler's own options leave functions out).

use crate::layout::Frame;

/// The event that switches both: by `fn.*`, say.
macro_rules! tell {
    ($kind:ident, $function:ident, $frame:expr) => {
        $crate::__event!(
            kind = $kind,
            "fn.instrumented",
            function: *const () = $function,
            frame: u64 = $frame.0
        )
    };
}

/// A function begins that returns to `caller`; this was called with the stack pointer `stack`, and returns to `told`.
#[doc(hidden)]
pub extern "C" fn enter(function: *const (), caller: u64, told: u64, stack: u64) {
    tell!(FunctionEnter, function, Frame::of_begin(stack, caller, told));
}

/// It ends.
#[doc(hidden)]
pub extern "C" fn exit(function: *const (), caller: u64, told: u64, stack: u64) {
    tell!(FunctionExit, function, Frame::of_end(stack, caller, told));
}
