//! Making switches and events, and writing.

use core::sync::atomic::{AtomicPtr, Ordering::*};

use super::{Description, Event, Switch, Types, Values, pool};
use crate::critical::Held;
use crate::described::DESCRIBED;
use crate::directory::Directory;
use crate::layout::{self, ArgType, MAX_ARGS, SiteMeta, Str, commit};
use crate::process;
use crate::sites::{self, MAX_METAS};
use crate::text::{self, Pair};
use crate::{arch, enable, site};

// What `Values` keeps of a text is enough for an event to tell that it was cut.
const _: () = assert!(super::values::ENOUGH == text::ENOUGH);

/// Metadata of switches and events, in the order of their coming. Changed by who holds the process lock.
static MADE: [AtomicPtr<SiteMeta>; MAX_METAS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_METAS];

pub(super) use pool::is_on;

pub(super) fn switch(description: &Description<'_>) -> Option<Switch> {
    if pool::is_full() {
        return None;
    }
    let meta = meta(description);
    let held = process::hold()?;
    let (place, trigger) = pool::next(&held)?;
    register(place, &held)?;
    // SAFETY: a new place.
    let meta = unsafe { pool::fill(place, meta) };
    if let Some(memfd) = process::memfd() {
        let (key, directory) = (key(meta), memfd.directory());
        DESCRIBED.add(directory.meta(key, meta), &held);
        DESCRIBED.add(directory.site(key, trigger), &held);
        enable::follow_rules(&memfd, meta.name(), trigger, &held);
    }
    Some(Switch { trigger, event: described(meta) })
}

pub(super) fn event(description: &Description<'_>) -> Option<Event> {
    if sites::are_full() {
        return None;
    }
    let meta: &'static SiteMeta = Box::leak(Box::new(meta(description)));
    let held = process::hold()?;
    register(core::ptr::from_ref(meta).cast_mut(), &held)?;
    if let Some(memfd) = process::memfd() {
        DESCRIBED.add(memfd.directory().meta(key(meta), meta), &held);
    }
    Some(described(meta))
}

/// Gives metadata a number; `None` if they can have none.
fn register(meta: *mut SiteMeta, held: &Held<'_>) -> Option<()> {
    let number = sites::number(meta as usize, held)?;
    // Those of other sites have numbers, too.
    let place = MADE[..=number].iter().find(|place| place.load(Relaxed).is_null())?;
    place.store(meta, Relaxed);
    Some(())
}

/// Describes what was made in a new directory, before any other site and in the order of its coming: so each has its number
/// again.
pub(crate) fn describe_all(directory: &Directory, held: &Held<'_>) {
    // SAFETY: null, or metadata that are whole, since whoever registers them holds the lock until they are, and never freed.
    let made = MADE.iter().map_while(|place| unsafe { place.load(Relaxed).as_ref() });
    for meta in made {
        if sites::number(core::ptr::from_ref(meta) as usize, held).is_some() {
            DESCRIBED.add(directory.meta(key(meta), meta), held);
            if let Some(trigger) = pool::trigger_of(meta) {
                DESCRIBED.add(directory.site(key(meta), trigger), held);
            }
        }
    }
}

pub(super) fn write(meta: &'static SiteMeta, values: &Values) {
    if values.are_words() {
        let words = values.words();
        // SAFETY: as many words as types, which are those of the arguments.
        unsafe {
            match values.types().len() {
                0 => arch::write_words::<0>(meta, words),
                1 => arch::write_words::<1>(meta, words),
                2 => arch::write_words::<2>(meta, words),
                3 => arch::write_words::<3>(meta, words),
                4 => arch::write_words::<4>(meta, words),
                5 => arch::write_words::<5>(meta, words),
                _ => arch::write_words::<6>(meta, words),
            }
        }
    } else {
        let mut pairs = [Pair { word: 0, extent: 0 }; MAX_ARGS];
        for (pair, (word, extent)) in pairs.iter_mut().zip(values.parts()) {
            *pair = Pair { word, extent };
        }
        // SAFETY: the texts lie in `values`; there are as many pairs as types, which are those of the arguments, and one at
        // least, which is no word.
        unsafe { arch::write_pairs(meta, &pairs) };
    }
}

fn key(meta: &'static SiteMeta) -> u32 {
    commit::key(core::ptr::from_ref(meta) as u64)
}

fn described(meta: &'static SiteMeta) -> Event {
    let types = meta.args().iter().filter_map(|arg| ArgType::from_u8(arg.ty));
    Event { meta, types: Types::of(types) }
}

fn meta(description: &Description<'_>) -> SiteMeta {
    let arg = |&(name, ty): &(&str, ArgType)| layout::Arg {
        name: Str::new(keep(name)),
        ty: ty as u8,
        _pad: [0; 7],
    };
    let args: Vec<_> = description.args.iter().map(arg).collect();
    let place = (keep(description.file), description.line);
    site::meta(description.kind.site(), keep(description.name), place, "", args.leak())
}

/// A copy for good.
fn keep(text: &str) -> &'static str {
    Box::leak(Box::from(text))
}
