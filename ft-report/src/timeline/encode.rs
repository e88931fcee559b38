//! Spans and series as bytes, and bytes as text of the page; the other end is `script/codec.js`.
//!
//! Numbers have seven bits a byte, the lowest first (LEB128). The spans of a lane are written column by column, begins as
//! distances, so that equal bytes stand together; zlib, which every browser can undo, does the rest, and base64
//! makes text of it.

use std::cmp::Reverse;
use std::io::Write;
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use ft_trace::Mark;
use ft_trace::words::Word;

/// A span of a lane, in ns since the timeline's begin. What `kind`, `a` and `b` mean depends on the lane (`script/types.js`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) kind: u8,
    pub(super) mark: Mark,
    pub(super) a: u32,
    pub(super) b: u32,
}

/// Bytes that are being written.
#[derive(Debug, Default)]
pub(super) struct Bytes(Vec<u8>);

impl Bytes {
    /// Appends a number.
    pub(super) fn number(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    /// Appends a text and its length.
    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Appends what of a lane lies in `window`, by begin; of equal ones the longest comes first.
    pub(super) fn lane(&mut self, spans: &mut Vec<Span>, window: &Range<i64>) {
        spans.retain_mut(|span| {
            let inside = span.from < window.end && span.to >= window.start;
            span.from = span.from.max(window.start);
            span.to = span.to.min(window.end);
            inside
        });
        spans.sort_by_key(|span| (span.from, Reverse(span.to)));
        self.number(spans.len() as u64);
        let mut before = window.start;
        for span in &*spans {
            self.number((span.from - before) as u64);
            before = span.from;
        }
        spans.iter().for_each(|s| self.number((s.to - s.from) as u64));
        spans.iter().for_each(|s| self.number(u64::from(s.kind) << 2 | s.mark.index() as u64));
        spans.iter().for_each(|s| self.number(s.a.into()));
        spans.iter().for_each(|s| self.number(s.b.into()));
    }

    /// As the page has them.
    pub(super) fn pack(&self) -> String {
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::new(6));
        let written = packed.write_all(&self.0).and_then(|()| packed.finish());
        STANDARD.encode(written.expect("memory takes whatever is written to it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_seven_bits_a_byte() {
        let mut bytes = Bytes::default();
        [0, 127, 128, 300, u64::from(u32::MAX)].into_iter().for_each(|n| bytes.number(n));
        assert_eq!(bytes.0, [0, 127, 0x80, 1, 0xac, 2, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    }

    #[test]
    fn a_lane_is_cut_at_its_window_and_ordered_by_begin() {
        let span = |from, to| Span { from, to, kind: 1, mark: Mark::LowerBound, a: 7, b: 0 };
        let mut spans = vec![span(30, 90), span(0, 15), span(30, 40), span(60, 70), span(5, 9)];
        let mut bytes = Bytes::default();
        bytes.lane(&mut spans, &(10..50));
        let columns = [3, 0, 20, 0, 5, 20, 10, 6, 6, 6, 7, 7, 7, 0, 0, 0];
        assert_eq!(bytes.0, columns);
    }

    #[test]
    fn what_was_packed_can_be_unpacked() {
        let mut bytes = Bytes::default();
        (0..1000).for_each(|n| bytes.number(n));
        let packed = STANDARD.decode(bytes.pack()).expect("base64");
        let mut back = flate2::write::ZlibDecoder::new(Vec::new());
        back.write_all(&packed).expect("what zlib has made");
        assert_eq!(back.finish().expect("whole"), bytes.0);
    }
}
