//! Calls of functions with the attribute, from the attribute to what an agent reads.
#![cfg(not(ft_off))]

mod common;

use std::panic::catch_unwind;
use std::sync::Mutex;

use common::{Memory, start};
use ft_user::layout::SiteKind;
use ft_user::{Config, disable, enable};

/// Calls within calls: a recursion, which leaves early.
#[ft_user::function]
fn falls(from: u32) -> Option<u32> {
    let less = from.checked_sub(1)?;
    falls(less)
}

struct Parser<'a>(&'a [u8]);

impl<'a> Parser<'a> {
    /// With what a function can have before and behind its name.
    #[ft_user::function("Parser::next")]
    ///
    /// # Safety
    ///
    /// Always.
    #[inline]
    #[must_use = "it has been read"]
    pub(crate) unsafe fn next<const N: usize>(&mut self) -> impl Iterator<Item = u8> + use<'a, N>
    where
        Self: 'a,
    {
        #![allow(clippy::needless_return, reason = "an inner attribute, and an early return")]
        #![allow(unused_variables, reason = "another")]
        let (first, rest) = self.0.split_at(N.min(self.0.len()));
        self.0 = rest;
        return first.iter().copied();
    }
}

#[ft_user::function]
fn panics() {
    let _kept = Kept;
    panic!("on purpose");
}

/// Dropped within the call that it is a variable of.
struct Kept;

impl Drop for Kept {
    fn drop(&mut self) {
        r#loop();
    }
}

#[ft_user::function]
fn r#loop() {}

macro_rules! made {
    ($visible:vis $name:ident $body:block) => {
        #[ft_user::function]
        $visible fn $name() $body
    };
}

made!(pub(crate) of_a_macro {
    let _function = "no name of ours";
    assert_eq!(_function, "no name of ours");
});

/// One test at a time reads the memfd.
static READER: Mutex<()> = Mutex::new(());

/// What `work` tells with these on: the name with `>` at a begin, and `<` at an end.
fn told(glob: &str, work: impl FnOnce()) -> Vec<String> {
    let _one = READER.lock();
    start(Config::default());
    assert!(enable(glob) > 0);
    let mut memory = Memory::own();
    memory.take();
    work();
    let events = memory.take();
    disable(glob);
    let text = |event: common::Event| match event.kind {
        SiteKind::FunctionEnter => format!("> {}", event.name),
        SiteKind::FunctionExit => format!("< {}", event.name),
        other => panic!("{other:?}"),
    };
    events.into_iter().map(text).collect()
}

#[test]
fn each_call_has_a_begin_and_an_end_however_it_ends() {
    let events = told("fn.functions::*", || {
        assert_eq!(falls(2), None);
        assert!(catch_unwind(panics).is_err());
        of_a_macro();
    });
    let falls = ["> fn.functions::falls"; 3].into_iter().chain(["< fn.functions::falls"; 3]);
    let rest = [
        "> fn.functions::panics",
        "> fn.functions::loop",
        "< fn.functions::loop",
        "< fn.functions::panics",
        "> fn.functions::of_a_macro",
        "< fn.functions::of_a_macro",
    ];
    assert_eq!(events, falls.chain(rest).collect::<Vec<_>>());
}

#[test]
fn a_function_is_switched_by_the_name_that_it_was_given() {
    let events = told("fn.Parser::*", || {
        let mut parser = Parser(b"abc");
        // SAFETY: it is.
        let [ab, c]: [Vec<u8>; 2] =
            unsafe { [parser.next::<2>().collect(), parser.next::<4>().collect()] };
        assert_eq!([ab, c], [b"ab".to_vec(), b"c".to_vec()]);
        of_a_macro();
    });
    assert_eq!(events, ["> fn.Parser::next", "< fn.Parser::next"].repeat(2));
}
