use std::io::Write as _;

use super::*;
use crate::convert::synthetic::sample;
use crate::spool::frame::Loss;

fn frames(spool: &Spool, number: u32, frames: &[Frame<'_>]) {
    let mut bytes = Vec::new();
    frames.iter().for_each(|frame| frame.encode(&mut bytes));
    let mut file = File::options().create(true).append(true).open(spool.segment(number)).unwrap();
    file.write_all(&bytes).unwrap();
}

fn read(news: &News) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for piece in &news.pieces {
        let mut reader = piece.reader().unwrap();
        while let Some(frame) = reader.next().unwrap() {
            if let Frame::Kernel(bytes) = frame {
                found.push(bytes.to_vec());
            }
        }
        assert_eq!(
            reader.damage().unwrap().is_some(),
            piece.to < piece.file.metadata().unwrap().len()
        );
    }
    found
}

/// No frame is so long that it would be left out for it.
fn newest(bytes: u64) -> Wanted {
    Wanted { bytes, at_most: 1 << 20 }
}

/// Not a byte more.
fn exactly(bytes: u64) -> Wanted {
    Wanted { bytes, at_most: bytes }
}

fn spool() -> (tempfile::TempDir, Spool) {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::of(dir.path());
    std::fs::create_dir(spool.dir()).unwrap();
    (dir, spool)
}

#[test]
fn what_is_new_is_read_once() {
    let (_dir, spool) = spool();
    let mut tail = Tail::new(spool.clone());
    assert_eq!(tail.read(newest(1 << 20), || true).unwrap().bytes, 0);
    frames(&spool, 3, &[Frame::Clock(sample(1)), Frame::Kernel(&[1; 8])]);
    let news = tail.read(newest(1 << 20), || true).unwrap();
    assert_eq!((read(&news), news.skipped), (vec![vec![1; 8]], false));
    frames(&spool, 3, &[Frame::Kernel(&[2; 8])]);
    frames(&spool, 4, &[Frame::Kernel(&[3; 8]), Frame::Kernel(&[4; 8])]);
    let news = tail.read(newest(1 << 20), || true).unwrap();
    assert_eq!(read(&news), [[2; 8], [3; 8], [4; 8]]);
    assert!(!news.skipped);
    assert_eq!(tail.read(newest(1 << 20), || true).unwrap().pieces.len(), 0);
}

#[test]
fn of_too_much_the_newest_is_read_and_losses_are_told_of_all() {
    let (_dir, spool) = spool();
    let mut tail = Tail::new(spool.clone());
    let loss = Loss { count: 7, ..Loss::default() };
    frames(&spool, 0, &[Frame::Loss(Loss { count: 100, ..Loss::default() })]);
    let news = tail.read(newest(0), || true).unwrap();
    assert_eq!((news.bytes, news.lost), (0, 0), "it was there before");
    let old = [
        Frame::Kernel(&[1; 5000]),
        Frame::Clock(sample(5)),
        Frame::Loss(loss),
        Frame::Kernel(&[2; 90]),
    ];
    frames(&spool, 0, &old);
    frames(&spool, 0, &[Frame::Kernel(&[3; 100])]);
    let news = tail.read(exactly(120), || true).unwrap();
    assert_eq!((read(&news), news.skipped, news.lost), (vec![vec![3; 100]], true, 7));
    assert_eq!((news.samples.len(), news.kept_bytes), (1, 116));
    // Nothing at all is asked for.
    frames(&spool, 0, &[Frame::Kernel(&[4; 100])]);
    let news = tail.read(newest(0), || true).unwrap();
    assert_eq!((news.pieces.len(), news.skipped, news.bytes), (0, true, 116));
}

#[test]
fn a_frame_that_is_being_written_waits() {
    let (_dir, spool) = spool();
    let mut tail = Tail::new(spool.clone());
    let mut bytes = Vec::new();
    Frame::Kernel(&[1; 100]).encode(&mut bytes);
    std::fs::write(spool.segment(0), &bytes[..60]).unwrap();
    assert_eq!(tail.read(newest(1000), || true).unwrap().pieces.len(), 0);
    std::fs::write(spool.segment(0), &bytes).unwrap();
    assert_eq!(read(&tail.read(newest(1000), || true).unwrap()), [[1; 100]]);
}

#[test]
fn without_time_it_goes_on_with_the_newest_segment() {
    let (_dir, spool) = spool();
    let mut tail = Tail::new(spool.clone());
    frames(&spool, 0, &[Frame::Kernel(&[0; 8])]);
    tail.read(newest(1 << 20), || true).unwrap();
    let many: Vec<_> = (0..1000).map(|_| Frame::Kernel(&[1; 8])).collect();
    frames(&spool, 0, &many);
    frames(&spool, 1, &[Frame::Kernel(&[2; 8]), Frame::Kernel(&[3; 8])]);
    let news = tail.read(exactly(24), || false).unwrap();
    assert_eq!(read(&news), [[3; 8]]);
    assert!(news.skipped && news.is_unread);
}

#[test]
fn a_frame_that_is_longer_than_what_is_wanted_is_read_whole() {
    let (_dir, spool) = spool();
    let mut tail = Tail::new(spool.clone());
    frames(&spool, 0, &[Frame::Kernel(&[1; 1000]), Frame::Kernel(&[2; 1000])]);
    let news = tail.read(newest(10), || true).unwrap();
    assert_eq!((read(&news), news.skipped, news.kept_bytes), (vec![vec![2; 1000]], true, 1016));
    // But no more than there is room for, and nothing where nothing is wanted.
    for wanted in [exactly(10), newest(0)] {
        frames(&spool, 0, &[Frame::Kernel(&[3; 1000])]);
        let news = tail.read(wanted, || true).unwrap();
        assert_eq!((news.pieces.len(), news.skipped, news.left_bytes), (0, true, 0));
    }
}

#[test]
fn who_has_no_time_for_all_headers_reads_what_is_next_and_counts_nothing_twice() {
    let (_dir, spool) = spool();
    let mut tail = Tail::new(spool.clone());
    tail.read(newest(0), || true).unwrap();
    frames(&spool, 0, &[Frame::Kernel(&[0; 8])]);
    tail.read(newest(1 << 20), || true).unwrap();
    let many: Vec<[u8; 8]> = (1..=1000_u64).map(u64::to_le_bytes).collect();
    let many: Vec<_> = many.iter().map(|bytes| Frame::Kernel(bytes)).collect();
    frames(&spool, 0, &many);
    let (mut bytes, mut found) = (0, Vec::new());
    for _ in 0..20 {
        let news = tail.read(exactly(48), || false).unwrap();
        assert_eq!(news.is_unread, news.left_bytes > 0);
        found.extend(read(&news).iter().map(|b| u64::from_le_bytes(b[..].try_into().unwrap())));
        bytes += news.bytes;
    }
    assert_eq!(bytes, 24 * 1000);
    // Two behind the headers for which there is always time, until the newest is among these.
    assert_eq!(found, [256, 257, 513, 514, 770, 771, 999, 1000]);
}

#[test]
fn a_frame_for_which_there_is_no_room_does_not_keep_it_for_ever() {
    let (_dir, spool) = spool();
    let mut tail = Tail::new(spool.clone());
    tail.read(newest(0), || true).unwrap();
    frames(&spool, 0, &[Frame::Kernel(&[0; 8])]);
    tail.read(newest(0), || true).unwrap();
    let mut all: Vec<_> = (0..255).map(|_| Frame::Kernel(&[1; 8])).collect();
    all.extend([Frame::Kernel(&[2; 500]), Frame::Kernel(&[3; 8]), Frame::Kernel(&[4; 500])]);
    all.extend((0..10).map(|_| Frame::Kernel(&[5; 8])));
    frames(&spool, 0, &all);
    let news = tail.read(exactly(100), || false).unwrap();
    assert_eq!((read(&news), news.is_unread), (vec![vec![3; 8]], true));
    assert!(news.left_bytes > 0);
    let news = tail.read(newest(1 << 20), || true).unwrap();
    assert_eq!((read(&news).len(), news.left_bytes, news.bytes), (11, 0, 0));
}

#[test]
fn segments_that_are_gone_are_skipped() {
    let (_dir, spool) = spool();
    let mut tail = Tail::new(spool.clone());
    frames(&spool, 0, &[Frame::Kernel(&[1; 8])]);
    tail.read(newest(1 << 20), || true).unwrap();
    std::fs::remove_file(spool.segment(0)).unwrap();
    frames(&spool, 5, &[Frame::Kernel(&[5; 8])]);
    let news = tail.read(newest(1 << 20), || true).unwrap();
    assert_eq!((read(&news), news.skipped), (vec![vec![5; 8]], true));
}
