use std::os::unix::fs::PermissionsExt as _;

use std::process::Command;

use super::*;
use crate::build_id;
use crate::convert::synthetic;
use crate::convert::synthetic::program::{CODE, deep, exploding, named};
use crate::foreign_file::ForeignFile;
use crate::helper;
use crate::vdso;

fn own() -> Pid {
    Pid(std::process::id() as i32)
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Says to this program that it is a worker.
const WORKER: &str = "FT_TEST_READS_NAMES";

/// Workers are this program, which runs one test.
fn start_workers() {
    helper::start_by(|_| {
        let mut command = Command::new("/proc/self/exe");
        command.args(["--exact", "convert::names::tests::the_life_of_a_worker"]).env(WORKER, "");
        command
    });
}

/// Of no other process than a worker: a test like any other without it.
#[test]
fn the_life_of_a_worker() {
    if std::env::var_os(WORKER).is_some() {
        let ended = serve();
        std::process::exit(i32::from(ended.is_err()));
    }
}

/// The files that this process has mapped (proc_pid_maps(5)).
fn own_mappings() -> Vec<Mapping> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mappings = maps.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [range, _, offset, _, _, path] = words[..] else { return None };
        let (start, end) = range.split_once('-')?;
        let number = |hex| u64::from_str_radix(hex, 16).ok();
        let mut mapping = Mapping {
            start: number(start)?,
            end: number(end)?,
            offset: number(offset)?,
            path: path.to_owned(),
            ..Mapping::default()
        };
        let file = ForeignFile::mapped(own().0, &mapping, &Mounts::default())?;
        (mapping.build_id, mapping.address) = build_id::of_mapped(&file, &mapping);
        mapping.file = file.facts().map(|facts| facts.key);
        Some(mapping)
    });
    mappings.collect()
}

fn holder(mappings: &[Mapping], address: u64) -> &Mapping {
    mappings.iter().find(|m| (m.start..m.end).contains(&address)).unwrap()
}

/// What is said of addresses of this process.
fn ask(asked: &[(What, &Mapping, u64)]) -> Vec<Answer> {
    start_workers();
    let (users, mapped) = ([(own(), user())].into(), HashMap::new());
    let query = |&(what, mapping, address)| Query { pid: own(), mapping, what, address };
    let queries: Vec<_> = asked.iter().map(query).collect();
    let mut names = Names::new(&users, &mapped);
    let answers = names.ask(&queries);
    assert_eq!(names.warnings().count(), 0);
    answers
}

#[test]
fn functions_of_the_vdso_are_found_in_our_own() {
    let mappings = own_mappings();
    let mapping =
        mappings.iter().find(|mapping| mapping.path == vdso::NAME).expect("Linux maps one");
    assert!(!mapping.build_id.is_empty() && mapping.address.is_some(), "{mapping:?}");
    // SAFETY: only asks for the address of a symbol.
    let function = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    assert_eq!(function, mapping.start);
    let image = vdso::image().unwrap();
    let text = std::fs::read(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&image)));
    let text = text.unwrap();
    let inflated = Default::default();
    let program = program::Program::new(&text, None, &inflated).unwrap();
    let is_it = |function: &&program::Function<'_>| function.name == b"__vdso_clock_gettime";
    let at = program.functions().iter().find(is_it).unwrap().address + 1;
    let other = Mapping { build_id: "00".into(), ..mapping.clone() };
    let address = mapping.start + at;
    let found = ask(&[(What::Frames, mapping, address), (What::Frames, &other, address)]);
    let names: Vec<_> = found[0].symbols.iter().map(|symbol| &*symbol.name).collect();
    assert!(matches!(&names[..], [name] if name.ends_with("clock_gettime")), "{names:?}");
    assert_eq!(found[1], Answer::default(), "that of another kernel is another one");
}

#[test]
fn own_function_and_variable_are_found() {
    static VARIABLE: [std::sync::atomic::AtomicU64; 4] =
        [const { std::sync::atomic::AtomicU64::new(1) }; 4];
    let mappings = own_mappings();
    let here = own_function_and_variable_are_found as *const () as u64;
    let text = holder(&mappings, here);
    let (third, stack) = (&raw const VARIABLE[2] as u64, &raw const mappings as u64);
    let found = ask(&[
        (What::Function, text, here),
        (What::Variable, text, third),
        (What::Variable, text, stack),
        (What::Call, text, here),
        (What::Frames, text, here),
        (What::Framed, text, here),
    ]);
    for whole in [&found[0], &found[3], &found[4]] {
        let symbol = &whole.symbols[0];
        assert!(symbol.name.contains("own_function_and_variable"), "{whole:?}");
        assert!(symbol.file.ends_with("names/tests.rs") && symbol.line > 40, "{whole:?}");
        assert_eq!(whole.at, found[0].at);
    }
    let symbol = &found[1].symbols[0];
    assert!(symbol.name.contains("VARIABLE") && symbol.name.ends_with("+0x10"), "{symbol:?}");
    assert_eq!(found[2], Answer::default(), "on the stack");
    let (looked_at, framed) = found[5].at.map(|at| (at >> 32, at & 0xffff_ffff)).unwrap();
    assert!(looked_at > 100 && framed <= looked_at, "{framed} of {looked_at}");
}

/// An address in a function is its own, and one behind its end is not.
#[test]
fn functions_have_names_and_ends() {
    let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let inflated = Default::default();
    let program = program::Program::new(&file, None, &inflated).unwrap();
    let functions = program.functions();
    let (function, gap) = functions
        .windows(2)
        .map(|pair| (&pair[0], pair[0].address + pair[0].size, pair[1].address))
        .find_map(|(f, end, next)| (f.size > 0 && end < next).then_some((f, end)))
        .expect("functions are aligned");
    let name = crate::demangle::demangled(function.name);
    assert!(program.frames(gap).iter().all(|symbol| *symbol.name != *name), "{name}");
    let inside = program.function(function.address);
    assert!(!inside.name.is_empty(), "{name}");
}

#[test]
fn many_addresses_are_answered_in_their_order() {
    let mappings = own_mappings();
    let here = many_addresses_are_answered_in_their_order as *const () as u64;
    let text = holder(&mappings, here);
    let addresses: Vec<u64> = (0..1000).map(|i| here - i * 64 % (here - text.start)).collect();
    let asked: Vec<_> = addresses.iter().map(|&at| (What::Frames, text, at)).collect();
    let found = ask(&asked);
    let first = found[0].at.unwrap();
    for (address, answer) in addresses.iter().zip(&found) {
        assert_eq!(answer.at.map(|at| first - at), Some(here - address));
    }
}

/// What a worker says that was taken over, or that has died.
#[test]
fn a_worker_that_fails_costs_a_file_its_names() {
    let file = vec![File::open(std::env::current_exe().unwrap()).unwrap()];
    let mapping = Mapping { path: "/x".into(), ..Mapping::default() };
    let query = Query { pid: own(), mapping: &mapping, what: What::Call, address: 7 };
    let asked = |said: &'static [u8]| {
        let (socket, theirs) = pair().unwrap();
        // Somebody who is there, and says nothing itself.
        let process = Command::new("sleep").arg("1000").spawn().unwrap();
        let ends_by = Instant::now() + FILE_TIME;
        let worker =
            Worker { socket, process: helper::Helper(process), ends_at: FILE_CPU, ends_by };
        let mut user = Reader { worker: Some(worker) };
        let thread = std::thread::spawn(move || {
            wire::receive(&theirs).unwrap();
            wire::receive(&theirs).unwrap();
            if !said.is_empty() {
                wire::send(&theirs, said, &[], SendFlags::empty()).unwrap();
            }
        });
        let mut spent = Spent::default();
        let failed = user.of_file(&mut spent, USER_CPU, &Request::Program, &file, |worker| {
            worker
                .ask(&[query], &[0], &mut Known::default())
                .map(|answers| assert_eq!(answers.len(), 1))
        });
        thread.join().unwrap();
        (failed, user.worker.is_some())
    };
    assert_eq!(asked(&[0; 10]), (Ok(()), true));
    assert_eq!(asked(&[]), (Err(Failure::Died), false));
    assert_eq!(asked(&[7; 3]), (Err(Failure::Rubbish), false));
    assert_eq!(asked(&[0; 20]), (Err(Failure::Rubbish), false), "two answers to one question");
}

/// At moments from before it begins until after it has ended: each answer is the whole one, or none.
#[test]
fn a_worker_may_be_killed_at_any_moment() {
    const ALONE: &str = "FT_TEST_KILLS_WORKERS";
    if std::env::var_os(ALONE).is_none() {
        // The workers of other tests are not to be killed.
        let mut alone = Command::new("/proc/self/exe");
        let name = "convert::names::tests::a_worker_may_be_killed_at_any_moment";
        let output = alone.args(["--exact", name]).env(ALONE, "").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    const MOMENTS: u32 = 200;
    let mappings = own_mappings();
    let functions = [libc::malloc as *const (), libc::qsort as *const (), libc::fork as *const ()];
    let in_libc = functions.map(|f| (What::Frames, holder(&mappings, f as u64), f as u64));
    // SAFETY: only asks for the address of a symbol.
    let start = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    let in_vdso = [0x1000, 0x1100].map(|at| (What::Frames, holder(&mappings, start), start + at));
    let asked = [&in_libc[..], &in_vdso[..]].concat();
    let whole = ask(&asked);
    assert!(in_libc.iter().zip(&whole).all(|(_, answer)| !answer.symbols.is_empty()), "{whole:?}");
    let began = std::time::Instant::now();
    ask(&asked);
    let last = began.elapsed() * 3 / 2;

    let (users, mapped) = ([(own(), user())].into(), HashMap::new());
    let query = |&(what, mapping, address)| Query { pid: own(), mapping, what, address };
    let queries: Vec<_> = asked.iter().map(query).collect();
    let lost = (0..MOMENTS).filter(|moment| {
        let (answers, warnings) = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(last * *moment / MOMENTS);
                helper::beside(|workers| {
                    for worker in workers {
                        let pid = rustix::process::Pid::from_raw(*worker as i32).unwrap();
                        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                    }
                });
            });
            let mut names = Names::new(&users, &mapped);
            (names.ask(&queries), names.warnings().count())
        });
        for (answer, whole) in answers.iter().zip(&whole) {
            assert!(answer == whole || *answer == Answer::default(), "{answer:?}, not {whole:?}");
        }
        assert_eq!(answers != whole, warnings > 0, "a file without names has a warning");
        warnings > 0
    });
    let lost = lost.count();
    assert!(0 < lost && lost < MOMENTS as usize, "{lost} of {MOMENTS} were killed at work");
}

#[test]
fn who_fails_over_and_over_is_not_asked_again() {
    let (_file, mapping) = on_disk(&small_libraries()[0]);
    let (users, mapped) = ([(own(), user())].into(), HashMap::new());
    let failures = [(user(), MAX_FAILURES)].into();
    for (spent, said) in [
        (Spent { failures, ..Spent::default() }, "others of this owner had failed"),
        (Spent { cpu: USER_CPU, ..Spent::default() }, "all that they may"),
    ] {
        let mut names = Names::new(&users, &mapped);
        names.spent.0.insert(Some(user()), spent);
        let query = Query { pid: own(), mapping: &mapping, what: What::Framed, address: 0 };
        assert_eq!(names.ask(&[query]), [Answer::default()]);
        let warnings: Vec<String> = names.warnings().map(|warning| warning.to_string()).collect();
        assert!(warnings.len() == 1 && warnings[0].contains(said), "{warnings:?}");
        assert!(names.readers.values().all(|reader| reader.worker.is_none()), "nobody is asked");
    }
}

#[test]
fn all_users_together_have_an_end_and_each_has_something() {
    let mut spending = Spending::default();
    for user in (0..100).map(Some) {
        let left = spending.left(user);
        assert!(Duration::ZERO < left && left <= USER_CPU, "{left:?}");
        spending.0.insert(user, Spent { cpu: left, ..Spent::default() });
        assert!(spending.is_all(user) || spending.left(user) < Duration::from_nanos(2));
        if left < Duration::from_millis(1) {
            break;
        }
    }
    let all: Duration = spending.0.values().map(|spent| spent.cpu).sum();
    assert!(all > 3 * USER_CPU && all <= ALL_CPU, "{all:?}");
}

/// As of processes in the same container: its list is read once, and not at all if it is ours.
#[test]
fn a_list_of_mounts_is_read_once() {
    let (users, mapped) = ([(own(), user())].into(), HashMap::new());
    let mut names = Names::new(&users, &mapped);
    assert!(Arc::ptr_eq(&names.mounts(own()).unwrap(), &names.ours.clone()));
    assert!(names.spent.0.is_empty());
    names.seen.clear();
    names.theirs.clear();
    let read = names.mounts(own()).unwrap();
    names.theirs.clear();
    assert!(Arc::ptr_eq(&names.mounts(own()).unwrap(), &read));
    assert_eq!(names.spent.0[&Some(user())].cpu, read.cpu());
    assert!(read.cpu() > Duration::ZERO);
}

/// A worker that is stopped, as one that waits for a file system, and one that does not come to an end.
#[test]
fn a_worker_has_a_time() {
    start_workers();
    let mut worker = Worker::start().unwrap().unwrap();
    worker.ends_at = Duration::ZERO;
    assert_eq!(worker.wait(), Err(Failure::Slow), "it has taken more than nothing to start");
    worker.ends_at = FILE_CPU;
    worker.ends_by = Instant::now();
    assert_eq!(worker.wait(), Err(Failure::Slow), "whatever it has taken");
}

#[test]
fn a_file_ends_where_its_user_has_taken_all() {
    let mappings = own_mappings();
    let here = a_file_ends_where_its_user_has_taken_all as *const () as u64;
    let mapping = holder(&mappings, here);
    start_workers();
    let (users, mapped) = ([(own(), user())].into(), HashMap::new());
    let query = |n| Query { pid: own(), mapping, what: What::Call, address: here + n };
    let queries: Vec<_> = (0..3 * MAX_ASKED as u64).map(|n| query(n % 2)).collect();
    let all_but = |symbols, bytes| {
        let mut names = Names::new(&users, &mapped);
        let spent = Spent { symbols, bytes, ..Spent::default() };
        names.spent.0.insert(Some(user()), spent);
        let answered = names.ask(&queries).iter().filter(|a| !a.symbols.is_empty()).count();
        (answered, names.warnings().next().map(|warning| warning.to_string()))
    };
    assert_eq!(all_but(0, 0), (queries.len(), None));
    for (symbols, bytes, answered) in
        [(MAX_SYMBOLS - MAX_ASKED, 0, MAX_ASKED), (0, MAX_NAMES_BYTES - 1, 0)]
    {
        let (found, warning) = all_but(symbols, bytes);
        assert_eq!(found, answered);
        assert!(warning.is_some_and(|said| said.contains("all that they may")));
    }
}

#[test]
fn what_no_packet_has_room_for_is_without_the_innermost() {
    let (ours, theirs) = pair().unwrap();
    let named = |n: u64| Symbol { name: format!("{n:4000}").into(), ..Symbol::default() };
    let large = move |_: What, _: &Mapping, _| Answer {
        at: Some(1),
        symbols: (0..64).map(named).collect(),
    };
    let thread =
        std::thread::spawn(move || worker::answer(&theirs, large).map(|next| next.is_none()));
    let ask = Request::Ask(What::Frames, [0; 3], vec![1, 2]).encode();
    wire::send(&ours, &ask, &[], SendFlags::empty()).unwrap();
    let (mut known, mut all) = (Known::default(), Vec::new());
    while all.len() < 2 {
        let (packet, _) = wire::receive(&ours).unwrap();
        all.extend(packet::answers(&packet, &mut known).expect("an answer"));
    }
    drop(ours);
    assert!(thread.join().unwrap().unwrap(), "it ends with the other end");
    for Answer { symbols, .. } in all {
        assert!((10..64).contains(&symbols.len()) && *symbols[0].name == *named(0).name);
    }
}

/// What the kernel says of a worker that has answered.
#[test]
fn a_worker_has_no_rights() {
    let mappings = own_mappings();
    let here = a_worker_has_no_rights as *const () as u64;
    let mapping = holder(&mappings, here);
    start_workers();
    let (users, mapped) = ([(own(), user())].into(), HashMap::new());
    let mut names = Names::new(&users, &mapped);
    let found = names.ask(&[Query { pid: own(), mapping, what: What::Call, address: here }]);
    assert!(!found[0].symbols.is_empty());
    let workers = names.readers.values().filter_map(|reader| reader.worker.as_ref());
    let [worker] = workers.collect::<Vec<_>>()[..] else { panic!("one user, one worker") };
    let task = std::fs::read_dir(format!("/proc/{}/task", worker.process.0.id())).unwrap();
    let status = |path: &std::path::Path| std::fs::read_to_string(path.join("status")).unwrap();
    // In the agent's own program it is the only thread; here the harness has another one.
    let served = task.map(|entry| status(&entry.unwrap().path()));
    let served = served.filter(|status| status.contains("\nSeccomp:\t2\n")).collect::<Vec<_>>();
    let [served] = &served[..] else { panic!("one thread serves") };
    let has = |line: &str| served.contains(&format!("\n{line}\n"));
    assert!(has("NoNewPrivs:\t1"), "{served}");
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert!(has(&format!("{set}:\t0000000000000000")), "{served}");
    }
    if rustix::process::geteuid().is_root() {
        let [user, nobody] = [confine::OWN_USER, confine::NOBODY]
            .map(|user| has(["Uid:", &format!("{user}\t").repeat(4)].join("\t").trim_end()));
        assert!(user || nobody, "{served}");
    }
    // Which files it has, root alone can see; that they are none but its own, the kernel has been told.
    let limits =
        std::fs::read_to_string(format!("/proc/{}/limits", worker.process.0.id())).unwrap();
    let most = format!("Max address space         {} ", confine::MEMORY_BYTES);
    assert!(limits.contains(&most), "{limits}");
    assert!(limits.contains("Max core file size        0 "), "{limits}");
    assert!(limits.contains("Max file size             0 "), "{limits}");
}

/// In a thread of its own, whose rights alone are given up.
#[test]
fn no_path_leads_to_a_file_where_landlock_is() {
    // SAFETY: asks for a number alone.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u64>(), 0, 1) };
    if version < 1 {
        println!("left out: this kernel has no Landlock");
        return;
    }
    let opened = std::thread::spawn(|| {
        rustix::thread::set_no_new_privs(true).unwrap();
        let before = File::open("/proc/self/maps").is_ok();
        confine::leave_no_path();
        (before, File::open("/proc/self/maps").map_err(|e| e.kind()).err())
    });
    assert_eq!(opened.join().unwrap(), (true, Some(io::ErrorKind::PermissionDenied)));
}

/// In a thread of its own, which alone is filtered. A descriptor that says to whom the kernel tells of it, and how, kills.
#[test]
fn no_signal_is_asked_of_a_descriptor() {
    let asked = std::thread::spawn(|| {
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        rustix::thread::set_no_new_privs(true).unwrap();
        seccompiler::apply_filter(&confine::filter().unwrap()).unwrap();
        let ask = |what: i32, argument: i32| {
            // SAFETY: takes numbers alone.
            unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&ours), what, argument) }
        };
        let refused = [(libc::F_SETOWN, 1), (libc::F_SETFL, libc::O_ASYNC), (10, libc::SIGKILL)]
            .map(|(what, argument)| ask(what, argument));
        (refused, ask(libc::F_GETFD, 0) >= 0)
    });
    assert_eq!(asked.join().unwrap(), ([-1; 3], true));
}

fn on_disk(content: &[u8]) -> (tempfile::NamedTempFile, Mapping) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), content).unwrap();
    // A temporary file is for its owner alone; everybody may read this one.
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let held = ForeignFile::here(file.path(), &Mounts::default());
    let facts = held.unwrap().facts().unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    let mapping = Mapping { end: 1 << 32, path, file: Some(facts.key), ..Mapping::default() };
    (file, mapping)
}

#[test]
fn functions_that_are_nested_without_end_end_the_worker_alone() {
    start_workers();
    let mappings = own_mappings();
    let here = start_workers as *const () as u64;
    let (shallow, in_shallow) = on_disk(&deep(20));
    let (hostile, in_hostile) = on_disk(&deep(2_000_000));
    let (users, mapped) = ([(own(), user())].into(), HashMap::new());
    let mut names = Names::new(&users, &mapped);
    let query = |mapping, address| Query { pid: own(), mapping, what: What::Frames, address };
    let found = names.ask(&[
        query(&in_hostile, CODE + 1),
        query(&in_shallow, CODE + 1),
        query(holder(&mappings, here), here),
    ]);
    assert_eq!(found[0], Answer::default());
    let name = |answer: &Answer| answer.symbols.first().map(|symbol| symbol.name.to_string());
    assert_eq!(name(&found[1]).as_deref(), Some("deep"));
    assert!(name(&found[2]).is_some_and(|name| name.contains("start_workers")), "{found:?}");
    let warnings: Vec<String> = names.warnings().map(|warning| warning.to_string()).collect();
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(warning.contains(hostile.path().to_str().unwrap()), "{warning}");
    assert!(warning.contains(&format!("of the user with number {} ", user())), "{warning}");
    drop(shallow);
}

#[test]
fn names_without_end_are_cut() {
    let (_long, in_long) = on_disk(&named(&vec![b'A'; 20_000_000]));
    let (_mangled, in_mangled) = on_disk(&named(exploding().as_bytes()));
    let asked = [&in_long, &in_mangled];
    for what in [What::Frames, What::Call] {
        for answer in ask(&asked.map(|mapping| (what, mapping, CODE + 1))) {
            let [symbol] = &answer.symbols[..] else { panic!("{answer:?}") };
            let bytes = symbol.name.len();
            assert!((500..=crate::demangle::MAX_DEMANGLED_BYTES).contains(&bytes), "{bytes}");
        }
    }
}

/// What would take more memory than it may is not inflated: 4 MB can be made of 4 KB.
#[test]
fn what_is_inflated_is_bounded() {
    let of = |bytes: u64| {
        let file = synthetic::program::inflated(bytes);
        let inflated = program::Inflated::default();
        let program = program::Program::new(&file, None, &inflated).unwrap();
        assert!(program.frames(CODE).is_empty());
        inflated.taken()
    };
    assert_eq!((of(program::MAX_INFLATED_BYTES), of(program::MAX_INFLATED_BYTES + 1)), (1, 0));
}

/// Libraries of this machine of at most 256 KiB.
fn small_libraries() -> Vec<Vec<u8>> {
    let own = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libc = own.split_whitespace().find(|word| word.contains("/libc.so")).expect("libc");
    let files = std::fs::read_dir(std::path::Path::new(libc).parent().unwrap()).unwrap();
    let mut paths: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.to_string_lossy().contains(".so") && !path.is_symlink());
    paths.sort();
    let small = |path: &std::path::PathBuf| path.metadata().is_ok_and(|m| m.len() <= 256 << 10);
    let read = paths.iter().filter(|path| small(path)).map(|path| std::fs::read(path).unwrap());
    read.filter(|file| file.starts_with(b"\x7fELF")).collect()
}

/// Damages a file, where its header, its tables or anything is.
fn damage(file: &mut Vec<u8>, random: &mut impl FnMut(usize) -> usize) {
    for _ in 0..=random(8) {
        let length = file.len();
        let table = u64::from_le_bytes(file[40..48].try_into().unwrap()) as usize;
        let (from, room) = match random(4) {
            0 => (0, 0x400),
            1 => (table.min(length - 64), 0x800),
            2 => (length - 0x1000, 0x1000),
            _ => (0, length),
        };
        let at = (from + random(room)).min(length - 9);
        match random(6) {
            0 => file[at] = random(256) as u8,
            1 => file[at] ^= 1 << random(8),
            2 => file[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes()),
            3 => file[at..at + 4].copy_from_slice(&(random(length) as u32).to_le_bytes()),
            4 => {
                let other = random(length - 8);
                file.copy_within(other..other + 8, at);
            }
            _ if at > 0x2000 => file.truncate(at),
            _ => {}
        }
    }
}

/// The address of a function, where a segment is at its own offset.
fn first(file: &[u8]) -> Option<u64> {
    let inflated = Default::default();
    let program = program::Program::new(file, None, &inflated)?;
    let mut addresses = program.functions().iter().map(|function| function.address);
    addresses.find(|&at| program.address(at) == Some(at))
}

/// Functions that are inlined into others, of which one is called through a table.
const INLINED: &str = "static int table[8];
    static inline __attribute__((always_inline)) int inner(int n) { return n * table[n & 7]; }
    static __attribute__((noinline)) int middle(int n) { return inner(n) + inner(n + 1); }
    int first(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += middle(i); return sum; }";

/// What the compiler makes of that, which links this program, too: libraries with debugging information, as those of the machine have none.
fn debugged_libraries() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("inlined.c"), folder.path().join("library"));
    std::fs::write(&source, INLINED).unwrap();
    let of = |options: &str| {
        let mut compiler = Command::new("cc");
        compiler.args("-O2 -shared -fPIC -nostdlib".split(' ')).args(options.split(' '));
        assert!(compiler.arg(&source).arg("-o").arg(&library).status().unwrap().success());
        std::fs::read(&library).unwrap()
    };
    ["-gdwarf-5", "-gdwarf-4", "-gdwarf-5 -gz", "-gdwarf-4 -gz -O0"].map(of).into()
}

#[test]
fn nothing_is_at_the_last_address() {
    let inflated = program::Inflated::default();
    for library in debugged_libraries() {
        let program = program::Program::new(&library, None, &inflated).unwrap();
        assert!(program.frames(u64::MAX).is_empty());
    }
}

/// Where what a compiler has left in a map may be damaged, as much as in a file.
fn damaged_map(random: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let line = |n: usize| format!("{:x} {:x} f{n}\n", n << 8, 0x40 + n % 0x100);
    let mut map: Vec<u8> = (0..1 + random(1000)).flat_map(|n| line(n).into_bytes()).collect();
    for _ in 0..random(64) {
        let at = random(map.len());
        match random(4) {
            0 => map[at] = random(256) as u8,
            1 => map[at] = b'\n',
            2 => map.truncate(at + 1),
            _ => map.extend_from_within(at..),
        }
    }
    map
}

/// What processes that this one has waited for have used of memory at most, bytes.
fn most_memory() -> u64 {
    // SAFETY: all zeros are a value of it.
    let mut usage = unsafe { std::mem::zeroed::<libc::rusage>() };
    // SAFETY: writes to what it is.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) }, 0);
    usage.ru_maxrss as u64 * 1024
}

/// `FT_DAMAGED` times as many as in each run; `FT_SEED` repeats one.
#[test]
fn a_damaged_library_costs_its_own_names_alone() {
    start_workers();
    let factor = std::env::var("FT_DAMAGED").map_or(1, |text| text.parse().unwrap());
    let libraries = [small_libraries(), debugged_libraries()].concat();
    assert!(libraries.len() > 10, "{}", libraries.len());
    let seed =
        std::env::var("FT_SEED").map_or_else(|_| own().0 as usize, |text| text.parse().unwrap());
    println!("FT_SEED={seed}");
    let mut state = seed;
    let mut random = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (honest, function) = libraries.iter().find_map(|file| Some((file, first(file)?))).unwrap();
    let (_honest, in_honest) = on_disk(honest);
    let (users, mapped) = ([(own(), user())].into(), HashMap::new());
    let (mut failures, mut named, mut most_cpu) = (0, 0, Duration::ZERO);
    for _ in 0..100 * factor {
        let mut file = libraries[random(libraries.len())].clone();
        damage(&mut file, &mut random);
        let (_kept, mapping) = on_disk(&file);
        let query = |mapping, what, address| Query { pid: own(), mapping, what, address };
        let at = |random: &mut dyn FnMut(usize) -> usize| random(file.len()) as u64;
        let queries = [
            query(&mapping, What::Frames, at(&mut random)),
            query(&mapping, What::Frames, at(&mut random)),
            query(&mapping, What::Function, at(&mut random)),
            query(&mapping, What::Variable, at(&mut random)),
            query(&mapping, What::Framed, 0),
            query(&mapping, What::Frame, at(&mut random)),
            query(&in_honest, What::Call, function),
        ];
        let mut names = Names::new(&users, &mapped);
        let found = names.ask(&queries);
        assert!(!found[6].symbols.is_empty(), "the library that is not damaged has its names");
        named += found[..4].iter().filter(|answer| !answer.symbols.is_empty()).count();
        let symbols = found.iter().flat_map(|answer| &answer.symbols);
        let longest = symbols.map(|symbol| symbol.name.len().max(symbol.file.len())).max();
        assert!(longest <= Some(crate::demangle::MAX_DEMANGLED_BYTES), "{longest:?}");
        let of_user = Some(user());
        failures += names.spent.0[&of_user].failures.values().sum::<u32>();
        let cpu = names.spent.0[&of_user].cpu;
        most_cpu = most_cpu.max(cpu);
        assert!(cpu < USER_CPU, "{cpu:?}");

        // A map is read by the same process, which has read the damaged file if that was the last one.
        let mut reader = names.readers.remove(&(of_user, user())).unwrap();
        let map = on_disk(&damaged_map(&mut random)).0.reopen().unwrap();
        let asked = [0, 1, 2].map(|_| query(&mapping, What::Compiled, random(1 << 18) as u64));
        let mut spent = Spent::default();
        let read = reader.of_file(&mut spent, USER_CPU, &Request::PerfMap, &[map], |worker| {
            worker
                .ask(&asked, &[0, 1, 2], &mut Known::default())
                .map(|answers| assert_eq!(answers.len(), asked.len()))
        });
        assert!(read.is_ok(), "{read:?}");
    }
    let most_bytes = most_memory();
    println!(
        "{failures} workers ended, {named} names were found; at most {most_cpu:?} and {} MiB were used",
        most_bytes >> 20
    );
    assert!(most_bytes <= confine::MEMORY_BYTES, "{most_bytes}");
    assert!(named > 0, "what is damaged a little still has names");
}

/// What one user's processes have mapped costs nobody else a name, though the files are the same owner's.
#[test]
fn what_a_user_uses_up_others_have_still() {
    start_workers();
    let (_hostile, in_hostile) = on_disk(&deep(2_000_000));
    let libraries = small_libraries();
    let (honest, function) = libraries.iter().find_map(|file| Some((file, first(file)?))).unwrap();
    let (_honest, in_honest) = on_disk(honest);
    let theirs = Pid(i32::MAX);
    let (users, mapped) = ([(own(), user()), (theirs, user() + 1)].into(), HashMap::new());
    let mut names = Names::new(&users, &mapped);
    let query = |pid, mapping, address| Query { pid, mapping, what: What::Frames, address };
    for _ in 0..=MAX_FAILURES {
        assert_eq!(names.ask(&[query(theirs, &in_hostile, CODE + 1)]), [Answer::default()]);
    }
    let both = [query(theirs, &in_honest, function), query(own(), &in_honest, function)];
    let has_names =
        names.ask(&both).iter().map(|answer| !answer.symbols.is_empty()).collect::<Vec<_>>();
    assert_eq!(has_names, [false, true]);
    let failures = |user| names.spent.0[&Some(user)].failures.get(&self::user()).copied();
    assert_eq!([failures(user() + 1), failures(user())], [Some(MAX_FAILURES), None]);
    let warnings: Vec<String> = names.warnings().map(|warning| warning.to_string()).collect();
    let [owner, other] = [user(), user() + 1].map(|user| format!("the user with number {user}"));
    let whose = format!("of {owner} have no names in processes of {other}, since");
    assert!(warnings.len() == 1 && warnings[0].contains(&whose), "{warnings:?}");
}

/// What a file is read for is forgotten, and there are few workers, whoever the processes belong to.
#[test]
fn idle_workers_are_few_and_small() {
    start_workers();
    let (_large, in_large) = on_disk(&synthetic::program::inflated(program::MAX_INFLATED_BYTES));
    let pids: Vec<Pid> = (0..2 * MAX_WORKERS as i32).map(|n| Pid(i32::MAX - n)).collect();
    let users = pids.iter().map(|pid| (*pid, (i32::MAX - pid.0) as u32)).collect();
    let mapped = HashMap::new();
    let mut names = Names::new(&users, &mapped);
    for pid in pids {
        names.ask(&[Query { pid, mapping: &in_large, what: What::Frames, address: CODE }]);
    }
    let workers: Vec<_> = names.readers.values().filter_map(|r| r.worker.as_ref()).collect();
    assert_eq!(workers.len(), MAX_WORKERS);
    for worker in workers {
        let path = format!("/proc/{}/status", worker.process.0.id());
        let memory = || -> u64 {
            let status = std::fs::read_to_string(&path).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
            line.trim().trim_end_matches(" kB").parse().unwrap()
        };
        // It forgets when it is told so, which it may not have read yet.
        let is_small = (0..2000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            memory() < 100 << 10
        });
        assert!(is_small, "{} KiB", memory());
    }
}

/// Where a function of the C library begins, its caller's frame lies above the return address, whatever the library is.
#[test]
fn the_c_library_says_how_its_frames_are_left() {
    start_workers();
    let mappings = own_mappings();
    let functions =
        [libc::nanosleep as *const (), libc::read as *const (), libc::poll as *const ()];
    let (users, mapped) = ([(own(), user())].into(), HashMap::new());
    let mut names = Names::new(&users, &mapped);
    for function in functions.map(|function| function as u64) {
        let mapping = holder(&mappings, function);
        let query = |address| Query { pid: own(), mapping, what: What::Frame, address };
        let found = names.ask(&[query(function)]);
        let saved = Saved { base: Base::Cfa, offset: -8 };
        let step = Step {
            by_sp: true,
            offset: 8,
            is_read: false,
            ra: saved,
            bp: CallersBp::Same,
            interrupted: false,
        };
        assert_eq!(found[0].at.and_then(Rule::of), Some(Rule::Step(step)));
    }
}
