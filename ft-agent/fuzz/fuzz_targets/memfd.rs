//! A whole memfd, drained as the agent drains it: any content behind a good header. Draining ends, and
//! every frame that comes out is whole.
#![no_main]

use std::fs::File;
use std::mem::offset_of;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use ft_agent::collect::attach::Memory;
use ft_agent::collect::discover::Identity;
use ft_agent::collect::geometry::HEADER_BYTES;
use ft_agent::collect::user::{Since, Source};
use ft_trace::spool::frame::Frame;
use ft_user::layout::{
    DIR_BYTES, Header, MAGIC, MIN_RING_SLOTS, PAGE, RingControl, SEALS, SharedControl, SharedSlot,
    Slot, VERSION, commit,
};
use libfuzzer_sys::fuzz_target;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

const SHARED_SLOTS: u32 = 64;
const RINGS: u32 = 2;
const STRIDE: u64 = PAGE + MIN_RING_SLOTS as u64 * size_of::<Slot>() as u64;
const SHARED: u64 = PAGE + DIR_BYTES;
const RINGS_AT: u64 = SHARED + PAGE + SHARED_SLOTS as u64 * size_of::<SharedSlot>() as u64;
const TOTAL: u64 = RINGS_AT + RINGS as u64 * STRIDE;

/// What is written where, between two drains.
#[derive(Debug, arbitrary::Arbitrary)]
enum Poke {
    /// Raw bytes of the header behind its checked fields, of a control page, or of slots.
    Counters(u32, u64, u32, u32),
    Directory(u16, Vec<u8>),
    RingControl(bool, u8, u64),
    /// Ring, place, commit word, whether the tag of the first lap is put in, TSC.
    Slot(bool, u8, u64, bool, u64),
    SharedControl(i32, u32, u64),
    SharedSlot(u8, u8, u32, u64, u64),
    Drain,
}

fuzz_target!(|input: (bool, bool, bool, Vec<Poke>)| {
    let (overwrite, old, ended, pokes) = input;
    let file = memfd(overwrite);
    let memory = Memory::attach(file.as_fd()).expect("the header is good");
    let identity = Identity::of(std::process::id() as i32).unwrap();
    let since = if old { Since::Now } else { Since::Start };
    let mut source = Source::new(3, identity, memory, since);
    let mut bytes = Vec::new();
    let mut sink = |frame: &Frame<'_>| {
        bytes.clear();
        frame.encode(&mut bytes);
        let (again, size) = Frame::decode(&bytes).expect("what is written can be read");
        assert_eq!((&again, size), (frame, bytes.len()));
        Ok(())
    };
    for poke in pokes.iter().take(64) {
        match poke {
            Poke::Drain => drop(source.drain(1, &mut sink).unwrap()),
            poke => write(&file, poke),
        }
    }
    source.drain(2, &mut sink).unwrap();
    source.finish(3, ended, &mut sink).unwrap();
    source.sites().for_each(|name| assert!(name.len() <= 4096));
    source.threads();
    source.lost();
});

fn memfd(overwrite: bool) -> File {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(memfd_create("feather-trace", flags).unwrap());
    file.set_len(TOTAL).unwrap();
    let mut header = [0; HEADER_BYTES];
    let mut put = |at: usize, value: &[u8]| header[at..at + value.len()].copy_from_slice(value);
    put(offset_of!(Header, magic), &MAGIC.to_ne_bytes());
    put(offset_of!(Header, version), &VERSION.to_ne_bytes());
    put(offset_of!(Header, header_bytes), &(HEADER_BYTES as u32).to_ne_bytes());
    put(offset_of!(Header, total_bytes), &TOTAL.to_ne_bytes());
    put(offset_of!(Header, mode), &u32::from(overwrite).to_ne_bytes());
    put(offset_of!(Header, dir_offset), &PAGE.to_ne_bytes());
    put(offset_of!(Header, shared_offset), &SHARED.to_ne_bytes());
    put(offset_of!(Header, rings_offset), &RINGS_AT.to_ne_bytes());
    put(offset_of!(Header, ring_stride), &STRIDE.to_ne_bytes());
    put(offset_of!(Header, ring_count), &RINGS.to_ne_bytes());
    put(offset_of!(Header, ring_slots), &MIN_RING_SLOTS.to_ne_bytes());
    put(offset_of!(Header, shared_slots), &SHARED_SLOTS.to_ne_bytes());
    file.write_all_at(&header, 0).unwrap();
    fcntl_add_seals(&file, SealFlags::from_bits_retain(SEALS)).unwrap();
    file
}

fn write(file: &File, poke: &Poke) {
    let put = |at: u64, bytes: &[u8]| {
        let fits = &bytes[..bytes.len().min(TOTAL.saturating_sub(at) as usize)];
        file.write_all_at(fits, at).unwrap();
    };
    let ring = |second: bool| RINGS_AT + u64::from(second) * STRIDE;
    match poke {
        &Poke::Counters(dropped, head, used, enabled) => {
            put(offset_of!(Header, dir_dropped) as u64, &dropped.to_ne_bytes());
            put(offset_of!(Header, dir_head) as u64, &head.to_ne_bytes());
            put(offset_of!(Header, rings_used) as u64, &used.to_ne_bytes());
            put(offset_of!(Header, sites_enabled) as u64, &enabled.to_ne_bytes());
        }
        Poke::Directory(at, bytes) => put(PAGE + u64::from(*at), bytes),
        &Poke::RingControl(second, word, value) => {
            let at = u64::from(word) * 8 % size_of::<RingControl>() as u64;
            put(ring(second) + at, &value.to_ne_bytes());
        }
        &Poke::Slot(second, place, word, tagged, tsc) => {
            let tag = commit::tag(u64::from(MIN_RING_SLOTS)) << commit::TAG_SHIFT;
            let plain = word & !(commit::TAG_MASK << commit::TAG_SHIFT);
            let at = ring(second) + PAGE + u64::from(place) * size_of::<Slot>() as u64;
            put(at, &if tagged { plain | tag } else { word }.to_ne_bytes());
            put(at + 8, &tsc.to_ne_bytes());
        }
        &Poke::SharedControl(free, write, lost) => {
            put(SHARED + offset_of!(SharedControl, free) as u64, &free.to_ne_bytes());
            put(SHARED + offset_of!(SharedControl, write) as u64, &write.to_ne_bytes());
            put(SHARED + offset_of!(SharedControl, lost) as u64, &lost.to_ne_bytes());
        }
        &Poke::SharedSlot(place, marker, tid, word, tsc) => {
            let slot = u64::from(place) % u64::from(SHARED_SLOTS);
            let at = SHARED + PAGE + slot * size_of::<SharedSlot>() as u64;
            let field = |offset: usize| at + offset as u64;
            put(field(offset_of!(SharedSlot, marker)), &u32::from(marker).to_ne_bytes());
            put(field(offset_of!(SharedSlot, tid)), &tid.to_ne_bytes());
            put(field(offset_of!(SharedSlot, commit)), &word.to_ne_bytes());
            put(field(offset_of!(SharedSlot, tsc)), &tsc.to_ne_bytes());
        }
        Poke::Drain => {}
    }
}
