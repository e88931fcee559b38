//! The locks of `parking_lot` 0.12 behind the wrappers tell what those of `ft_user::sync` tell.
#![cfg(not(ft_off))]

#[path = "lock_api/cases.rs"]
mod cases;
mod common;

use std::time::Duration;

use ft_user::lock_api_0_4::{RawMutex, RawRwLock, wait};
use lock_api_0_4 as api;
use parking_lot_0_12::{self as parking_lot, Condvar};

type Mutex<T> = api::Mutex<RawMutex<parking_lot::RawMutex>, T>;
type RwLock<T> = api::RwLock<RawRwLock<parking_lot::RawRwLock>, T>;
type Guard<'a, T> = api::MutexGuard<'a, RawMutex<parking_lot::RawMutex>, T>;

fn wait_until_set(condition: &Condvar, set: &mut Guard<'_, bool>) {
    while !**set {
        wait(condition, set, Condvar::wait);
    }
}

fn times_out(condition: &Condvar, set: &mut Guard<'_, bool>, limit: Duration) -> bool {
    wait(condition, set, |condition, set| condition.wait_for(set, limit)).timed_out()
}

/// What events call it.
fn address(condition: &Condvar) -> u64 {
    std::ptr::from_ref(condition) as u64
}
