//! The words of a command line, one after the other.
//!
//! Hourglass takes several values behind one option (`-rh 3ms 8ms`), names options with several letters behind one dash
//! (`-rh`), and lets later options mean the thread that an earlier one named. So words are read in turn.

use std::fmt::Display;
use std::str::FromStr;

use crate::Error;

/// What is left of a command line.
#[derive(Debug)]
pub(crate) struct Words<'a> {
    rest: &'a [String],
    /// The option that was read last, and what stood behind its `=`.
    option: &'a str,
    inline: Option<&'a str>,
}

impl<'a> Words<'a> {
    pub(crate) fn new(words: &'a [String]) -> Self {
        Words { rest: words, option: "", inline: None }
    }

    /// The next option without what stands behind a `=` in it; `None` at the end.
    ///
    /// # Errors
    ///
    /// When the option before had a value behind a `=` and takes none, or when a word is no option.
    pub(crate) fn option(&mut self) -> Result<Option<&'a str>, Error> {
        if let Some(value) = self.inline {
            return Err(Error::usage(format!(
                "`{}` takes no value; leave out `={}`",
                self.option,
                value.escape_debug()
            )));
        }
        let Some((word, rest)) = self.rest.split_first() else { return Ok(None) };
        self.rest = rest;
        if !word.starts_with('-') || word.len() == 1 {
            return Err(Error::usage(format!(
                "`{}` belongs to no option; leave it out, or see --help",
                word.escape_debug()
            )));
        }
        (self.option, self.inline) = match word.split_once('=') {
            Some((option, value)) if word.starts_with("--") => (option, Some(value)),
            _ => (word.as_str(), None),
        };
        Ok(Some(self.option))
    }

    /// A value of the last option; `what` says what it would be.
    ///
    /// # Errors
    ///
    /// When no word is left, or the next one is an option.
    pub(crate) fn value(&mut self, what: &str) -> Result<&'a str, Error> {
        if let Some(value) = self.inline.take() {
            return Ok(value);
        }
        self.further().ok_or_else(|| {
            Error::usage(format!("`{}` lacks {what}; write it behind the option", self.option))
        })
    }

    /// A further value of the last option, if the next word is one and no option.
    pub(crate) fn further(&mut self) -> Option<&'a str> {
        let (word, rest) = self.rest.split_first()?;
        // `-5` is a value nowhere, and `-rh` an option everywhere.
        if word.starts_with('-') && word.len() > 1 {
            return None;
        }
        self.rest = rest;
        Some(word)
    }

    /// A whole number from `least` to `most`.
    ///
    /// # Errors
    ///
    /// When it is missing, no number or out of range.
    pub(crate) fn number<T>(&mut self, what: &str, least: T, most: T) -> Result<T, Error>
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        let text = self.value(what)?;
        number(text, self.option, least, most)
    }

    /// A time in nanoseconds that is not zero.
    ///
    /// # Errors
    ///
    /// When it is missing, no time, or zero.
    pub(crate) fn time(&mut self, what: &str) -> Result<u64, Error> {
        let text = self.value(what)?;
        not_zero(text, crate::time::parse(text)?)
    }

    /// The option that was read last.
    pub(crate) fn unknown(&self) -> Error {
        Error::usage(format!(
            "there is no option `{}`; --help lists them",
            self.option.escape_debug()
        ))
    }
}

/// A whole number from `least` to `most`, as the value of `option`.
pub(crate) fn number<T>(text: &str, option: &str, least: T, most: T) -> Result<T, Error>
where
    T: FromStr + PartialOrd + Display + Copy,
{
    text.parse().ok().filter(|n| (least..=most).contains(n)).ok_or_else(|| {
        Error::usage(format!(
            "`{}` is not a number that `{option}` takes; use {least} to {most}",
            text.escape_debug()
        ))
    })
}

/// `ns`, read of `text`, unless it is zero.
pub(crate) fn not_zero(text: &str, ns: u64) -> Result<u64, Error> {
    match ns {
        0 => Err(Error::usage(format!("`{text}` is no time at all; use at least 1ns"))),
        ns => Ok(ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn options_and_their_values_are_told_apart() {
        let line = words("-rh 3ms 8ms --cpu=1 -c");
        let mut words = Words::new(&line);
        assert_eq!(words.option(), Ok(Some("-rh")));
        assert_eq!(words.value("an amount"), Ok("3ms"));
        assert_eq!(words.time("a period"), Ok(8_000_000));
        assert_eq!(words.further(), None);
        assert_eq!(words.option(), Ok(Some("--cpu")));
        assert_eq!(words.number("a CPU", 0, 7), Ok(1));
        assert_eq!(words.option(), Ok(Some("-c")));
        assert!(words.value("x").unwrap_err().to_string().contains("`-c` lacks x"));
        assert_eq!(words.option(), Ok(None));
    }

    #[test]
    fn values_that_nobody_takes_are_refused() {
        let line = words("--quiet=yes -c");
        let mut words_of = Words::new(&line);
        assert_eq!(words_of.option(), Ok(Some("--quiet")));
        let error = words_of.option().unwrap_err().to_string();
        assert!(error.contains("leave out `=yes`"), "{error}");
        let line = words("stray");
        let error = Words::new(&line).option().unwrap_err().to_string();
        assert!(error.contains("`stray` belongs to no option"), "{error}");
    }
}
