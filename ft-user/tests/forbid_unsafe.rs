//! A crate that forbids `unsafe` can record events.
#![forbid(unsafe_code)]
#![cfg(not(ft_off))]

use std::num::NonZero;
use std::time::Duration;

use ft_user::{event, scope};

#[ft_user::function("forbidding.work")]
fn work(id: u64, name: &String) {
    let _scope = scope!("forbidding.work", id: u64, name: &String);
    event!("forbidding.done", id: u64, took: Duration = Duration::from_millis(3), first: char = 'a');
    event!("forbidding.left", left: Option<NonZero<u64>> = NonZero::new(id), key: &[u8; 4] = &[1; 4]);
}

#[test]
fn events_need_no_unsafe_code_of_ours() {
    assert_eq!(ft_user::enable("forbidding.*"), 4);
    assert_eq!(ft_user::enable("fn.forbidding.work"), 2);
    work(7, &String::from("seven"));
}
