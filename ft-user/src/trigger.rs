//! The trigger: [`event!`](crate::event), one nop while it is off.
//!
//! # The machine code of a site
//!
//! ```text
//! off:  0f 1f 84 e9 rel32   nop dword ptr [rcx + 8*rbp + rel32]   eight bytes, no access to memory
//! on:   0f 1f 00            nop dword ptr [rax]
//!                e9 rel32   jmp rel32          to the cold block, at the end of the function
//! lent: 0f 1f 03            nop dword ptr [rbx]
//!                e9 rel32   jmp rel32          the same, for an agent
//! ```
//!
//! The third byte is the state; [`crate::patch`] writes it. It says whether the nop swallows the jump as
//! its address, or ends before it, and on whose behalf (Intel SDM volume 2, table 2-2: ModRM 84 takes a SIB byte and four bytes
//! of displacement, ModRM 00 and 03 take neither). A thread that was interrupted between the two instructions
//! of the other forms finds the jump there whatever the third byte says.
//!
//! A nop needs no execution unit and changes no flags: unlike a test of a variable, a `cmp` or a jump it
//! costs nothing measurable even where every issue slot is full (`cargo xtask bench off`).
//!
//! The compiler sees an `asm!` that may jump to a `label` block and changes nothing, so it keeps the
//! arguments out of the hot path: they are evaluated in the block. That the block makes the function neither save a register nor
//! spill one is the work of [`crate::arch`], and `tests/disassembly.rs` holds it.
//!
//! The block jumps on to code behind the function, which moves the stack pointer and calls the write: `arch/frame.rs` says why.
//!
//! Each copy of a site that the compiler makes (inlining, generics, loop unrolling) leaves a record of
//! its own in the section `ft_sites`; all point to one static [`SiteMeta`](crate::layout::SiteMeta).
//!
//! # Limits
//!
//! The macro expands to an `unsafe` block with `asm!`. The lint `unsafe_code` does not look into the macros of
//! other crates, so a crate with `#![forbid(unsafe_code)]` can use it (`tests/forbid_unsafe.rs`). The expansion
//! refers to hidden symbols of this crate: crates that are linked together statically may use it, a crate
//! across the boundary of a Rust `dylib` may not.

/// Records an event if its site is enabled.
///
/// The name is `category.name`. Up to six arguments follow, each `name: Type = expression`, or
/// `name: Type` for a variable of that name; the type is any [`Arg`](crate::Arg). A format for listings
/// may come last, after a semicolon, with placeholders as in [`std::fmt`]: `{name}`, `{0}`, the first argument, or `{}`, the next one, with
/// fill, alignment, sign, `#`, `0`, width, precision and `x`, `X`, `o`, `b`, `e`, `E`, `p` or `?` behind a colon. Expressions are
/// evaluated only while the site is enabled.
///
/// `&str` and `&[u8]` become a part of the event. All arguments together take 304 bytes at most, each
/// number 8 (16 in an `Option`) and each text 8 more than its length; long texts are cut to what is left, and marked.
///
/// A disabled site costs one instruction that has no effect, provided that the expressions call no
/// function: for a call the compiler may save registers on entry. An enabled one costs about a reading of
/// the time stamp counter, with short text half as much again; text that must be cut, half a microsecond
/// (`cargo xtask bench on`).
///
/// # Examples
///
/// ```
/// let (id, payload) = (7u64, [0u8; 64]);
/// ft_user::event!("txn.begin");
/// ft_user::event!("txn.commit", id: u64, bytes: usize = payload.len(); "{id} took {bytes} bytes");
/// let path = String::from("/index.html");
/// let parent: Option<u64> = None;
/// ft_user::event!("http.get", path: &str = &path, body: &[u8] = &payload, id: u64, parent: Option<u64>);
/// ```
///
/// A value must have the type that the site declares, and a name must have a category:
///
/// ```compile_fail,E0308
/// ft_user::event!("txn.commit", id: u64 = "seven");
/// ```
/// ```compile_fail,E0080
/// ft_user::event!("commit");
/// ```
///
/// Nor does a seventh argument compile, or a type that is no [`Arg`](crate::Arg):
///
/// ```compile_fail,E0080
/// ft_user::event!("a.b", a: u8 = 1, b: u8 = 2, c: u8 = 3, d: u8 = 4, e: u8 = 5, f: u8 = 6, g: u8 = 7);
/// ```
/// ```compile_fail,E0277
/// ft_user::event!("a.b", wide: u128 = 1);
/// ```
///
/// Nor a format that cannot be shown with the arguments:
///
/// ```compile_fail,E0080
/// ft_user::event!("a.b", id: u64 = 1; "{name}");
/// ```
/// ```compile_fail,E0080
/// ft_user::event!("a.b", id: u64 = 1; "{1}");
/// ```
/// ```compile_fail,E0080
/// ft_user::event!("a.b", rate: f64 = 1.0; "{rate:x}");
/// ```
/// ```compile_fail,E0080
/// ft_user::event!("a.b", twice: Option<Option<u8>> = None);
/// ```
#[macro_export]
macro_rules! event {
    ($name:literal $(, $arg:ident : $ty:ty $(= $value:expr)?)* $(,)? $(; $format:literal)?) => {
        {
            const _: () = $crate::layout::format::check(
                concat!($($format)?),
                &[$((stringify!($arg), <$ty as $crate::Arg>::TYPE)),*],
            );
            $crate::__event!(
                kind = Event, $name $(, $arg : $ty $(= $value)?)* $(; $format)?
            )
        }
    };
}

/// [`event!`] with a [`SiteKind`](crate::layout::SiteKind).
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]
#[doc(hidden)]
#[macro_export]
macro_rules! __event {
    (
        kind = $kind:ident, $name:expr
        $(, $arg:ident : $ty:ty $(= $value:expr)?)* $(; $format:literal)?
    ) => {{
        static __FT_ARGS: [$crate::layout::Arg; $crate::site::count(&[$(stringify!($arg)),*])] = [
            $($crate::site::arg::<$ty>(stringify!($arg)),)*
        ];
        static __FT_META: $crate::layout::SiteMeta = $crate::site::meta(
            $crate::layout::SiteKind::$kind,
            $name,
            (file!(), line!()),
            concat!($($format)?),
            &__FT_ARGS,
        );
        $crate::__site!(__FT_META $(, $arg : $ty $(= $value)?)*)
    }};
}

/// A site whose metadata is a static that has a name, so that several sites can share it.
#[doc(hidden)]
#[macro_export]
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]
macro_rules! __site {
    ($meta:ident $(, $arg:ident : $ty:ty $(= $value:expr)?)*) => {
        // SAFETY: the instruction changes nothing. Its record names a trigger and a `SiteMeta`.
        unsafe {
            ::core::arch::asm!(
                "2:",
                ".long {off}",
                ".long {on} - 3f",
                "3:",
                ".pushsection ft_sites,\"aR\",@progbits",
                ".p2align 2",
                ".short 16, 1",
                ".long 2b - .",
                ".long {meta} - .",
                ".long 0",
                ".popsection",
                off = const $crate::layout::TRIGGER_OFF,
                on = label {
                    if const { $crate::site::is_ordered(&$meta) } {
                        $crate::__order();
                    }
                    if const { $crate::site::has_pairs(&[$(<$ty as $crate::Arg>::TYPE),*]) } {
                        $crate::__call_write_text!(
                            $meta $(($arg $crate::__pair!($arg, $ty $(, $value)?)))*
                        );
                    } else {
                        $crate::__call_write!(
                            $meta $(($arg $crate::__word!($arg, $ty $(, $value)?)))*
                        );
                    }
                },
                meta = sym $meta,
                options(nomem, nostack, preserves_flags),
            );
        }
    };
}

/// Evaluates the arguments, puts their words on the stack, and calls the write; preserves all registers.
///
/// From the fourth word on they wait in vector registers: with six words in general registers, the
/// compiler runs out of those that it need not save, and saves one on entry to the function.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]
#[doc(hidden)]
#[macro_export]
macro_rules! __call_write {
    (
        $meta:ident
        $(($a:ident $av:expr) $(($b:ident $bv:expr) $(($c:ident $cv:expr)
        $(($d:ident $dv:expr) $(($e:ident $ev:expr) $(($f:ident $fv:expr))?)?)?)?)?)?
    ) => {{
        // One pattern: an expression may use a variable that has the name of another argument.
        let ($($a, $($b, $($c, $($d, $($e, $($f)?)?)?)?)?)?) = (
            $($av, $($bv, $($cv, $($crate::__vector($dv), $($crate::__vector($ev),
            $($crate::__vector($fv))?)?)?)?)?)?
        );
        // SAFETY: there are as many words on the stack as the name of the function says; the function
        // preserves all registers but `rax` (`arch::x86_64`).
        unsafe {
            ::core::arch::asm!(
                $crate::__out_of_line!(
                    "ft_user_v1_write_{__ft_words}"
                    $(, concat!("mov [rsp + 8], {", stringify!($a), "}")
                    $(, concat!("mov [rsp + 16], {", stringify!($b), "}")
                    $(, concat!("mov [rsp + 24], {", stringify!($c), "}")
                    $(, concat!("movq [rsp + 32], {", stringify!($d), "}")
                    $(, concat!("movq [rsp + 40], {", stringify!($e), "}")
                    $(, concat!("movq [rsp + 48], {", stringify!($f), "}"))?)?)?)?)?)?
                ),
                $($a = in(reg) $a, $($b = in(reg) $b, $($c = in(reg) $c, $($d = in(xmm_reg) $d,
                $($e = in(xmm_reg) $e, $($f = in(xmm_reg) $f,)?)?)?)?)?)?
                __ft_meta = sym $meta,
                __ft_back = label {},
                __ft_words = const $crate::site::count(&[
                    $(stringify!($a), $(stringify!($b), $(stringify!($c),
                    $(stringify!($d), $(stringify!($e), $(stringify!($f))?)?)?)?)?)?
                ]),
                __ft_frame = const 136 + 8 * $crate::site::count(&[
                    $(stringify!($a), $(stringify!($b), $(stringify!($c),
                    $(stringify!($d), $(stringify!($e), $(stringify!($f))?)?)?)?)?)?
                ]),
                __ft_size = const $crate::site::out_of_line_size($crate::site::count(&[
                    $(stringify!($a), $(stringify!($b), $(stringify!($c),
                    $(stringify!($d), $(stringify!($e), $(stringify!($f))?)?)?)?)?)?
                ])),
                options(nostack, noreturn),
            );
        }
    }};
    // More do not compile: `site::count` says why.
    ($meta:ident $(($arg:ident $value:expr))*) => {};
}

/// As `__call_write`, with two words for each argument, together in one vector register.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]
#[doc(hidden)]
#[macro_export]
macro_rules! __call_write_text {
    ($meta:ident) => {};
    (
        $meta:ident
        ($a:ident $av:expr) $(($b:ident $bv:expr) $(($c:ident $cv:expr)
        $(($d:ident $dv:expr) $(($e:ident $ev:expr) $(($f:ident $fv:expr))?)?)?)?)?
    ) => {
        // A `match`, so that what an expression borrows from a temporary lives through the call.
        match ($av, $($bv, $($cv, $($dv, $($ev, $($fv)?)?)?)?)?) {
            // SAFETY: there is a pair on the stack for each argument of the metadata; the function
            // preserves all registers but `rax` (`arch::x86_64`).
            ($a, $($b, $($c, $($d, $($e, $($f)?)?)?)?)?) => unsafe {
                ::core::arch::asm!(
                    $crate::__out_of_line!(
                        "ft_user_v1_write_text",
                        concat!("movups [rsp + 8], {", stringify!($a), "}")
                        $(, concat!("movups [rsp + 24], {", stringify!($b), "}")
                        $(, concat!("movups [rsp + 40], {", stringify!($c), "}")
                        $(, concat!("movups [rsp + 56], {", stringify!($d), "}")
                        $(, concat!("movups [rsp + 72], {", stringify!($e), "}")
                        $(, concat!("movups [rsp + 88], {", stringify!($f), "}"))?)?)?)?)?
                    ),
                    $a = in(xmm_reg) $a,
                    $($b = in(xmm_reg) $b, $($c = in(xmm_reg) $c, $($d = in(xmm_reg) $d,
                    $($e = in(xmm_reg) $e, $($f = in(xmm_reg) $f,)?)?)?)?)?
                    __ft_meta = sym $meta,
                    __ft_back = label {},
                    __ft_frame = const 136 + 16 * $crate::site::count(&[
                        stringify!($a), $(stringify!($b), $(stringify!($c),
                        $(stringify!($d), $(stringify!($e), $(stringify!($f))?)?)?)?)?
                    ]),
                    __ft_size = const $crate::site::out_of_line_size($crate::site::count(&[
                        stringify!($a), $(stringify!($b), $(stringify!($c),
                        $(stringify!($d), $(stringify!($e), $(stringify!($f))?)?)?)?)?
                    ])),
                    options(nostack, noreturn),
                );
            },
        }
    };
    // As there.
    ($meta:ident $(($arg:ident $value:expr))*) => {};
}

/// Keeps the reading of the time stamp counter behind what the thread has read before: the lock that it has found free.
///
/// RDTSC waits for no earlier load, and a processor that has guessed how a spin lock's loop ends reads the counter before it
/// knows. LFENCE waits for all earlier instructions (Intel SDM, volume 2B, RDTSC; on AMD where the kernel has made it do so, as
/// Linux does since 2018: `X86_FEATURE_LFENCE_RDTSC`). A release needs none: what is in front of a store has been executed
/// before anybody sees the store. Without it, of 330,000 handovers of a ticket lock between two CPUs up to 36,000 were before the last
/// holder's release, by 300 cycles (AMD family 23); with it none of 2.6 million.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[doc(hidden)]
#[inline(always)]
pub fn __order() {
    // SAFETY: changes nothing.
    unsafe { core::arch::asm!("lfence", options(nostack, preserves_flags)) };
}

/// Moves a word to a vector register, at this place: the `asm!` keeps the compiler from evaluating the
/// next argument before.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[doc(hidden)]
#[inline(always)]
pub fn __vector(word: u64) -> f64 {
    let vector;
    // SAFETY: a move between registers. Says nothing about memory, so that loads stay on their side.
    unsafe {
        core::arch::asm!(
            "movq {}, {}",
            out(xmm_reg) vector,
            in(reg) word,
            options(nostack, preserves_flags),
        );
    }
    vector
}

/// Moves the two words of an argument to a vector register, at this place, as [`__vector`] does.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[doc(hidden)]
#[inline(always)]
pub fn __pair<T: crate::Arg>(value: T) -> core::arch::x86_64::__m128i {
    let pair;
    // SAFETY: moves between registers. Says nothing about memory, so that loads stay on their side.
    unsafe {
        core::arch::asm!(
            "movq {pair}, {word}",
            "movq {high}, {extent}",
            "punpcklqdq {pair}, {high}",
            pair = out(xmm_reg) pair,
            high = out(xmm_reg) _,
            word = in(reg) value.to_word(),
            extent = in(reg) value.extent(),
            options(nostack, preserves_flags),
        );
    }
    pair
}

/// The pair of one argument.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(ft_off)))]
#[doc(hidden)]
#[macro_export]
macro_rules! __pair {
    ($arg:ident, $ty:ty) => {
        $crate::__pair!($arg, $ty, $arg)
    };
    ($arg:ident, $ty:ty, $value:expr) => {
        $crate::__pair::<$ty>($value)
    };
}

/// The word of one argument.
#[doc(hidden)]
#[macro_export]
macro_rules! __word {
    ($arg:ident, $ty:ty) => {
        $crate::__word!($arg, $ty, $arg)
    };
    ($arg:ident, $ty:ty, $value:expr) => {
        <$ty as $crate::Arg>::to_word($value)
    };
}
