use super::*;

fn mapping(start: u64, offset: u64, path: &str) -> Mapping {
    Mapping { start, end: start + 0x100, offset, path: path.to_owned(), ..Mapping::default() }
}

#[test]
fn what_is_ambiguous_is_not_told() {
    let check = |mappings: &[Mapping], address, expected: Option<&str>| {
        let layout = Layout::of(mappings);
        assert_eq!(layout.only_mapping(address).map(|m| m.path.as_str()), expected);
    };
    let (a, b) = (mapping(0x1000, 0, "/a"), mapping(0x1000, 0, "/b"));
    check(std::slice::from_ref(&a), 0x10ff, Some("/a"));
    check(std::slice::from_ref(&a), 0x1100, None);
    check(&[a.clone(), b], 0x1000, None);
    // Read twice while it grew.
    check(&[a, Mapping { end: 0x2000, ..mapping(0x1000, 0, "/a") }], 0x1001, Some("/a"));
}

/// Against the definition, which looks at all of them.
#[test]
fn a_layout_says_of_each_address_what_all_mappings_say_of_it() {
    let mut mappings = Vec::new();
    for i in 0_u64..60 {
        // Nested, touching, empty, the same again, and of three files at places that are the same and others.
        let (start, bytes) = (i * 37 % 41, i * i % 13);
        let offset = if i % 2 == 0 { start } else { i % 5 };
        let path = format!("/{}", i % 3);
        mappings.push(Mapping { start, end: start + bytes, offset, path, ..Mapping::default() });
        let layout = Layout::of(&mappings);
        for address in 0..60 {
            let mut here = mappings.iter().filter(|m| (m.start..m.end).contains(&address));
            let first = here.next();
            let only = first.filter(|first| here.all(|m| place(m) == place(first)));
            let found = layout.only_mapping(address);
            assert_eq!(
                found.map(std::ptr::from_ref),
                only.map(std::ptr::from_ref),
                "{i} {address}"
            );
        }
    }
}

#[test]
fn a_lock_lies_above_the_text_of_its_file() {
    let mappings: Vec<_> = [(0x1000, "/a"), (0x3000, "/b"), (0x3100, "/b"), (0x9000, "/c")]
        .map(|(start, path)| mapping(start, if start == 0x3100 { 0x100 } else { 0 }, path))
        .into();
    let paths = |address| -> Vec<&str> {
        Texts::of(&mappings).nearest(address).iter().map(|mapping| &*mapping.path).collect()
    };
    assert_eq!(paths(0x4000), ["/b", "/a"]);
    assert_eq!(paths(0x9000), ["/c", "/b", "/a"]);
    assert!(paths(0xfff).is_empty());
    let many: Vec<_> = (0..10).map(|i| mapping(i << 12, 0, &format!("/{i}"))).collect();
    assert_eq!(Texts::of(&many).nearest(u64::MAX).len(), NEAREST_FILES);
}

#[test]
fn a_variable_of_two_files_is_of_none() {
    let [a, b] = [mapping(0x1000, 0, "/a"), mapping(0x2000, 0, "/b")];
    let query = |mapping| Query { pid: Pid(1), mapping, what: What::Variable, address: 7 };
    let queries = [query(&a), query(&b)];
    let symbol = Symbol { name: "v".into(), ..Symbol::default() };
    let known = Answer { at: Some(7), symbols: vec![symbol.clone()] };
    let none = Answer::default();
    let found = |answers: [&Answer; 2]| variable(&queries, &answers.map(Clone::clone));
    assert_eq!(found([&known, &none]), Some((&a.path, 7, symbol.clone())));
    assert_eq!(found([&none, &known]), Some((&b.path, 7, symbol)));
    assert_eq!(found([&known, &known]), None);
    assert_eq!(found([&none, &none]), None);
}

#[test]
fn what_a_spool_says_of_a_file_need_not_fit() {
    let own = Mapping { start: 0x1000, end: u64::MAX, offset: u64::MAX, ..Mapping::default() };
    let at = |address, answer: &Answer| {
        let query = Query { pid: Pid(1), mapping: &own, what: What::Frames, address };
        own_address(&query, answer)
    };
    assert_eq!(at(0x1007, &Answer::default()), 6);
    assert_eq!(at(7, &Answer::default()), 7_u64.wrapping_sub(0x1001));
    assert_eq!(at(7, &Answer { at: Some(3), symbols: vec![] }), 3);
}
