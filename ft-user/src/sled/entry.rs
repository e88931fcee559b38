//! Patchable entries of gcc (`-fpatchable-function-entry=11`): nops at the begins of functions, which threads execute.
//!
//! So they can be made sleds only while nobody is in them: when the process has one thread, which is here, with its signals
//! blocked. Nor may anybody come back into them, as a context that a signal has interrupted or a process that shares the memory
//! (clone(2), `CLONE_VM`) would: who starts tracing late has neither.
//!
//! gcc says where entries are, and neither how long they are nor whose. What looks like eleven nops can be fewer and a function's
//! own, with a loop that jumps among them; and the program can patch them itself. So who starts the program says that they are
//! for us, by an environment variable. And the entries of an object are used only if each of them stands where a function begins,
//! or behind its `endbr64`, has eleven nops, and neither function nor entry begins among these: an object with less somewhere has
//! it everywhere, as compilers leave as many at each function, and before functions if at all (`=N,M`) before each.
//!
//! Ends are not recorded. They could be had by replacing return addresses on the stack; who walks it (an exception, a profiler, a
//! shadow stack of the processor) would find ours there.

use super::Loaded;
use super::file::Symbols;
use crate::config;
use crate::layout::{BREAKPOINT, SLED_BYTES, Sled, SledKind, SledState};
use crate::patch::Text;

const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// Whether the environment says that patchable entries are there to be switched: `FT_PATCHABLE`, but for 0.
pub(super) fn are_asked_for() -> bool {
    config::env(c"FT_PATCHABLE").is_some_and(|value| value != "0")
}

/// The sleds that can be made of the entries that a section `__patchable_function_entries` of an object tells: all, or none.
pub(super) fn sleds_of(section: &[u8], object: &Loaded, symbols: &Symbols) -> Vec<Sled> {
    // The linker has made them addresses of this process, and leaves nothing of functions that it has left out.
    let address = |word: &[u8]| u64::from_ne_bytes(*word.first_chunk().unwrap_or(&[0; 8]));
    let mut entries: Vec<u64> = section.chunks_exact(size_of::<u64>()).map(address).collect();
    entries.retain(|&entry| entry != 0);
    entries.sort_unstable();
    // Functions that are the same are one where the linker folds them (`--icf`).
    entries.dedup();
    let is_apart = |pair: &[u64]| pair[1] - pair[0] >= SLED_BYTES;
    if !entries.windows(2).all(is_apart) {
        return Vec::new();
    }
    let Ok(text) = Text::own() else { return Vec::new() };
    let sleds = entries.iter().map(|&entry| sled(entry, object, symbols, &text));
    sleds.collect::<Option<_>>().unwrap_or_default()
}

fn sled(address: u64, object: &Loaded, symbols: &Symbols, text: &Text) -> Option<Sled> {
    let begins = |at: u64| symbols.has(at.wrapping_sub(object.base));
    let after = address.wrapping_sub(ENDBR64.len() as u64);
    // A probe of the kernel has a breakpoint where the function begins.
    let is_endbr64 =
        |found: [u8; 4]| [ENDBR64[0], BREAKPOINT].contains(&found[0]) && found[1..] == ENDBR64[1..];
    let function = if begins(address) {
        address
    } else if bytes(text, object, after).is_some_and(is_endbr64) && begins(after) {
        after
    } else {
        return None;
    };
    if (1..SLED_BYTES).any(|at| begins(address.wrapping_add(at))) {
        return None;
    }
    let sled = Sled { address, function, kind: SledKind::Entry };
    let found = bytes::<{ SLED_BYTES as usize }>(text, object, address)?;
    (sled.state(found) == Some(SledState::Bare)).then_some(sled)
}

/// What is at an address, where that is text that can be read.
fn bytes<const N: usize>(text: &Text, object: &Loaded, at: u64) -> Option<[u8; N]> {
    object.has_text(at, N as u64).then(|| text.bytes(at)).flatten()
}
