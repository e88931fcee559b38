//! How tracing started, and what became of sites that were to be switched.

use crate::Config;
use crate::patch::PatchError;
use crate::sites::Count;

/// What [`init`](crate::init) found and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Triggers found in the executable and in its libraries.
    pub sites: usize,
    /// Of these, how many cannot be enabled, since their metadata collides with that of another site
    /// in the low half of its address. Its cure is to start again: addresses are random.
    pub refused: usize,
    /// Of these, how many are enabled now.
    pub enabled: usize,
    /// How the agent answered. A call behind the first does not ask it again and says `Absent`.
    pub agent: Agent,
    /// Sizes as they are; less than what was asked for when the file size limit is too low for it.
    pub config: Config,
}

impl Status {
    pub(crate) fn new(count: Count, agent: Agent, config: Config) -> Self {
        let Count { all: sites, refused, enabled } = count;
        Status { sites, refused, enabled, agent, config }
    }

    /// Of a program that is built without sites.
    pub(crate) fn without_sites(config: Config) -> Self {
        Status { sites: 0, refused: 0, enabled: 0, agent: Agent::Absent, config }
    }
}

/// How the agent answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    /// Nobody listens at the socket, or so many processes wait for the agent that it did not take the connection
    /// in time ([`init`](crate::init)). An agent that is started later finds this process.
    Absent,
    /// It answered, and what it asked for is enabled.
    Registered,
    /// It took the registration, and did not answer in time.
    Silent,
    /// It answered nonsense, which is ignored.
    Garbled,
}

/// What became of the sites that [`switch`](crate::switch) was to switch.
#[derive(Debug, Default)]
pub struct Switched {
    /// Sites whose name matches.
    pub matching: usize,
    /// Of these, those that are now as they were asked to be.
    pub done: usize,
    /// Why one of the others is not, the first of them: for example since the process has dropped its rights, and a security profile
    /// forbids it to make its text writable.
    pub refused: Option<PatchError>,
}

impl Switched {
    /// Counts one more.
    pub(crate) fn count(&mut self, result: Result<bool, PatchError>) {
        self.matching += 1;
        match result {
            Ok(_) => self.done += 1,
            Err(why) => _ = self.refused.get_or_insert(why),
        }
    }

    /// Counts others, too.
    #[cfg_attr(
        any(not(feature = "sleds"), ft_off),
        allow(dead_code, reason = "there are no others")
    )]
    pub(crate) fn add(&mut self, others: Switched) {
        self.matching += others.matching;
        self.done += others.done;
        self.refused = self.refused.take().or(others.refused);
    }
}
