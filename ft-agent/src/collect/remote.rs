//! Switches sites of a process that already runs.
//!
//! Rule: a byte is written only at an address that the process itself declared (in its directory, or by
//! a note: [`super::outside`]), that lies in a mapping which the kernel says is executable, and where
//! the bytes of a trigger stand ([`ft_user::patch::Text`] checks that). The process is not stopped and
//! no thread enters it. A recording leaves on afterwards what the program or its user has switched on. What is on for an agent
//! shows in the trigger ([`ft_user::layout::TRIGGER_LENT`]); so what an agent has left that was killed is switched off by the next.
//!
//! The memory that is opened stays that of one program, also when the process goes on to another one by
//! `exec`. So whoever opens it first and then looks where triggers are ([`Remote::enable_found`]) can at worst
//! write to a program that is gone.

use std::ops::Range;

use ft_user::glob;
use ft_user::layout::{SLED_BYTES, Sled, TRIGGER_BYTES};
use ft_user::patch::{PatchError, Text};

use super::maps::executable;
use super::{maps, outside};
use ft_trace::mounts::Mounts;

/// What one byte switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The trigger at an address.
    Trigger(u64),
    /// A sled.
    Sled(Sled),
}

impl Place {
    /// All its bytes lie in one of the ranges.
    fn is_in(self, text: &[Range<u64>]) -> bool {
        let (at, bytes) = match self {
            Place::Trigger(address) => (address, TRIGGER_BYTES),
            Place::Sled(sled) => (sled.address, SLED_BYTES),
        };
        let end = at.checked_add(bytes);
        end.is_some_and(|end| text.iter().any(|range| range.start <= at && end <= range.end))
    }

    fn address(self) -> u64 {
        match self {
            Place::Trigger(address) => address,
            Place::Sled(sled) => sled.address,
        }
    }

    /// Switches it on for an agent.
    fn lend(self, text: &mut Text) -> Result<bool, PatchError> {
        match self {
            Place::Trigger(address) => text.lend(address),
            Place::Sled(sled) => text.set_sled(sled, true),
        }
    }

    /// Switches it off if it is on for an agent, as every sled may be.
    fn take_back(self, text: &mut Text) -> Result<bool, PatchError> {
        match self {
            Place::Trigger(address) => text.take_back(address),
            Place::Sled(sled) => text.set_sled(sled, false),
        }
    }

    /// Switches it, unless something else stands there.
    fn set(self, text: &mut Text, on: bool) -> Result<bool, PatchError> {
        match self {
            Place::Trigger(address) => text.set(address, on),
            Place::Sled(sled) => text.set_sled(sled, on),
        }
    }
}

/// Sites that were switched on from outside; switched off when this is dropped.
#[derive(Debug)]
pub struct Remote {
    pid: i32,
    text: Text,
    enabled: Vec<Place>,
}

/// What became of the sites that matched.
#[derive(Debug, Default)]
pub struct Patched {
    /// The triggers and sleds that were switched.
    pub switched: Vec<Place>,
    /// Those that were switched on under a breakpoint, which is among the reasons in `refused`.
    pub hidden: Vec<Place>,
    /// Triggers that were so already.
    pub already: usize,
    /// Triggers that were left alone, the first reason of each kind.
    pub refused: Vec<PatchError>,
}

impl Remote {
    /// The process.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Opens the memory of a process.
    ///
    /// # Errors
    ///
    /// When it is gone or may not be traced.
    pub fn open(pid: i32) -> Result<Remote, PatchError> {
        Ok(Remote { pid, text: Text::of(pid)?, enabled: Vec::new() })
    }

    /// Switches on every trigger whose name matches one of the globs, until this is dropped.
    pub fn enable(&mut self, triggers: &[(String, Place)], globs: &[String]) -> Patched {
        let outcome = self.change(triggers, globs, Place::lend);
        self.enabled.extend_from_slice(&outcome.switched);
        self.enabled.extend_from_slice(&outcome.hidden);
        outcome
    }

    /// The same for those that are found from outside now. What a directory declares may be a program that
    /// the process has left behind, and a byte that looks like a trigger stands anywhere. Sleds, which no directory declares, are
    /// all that are found.
    pub fn enable_found(&mut self, triggers: &[(String, u64)], globs: &[String]) -> Patched {
        let found = outside::sites(self.pid, &Mounts::of(self.pid)).unwrap_or_default();
        let is_found = |address| found.binary_search_by_key(&address, |site| site.address).is_ok();
        let declared = triggers.iter().filter(|&&(_, address)| is_found(address));
        let declared = declared.map(|(name, address)| (name.clone(), Place::Trigger(*address)));
        let sled = |site: &outside::Site| Some((site.name.clone(), Place::Sled(site.sled?)));
        let places: Vec<_> = declared.chain(found.iter().filter_map(sled)).collect();
        self.enable(&places, globs)
    }

    /// Switches every trigger whose name matches one of the globs, for good.
    pub fn switch(&mut self, triggers: &[(String, Place)], globs: &[String], on: bool) -> Patched {
        self.change(triggers, globs, |place, text| place.set(text, on))
    }

    fn change(
        &mut self,
        triggers: &[(String, Place)],
        globs: &[String],
        change: impl Fn(Place, &mut Text) -> Result<bool, PatchError>,
    ) -> Patched {
        let mut outcome = Patched::default();
        let executable = executable(&maps::read(self.pid).unwrap_or_default());
        let matching =
            triggers.iter().filter(|(name, _)| globs.iter().any(|g| glob::matches(g, name)));
        for &(_, place) in matching {
            let set = if place.is_in(&executable) {
                change(place, &mut self.text)
            } else {
                Err(PatchError::NotText { address: place.address() })
            };
            match set {
                Ok(true) => outcome.switched.push(place),
                Ok(false) => outcome.already += 1,
                Err(e) => {
                    if matches!(e, PatchError::Breakpoint { switched: true, .. }) {
                        outcome.hidden.push(place);
                    }
                    let kind = std::mem::discriminant(&e);
                    if !outcome.refused.iter().any(|r| std::mem::discriminant(r) == kind) {
                        outcome.refused.push(e);
                    }
                }
            }
        }
        outcome
    }

    /// Switches off what [`Remote::enable`] switched on. Returns how many triggers stay on because the
    /// process or their object is gone.
    pub fn disable(&mut self) -> usize {
        if self.enabled.is_empty() {
            return 0;
        }
        let executable = executable(&maps::read(self.pid).unwrap_or_default());
        let places = std::mem::take(&mut self.enabled);
        let off =
            |place: &Place| place.is_in(&executable) && place.take_back(&mut self.text).is_ok();
        let total = places.len();
        total - places.iter().copied().filter(off).count()
    }

    /// Has [`Remote::disable`] switch off all of these triggers that are on for an agent, whoever has switched them on.
    pub fn adopt(&mut self, triggers: impl Iterator<Item = u64>) {
        self.enabled.extend(triggers.map(Place::Trigger));
    }
}

impl Remote {
    /// Leaves everything as it is.
    pub fn leave(mut self) {
        self.enabled.clear();
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.disable();
    }
}

#[cfg(test)]
mod tests {
    use ft_user::layout::{TRIGGER_LENT, TRIGGER_OFF, TRIGGER_ON};
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};

    use super::*;

    #[test]
    fn only_executable_ranges_count() {
        let maps =
            "1000-3000 r-xp 0 0:0 0 /bin/x\n3000-4000 rw-p 0 0:0 0\nrubbish\n5000-6000 --xp 0";
        assert_eq!(executable(maps), [0x1000..0x3000, 0x5000..0x6000]);
        assert_eq!(executable(""), []);
    }

    #[test]
    fn a_trigger_lies_in_text_with_all_its_bytes() {
        let text = executable("1000-3000 r-xp 0 0:0 0 /bin/x");
        let at = [0xfff, 0x1000, 0x2ff8, 0x2ff9, 0x3000, u64::MAX];
        assert_eq!(
            at.map(|at| Place::Trigger(at).is_in(&text)),
            [false, true, true, false, false, false]
        );
    }

    #[test]
    fn a_declared_address_that_is_no_text_is_refused() {
        static DATA: [u32; 2] = [TRIGGER_OFF; 2];
        let at = DATA.as_ptr() as u64;
        let mut remote = Remote::open(std::process::id() as i32).unwrap();
        let place = Place::Trigger;
        let triggers =
            [("a.b", at), ("a.c", 8), ("z", at)].map(|(name, at)| (name.to_owned(), place(at)));
        let outcome = remote.enable(&triggers, &["a.*".to_owned()]);
        assert_eq!((outcome.switched.len(), outcome.already, outcome.refused.len()), (0, 0, 1));
        assert_eq!(DATA[0], TRIGGER_OFF);
        assert_eq!(remote.disable(), 0);
    }

    /// A page of text that begins with this word, and is never executed.
    fn text_of(word: u32) -> u64 {
        let page = ft_user::layout::PAGE as usize;
        let (flags, none) = (MapFlags::PRIVATE, std::ptr::null_mut());
        // SAFETY: a new page at an address of the kernel's choice, which only this test knows; it is written
        // before it is made text, and never executed.
        unsafe {
            let at = mmap_anonymous(none, page, ProtFlags::READ | ProtFlags::WRITE, flags).unwrap();
            at.cast::<u32>().write(word);
            mprotect(at, page, MprotectFlags::READ | MprotectFlags::EXEC).unwrap();
            at as u64
        }
    }

    #[test]
    fn what_another_agent_has_left_on_goes_off_and_what_a_user_has_switched_on_does_not() {
        let (left, on, new) = (text_of(TRIGGER_LENT), text_of(TRIGGER_ON), text_of(TRIGGER_OFF));
        // SAFETY: pages that can be read, and are mapped for good.
        let found = || [left, on, new].map(|at| unsafe { (at as *const u32).read_volatile() });
        let mut remote = Remote::open(std::process::id() as i32).unwrap();
        let sites = [left, on, new].map(|at| ("a.b".to_owned(), Place::Trigger(at)));
        let outcome = remote.enable(&sites, &["*".to_owned()]);
        assert_eq!((outcome.switched, outcome.already), (vec![Place::Trigger(new)], 2));
        assert_eq!(found(), [TRIGGER_LENT, TRIGGER_ON, TRIGGER_LENT]);
        remote.adopt([left, on, new].into_iter());
        remote.disable();
        assert_eq!(found(), [TRIGGER_OFF, TRIGGER_ON, TRIGGER_OFF]);
    }

    #[test]
    fn what_is_switched_on_under_a_breakpoint_is_told_and_off_again_at_the_end() {
        let under = |form: u32| form & !0xff | 0xcc;
        let at = text_of(under(TRIGGER_OFF));
        // SAFETY: a page that can be read, and is mapped for good.
        let found = || unsafe { (at as *const u32).read_volatile() };
        let mut remote = Remote::open(std::process::id() as i32).unwrap();
        let outcome = remote.enable(&[("a.b".to_owned(), Place::Trigger(at))], &["*".to_owned()]);
        assert_eq!((outcome.switched.len(), outcome.hidden.len()), (0, 1));
        assert!(outcome.refused[0].to_string().contains("breakpoint"), "{:?}", outcome.refused);
        assert_eq!(found(), under(TRIGGER_LENT));
        assert_eq!(remote.disable(), 0);
        assert_eq!(found(), under(TRIGGER_OFF));
    }

    #[test]
    fn what_looks_like_a_trigger_and_is_none_is_left_alone() {
        let at = text_of(TRIGGER_OFF);
        let (triggers, globs) = ([("a.b".to_owned(), at)], ["*".to_owned()]);
        let mut remote = Remote::open(std::process::id() as i32).unwrap();
        assert!(remote.enable_found(&triggers, &globs).switched.is_empty());
        let place = Place::Trigger(at);
        let triggers = [("a.b".to_owned(), place)];
        assert_eq!(remote.enable(&triggers, &globs).switched, [place], "it does look like one");
    }
}
