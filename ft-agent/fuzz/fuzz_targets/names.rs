//! A file that a process of another user has mapped, or a compiler's map: all that a worker is asked of it. Answers have their bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| ft_trace::convert::ask_for_everything(file));
