use super::*;

#[test]
fn the_kind_of_a_lock_is_in_the_events_name() {
    for (event, expected) in [
        ("lock.mutex_acquire", "mutex"),
        ("lock.rwlock_read_acquire", "rwlock-read"),
        ("lock.rwlock_write_release", "rwlock-write"),
        ("lock.cond_wake", "mutex"),
        ("spin", "spin"),
    ] {
        assert_eq!(lock_kind(event), expected);
    }
}

fn name(source: i32, id: i32, kind: NameKind, text: &str) -> NameRow {
    NameRow { pid: Pid(1), source, id, kind, text: text.into(), line: 42, column: 5 }
}

fn site(source: i32, args: &str) -> SiteRow {
    SiteRow {
        site: SiteId(source),
        pid: Pid(1),
        event: "lock.mutex_acquire".into(),
        category: "lock".into(),
        kind: SiteKind::LockAcquire,
        file: "".into(),
        line: 1,
        args: args.into(),
        format: "".into(),
        triggers: 1,
        source,
        started: 0,
        program: 0,
        on_ns: Some(0),
    }
}

/// One process: the program that it executed first, and the one after.
#[test]
fn numbers_of_a_place_word_are_told_apart() {
    let names = [
        name(0, 3, NameKind::Name, "queue"),
        name(0, 9, NameKind::Place, "src/a.rs"),
        name(1, 3, NameKind::Name, "list"),
    ];
    let sites = [0, 1].map(|source| site(source, "lock:pointer, place:unsigned"));
    let context = Context::new(true, 0, &[], &sites, &names);
    let word = ft_user::layout::place_word(9, 3) as i64;
    let of = |site| {
        let name = context.lock_name(Pid(1), 0x10, SiteId(site), word);
        (name.to_string(), context.place(Pid(1), SiteId(site), word).to_string())
    };
    assert_eq!(of(0), ("queue".into(), "src/a.rs:42".into()));
    assert_eq!(of(1), ("list".into(), "".into()));
    assert_eq!(of(2), ("0x10".into(), "".into()));
}

#[test]
fn a_return_address_has_a_function() {
    let check = |function: &str, file: &str, expected: &str| {
        let symbol = SymbolRow {
            pid: Pid(1),
            address: 9,
            kind: SymbolKind::Call,
            symbol: function.into(),
            file: file.into(),
            line: 42,
            object: "/usr/lib/libx.so".into(),
            offset: 0x1234,
        };
        let site = site(0, "lock:pointer, caller:pointer");
        // With the number that the address would be, if it were a place word.
        let name = name(0, 9, NameKind::Place, "src/a.rs");
        let context = Context::new(true, 0, &[], &[site], &[name]).with_symbols(&[symbol]);
        assert_eq!(&*context.place(Pid(1), SiteId(0), 9), expected);
        assert_eq!(&*context.place(Pid(1), SiteId(0), 10), "0xa");
    };
    check("work", "/src/app/main.c", "work (main.c:42)");
    check("work", "", "work (libx.so+0x1234)");
    check("", "", "libx.so+0x1234");
}

/// Names that are made of addresses are forgotten when they are too many, and made anew.
#[test]
fn any_number_of_addresses_has_its_names() {
    let context = Context::new(true, 0, &[], &[], &[]);
    for round in 0..2 {
        for address in 0..=MAX_HEX_NAMES as i64 {
            assert_eq!(*context.hex_name(address), *format!("{address:#x}"), "round {round}");
        }
        assert!(context.hex_names.borrow().len() <= MAX_HEX_NAMES);
    }
}
