//! Answers of a worker as a packet. A text stands in it once as a rule: neighbouring addresses are of the same functions and files.
//!
//! An answer is a byte that is 1 if the address is known, the address, a byte with the number of symbols, and of each the indices of its
//! name and its file among the packet's texts and its line. Behind the first index of a text stand its length and itself. All numbers are
//! in the order of x86-64.

use std::collections::HashSet;
use std::sync::Arc;

use super::program::MAX_INLINED;
use super::wire::MAX_PACKET_BYTES;
use super::{Answer, Symbol};
use crate::demangle::{MAX_DEMANGLED_BYTES, cut};
use crate::ids::Name;

/// Texts of a packet among which one is looked for, from the last on. One that stands farther before is said again.
const LOOKED_AT: usize = 8;

/// Answers that are about to be said.
#[derive(Default)]
pub(super) struct Packet {
    bytes: Vec<u8>,
    texts: Vec<Name>,
}

impl Packet {
    /// Adds an answer; false where there is no room for it.
    pub(super) fn add(&mut self, answer: &Answer) -> bool {
        let before = (self.bytes.len(), self.texts.len());
        self.bytes.push(u8::from(answer.at.is_some()));
        self.bytes.extend(answer.at.unwrap_or(0).to_le_bytes());
        self.bytes.push(answer.symbols.len() as u8);
        for symbol in &answer.symbols {
            self.text(&symbol.name);
            self.text(&symbol.file);
            self.bytes.extend(symbol.line.to_le_bytes());
        }
        let fits = self.bytes.len() <= MAX_PACKET_BYTES;
        if !fits {
            self.bytes.truncate(before.0);
            self.texts.truncate(before.1);
        }
        fits
    }

    fn text(&mut self, text: &Name) {
        let last = self.texts.iter().enumerate().rev().take(LOOKED_AT);
        let found = last.into_iter().find(|(_, said)| Arc::ptr_eq(said, text));
        let index = found.map_or(self.texts.len(), |(index, _)| index);
        self.bytes.extend((index as u16).to_le_bytes());
        if found.is_none() {
            self.bytes.extend((text.len() as u16).to_le_bytes());
            self.bytes.extend(text.as_bytes());
            self.texts.push(text.clone());
        }
    }

    /// Whether there is no answer.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What there is so far; there is nothing afterwards.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.texts.clear();
        std::mem::take(&mut self.bytes)
    }
}

/// Texts that were said, each once.
#[derive(Default)]
pub(super) struct Known {
    texts: HashSet<Name>,
    /// How long they are together.
    pub(super) bytes: usize,
}

impl Known {
    fn text(&mut self, bytes: &[u8]) -> Name {
        let text = cut(bytes, MAX_DEMANGLED_BYTES);
        if let Some(known) = self.texts.get(&*text) {
            return known.clone();
        }
        let new = Name::from(text);
        self.bytes += new.len();
        self.texts.insert(new.clone());
        new
    }
}

/// The answers of a packet; `None` where it is none. Whoever has taken over a worker has made it.
pub(super) fn answers(mut packet: &[u8], known: &mut Known) -> Option<Vec<Answer>> {
    let (mut answers, mut texts) = (Vec::new(), Vec::new());
    while !packet.is_empty() {
        let [is_known, count] = [packet[0], *packet.get(9)?];
        if usize::from(count) > MAX_INLINED {
            return None;
        }
        let at = u64::from_le_bytes(*packet.get(1..)?.first_chunk()?);
        packet = &packet[10..];
        let mut symbols = Vec::new();
        for _ in 0..count {
            let name = text(&mut packet, &mut texts, known)?;
            let file = text(&mut packet, &mut texts, known)?;
            let line = u32::from_le_bytes(*packet.split_off(..4)?.first_chunk()?);
            symbols.push(Symbol { name, file, line });
        }
        answers.push(Answer { at: (is_known == 1).then_some(at), symbols });
    }
    // Who says nothing would say it for ever.
    (!answers.is_empty()).then_some(answers)
}

fn text(packet: &mut &[u8], texts: &mut Vec<Name>, known: &mut Known) -> Option<Name> {
    let index = number(packet)?;
    if index == texts.len() {
        let length = number(packet)?;
        texts.push(known.text(packet.split_off(..length)?));
    }
    texts.get(index).cloned()
}

fn number(packet: &mut &[u8]) -> Option<usize> {
    Some(u16::from_le_bytes(*packet.split_off(..2)?.first_chunk()?).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: &Name) -> Symbol {
        Symbol { name: name.clone(), file: "a.c".into(), line: 7 }
    }

    fn some() -> Vec<Answer> {
        let (f, g) = (Name::from("f"), Name::from("\u{e4}"));
        vec![
            Answer::default(),
            Answer { at: Some(u64::MAX), symbols: vec![symbol(&f), symbol(&g), symbol(&f)] },
            Answer { at: Some(0), symbols: vec![] },
        ]
    }

    fn packed(all: &[Answer]) -> Vec<u8> {
        let mut packet = Packet::default();
        assert!(all.iter().all(|answer| packet.add(answer)));
        packet.take()
    }

    #[test]
    fn what_is_answered_is_understood() {
        let mut known = Known::default();
        assert_eq!(answers(&packed(&some()), &mut known), Some(some()));
        assert_eq!(known.bytes, "fa.c\u{e4}".len(), "each text counts once");
        assert_eq!(answers(&packed(&some()), &mut known), Some(some()));
        assert_eq!(known.bytes, "fa.c\u{e4}".len());
    }

    #[test]
    fn a_text_stands_in_a_packet_once() {
        let name = Name::from("n".repeat(4000));
        let all = vec![Answer { at: Some(1), symbols: vec![symbol(&name); 20] }; 20];
        let packet = packed(&all);
        assert!(packet.len() < 2 * 4000 + 20 * 20 * 30, "{}", packet.len());
        assert_eq!(answers(&packet, &mut Known::default()), Some(all));
        // A second packet does not go by the texts of the first.
        let mut packet = Packet::default();
        for _ in 0..2 {
            assert!(packet.add(&some()[1]));
            assert_eq!(answers(&packet.take(), &mut Known::default()).unwrap(), some()[1..2]);
        }
    }

    #[test]
    fn rubbish_is_none() {
        let (packet, mut known) = (packed(&some()), Known::default());
        assert_eq!(answers(&[], &mut known), None);
        for length in 1..packet.len() {
            let whole = answers(&packet[..length], &mut known);
            assert!(whole.is_none_or(|whole| whole.len() < 3), "{length}");
        }
        for at in 0..packet.len() {
            let mut damaged = packet.clone();
            damaged[at] = 0xff;
            answers(&damaged, &mut known);
        }
        let many = Answer { symbols: vec![Symbol::default(); MAX_INLINED + 1], at: None };
        assert_eq!(answers(&packed(&[many]), &mut known), None);
        // The first text of a packet has the index 0.
        let mut packet = packed(&some()[1..2]);
        packet[10] = 1;
        assert_eq!(answers(&packet, &mut known), None);
    }

    #[test]
    fn a_packet_is_bounded() {
        let long = || Symbol { name: "n".repeat(4096).into(), ..Symbol::default() };
        let answer = || Answer { at: Some(1), symbols: (0..5).map(|_| long()).collect() };
        let mut packet = Packet::default();
        let fitting = (0..10).take_while(|_| packet.add(&answer())).count();
        // What did not fit has left nothing behind.
        let last = Answer { at: Some(2), symbols: vec![symbol(&"n".into())] };
        assert!(packet.add(&last));
        let bytes = packet.take();
        assert!(bytes.len() <= MAX_PACKET_BYTES);
        let said = answers(&bytes, &mut Known::default()).unwrap();
        assert_eq!((fitting, said.len()), (3, 4));
        assert_eq!(said[3], last);
    }
}
