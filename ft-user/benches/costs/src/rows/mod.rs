//! The rows of the table. Each function measures all subjects of its rows in turns.

mod added;
mod asked;
mod chains;
mod collect;
mod convert;
mod event_loop;
mod events;
mod functions;
mod kernel;
mod locks;
mod off;
mod probes;
mod programs;
mod rate;
mod startup;
mod tasks;

use anyhow::Result;

use crate::bench::Bench;
use crate::table::Row;

/// Measures one or several rows.
type Measure = fn(&Bench) -> Result<Vec<Row>>;

/// All rows, by the name under which each can be asked for alone.
pub(crate) const ALL: [(&str, Measure); 27] = [
    ("off", off::measure),
    ("on", events::on),
    ("cold", events::cold),
    ("two", events::two),
    ("shared", events::shared),
    ("npt", event_loop::measure),
    ("pthread", locks::pthread),
    ("rust-locks", locks::rust),
    ("tasks", tasks::measure),
    ("functions", functions::measure),
    ("rate", rate::measure),
    ("collect", collect::measure),
    ("convert", convert::measure),
    ("startup", startup::measure),
    ("kernel", kernel::measure),
    ("futex", asked::futex),
    ("syscall", asked::syscall),
    ("fault", asked::fault),
    ("lock", asked::lock),
    ("stack", chains::switches),
    ("profile", chains::samples),
    ("stack-helpers", chains::helpers),
    ("probes", probes::measure),
    ("redis", programs::redis),
    ("memcached", programs::memcached),
    ("pgbench", programs::pgbench),
    ("compile", programs::compile),
];

/// `ours`, at most a fifth of LTTng's, and within another goal of its own.
fn fifth(row: Row, goal: &str, met: bool, ours: f64, lttng: Option<f64>) -> Row {
    match lttng {
        Some(lttng) => {
            row.goal(format!("{goal}, and ≤ 1/5 of LTTng-UST"), met && ours <= lttng / 5.0)
        }
        None => row.goal(goal, met),
    }
}
