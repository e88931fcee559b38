//! From each instruction of an event, framehop finds the callers by what the unwinding tables say, in another process.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

#[path = "../ft-user/tests/common/c.rs"]
mod c;
#[path = "../ft-user/tests/stepper/mod.rs"]
mod stepper;

use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use c::{Link, build};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder};
use stepper::{Mark, Stepper, Stop};

/// Kinds of events in `stepped.c` of `ft-user`'s tests.
const KINDS: usize = 9;

/// A program that is loaded where its file says, with its tables; and where its functions are.
fn module(program: &Path) -> (Module<Vec<u8>>, Range<u64>) {
    let file = std::fs::read(program).unwrap();
    let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    let half = |at: usize| u16::from_le_bytes(file[at..at + 2].try_into().unwrap()) as usize;
    let int = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    // The headers of the sections (ELF-64): name, type, flags, address, offset, size.
    let headers = (0..half(60)).map(|number| word(40) as usize + number * half(58));
    let headers: Vec<usize> = headers.collect();
    let names = word(headers[half(62)] + 24) as usize;
    let section = |name: &[u8]| {
        let is_it = |&&header: &&usize| file[names + int(header)..].starts_with(name);
        let header = *headers.iter().find(is_it).unwrap();
        let (address, offset, size) = (word(header + 16), word(header + 24), word(header + 32));
        let bytes = file[offset as usize..(offset + size) as usize].to_vec();
        (address..address + size, bytes)
    };
    let (text, _) = section(b".text\0");
    let (tables, bytes) = section(b".eh_frame\0");
    let (index, index_bytes) = section(b".eh_frame_hdr\0");
    let sections = ExplicitModuleSectionInfo {
        text_svma: Some(text.clone()),
        eh_frame_svma: Some(tables),
        eh_frame: Some(bytes),
        eh_frame_hdr_svma: Some(index),
        eh_frame_hdr: Some(index_bytes),
        ..Default::default()
    };
    (Module::new("stepped".into(), text.clone(), 0, sections), text)
}

#[test]
fn framehop_finds_the_callers() {
    let flags = ["-std=gnu11", "-O2", "-no-pie"];
    let program = build("cc", &flags, &["tests/c/stepped.c"], Link::Static, "stepped-framehop");
    let mut unwinder = UnwinderX86_64::new();
    let (module, text) = module(&program);
    unwinder.add_module(module);
    let mut cache = CacheX86_64::<_>::new();
    for number in 0..KINDS {
        let mut command = Command::new(&program);
        command.args(["event", &number.to_string()]).stdout(Stdio::null());
        command.env("FT_SOCKET", "/nonexistent").env("FT_ENABLE", "*");
        let mut stepper = Stepper::start(&mut command);
        assert_eq!(stepper.run(), Stop::Mark(Mark::Begin));
        let mut frames = |stepper: &Stepper| {
            let registers = stepper.registers();
            let own = UnwindRegsX86_64::new(registers.rip, registers.rsp, registers.rbp);
            let mut read = |at| stepper.word(at).ok_or(());
            let mut frames = unwinder.iter_frames(registers.rip, own, &mut cache, &mut read);
            let mut found = Vec::new();
            while let Ok(Some(frame)) = frames.next() {
                found.push(frame.address());
            }
            found
        };
        // Behind the function that traps: the one that calls it, and `main`.
        let callers: Vec<u64> = frames(&stepper)[1..3].to_vec();
        let (mut steps, mut lost) = (0, Vec::new());
        while stepper.step(0) == Stop::Step {
            // Of other objects it knows nothing.
            if text.contains(&stepper.registers().rip) {
                let found = frames(&stepper);
                if !found.windows(2).any(|pair| pair == callers) {
                    lost.push((steps, found));
                }
                steps += 1;
            }
        }
        assert!(
            steps > 40 && lost.is_empty(),
            "event {number}: {} of {steps}: {lost:x?}",
            lost.len()
        );
    }
}
