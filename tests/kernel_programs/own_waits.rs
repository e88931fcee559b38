//! Waits for locks of our own maps and ring buffers are left out, and no others: those of a thread that is within one of our
//! programs, however long it is preempted there.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    process::{Command, Stdio, id},
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use aya::{
    maps::{Map, MapData, PerCpuArray, PerCpuValues},
    util::nr_cpus,
};
use ft_agent::collect::kernel::{Group, Kernel};
use ft_ebpf::OWN_THREADS;

use crate::{
    common::{Record, drain, kernel_or_skip},
    my_tid, options,
};

/// Set for the process that has the programs to itself.
const CHILD: &str = "FT_IS_WITHIN_A_PROGRAM";

/// The map by which the programs know, of the only ones that this process has loaded.
fn own() -> PerCpuArray<MapData, [u64; OWN_THREADS]> {
    let map_id = |text: String| -> Option<u32> {
        let id = text.lines().find_map(|line| line.strip_prefix("map_id:"))?;
        id.trim().parse().ok()
    };
    let is_own = |data: &MapData| data.info().is_ok_and(|info| info.name_as_str() == Some("OWN"));
    let files = fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
    let ids = files.filter_map(|file| map_id(fs::read_to_string(file.path()).ok()?));
    let mut maps = ids.filter_map(|id| MapData::from_id(id).ok()).filter(is_own);
    let map = maps.next().expect("the map of the programs");
    PerCpuArray::try_from(Map::PerCpuArray(map)).unwrap()
}

/// As a program leaves it that is preempted in the thread `tid`, on whatever CPU; 0: none is in any.
fn within_a_program(tid: u32) {
    let mut of_cpu = [0; OWN_THREADS];
    of_cpu[tid as usize % OWN_THREADS] = u64::from(tid != 0);
    let values = PerCpuValues::try_from(vec![of_cpu; nr_cpus().unwrap()]).unwrap();
    own().set(0, values, 0).unwrap();
}

/// Writers of one file, who wait for each other, in turns.
struct Writers {
    file: File,
    tids: [AtomicU32; 4],
    turn: Barrier,
    is_over: AtomicBool,
}

impl Writers {
    /// They stay when a test fails in the middle of a turn, and end with its process.
    fn start() -> Arc<Writers> {
        let (tids, is_over) = ([const { AtomicU32::new(0) }; 4], AtomicBool::new(false));
        let turn = Barrier::new(tids.len() + 1);
        let writers = Writers { file: tempfile::tempfile().unwrap(), tids, turn, is_over };
        let writers = Arc::new(writers);
        for i in 0..writers.tids.len() {
            let writers = Arc::clone(&writers);
            std::thread::spawn(move || writers.write(i));
        }
        while writers.tids.iter().any(|tid| tid.load(Relaxed) == 0) {
            std::thread::yield_now();
        }
        writers
    }

    fn write(&self, i: usize) {
        self.tids[i].store(my_tid(), Relaxed);
        loop {
            self.turn.wait();
            while !self.is_over.load(Relaxed) {
                self.file.write_all_at(&[0; 1 << 16], 0).unwrap();
            }
            self.turn.wait();
        }
    }

    /// What is recorded while they write, until that is `enough`.
    fn records(&self, kernel: &mut Kernel, enough: impl Fn(&[Record]) -> bool) -> Vec<Record> {
        kernel.observe(id());
        self.is_over.store(false, Relaxed);
        self.turn.wait();
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut records = Vec::new();
        while !enough(&records) {
            assert!(Instant::now() < deadline, "not within a minute in {} records", records.len());
            std::thread::sleep(Duration::from_millis(1));
            records.extend(drain(kernel));
        }
        kernel.unobserve(id());
        self.is_over.store(true, Relaxed);
        // They are in no program any more.
        self.turn.wait();
        records.extend(drain(kernel));
        records
    }
}

fn waits_of(records: &[Record], tid: u32) -> usize {
    let is_its = |r: &&Record| matches!(r, Record::Contention(wait) if wait.header.tid == tid);
    records.iter().filter(is_its).count()
}

#[test]
fn waits_of_others_than_who_is_within_a_program_are_recorded() {
    if std::env::var_os(CHILD).is_none() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let name = "own_waits::waits_of_others_than_who_is_within_a_program_are_recorded";
        child.args(["--exact", name, "--nocapture"]).env(CHILD, "").stdout(Stdio::null());
        return assert!(child.status().unwrap().success());
    }
    let Some(mut kernel) = kernel_or_skip(&options(&[Group::Lock])) else { return };
    let writers = Writers::start();
    let [within, others @ ..] = writers.tids.each_ref().map(|tid| tid.load(Relaxed));
    within_a_program(within);
    let all_others = |records: &[Record]| others.iter().all(|tid| waits_of(records, *tid) >= 10);
    let before = kernel.own_lock_waits().expect("the group is recorded");
    let is_counted = (0..20).any(|_| {
        let records = writers.records(&mut kernel, all_others);
        assert_eq!(waits_of(&records, within), 0, "its waits are our own");
        kernel.own_lock_waits() > Some(before)
    });
    assert!(is_counted, "what is left out is counted");

    within_a_program(0);
    writers.records(&mut kernel, |records| waits_of(records, within) > 0);
}
