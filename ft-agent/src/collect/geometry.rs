//! Where the parts of a process's memfd are, checked once.
//!
//! Rule: the header is read once, into memory of our own, and judged there; every later access uses
//! the [`Geometry`] that came out of it, never the header again. All regions lie in the file, in the
//! documented order, and do not overlap; all counts are within the limits of [`ft_user::layout`].

use std::mem::{offset_of, size_of};

use ft_user::layout::{
    DIR_BYTES, Header, MAGIC, MAX_RING_SLOTS, MAX_RINGS, MIN_RING_SLOTS, Mode, PAGE, SharedSlot,
    Slot, VERSION,
};

/// Largest shared ring that is accepted, in slots: 128 MiB.
///
/// Limit: as `MAX_RINGS` of `layout.rs`.
const MAX_SHARED_SLOTS: u32 = 1 << 20;

/// The parts of one memfd; see the picture in [`ft_user::layout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Size of the file.
    pub total_bytes: usize,
    /// Number that the process says it has in its own PID namespace.
    pub pid: u32,
    /// What full rings do.
    pub mode: Mode,
    /// Start of the directory of [`DIR_BYTES`].
    pub dir_offset: usize,
    /// Start of the control page of the shared ring; its slots follow.
    pub shared_offset: usize,
    /// Slots of the shared ring, a power of two.
    pub shared_slots: u32,
    /// Start of the control page of ring 0; its slots follow.
    pub rings_offset: usize,
    /// From one ring to the next.
    pub ring_stride: usize,
    /// Rings, `1 ..= MAX_RINGS`.
    pub ring_count: u32,
    /// Slots per ring, a power of two in `MIN_RING_SLOTS ..= MAX_RING_SLOTS`.
    pub ring_slots: u32,
}

/// Why a header is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The file is shorter than a header.
    #[error("it is shorter than a header")]
    Short,
    /// Not [`MAGIC`]: not ours, or not ready yet.
    #[error("it does not begin with the magic number of Feather-Trace")]
    Magic,
    /// Another version of the layout.
    #[error(
        "it has layout version {0}, this agent reads version {VERSION}: build both from one release"
    )]
    Version(u32),
    /// A field has a value that is not allowed.
    #[error("its field {field} is {value}")]
    Field {
        /// Name in [`Header`].
        field: &'static str,
        /// Its value.
        value: u64,
    },
}

/// Bytes of a header.
pub const HEADER_BYTES: usize = size_of::<Header>();

macro_rules! field {
    ($bytes:expr, $field:ident: $ty:ty) => {{
        let at = offset_of!(Header, $field);
        <$ty>::from_ne_bytes($bytes[at..at + size_of::<$ty>()].try_into().expect("exact size"))
    }};
}

impl Geometry {
    /// Judges the first [`HEADER_BYTES`] of a file of `file_bytes`.
    ///
    /// # Errors
    ///
    /// The first rule that it breaks.
    pub fn check(header: &[u8; HEADER_BYTES], file_bytes: u64) -> Result<Geometry, Malformed> {
        if field!(header, magic: u64) != MAGIC {
            return Err(Malformed::Magic);
        }
        let version = field!(header, version: u32);
        if version != VERSION {
            return Err(Malformed::Version(version));
        }
        let ensure = |holds: bool, field: &'static str, value: u64| {
            if holds { Ok(()) } else { Err(Malformed::Field { field, value }) }
        };

        let header_bytes = field!(header, header_bytes: u32);
        ensure(header_bytes as usize == HEADER_BYTES, "header_bytes", header_bytes.into())?;
        let mode = match field!(header, mode: u32) {
            0 => Mode::Discard,
            1 => Mode::Overwrite,
            other => return Err(Malformed::Field { field: "mode", value: other.into() }),
        };

        let ring_slots = field!(header, ring_slots: u32);
        let ring_slots_fit = (MIN_RING_SLOTS..=MAX_RING_SLOTS).contains(&ring_slots);
        ensure(ring_slots.is_power_of_two() && ring_slots_fit, "ring_slots", ring_slots.into())?;
        let ring_count = field!(header, ring_count: u32);
        ensure((1..=MAX_RINGS).contains(&ring_count), "ring_count", ring_count.into())?;
        let shared_slots = field!(header, shared_slots: u32);
        let shared_fits = shared_slots <= MAX_SHARED_SLOTS;
        ensure(shared_slots.is_power_of_two() && shared_fits, "shared_slots", shared_slots.into())?;
        let ring_stride = field!(header, ring_stride: u64);
        let stride = PAGE + u64::from(ring_slots) * size_of::<Slot>() as u64;
        ensure(ring_stride == stride, "ring_stride", ring_stride)?;

        // Each region begins where the one before has ended, on a page. No sum overflows: every term
        // is below 2^50 by now, and an offset is added to only after it was compared.
        let follows = |offset: u64, end: u64| {
            offset >= end && offset <= file_bytes && offset.is_multiple_of(PAGE)
        };
        let dir_offset = field!(header, dir_offset: u64);
        ensure(follows(dir_offset, PAGE), "dir_offset", dir_offset)?;
        let shared_offset = field!(header, shared_offset: u64);
        ensure(follows(shared_offset, dir_offset + DIR_BYTES), "shared_offset", shared_offset)?;
        let rings_offset = field!(header, rings_offset: u64);
        let shared_bytes = PAGE + u64::from(shared_slots) * size_of::<SharedSlot>() as u64;
        ensure(follows(rings_offset, shared_offset + shared_bytes), "rings_offset", rings_offset)?;

        let total_bytes = field!(header, total_bytes: u64);
        let end = rings_offset + u64::from(ring_count) * ring_stride;
        ensure(total_bytes == file_bytes && total_bytes == end, "total_bytes", total_bytes)?;
        Ok(Geometry {
            total_bytes: total_bytes as usize,
            pid: field!(header, pid: u32),
            mode,
            dir_offset: dir_offset as usize,
            shared_offset: shared_offset as usize,
            shared_slots,
            rings_offset: rings_offset as usize,
            ring_stride: ring_stride as usize,
            ring_count,
            ring_slots,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A good header of two smallest rings, and the size of its file.
    pub(crate) fn good() -> ([u8; HEADER_BYTES], u64) {
        good_of(MIN_RING_SLOTS)
    }

    /// The same for rings of so many slots.
    pub(crate) fn good_of(ring_slots: u32) -> ([u8; HEADER_BYTES], u64) {
        let mut h = [0; HEADER_BYTES];
        let stride = PAGE + u64::from(ring_slots) * 32;
        let shared_offset = PAGE + DIR_BYTES;
        let rings_offset = shared_offset + PAGE + 64 * 128;
        let total = rings_offset + 2 * stride;
        put(&mut h, offset_of!(Header, magic), &MAGIC.to_ne_bytes());
        put(&mut h, offset_of!(Header, version), &VERSION.to_ne_bytes());
        put(&mut h, offset_of!(Header, header_bytes), &(HEADER_BYTES as u32).to_ne_bytes());
        put(&mut h, offset_of!(Header, total_bytes), &total.to_ne_bytes());
        put(&mut h, offset_of!(Header, dir_offset), &PAGE.to_ne_bytes());
        put(&mut h, offset_of!(Header, shared_offset), &shared_offset.to_ne_bytes());
        put(&mut h, offset_of!(Header, rings_offset), &rings_offset.to_ne_bytes());
        put(&mut h, offset_of!(Header, ring_stride), &stride.to_ne_bytes());
        put(&mut h, offset_of!(Header, ring_count), &2u32.to_ne_bytes());
        put(&mut h, offset_of!(Header, ring_slots), &ring_slots.to_ne_bytes());
        put(&mut h, offset_of!(Header, shared_slots), &64u32.to_ne_bytes());
        (h, total)
    }

    fn put(header: &mut [u8], at: usize, value: &[u8]) {
        header[at..at + value.len()].copy_from_slice(value);
    }

    /// The field that is blamed when `value` stands at `at` in an otherwise good header.
    fn check(at: usize, value: &[u8], expected: &str) {
        let (mut h, total) = good();
        put(&mut h, at, value);
        match Geometry::check(&h, total) {
            Err(Malformed::Field { field, .. }) => assert_eq!(field, expected, "{value:?}"),
            other => panic!("{expected}: {other:?}"),
        }
    }

    #[test]
    fn a_good_header_is_taken() {
        let (h, total) = good();
        let g = Geometry::check(&h, total).unwrap();
        assert_eq!((g.ring_count, g.ring_slots, g.mode), (2, MIN_RING_SLOTS, Mode::Discard));
        assert_eq!(g.rings_offset + 2 * g.ring_stride, g.total_bytes);
    }

    #[test]
    fn each_malformed_field_is_refused_by_name() {
        let u32s = |at, values: &[u32], field| {
            for v in values {
                check(at, &v.to_ne_bytes(), field);
            }
        };
        let u64s = |at, values: &[u64], field| {
            for v in values {
                check(at, &v.to_ne_bytes(), field);
            }
        };
        u32s(offset_of!(Header, header_bytes), &[0, 8, u32::MAX], "header_bytes");
        u32s(offset_of!(Header, mode), &[2, u32::MAX], "mode");
        u32s(offset_of!(Header, ring_slots), &[0, 1, 2048, 4097, 1 << 23, u32::MAX], "ring_slots");
        u32s(offset_of!(Header, ring_slots), &[2 * MIN_RING_SLOTS], "ring_stride");
        u32s(offset_of!(Header, ring_count), &[0, MAX_RINGS + 1, u32::MAX], "ring_count");
        u32s(offset_of!(Header, ring_count), &[1, 3], "total_bytes");
        u32s(offset_of!(Header, shared_slots), &[0, 63, 1 << 21, u32::MAX], "shared_slots");
        u32s(offset_of!(Header, shared_slots), &[128], "rings_offset");
        u64s(offset_of!(Header, ring_stride), &[0, 32, u64::MAX], "ring_stride");
        u64s(offset_of!(Header, dir_offset), &[0, 100, PAGE + 1, u64::MAX], "dir_offset");
        u64s(offset_of!(Header, dir_offset), &[2 * PAGE], "shared_offset");
        u64s(offset_of!(Header, shared_offset), &[0, PAGE, u64::MAX], "shared_offset");
        u64s(offset_of!(Header, rings_offset), &[0, PAGE, !(PAGE - 1)], "rings_offset");
        u64s(offset_of!(Header, total_bytes), &[0, 1, u64::MAX], "total_bytes");
    }

    #[test]
    fn other_files_and_versions_are_refused() {
        let (good, total) = good();
        let mut h = good;
        h[0] ^= 1;
        assert_eq!(Geometry::check(&h, total), Err(Malformed::Magic));
        let mut h = good;
        put(&mut h, offset_of!(Header, version), &9u32.to_ne_bytes());
        assert_eq!(Geometry::check(&h, total), Err(Malformed::Version(9)));
        // A file that is larger or smaller than its header says.
        for size in [0, PAGE, total - PAGE, total + PAGE] {
            assert!(matches!(Geometry::check(&good, size), Err(Malformed::Field { .. })), "{size}");
        }
    }
}
