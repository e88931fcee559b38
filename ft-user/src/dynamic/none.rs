//! What stands in for sites that are made at run time where there are none.

use super::{Description, Event, Switch, Values};
use crate::layout::SiteMeta;

pub(super) fn switch(_: &Description<'_>) -> Option<Switch> {
    None
}

pub(super) fn event(_: &Description<'_>) -> Option<Event> {
    None
}

pub(super) fn is_on(_: usize) -> bool {
    false
}

pub(super) fn write(_: &'static SiteMeta, _: &Values) {}
