//! What is done, of how much, and how long that takes.

use std::{thread::available_parallelism, time::Instant};

/// The steps of a command. Each says on stdout that it begins; what it runs says more.
#[derive(Debug)]
pub(crate) struct Steps {
    count: u32,
    of: u32,
    began: Instant,
}

impl Steps {
    /// So many steps.
    pub(crate) fn new(of: u32) -> Steps {
        Steps { count: 0, of, began: Instant::now() }
    }

    /// Begins the next one, which takes so many seconds of one CPU, where that is worth knowing.
    pub(crate) fn next(&mut self, what: &str, cpu_seconds: Option<u64>) {
        self.count += 1;
        let cpus = available_parallelism().map_or(1, |cpus| cpus.get() as u64);
        println!(
            "{}",
            text((self.count, self.of), self.began.elapsed().as_secs(), what, cpu_seconds, cpus)
        );
    }
}

fn text(
    (count, of): (u32, u32),
    age: u64,
    what: &str,
    cpu_seconds: Option<u64>,
    cpus: u64,
) -> String {
    let age = if age == 0 { String::new() } else { format!(", after {}", time(age)) };
    // Much of a build waits for the largest crate: more CPUs do not help for ever.
    let expected = cpu_seconds.map(|seconds| seconds / cpus.clamp(1, 6));
    let expected =
        expected.map_or(String::new(), |s| format!(" (the first time about {})", time(s)));
    format!("[{count}/{of}{age}] {what}{expected}")
}

/// To ten seconds, or half a minute.
fn time(seconds: u64) -> String {
    match seconds {
        0..95 => format!("{} s", seconds.next_multiple_of(10)),
        _ => match (seconds + 15) / 30 {
            halves if halves % 2 == 0 => format!("{} min", halves / 2),
            halves => format!("{}.5 min", halves / 2),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_says_what_it_is_and_how_long_it_takes() {
        assert_eq!(text((1, 4), 0, "tools", None, 2), "[1/4] tools");
        assert_eq!(
            text((3, 4), 61, "agent", Some(300), 2),
            "[3/4, after 70 s] agent (the first time about 2.5 min)"
        );
        assert_eq!(
            text((3, 4), 200, "agent", Some(480), 64),
            "[3/4, after 3.5 min] agent (the first time about 80 s)"
        );
        assert_eq!(
            [94, 95, 119, 135, 300].map(time),
            ["100 s", "1.5 min", "2 min", "2.5 min", "5 min"]
        );
    }
}
