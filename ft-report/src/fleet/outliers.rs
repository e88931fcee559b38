//! Hosts that differ from the others.
//!
//! A trace has a value of each subject. Each host's mean is compared with that of all other hosts' traces, by Student's statistic;
//! how large the largest of all hosts and subjects becomes by chance is seen by dealing the traces out to the hosts anew
//! (Westfall and Young, 1993), which knows how many questions are asked, and how they depend on each other. It asks whether
//! any host is unlike the others, given that traces of hosts that are alike can be exchanged: recorded at the same times,
//! under the same load. Where hosts have one trace each, as many are needed as one in twenty wants.

use fastrand::Rng;

/// Dealings, that which was seen among them.
///
/// Limit: p is a multiple of 1/2,000.
/// Shown by: part of the definition of p.
const DEALINGS: usize = 2_000;

/// Starts the dealings: the same answer every time.
const SEED: u64 = 2007;

/// A host that may differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlier {
    /// Which row.
    pub subject: usize,
    /// Which host.
    pub host: usize,
    /// Its mean minus that of the others.
    pub by: f64,
    /// How likely chance makes any host differ as much in any subject.
    pub p: f64,
}

/// Every host and subject that chance alone makes with a probability of at most `alpha`, the least likely first. A row has a
/// value for each trace, or NaN; `host_of` says whose trace it is.
pub fn outliers(rows: &[Vec<f64>], host_of: &[usize], alpha: f64) -> Vec<Outlier> {
    let hosts = host_of.iter().max().map_or(0, |most| most + 1);
    if hosts < 3 {
        return Vec::new();
    }
    let seen = all(rows, host_of, hosts);
    let largest = |cells: &[Cell]| cells.iter().map(|cell| cell.t.abs()).fold(0.0, f64::max);
    let mut rng = Rng::with_seed(SEED);
    let mut dealt = host_of.to_vec();
    let mut maxima = vec![largest(&seen)];
    while maxima.len() < DEALINGS {
        rng.shuffle(&mut dealt);
        maxima.push(largest(&all(rows, &dealt, hosts)));
    }
    maxima.sort_by(|a, b| b.total_cmp(a));
    let p = |t: f64| {
        let t = t.abs() * (1.0 - 1e-9);
        maxima.partition_point(|max| *max >= t) as f64 / maxima.len() as f64
    };
    let found =
        seen.iter().map(|c| Outlier { subject: c.subject, host: c.host, by: c.by, p: p(c.t) });
    let mut found: Vec<(Outlier, f64)> =
        found.zip(seen.iter().map(|c| c.t.abs())).filter(|(o, _)| o.p <= alpha).collect();
    found.sort_by(|a, b| {
        b.1.total_cmp(&a.1).then((a.0.subject, a.0.host).cmp(&(b.0.subject, b.0.host)))
    });
    found.into_iter().map(|(outlier, _)| outlier).collect()
}

struct Cell {
    subject: usize,
    host: usize,
    by: f64,
    t: f64,
}

/// The statistic of every host and subject.
fn all(rows: &[Vec<f64>], host_of: &[usize], hosts: usize) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (subject, row) in rows.iter().enumerate() {
        let mut of = vec![(0.0, 0.0, 0.0); hosts];
        // Around their mean, so that squares lose no digits.
        let (n, sum) =
            row.iter().filter(|v| !v.is_nan()).fold((0.0, 0.0), |(n, s), v| (n + 1.0, s + v));
        let center = sum / n;
        for (value, host) in row.iter().zip(host_of).filter(|(value, _)| !value.is_nan()) {
            let value = value - center;
            let (n, sum, squares) = &mut of[*host];
            (*n, *sum, *squares) = (*n + 1.0, *sum + value, *squares + value * value);
        }
        let total = of.iter().fold((0.0, 0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2));
        for (host, one) in of.iter().enumerate() {
            let others = (total.0 - one.0, total.1 - one.1);
            if one.0 < 1.0 || others.0 < 2.0 {
                continue;
            }
            let by = one.1 / one.0 - others.1 / others.0;
            let within = total.2 - one.1 * one.1 / one.0 - others.1 * others.1 / others.0;
            let variance = within.max(0.0) / (total.0 - 2.0) * (1.0 / one.0 + 1.0 / others.0);
            let t = if by == 0.0 { 0.0 } else { by / variance.sqrt().max(1e-12) };
            cells.push(Cell { subject, host, by, t });
        }
    }
    cells
}
