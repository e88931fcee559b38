//! What an event may carry: the [`Arg`] trait. A number is one word; text is an address and a length
//! until the event is written, and then a part of it (`text.rs`).

use core::num::NonZero;
use core::time::Duration;

use crate::layout::ArgType;

/// What [`Arg::extent`] says of `None`. No text is as long.
pub(crate) const NONE: u64 = u64::MAX - 1;

/// A type that an event can carry as an argument.
///
/// | type | what is recorded |
/// |---|---|
/// | integers up to 64 bits, `NonZero` of these | the number |
/// | `f32`, `f64`, `bool`, raw pointers, [`Tsc`] | the value |
/// | `char` | its code point |
/// | [`Duration`] | whole nanoseconds, at most `u64::MAX` (584 years) |
/// | `&str`, `&String`, `&[u8]`, `&Vec<u8>`, `&[u8; N]` | a copy of the text or the bytes |
/// | `Option` of any of these | the same; for `None` the column is null, which no value is |
///
/// A `u128` does not fit: give its halves as two arguments (`high: u64 = (x >> 64) as u64, low: u64 = x as u64`).
///
/// Both methods run in the cold block of a site, only while the site is enabled.
///
/// # Safety
///
/// If `TYPE` is a text ([`ArgType::is_text`]), as many bytes as [`extent`](Arg::extent) says can be read at the address
/// that [`to_word`](Arg::to_word) returns, as long as `self` lives.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of an event",
    note = "an argument is a number of up to 64 bits, `bool`, `char`, `Duration`, a raw pointer, `&str`, `&[u8]`, or an \
            `Option` of one of these; give the parts of anything else (the halves of a `u128`) as arguments of their own"
)]
pub unsafe trait Arg: Copy {
    /// How a reader shows the value.
    const TYPE: ArgType;

    /// The value in one word: integers extended to 64 bits by their sign, floats as the bits of an
    /// `f64`, pointers and text as their address.
    fn to_word(self) -> u64;

    /// The length of text in bytes, and whether there is a value at all. Nobody asks a number.
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
    char => Unsigned, |v| v as u64;
    Duration => Unsigned, |v| nanoseconds(v);
}

#[inline(always)]
fn nanoseconds(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos().into())
}

macro_rules! impl_non_zero {
    ($($ty:ty)*) => {$(
        // SAFETY: not text.
        unsafe impl Arg for NonZero<$ty> {
            const TYPE: ArgType = <$ty as Arg>::TYPE;
            #[inline(always)]
            fn to_word(self) -> u64 {
                self.get().to_word()
            }
        }
    )*};
}

impl_non_zero! { u8 u16 u32 u64 usize i8 i16 i32 i64 isize }

// SAFETY: what is there is what `T` says; the extent of `None` says that nothing is.
unsafe impl<T: Arg> Arg for Option<T> {
    const TYPE: ArgType = T::TYPE.optional();
    #[inline(always)]
    fn to_word(self) -> u64 {
        self.map_or(0, T::to_word)
    }
    #[inline(always)]
    fn extent(self) -> u64 {
        self.map_or(NONE, T::extent)
    }
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
    ($($ty:ty => $kind:ident $(for $length:ident)?;)*) => {$(
        // SAFETY: a slice tells its own address and length, and borrows what is there; so does a reference to
        // what owns one.
        unsafe impl$(<const $length: usize>)? Arg for $ty {
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
    &String => Str;
    &[u8] => Bytes;
    &Vec<u8> => Bytes;
    &[u8; N] => Bytes for N;
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
    fn what_wraps_a_number_is_the_number() {
        assert_eq!(NonZero::new(-3i16).unwrap().to_word(), -3i64 as u64);
        assert_eq!('€'.to_word(), 0x20ac);
        assert_eq!(Duration::new(3, 7).to_word(), 3_000_000_007);
        assert_eq!(Duration::MAX.to_word(), u64::MAX);
    }

    #[test]
    fn what_may_be_absent_says_whether_it_is() {
        let (some, none) = (Some(-1i32), None::<i32>);
        assert_eq!((some.to_word(), none.to_word()), (u64::MAX, 0));
        assert_ne!(some.extent(), none.extent());
        assert_ne!(Some("").extent(), None::<&str>.extent());
        assert_eq!(<Option<NonZero<u8>>>::TYPE, ArgType::OptionalUnsigned);
        assert_eq!(<Option<&[u8]>>::TYPE.value(), ArgType::Bytes);
    }

    #[test]
    fn every_type_has_an_optional_form_and_back() {
        let types = (0..=u8::MAX).filter_map(ArgType::from_u8);
        let (optional, plain): (Vec<_>, Vec<_>) = types.partition(|ty| ty.is_optional());
        assert!(plain.iter().map(|ty| ty.optional()).eq(optional.iter().copied()));
        assert!(optional.iter().map(|ty| ty.value()).eq(plain));
    }

    #[test]
    fn what_owns_text_is_text() {
        let (text, bytes, array) = (String::from("text"), vec![1u8, 2], [0u8; 3]);
        let found = [(&text).extent(), (&bytes).extent(), (&array).extent()];
        assert_eq!(found, [4, 2, 3]);
        assert_eq!((&array).to_word(), array.as_ptr() as u64);
        assert_eq!((<&String>::TYPE, <&[u8; 3]>::TYPE), (ArgType::Str, ArgType::Bytes));
    }

    #[test]
    fn text_is_address_and_length() {
        let text = "text";
        assert_eq!((text.to_word(), text.extent()), (text.as_ptr() as u64, 4));
        let empty: &[u8] = &[];
        assert_eq!((<&[u8]>::TYPE, empty.extent()), (ArgType::Bytes, 0));
    }
}
