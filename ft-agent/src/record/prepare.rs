//! What a recording needs before it begins, and what can fail of it.

use std::ffi::OsString;

use ft_user::counters::Open;

use super::output::Output;
use super::reader::Pauses;
use super::{Attached, Notice, Options, RecordError, attach, load_kernel, preload};
use crate::collect::cgroup::Cgroup;
use crate::collect::kernel::Kernel;
use crate::collect::probe::{self, Probe};
use crate::control::{ENDING, Signals};
use ft_trace::{dir, reach};

/// All of it. Dropped, nothing of it is left behind.
pub(super) struct Prepared {
    pub(super) attached: Vec<Attached>,
    pub(super) cgroup: Option<Cgroup>,
    pub(super) probes: Vec<Probe>,
    pub(super) kernel: Option<Kernel>,
    /// Taken just before there was something to take away again: until then a signal ends the agent, whatever that waits for.
    pub(super) signals: Signals,
    pub(super) output: Output,
    pub(super) pauses: Pauses,
    /// Of the command, but for the sockets.
    pub(super) environment: Vec<(&'static str, OsString)>,
}

impl Prepared {
    /// Does it, first what fails most.
    ///
    /// # Errors
    ///
    /// The first thing that cannot be had.
    pub(super) fn new(
        options: &Options,
        report: &mut dyn FnMut(&Notice),
    ) -> Result<Prepared, RecordError> {
        // What this machine does not have no process has.
        for counter in &options.counters {
            let opened = Open::new(counter, options.counter_calls).map(Open::close);
            opened.map_err(|errno| {
                RecordError::counter(counter.name, errno, options.counter_calls)
            })?;
        }
        let attached =
            options.pids.iter().map(|&pid| attach(pid)).collect::<Result<Vec<_>, _>>()?;
        let attached = attached.into_iter().flatten().collect();
        let cgroup = options.cgroup.as_deref().map(Cgroup::open).transpose()?;
        let command = options.command.first().map(OsString::as_os_str);
        let probes = probe::find(&options.probes, command, &options.pids)?;
        let kernel = load_kernel(options, cgroup.clone(), &probes)?;
        if kernel.is_some() {
            // It holds what the kernel tells not everybody: addresses of its own, and what all others do.
            dir::set_rights_unless_said(0o700);
        }
        // It reads the command's program, which may lie on a file system that does not answer.
        let command = command.filter(|_| options.preload);
        let unreached = command.and_then(reach::why_not);
        let signals = Signals::take(&ENDING).map_err(RecordError::system("wait for signals"))?;
        let output = Output::prepare(&options.output)?;
        let pauses = options.reader.pauses()?;
        let mut environment: Vec<_> = pauses.environment().into_iter().collect();
        if let Some(command) = command {
            environment.push(("LD_PRELOAD", preload::variable(std::env::var_os("LD_PRELOAD"))?));
            let asan = preload::asan_options(std::env::var_os("ASAN_OPTIONS"));
            environment.push(("ASAN_OPTIONS", asan));
            if let Some(reason) = unreached {
                let command = command.to_string_lossy().into_owned();
                report(&Notice::NotPreloaded { command, reason });
            }
        }
        Ok(Prepared { attached, cgroup, probes, kernel, signals, output, pauses, environment })
    }
}
