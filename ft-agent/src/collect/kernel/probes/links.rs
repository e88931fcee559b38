//! Probes of Linux 6.6 and later: the places of a file where a program is called are one link (`uprobe_multi`).
//!
//! A perf event for each place, as older kernels need it, goes one by one, and each waits for the calls under way: those of
//! functions whose return is probed. Since Linux 6.13 such a call is waited for until it returns, or for 0.1 s since *any*
//! function of its thread was called whose return is probed (`prepare_uretprobe`, kernel/events/uprobes.c). A thread in a loop
//! that calls one such function from another one, and never leaves that, would never be over for the first event that goes,
//! since the other one is still there. A link puts an end to all its places at first, and waits then.
//!
//! Links of several files must go together for the same reason, even when the agent is killed. So each is held by a thread
//! that has no other descriptor: the kernel ends the threads of a process side by side.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use aya::Ebpf;
use aya::maps::Map;
use aya::programs::ProgramError;
use aya_obj::generated::{BPF_F_UPROBE_MULTI_RETURN, bpf_attach_type, bpf_cmd, bpf_prog_type};
use aya_obj::{Object, VerifierLog};

use super::super::{bpf, release, version};
use super::{PROGRAMS, RETURN, offsets};
use crate::collect::probe::Probe;
use crate::threads;

/// The first kernel that has such links.
const FIRST_KERNEL: (u32, u32) = (6, 6);

/// Bytes of what the verifier says of a program that it refuses.
const LOG_BYTES: usize = 64 << 10;

/// Whether this kernel has such links.
pub(super) fn are_there() -> bool {
    version(&release()).is_none_or(|version| version >= FIRST_KERNEL)
}

/// The programs, loaded for links. aya loads them for perf events only, and the kernel wants to know which.
pub(in crate::collect::kernel) struct Programs(Vec<(&'static str, OwnedFd)>);

impl Programs {
    /// Has the kernel verify them, with the maps of the others.
    ///
    /// # Errors
    ///
    /// Those of aya's own `load`, with the program's name.
    pub(super) fn load(
        object: &[u8],
        others: &Ebpf,
    ) -> Result<Programs, (&'static str, ProgramError)> {
        let mut object = Object::parse(object).map_err(|error| unfit(PROGRAMS[0], error))?;
        object.programs.retain(|name, _| PROGRAMS.contains(&name.as_str()));
        let maps = std::mem::take(&mut object.maps);
        let fd = |name: &str| others.map(name).and_then(descriptor);
        let maps = maps.iter().filter_map(|(name, map)| Some((name.as_str(), fd(name)?, map)));
        let text = object.functions.keys().map(|(section, _)| *section).collect();
        let relocated =
            object.relocate_maps(maps, &text).and_then(|()| object.relocate_calls(&text));
        relocated.map_err(|error| unfit(PROGRAMS[0], error))?;
        let load = |name| Ok((name, load(&object, name).map_err(|error| (name, error))?));
        PROGRAMS.into_iter().map(load).collect::<Result<_, _>>().map(Programs)
    }

    /// The descriptor of a program.
    pub(super) fn program(&self, name: &str) -> Option<BorrowedFd<'_>> {
        self.0.iter().find(|(of, _)| *of == name).map(|(_, fd)| fd.as_fd())
    }

    /// Has the kernel call them at the places of these probes: ends before begins, as all programs. A probe's cookie is its
    /// place in the list.
    ///
    /// # Errors
    ///
    /// The probe that the kernel refuses, and why.
    pub(super) fn attach<'p>(
        &self,
        probes: &'p [Probe],
        process: Option<u32>,
    ) -> Result<Vec<OwnedFd>, (&'p Probe, io::Error)> {
        let mut links = Vec::new();
        for name in PROGRAMS {
            let mut files: BTreeMap<PathBuf, Vec<Place<'p>>> = BTreeMap::new();
            for (probe, cookie) in probes.iter().zip(0..) {
                let places =
                    offsets(probe, name).iter().map(|&offset| Place { probe, offset, cookie });
                files.entry(probe.binary.anchored()).or_default().extend(places);
            }
            files.retain(|_, places| !places.is_empty());
            for (path, places) in files {
                let link = self.link(name, &path, &places, process);
                links.push(link.map_err(|error| {
                    let alone = |place: &&Place<'_>| {
                        self.link(name, &path, std::slice::from_ref(*place), process).is_err()
                    };
                    (places.iter().find(alone).unwrap_or(&places[0]).probe, error)
                })?);
            }
        }
        Ok(links)
    }

    fn link(
        &self,
        name: &str,
        path: &Path,
        places: &[Place<'_>],
        process: Option<u32>,
    ) -> io::Result<OwnedFd> {
        let program = self.program(name).ok_or(io::ErrorKind::NotFound)?;
        let path = CString::new(path.as_os_str().as_bytes())?;
        let offsets: Vec<u64> = places.iter().map(|place| place.offset).collect();
        let cookies: Vec<u64> = places.iter().map(|place| place.cookie).collect();
        let mut attr = bpf::no_attr();
        // SAFETY: the members of the union are numbers.
        let link = unsafe { &mut attr.link_create };
        link.__bindgen_anon_1.prog_fd = program.as_raw_fd() as u32;
        link.attach_type = bpf_attach_type::BPF_TRACE_UPROBE_MULTI as u32;
        // SAFETY: so are they here.
        let places_of = unsafe { &mut link.__bindgen_anon_3.uprobe_multi };
        places_of.path = path.as_ptr() as u64;
        places_of.offsets = offsets.as_ptr() as u64;
        places_of.cookies = cookies.as_ptr() as u64;
        places_of.cnt = places.len() as u32;
        places_of.flags = if name == RETURN { BPF_F_UPROBE_MULTI_RETURN } else { 0 };
        places_of.pid = process.unwrap_or(0);
        // SAFETY: the path ends with a null, and both lists have as many members as it says.
        unsafe { bpf::make(bpf_cmd::BPF_LINK_CREATE, &attr) }
    }
}

/// Where a program is called.
struct Place<'p> {
    probe: &'p Probe,
    offset: u64,
    cookie: u64,
}

fn unfit(
    name: &'static str,
    error: impl std::error::Error + Send + Sync + 'static,
) -> (&'static str, ProgramError) {
    (name, ProgramError::IOError(io::Error::other(error)))
}

/// Of the kinds that the object has.
fn descriptor(map: &Map) -> Option<RawFd> {
    match map {
        Map::Array(map)
        | Map::ArrayOfMaps(map)
        | Map::CgrpStorage(map)
        | Map::HashMap(map)
        | Map::LruHashMap(map)
        | Map::PerCpuArray(map)
        | Map::PerCpuHashMap(map)
        | Map::PerfEventArray(map)
        | Map::RingBuf(map)
        | Map::StackTraceMap(map) => Some(map.fd().as_fd().as_raw_fd()),
        _ => None,
    }
}

fn load(object: &Object, name: &str) -> Result<OwnedFd, ProgramError> {
    let program = object.programs.get(name).ok_or(ProgramError::NotLoaded)?;
    let function = object.functions.get(&program.function_key()).ok_or(ProgramError::NotLoaded)?;
    let mut log: Vec<u8> = Vec::new();
    loop {
        let mut attr = bpf::no_attr();
        // SAFETY: the members of the union are numbers.
        let load = unsafe { &mut attr.__bindgen_anon_3 };
        load.prog_type = bpf_prog_type::BPF_PROG_TYPE_KPROBE as u32;
        load.expected_attach_type = bpf_attach_type::BPF_TRACE_UPROBE_MULTI as u32;
        load.prog_name = bpf::name(name);
        load.insns = function.instructions.as_ptr() as u64;
        load.insn_cnt = function.instructions.len() as u32;
        load.license = program.license.as_ptr() as u64;
        if !log.is_empty() {
            (load.log_buf, load.log_size) = (log.as_mut_ptr() as u64, log.len() as u32);
            load.log_level = 1;
        }
        // SAFETY: the instructions are as many as it says, the license ends with a null, and the log has that length.
        match unsafe { bpf::make(bpf_cmd::BPF_PROG_LOAD, &attr) } {
            Ok(fd) => return Ok(fd),
            // Once more, to know why.
            Err(_) if log.is_empty() => log.resize(LOG_BYTES, 0),
            Err(io_error) => {
                let text = log.split(|&byte| byte == 0).next().unwrap_or_default();
                let verifier_log = VerifierLog::new(String::from_utf8_lossy(text).into_owned());
                return Err(ProgramError::LoadError { io_error, verifier_log });
            }
        }
    }
}

/// Links that go together, when this does or the process ends.
#[derive(Default)]
pub(in crate::collect::kernel) struct Links {
    /// Hanging up ends their threads.
    hold: Vec<Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Links {
    /// Holds them.
    ///
    /// # Errors
    ///
    /// When there are no threads for that; the links are gone then.
    pub(super) fn hold(links: Vec<OwnedFd>) -> io::Result<Links> {
        let mut held = Links::default();
        links.into_iter().try_for_each(|link| held.add(link))?;
        Ok(held)
    }

    fn add(&mut self, link: OwnedFd) -> io::Result<()> {
        let (hold, held) = channel();
        let (tell, told) = channel();
        let fd = link.as_raw_fd();
        // From its own table on, it is the thread that closes it.
        let thread = threads::spawn("ft-unprobe", move || keep(fd, &tell, &held))?;
        let kept = told.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()));
        drop(link);
        kept?;
        self.hold.push(hold);
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.hold.clear();
        self.threads.drain(..).for_each(threads::finish);
    }
}

/// Keeps a descriptor in a table of its own, until whoever holds the other end hangs up.
fn keep(fd: RawFd, tell: &Sender<io::Result<()>>, held: &Receiver<()>) {
    let alone = no_signals().and_then(|()| alone(fd));
    let is_alone = alone.is_ok();
    if tell.send(alone).is_ok() && is_alone {
        // Nothing is ever sent.
        let _ = held.recv();
        // SAFETY: this table has it and nobody else uses that.
        unsafe { libc::close(fd) };
    }
}

/// A handler must not run in a thread that lacks what it writes to.
fn no_signals() -> io::Result<()> {
    // SAFETY: a set is numbers; it is filled before it is read.
    let error = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut())
    };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Gives this thread a table of descriptors of its own, with that one alone.
fn alone(fd: RawFd) -> io::Result<()> {
    let close = |first: libc::c_uint, last: libc::c_uint| {
        let own_table = libc::CLOSE_RANGE_UNSHARE;
        // SAFETY: what it closes are this thread's alone, copies that nobody knows of.
        match unsafe { libc::syscall(libc::SYS_close_range, first, last, own_table) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    let fd = fd as libc::c_uint;
    close(fd + 1, libc::c_uint::MAX)?;
    if fd > 0 { close(0, fd - 1) } else { Ok(()) }
}
