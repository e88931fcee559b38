//! Typed values: what a number or a name is, so that each renderer can show it in its own way.
//!
//! A section wraps its figures in the types below ([`Ns`], [`N`], [`Share`], …). The type decides the [`Kind`] of the
//! column that it stands in; no section turns a number into characters.

use ft_analysis::Mark;
use serde::Serialize;

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A word of the tables (a cause, a kind of lock), or free text.
    Word,
    /// Name of a thread.
    Thread,
    /// Name of a lock.
    Lock,
    /// Source place: `file:line`, with its directories.
    Place,
    /// Nanoseconds.
    DurationNs,
    /// How many.
    Count,
    /// A part of a whole, from 0 to 1.
    Share,
    /// By which part of itself something has grown: 0.05 is 5 % more.
    Change,
    /// How many in a second.
    Rate,
    /// How probable something is by chance alone, from 0 to 1.
    Probability,
    /// A number that names something, as a thread, a CPU or a priority: never added up.
    Number,
    /// How far a row can be believed.
    Mark,
    /// Of several kinds: each row has its own.
    Mixed,
}

/// A value that knows what it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Not known, or too few samples to say.
    Missing,
    /// [`Kind::Word`].
    Word(String),
    /// [`Kind::Word`] of which there is a page.
    Link(Link),
    /// [`Kind::Thread`].
    Thread(Thread),
    /// [`Kind::Lock`].
    Lock(Lock),
    /// [`Kind::Place`].
    Place(String),
    /// [`Kind::DurationNs`]. Averages have fractions.
    Duration(f64),
    /// [`Kind::DurationNs`], shown to the nanosecond.
    Nanoseconds(i64),
    /// [`Kind::DurationNs`] of what can be looked at in the trace.
    Interval(Interval),
    /// [`Kind::Count`].
    Count(u64),
    /// [`Kind::Count`] of what is named: `2 holds`.
    Quantity(u64, &'static str),
    /// [`Kind::Share`]: a part and its whole.
    Share(i64, i64),
    /// [`Kind::Change`]: at least -1, which is nothing left.
    Change(f64),
    /// [`Kind::Rate`].
    Rate(f64),
    /// [`Kind::Probability`].
    Probability(f64),
    /// [`Kind::Number`].
    Number(i64),
    /// [`Kind::Mark`].
    Mark(Mark),
}

/// A Rust type whose values have a [`Kind`].
pub trait Typed {
    /// What they are.
    const KIND: Kind;

    /// The value.
    fn value(self) -> Value;
}

impl Typed for Value {
    const KIND: Kind = Kind::Mixed;

    fn value(self) -> Value {
        self
    }
}

impl<T: Typed> Typed for Option<T> {
    const KIND: Kind = T::KIND;

    fn value(self) -> Value {
        self.map_or(Value::Missing, T::value)
    }
}

/// A duration, ns.
#[derive(Clone, Copy, Debug)]
pub struct Ns(pub i64);

/// An average of durations, ns.
#[derive(Clone, Copy, Debug)]
pub struct MeanNs(pub f64);

/// A duration whose every nanosecond is shown.
#[derive(Clone, Copy, Debug)]
pub struct ExactNs(pub i64);

/// The length of an interval of the trace, and where it lies: a link, where the trace can be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Begin, CLOCK_MONOTONIC ns.
    pub ts: i64,
    /// Length, ns.
    pub dur_ns: i64,
    /// The thread whose interval it is.
    pub tid: i32,
    /// Address of the lock that it is about.
    pub lock: Option<i64>,
}

/// How many.
#[derive(Clone, Copy, Debug)]
pub struct N(pub u64);

/// How many of what: the singular of the noun.
#[derive(Clone, Copy, Debug)]
pub struct Of(pub u64, pub &'static str);

/// A part and its whole: durations, or counts ([`Share::of`]).
#[derive(Clone, Copy, Debug)]
pub struct Share(pub i64, pub i64);

impl Share {
    /// `part` of `whole` by count.
    pub fn of(part: u64, whole: u64) -> Share {
        let [part, whole] = [part, whole].map(|n| i64::try_from(n).unwrap_or(i64::MAX));
        Share(part, whole)
    }
}

/// By which part of itself something has grown, or shrunk: 0.05 is 5 % more, and infinity what nothing has become.
#[derive(Clone, Copy, Debug)]
pub struct Change(pub f64);

/// How many in a second.
#[derive(Clone, Copy, Debug)]
pub struct Rate(pub f64);

/// A p value: how probable a difference as large is by chance alone, from 0 to 1.
#[derive(Clone, Copy, Debug)]
pub struct Probability(pub f64);

/// A number that is a name: of a thread, a CPU, a priority.
#[derive(Clone, Copy, Debug)]
pub struct Id(pub i32);

/// A number that is a name and may be large: of a request, a key.
#[derive(Clone, Copy, Debug)]
pub struct Number(pub i64);

/// A word of the tables, or free text; a [`String`] is one, too.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a>(pub &'a str);

/// What has a page of its own, perhaps: a link in a page, and a word everywhere else.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// What it is called.
    pub word: String,
    /// Where that is, as seen from the page, in what a URL may hold; empty where there is none.
    pub href: String,
}

/// A source place, `file:line`; empty when it is not known.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a>(pub &'a str);

/// A thread by its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// Its name; empty when it is not known.
    pub name: String,
    /// The idle task, which has a name of its own for each CPU.
    pub idle: bool,
}

impl Thread {
    /// With this name.
    pub fn named(name: &str) -> Thread {
        Thread { name: name.to_owned(), idle: false }
    }

    /// Of rows that may not know it: number 0 is the idle task.
    pub fn of(tid: Option<i32>, name: Option<&str>) -> Thread {
        Thread { name: name.unwrap_or_default().to_owned(), idle: tid == Some(0) }
    }
}

/// A lock, or locks of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Lock {
    /// Name; empty: all locks together.
    pub name: String,
    /// How many there are of this name; 0 and 1 are not worth a word.
    pub instances: u64,
    /// There are more than these.
    pub more: bool,
    /// Where it lies in memory, if that distinguishes it from another of its name.
    pub address: Option<i64>,
}

impl Lock {
    /// One lock.
    pub fn named(name: &str) -> Lock {
        Lock { name: name.to_owned(), instances: 1, more: false, address: None }
    }
}

/// Declares what a type is, and how it becomes a value.
macro_rules! typed {
    ($($type:ty: $kind:ident, $self:ident => $value:expr;)*) => { $(
        impl Typed for $type {
            const KIND: Kind = Kind::$kind;

            fn value($self) -> Value {
                $value
            }
        }
    )* };
}

typed! {
    Ns: DurationNs, self => Value::Duration(self.0 as f64);
    MeanNs: DurationNs, self => Value::Duration(self.0);
    Interval: DurationNs, self => Value::Interval(self);
    ExactNs: DurationNs, self => Value::Nanoseconds(self.0);
    N: Count, self => Value::Count(self.0);
    Of: Count, self => Value::Quantity(self.0, self.1);
    Share: Share, self => Value::Share(self.0, self.1);
    Change: Change, self => Value::Change(self.0);
    Rate: Rate, self => Value::Rate(self.0);
    Probability: Probability, self => Value::Probability(self.0);
    Id: Number, self => Value::Number(self.0.into());
    Number: Number, self => Value::Number(self.0);
    Word<'_>: Word, self => Value::Word(self.0.to_owned());
    String: Word, self => Value::Word(self);
    Link: Word, self => Value::Link(self);
    Place<'_>: Place, self => match self.0 {
        "" => Value::Missing,
        place => Value::Place(place.to_owned()),
    };
    Thread: Thread, self => Value::Thread(self);
    Lock: Lock, self => Value::Lock(self);
    Mark: Mark, self => Value::Mark(self);
}
