//! What an event may carry: the [`Arg`] trait. A number is one word; text is an address and a length
//! until the event is written, and then a part of it (`text.rs`).

use crate::layout::ArgType;

/// A type that an event can carry as an argument.
///
/// Implemented for the integers up to 64 bits, `f32` and `f64`, `bool`, raw pointers, [`Tsc`], `&str` and
/// `&[u8]`. Both methods run in the cold block of a site, only while the site is enabled.
///
/// # Safety
///
/// If `TYPE` is [`ArgType::Str`] or [`ArgType::Bytes`], as many bytes as [`extent`](Arg::extent) says can
/// be read at the address that [`to_word`](Arg::to_word) returns, as long as `self` lives.
pub unsafe trait Arg: Copy {
    /// How a reader shows the value.
    const TYPE: ArgType;

    /// The value in one word: integers extended to 64 bits by their sign, floats as the bits of an
    /// `f64`, pointers and text as their address.
    fn to_word(self) -> u64;

    /// The length of text in bytes. Nobody asks a number.
    #[inline(always)]
    fn extent(self) -> u64 {
        0
    }
}

/// A value of the time stamp counter, in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Tsc(
    /// Cycles.
    pub u64,
);

macro_rules! impl_arg {
    ($($ty:ty => $kind:ident, |$value:ident| $word:expr;)*) => {$(
        // SAFETY: not text.
        unsafe impl Arg for $ty {
            const TYPE: ArgType = ArgType::$kind;
            #[inline(always)]
            fn to_word(self) -> u64 {
                let $value = self;
                $word
            }
        }
    )*};
}

impl_arg! {
    u8 => Unsigned, |v| v as u64;
    u16 => Unsigned, |v| v as u64;
    u32 => Unsigned, |v| v as u64;
    u64 => Unsigned, |v| v;
    usize => Unsigned, |v| v as u64;
    i8 => Signed, |v| v as i64 as u64;
    i16 => Signed, |v| v as i64 as u64;
    i32 => Signed, |v| v as i64 as u64;
    i64 => Signed, |v| v as u64;
    isize => Signed, |v| v as i64 as u64;
    f32 => Float, |v| (v as f64).to_bits();
    f64 => Float, |v| v.to_bits();
    bool => Bool, |v| v as u64;
    Tsc => Tsc, |v| v.0;
}

// SAFETY: not text.
unsafe impl<T> Arg for *const T {
    const TYPE: ArgType = ArgType::Pointer;
    #[inline(always)]
    fn to_word(self) -> u64 {
        self as usize as u64
    }
}

// SAFETY: not text.
unsafe impl<T> Arg for *mut T {
    const TYPE: ArgType = ArgType::Pointer;
    #[inline(always)]
    fn to_word(self) -> u64 {
        self as usize as u64
    }
}

macro_rules! impl_text {
    ($($ty:ty => $kind:ident;)*) => {$(
        // SAFETY: a slice tells its own address and length, and borrows what is there.
        unsafe impl Arg for $ty {
            const TYPE: ArgType = ArgType::$kind;
            #[inline(always)]
            fn to_word(self) -> u64 {
                self.as_ptr() as usize as u64
            }
            #[inline(always)]
            fn extent(self) -> u64 {
                self.len() as u64
            }
        }
    )*};
}

impl_text! {
    &str => Str;
    &[u8] => Bytes;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_the_value() {
        assert_eq!((-1i8).to_word(), u64::MAX);
        assert_eq!(255u8.to_word(), 255);
        assert_eq!(i32::MIN.to_word() as i64, i32::MIN as i64);
        assert_eq!(f64::from_bits(1.5f32.to_word()), 1.5);
        assert_eq!(true.to_word(), 1);
        assert_eq!((0x1000 as *const u8).to_word(), 0x1000);
        assert_eq!(Tsc(7).to_word(), 7);
        assert_eq!(<*mut u8 as Arg>::TYPE, ArgType::Pointer);
    }

    #[test]
    fn text_is_address_and_length() {
        let text = "text";
        assert_eq!((text.to_word(), text.extent()), (text.as_ptr() as u64, 4));
        let empty: &[u8] = &[];
        assert_eq!((<&[u8]>::TYPE, empty.extent()), (ArgType::Bytes, 0));
    }
}
