//! Which events a trace has, and how often.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use super::Result;
use super::entry::{Entry, Streams, entries};
use super::filter::{Filter, Selection};
use super::names::Names;
use crate::render::columns::{Table, clean};
use crate::render::number::{count, quantity};
use ft_trace::event::LeanUserEvent;
use ft_trace::ids::{Name, SiteId};
use ft_trace::store::Trace;

/// The events of one name at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EventCount {
    /// `category.name`.
    pub event: String,
    /// How many were recorded in the window, by the selected threads; 0 for a site that was not passed.
    pub count: u64,
    /// Triggers in the text of all processes: copies of the site that the compiler made.
    pub sites: u64,
    /// `file:line` of the site; empty for the kernel's events.
    pub place: String,
    /// Arguments, `name:type, …`.
    pub args: String,
}

/// The events of a trace by name and place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EventCounts {
    /// Sorted by name, then place.
    pub events: Vec<EventCount>,
}

impl fmt::Display for EventCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&["<event", "count", "sites", "<place", "<arguments"]);
        for e in &self.events {
            let sites = if e.place.is_empty() { String::new() } else { count(e.sites) };
            table.row([clean(&e.event), count(e.count), sites, clean(&e.place), clean(&e.args)]);
        }
        write!(f, "{table}")?;
        let total = self.events.iter().map(|e| e.count).sum();
        let seen = self.events.iter().filter(|e| e.count > 0).map(|e| &e.event);
        let kinds = seen.collect::<BTreeSet<_>>().len() as u64;
        writeln!(f, "{} of {}", quantity(total, "event"), quantity(kinds, "kind"))
    }
}

/// Counts the selected events.
///
/// # Errors
///
/// When the selection names what is not there, or the trace cannot be read.
pub fn event_counts(trace: &Trace, selection: &Selection) -> Result<EventCounts> {
    let names = Names::read(trace)?;
    let filter = Filter::new(trace, &names, selection)?;
    let mut by_site: BTreeMap<SiteId, u64> = BTreeMap::new();
    for event in trace.rows_within::<LeanUserEvent>(filter.window()) {
        let event = event?;
        if filter.selects_lean(&event) {
            *by_site.entry(event.site).or_default() += 1;
        }
    }
    // One program that ran twice has two sites of one place.
    let mut places: BTreeMap<(Name, Name, i32, Name), (u64, u64)> = BTreeMap::new();
    for site in names.sites().map(|site| &site.row).filter(|row| filter.selects_event(&row.event)) {
        let key = (site.event.clone(), site.file.clone(), site.line, site.args.clone());
        let (events, triggers) = places.entry(key).or_default();
        *events += by_site.get(&site.site).copied().unwrap_or(0);
        *triggers += site.triggers.max(0) as u64;
    }
    let user = places.into_iter().map(|((event, file, line, args), (count, sites))| EventCount {
        event: event.to_string(),
        count,
        sites,
        place: format!("{file}:{line}"),
        args: args.to_string(),
    });
    let mut events: Vec<_> = user.collect();
    if selection.kernel {
        events.extend(kernel_counts(trace, &filter)?);
    }
    events.sort_by(|a, b| (&a.event, &a.place).cmp(&(&b.event, &b.place)));
    Ok(EventCounts { events })
}

fn kernel_counts(trace: &Trace, filter: &Filter) -> Result<Vec<EventCount>> {
    let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
    for entry in entries(trace, Streams::Kernel, filter.window()) {
        let entry: Entry = entry?;
        if !matches!(entry, Entry::Loss(_)) && filter.selects(&entry) {
            let name = entry.name();
            match by_name.get_mut(&*name) {
                Some(count) => *count += 1,
                None => drop(by_name.insert(name.into_owned(), 1)),
            }
        }
    }
    let count = |(event, count)| EventCount { event, count, ..EventCount::default() };
    Ok(by_name.into_iter().map(count).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_names_of_events_that_there_are() {
        let of =
            |event: &str, count| EventCount { event: event.into(), count, ..Default::default() };
        let text = EventCounts { events: vec![of("a", 1), of("a", 2), of("b", 0)] }.to_string();
        assert!(text.ends_with("3 events of 1 kind\n"), "{text}");
    }
}
