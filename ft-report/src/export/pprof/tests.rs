//! What is made of single times; whole profiles are read by Go's own reader in `tests/chains`.

use super::*;
use crate::export::chained::Lock;

/// `function file:line object`; of the kernel, where the object is empty.
fn frame(label: &str, place: &str, object: &str) -> Frame {
    let kernel = object.is_empty();
    let [label, place, object] = [label, place, object].map(Into::into);
    Frame { label, place, object, kernel, named: true }
}

fn time<'c>(
    did: Did,
    lock: Option<Lock<'static>>,
    frames: &'c [Frame],
    ns: i64,
) -> Chained<'c, 'static> {
    let frames = frames.iter().collect();
    Chained { did, process: "server".into(), thread: "worker".into(), lock, frames, ns }
}

#[test]
fn times_of_one_chain_are_summed_by_kind_and_told_apart_by_locks() {
    let frames = [
        frame("inner", "a.c:7", "/bin/a"),
        frame("main", "a.c:9", "/bin/a"),
        frame("do_exit", "", ""),
    ];
    let mut made = Made::new();
    made.add(&time(Did::Running, None, &frames[..2], 10));
    made.add(&time(Did::Running, None, &frames[..2], 10));
    made.add(&time(Did::Preempted, None, &frames[..2], 3));
    let book = || Some(Lock { name: "book", waited_for: true });
    made.add(&time(Did::Waiting, book(), &frames[1..], 5));
    let text = |place: i64| &*made.texts.all[place as usize];
    let told: Vec<(Vec<_>, Vec<u64>, [i64; 3])> = made
        .samples
        .iter()
        .map(|((labels, chain), values)| {
            let labels = labels.iter().map(|&(key, value)| (text(key), text(value)));
            (labels.collect(), chain.clone(), *values)
        })
        .collect();
    let common = vec![("process", "server"), ("thread", "worker")];
    let waits = [&common[..], &[("waits for", "book")]].concat();
    assert_eq!(told, [(common, vec![1, 2], [20, 0, 3]), (waits, vec![2, 3], [0, 5, 0])]);

    let profile = &made.profile;
    let functions = profile.function.iter().map(|f| (f.id, text(f.name), text(f.filename)));
    let expected = [(1, "inner", "a.c"), (2, "main", "a.c"), (3, "do_exit", "")];
    assert_eq!(functions.collect::<Vec<_>>(), expected);
    let lines =
        profile.location.iter().map(|l| (l.line[0].function_id, l.line[0].line, l.mapping_id));
    assert_eq!(lines.collect::<Vec<_>>(), [(1, 7, 1), (2, 9, 1), (3, 0, 2)]);
    let objects: Vec<&str> = profile.mapping.iter().map(|m| text(m.filename)).collect();
    assert_eq!(objects, ["/bin/a", KERNEL]);
    assert_eq!(made.texts.all[0], "");
}

#[test]
fn names_have_no_power_over_a_terminal() {
    let frames = [frame("a\x1b[31m\u{202e}\n", "", "/bin/a")];
    let mut made = Made::new();
    made.add(&time(Did::Running, None, &frames, 1));
    assert!(made.texts.all.iter().all(|text| text.chars().all(|c| c == visible(c))));
    assert!(made.texts.all.contains(&"a␛[31m\u{fffd}␊".to_owned()), "{:?}", made.texts.all);
}
