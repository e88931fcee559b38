//! Columns whose values are a few words that are known beforehand: enums in memory, text in the tables.
//!
//! `words!` declares one: its variants, their words, and what a word means that is none of them, which a trace of a
//! later version may hold, or a damaged one.

/// One of a few words.
pub trait Word: Copy + Eq + 'static {
    /// All of them, in the order of their declaration.
    const ALL: &'static [Self];
    /// What each of them means, in the same order.
    const MEANINGS: &'static [&'static str];

    /// Its place in [`Word::ALL`].
    fn index(self) -> usize;
    /// The text in tables, JSON and reports.
    fn word(self) -> &'static str;
    /// The value with this word; each type says what it makes of one that it does not know.
    fn of(word: &str) -> Self;
}

/// Declares an enum of words.
///
/// `_ => Variant` at the end says what an unknown word is.
macro_rules! words {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident {
            $($(#[doc = $doc:literal])* $variant:ident = $word:literal,)*
            _ => $unknown:ident
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[doc = $doc])* $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// The text in tables, JSON and reports.
            pub const fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }

            #[doc = concat!("The value with this word; an unknown word is [`", stringify!($unknown), "`](Self::", stringify!($unknown), ").")]
            pub fn of(word: &str) -> $name {
                match word {
                    $($word => $name::$variant,)*
                    _ => $name::$unknown,
                }
            }
        }

        impl $crate::words::Word for $name {
            const ALL: &'static [$name] = $name::ALL;
            const MEANINGS: &'static [&'static str] = &[$(concat!($($doc, " ",)*)),*];

            fn index(self) -> usize {
                self as usize
            }
            fn word(self) -> &'static str {
                $name::word(self)
            }
            fn of(word: &str) -> $name {
                $name::of(word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }
    };
}

pub(crate) use words;

#[cfg(test)]
mod tests {
    use super::Word;
    use crate::Mark;
    use crate::tables::{GapCause, LockKind, LossOrigin, LossReason, Part, SiteKind, TaskState};

    fn check<W: Word + std::fmt::Debug + std::fmt::Display + serde::Serialize>(unknown: W) {
        for (i, &value) in W::ALL.iter().enumerate() {
            assert_eq!(value.index(), i);
            assert_eq!(W::of(value.word()), value);
            assert_eq!(value.to_string(), value.word());
            assert_eq!(serde_json::to_value(value).unwrap(), value.word());
            assert!(!W::MEANINGS[i].trim().is_empty());
        }
        assert_eq!(W::of("no such word"), unknown);
    }

    #[test]
    fn words_come_back_and_unknown_ones_are_what_the_declaration_says() {
        check(Mark::Censored);
        check(TaskState::Sleeping);
        check(LossOrigin::Agent);
        check(LossReason::Other);
        check(LockKind::Other);
        check(SiteKind::Event);
        check(Part::Unexplained);
        check(GapCause::Unexplained);
    }
}
