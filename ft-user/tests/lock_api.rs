//! The locks of `parking_lot` behind the wrappers tell what those of `ft_user::sync` tell.
#![cfg(not(ft_off))]

#[path = "lock_api/cases.rs"]
mod cases;
mod common;

use std::time::Duration;

use ft_user::lock_api::{RawCondvar, RawMutex, RawRwLock};
use lock_api as api;

type Mutex<T> = api::Mutex<RawMutex<parking_lot::RawMutex>, T>;
type RwLock<T> = api::RwLock<RawRwLock<parking_lot::RawRwLock>, T>;
type Guard<'a, T> = api::MutexGuard<'a, RawMutex<parking_lot::RawMutex>, T>;
type Condvar = api::Condvar<RawCondvar<parking_lot::RawCondvar>>;

fn wait_until_set(condition: &Condvar, set: &mut Guard<'_, bool>) {
    condition.wait_while(set, |set| !*set);
}

fn times_out(condition: &Condvar, set: &mut Guard<'_, bool>, limit: Duration) -> bool {
    condition.wait_for(set, limit).timed_out()
}

/// What events call it.
fn address(condition: &Condvar) -> u64 {
    std::ptr::from_ref(condition.raw()) as u64
}
