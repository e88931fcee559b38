//! The arguments of one event, gathered one by one.

use core::fmt::{self, Write as _};
use core::mem::MaybeUninit;

use crate::Arg;
use crate::arg::NONE;
use crate::layout::{ArgType, MAX_ARGS};
use crate::ring::MAX_WORDS;

/// Bytes of text that one event can hold, and one more.
pub(super) const ENOUGH: usize = 8 * MAX_WORDS + 1;

/// Arguments of one event, at most six. Text is copied: of each as much as an event can hold, and one byte more, by which
/// an event tells that it was cut.
pub struct Values {
    types: Types,
    /// Of text, where it begins in `text`.
    words: [u64; MAX_ARGS],
    /// As [`Arg::extent`].
    extents: [u64; MAX_ARGS],
    /// Not initialised beyond `used`.
    text: [MaybeUninit<u8>; MAX_ARGS * ENOUGH],
    used: usize,
}

/// How many arguments there are, and of which types.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Types(u64);

impl Types {
    /// So many bits a type; the number of types in the uppermost.
    const BITS: usize = 8;
    const COUNT_SHIFT: usize = 56;

    /// Those of a description.
    #[cfg_attr(ft_off, allow(dead_code, reason = "nothing is described"))]
    pub(super) fn of(types: impl Iterator<Item = ArgType>) -> Types {
        types.take(MAX_ARGS).fold(Types::default(), |mut all, ty| {
            all.push(ty);
            all
        })
    }

    /// How many there are, at most six.
    pub fn len(self) -> usize {
        (self.0 >> Self::COUNT_SHIFT) as usize
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = ArgType> {
        let bits = (0..self.len()).map(move |i| (self.0 >> (Self::BITS * i)) as u8);
        bits.filter_map(ArgType::from_u8)
    }

    fn last(self) -> Option<ArgType> {
        let last = self.len().checked_sub(1)?;
        ArgType::from_u8((self.0 >> (Self::BITS * last)) as u8)
    }

    #[inline]
    fn push(&mut self, ty: ArgType) {
        self.0 |= (ty as u64) << (Self::BITS * self.len());
        self.0 += 1 << Self::COUNT_SHIFT;
    }
}

impl Values {
    /// None yet.
    #[inline(always)]
    pub const fn new() -> Values {
        Values {
            types: Types(0),
            words: [0; MAX_ARGS],
            extents: [0; MAX_ARGS],
            text: [MaybeUninit::uninit(); MAX_ARGS * ENOUGH],
            used: 0,
        }
    }

    /// What they are.
    pub fn types(&self) -> Types {
        self.types
    }

    /// Adds a value; false when there are six already, and it is not taken.
    #[inline]
    pub fn push<T: Arg>(&mut self, value: T) -> bool {
        let (word, extent) = (value.to_word(), value.extent());
        if !T::TYPE.is_text() || extent == NONE {
            return self.add(T::TYPE, word, extent);
        }
        let taken = self.add(T::TYPE, self.used as u64, 0);
        if taken {
            let length = (extent as usize).min(ENOUGH);
            // SAFETY: `Arg` promises so many bytes at the address, as long as `value` lives.
            let bytes = unsafe { core::slice::from_raw_parts(word as usize as *const u8, length) };
            self.append(bytes);
        }
        taken
    }

    /// Adds a text that is to be written; `None` when there are six values already.
    #[inline]
    pub fn text(&mut self) -> Option<Text<'_>> {
        self.add(ArgType::Str, self.used as u64, 0).then_some(Text(self))
    }

    /// The last value, if it is text, to write more of it.
    #[inline]
    pub fn more(&mut self) -> Option<Text<'_>> {
        (self.types.last()? == ArgType::Str).then_some(Text(self))
    }

    /// Adds what is formatted as text; false when there are six values already. What its implementation has written before
    /// it fails stays.
    pub fn format(&mut self, text: fmt::Arguments<'_>) -> bool {
        let Some(mut to) = self.text() else { return false };
        // An error says that there is no room for more, or is that of who formats.
        let _ = to.write_fmt(text);
        true
    }

    #[inline]
    fn add(&mut self, ty: ArgType, word: u64, extent: u64) -> bool {
        let number = self.types.len();
        let taken = number < MAX_ARGS;
        if taken {
            self.types.push(ty);
            (self.words[number], self.extents[number]) = (word, extent);
        }
        taken
    }

    /// Adds to the last value, which is text, as much as an event can tell of it; whether that was all.
    #[inline]
    fn append(&mut self, bytes: &[u8]) -> bool {
        let extent = &mut self.extents[self.types.len() - 1];
        let kept = bytes.len().min(ENOUGH - *extent as usize);
        let room = &mut self.text[self.used..self.used + kept];
        // SAFETY: both are so long, and `bytes` is none of ours.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), room.as_mut_ptr().cast(), kept) };
        self.used += kept;
        *extent += kept as u64;
        kept == bytes.len()
    }

    /// Whether each of them is one word.
    #[cfg_attr(ft_off, allow(dead_code, reason = "nothing is written"))]
    pub(super) fn are_words(&self) -> bool {
        !self.types.iter().any(|ty| ty.is_text() || ty.is_optional())
    }

    /// The words, if each is one; zero behind the last.
    #[cfg_attr(ft_off, allow(dead_code, reason = "nothing is written"))]
    pub(super) fn words(&self) -> &[u64; MAX_ARGS] {
        &self.words
    }

    /// What [`Arg`] says of each: of text an address that is valid for its length as long as `self` is borrowed.
    #[cfg_attr(ft_off, allow(dead_code, reason = "nothing is written"))]
    pub(super) fn parts(&self) -> impl Iterator<Item = (u64, u64)> {
        self.types.iter().zip(self.words).zip(self.extents).map(|((ty, word), extent)| {
            let is_there = ty.is_text() && extent != NONE;
            let start = || self.text[word as usize..].as_ptr() as usize as u64;
            (if is_there { start() } else { word }, extent)
        })
    }
}

impl Default for Values {
    fn default() -> Values {
        Values::new()
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.types.fmt(f)
    }
}

/// A text among the values. Writing fails when an event could not hold more of it.
#[derive(Debug)]
pub struct Text<'a>(&'a mut Values);

impl fmt::Write for Text<'_> {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.append(text.as_bytes()) { Ok(()) } else { Err(fmt::Error) }
    }
}
