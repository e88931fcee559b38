//! Where the messages of the libraries and of the BPF programs go: to stderr, like our own.
//!
//! aya, its loader and `aya-log`, which brings what BPF programs say, use the facade `log`; without a logger all that
//! is lost. `RUST_LOG` gives the level, as in most programs that log (`off`, `error`, `warn`, `info`, `debug`, `trace`;
//! `warn` unless it is set); levels for single modules are not needed here, nor the crate that reads them.

use std::env;

use log::{LevelFilter, Log, Metadata, Record};

use crate::status_line;

struct Logger;

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            status_line::say(&text(record));
        }
    }

    fn flush(&self) {}
}

fn text(record: &Record<'_>) -> String {
    let level = match record.level() {
        log::Level::Warn => "warning".to_owned(),
        level => level.as_str().to_lowercase(),
    };
    format!("ft-agent: {level}: {} ({})", record.args(), record.target())
}

/// Installs the logger, once for the process.
pub fn install() {
    let level = env::var("RUST_LOG").ok().and_then(|level| level.parse().ok());
    // A second call changes nothing.
    if log::set_logger(&Logger).is_ok() {
        log::set_max_level(level.unwrap_or(LevelFilter::Warn));
    }
}

#[cfg(test)]
mod tests {
    use log::Level;

    use super::*;

    #[test]
    fn a_message_says_how_serious_it_is_and_whose() {
        let check = |level, expected| {
            let record = Record::builder().level(level).target("irq").build();
            let found = text(&record);
            assert!(found.starts_with(expected) && found.ends_with("(irq)"), "{found}");
        };
        check(Level::Warn, "ft-agent: warning: ");
        check(Level::Error, "ft-agent: error: ");
    }
}
