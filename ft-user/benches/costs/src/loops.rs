//! Loops around a subject. Two bodies: *latency*, one dependency chain that leaves most issue slots
//! empty, where a trigger can hide; *issue*, six chains that fill them, where it cannot.

/// One step of each chain.
#[macro_export]
macro_rules! step {
    ($($x:ident)*) => {$(
        $x ^= $x << 13;
        $x ^= $x >> 7;
        $x ^= $x << 17;
        // SAFETY: no instruction. Holds each chain in a register of its own: in vector registers the
        // six would leave issue slots empty.
        unsafe {
            ::std::arch::asm!(
                "/* {} */", inout(reg) $x, options(pure, nomem, nostack, preserves_flags)
            )
        };
    )*};
}

/// Holds a value in a register, so that every loop counts in the same way, with or without a use of
/// its counter.
#[macro_export]
macro_rules! hold {
    ($i:ident) => {
        // SAFETY: no instruction.
        unsafe {
            ::std::arch::asm!("/* {} */", in(reg) $i, options(nomem, nostack, preserves_flags))
        }
    };
}

/// A function with one dependency chain around the subject.
#[macro_export]
macro_rules! latency {
    ($name:ident, |$x:ident, $i:ident| $subject:expr) => {
        #[inline(never)]
        fn $name(n: u64, mut $x: u64) -> u64 {
            for $i in 0..n {
                $crate::step!($x);
                $crate::hold!($i);
                $subject;
            }
            $x
        }
    };
}

/// A function with six dependency chains around the subject.
#[macro_export]
macro_rules! issue {
    ($name:ident, |$x:ident, $i:ident| $subject:expr) => {
        #[inline(never)]
        fn $name(n: u64, mut $x: u64) -> u64 {
            let (mut a, mut b, mut c, mut d, mut e) = ($x + 1, $x + 2, $x + 3, $x + 4, $x + 5);
            for $i in 0..n {
                $crate::step!($x a b c d e);
                $crate::hold!($i);
                $subject;
            }
            $x ^ a ^ b ^ c ^ d ^ e
        }
    };
}

/// Sixteen copies.
#[macro_export]
macro_rules! sixteen {
    ($e:expr) => {
        $crate::four!($crate::four!($e))
    };
}

/// Four copies.
#[macro_export]
macro_rules! four {
    ($e:expr) => {{
        $e;
        $e;
        $e;
        $e;
    }};
}
