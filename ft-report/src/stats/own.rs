//! What of a figure the recording itself is to blame for: threads of the agent had the CPU meanwhile, or are what was measured.

use serde::Serialize;

use crate::document::{Block, Builder, Ns, Of, Section, Share, Text};
use crate::text;
use ft_trace::ids::Pid;

/// A share is said beside a figure if it is more than one in so many.
const ONE_IN: i64 = 100;

/// Title of the columns of such shares.
pub(crate) const TITLE: &str = "recording";

/// A sum of such time; not known of traces that do not say who recorded them, and without the scheduler's records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Own(pub Option<i64>);

impl Own {
    /// Adds the time of a row.
    pub(crate) fn add(&mut self, ns: Option<i64>) {
        if let Some(ns) = ns {
            *self.0.get_or_insert(0) += ns;
        }
    }

    /// Whether it is not known.
    pub(crate) fn is_unknown(&self) -> bool {
        self.0.is_none()
    }

    /// What is said beside a figure of this length.
    pub(crate) fn beside(self, of_ns: i64) -> Option<Share> {
        self.0.filter(|&ns| ns > of_ns / ONE_IN).map(|ns| Share(ns, of_ns))
    }

    /// The same in a sentence: `, 12.3 % of it the recording itself`.
    pub(crate) fn of_it(self, of_ns: i64) -> Text {
        let say = |share| text!(", {} of it the recording itself", share);
        self.beside(of_ns).map_or(Text::default(), say)
    }
}

/// Adds a column of what is said beside the rows, if there is anything to say.
pub(crate) fn beside<T>(t: Builder<T>, of: impl Fn(&T) -> (Own, i64)) -> Builder<T> {
    t.notes(TITLE, |item| {
        let (own, ns) = of(item);
        own.beside(ns)
    })
}

/// Says what these columns mean, if a table of the section has one, and then, in sentences of its own (`more`), what is to be known of
/// this section's.
pub(crate) fn explain(s: &mut Section, more: &str) {
    let has = |block: &Block| match block {
        Block::Table(table) => table.columns.iter().any(|column| column.title == TITLE),
        _ => false,
    };
    if s.blocks.iter().any(has) {
        s.say(text!(
            "Recording: the share of a row's time in which threads of the ft-agent that made this recording had the CPU, where that is \
             more than 1 %. That time is the recording's own doing.{}",
            more
        ));
    }
}

/// What of the rows of a section is the recording's own: those of threads of the agent, which are recorded like all others with `-a`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OwnRows {
    /// How many.
    pub count: u64,
    /// Together, ns.
    pub total_ns: i64,
}

/// Sums them up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rows {
    agent: Option<Pid>,
    sum: OwnRows,
}

impl Rows {
    /// Of the agent that recorded; it is not known of old traces.
    pub(crate) fn of(agent: Option<Pid>) -> Rows {
        Rows { agent, ..Rows::default() }
    }

    /// Adds so many of a process, which took so long.
    pub(crate) fn add(&mut self, pid: Pid, count: u64, ns: i64) {
        if self.agent == Some(pid) {
            self.sum.count += count;
            self.sum.total_ns = self.sum.total_ns.saturating_add(ns);
        }
    }

    /// All of them; `None` where it is not known who recorded.
    pub(crate) fn finish(self) -> Option<OwnRows> {
        self.agent.map(|_| self.sum)
    }
}

impl OwnRows {
    /// Says it, of a section's rows, of which one is a `what`.
    pub(crate) fn say(own: Option<OwnRows>, what: &'static str, s: &mut Section) {
        if let Some(OwnRows { count, total_ns }) = own.filter(|own| own.count > 0) {
            let (count, total) = (Of(count, what), Ns(total_ns));
            s.say(text!(
                "The recording's own among them, of threads of ft-agent: {} ({}).",
                count,
                total
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_agent_are_the_recordings_own() {
        let sum = |agent| {
            let mut rows = Rows::of(agent);
            [(7, 30), (8, 500), (7, 4)].into_iter().for_each(|(pid, ns)| rows.add(Pid(pid), 1, ns));
            rows.finish()
        };
        let own = sum(Some(Pid(7)));
        assert_eq!(own, Some(OwnRows { count: 2, total_ns: 34 }));
        assert_eq!((sum(Some(Pid(9))), sum(None)), (Some(OwnRows::default()), None));
        let said = |own| {
            let mut s = Section::new("waits", "");
            OwnRows::say(own, "wait", &mut s);
            format!("{s:200}")
        };
        let text = said(own);
        assert!(
            text.contains(
                "The recording's own among them, of threads of ft-agent: 2 waits (34 ns)."
            ),
            "{text}"
        );
        assert!(
            !said(sum(Some(Pid(9)))).contains("recording") && !said(None).contains("recording")
        );
    }

    #[test]
    fn what_is_more_than_one_percent_is_said() {
        let said = |ns, of| Own(ns).beside(of).map(|share| (share.0, share.1));
        assert_eq!(said(Some(11), 1000), Some((11, 1000)));
        assert_eq!(said(Some(10), 1000), None);
        assert_eq!(said(Some(0), 0), None);
        assert_eq!(said(None, 1000), None);
    }

    #[test]
    fn what_is_not_known_of_any_row_is_not_known_of_all() {
        let mut own = Own::default();
        own.add(None);
        assert!(own.is_unknown());
        [Some(3), None, Some(4)].into_iter().for_each(|ns| own.add(ns));
        assert_eq!(own, Own(Some(7)));
    }
}
