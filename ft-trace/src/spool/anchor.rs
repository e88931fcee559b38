//! Where reading goes on behind damage: the chunks of a spool file.
//!
//! **Rule.** Lengths chain the frames of a file, so a damaged one hides where the next begins. So each file begins with an anchor, and gets
//! another one before the frame with which [`BETWEEN_ANCHORS`] have come together since the last, and one at its end. An anchor is a frame with
//! the *token* of the recording, 16 random bytes that no program knows whose data stand in the frames: so nothing that a program writes is
//! taken for one. It tells what was written before it: what of that was not read is lost, and is counted.
//!
//! Damage loses at most the chunk that it hits, or the two on whose border it lies.

use ft_user::layout::{LOSS_KEY, SharedSlot, Slot, commit};

use super::frame::{Frame, Shared, Slots, kernel_record_len};

/// What is lost at most with a damaged byte, but for the frame that exceeds it.
pub(super) const BETWEEN_ANCHORS: usize = 64 << 10;

/// What no program knows.
pub type Token = [u8; 16];

/// What stands in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Frames, without anchors.
    pub frames: u64,
    /// Events of applications.
    pub events: u64,
    /// Records of the kernel.
    pub records: u64,
}

/// An anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The recording's.
    pub token: Token,
    /// What was written into the file before.
    pub before: Amounts,
}

/// What of a file could not be read: from a good frame to the next anchor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Where it begins.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// Why the frame there was refused.
    pub reason: super::frame::FrameError,
    /// What was lost.
    pub lost: Amounts,
}

impl Amounts {
    /// Amounts a frame.
    pub(super) fn add(&mut self, frame: &Frame<'_>) {
        self.frames += 1;
        match frame {
            Frame::Slots(Slots { bytes, .. }) => {
                self.events +=
                    bytes.chunks_exact(size_of::<Slot>()).filter(begins_event).count() as u64;
            }
            Frame::Shared(Shared { bytes, .. }) => {
                self.events += (bytes.len() / size_of::<SharedSlot>()) as u64;
            }
            Frame::Kernel(bytes) => self.records += records(bytes),
            _ => {}
        }
    }

    /// Without what was read.
    pub(super) fn without(&self, read: &Amounts) -> Amounts {
        Amounts {
            frames: self.frames.saturating_sub(read.frames),
            events: self.events.saturating_sub(read.events),
            records: self.records.saturating_sub(read.records),
        }
    }
}

/// A slot is the first of an event, and not the report of a loss.
fn begins_event(slot: &&[u8]) -> bool {
    let word = u64::from_le_bytes(slot[..8].try_into().expect("eight bytes"));
    word & commit::FLAGS == commit::COMMITTED && commit::key(word) != LOSS_KEY
}

fn records(mut bytes: &[u8]) -> u64 {
    let mut count = 0;
    while let Some(rest) = kernel_record_len(bytes).and_then(|len| bytes.get(len.max(1)..)) {
        (bytes, count) = (rest, count + 1);
    }
    count
}

/// A new token.
pub(super) fn token() -> std::io::Result<Token> {
    let mut token = [0; 16];
    // Up to 256 bytes come whole (getrandom(2)).
    rustix::rand::getrandom(&mut token, rustix::rand::GetRandomFlags::empty())?;
    Ok(token)
}

/// A token as text.
pub(super) fn told(token: &Token) -> String {
    format!("{:032x}", u128::from_be_bytes(*token))
}

/// The token that a text tells.
pub(super) fn parse(text: &str) -> Option<Token> {
    let is_told = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let token = u128::from_str_radix(text, 16).ok().filter(|_| is_told)?;
    Some(token.to_be_bytes())
}
