//! What a trace is called in a catalogue.

use ft_trace::calendar;
use ft_trace::store::Meta;

/// Bytes of a host's name that are taken; Linux has 64.
///
/// Limit: cannot be reached: Linux has 64 bytes. For a damaged name, the path has the first bytes; the row has all.
/// Shown by: `the_name_of_a_host_leads_nowhere`.
const MAX_HOST_BYTES: usize = 64;

/// Where a trace lies: it follows from the trace, so that the same one is never there twice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The host, with `%XX` for what is not a letter, a digit, `.`, `_` or `-`; `unknown` of one without a name.
    pub host: String,
    /// The day of its start in UTC, `2026-11-21`.
    pub date: String,
    /// The second of its start, and sixteen hexadecimal digits: `20261121T104500Z-0123456789abcdef`.
    pub trace: String,
}

impl Key {
    /// Of a trace: of its boot, its agent, and when it began and ended.
    pub fn of(meta: &Meta) -> Key {
        let start_ns = start_ns(meta);
        let seconds = start_ns.div_euclid(1_000_000_000);
        let (year, month, day) = calendar::date(seconds.div_euclid(86_400));
        let second = seconds.rem_euclid(86_400);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let start = &meta.start;
        let some = |n: Option<i64>| n.map_or("-".to_owned(), |n| n.to_string());
        let facts = [
            start.host.clone(),
            start.boot_id.clone(),
            start.start_ns.to_string(),
            some(start.window_from_ns),
            some(meta.end.as_ref().map(|end| end.ts)),
            some(start.agent_pid.map(i64::from)),
        ];
        let facts = facts.join("\0");
        let hash = fnv(facts.as_bytes());
        Key {
            host: escaped(&start.host),
            date: format!("{year:04}-{month:02}-{day:02}"),
            trace: format!(
                "{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z-{hash:016x}"
            ),
        }
    }

    /// The directories from the root of the catalogue on.
    pub(crate) fn directories(&self) -> [String; 3] {
        [format!("host={}", self.host), format!("date={}", self.date), self.directory()]
    }

    /// The last of these.
    pub(crate) fn directory(&self) -> String {
        format!("trace={}", self.trace)
    }

    /// The path from the root of the catalogue on.
    pub fn path(&self) -> String {
        self.directories().join("/")
    }

    /// Of such a path, if it is one.
    pub fn of_path(path: &str) -> Option<Key> {
        let mut parts = path.split('/');
        let mut part = |prefix| Some(parts.next()?.strip_prefix(prefix)?.to_owned());
        let key = Key { host: part("host=")?, date: part("date=")?, trace: part("trace=")? };
        (parts.next().is_none() && key.is_plain()).then_some(key)
    }

    /// The name of its row.
    pub(crate) fn row(&self) -> String {
        format!("{}.parquet", self.trace)
    }

    /// Whether this is a name that [`Key::of`] gives: in a catalogue of somebody else it may be any.
    pub(crate) fn is_plain(&self) -> bool {
        let plain = |text: &str, more: &str| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        self.host.len() <= 3 * MAX_HOST_BYTES
            && plain(&self.host, "._-%")
            && self.date.len() == 10
            && plain(&self.date, "-")
            && self.trace.len() == 33
            && plain(&self.trace, "-")
    }
}

/// When it began, CLOCK_REALTIME ns; of a snapshot, its window.
pub(crate) fn start_ns(meta: &Meta) -> i64 {
    let start_ns = meta.start.window_from_ns.unwrap_or(meta.start.start_ns);
    start_ns.saturating_add(meta.clock.realtime_offset_ns)
}

/// A name that means nothing to file systems, stores and engines.
fn escaped(host: &str) -> String {
    let mut name = String::new();
    for byte in host.bytes().take(MAX_HOST_BYTES) {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' => name.push(byte.into()),
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    if name.is_empty() { "unknown".into() } else { name }
}

/// FNV-1a, 64 bits: it must be the same in each version of the agent.
fn fnv(bytes: &[u8]) -> u64 {
    fnv_on(FNV_START, bytes)
}

pub(crate) const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash of what came before, and of these bytes.
pub(crate) fn fnv_on(hash: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(hash, step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_trace::spool::frame::End;

    fn meta() -> Meta {
        let mut meta = Meta::default();
        meta.start.host = "web-1.example".into();
        meta.start.boot_id = "b".into();
        meta.start.start_ns = 7_000_000_000;
        meta.clock.realtime_offset_ns = 1_795_257_893_250_000_000;
        meta.end = Some(End { ts: 9_000_000_000, ..End::default() });
        meta
    }

    #[test]
    fn a_recording_has_one_name_and_another_one_another() {
        let key = Key::of(&meta());
        assert_eq!((&*key.host, &*key.date), ("web-1.example", "2026-11-21"));
        assert_eq!(key.trace, "20261121T104500Z-c7c061a6b51c7ba7");
        assert!(key.is_plain());
        assert_eq!(key, Key::of(&meta()));
        for change in [
            |meta: &mut Meta| meta.start.boot_id = "c".into(),
            |meta: &mut Meta| meta.start.start_ns += 1,
            |meta: &mut Meta| meta.start.agent_pid = Some(8),
            |meta: &mut Meta| meta.start.window_from_ns = Some(8_000_000_000),
            |meta: &mut Meta| meta.end = None,
        ] {
            let mut other = meta();
            change(&mut other);
            assert_ne!(Key::of(&other).trace, key.trace);
        }
    }

    #[test]
    fn the_name_of_a_host_leads_nowhere() {
        for (host, expected) in [
            ("", "unknown"),
            ("../../etc", "..%2F..%2Fetc"),
            ("a=b c", "a%3Db%20c"),
            ("ü", "%C3%BC"),
        ] {
            let mut meta = meta();
            meta.start.host = host.into();
            let key = Key::of(&meta);
            assert_eq!((&*key.host, key.is_plain()), (expected, true));
        }
        let mut meta = meta();
        meta.start.host = "\n".repeat(1000);
        assert!(Key::of(&meta).is_plain());
    }

    #[test]
    fn any_time_has_a_name() {
        for ns in [i64::MIN, -1, 0, i64::MAX] {
            let mut meta = meta();
            (meta.start.start_ns, meta.clock.realtime_offset_ns) = (ns, ns);
            assert!(Key::of(&meta).trace.contains('Z'), "{ns}");
        }
    }
}
