//! The payload words of an event to the columns of its arguments.

use ft_user::layout::{ABSENT, ArgType, MAX_ARGS, SHARED_WORDS, TEXT_CUT};

use super::SLOT_WORDS;
use crate::clock::Cursor;
use crate::convert::registry::Site;
use crate::ids::{Name, Tsc};
use crate::tables::UserEvent;

/// Payload words of one event.
pub(super) struct Payload<'a> {
    /// From its first slot on.
    pub(super) words: &'a [u64],
    pub(super) continuations: usize,
    pub(super) shared: bool,
}

impl Payload<'_> {
    /// Number of payload words.
    fn len(&self) -> usize {
        let words = 2 + 3 * self.continuations;
        if self.shared { words.min(SHARED_WORDS) } else { words }
    }

    /// Payload word `i`: two in the first slot, three in each continuation behind its commit word.
    fn get(&self, i: usize) -> Option<u64> {
        let at = match i {
            _ if i >= self.len() => return None,
            _ if self.shared => 3 + i,
            0 | 1 => 2 + i,
            _ => (1 + (i - 2) / 3) * SLOT_WORDS + 1 + (i - 2) % 3,
        };
        self.words.get(at).copied()
    }
}

/// Decodes the arguments into their columns. What is absent, and what the event is too short for, stays null.
pub(super) fn arguments(
    row: &mut UserEvent,
    site: &Site,
    payload: &Payload<'_>,
    cursor: &mut Cursor<'_>,
) {
    let mut at = 0;
    for (i, ty) in site.args.iter().enumerate().take(MAX_ARGS) {
        let Some(mut word) = payload.get(at) else { return };
        at += 1;
        if ty.is_optional() {
            if word == ABSENT {
                continue;
            }
            if !ty.is_text() {
                let Some(value) = payload.get(at) else { return };
                word = value;
                at += 1;
            }
        }
        match ty.value() {
            ArgType::Unsigned | ArgType::Signed | ArgType::Bool | ArgType::Pointer => {
                row.arg[i] = Some(word as i64);
            }
            ArgType::Float => row.argf[i] = Some(f64::from_bits(word)),
            ArgType::Tsc => row.arg[i] = Some(cursor.to_ns(Tsc(word)).0),
            ArgType::Str | ArgType::Bytes => {
                let length = (word & !TEXT_CUT) as usize;
                let bytes = bytes(payload, at, length);
                at = at.saturating_add(length.div_ceil(8));
                let cut = word & TEXT_CUT != 0 || bytes.len() < length;
                row.argt[i] = Some(text(ty.value(), &bytes, cut));
            }
            _ => {}
        }
    }
}

/// `length` bytes from payload word `at` on, or as many as there are.
fn bytes(payload: &Payload<'_>, at: usize, length: usize) -> Vec<u8> {
    let words = (at..payload.len()).map_while(|i| payload.get(i));
    words.flat_map(u64::to_ne_bytes).take(length).collect()
}

/// Text as it is (what is not UTF-8 replaced), bytes in hexadecimal; an ellipsis where it was cut.
fn text(ty: ArgType, bytes: &[u8], cut: bool) -> Name {
    let mut text = match ty {
        ArgType::Bytes => bytes.iter().map(|b| format!("{b:02x}")).collect(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    };
    if cut {
        text.push('…');
    }
    text.into()
}
