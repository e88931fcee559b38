//! Streams of packets: one file for each channel and CPU, in which time never goes back.
//!
//! A packet is a header, its context (see `tsdl.rs`) and events. It is collected in memory and written when it is full.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};

use ft_trace::dir::Dir;
use ft_trace::ids::{Cpu, Nanos};

use super::tsdl::Channel;

/// First word of each packet (CTF 1.8.3, section 5.1).
const MAGIC: u32 = 0xC1FC_1FC1;

/// Header and context.
const HEAD_BYTES: usize = 4 + 4 + 6 * 8 + 4;

/// A packet is full from here on.
const PACKET_BYTES: usize = 1 << 17;

/// Events of one channel on one CPU.
pub(super) struct Stream {
    file: File,
    channel: Channel,
    cpu: Cpu,
    body: Vec<u8>,
    /// Of the packet that is collected: its first time, if it has any yet.
    begin: Option<u64>,
    /// Newest time.
    last: u64,
    packets: u64,
    /// Lost since the stream began.
    discarded: u64,
    /// A loss is open until then.
    losing: Option<u64>,
}

impl Stream {
    fn create(dir: &Dir, channel: Channel, cpu: Cpu) -> io::Result<Stream> {
        let name = match channel {
            Channel::Kernel => "kernel",
            Channel::User => "user",
        };
        let file = dir.create_file(&match cpu {
            Cpu::UNKNOWN => format!("{name}_unknown"),
            Cpu(number) => format!("{name}_{number}"),
        })?;
        let (begin, losing) = (None, None);
        let body = Vec::with_capacity(PACKET_BYTES);
        Ok(Stream { file, channel, cpu, body, begin, last: 0, packets: 0, discarded: 0, losing })
    }

    /// Appends an event; `put` writes what follows its header. Times must not decrease.
    pub(super) fn event(
        &mut self,
        ts: Nanos,
        id: u32,
        put: impl FnOnce(&mut Vec<u8>),
    ) -> io::Result<()> {
        let ts = time(ts);
        if self.losing.is_some_and(|until| until <= ts) || self.body.len() >= PACKET_BYTES {
            self.end_packet()?;
        }
        self.begin.get_or_insert(ts);
        self.last = ts;
        self.body.extend_from_slice(&id.to_le_bytes());
        self.body.extend_from_slice(&ts.to_le_bytes());
        put(&mut self.body);
        Ok(())
    }

    /// From `ts` until `until` so many events were lost. Readers place a loss between the end of the last packet with the
    /// count of before and the end of the first with that of after; so both end here.
    pub(super) fn lost(&mut self, ts: Nanos, until: Nanos, count: u64) -> io::Result<()> {
        let ts = time(ts);
        if self.losing.is_none() {
            // A reader compares with the packet before: there has to be one.
            if self.begin.is_some() || self.packets == 0 {
                self.begin.get_or_insert(ts);
                self.last = self.last.max(ts);
                self.end_packet()?;
            }
            self.begin = Some(ts);
            self.last = ts;
        }
        self.discarded = self.discarded.saturating_add(count);
        self.losing = self.losing.max(Some(time(until).max(ts)));
        Ok(())
    }

    /// Writes the packet, if there is one.
    fn end_packet(&mut self) -> io::Result<()> {
        let Some(begin) = self.begin.take() else { return Ok(()) };
        let end = self.last.max(self.losing.take().unwrap_or(0));
        let bits = (HEAD_BYTES + self.body.len()) as u64 * 8;
        let mut head = Vec::with_capacity(HEAD_BYTES);
        head.extend_from_slice(&MAGIC.to_le_bytes());
        head.extend_from_slice(&self.channel.id().to_le_bytes());
        for word in [begin, end, bits, bits, self.packets, self.discarded] {
            head.extend_from_slice(&word.to_le_bytes());
        }
        head.extend_from_slice(&self.cpu.0.to_le_bytes());
        debug_assert_eq!(head.len(), HEAD_BYTES);
        self.file.write_all(&head)?;
        self.file.write_all(&self.body)?;
        self.body.clear();
        self.packets += 1;
        Ok(())
    }
}

/// Times of the tables are after the boot, except where a program has told another one.
fn time(ts: Nanos) -> u64 {
    ts.0.max(0) as u64
}

/// All streams of a trace, made as events of them come up.
pub(super) struct Streams<'a> {
    dir: &'a Dir,
    streams: BTreeMap<(Channel, Cpu), Stream>,
}

impl<'a> Streams<'a> {
    pub(super) fn new(dir: &'a Dir) -> Self {
        Streams { dir, streams: BTreeMap::new() }
    }

    pub(super) fn of(&mut self, channel: Channel, cpu: Cpu) -> io::Result<&mut Stream> {
        match self.streams.entry((channel, cpu)) {
            std::collections::btree_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            std::collections::btree_map::Entry::Vacant(entry) => {
                Ok(entry.insert(Stream::create(self.dir, channel, cpu)?))
            }
        }
    }

    /// Writes what is left.
    pub(super) fn finish(self) -> io::Result<()> {
        for mut stream in self.streams.into_values() {
            stream.end_packet()?;
            stream.file.sync_all()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Begin, end, discarded and bytes of events, of each packet.
    fn packets(fill: impl FnOnce(&mut Stream)) -> Vec<(u64, u64, u64, usize)> {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        let mut stream = Stream::create(&dir, Channel::User, Cpu::UNKNOWN).unwrap();
        fill(&mut stream);
        stream.end_packet().unwrap();
        let bytes = std::fs::read(folder.path().join("user_unknown")).unwrap();
        let mut rest = &bytes[..];
        let mut found = Vec::new();
        while !rest.is_empty() {
            let word = |at: usize| u64::from_le_bytes(rest[at..at + 8].try_into().unwrap());
            assert_eq!(rest[..8], [0xc1, 0x1f, 0xfc, 0xc1, 1, 0, 0, 0]);
            assert_eq!(word(24), word(32), "no padding");
            assert_eq!(word(40), found.len() as u64);
            let size = word(24) as usize / 8;
            found.push((word(8), word(16), word(48), size - HEAD_BYTES));
            rest = &rest[size..];
        }
        found
    }

    fn event(stream: &mut Stream, ts: i64) {
        stream.event(Nanos(ts), 7, |_| {}).unwrap();
    }

    #[test]
    fn a_packet_spans_its_events() {
        assert_eq!(packets(|_| {}), []);
        let found = packets(|s| [5, 5, 9].map(|ts| event(s, ts)).iter().for_each(drop));
        assert_eq!(found, [(5, 9, 0, 36)]);
    }

    #[test]
    fn a_full_packet_is_followed_by_another() {
        let found = packets(|s| {
            s.event(Nanos(1), 0, |body| body.resize(body.len() + PACKET_BYTES, 0)).unwrap();
            event(s, 2);
        });
        assert_eq!(found, [(1, 1, 0, PACKET_BYTES + 12), (2, 2, 0, 12)]);
    }

    #[test]
    fn a_loss_lies_between_the_ends_of_two_packets() {
        let lost = |s: &mut Stream, ts, until, n| s.lost(Nanos(ts), Nanos(until), n).unwrap();
        // In the middle, with an event and another loss meanwhile.
        let found = packets(|s| {
            event(s, 5);
            lost(s, 7, 10, 3);
            event(s, 8);
            lost(s, 9, 12, 2);
            event(s, 12);
        });
        assert_eq!(found, [(5, 7, 0, 12), (7, 12, 5, 12), (12, 12, 5, 12)]);
        // At the begin and at the end.
        let found = packets(|s| {
            lost(s, 3, 4, 1);
            event(s, 5);
            lost(s, 6, 9, 1);
        });
        assert_eq!(found, [(3, 3, 0, 0), (3, 4, 1, 0), (5, 6, 1, 12), (6, 9, 2, 0)]);
    }
}
