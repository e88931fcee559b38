//! The table of a process's sites.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::collect::outside::Site;
use ft_report::render::columns::{Table, cut};
use ft_trace::tables::SiteKind;

/// Most names in the sentence that tells which sites there are.
const NAMED_SITES: usize = 40;

/// Sites of a process, by name and place.
#[derive(Debug, PartialEq, Serialize)]
pub struct Listing {
    /// Process.
    pub pid: i32,
    /// One entry for each event and its place in the source.
    pub events: Vec<Event>,
}

/// One event: a place in the source, and its triggers in the text.
#[derive(Debug, PartialEq, Serialize)]
pub struct Event {
    /// Dotted name.
    pub event: String,
    /// What it means: `event`, `lock_acquire`, …
    pub kind: &'static str,
    /// Triggers that are on.
    pub on: usize,
    /// Triggers. A function that was inlined or instantiated several times has one in each copy; of a function in which a compiler
    /// has left sleds, all of these.
    pub triggers: usize,
    /// Source file; empty for sleds.
    pub file: String,
    /// Source line; 0 for sleds.
    pub line: u32,
}

impl Listing {
    /// A listing of these sites, each with whether it is on.
    pub(super) fn new<'a>(pid: i32, sites: impl Iterator<Item = (&'a Site, bool)>) -> Listing {
        let mut events: BTreeMap<_, Event> = BTreeMap::new();
        for (site, on) in sites {
            let key = (&site.name, &site.file, site.line, site.kind as u16);
            let event = events.entry(key).or_insert_with(|| Event {
                event: site.name.clone(),
                kind: SiteKind::from(site.kind).word(),
                on: 0,
                triggers: 0,
                file: site.file.clone(),
                line: site.line,
            });
            event.on += usize::from(on);
            event.triggers += 1;
        }
        Listing { pid, events: events.into_values().collect() }
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&["<event", "<kind", "<state", "triggers", "<place"]);
        for e in &self.events {
            let state = match e.on {
                0 => "off".to_owned(),
                all if all == e.triggers => "on".to_owned(),
                some => format!("{some} on"),
            };
            let place = match &*e.file {
                "" => String::new(),
                file => cut(&format!("{file}:{}", e.line), 40),
            };
            table.row([cut(&e.event, 40), e.kind.to_owned(), state, e.triggers.to_string(), place]);
        }
        write!(f, "{table}")
    }
}

/// The names of sites, each once, for a sentence.
pub(super) fn names(sites: &[Site]) -> String {
    let mut names: Vec<String> = sites.iter().map(|site| cut(&site.name, 80)).collect();
    names.sort_unstable();
    names.dedup();
    let more = names.len().saturating_sub(NAMED_SITES);
    names.truncate(NAMED_SITES);
    match (names.is_empty(), more) {
        (true, _) => "none: write ft_user::event! somewhere in it".into(),
        (_, 0) => names.join(", "),
        _ => format!("{} and {more} more (`ft-agent sites`)", names.join(", ")),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use ft_user::layout::SiteKind;

    use super::*;

    pub(in crate::live) fn site(meta: u64, name: &str, file: &str, line: u32) -> Site {
        Site {
            address: 0,
            meta,
            kind: SiteKind::Event,
            line,
            name: name.into(),
            file: file.into(),
            format: String::new(),
            args: Vec::new(),
            sled: None,
        }
    }

    #[test]
    fn triggers_of_one_place_are_one_line() {
        let sites = [
            (site(1, "b.c", "b.rs", 2), true),
            (site(2, "a.b", "a.rs", 7), true),
            (site(2, "a.b", "a.rs", 7), false),
            (site(3, "a.b", "a.rs", 9), false),
        ];
        let listing = Listing::new(7, sites.iter().map(|(site, on)| (site, *on)));
        assert_eq!(
            listing.to_string(),
            "  event  kind   state  triggers  place\n\
             \x20 a.b    event  1 on          2  a.rs:7\n\
             \x20 a.b    event  off           1  a.rs:9\n\
             \x20 b.c    event  on            1  b.rs:2\n"
        );
        assert_eq!(names(&sites.map(|(site, _)| site)), "a.b, b.c");
    }

    #[test]
    fn a_sentence_names_so_many_sites() {
        let sites: Vec<Site> = (0..43).map(|n| site(n, &format!("a.{n:02}"), "", 0)).collect();
        assert!(names(&sites).ends_with("a.39 and 3 more (`ft-agent sites`)"));
        assert!(names(&[]).starts_with("none"));
    }
}
