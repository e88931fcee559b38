//! What can be asked of a fleet.

use std::str::FromStr;

use ft_trace::calendar;
use ft_trace::tables::Bucket;

use super::Member;
use crate::stats::OTHERS;

/// By what intervals are grouped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// Host.
    Host,
    /// Release of the kernel.
    Kernel,
    /// Hour of the day in UTC at which the trace began.
    Hour,
    /// Name of the thread.
    Thread,
    /// Who had the CPU longest while the thread could have run.
    Neighbour,
    /// A label.
    Label(String),
}

impl By {
    /// The group of a row.
    pub(super) fn value(&self, member: &Member, row: &Bucket) -> String {
        match self {
            By::Host => member.host.clone(),
            By::Kernel => member.kernel.clone(),
            By::Hour => {
                let mut utc = String::new();
                let _ = calendar::write_utc(member.start_ns, &mut utc);
                format!("{}:00", utc.get(11..13).unwrap_or("?"))
            }
            By::Thread | By::Neighbour if *row.name == *OTHERS => OTHERS.to_owned(),
            By::Thread => row.comm.to_string(),
            By::Neighbour if row.neighbour.is_empty() => "(nobody, or not known)".to_owned(),
            By::Neighbour => row.neighbour.to_string(),
            By::Label(name) => member.labels.get(name).map_or("(none)", |value| value).to_owned(),
        }
    }

    /// What a group is, as the title of a column.
    pub(super) fn title(&self) -> &str {
        match self {
            By::Host => "host",
            By::Kernel => "kernel",
            By::Hour => "hour (UTC)",
            By::Thread => "thread",
            By::Neighbour => "neighbour",
            By::Label(name) => name,
        }
    }
}

impl FromStr for By {
    type Err = String;

    fn from_str(text: &str) -> Result<By, String> {
        Ok(match text {
            "host" => By::Host,
            "kernel" => By::Kernel,
            "hour" => By::Hour,
            "thread" => By::Thread,
            "neighbour" => By::Neighbour,
            "" => {
                let why = "it is empty; name host, kernel, hour, thread, neighbour or a label";
                return Err(why.into());
            }
            label => By::Label(label.into()),
        })
    }
}

/// Two values of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sides {
    /// The label.
    pub label: String,
    /// Its values of A and B.
    pub values: [String; 2],
}

impl Sides {
    /// On which side a trace is.
    pub(super) fn side(&self, member: &Member) -> Option<usize> {
        let value = member.labels.get(&self.label)?;
        self.values.iter().position(|side| side == value)
    }
}

impl FromStr for Sides {
    type Err = String;

    fn from_str(text: &str) -> Result<Sides, String> {
        let parts =
            text.split_once('=').and_then(|(label, values)| Some((label, values.split_once(',')?)));
        match parts {
            Some((label, (a, b))) if !label.is_empty() && a != b => {
                Ok(Sides { label: label.into(), values: [a.into(), b.into()] })
            }
            _ => Err("it is no label with two values; write for example build=1.4,1.5".into()),
        }
    }
}
