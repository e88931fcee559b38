//! Functions: those that have the attribute [`function`](macro@function), and those of programs that are compiled with
//! `-finstrument-functions`, for which the hooks of the compiler write.
//!
//! Of the latter there is one pair of sites for all functions, with the address as an argument, and not a pair for each. So the
//! first call of a function needs no table, no lock and no name, which a signal handler could not have; any number of functions
//! fits; and what an address means is found out later, by whoever reads the trace. What it costs is the choice: all of them are
//! on or none (the compiler's own options leave functions out).
//!
//! Who writes an attribute chooses, so each of these functions has sites and a name of its own.

/// Records each call of a function, for the table `functions`: how often it was called, its own time and that with all that it
/// calls, both divided by what the thread did.
///
/// The event is `fn.` and the path of the function, `fn.parser::next`; switch it by `-e 'fn.parser::*'`. A method has the path
/// of its module; give another name where that does not distinguish it: `#[ft_user::function("Parser::next")]` is
/// `fn.Parser::next`. Functions of one name are switched together; reports distinguish them by their places.
///
/// While it is off, a call costs two nops. A call ends when the function's variables have been dropped, in a panic too. It is
/// no call in tail position any more, and its end is not recorded if its frame is left by `longjmp`.
///
/// An `async fn` does not compile with it (see [`task`](crate::task)), nor does a `const fn`. The program names this crate
/// `ft_user`.
///
/// # Examples
///
/// ```
/// struct Parser(Vec<u8>);
///
/// impl Parser {
///     #[ft_user::function("Parser::next")]
///     fn next(&mut self) -> Option<u8> {
///         self.0.pop()
///     }
/// }
///
/// #[ft_user::function]
/// fn sum(parser: &mut Parser) -> u64 {
///     std::iter::from_fn(|| parser.next()).map(u64::from).sum()
/// }
/// # assert_eq!(sum(&mut Parser(vec![1, 2])), 3);
/// ```
///
/// ```compile_fail
/// #[ft_user::function]
/// async fn serve() {}
/// ```
/// ```compile_fail
/// #[ft_user::function]
/// const fn size() -> usize { 8 }
/// ```
/// ```compile_fail
/// #[ft_user::function(Parser)]
/// fn next() {}
/// ```
/// ```compile_fail
/// #[ft_user::function]
/// struct Parser {}
/// ```
#[doc(inline)]
pub use ft_macros::function;

use crate::layout::{Arg, Frame, SiteKind, SiteMeta};
use crate::site;

static ARGS: [Arg; 2] = [site::arg::<*const ()>("function"), site::arg::<u64>("frame")];

/// The event that switches the hooks of the compiler: by `fn.*`, say.
const fn instrumented(kind: SiteKind) -> SiteMeta {
    site::meta(kind, "fn.instrumented", (file!(), line!()), "", &ARGS)
}

/// The begin of a function that is recorded by its address, by the hooks and by sleds.
pub(crate) static ENTER: SiteMeta = instrumented(SiteKind::FunctionEnter);
/// Its end.
pub(crate) static EXIT: SiteMeta = instrumented(SiteKind::FunctionExit);

/// The begin of one whose ends have no sled.
pub(crate) static CALLED: SiteMeta = instrumented(SiteKind::FunctionCalled);

// They are addressed relative to the code, here and by the sleds. In a static library that becomes part of a shared one, that is for what nobody can replace.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]
core::arch::global_asm!(
    ".hidden {enter}", ".hidden {exit}", ".hidden {called}",
    enter = sym ENTER, exit = sym EXIT, called = sym CALLED,
);

/// A function begins that returns to `caller`; this was called with the stack pointer `stack`, and returns to `told`.
#[doc(hidden)]
pub extern "C" fn enter(function: *const (), caller: u64, told: u64, stack: u64) {
    let frame = Frame::of_begin(stack, caller, told);
    crate::__site!(ENTER, function: *const () = function, frame: u64 = frame.0);
}

/// It ends.
#[doc(hidden)]
pub extern "C" fn exit(function: *const (), caller: u64, told: u64, stack: u64) {
    let frame = Frame::of_end(stack, caller, told);
    crate::__site!(EXIT, function: *const () = function, frame: u64 = frame.0);
}

/// One begins whose end is not told. Its event is written by sleds alone: this is where it is described.
#[doc(hidden)]
pub extern "C" fn called(function: *const (), caller: u64, told: u64, stack: u64) {
    let frame = Frame::of_begin(stack, caller, told);
    crate::__site!(CALLED, function: *const () = function, frame: u64 = frame.0);
}

/// Tells that the function begins in which this stands, and that it ends when what this returns is dropped.
#[doc(hidden)]
#[macro_export]
macro_rules! __function {
    ($name:literal) => {
        $crate::__function!(in concat!("fn.", $name))
    };
    (path $name:literal) => {
        $crate::__function!(in concat!("fn.", module_path!(), "::", $name))
    };
    (in $name:expr) => {{
        struct Call(::core::marker::PhantomData<*const ()>);
        impl ::core::ops::Drop for Call {
            #[inline(always)]
            fn drop(&mut self) {
                $crate::__event!(kind = FunctionExit, $name);
            }
        }
        $crate::__event!(kind = FunctionEnter, $name);
        Call(::core::marker::PhantomData)
    }};
}
