//! Processes that come to a recording and go from it: what is told of them, and what is enabled in them.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;

use super::{Attached, Collector, now_ns};
use crate::collect::attach::Memory;
use crate::collect::discover::{self, Identity};
use crate::collect::remote::Remote;
use crate::collect::server::Registration;
use crate::collect::user::{Since, Source};
use crate::record::notice::Notice;
use crate::spool::WriteError;
use crate::spool::frame::{Frame, Process, Thread};

impl Collector {
    /// Records a process that runs already: enables its sites and drains its rings from now on, if it has
    /// any.
    ///
    /// # Errors
    ///
    /// When the spool cannot be written.
    pub(in crate::record) fn attach(&mut self, attached: Attached) -> Result<(), WriteError> {
        let Attached { identity, memory } = attached;
        let pid = identity.pid;
        self.observe(pid);
        let Some(memory) = memory else {
            self.plain.push(pid);
            self.introduce_plain(&identity)?;
            return self.introduce_threads(pid);
        };
        self.look_at_maps(pid)?;
        let mut source = self.add(identity, memory, Since::Now)?;
        // The directory, which tells where the triggers are.
        self.drain_source(&mut source)?;
        self.find_late(&mut source)?;
        self.sources.push(source);
        Ok(())
    }

    /// Enables from outside what all attached processes declare: after the last of them is attached, so
    /// that whoever sees one site on finds all of them recorded.
    pub(in crate::record) fn enable_attached(&mut self) {
        let sources = std::mem::take(&mut self.sources);
        for source in &sources {
            self.enable(source);
        }
        self.sources = sources;
    }

    /// Enables from outside what is declared, until the recording ends.
    pub(super) fn enable(&mut self, source: &Source) {
        let pid = source.identity().pid;
        let remote = match self.remotes.iter_mut().position(|r| r.pid() == pid) {
            Some(known) => Ok(&mut self.remotes[known]),
            None => Remote::open(pid).map(|new| {
                self.remotes.push(new);
                self.remotes.last_mut().expect("pushed just now")
            }),
        };
        let refused = match remote {
            Ok(remote) => remote.enable_found(source.triggers(), &self.globs).refused,
            Err(reason) => vec![reason],
        };
        for reason in refused {
            self.notice(Notice::NotEnabled { pid, reason });
        }
    }

    /// Declares the sites of objects that the process has loaded since the last look; whether there were
    /// any.
    pub(super) fn find_late(&mut self, source: &mut Source) -> Result<bool, WriteError> {
        let Some(found) = self.late.look(source.number(), source.identity().pid) else {
            return Ok(false);
        };
        let writer = &mut self.writer;
        source.declare(&found, &mut |frame: &Frame<'_>| writer.push(frame))
    }

    pub(super) fn register(&mut self, registration: Registration) -> Result<(), WriteError> {
        if self.cgroup.as_ref().is_some_and(|cgroup| !cgroup.contains(registration.identity.pid)) {
            // Not answered, it enables nothing.
            return Ok(());
        }
        let (pid, memfd) = (registration.identity.pid, registration.memfd.as_fd());
        if self.sources.iter().any(|source| source.is(pid, memfd)) {
            // It was found before its message was read.
            let _ = registration.accept(&self.globs);
            return Ok(());
        }
        let memory = match Memory::attach(memfd) {
            Ok(memory) => memory,
            Err(reason) => {
                self.notice(Notice::Refused { pid: registration.identity.pid, reason });
                return Ok(());
            }
        };
        // Before the process goes on: its first event finds the kernel watching.
        if !registration.identity.has_ended() {
            self.observe(registration.identity.pid);
        }
        // A process that loads no more and ends at once may be gone after the answer.
        self.look_at_maps(registration.identity.pid)?;
        // A forked child does not wait for the answer: it has inherited what is enabled. Whoever does, and
        // has given up, goes on with its sites off.
        let gave_up = registration.accept(&self.globs).is_err() && registration.waits;
        let mut source = self.add(registration.identity, memory, Since::Start)?;
        if gave_up && !source.identity().has_ended() {
            // The directory, which tells where the triggers are.
            self.drain_source(&mut source)?;
            self.enable(&source);
        }
        self.sources.push(source);
        Ok(())
    }

    /// Makes a source, introduces it and its threads.
    fn add(
        &mut self,
        identity: Identity,
        memory: Memory,
        since: Since,
    ) -> Result<Source, WriteError> {
        let pid = identity.pid;
        let source = Source::new(self.next_source, identity, memory, since);
        self.next_source += 1;
        self.writer.push(&source.introduce(now_ns()))?;
        self.introduce_threads(pid)?;
        Ok(source)
    }

    /// Tells what of its program text a process has where, if that is new.
    fn look_at_maps(&mut self, pid: i32) -> Result<(), WriteError> {
        match self.maps.look(pid, now_ns()) {
            Some(mappings) => self.writer.push(&Frame::Mappings(mappings)),
            None => Ok(()),
        }
    }

    pub(super) fn look_at_all_maps(&mut self) -> Result<(), WriteError> {
        let pids: Vec<i32> = self.sources.iter().map(|source| source.identity().pid).collect();
        pids.into_iter().try_for_each(|pid| self.look_at_maps(pid))
    }

    fn introduce_plain(&mut self, identity: &Identity) -> Result<(), WriteError> {
        self.writer.push(&Frame::Process(Process {
            source: None,
            pid: identity.pid,
            start_time: identity.start_time,
            comm: identity.comm.clone(),
            exe: identity.exe.clone(),
            ts: now_ns(),
            ..Process::default()
        }))
    }

    fn introduce_threads(&mut self, pid: i32) -> Result<(), WriteError> {
        for tid in discover::threads(pid) {
            if let Some(name) = discover::comm(pid, tid) {
                self.writer.push(&Frame::Thread(Thread { tid, pid, name, ts: now_ns() }))?;
            }
        }
        Ok(())
    }

    fn observe(&mut self, pid: i32) {
        // By its cgroup a process is observed as long as it is in it.
        if self.cgroup.is_none()
            && let (Some(kernel), Ok(number)) = (&mut self.kernel, u32::try_from(pid))
        {
            kernel.observe(number);
        }
    }

    pub(super) fn close_source(
        &mut self,
        mut source: Source,
        ended: bool,
    ) -> Result<(), WriteError> {
        if ended {
            let pid = source.identity().pid;
            // Its number may come again.
            self.maps.forget(pid);
            self.remotes.retain(|remote| remote.pid() != pid);
            self.ended.push(self.writer.number(), source.number(), pid);
        }
        let writer = &mut self.writer;
        let round = source.finish(now_ns(), ended, &mut |frame: &Frame<'_>| writer.push(frame))?;
        self.counters.slots.fetch_add(round.slots, Relaxed);
        self.counters.lost_ended.fetch_add(source.lost(), Relaxed);
        self.late.forget(source.number());
        self.finished.sources += 1;
        self.finished.sites.extend(source.sites().map(str::to_owned));
        Ok(())
    }
}
