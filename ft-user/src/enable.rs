//! Which sites are on: by glob, from the application, the environment and the agent.
//!
//! Whoever switches sites leaves a rule, so that the sites of an object that is loaded later are switched
//! as those of the others were.

use core::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Mutex, PoisonError};

use crate::critical::Held;
use crate::lease;
use crate::memfd::Memfd;
use crate::patch::{PatchError, Text};
use crate::process::{self, LOCK};
use crate::sites::{self, Count};
use crate::{
    Switched, fork, glob,
    layout::{MAX_REPLY_BYTES, commit},
};

/// Enables the sites whose name matches `glob` ([`crate::glob`]), in every loaded object, and returns
/// how many match and are on now. One on which a breakpoint stands (a debugger's, or that of a probe of the kernel) is switched
/// and not counted: its events can be missing until that goes, and a recording says so.
///
/// Starts tracing if [`init`](crate::init) was not called. Not for signal handlers.
///
/// The sites of a library that is loaded later are found by the next call of this function, of [`disable`]
/// or of [`init`](crate::init), and then are what the last call that named them made of the others. A library
/// that includes the C header makes such a call when it is loaded. 8 KiB of globs are remembered; the
/// oldest are forgotten first.
///
/// ```
/// let sites = ft_user::enable("order.*");
/// ```
pub fn enable(glob: &str) -> usize {
    switch(glob, true).done
}

/// Switches the sites whose name matches `glob`, as [`enable`] and [`disable`] do, and says of those that could not be switched why.
///
/// ```
/// let switched = ft_user::switch("order.*", true);
/// if let Some(why) = switched.refused {
///     eprintln!("{} of {}: {why}", switched.done, switched.matching);
/// }
/// ```
pub fn switch(glob: &str, on: bool) -> Switched {
    if on {
        process::init().ok();
    }
    set(glob, if on { Wish::On } else { Wish::Off })
}

/// Disables the sites whose name matches `glob`, and returns how many match and are off now; remembers it as
/// [`enable`] does.
///
/// A thread that is just passing a trigger may still write its event. Not for signal handlers.
pub fn disable(glob: &str) -> usize {
    switch(glob, false).done
}

/// What is wanted of sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Off,
    On,
    /// On for an agent, as long as it is there.
    Lent,
}

impl Wish {
    fn of(self, text: &mut Text, trigger: u64) -> Result<bool, PatchError> {
        match self {
            Wish::Off => text.set(trigger, false),
            Wish::On => text.set(trigger, true),
            Wish::Lent => text.lend(trigger),
        }
    }
}

pub(crate) fn set(glob: &str, wish: Wish) -> Switched {
    let Some(held) = process::hold() else { return Switched::default() };
    let Some(memfd) = process::memfd() else { return Switched::default() };
    RULES.remember(glob, wish, &held);
    apply(&memfd, &held, Some((glob, wish))).0
}

/// Whether sites of this name stay on without an agent, as far as the program has said so.
#[cfg(all(feature = "sleds", not(ft_off)))]
pub(crate) fn is_wanted_by_program(name: &str, held: &Held<'_>) -> bool {
    RULES.wanted(name, false, held) == Some(Wish::On)
}

/// Switches the sites of objects that were loaded since the last look, as the rules say. Counts all sites.
pub(crate) fn catch_up(memfd: &Memfd, held: &Held<'_>) -> Count {
    apply(memfd, held, None).1
}

/// Has functions of C and C++ found in which clang has left sleds (`-fxray-instrument`), and prepared: from the next
/// [`init`](crate::init) on they are sites, `fn.` and the symbol, as in programs that use `libfeather_trace` or the preload library.
/// With `FT_PATCHABLE` so are those with nops of gcc (`-fpatchable-function-entry=11`).
///
/// Call it before the first [`init`](crate::init), which then looks into the file of each loaded object: nops of gcc are prepared only
/// while the process has one thread.
///
/// ```
/// ft_user::find_sleds();
/// ft_user::init().ok();
/// ft_user::enable("fn.sqlite3_*");
/// ```
#[cfg(feature = "sleds")]
pub fn find_sleds() {
    #[cfg(not(ft_off))]
    crate::sled::want();
}

/// For libraries that have just been loaded: their sites are switched as those of the others were. Does
/// nothing before [`init`](crate::init).
#[doc(hidden)]
pub fn __loaded() {
    if process::made().is_none() {
        return;
    }
    fork::look();
    CAME.store(true, Relaxed);
    // The linker has the lock of who loads an object. Whoever has the process lock may wait for that, in an allocator which asks where its
    // caller is (`dladdr`), and looks once more then.
    if let Some(held) = LOCK.hold_soon()
        && let Some(memfd) = process::memfd()
    {
        catch_up(&memfd, &held);
    }
}

/// An object has come whose sites nobody may have looked for.
static CAME: AtomicBool = AtomicBool::new(false);

/// Switches a site that was made at run time, and is off, as the rules say.
#[cfg(all(feature = "dynamic", not(ft_off)))]
pub(crate) fn follow_rules(memfd: &Memfd, name: &str, trigger: usize, held: &Held<'_>) {
    if let Some(wish @ (Wish::On | Wish::Lent)) = RULES.wanted(name, !lease::is_over(memfd), held)
        && let Ok(mut text) = Text::own()
        && wish.of(&mut text, trigger as u64).is_ok()
    {
        memfd.header().sites_enabled.fetch_add(1, Relaxed);
    }
}

/// Switches the sites that are `asked` for, and new ones by the rules. Returns what became of those that are asked for.
fn apply(memfd: &Memfd, held: &Held<'_>, asked: Option<(&str, Wish)>) -> (Switched, Count) {
    CAME.store(false, Relaxed);
    let mut text = None;
    let has_agent = !lease::is_over(memfd);
    let mut switched = Switched::default();
    let mut count = sites::for_each(&memfd.directory(), held, |site, new| {
        let name = site.meta.name();
        let asked = asked.filter(|(glob, _)| glob::matches(glob, name)).map(|(_, wish)| wish);
        let ruled = || if new { RULES.wanted(name, has_agent, held) } else { None };
        let Some(wish) = asked.or_else(ruled) else { return };
        let result = own(&mut text).and_then(|text| wish.of(text, site.trigger as u64));
        if let Err(PatchError::Breakpoint { .. }) = result {
            let key = commit::key(core::ptr::from_ref(site.meta) as u64);
            memfd.shared_control().hidden_site.store(key, Relaxed);
        }
        if asked.is_some() {
            switched.count(result);
        }
    });
    #[cfg(all(feature = "sleds", not(ft_off)))]
    {
        let is_on = |wish| wish != Wish::Off;
        let asked = asked.map(|(glob, wish)| (glob, is_on(wish)));
        let wanted = |name: &str| RULES.wanted(name, has_agent, held).map(is_on);
        let sleds = crate::sled::apply(asked, wanted, &mut text, held);
        switched.add(sleds.switched);
        count.all += sleds.all;
        count.enabled += sleds.enabled;
    }
    if CAME.load(Relaxed) {
        count = apply(memfd, held, None).1;
    }
    memfd.header().sites_enabled.store(count.enabled as u32, Relaxed);
    (switched, count)
}

/// The text of this process, opened when it is first needed.
pub(crate) fn own(text: &mut Option<Text>) -> Result<&mut Text, PatchError> {
    match text {
        Some(text) => Ok(text),
        None => Text::own().map(|own| text.insert(own)),
    }
}

/// What was said of names, in order.
static RULES: Rules = Rules(Mutex::new(Vec::new()));

/// Globs, and what is wanted of what they match; the last that matches a name holds. Never contended: whoever
/// comes here holds the process lock, and in a child that has no memfd nobody comes here.
struct Rules(Mutex<Vec<(Box<str>, Wish)>>);

impl Rules {
    fn remember(&self, glob: &str, wish: Wish, _held: &Held<'_>) {
        let mut rules = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What it says again, or of all, it says alone. What an agent says is over with it, and what the program has said holds then.
        rules.retain(|(old, before)| {
            (glob != "*" && **old != *glob) || (wish == Wish::Lent && *before != Wish::Lent)
        });
        rules.push((glob.into(), wish));
        let mut bytes = 0;
        let kept = rules.iter().rev().take_while(|(glob, _)| {
            bytes += glob.len() + 1;
            bytes <= MAX_REMEMBERED
        });
        let forgotten = rules.len() - kept.count();
        rules.drain(..forgotten);
    }

    fn wanted(&self, name: &str, has_agent: bool, _held: &Held<'_>) -> Option<Wish> {
        let rules = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut matching = rules
            .iter()
            .rev()
            .filter(|(glob, wish)| (has_agent || *wish != Wish::Lent) && glob::matches(glob, name))
            .map(|&(_, wish)| wish);
        let last = matching.next()?;
        let is_on_without = last == Wish::Lent && matching.find(|&w| w != last) == Some(Wish::On);
        Some(if is_on_without { Wish::On } else { last })
    }
}

/// Bytes of globs that are remembered, each with one more: all that an agent can give, and as many besides.
///
/// Limit: the oldest are dropped first.
/// Shown by: `rules_are_bounded_and_the_oldest_go_first`.
const MAX_REMEMBERED: usize = 2 * MAX_REPLY_BYTES;

#[cfg(test)]
mod tests {
    use super::Wish::{Lent, Off, On};
    use super::*;
    use crate::critical::Lock;

    /// What is wanted while an agent is there, and when it is gone.
    fn wanted(rules: &[(&str, Wish)], name: &str) -> [Option<Wish>; 2] {
        let (lock, remembered) = (Lock::new(), Rules(Mutex::new(Vec::new())));
        for &(glob, wish) in rules {
            remembered.remember(glob, wish, &lock.hold());
        }
        [true, false].map(|has_agent| remembered.wanted(name, has_agent, &lock.hold()))
    }

    #[test]
    fn the_last_rule_that_names_a_site_holds() {
        let check = |rules: &[(&str, Wish)], expected| {
            assert_eq!(wanted(rules, "a.b"), [expected; 2], "{rules:?}");
        };
        check(&[], None);
        check(&[("c.*", On)], None);
        check(&[("a.*", On), ("a.b", Off)], Some(Off));
        check(&[("a.b", Off), ("a.*", On)], Some(On));
        check(&[("a.*", On), ("a.b", Off), ("a.*", On)], Some(On));
        check(&[("a.*", On), ("*", Off)], Some(Off));
    }

    #[test]
    fn what_an_agent_says_ends_with_it() {
        assert_eq!(wanted(&[("*", Lent)], "a.b"), [Some(Lent), None]);
        assert_eq!(wanted(&[("a.*", Off), ("*", Lent)], "a.b"), [Some(Lent), Some(Off)]);
        assert_eq!(wanted(&[("a.*", On), ("*", Lent)], "a.b"), [Some(On); 2]);
        assert_eq!(wanted(&[("a.*", On), ("a.*", Lent), ("*", Lent)], "a.b"), [Some(On); 2]);
        assert_eq!(wanted(&[("*", Lent), ("a.*", Off)], "a.b"), [Some(Off); 2]);
        assert_eq!(wanted(&[("*", Lent), ("*", On), ("c.*", Lent)], "c.d"), [Some(On); 2]);
    }

    #[test]
    fn rules_are_bounded_and_the_oldest_go_first() {
        let (lock, rules) = (Lock::new(), Rules(Mutex::new(Vec::new())));
        for n in 0..10_000 {
            rules.remember(&format!("a.{n:06}"), On, &lock.hold());
            rules.remember("same.glob", if n % 2 == 0 { On } else { Off }, &lock.hold());
        }
        assert_eq!(rules.0.lock().unwrap().len(), 1 + (MAX_REMEMBERED - 10) / 9);
        assert_eq!(rules.wanted("a.009999", true, &lock.hold()), Some(On));
        assert_eq!(rules.wanted("a.000000", true, &lock.hold()), None);
        assert_eq!(rules.wanted("same.glob", true, &lock.hold()), Some(Off));
    }
}
