//! Values of fields, with their types as far as an event has room for them.

use std::fmt;

use ft_user::layout::{ABSENT, TEXT_CUT};
use tracing::{field, info, info_span};

use crate::common::Event;
use crate::{forms, recorded, stage, text};

#[test]
fn fields_keep_their_types() {
    let _turn = stage();
    let nothing: Option<u64> = None;
    let events = recorded("typed", || {
        info!(target: "typed", a = 1.5, b = true, c = nothing, d = ?Some(1), e = %"shown");
        let error: &(dyn std::error::Error + 'static) = &fmt::Error;
        info!(target: "typed", wide = u128::MAX, error, bytes = &b"\xff\0"[..]);
        let span = info_span!(target: "typed", "late", at = 1, later = field::Empty);
        span.record("later", 2u8);
        span.record("later", "two");
    });
    let [first, second, opened, number, word, _closed] = &events[..] else { panic!("{events:?}") };
    assert_eq!(first.words[..3], [ABSENT, 1.5f64.to_bits(), 1]);
    assert_eq!((text(&first.words, 3), text(&first.words, 5)), ("Some(1)".into(), "shown".into()));
    assert_eq!(text(&second.words, 1), u128::MAX.to_string());
    let error = fmt::Error.to_string();
    let at = 2 + u128::MAX.to_string().len().div_ceil(8);
    assert_eq!(text(&second.words, at), error);
    let at = at + 1 + error.len().div_ceil(8);
    assert_eq!(second.words[at..at + 2], [2, 0xff]);
    assert_eq!(opened.words[1..3], [ABSENT, 1]);
    assert_eq!((&*number.name, number.words[1]), ("typed.late.record", 2));
    assert_eq!((&*word.name, text(&word.words, 1)), ("typed.late.record", "two".into()));
    let args = forms("typed.info").concat();
    assert!(!args.iter().any(|(_, name)| name == "c"), "a field without a value is no argument");
}

#[test]
fn what_has_no_room_is_text() {
    let _turn = stage();
    let events = recorded("many", || {
        info!(target: "many", a = 1, b = 2, c = 3, d = 4, e = 5, f = "six", "message");
        info!(target: "many", a = 1, b = 2, c = 3, d = 4, e = 5);
        let _span = info_span!(target: "many", "span", a = 1, b = 2, c = 3, d = 4, e = ?[5; 9]);
        // One argument for the rest, of which the event holds what it can.
        let long = "x".repeat(400);
        info!(target: "many", a = 1, b = 2, c = 3, d = 4, long, last = 7, "message");
    });
    let rest = |event: &Event, at| text(&event.words, at);
    // `span`, and the message, which comes first.
    assert_eq!(text(&events[0].words, 1), "message");
    assert_eq!(events[0].words[3..6], [1, 2, 3]);
    assert_eq!(rest(&events[0], 6), "d=4 e=5 f=\"six\"");
    assert_eq!(events[1].words[..6], [ABSENT, 1, 2, 3, 4, 5]);
    assert_eq!(events[2].words[2..5], [1, 2, 3]);
    assert_eq!(rest(&events[2], 5), "d=4 e=[5, 5, 5, 5, 5, 5, 5, 5, 5]");
    assert_ne!(events[3].words[6] & TEXT_CUT, 0);
    assert!(rest(&events[3], 6).starts_with("d=4 long=\"xxxx"));
}

#[test]
fn a_callsite_of_too_many_forms_writes_text() {
    let _turn = stage();
    fn say(value: &dyn field::Value) {
        info!(target: "forms", value, "m");
    }
    let values: [&dyn field::Value; 6] = [&1u64, &-1i64, &1.5, &true, &"text", &2u64];
    let events = recorded("forms", || values.into_iter().for_each(say));
    let last = |event: &Event| *event.words.iter().rfind(|word| **word != 0).unwrap();
    assert_eq!(events.len(), 6);
    // The message stands in front, in two words.
    assert_eq!([0, 1, 2, 5].map(|i: usize| events[i].words[3]), [1, u64::MAX, 1.5f64.to_bits(), 2]);
    assert_eq!(text(&events[3].words, 1), "message=m value=true");
    assert_eq!(text(&events[4].words, 1), "message=m value=\"text\"");
    assert!(last(&events[3]) != 0);
    assert_eq!(forms("forms.info").len(), 4, "the site itself, and three forms");
}
