//! Kinds of events, and how many there are of each in the whole trace.

use std::collections::HashMap;

use ft_trace::ids::{Name, SiteId};
use serde::Serialize;

use super::names::cut;

/// Kinds that are told apart.
///
/// Limit: as `MAX_NAMES` of `names.rs`.
const MAX_KINDS: usize = 1024;

/// A kind of event.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Kind {
    /// `category.name`, or the table of the kernel's records and a word of it.
    pub(super) name: String,
    /// In the whole trace.
    pub(super) count: u64,
    /// The rows tell of it in another way: it is a lock's, a scope's or a poll. It is drawn faintly.
    quiet: bool,
}

/// All kinds.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    kinds: Vec<Kind>,
    names: HashMap<String, u32>,
    sites: HashMap<SiteId, (Name, u32)>,
}

impl Kinds {
    /// Counts an application's event; the number of its kind. One that is not `plain` is a lock's, a scope's or a poll.
    pub(super) fn of_site(&mut self, site: SiteId, event: &Name, plain: bool) -> u32 {
        let kind = match self.sites.get(&site) {
            // Where a site is not described its events may have several names.
            Some((name, kind)) if name == event => *kind,
            _ => {
                let kind = self.number(event, !plain);
                self.sites.insert(site, (event.clone(), kind));
                kind
            }
        };
        self.kinds[kind as usize].count += 1;
        kind
    }

    /// Counts a record of the kernel; the number of its kind.
    pub(super) fn of_kernel(&mut self, what: &str, which: &str) -> u32 {
        let blank = if which.is_empty() { "" } else { " " };
        let kind = self.number(&format!("{what}{blank}{which}"), true);
        self.kinds[kind as usize].count += 1;
        kind
    }

    fn number(&mut self, name: &str, quiet: bool) -> u32 {
        if let Some(&kind) = self.names.get(name) {
            return kind;
        }
        if self.kinds.len() >= MAX_KINDS {
            return MAX_KINDS as u32 - 1;
        }
        let last = self.kinds.len() + 1 == MAX_KINDS;
        let shown = if last { "(others)" } else { cut(name) };
        let kind = self.kinds.len() as u32;
        self.kinds.push(Kind { name: shown.into(), count: 0, quiet });
        self.names.insert(name.into(), kind);
        kind
    }

    /// All of them, by number.
    pub(super) fn all(&self) -> &[Kind] {
        &self.kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_do_not_fit_are_others() {
        let mut kinds = Kinds::default();
        for i in 0..2 * MAX_KINDS {
            kinds.of_kernel("syscall", &i.to_string());
        }
        let all = kinds.all();
        assert_eq!((all.len(), all[0].name.as_str(), all[0].count), (MAX_KINDS, "syscall 0", 1));
        let others = all.last().expect("some");
        assert_eq!((others.name.as_str(), others.count), ("(others)", MAX_KINDS as u64 + 1));
    }

    #[test]
    fn events_of_one_name_are_one_kind_whatever_their_site() {
        let mut kinds = Kinds::default();
        let (b, c): (Name, Name) = ("a.b".into(), "a.c".into());
        kinds.of_site(SiteId(0), &b, true);
        kinds.of_site(SiteId(7), &b, true);
        kinds.of_site(SiteId(7), &c, true);
        let counts: Vec<_> = kinds.all().iter().map(|k| (&*k.name, k.count)).collect();
        assert_eq!(counts, [("a.b", 2), ("a.c", 1)]);
    }
}
