//! Why something cannot be probed.

use std::path::PathBuf;

use super::MAX_PROBED;

/// Why something cannot be probed. Each sentence ends in the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// It names nothing.
    #[error(
        "`{0}` names no probe: give a file and a function of it, as in `redis-server:processCommand`, or two marks, as in \
         `postgres:usdt:postgresql:query__start,query__done`"
    )]
    Form(String),
    /// There is no such file.
    #[error(
        "there is no file `{0}` on the PATH or where the loader looks for libraries; give its path"
    )]
    NoBinary(String),
    /// It is no ELF file of this machine, or a damaged one.
    #[error(
        "{0} is no program or library of 64-bit x86 (a script runs in its interpreter's); give the file that has the function"
    )]
    NotElf(PathBuf),
    /// It has no symbols at all.
    #[error(
        "{0} has no symbols, so its functions have no names; install its debug symbols (Debian: the package's -dbgsym), or build \
         it without `strip`"
    )]
    NoSymbols(PathBuf),
    /// There is no such function.
    #[error(
        "there is no function for `{wish}`: {}{}",
        nearest(near),
        if *stripped {
            "; the file is stripped of all but those that others call: install its debug symbols (Debian: the package's -dbgsym)"
        } else {
            "; an inlined function has no call that could be probed"
        }
    )]
    NoFunction {
        /// What was asked for.
        wish: String,
        /// Functions with a similar name.
        near: Vec<String>,
        /// The file has no symbols but those for the dynamic linker.
        stripped: bool,
    },
    /// A program of Go.
    #[error(
        "{0} is a program of Go, which moves its stacks and would crash when a probed function returns; record it without \
         --probe (`-k default,futex,stack` tells what it waits for)"
    )]
    Go(PathBuf),
    /// A function that returns more than once.
    #[error(
        "`{0}` returns more than once, and a probe of its return would end the program; probe the function that calls it"
    )]
    Returns(String),
    /// A function that begins with an event.
    #[error(
        "`{0}` begins with an event of its own, which would not be recorded while a probe stands there; record that event (-e), \
         or probe a function that it calls or that calls it"
    )]
    Traced(String),
    /// There is no such mark.
    #[error("there is no mark for `{wish}`: {}; list them with `readelf -n`", nearest(near))]
    NoMark {
        /// What was asked for.
        wish: String,
        /// The marks that there are.
        near: Vec<String>,
    },
    /// The program passes a mark only when somebody counts up a variable of it.
    #[error(
        "the mark `{0}` is passed only while its semaphore is raised, which this agent cannot do; probe a function around it"
    )]
    Semaphore(String),
    /// More than can be attached.
    #[error("with `{0}` more than {MAX_PROBED} functions are probed; give a narrower name")]
    TooMany(String),
}

fn nearest(names: &[String]) -> String {
    match names {
        [] => "none has a name like it".to_owned(),
        names => format!("the nearest are: {}", names.join(", ")),
    }
}
