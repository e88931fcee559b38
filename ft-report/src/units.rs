//! Durations and sizes as people write and read them: `500ms`, `10s`, `64M`, `17.4 M/s`.

use std::time::Duration;

/// Reads a duration: a decimal number and `us`, `ms`, `s` (the default), `m` or `h`.
///
/// # Errors
///
/// A sentence that states the accepted form: for zero, negative numbers, unknown units, more than a year.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a duration; write for example 500ms, 10s, 2m or 1h");
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let seconds = number
        * match unit {
            "us" => 1e-6,
            "ms" => 1e-3,
            "" | "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return Err(wrong()),
        };
    if !(1e-6..=366.0 * 86400.0).contains(&seconds) {
        return Err(format!("'{text}' is out of range; write a duration between 1us and a year"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Reads a time since the start of a recording, in ns: a decimal number and `ns`, `us`, `ms`, `s` (the
/// default), `m` or `h`.
///
/// # Errors
///
/// A sentence that states the accepted form: for negative numbers, unknown units, more than a year.
pub fn offset_ns(text: &str) -> Result<i64, String> {
    let wrong = || format!("'{text}' is not a time; write for example 1.5s, 200ms or 0");
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let ns = number
        * match unit {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "" | "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return Err(wrong()),
        };
    if !(0.0..=366.0 * 86400e9).contains(&ns) {
        return Err(format!("'{text}' is out of range; write a time of at most a year"));
    }
    Ok(ns.round() as i64)
}

/// Reads a size: a decimal number and nothing (bytes), `K`, `M` or `G` (powers of 1024; a `B` or `iB`
/// may follow).
///
/// # Errors
///
/// A sentence that states the accepted form: for zero, unknown units, more than an exabyte.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a size; write for example 256K, 64M or 1G");
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let shift = match unit.trim_end_matches('B').trim_end_matches('i').to_ascii_uppercase().as_str()
    {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err(wrong()),
    };
    let bytes = number * (1u64 << shift) as f64;
    if !(1.0..=(1u64 << 60) as f64).contains(&bytes) {
        return Err(format!(
            "'{text}' is out of range; write a size between 1 byte and 2^60 bytes"
        ));
    }
    Ok(bytes as u64)
}

fn split(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim()))
}

/// A count with three digits and a decimal prefix: `17.4 M`, `512`.
pub fn short(count: f64) -> String {
    scaled(count, 1000.0, ["", "k", "M", "G", "T"])
}

/// A duration in ns with three digits and its unit: `1.50 ms`, `512 ns`.
pub fn short_ns(ns: f64) -> String {
    crate::render::number::ns(ns)
}

/// Bytes with three digits and a binary prefix: `1.50 GiB`, `512 B`.
pub fn short_bytes(count: u64) -> String {
    scaled(count as f64, 1024.0, ["B", "KiB", "MiB", "GiB", "TiB"])
}

fn scaled(mut n: f64, base: f64, prefixes: [&str; 5]) -> String {
    let mut step = 0;
    // 999.5 would be printed with four digits.
    while n >= base - 0.5 && step + 1 < prefixes.len() {
        n /= base;
        step += 1;
    }
    let digits = match (step, n) {
        (0, _) => 0,
        (_, n) if n < 9.995 => 2,
        (_, n) if n < 99.95 => 1,
        _ => 0,
    };
    format!("{n:.digits$} {}", prefixes[step]).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let check = |text, expected: Option<Duration>| {
            assert_eq!(duration(text).ok(), expected, "{text}");
        };
        check("500ms", Some(Duration::from_millis(500)));
        check("10s", Some(Duration::from_secs(10)));
        check("10", Some(Duration::from_secs(10)));
        check("1.5 m", Some(Duration::from_secs(90)));
        check("1h", Some(Duration::from_secs(3600)));
        check("20us", Some(Duration::from_micros(20)));
        for wrong in ["", "s", "-1s", "0s", "1x", "1.2.3s", "9999999h", "inf", "NaN"] {
            check(wrong, None);
        }
    }

    #[test]
    fn offsets() {
        let check = |text, expected| assert_eq!(offset_ns(text).ok(), expected, "{text}");
        check("0", Some(0));
        check("1.5s", Some(1_500_000_000));
        check("200ms", Some(200_000_000));
        check("0.000000001", Some(1));
        check("12.3 µs", Some(12_300));
        check("7ns", Some(7));
        check("2m", Some(120_000_000_000));
        for wrong in ["", "-1s", "1x", "1..2", "99999h", "NaN"] {
            check(wrong, None);
        }
    }

    #[test]
    fn sizes() {
        let check = |text, expected| assert_eq!(bytes(text).ok(), expected, "{text}");
        check("4096", Some(4096));
        check("256K", Some(256 << 10));
        check("64M", Some(64 << 20));
        check("64MiB", Some(64 << 20));
        check("1.5g", Some(3 << 29));
        for wrong in ["", "M", "0", "-4K", "12Q", "99999999999G"] {
            check(wrong, None);
        }
    }

    #[test]
    fn numbers_for_people() {
        let check = |n, expected| assert_eq!(short(n), expected);
        check(0.0, "0");
        check(999.0, "999");
        check(999.6, "1.00 k");
        check(17_400_000.0, "17.4 M");
        check(999_700.0, "1.00 M");
        assert_eq!(short_bytes(512), "512 B");
        assert_eq!(short_bytes(3 << 29), "1.50 GiB");
    }
}
