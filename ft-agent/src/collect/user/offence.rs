//! What a process has done that none does which uses `ft-user`, what was done to it, and what makes its part of a trace less than it
//! looks.

/// An offence. It costs the process its own events, or what it says; nobody else's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Offence {
    /// A ring has more reserved than fits in it.
    #[error(
        "a ring of it claims more events than fit into it; what cannot be there counts as lost"
    )]
    Ring,
    /// More was lost than can have been.
    #[error(
        "it claims to have lost more events than it had time for; what is beyond that is not counted"
    )]
    Losses,
    /// Its directory cannot be read on.
    #[error(
        "its directory of sites is malformed or too large; what stands behind that place is not known"
    )]
    Directory,
    /// Its memory has faulted.
    #[error("its memory could not be read; nothing more is recorded of it")]
    Fault,
    /// A breakpoint stood on a site that it has switched on. No fault of its own.
    #[error(
        "a breakpoint stood on one of its sites, which the table `loss` names, when it was switched on; remove the probe, or detach \
         the debugger"
    )]
    Breakpoint,
    /// A child that it has forked is not recorded. No fault of its own.
    #[error(
        "a child that it has forked is not recorded: it had no descriptor, memory or file size left for its events, was not allowed to make \
         a memfd or a socket (seccomp), did not find the agent's socket (chroot), or was forked while another thread switched sites; \
         what it did is missing"
    )]
    Child,
    /// Its last contents were more than is read at the end.
    #[error("its rings held more than is read at the end; the rest counts as lost")]
    Endless,
    /// A snapshot of a ring in overwrite mode has nothing.
    #[error(
        "a thread of it wrote so fast that a snapshot of its ring is empty; enable fewer events, or record it in rings that are \
         drained (without FT_MODE=overwrite)"
    )]
    Overrun,
}

impl Offence {
    /// Stands for it where offences are counted.
    pub fn kind(self) -> &'static str {
        match self {
            Offence::Ring => "ring",
            Offence::Losses => "losses",
            Offence::Directory => "directory",
            Offence::Fault => "fault",
            Offence::Breakpoint => "breakpoint",
            Offence::Child => "child",
            Offence::Endless => "endless",
            Offence::Overrun => "overrun",
        }
    }
}

/// Those of one process: each is reported once.
#[derive(Debug, Default)]
pub(super) struct Offences {
    known: Vec<Offence>,
    told: usize,
}

impl Offences {
    pub(super) fn add(&mut self, offence: Offence) {
        if !self.known.contains(&offence) {
            self.known.push(offence);
        }
    }

    /// Those that are new.
    pub(super) fn take(&mut self) -> Vec<Offence> {
        let new = std::mem::replace(&mut self.told, self.known.len());
        self.known[new..].to_vec()
    }
}
