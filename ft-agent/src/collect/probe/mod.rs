//! Probes of programs that are not changed: which functions and marks of which files `--probe` means.
//!
//! A probe is a breakpoint that the kernel sets in a file's code (uprobe), for every process that runs it: each call pays for
//! it, and of those that are observed it is recorded. The return of a function is seen because the kernel puts an address
//! of its own where the function would return to (uretprobe). What looks at the stack by itself finds that address there:
//! Go, which moves its stacks, is refused; an exception in C++ that leaves a probed function ends the program, which
//! [`Probe::unwinds`] warns of.

mod binary;
mod elf;
mod error;
mod notes;

pub use binary::Binary;
use std::ffi::OsStr;

use elf::Elf;
pub use error::ProbeError;

/// Functions, and pairs of marks, in a recording: before Linux 6.6, each takes two events of perf and as many descriptors, and
/// some ms at the start and the end.
///
/// Limit: the recording is refused, with the remedy.
/// Shown by: `functions_are_found_by_name_and_by_glob_once`.
pub const MAX_PROBED: usize = 64;

/// What is probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// What requests are called that it makes: `redis-server:processCommand`.
    pub name: String,
    /// The file.
    pub binary: Binary,
    /// Offsets in the file where it begins.
    pub begins: Vec<u64>,
    /// What ends it.
    pub end: End,
    /// The kernel lets the CPU do the first instruction by a single step, which takes a trap more.
    pub is_stepped: bool,
    /// The file's code unwinds its stack, as exceptions do.
    pub unwinds: bool,
}

/// What ends that which a probe begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The return of the function.
    Return,
    /// Marks, by their offsets in the file.
    Marks(Vec<u64>),
}

/// What `--probe` says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wish<'w> {
    text: &'w str,
    binary: &'w str,
    what: What<'w>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What<'w> {
    /// A function, or several by a glob.
    Function(&'w str),
    /// Two marks of a provider (USDT).
    Marks { provider: &'w str, begin: &'w str, end: &'w str },
}

impl<'w> Wish<'w> {
    /// Reads `BINARY:FUNCTION` or `BINARY:usdt:PROVIDER:BEGIN,END`.
    fn parse(text: &'w str) -> Result<Wish<'w>, ProbeError> {
        let form = || ProbeError::Form(text.to_owned());
        let (binary, rest) = text.split_once(':').ok_or_else(form)?;
        let what = match rest.strip_prefix("usdt:") {
            None => What::Function(rest),
            Some(marks) => {
                let (provider, names) = marks.split_once(':').ok_or_else(form)?;
                let (begin, end) = names.split_once(',').ok_or_else(form)?;
                What::Marks { provider, begin, end }
            }
        };
        let parts = match what {
            What::Function(name) => vec![binary, name],
            What::Marks { provider, begin, end } => vec![binary, provider, begin, end],
        };
        match parts.iter().all(|part| !part.is_empty()) {
            true => Ok(Wish { text, binary, what }),
            false => Err(form()),
        }
    }
}

/// Finds what is to be probed, each once: in the file of `command`, or those that the processes have mapped, if they have that
/// name, else in the file that a shell or the loader would take.
///
/// # Errors
///
/// What of it there is not, or cannot be probed.
pub fn find(
    wishes: &[String],
    command: Option<&OsStr>,
    pids: &[i32],
) -> Result<Vec<Probe>, ProbeError> {
    let mut probes: Vec<Probe> = Vec::new();
    for text in wishes {
        let wish = Wish::parse(text)?;
        let binary = binary::find(wish.binary, command, pids)
            .ok_or_else(|| ProbeError::NoBinary(wish.binary.to_owned()))?;
        // One file is one to the kernel, too.
        let known = probes.iter().find(|probe| probe.binary == binary);
        let binary = known.map_or(binary, |probe| probe.binary.clone());
        for probe in of_file(&wish, binary)? {
            let known = |p: &Probe| (&p.binary, &p.begins) == (&probe.binary, &probe.begins);
            if !probes.iter().any(known) {
                probes.push(probe);
            }
        }
        if probes.len() > MAX_PROBED {
            return Err(ProbeError::TooMany(text.clone()));
        }
    }
    Ok(probes)
}

fn of_file(wish: &Wish<'_>, binary: Binary) -> Result<Vec<Probe>, ProbeError> {
    let file = wish.binary.rsplit('/').next().unwrap_or(wish.binary);
    let elf = Elf::open(&binary)?;
    match &wish.what {
        What::Function(wanted) => {
            if elf.is_go() {
                return Err(ProbeError::Go(binary.path));
            }
            let functions = elf.functions(wanted, wish.text)?;
            let unwinds = elf.unwinds();
            let probe = |(function, offset): (String, u64)| Probe {
                name: format!("{file}:{function}"),
                binary: binary.clone(),
                begins: vec![offset],
                end: End::Return,
                is_stepped: elf.is_stepped(offset),
                unwinds,
            };
            Ok(functions.into_iter().map(probe).collect())
        }
        What::Marks { provider, begin, end } => {
            let begins = elf.marks(provider, begin, wish.text)?;
            let ends = elf.marks(provider, end, wish.text)?;
            Ok(vec![Probe {
                name: format!("{file}:{provider}:{begin},{end}"),
                is_stepped: begins.iter().chain(&ends).any(|&at| elf.is_stepped(at)),
                binary,
                begins,
                end: End::Marks(ends),
                unwinds: false,
            }])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_has_two_forms() {
        let what = |text| Wish::parse(text).map(|wish| (wish.binary.to_owned(), wish.what));
        let function = |binary: &str, name| Ok((binary.to_owned(), What::Function(name)));
        assert_eq!(what("redis-server:processCommand"), function("redis-server", "processCommand"));
        assert_eq!(what("./a b:ns::Type::f(int)"), function("./a b", "ns::Type::f(int)"));
        let marks = What::Marks { provider: "http", begin: "begin", end: "end" };
        assert_eq!(what("/bin/x:usdt:http:begin,end"), Ok(("/bin/x".to_owned(), marks)));
        for text in ["", "x", ":f", "x:", "x:usdt:p", "x:usdt:p:a", "x:usdt::a,b", "x:usdt:p:a,"] {
            assert_eq!(what(text), Err(ProbeError::Form(text.to_owned())));
        }
    }

    /// This test itself.
    fn own() -> String {
        std::env::current_exe().expect("a file").to_str().expect("UTF-8").to_owned()
    }

    #[test]
    fn functions_are_found_by_name_and_by_glob_once() {
        let own = own();
        let find = |names: &[&str]| {
            let wishes: Vec<String> = names.iter().map(|name| format!("{own}:{name}")).collect();
            super::find(&wishes, None, &[])
        };
        let name = "ft_agent::collect::probe::of_file";
        let found = find(&[name, "*collect::probe::of_file"]).expect("a function");
        assert_eq!(found.len(), 1, "{found:?}");
        let file = own.rsplit('/').next().expect("a name");
        assert_eq!(found[0].name, format!("{file}:{name}"));
        assert_eq!((found[0].begins.len(), &found[0].end), (1, &End::Return));
        assert!(found[0].unwinds, "a test of Rust panics");
        let error = find(&["ft_agent::collect::probe::of_fil"]).unwrap_err().to_string();
        assert!(error.contains(&format!(": {name}")), "{error}");
        assert!(matches!(find(&["*"]), Err(ProbeError::TooMany(_))));
        let error = super::find(&[format!("{own}:usdt:no:a,b")], None, &[]).unwrap_err();
        assert!(matches!(error, ProbeError::NoMark { .. }), "{error}");
    }

    // As `event!` makes it of a function that begins with one.
    std::arch::global_asm!(
        ".pushsection .text",
        ".type ft_test_begins_with_an_event, @function",
        ".globl ft_test_begins_with_an_event",
        "ft_test_begins_with_an_event:",
        ".long {off}, 0",
        "ret",
        ".size ft_test_begins_with_an_event, . - ft_test_begins_with_an_event",
        ".popsection",
        off = const ft_user::layout::TRIGGER_OFF,
    );

    unsafe extern "C" {
        fn ft_test_begins_with_an_event();
    }

    #[test]
    fn a_function_that_begins_with_an_event_is_refused() {
        // So that the linker keeps it.
        std::hint::black_box(ft_test_begins_with_an_event as *const ());
        let wish = format!("{}:ft_test_begins_with_an_event", own());
        let error = super::find(&[wish], None, &[]).unwrap_err();
        assert_eq!(error, ProbeError::Traced("ft_test_begins_with_an_event".to_owned()));
        // By a glob others are meant.
        let wish = format!("{}:ft_test_begins_with_an_even?", own());
        assert!(matches!(super::find(&[wish], None, &[]), Err(ProbeError::NoFunction { .. })));
    }

    #[test]
    fn what_is_no_program_is_said_so() {
        let check = |wish: &str, expected: &str| {
            let error = find(&[wish.to_owned()], None, &[]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("no-such-program:f", "there is no file `no-such-program`");
        check("/proc/self/status:f", "is no program");
        check("/tmp:f", "is no program");
    }
}
