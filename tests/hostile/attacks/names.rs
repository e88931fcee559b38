//! Names that want out of whatever prints them: they end lines, strings, elements and escape sequences, in names of the process,
//! of its threads, locks, scopes and events, and in what events say.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use ft_trace::tables::UserEvent;
use ft_user::sync::Mutex;

use crate::Attack;
use crate::stage::{Attacker, Scene, Stage};

pub(crate) const ATTACK: Attack = Attack { name: "names", program, test };

/// Declares the names, and what is recorded under each.
macro_rules! names {
    ($($name:literal,)*) => {
        const NAMES: &[&str] = &[$($name),*];

        /// Records a scope and an event of this name, which says it, too.
        fn record(name: &'static str) {
            $(if name == $name {
                let _scope = ft_user::scope!($name);
                ft_user::event!($name, text: &str = name, number: u64 = u64::MAX);
                thread::sleep(Duration::from_millis(2));
            })*
        }
    };
}

// Begin with a category, as names of events must. None may become a line that begins with `forged`, an element `attack`,
// or anything that a terminal obeys.
names! {
    "x.\nforged: all is well",
    "x.\r\nforged\t1 2 3",
    "x.\u{1b}[2J\u{1b}]0;forged\u{7}\u{9b}31m",
    "x.\"><attack onclick='forged()'>",
    "x.</script><attack>",
    "x.]]>--><!--<attack/>",
    "x.'; DROP VIEW threads; --\\",
    "x.\0%n%s{0}$(forged)`forged`",
    "x.\u{202e}\u{2028}\u{feff}\u{85}forged",
    "x.\u{200b}zero\u{2066}gpj.exe\u{2069}",
}

/// Those of the names that nobody sees, and that turn others round.
const UNSEEN: [char; 6] = ['\u{200b}', '\u{202e}', '\u{2028}', '\u{2066}', '\u{2069}', '\u{feff}'];

fn program(attacker: &Attacker) {
    // SAFETY: no other thread of this process runs yet.
    unsafe { std::env::set_var("FT_SOCKET", &attacker.socket) };
    ft_user::init().expect("the tracer starts");
    ft_user::enable("*");
    for &name in NAMES {
        thread::spawn(move || speak(name)).join().expect("no thread panics");
    }
    // The first thread gives the process its name.
    speak(NAMES[3]);
    // Until the agent has looked at the process under that name.
    thread::sleep(Duration::from_secs(1));
    attacker.stay();
}

/// Does under one name what is named.
fn speak(name: &'static str) {
    let lock = Mutex::named(name, ());
    let bytes: Vec<u8> =
        name.bytes().skip(2).filter(|&byte| byte != 0).take(15).chain([0]).collect();
    // SAFETY: a string that ends in NUL.
    unsafe { libc::prctl(libc::PR_SET_NAME, bytes.as_ptr()) };
    let held = lock.lock();
    record(name);
    drop(held);
}

/// What the agent prints of the trace.
fn printed(stage: &Stage, command: &str, options: &[&str]) -> String {
    let mut agent = Command::new(ft_tests::agent());
    let output =
        agent.arg(command).arg(stage.path("trace")).args(options).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command} {options:?}: {said}");
    assert_plain(&said);
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A text does nothing to a terminal, has all its characters to be seen, in their order, and no line that the agent has not written.
fn assert_plain(text: &str) {
    let obeyed = |c: &char| c.is_control() && *c != '\n' || UNSEEN.contains(c);
    assert_eq!(text.chars().find(obeyed), None, "{text:?}");
    let forged = text.lines().find(|line| line.trim_start().starts_with("forged"));
    assert_eq!(forged, None, "{text}");
}

fn test(stage: &Stage) {
    let recorded = stage.attack_in(&ATTACK, &Scene::default());
    assert_plain(&recorded.output);
    let events = recorded.trace.rows::<UserEvent>().map(|event| event.expect("a row"));
    let theirs = events.filter(|event| event.pid.0 == recorded.attacker);
    let named = theirs.filter(|event| event.event.starts_with("x.")).count();
    assert_eq!(named, 3 * (NAMES.len() + 1), "each name is recorded");

    assert_plain(&printed(stage, "report", &[]));
    let process = recorded.attacker.to_string();
    assert_plain(&printed(stage, "events", &["--list-events"]));
    assert_plain(&printed(stage, "events", &["-k", "-p", &process]));
    let json = printed(stage, "events", &["--json", "-k", "-p", &process]);
    let values = serde_json::Deserializer::from_str(&json).into_iter::<serde_json::Value>();
    assert!(values.filter(|value| value.as_ref().expect("JSON").is_object()).count() > named);
    let page = stage.path("page.html");
    printed(stage, "report", &["--html", page.to_str().expect("a path")]);
    let page = fs::read_to_string(page).expect("a page");
    assert!(!page.contains("<attack"), "a name is an element of the page");
    let line = page.lines().find(|line| line.contains(UNSEEN));
    let hidden = line.and_then(|line| line.split(UNSEEN).next());
    let before = hidden.map(|text| text.chars().rev().take(60).collect::<String>());
    assert_eq!(before, None, "nobody sees what is behind this in the page, read backwards");
}
