//! A catalogue in a store that lies: the agent comes to an end, in bounded memory, says which trace or object it is, and goes on with the
//! others. The store is this program, so nothing else is needed.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::files::files;
use crate::liar::{Answer, liar, page};
use crate::memory::{DATA_BYTES, within};
use crate::patience::hosts;
use crate::said;
use crate::stage::{PREFIX, Stage, URL};

/// A lie about one trace, or about the whole catalogue.
struct Lie {
    /// What is in the line of each request that is answered so.
    of: String,
    answer: fn(Answer) -> Answer,
    /// What the agent says of it; nothing where it is none the wiser, and none the worse.
    said: &'static str,
}

/// A page of a list behind which there is always another one.
fn again(objects: &[(String, u64)]) -> Answer {
    Answer::of(page(objects, Some("again")))
}

/// The same object, over and over.
fn same() -> Answer {
    again(&[(format!("{PREFIX}traces/a.parquet"), 1)])
}

/// A store that does not send all of it is as one that is away.
const CUT: &str = "cannot reach";

/// The store's key, as `Stage::command` says it.
const SECRET: &[u8] = b"secret";

const TERABYTE: u64 = 1 << 40;

/// Of the list below a name.
fn of_list(below: &str) -> [Lie; 5] {
    let lie = |answer, said| Lie { of: format!("prefix={PREFIX}{below}"), answer, said };
    [
        lie(|_| same(), "pages without end"),
        lie(|_| again(&[]), "pages without end"),
        lie(|_| Answer::without_end("<Contents>", TERABYTE), "longer than 16 MiB"),
        lie(|_| Answer::of("<html>"), "list"),
        lie(
            |_| Answer { status: "403 Forbidden", ..Answer::without_end("no. ", TERABYTE) },
            "longer than 16 MiB",
        ),
    ]
}

/// Of an object.
fn of_object(of: String) -> [Lie; 6] {
    let lie = |answer, said| Lie { of: of.clone(), answer, said };
    [
        lie(|_| Answer::of("something else"), "failed"),
        lie(|_| Answer::of(""), "failed"),
        lie(|truth| Answer { length: truth.length + 1, ..truth }, CUT),
        lie(|truth| Answer { length: truth.length / 2, ..truth }, "failed"),
        lie(|_| Answer { status: "404 Not Found", ..Answer::of("") }, "failed"),
        lie(
            |_| {
                let head = "Location: /fleet/of/traces/elsewhere\r\n".to_owned();
                Answer { status: "307 Temporary Redirect", head, ..Answer::of("") }
            },
            "failed",
        ),
    ]
}

/// A store of two traces, of which the first is `[0]`.
struct Told {
    stage: Stage,
    traces: Vec<String>,
}

impl Told {
    fn new() -> Told {
        // Nobody listens there; the catalogue is a directory yet.
        let stage = Stage::new(([127, 0, 0, 1], 9).into());
        let traces = hosts(&stage, "fleet", 2);
        said::ran();
        Told { stage, traces }
    }

    /// What the agent says, on both ways, and whether it succeeds; it leaves nothing behind.
    fn tell(&mut self, lie: Lie, words: &[&str]) -> (bool, String) {
        let root = self.stage.path("told");
        let _ = fs::remove_dir_all(&root);
        copy(&self.stage.path("fleet"), &root);
        let Lie { of, answer, .. } = lie;
        self.stage.endpoint = liar(&root, move |line, truth| match line.contains(&of) {
            true => answer(truth),
            false => truth,
        });
        let output = within(DATA_BYTES, &self.stage, words);
        assert!(output.status.code().is_some(), "{output:?}");
        assert_eq!(files(&self.stage.path("tmp")).len(), 0, "no copy is left");
        let said = [output.stdout, output.stderr].concat();
        let written = files(&root);
        for text in written.values().chain([&said]) {
            assert!(!text.windows(SECRET.len()).any(|found| found == SECRET), "it is told");
        }
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    }
}

fn copy(from: &Path, to: &Path) {
    for (name, content) in files(from) {
        let path = to.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("a file");
    }
}

#[test]
fn a_store_that_does_not_lie_is_believed() {
    let mut told = Told::new();
    let none = || Lie { of: "no such request".into(), answer: |truth| truth, said: "" };
    let (succeeds, said) = told.tell(none(), &["analyze", URL]);
    assert!(succeeds && said.matches(": analysed, ").count() == 2, "{said}");
}

/// The key of a request can be used by whoever hears it.
#[test]
fn nothing_is_sent_without_tls_unless_that_is_asked_for() {
    let told = Told::new();
    let heard = Arc::new(AtomicUsize::new(0));
    let count = heard.clone();
    let endpoint = liar(&told.stage.path("fleet"), move |_, truth| {
        count.fetch_add(1, SeqCst);
        truth
    });
    let catalogue = |words: &[(&str, &str)]| {
        let mut agent = told.stage.agent(&["catalogue", URL]);
        agent.env("AWS_ENDPOINT_URL", format!("http://{endpoint}")).env_remove("AWS_ALLOW_HTTP");
        agent.envs(words.iter().copied()).output().expect("it runs").status.success()
    };
    assert!(!catalogue(&[]) && heard.load(SeqCst) == 0);
    assert!(catalogue(&[("AWS_ALLOW_HTTP", "true")]) && heard.load(SeqCst) > 0);
}

#[test]
fn lies_about_one_trace_cost_no_other() {
    let mut told = Told::new();
    let trace = told.traces[0].clone();
    let json = Lie {
        of: format!("GET /fleet/{PREFIX}{trace}/meta.json"),
        answer: |_| Answer::without_end(" ", TERABYTE),
        said: "no more than 67108864 are read",
    };
    let objects = ["meta.json", "user_events/part-00000.parquet"];
    let objects = objects.map(|name| of_object(format!("GET /fleet/{PREFIX}{trace}/{name} ")));
    let lies = of_list(&trace).into_iter().chain(objects.into_iter().flatten());
    for lie in lies.chain([json]) {
        let (of, words) = (lie.of.clone(), lie.said);
        let (_, said) = told.tell(lie, &["analyze", URL]);
        let line = |path: &str| said.lines().find(|line| line.starts_with(path)).expect("its line");
        assert!(line(&told.traces[1]).contains(": analysed, "), "{of}: {said}");
        assert!(line(&trace).contains(words), "{of}: {said}");
    }
}

#[test]
fn lies_about_all_are_one_failure() {
    let mut told = Told::new();
    for lie in of_list("traces") {
        let (of, words) = (lie.of.clone(), lie.said);
        let (succeeds, said) = told.tell(lie, &["catalogue", URL]);
        assert!(!succeeds && said.contains(words), "{of}: {said}");
    }
}

/// A row is named, with what is wrong; the other one is there.
#[test]
fn lies_about_a_row_cost_no_other() {
    let mut told = Told::new();
    let (_, name) = told.traces[0].rsplit_once("trace=").expect("its name");
    let of = format!("GET /fleet/{PREFIX}traces/{name}.parquet");
    for lie in of_object(of) {
        let is_cut = lie.said == CUT;
        let (succeeds, said) = told.tell(lie, &["catalogue", URL, "--json"]);
        if is_cut {
            assert!(!succeeds && said.contains(CUT), "{said}");
            continue;
        }
        // Behind it come the warnings.
        let mut answers = serde_json::Deserializer::from_str(&said).into_iter();
        let answer: serde_json::Value = answers.next().expect("an answer").expect("JSON");
        let of = |kind: &str| answer[kind].as_array().expect("a list").len();
        assert_eq!((of("traces"), of("wrong")), (1, 1), "{said}");
    }
}
