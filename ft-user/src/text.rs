//! Text in an event: strings and byte slices become a part of its payload.
//!
//! A site passes each argument as a [`Pair`]. In the payload a number is one word, and text is a word with
//! its length in bytes and then the bytes, padded to words ([`ArgType::Str`]). A number that may be absent is
//! encoded as if it were eight bytes of text, and what is absent is one word that no length is. An event holds
//! [`MAX_WORDS`] words, so text is cut where it must be, and says so in its length word: shorter texts
//! stay whole, and the longer ones share what is left in equal parts. Numbers are never cut.
//!
//! [`MAX_WORDS`]: crate::ring::MAX_WORDS

use crate::arg::NONE;
use crate::layout::{ABSENT, Arg, ArgType, MAX_ARGS, TEXT_CUT};

/// Bytes of text that one event can hold, and one more: enough to tell that it was cut.
pub(crate) const ENOUGH: usize = 8 * crate::ring::MAX_WORDS + 1;

/// One argument as a site passes it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Pair {
    /// The word of a number, the address of text (null: empty).
    pub(crate) word: u64,
    /// The length of text in bytes, or [`TO_NUL`]; [`NONE`] of what is absent. Of a number: nothing.
    pub(crate) extent: u64,
}

/// Length of a text that ends with a NUL, as those of C do.
pub(crate) const TO_NUL: u64 = u64::MAX;

/// Puts the payload of an event into `words`, which are zero, and returns how many it takes.
///
/// # Safety
///
/// The addresses of texts are null or valid for their length, or up to their NUL.
pub(crate) unsafe fn encode(args: &[Arg], pairs: &[Pair], words: &mut [u64]) -> usize {
    let mut values = [Encoded::Absent; MAX_ARGS];
    let mut needs = [0; MAX_ARGS];
    let mut fixed = 0;
    for (((arg, pair), value), need) in args.iter().zip(pairs).zip(&mut values).zip(&mut needs) {
        // SAFETY: the caller vouches for the addresses of texts.
        *value = unsafe { Encoded::of(arg, pair) };
        fixed += value.fixed_words();
        if let Encoded::Text(bytes) = value {
            *need = bytes.len().div_ceil(8);
        }
    }
    let share = share(needs, words.len().saturating_sub(fixed));
    let mut at = 0;
    for (arg, value) in args.iter().zip(values).take(pairs.len()) {
        let Some((first, rest)) = words.get_mut(at..).and_then(<[u64]>::split_first_mut) else {
            break;
        };
        at += 1;
        match (value, rest.first_mut()) {
            (Encoded::Number(word), _) => *first = word,
            (Encoded::Present(word), Some(second)) => {
                (*first, *second) = (size_of::<u64>() as u64, word);
                at += 1;
            }
            (Encoded::Absent, _) | (Encoded::Present(_), None) => *first = ABSENT,
            (Encoded::Text(text), _) => {
                let kept = keep(arg, text, 8 * share.min(rest.len()));
                let cut = if kept.len() < text.len() { TEXT_CUT } else { 0 };
                *first = kept.len() as u64 | cut;
                at += kept.len().div_ceil(8);
                let to = rest.as_mut_ptr().cast();
                // SAFETY: `keep` leaves no more than the words of `rest` can hold.
                unsafe { core::ptr::copy_nonoverlapping(kept.as_ptr(), to, kept.len()) };
            }
        }
    }
    at
}

/// One argument, by how it is encoded.
#[derive(Clone, Copy)]
enum Encoded<'a> {
    Number(u64),
    /// An optional number that is there.
    Present(u64),
    Absent,
    Text(&'a [u8]),
}

impl Encoded<'_> {
    /// # Safety
    ///
    /// As for [`encode`].
    unsafe fn of<'a>(arg: &Arg, pair: &Pair) -> Encoded<'a> {
        let Some(ty) = ArgType::from_u8(arg.ty) else { return Encoded::Number(pair.word) };
        match (ty.is_optional(), ty.is_text()) {
            (true, _) if pair.extent == NONE => Encoded::Absent,
            // SAFETY: the caller vouches for the addresses of texts.
            (_, true) => Encoded::Text(unsafe { bytes(pair) }),
            (true, false) => Encoded::Present(pair.word),
            (false, false) => Encoded::Number(pair.word),
        }
    }

    /// Words that it takes besides the bytes of text.
    fn fixed_words(&self) -> usize {
        if matches!(self, Encoded::Present(_)) { 2 } else { 1 }
    }
}

/// The bytes of a text, at most [`ENOUGH`] of them.
///
/// # Safety
///
/// As for [`encode`].
unsafe fn bytes<'a>(pair: &Pair) -> &'a [u8] {
    let address = pair.word as usize as *const u8;
    if address.is_null() {
        return &[];
    }
    let length = match pair.extent {
        // SAFETY: the text has a NUL, says the caller; no byte behind it is read.
        TO_NUL => unsafe { libc::strnlen(address.cast(), ENOUGH) },
        length => (length as usize).min(ENOUGH),
    };
    // SAFETY: so many bytes are there.
    unsafe { core::slice::from_raw_parts(address, length) }
}

/// How many words each text may take at most, so that all fit into `room`.
fn share(mut needs: [usize; MAX_ARGS], mut room: usize) -> usize {
    needs.sort_unstable();
    for (satisfied, need) in needs.into_iter().enumerate() {
        let each = room / (MAX_ARGS - satisfied);
        if need > each {
            return each;
        }
        room -= need;
    }
    usize::MAX
}

/// The beginning of `text`, `room` bytes at most; no character of a string is cut in two.
fn keep<'a>(arg: &Arg, text: &'a [u8], room: usize) -> &'a [u8] {
    if text.len() <= room {
        return text;
    }
    let mut end = room;
    if ArgType::from_u8(arg.ty).is_some_and(|ty| ty.value() == ArgType::Str) {
        // A byte 10xxxxxx continues a character of four bytes at most (RFC 3629).
        while end > 0 && room - end < 3 && text[end] & 0xc0 == 0x80 {
            end -= 1;
        }
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arg as _;
    use crate::ring::MAX_WORDS;
    use crate::site;

    /// Argument of an event in a test.
    #[derive(Clone, Copy)]
    enum Value<'a> {
        Number(u64),
        Str(&'a str),
        Bytes(&'a [u8]),
        C(&'a core::ffi::CStr),
        Null,
        Maybe(Option<u64>),
        MaybeStr(Option<&'a str>),
    }

    /// Writes the arguments into a payload of `room` words, and reads it as a reader does: text and
    /// whether it was cut, numbers as they are.
    fn check(values: &[Value<'_>], room: usize, expected: &[(&[u8], bool)]) -> usize {
        let (args, pairs): (Vec<_>, Vec<_>) = values
            .iter()
            .map(|&value| match value {
                Value::Number(word) => (site::arg::<u64>("n"), Pair { word, extent: 9 }),
                Value::Str(text) => (
                    site::arg::<&str>("s"),
                    Pair { word: text.as_ptr() as u64, extent: text.len() as u64 },
                ),
                Value::Bytes(b) => (
                    site::arg::<&[u8]>("b"),
                    Pair { word: b.as_ptr() as u64, extent: b.len() as u64 },
                ),
                Value::C(text) => {
                    (site::arg::<&str>("c"), Pair { word: text.as_ptr() as u64, extent: TO_NUL })
                }
                Value::Null => (site::arg::<&str>("c"), Pair { word: 0, extent: TO_NUL }),
                Value::Maybe(n) => {
                    (site::arg::<Option<u64>>("o"), Pair { word: n.to_word(), extent: n.extent() })
                }
                Value::MaybeStr(s) => {
                    (site::arg::<Option<&str>>("t"), Pair { word: s.to_word(), extent: s.extent() })
                }
            })
            .unzip();
        let mut words = vec![0; room];
        // SAFETY: addresses and lengths are those of slices that live.
        let used = unsafe { encode(&args, &pairs, &mut words) };
        let mut words = words[..used].iter();
        let mut expected = expected.iter();
        for value in values {
            let first = *words.next().expect("a word for each argument");
            match value {
                Value::Number(number) => {
                    assert_eq!(first, *number);
                    continue;
                }
                Value::Maybe(None) | Value::MaybeStr(None) => {
                    assert_eq!(first, ABSENT);
                    continue;
                }
                Value::Maybe(Some(number)) => {
                    assert_eq!((first, words.next()), (8, Some(number)));
                    continue;
                }
                _ => (),
            }
            let length = (first & !TEXT_CUT) as usize;
            let text: Vec<u8> =
                words.by_ref().take(length.div_ceil(8)).flat_map(|w| w.to_ne_bytes()).collect();
            assert!(text[length..].iter().all(|&byte| byte == 0), "padding");
            let found = (&text[..length], first & TEXT_CUT != 0);
            assert_eq!(found, *expected.next().expect("a text"));
        }
        assert_eq!(words.next(), None);
        used
    }

    #[test]
    fn texts_and_numbers_keep_their_order() {
        use Value::*;
        check(&[Str("")], MAX_WORDS, &[(b"", false)]);
        check(&[Number(7), Str("twelve bytes"), Number(8)], MAX_WORDS, &[(b"twelve bytes", false)]);
        check(
            &[Bytes(&[0, 255]), C(c"of C"), Null],
            MAX_WORDS,
            &[(&[0, 255], false), (b"of C", false), (b"", false)],
        );
        check(&[Str("one"); 6], MAX_WORDS, &[(b"one".as_slice(), false); 6]);
    }

    #[test]
    fn what_is_absent_is_no_value() {
        use Value::*;
        for number in [0, 8, ABSENT, NONE, u64::MAX] {
            let used = check(&[Maybe(Some(number)), Maybe(None), Number(number)], MAX_WORDS, &[]);
            assert_eq!(used, 4);
        }
        let texts = [MaybeStr(Some("")), MaybeStr(None), MaybeStr(Some("there"))];
        check(&texts, MAX_WORDS, &[(b"", false), (b"there", false)]);
        // As much as the shared ring holds.
        assert_eq!(check(&[Maybe(Some(1)); 6], crate::layout::SHARED_WORDS, &[]), 12);
        check(&[Maybe(Some(1)), Str("cut here"), Maybe(Some(2))], 5, &[(b"", true)]);
    }

    #[test]
    fn text_is_cut_at_the_end_of_the_event() {
        let long = vec![b'x'; 1000];
        let room = 8 * (MAX_WORDS - 1);
        for length in [room - 1, room, room + 1, 1000] {
            let used = check(
                &[Value::Bytes(&long[..length])],
                MAX_WORDS,
                &[(&long[..length.min(room)], length > room)],
            );
            assert_eq!(used, MAX_WORDS);
        }
    }

    #[test]
    fn long_text_of_c_is_cut_too() {
        let long = std::ffi::CString::new([b'y'; 500]).unwrap();
        check(&[Value::C(&long)], MAX_WORDS, &[(&[b'y'; 8 * 37], true)]);
    }

    #[test]
    fn short_texts_stay_whole_and_long_ones_share() {
        let long = [b'x'; 400];
        // 38 words, less four for lengths and the number, less one for the short text.
        let each = 8 * ((38 - 4 - 1) / 2);
        check(
            &[Value::Bytes(&long), Value::Number(1), Value::Str("short"), Value::Bytes(&long)],
            MAX_WORDS,
            &[(&long[..each], true), (b"short", false), (&long[..each], true)],
        );
    }

    #[test]
    fn little_room_leaves_the_numbers() {
        let values =
            [Value::Str("some text"), Value::Number(1), Value::Str("more"), Value::Number(2)];
        check(&values, 4, &[(b"", true), (b"", true)]);
        check(&values, 6, &[(b"some tex", true), (b"more", false)]);
        check(&values, 7, &[(b"some text", false), (b"more", false)]);
    }

    #[test]
    fn no_character_is_cut_in_two() {
        for (text, kept) in
            [("1234567ß", "1234567"), ("12345\u{1f980}", "12345"), ("123456ßx", "123456ß")]
        {
            check(&[Value::Str(text)], 2, &[(kept.as_bytes(), true)]);
        }
        // Not UTF-8 at all, as C can pass it: cut somewhere near.
        let (args, raw) = ([site::arg::<&str>("s")], [0x80u8; 40]);
        let pair = Pair { word: raw.as_ptr() as u64, extent: 40 };
        let mut words = [0; 3];
        // SAFETY: the address and the length are those of `raw`.
        assert_eq!(unsafe { encode(&args, &[pair], &mut words) }, 3);
        assert_eq!(words[0], 13 | TEXT_CUT);
    }
}
