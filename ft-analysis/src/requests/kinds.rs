//! What the user calls a request.

use std::fmt;

use ft_trace::tables::{SiteKind, SiteRow};
use ft_user::glob;
use serde::{Deserialize, Serialize};

use super::causes::{Cause, Names, Recorded, matched};
use super::cycles::written;

/// Arguments of an event that analyses see.
const SEEN_ARGS: usize = 3;

/// A kind of request, of reaction or of cycle that somebody has asked for, beside the outermost scopes, which always are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestKind {
    /// Event that begins one; of a scope, its name; of a reaction, a glob of whatever its cause is; of a cycle, a glob of threads.
    pub begin: String,
    /// Event that ends one, of a reaction a glob of such; `None`: it is a scope, which counts wherever it is nested.
    pub end: Option<String>,
    /// Argument of both events by which an end finds its begin, on whatever thread; `None`: both are on one thread, and the
    /// end takes the newest begin. Of reactions without one, an answer is to all causes before it, wherever they were.
    pub key: Option<String>,
    /// It is a reaction to this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// It is a cycle of a thread that sleeps until times, and may take so long, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<i64>,
}

/// Why there can be no such request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoRequest {
    /// It names nothing, or more than two events.
    Form(String),
    /// It is no cause of a reaction.
    Cause(String),
    /// It is no answer.
    Answer(String),
    /// It is no deadline.
    Deadline(String),
    /// A cause that is no event has no arguments.
    KeyOfCause(String),
    /// No interrupt, thread or event of the trace is meant.
    NothingLike {
        /// Which of these.
        what: &'static str,
        /// Who is meant.
        glob: String,
        /// What there is.
        there: Names,
    },
    /// Each event that is named as a cause is an answer, too, and so no cause.
    OnlyAnswers(String),
    /// The trace has no such records.
    NotRecorded {
        /// The cause.
        from: String,
        /// The group of the kernel's records that has them.
        group: &'static str,
    },
    /// A scope ends on the thread that began it.
    KeyOfScope(String),
    /// The trace has no such event, or scope.
    NoEvent(String),
    /// The event has no such argument among the first three.
    NoKey {
        /// The event.
        event: String,
        /// The argument.
        key: String,
        /// The arguments that it has.
        args: String,
    },
    /// The argument is no whole number.
    NotWhole {
        /// The event.
        event: String,
        /// The argument.
        key: String,
    },
}

impl std::error::Error for NoRequest {}

impl fmt::Display for NoRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoRequest::Form(text) => write!(
                f,
                "`{text}` names no request: give the events that begin and end one, as in `http.begin,http.end`, or a scope"
            ),
            NoRequest::Cause(text) => write!(
                f,
                "`{text}` is no cause: give `irq:NAME`, `timer:THREAD`, `packet:THREAD`, `wake:THREAD` or `event:NAME`, as in `--from 'irq:eth*'`"
            ),
            NoRequest::Answer(text) => write!(
                f,
                "`{text}` is no answer: give the event that answers, as in `--to event:message.received`"
            ),
            NoRequest::Deadline(text) => write!(
                f,
                "`{text}` is no deadline: give a thread and a time, as in `--deadline 'rt-loop=1ms'`"
            ),
            NoRequest::KeyOfCause(text) => write!(
                f,
                "`{text}` has no arguments, and no key: leave out --key, or give `event:NAME`"
            ),
            NoRequest::NothingLike { what, glob, there } => write!(
                f,
                "no {what} of the trace matches `{glob}`: name one that it has, as {there}"
            ),
            NoRequest::OnlyAnswers(glob) => write!(
                f,
                "each event that matches `{glob}` is an answer by --to, and an answer is no cause: name fewer by --to"
            ),
            NoRequest::NotRecorded { from, group } => write!(
                f,
                "the trace cannot tell `{from}`: record with the kernel group `{group}`, as `-k default` does"
            ),
            NoRequest::KeyOfScope(name) => write!(
                f,
                "scope `{name}` ends on the thread that began it: leave out its key, or name two events"
            ),
            NoRequest::NoEvent(name) => write!(
                f,
                "the trace has no `{name}`: `ft-agent events DIR --list-events` names what it has"
            ),
            NoRequest::NoKey { event, key, args } => write!(
                f,
                "`{key}` is not among the first three arguments of `{event}`: name one of ({args})"
            ),
            NoRequest::NotWhole { event, key } => write!(
                f,
                "argument `{key}` of `{event}` is no whole number: name one that is, or record one"
            ),
        }
    }
}

impl RequestKind {
    /// Reads `BEGIN,END`, or the name of a scope.
    ///
    /// # Errors
    ///
    /// When it is neither, or a scope with a key.
    pub fn parse(text: &str, key: Option<&str>) -> Result<RequestKind, NoRequest> {
        let names: Vec<&str> = text.split(',').map(str::trim).collect();
        let kind = |end: Option<&str>| RequestKind {
            begin: names[0].to_owned(),
            end: end.map(str::to_owned),
            key: key.map(str::to_owned),
            cause: None,
            deadline_ns: None,
        };
        match names[..] {
            [scope] if !scope.is_empty() => match key {
                None => Ok(kind(None)),
                Some(_) => Err(NoRequest::KeyOfScope(scope.to_owned())),
            },
            [begin, end] if !begin.is_empty() && !end.is_empty() => Ok(kind(Some(end))),
            _ => Err(NoRequest::Form(text.to_owned())),
        }
    }

    /// What the column `kind` says.
    pub fn name(&self) -> String {
        if let Some(ns) = self.deadline_ns {
            return format!("{}={}", self.begin, written(ns));
        }
        if let (Some(cause), Some(end)) = (self.cause, &self.end) {
            return format!("{}:{},event:{end}", cause.word(), self.begin);
        }
        self.end.as_ref().map_or(self.begin.clone(), |end| format!("{},{end}", self.begin))
    }

    /// Whether a trace with these sites, that has recorded this, can have such a request.
    ///
    /// # Errors
    ///
    /// When it cannot: why.
    pub fn check(&self, sites: &[SiteRow], recorded: &Recorded) -> Result<(), NoRequest> {
        let known = |name: &str, is: fn(SiteKind) -> bool| {
            let found = sites.iter().any(|site| *site.event == *name && is(site.kind));
            if found { Ok(()) } else { Err(NoRequest::NoEvent(name.to_owned())) }
        };
        if self.deadline_ns.is_some() {
            return self.check_threads(recorded);
        }
        let Some(end) = &self.end else {
            return known(&self.begin, |kind| kind == SiteKind::ScopeBegin);
        };
        if let Some(cause) = self.cause {
            let events = || sites.iter().map(|site| &site.event);
            self.check_cause(cause, recorded)?;
            matched(Cause::Event, end, events())?;
            if cause == Cause::Event {
                matched(cause, &self.begin, events())?;
                if !events().any(|event| self.does(event) == Some(Does::Causes)) {
                    return Err(NoRequest::OnlyAnswers(self.begin.clone()));
                }
            }
        } else {
            known(&self.begin, |_| true)?;
            known(end, |_| true)?;
        }
        let own = |site: &&SiteRow| self.does(&site.event).is_some();
        let Some(key) = &self.key else { return Ok(()) };
        sites.iter().filter(own).try_for_each(|site| argument(site, key).map(|_| ()))
    }

    /// What an event of this name does to such a request, if it is none of a scope.
    fn does(&self, event: &str) -> Option<Does> {
        let end = self.end.as_ref()?;
        match self.cause {
            Some(_) if glob::matches(end, event) => Some(Does::Answers),
            Some(Cause::Event) if glob::matches(&self.begin, event) => Some(Does::Causes),
            Some(_) => None,
            None if event == self.begin => Some(Does::Begins),
            None if event == end => Some(Does::Ends),
            None => None,
        }
    }

    /// What an event of this site is to such a request.
    pub(crate) fn role(&self, site: &SiteRow, kind: usize) -> Option<Role> {
        if self.deadline_ns.is_some() {
            return None;
        }
        if self.end.is_none() {
            let named = site.kind == SiteKind::ScopeBegin && *site.event == *self.begin;
            return named.then_some(Role { kind, does: Does::Names, key: None });
        }
        let does = self.does(&site.event)?;
        let key = self.key.as_ref().map(|key| argument(site, key)).transpose().ok()?;
        Some(Role { kind, does, key })
    }
}

/// What an event is to a kind of request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Role {
    /// Which of those that were asked for.
    pub(crate) kind: usize,
    pub(crate) does: Does,
    /// Which argument is the key.
    pub(crate) key: Option<usize>,
}

/// What an event does to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    /// It begins one.
    Begins,
    /// It ends one.
    Ends,
    /// It begins a scope that is one.
    Names,
    /// It causes a reaction.
    Causes,
    /// It answers a cause.
    Answers,
}

/// Which argument of a site is called `key`.
fn argument(site: &SiteRow, key: &str) -> Result<usize, NoRequest> {
    let event = || site.event.to_string();
    let args = || site.args.split(", ").take(SEEN_ARGS).enumerate();
    let named = args().find_map(|(i, arg)| {
        let (name, kind) = arg.rsplit_once(':')?;
        (name == key).then_some((i, kind))
    });
    match named {
        Some((_, "float" | "str" | "bytes")) => {
            Err(NoRequest::NotWhole { event: event(), key: key.to_owned() })
        }
        Some((i, _)) => Ok(i),
        None => {
            let names = args().filter_map(|(_, arg)| arg.rsplit_once(':')).map(|(name, _)| name);
            let args = names.collect::<Vec<_>>().join(", ");
            Err(NoRequest::NoKey { event: event(), key: key.to_owned(), args })
        }
    }
}
