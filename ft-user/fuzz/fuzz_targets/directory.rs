//! The directory: any bytes. It ends, reads no further than it says, and finds the same entries when
//! the bytes come in two parts, as they do while the process writes.
#![no_main]

use ft_user::directory::{Entry, Malformed, parse};
use libfuzzer_sys::fuzz_target;

type Found<'a> = Vec<Result<Entry<'a>, Malformed>>;

fn all(bytes: &[u8]) -> (Found<'_>, usize) {
    let mut parser = parse(bytes);
    let found: Found<'_> = parser.by_ref().collect();
    (found, parser.consumed())
}

fuzz_target!(|input: (u16, &[u8])| {
    let (cut, bytes) = input;
    let (whole, consumed) = all(bytes);
    assert!(consumed <= bytes.len());

    let (mut parts, first) = all(&bytes[..usize::from(cut).min(bytes.len())]);
    // What stands behind an impossible size is not asked for again.
    if parts.last() != Some(&Err(Malformed::Size)) {
        let (rest, second) = all(&bytes[first..]);
        parts.extend(rest);
        assert_eq!((parts, first + second), (whole, consumed));
    }
});
