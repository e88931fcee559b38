use super::super::names::Saved;
use super::*;

/// The text of the process, and the first address of its stack.
const TEXT: (u64, u64) = (0x1000, 0x2000);
const SP: u64 = 0x7000_0000;

fn saved(base: Base, offset: i16) -> Saved {
    Saved { base, offset }
}

/// The usual rule: so many bytes from the stack pointer, or from `rbp`, lies what is above the return address.
fn step(by_sp: bool, offset: i32) -> Step {
    Step {
        by_sp,
        offset,
        is_read: false,
        ra: saved(Base::Cfa, -8),
        bp: CallersBp::Same,
        interrupted: false,
    }
}

/// A thread at `ip`, whose stack has these words, in a process with these rules.
struct Thread {
    chain: Chain,
    stack: Vec<u64>,
    rules: Vec<(u64, Rule)>,
    framed: Vec<u64>,
}

impl Thread {
    fn at(ip: u64, stack: &[u64], rules: &[(u64, Rule)]) -> Thread {
        let chain = Chain { tgid: 7, ip, sp: SP, bp: SP, ..Chain::default() };
        Thread { chain, stack: stack.to_vec(), rules: rules.to_vec(), framed: vec![ip] }
    }

    fn with_bp(mut self, bp: u64) -> Thread {
        self.chain.bp = bp;
        self
    }

    /// The kernel has followed frame pointers through these.
    fn with_framed(mut self, framed: &[u64]) -> Thread {
        self.framed = framed.to_vec();
        self
    }

    fn functions(&self) -> Functions {
        let tail: Vec<u8> =
            self.framed.iter().chain(&self.stack).flat_map(|word| word.to_ne_bytes()).collect();
        let chain = Chain {
            user: self.framed.len() as i32,
            stack: 8 * self.stack.len() as u64,
            ..self.chain
        };
        let rules = self.rules.iter().copied().collect();
        let process = Process { text: Text(vec![TEXT]), user: None, rules };
        Unwinder { processes: [(7, process)].into() }.chain(&chain, &tail)
    }

    fn addresses(&self) -> Vec<u64> {
        self.functions().addresses
    }
}

#[test]
fn a_rule_leads_to_the_caller_and_the_last_one_ends_it() {
    let rules = [
        (0x1100, Rule::Step(step(true, 24))),
        (0x11ff, Rule::Step(step(true, 16))),
        (0x12ff, Rule::Outermost),
    ];
    let thread = Thread::at(0x1100, &[1, 2, 0x1200, 3, 0x1300, 0x1400], &rules);
    let found = Functions { addresses: vec![0x1100, 0x11ff, 0x12ff], cut: false };
    assert_eq!(thread.functions(), found);
}

#[test]
fn the_callers_rbp_is_followed() {
    // The first saves it, as its caller has a frame, which is found by it.
    let first = Step { bp: CallersBp::At(saved(Base::Cfa, -16)), ..step(true, 16) };
    let rules = [
        (0x1100, Rule::Step(first)),
        (0x11ff, Rule::Step(step(false, 16))),
        (0x12ff, Rule::Outermost),
    ];
    let bp = SP + 4 * 8;
    let thread = Thread::at(0x1100, &[bp, 0x1200, 5, 6, 0, 0x1300], &rules).with_bp(1);
    assert_eq!(thread.addresses(), [0x1100, 0x11ff, 0x12ff]);
    // One that is lost leads nowhere.
    let lost = Step { bp: CallersBp::Lost, ..first };
    let thread = Thread { rules: vec![(0x1100, Rule::Step(lost)), rules[1]], ..thread };
    assert_eq!(thread.functions(), Functions { addresses: vec![0x1100, 0x11ff], cut: true });
}

#[test]
fn a_realigned_frame_is_found_by_what_it_has_saved() {
    // `main` of gcc: the frame's address stands below where rbp points, rbp where it points.
    let realigned =
        Step { is_read: true, bp: CallersBp::At(saved(Base::Bp, 0)), ..step(false, -8) };
    let rules = [(0x1100, Rule::Step(realigned)), (0x11ff, Rule::Outermost)];
    let stack = [9, SP + 5 * 8, 0, 9, 0x1200, 9];
    let thread = Thread::at(0x1100, &stack, &rules).with_bp(SP + 2 * 8);
    assert_eq!(thread.addresses(), [0x1100, 0x11ff]);
}

#[test]
fn whom_a_signal_has_interrupted_is_where_it_is() {
    let signal = Step {
        by_sp: true,
        offset: 160,
        is_read: true,
        ra: saved(Base::Sp, 168),
        bp: CallersBp::At(saved(Base::Sp, 120)),
        interrupted: true,
    };
    let rules = [
        (0x1100, Rule::Step(step(true, 8))),
        (0x17ff, Rule::Step(signal)),
        (0x1200, Rule::Step(step(true, 8))),
        (0x12ff, Rule::Outermost),
    ];
    let mut stack = vec![0; 40];
    stack[0] = 0x1800;
    // `struct sigcontext`: rsp, rip, flags, segments.
    stack[21] = SP + 30 * 8;
    stack[22..25].copy_from_slice(&[0x1200, 0x246, 0x2b00_0000_0000_0033]);
    stack[30] = 0x1300;
    let thread = Thread::at(0x1100, &stack, &rules);
    assert_eq!(thread.addresses(), [0x1100, 0x17ff, 0x1200, 0x12ff]);
    let stack = Stack { sp: SP, words: stack };
    let interrupted = |at: &usize| stack.words[*at] != 0 && stack.is_interrupted(*at);
    // And what two words follow that are no addresses: more is asked for then than is needed.
    assert_eq!((0..40).filter(interrupted).collect::<Vec<_>>(), [0, 22, 24, 30]);
}

#[test]
fn each_frame_lies_above_the_one_that_it_has_called() {
    for offset in [0, -8, -(1 << 23)] {
        let rules = [(0x1100, Rule::Step(step(true, offset)))];
        let thread = Thread::at(0x1100, &[0x1101; 20], &rules);
        assert_eq!(thread.addresses(), [0x1100], "{offset}");
    }
    // One that leads to itself is as long as its stack.
    let rules = [(0x1100, Rule::Step(step(true, 8)))];
    let thread = Thread::at(0x1100, &[0x1101; 20], &rules);
    assert_eq!(thread.functions(), Functions { addresses: vec![0x1100; 21], cut: true });
    let thread = Thread::at(0x1100, &[0x1101; 300], &rules);
    assert_eq!(
        thread.functions(),
        Functions { addresses: vec![0x1100; Chain::MAX_USER], cut: true }
    );
}

#[test]
fn what_leads_out_of_the_stack_ends_there() {
    let realigned = Step { is_read: true, ..step(true, 8) };
    let far = Step { ra: saved(Base::Sp, i16::MIN), ..step(true, 8) };
    for rule in [step(true, 1 << 20), step(false, 1 << 20), realigned, far, step(true, 9)] {
        let rules = [(0x1100, Rule::Step(rule))];
        for (sp, bp) in [(SP, SP), (u64::MAX - 7, u64::MAX), (8, 0), (1, 1)] {
            let mut thread = Thread::at(0x1100, &[1, 2, 3], &rules).with_bp(bp);
            thread.chain.sp = sp;
            assert_eq!(thread.addresses()[0], 0x1100);
            assert!(thread.addresses().len() <= 2, "{rule:?} {sp:#x}");
        }
    }
    let unknown = Thread::at(
        0x1100,
        &[0x1200],
        &[(0x1100, Rule::Step(step(true, 8))), (0x11ff, Rule::Other)],
    );
    assert_eq!(unknown.functions(), Functions { addresses: vec![0x1100, 0x11ff], cut: false });
}

#[test]
fn code_without_rules_is_left_by_its_frame_pointer() {
    // 0x1200 has a frame, and no rule; nor has 0x9000, which was made while the program ran.
    let rules = [(0x1100, Rule::Step(step(true, 8))), (0x13ff, Rule::Outermost)];
    let stack = [0x1200, 5, SP + 5 * 8, 0x9000, 5, 0, 0x1400];
    let thread = Thread::at(0x1100, &stack, &rules).with_bp(SP + 2 * 8);
    assert_eq!(thread.addresses(), [0x1100, 0x11ff, 0x8fff, 0x13ff]);
    // At the end of a chain, what is outside of all text is a word of anything.
    let thread = Thread::at(0x1100, &[0x1200, 5, 0, 0x9000], &rules).with_bp(SP + 2 * 8);
    assert_eq!(thread.addresses(), [0x1100, 0x11ff]);
    // A register of anything is no frame pointer.
    for bp in [0, SP - 8, SP + 1, u64::MAX] {
        let thread = Thread::at(0x1100, &stack, &rules).with_bp(bp);
        assert_eq!(thread.addresses(), [0x1100, 0x11ff], "{bp:#x}");
    }
}

#[test]
fn above_the_piece_of_the_stack_frame_pointers_go_on() {
    let rules = [(0x1100, Rule::Step(step(true, 8)))];
    let bp = SP + 0x1000;
    let framed = [0x1100, 0x1200, 0x1300, 0x1400, 0x9000];
    let thread = Thread::at(0x1100, &[0x1200, 5], &rules).with_bp(bp).with_framed(&framed);
    assert_eq!(
        thread.functions(),
        Functions { addresses: vec![0x1100, 0x11ff, 0x12ff, 0x13ff], cut: false }
    );
    // Not where they have not been.
    let thread = thread.with_framed(&[0x1100, 0x1500]);
    assert_eq!(thread.addresses(), [0x1100, 0x11ff]);
}

#[test]
fn without_any_rule_the_chain_is_that_of_frame_pointers() {
    let thread = Thread::at(0x1100, &[0x1900], &[]).with_bp(SP + 8);
    let thread = thread.with_framed(&[0x1100, 0x1200, 0, 0x1300, 0x9000]);
    assert_eq!(thread.addresses(), [0x1100, 0x11ff, 0x12ff]);
    // They are none below the stack.
    assert_eq!(thread.with_bp(SP - 8).addresses(), [0x1100]);
    let chain = Chain { tgid: 8, user: 2, ..Chain::default() };
    let tail: Vec<u8> = [0x9000_u64, 0x9100].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let found = Unwinder::default().chain(&chain, &tail);
    assert_eq!(found.addresses, [0x9000, 0x90ff], "nobody has seen the process");
}

#[test]
fn the_text_of_a_process_is_where_its_files_are() {
    let mapping = |(start, end)| Mapping { start, end, ..Mapping::default() };
    let text = Text::of(&[(30, 40), (10, 20), (20, 25), (12, 14)].map(mapping));
    assert_eq!(text.0, [(10, 25), (30, 40)]);
    let inside: Vec<u64> = (0..50).filter(|&at| text.has(at)).collect();
    assert_eq!(inside, (10..25).chain(30..40).collect::<Vec<_>>());
    assert!(!Text::default().has(0));
}

#[test]
fn words_that_are_no_addresses_are_left_out_of_a_record() {
    let stack = [0x1200, 5, 6, 0x1300, u64::MAX];
    let rules = [
        (0x1100, Rule::Step(step(true, 8))),
        (0x11ff, Rule::Step(step(true, 24))),
        (0x12ff, Rule::Outermost),
    ];
    let whole = Thread::at(0x1100, &stack, &rules);
    let mut kept = Thread::at(0x1100, &[0x1200, 0x1300], &rules);
    kept.chain.kept[0] = 0b1001;
    assert_eq!(whole.addresses(), [0x1100, 0x11ff, 0x12ff]);
    assert_eq!(kept.functions(), whole.functions());
    assert_eq!(ones(1 << 63 | 0b1010).collect::<Vec<_>>(), [1, 3, 63]);
    let chain = Chain { user: 1, stack: 16, kept: kept.chain.kept, ..Chain::default() };
    assert_eq!(chain.tail_bytes(), Some(24));
    for wrong in [0, 8, 24, 4096, u64::MAX] {
        assert_eq!(Chain { stack: wrong, ..chain }.tail_bytes(), None, "{wrong}");
    }
}

#[test]
fn what_lies_behind_the_last_address_of_a_piece_is_not_known() {
    let rules = [(0x1100, Rule::Step(step(true, 8))), (0x11ff, Rule::Step(step(true, 32)))];
    let mut thread = Thread::at(0x1100, &[0x1200], &rules);
    thread.chain.kept[0] = 1;
    assert_eq!(thread.functions(), Functions { addresses: vec![0x1100, 0x11ff], cut: true });
}

#[test]
fn addresses_beyond_those_that_are_asked_have_no_rule() {
    let dir = tempfile::tempdir().unwrap();
    crate::convert::synthetic::registry(dir.path(), &[], true);
    let mut registry = Registry::open(&crate::spool::Spool::of(dir.path())).unwrap();
    let mapping =
        Mapping { start: TEXT.0, end: TEXT.1, path: "/none".into(), ..Mapping::default() };
    registry.mappings.insert(Pid(7), vec![mapping]);
    let asked = |most| {
        let mut questions = Questions { asked: Fair::new(most), ..Questions::new(&registry) };
        let stack = [0x1200_u64, 5, 0x1300, 0x1200, 0x9000];
        let tail: Vec<u8> = stack.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let chain = Chain { tgid: 7, ip: 0x1100, sp: SP, stack: 40, ..Chain::default() };
        questions.chain(&chain, &tail);
        let asked = questions.asked.all().flat_map(|(_, asked)| asked);
        let asked: Vec<u64> = asked.map(|&(_, address)| address).collect();
        let mut rules = Rules::default();
        let (_, warnings) = questions.answered(&mut rules);
        assert_eq!(warnings.is_empty(), asked.len() == 3);
        assert_eq!(rules.known.len(), asked.len(), "what cannot be read is known, too");
        asked
    };
    assert_eq!(asked(MAX_ASKED_RULES), [0x1100, 0x11ff, 0x12ff]);
    assert_eq!(asked(2), [0x1100, 0x11ff]);
}

#[test]
fn stacks_of_one_user_leave_those_of_others_their_rules() {
    let dir = tempfile::tempdir().unwrap();
    crate::convert::synthetic::registry(dir.path(), &[], true);
    let mut registry = Registry::open(&crate::spool::Spool::of(dir.path())).unwrap();
    for (pid, user) in [(7, 1), (8, 1), (9, 2)] {
        let end = 0x1000_0000;
        let mapping = Mapping { start: 0x1000, end, path: "/none".into(), ..Mapping::default() };
        registry.mappings.insert(Pid(pid), vec![mapping]);
        registry.users.entry(Pid(pid)).or_default().add(user, Some(1));
    }
    let mut questions = Questions { asked: Fair::new(100), ..Questions::new(&registry) };
    let mut note = |tgid, stack: Vec<u64>| {
        let tail: Vec<u8> = stack.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let stack = tail.len() as u64;
        let chain = Chain { tgid, ip: 0x1100, sp: SP, stack, ..Chain::default() };
        questions.chain(&chain, &tail);
    };
    for tgid in [7, 8] {
        // Words that are never the same.
        (0..10).for_each(|n| note(tgid, (0..20).map(|i| 0x2000 + 100 * n + 2 * i).collect()));
    }
    note(9, vec![0x1200, 5, 0x1300]);
    note(7, (0..20).map(|i| 0x9000 + 2 * i).collect());
    let of_other: Vec<_> = questions.asked.all().filter(|(user, _)| *user == Some(2)).collect();
    assert_eq!(
        of_other[0].1.iter().copied().collect::<Vec<_>>(),
        [(9, 0x1100), (9, 0x11ff), (9, 0x12ff)]
    );
    let mut rules = Rules::default();
    let (unwinder, warnings) = questions.answered(&mut rules);
    assert_eq!(warnings, [Warning::Unwound { user: Some(1) }]);
    assert_eq!([7, 9, 10].map(|process| unwinder.user(process)), [Some(1), Some(2), None]);
    // Of one file, what is known for one user says nothing for another one.
    let of = |user| rules.known.keys().filter(|(of, ..)| *of == Some(user)).count();
    assert_eq!(of(2), 3);
    assert!(rules.known.contains_key(&(Some(1), 0, 0x100)) && of(1) > 50);
}
