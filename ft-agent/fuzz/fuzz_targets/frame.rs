//! A frame of the spool: any bytes, with a good header half of the time. What is decoded can be encoded
//! and is then the same.
#![no_main]

use ft_trace::spool::frame::{Frame, HEADER_BYTES, MAGIC, VERSION, declared_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, u16, &[u8])| {
    let (framed, kind, bytes) = input;
    let data = if framed { frame(kind % 12, bytes) } else { bytes.to_vec() };
    let decoded = Frame::decode(&data);
    if framed && matches!(kind % 12, 4 | 8) && bytes.len() >= 8 {
        assert!(decoded.is_ok(), "a directory and kernel records are any bytes: {decoded:?}");
    }
    let Ok((first, size)) = decoded else { return };
    assert_eq!(declared_bytes(&data), Some(size));
    assert!((HEADER_BYTES..=data.len()).contains(&size));
    let mut again = Vec::new();
    first.encode(&mut again);
    let (second, _) = Frame::decode(&again).unwrap();
    // The one fraction, the clock's rate, may come back from its decimal form one unit off.
    if !matches!(first, Frame::Start(_)) {
        assert_eq!(first, second);
    }
});

/// The header of the spool's own format, as its documentation gives it, before the payload.
fn frame(kind: u16, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_le_bytes();
    let sum = crc(&[&kind.to_le_bytes(), &len[..], payload].concat());
    let header = [&MAGIC.to_le_bytes()[..], &VERSION.to_le_bytes(), &kind.to_le_bytes(), &len];
    [&header.concat()[..], &sum.to_le_bytes(), payload].concat()
}

/// CRC-32 (IEEE 802.3), bit by bit.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| crc >> 1 ^ (0xedb8_8320 * (crc & 1)))
    })
}
