//! How tracing started.

use crate::Config;

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
