//! Functions of C and C++ in which clang has left sleds (`-fxray-instrument`), or gcc nops to make some of
//! (`-fpatchable-function-entry=11`): found, prepared, and switched one by one.
//!
//! Each sled is a site of its own ([`crate::layout::Sled`] has its bytes). What it tells is what the hooks of
//! `-finstrument-functions` tell: the function's address and the frame, of the event `fn.instrumented`; where there is none at the
//! ends, of an event of another kind. Its name for globs is `fn.` and the function's symbol, `fn.sqlite3_step`, of C++ the mangled one, `fn._ZN4shop5failsEi`.
//!
//! # When
//!
//! Only where the program has asked for them ([`want`]). The sleds of all loaded objects are prepared when tracing starts, for only then, and not from outside, can there be code for
//! them to call; those of objects that are loaded later, when this process next looks for sites. Who looks from outside finds
//! them by a table ([`crate::layout::SledTable`]). Those of gcc are prepared only where that is asked for, and while the process has
//! one thread.
//!
//! # Limits
//!
//! No sleds are found of an object whose file cannot be opened, or is another one by now. A function without a symbol is
//! `fn.unnamed`, and an object of gcc has no sleds if one of those with entries has none. What XRay's own runtime has patched is
//! left alone; link with `-fnoxray-link-deps`, which leaves it out. So are functions that the program has in place of those of
//! libc that recording itself calls ([`CALLED`]), by whichever of their names; what these call in their turn is not known. The names
//! and entries of an object that is unloaded are kept.

mod entry;
mod file;
mod near;
mod stub;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::critical::Held;
use crate::kernel::{self, File};
use crate::layout::{Sled, SledEntry, SledKind};
use crate::patch::{self, Preparation, Text};
use crate::{Switched, enable, glob, loader};
use file::Contents;
use near::Near;

/// Bytes of an entry of `xray_instr_map` (LLVM, compiler-rt/include/xray/xray_records.h and lib/xray/xray_interface_internal.h).
const ENTRY_BYTES: usize = 32;

/// The version since which its addresses are relative to themselves: that of LLVM 11 (2020).
const RELATIVE: u8 = 2;

/// What a thread calls of libc where its event does not just go to its ring: the first one, and those that find no room. A
/// function of the program's with such a name may be called in its place, and would be called once more to tell of that, without
/// end. Some are called where compilers see fit (`memcpy`).
const CALLED: [&str; 21] = [
    "__errno_location",
    "__tls_get_addr",
    "bcmp",
    "clock_gettime",
    "gettid",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
    "mmap",
    "mmap64",
    "munmap",
    "prctl",
    "pthread_getcpuclockid",
    "pthread_getspecific",
    "pthread_self",
    "pthread_setspecific",
    "sched_getcpu",
    "strlen",
    "strnlen",
    "syscall",
];

/// Whether the program has asked for them.
static WANTED: AtomicBool = AtomicBool::new(false);

/// What is known of the sleds of this process.
static STATE: Mutex<State> = Mutex::new(State {
    changes: None,
    objects: Vec::new(),
    near: Near::new(),
    entries: Vec::new(),
});

struct State {
    /// How many objects had been loaded and unloaded at the last look.
    changes: Option<(u64, u64)>,
    objects: Vec<Object>,
    near: Near,
    /// What [`stub::publish`] has returned.
    entries: Vec<SledEntry>,
}

/// An object, as the dynamic linker tells it.
struct Loaded {
    path: PathBuf,
    /// What its addresses are relative to.
    base: u64,
    headers: Vec<libc::Elf64_Phdr>,
}

/// What distinguishes an object from one that was built anew in its place.
#[derive(Debug, PartialEq)]
struct Identity {
    /// Device, inode, and when it was written, s and ns; `None` where the file is not there any more.
    file: Option<[i64; 4]>,
    /// The program headers: what lies where.
    layout: Vec<u8>,
}

/// What is known of one; of most, that there are no sleds.
struct Object {
    path: PathBuf,
    base: u64,
    file: Identity,
    functions: Vec<Function>,
    is_loaded: bool,
    /// Nobody has switched its sleds yet.
    is_new: bool,
}

struct Function {
    /// Of its event.
    name: Box<str>,
    /// Its begins first.
    sleds: Vec<Sled>,
}

/// Numbers of sleds.
#[derive(Debug, Default)]
pub(crate) struct Count {
    pub(crate) all: usize,
    pub(crate) enabled: usize,
    /// What became of those that were asked for.
    pub(crate) switched: Switched,
}

/// From now on they are looked for, whenever this process looks for sites.
pub(crate) fn want() {
    // Relaxed: whoever asks, and then starts tracing, does so on one thread.
    WANTED.store(true, Relaxed);
}

/// Finds and prepares the sleds of objects that were loaded since the last look, and tells those who look from outside; whether
/// there are any.
pub(crate) fn find(_held: &Held<'_>) -> bool {
    if !WANTED.load(Relaxed) {
        return false;
    }
    let mut state = state();
    state.find();
    !state.entries.is_empty()
}

/// Switches the sleds that are `asked` for, and new ones as `wanted` says.
pub(crate) fn apply(
    asked: Option<(&str, bool)>,
    wanted: impl Fn(&str) -> Option<bool>,
    text: &mut Option<Text>,
    _held: &Held<'_>,
) -> Count {
    if !WANTED.load(Relaxed) {
        return Count::default();
    }
    let mut state = state();
    loop {
        state.find();
        let switched = loader::without_unloading(|| {
            let is_all = state.changes == Some(loader::changes());
            is_all.then(|| state.switch(asked, &wanted, text))
        });
        // Else objects have come or gone in between.
        if let Some(count) = switched {
            return count;
        }
    }
}

impl State {
    /// Switches the sleds of loaded objects that are `asked` for, and new ones as `wanted` says.
    fn switch(
        &mut self,
        asked: Option<(&str, bool)>,
        wanted: impl Fn(&str) -> Option<bool>,
        text: &mut Option<Text>,
    ) -> Count {
        let mut count = Count::default();
        for object in self.objects.iter_mut().filter(|object| object.is_loaded) {
            let is_new = std::mem::take(&mut object.is_new);
            for function in &object.functions {
                let asked = asked.filter(|(glob, _)| glob::matches(glob, &function.name));
                let ruled = || if is_new { wanted(&function.name) } else { None };
                if let Some(on) = asked.map(|(_, on)| on).or_else(ruled) {
                    let of_function = function.switch(text, on);
                    if asked.is_some() {
                        count.switched.add(of_function);
                    }
                }
                count.all += function.sleds.len();
                count.enabled += function.sleds.iter().filter(|sled| is_on(**sled)).count();
            }
        }
        count
    }
}

/// Switches off all but those that `are_kept`. Called with the process lock held; allocates nothing.
pub(crate) fn take_back(text: Text, are_kept: impl Fn(&str) -> bool) {
    if !WANTED.load(Relaxed) {
        return;
    }
    let mut text = Some(text);
    let state = state();
    let loaded = state.objects.iter().filter(|object| object.is_loaded);
    for function in loaded.flat_map(|object| &object.functions) {
        if !are_kept(&function.name) {
            function.switch(&mut text, false);
        }
    }
}

/// Never contended: whoever comes here holds the process lock, also across a fork.
fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Function {
    /// Switches its sleds, and returns what became of them. Ends go on first and off last, so that a call that begins
    /// meanwhile has both of its ends recorded, or its end alone.
    fn switch(&self, text: &mut Option<Text>, on: bool) -> Switched {
        let mut switched = Switched::default();
        let switch = |sled: &Sled| {
            switched.count(enable::own(text).and_then(|text| text.set_sled(*sled, on)));
        };
        match on {
            true => self.sleds.iter().rev().for_each(switch),
            false => self.sleds.iter().for_each(switch),
        }
        switched
    }
}

impl State {
    fn find(&mut self) {
        while self.changes != Some(loader::changes()) {
            self.find_anew();
        }
    }

    /// Looks once; all is as it was where objects have come or gone meanwhile. Nothing is allocated, and no file read, while the linker
    /// has its lock.
    fn find_anew(&mut self) {
        let (loaded, changes) = loaded();
        let Some(numbers) = loaded.iter().map(|it| self.number(it)).collect::<Option<Vec<_>>>()
        else {
            return;
        };
        let of = |(number, loaded): (&usize, &Loaded)| {
            Some((*number, self.objects[*number].preparation(loaded, &mut self.near)?))
        };
        let mut bare: Vec<_> = numbers.iter().zip(&loaded).filter_map(of).collect();
        let mut text = None;
        let is_over = loader::without_unloading(|| {
            let is_over = loader::changes() == changes;
            if is_over {
                for (number, preparation) in &mut bare {
                    let prepared = enable::own(&mut text).map(|text| text.prepare(preparation));
                    // One that has come back is as its file is.
                    self.objects[*number].is_new |= prepared.is_ok_and(|sleds| sleds > 0);
                }
            }
            is_over
        });
        if !is_over {
            return;
        }
        self.changes = Some(changes);
        for (number, object) in self.objects.iter_mut().enumerate() {
            object.is_loaded = numbers.contains(&number);
        }
        // Never fewer than before: somebody may have read how many there are.
        let entries: Vec<_> = self.objects.iter().flat_map(Object::entries).collect();
        if entries != self.entries {
            stub::publish(&entries);
            self.entries = entries;
        }
    }

    /// The number of an object, of which all is found out if it was not known; `None` if it is gone.
    fn number(&mut self, loaded: &Loaded) -> Option<usize> {
        // A library that was built anew is another one, though it is mapped where the last one was.
        let file = loaded.identity();
        let same = |o: &Object| (o.base, &o.path, &o.file) == (loaded.base, &loaded.path, &file);
        if let Some(known) = self.objects.iter().position(same) {
            return Some(known);
        }
        let functions = functions(loaded)?;
        self.objects.push(Object {
            path: loaded.path.clone(),
            base: loaded.base,
            file,
            functions,
            is_loaded: false,
            is_new: false,
        });
        Some(self.objects.len() - 1)
    }
}

impl Function {
    fn entries(&self) -> impl Iterator<Item = SledEntry> {
        self.sleds.iter().map(|sled| SledEntry {
            address: sled.address,
            function: sled.function,
            name: self.name.as_ptr() as u64,
            name_bytes: self.name.len() as u32,
            kind: sled.kind as u32,
        })
    }
}

impl Object {
    /// Those of its sleds.
    fn entries(&self) -> impl Iterator<Item = SledEntry> {
        let entries = self.functions.iter().flat_map(Function::entries);
        entries.map(|entry| match self.is_loaded {
            true => entry,
            false => SledEntry { address: 0, ..entry },
        })
    }

    /// What is to be done to prepare its sleds. What cannot be prepared stays so, and whoever switches it is told.
    fn preparation(&self, loaded: &Loaded, near: &mut Near) -> Option<Preparation> {
        if self.functions.is_empty() {
            return None;
        }
        let stubs = near.stubs(&loaded.text_range())?;
        let sleds = || self.functions.iter().flat_map(|function| &function.sleds);
        let is_entry = |sled: &&Sled| sled.kind == SledKind::Entry;
        let is_alone = sleds().any(|sled| is_entry(&sled)) && patch::is_alone();
        let sleds = sleds().filter(|sled| is_alone || !is_entry(sled));
        let mut sleds: Vec<_> = sleds.map(|&sled| (sled, stubs[sled.kind as usize])).collect();
        sleds.sort_by_key(|(sled, _)| sled.address);
        Some(Preparation::of(sleds))
    }
}

impl Loaded {
    fn identity(&self) -> Identity {
        let file = CString::new(self.path.as_os_str().as_bytes()).ok();
        let file = file.and_then(|path| kernel::stat(&path).ok());
        Identity {
            file: file.map(|f| [f.st_dev as i64, f.st_ino as i64, f.st_mtime, f.st_mtime_nsec]),
            layout: bytes(&self.headers).to_vec(),
        }
    }

    /// Where its text is mapped: of what else it has, zeros by the gigabyte, say, nothing is called.
    fn text_range(&self) -> Range<u64> {
        let parts = || self.parts(libc::PF_X);
        let start = parts().map(|part| part.start).min().unwrap_or_default();
        start..parts().map(|part| part.end).max().unwrap_or_default()
    }

    /// Its parts that are mapped with these rights.
    fn parts(&self, flags: u32) -> impl Iterator<Item = Range<u64>> {
        let of = move |header: &&libc::Elf64_Phdr| {
            header.p_type == libc::PT_LOAD && header.p_flags & flags == flags
        };
        self.headers.iter().filter(of).map(|header| {
            let start = self.base.wrapping_add(header.p_vaddr);
            start..start.saturating_add(header.p_memsz)
        })
    }

    fn has(&self, flags: u32, at: u64, bytes: u64) -> bool {
        let end = at.saturating_add(bytes);
        self.parts(flags).any(|part| part.start <= at && end <= part.end)
    }

    /// Copies of sections, by their addresses relative to where the object is loaded: empty where they cannot be read. `None` if it is
    /// not loaded any more.
    fn sections<const N: usize>(&self, places: [&Range<u64>; N]) -> Option<[Vec<u8>; N]> {
        let mut copies = places.map(|place| {
            let bytes = place.end - place.start;
            let is_there = self.has(libc::PF_R, self.base.wrapping_add(place.start), bytes);
            vec![0; if is_there { bytes as usize } else { 0 }]
        });
        let is_loaded = loader::without_unloading(|| {
            let mut is_loaded = false;
            loader::find(|info| {
                is_loaded = info.dlpi_addr == self.base
                    && bytes(loader::headers(info)) == bytes(&self.headers);
                is_loaded
            });
            for (copy, place) in copies.iter_mut().zip(places).filter(|_| is_loaded) {
                let at = self.base.wrapping_add(place.start) as *const u8;
                // SAFETY: a part of a loaded object that can be read; its linker has relocated it before anybody could run.
                unsafe { copy.as_mut_ptr().copy_from_nonoverlapping(at, copy.len()) };
            }
            is_loaded
        });
        is_loaded.then_some(copies)
    }

    /// Whether all of this is its text, and can be read.
    fn has_text(&self, at: u64, bytes: u64) -> bool {
        self.has(libc::PF_R | libc::PF_X, at, bytes)
    }
}

/// All loaded objects, and how many have come and gone.
fn loaded() -> (Vec<Loaded>, (u64, u64)) {
    let (mut names, mut headers) = (Vec::with_capacity(4 << 10), Vec::with_capacity(1 << 10));
    loop {
        let mut objects = Vec::with_capacity(headers.capacity());
        let (mut changes, mut sizes) = ((0, 0), [0; 2]);
        loader::find(|info| {
            // SAFETY: the name, if there is one, ends with a NUL.
            let name = (!info.dlpi_name.is_null())
                .then(|| unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes());
            // The program itself comes first, and has no name.
            let name = name.filter(|name| !name.is_empty()).unwrap_or(b"/proc/self/exe");
            let of_object = loader::headers(info);
            changes = (info.dlpi_adds, info.dlpi_subs);
            sizes = [sizes[0] + name.len(), sizes[1] + of_object.len().max(1)];
            // Each has a header, so there is room for it.
            if sizes[0] <= names.capacity() && sizes[1] <= headers.capacity() {
                names.extend_from_slice(name);
                headers.extend_from_slice(of_object);
                objects.push((info.dlpi_addr, names.len(), headers.len()));
            }
            false
        });
        if sizes[0] <= names.capacity() && sizes[1] <= headers.capacity() {
            let (mut name, mut header) = (0, 0);
            let object = |(base, names_end, headers_end)| {
                let path =
                    OsStr::from_bytes(&names[std::mem::replace(&mut name, names_end)..names_end]);
                let headers = &headers[std::mem::replace(&mut header, headers_end)..headers_end];
                Loaded { path: path.into(), base, headers: headers.to_vec() }
            };
            return (objects.into_iter().map(object).collect(), changes);
        }
        (names, headers) = (Vec::with_capacity(2 * sizes[0]), Vec::with_capacity(2 * sizes[1]));
    }
}

/// Program headers as the file has them.
fn bytes(headers: &[libc::Elf64_Phdr]) -> &[u8] {
    // SAFETY: they are plain words without padding.
    unsafe { core::slice::from_raw_parts(headers.as_ptr().cast(), size_of_val(headers)) }
}

/// The file of an object. A name that is no path, as the vDSO's, would be that of anybody's file in the working directory; and
/// to open what is no file may block.
fn opened(path: &Path) -> Option<File> {
    if !path.as_os_str().as_bytes().contains(&b'/') {
        return None;
    }
    let file = File::open(path.as_os_str().as_bytes(), libc::O_RDONLY | libc::O_NONBLOCK).ok()?;
    (file.facts().ok()?.st_mode & libc::S_IFMT == libc::S_IFREG).then_some(file)
}

/// The functions of an object that have sleds; `None` if it is not loaded any more.
fn functions(object: &Loaded) -> Option<Vec<Function>> {
    let Some(contents) = opened(&object.path).and_then(|file| Contents::of(&file, &object.headers))
    else {
        return Some(Vec::new());
    };
    let [map, entries] = object.sections([&contents.map, &contents.entries])?;
    let of_clang = sleds_of(&map, object.base.wrapping_add(contents.map.start));
    let of_gcc = match entry::are_asked_for() {
        true => entry::sleds_of(&entries, object, &contents.symbols),
        false => Vec::new(),
    };
    let is_text = |sled: &Sled| {
        object.has(libc::PF_X, sled.address, crate::layout::SLED_BYTES)
            && object.has(libc::PF_X, sled.function, 1)
    };
    let mut functions: BTreeMap<u64, Vec<Sled>> = BTreeMap::new();
    for sled in of_clang.chain(of_gcc).filter(is_text) {
        functions.entry(sled.function).or_default().push(sled);
    }
    let named = functions.into_iter().filter_map(|(function, mut sleds)| {
        sleds.sort_by_key(|sled| sled.kind as u8);
        let address = function.wrapping_sub(object.base);
        let name = format!("fn.{}", contents.symbols.name(address).unwrap_or("unnamed")).into();
        let is_called = contents.symbols.has_name_of(address, &CALLED);
        (!is_called).then_some(Function { name, sleds })
    });
    Some(named.collect())
}

/// The sleds that a section `xray_instr_map` tells, mapped at `base`; those of other versions and kinds are left out.
fn sleds_of(map: &[u8], base: u64) -> impl Iterator<Item = Sled> {
    let sled = move |(number, entry): (usize, &[u8])| {
        let at = base.wrapping_add((number * ENTRY_BYTES) as u64);
        let word = |offset: usize| Some(u64::from_ne_bytes(*entry[offset..].first_chunk()?));
        let kind = SledKind::of_xray(entry[16])?;
        (entry[18] >= RELATIVE).then_some(())?;
        let address = at.wrapping_add(word(0)?);
        Some(Sled { address, function: at.wrapping_add(8).wrapping_add(word(8)?), kind })
    };
    map.chunks_exact(ENTRY_BYTES).enumerate().filter_map(sled)
}

fn is_on(sled: Sled) -> bool {
    let (at, on) = sled.switch(true);
    // SAFETY: the sled is in the text of a loaded object. It may be switched meanwhile, which a volatile read sees before or
    // after.
    unsafe { ((sled.address + at) as *const u8).read_volatile() == on }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(address: i64, function: i64, kind: u8, version: u8) -> Vec<u8> {
        let mut entry = [address.to_ne_bytes(), function.to_ne_bytes()].concat();
        entry.extend([kind, 0, version]);
        entry.resize(ENTRY_BYTES, 0);
        entry
    }

    #[test]
    fn a_file_of_an_object_has_a_path_and_is_a_file() {
        let here = std::env::current_exe().expect("this program");
        assert!(opened(&here).is_some());
        // It is there, in the directory where tests run.
        assert!(Path::new("Cargo.toml").is_file() && opened(Path::new("Cargo.toml")).is_none());
        let pipe = std::env::temp_dir().join(format!("ft-sled-{}", std::process::id()));
        let name = std::ffi::CString::new(pipe.as_os_str().as_bytes()).expect("no NUL");
        // SAFETY: the name ends in NUL.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let of_pipe = opened(&pipe);
        std::fs::remove_file(&pipe).expect("removed");
        assert!(of_pipe.is_none());
    }

    #[test]
    fn addresses_are_relative_to_their_own_fields() {
        let map = [entry(-0x100, -0x108, 0, 2), entry(-0x110, -0x128, 1, 2)].concat();
        let sleds: Vec<_> = sleds_of(&map, 0x10000).collect();
        let expected = [(0xff00, SledKind::Begin), (0xff10, SledKind::Return)];
        let sled = |(address, kind)| Sled { address, function: 0xff00, kind };
        assert_eq!(sleds, expected.map(sled));
    }

    #[test]
    fn other_kinds_and_versions_are_left_out() {
        let map =
            [entry(0, 0, 4, 2), entry(0, 0, 5, 2), entry(0, 0, 0, 1), entry(0, 0, 3, 2)].concat();
        let kinds: Vec<_> = sleds_of(&map[..map.len() - 1], 0).map(|sled| sled.kind).collect();
        assert_eq!(kinds, [], "the last one is cut");
        let kinds: Vec<_> = sleds_of(&map, 0).map(|sled| sled.kind).collect();
        assert_eq!(kinds, [SledKind::Begin]);
    }
}
