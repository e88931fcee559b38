//! The loop under `ft-agent record`: this program becomes the agent, which starts it again.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use crate::{Error, agent};

/// How the loop is to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    /// Directory of the trace.
    pub(super) trace: PathBuf,
    /// Kernel groups, as the agent's `-k` has them; `None`: the agent's own choice.
    pub(super) kernel: Option<String>,
    /// As the agent's `--reader` has it; `None`: the agent's own choice.
    pub(super) reader: Option<String>,
    pub(super) agent: Option<PathBuf>,
}

impl Recorded {
    /// Runs the agent in place of this process, with a loop for which these are the words; returns where that cannot be.
    pub(super) fn instead(&self, words: &[String]) -> Error {
        match self.command(words) {
            Err(error) => error,
            Ok(mut command) => {
                let error = command.exec();
                let agent = command.get_program().display();
                Error::refused(format!(
                    "{agent} does not start ({error}); name another with --agent"
                ))
            }
        }
    }

    fn command(&self, words: &[String]) -> Result<Command, Error> {
        let mut command = Command::new(agent::find(self.agent.as_deref())?);
        command.arg("record").arg("-o").arg(&self.trace);
        for (option, value) in [("-k", &self.kernel), ("--reader", &self.reader)] {
            command.args(value.iter().flat_map(|value| [option, value]));
        }
        command.arg("--").arg(agent::this_program()?).arg("npt").args(words);
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_gets_its_options_and_the_loop_its_own() {
        let recorded = Recorded {
            trace: "trace".into(),
            kernel: Some("sched,irq".into()),
            reader: Some("timed=50us".into()),
            // Some file that is there.
            agent: Some("/proc/self/exe".into()),
        };
        let command = recorded.command(&["--loops".into(), "5".into()]).unwrap();
        let words: Vec<String> =
            command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        let line = words.join(" ");
        assert!(
            line.starts_with("record -o trace -k sched,irq --reader timed=50us -- /"),
            "{line}"
        );
        assert!(line.ends_with(" npt --loops 5"), "{line}");
        let nobody = Recorded { agent: Some("/nonexistent".into()), ..recorded };
        assert!(nobody.instead(&[]).to_string().contains("name ft-agent with --agent"));
    }
}
