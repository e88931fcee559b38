//! Whether B differs from A, over many hosts.
//!
//! Hosts differ from each other, and so does what a change does on each. So the unit is the host: its difference is that of the
//! means of its traces of B and of A, whose error follows from the scatter of traces within hosts and sides, pooled over all of
//! them (a host has too few traces for an estimate of its own). Hosts' true differences scatter around a mean; the variance
//! of that is DerSimonian and Laird's estimate (1986), and the interval of the mean Hartung and Knapp's (2001) with Student's distribution of one
//! degree less than hosts, which holds its level with few hosts where the normal one is too narrow. Hosts with one side only show
//! nothing.

use super::student;

/// The values of one host, on a scale on which differences mean something.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// One for each trace of A, and of B.
    pub sides: [Vec<f64>; 2],
}

/// The mean difference over hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// B minus A.
    pub by: f64,
    /// Between these it lies, in 95 % of such comparisons.
    pub interval: [f64; 2],
    /// How likely chance makes one as large.
    pub p: f64,
    /// How much hosts' true differences scatter: a standard deviation.
    pub between_hosts: f64,
    /// Hosts with both sides.
    pub hosts: usize,
}

/// `None` with fewer than two hosts that have both sides.
pub fn effect(hosts: &[Host]) -> Option<Effect> {
    let both: Vec<&Host> =
        hosts.iter().filter(|host| host.sides.iter().all(|side| !side.is_empty())).collect();
    let k = both.len() as f64;
    if both.len() < 2 {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mut squares, mut freedom) = (0.0, 0.0);
    for side in both.iter().flat_map(|host| &host.sides) {
        let mean = mean(side);
        squares += side.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        freedom += side.len() as f64 - 1.0;
    }
    let within = if freedom > 0.0 { squares / freedom } else { 0.0 };
    let differences: Vec<f64> =
        both.iter().map(|host| mean(&host.sides[1]) - mean(&host.sides[0])).collect();
    // Where nothing scatters within hosts, or nobody knows, all hosts weigh the same: a paired t-test.
    let errors: Vec<f64> = both
        .iter()
        .map(|host| {
            let share: f64 = host.sides.iter().map(|side| 1.0 / side.len() as f64).sum();
            if within > 0.0 { within * share } else { 1.0 }
        })
        .collect();
    let weighted = |weights: &[f64]| {
        let sum: f64 = weights.iter().sum();
        let products = weights.iter().zip(&differences).map(|(w, d)| w * d);
        (products.sum::<f64>() / sum, sum)
    };
    let scatter = |weights: &[f64], by: f64| {
        let parts = weights.iter().zip(&differences).map(|(w, d)| w * (d - by).powi(2));
        parts.sum::<f64>()
    };
    let fixed: Vec<f64> = errors.iter().map(|error| 1.0 / error).collect();
    let (by, sum) = weighted(&fixed);
    let q = scatter(&fixed, by);
    let c = sum - fixed.iter().map(|w| w * w).sum::<f64>() / sum;
    let between = if within > 0.0 { ((q - (k - 1.0)) / c).max(0.0) } else { q / (k - 1.0) };
    let weights: Vec<f64> = match within > 0.0 {
        true => errors.iter().map(|error| 1.0 / (error + between)).collect(),
        false => fixed,
    };
    let (by, sum) = weighted(&weights);
    let error = (scatter(&weights, by) / (k - 1.0) / sum).sqrt();
    let t = if error > 0.0 { by / error } else { by.signum() * f64::INFINITY };
    // All hosts with the same difference, to the last digit, show nothing of how it scatters.
    let t = if error > 0.0 || by != 0.0 { t } else { 0.0 };
    let reach = student::critical(0.05, k - 1.0) * error;
    Some(Effect {
        by,
        interval: [by - reach, by + reach],
        p: student::two_sided(t, k - 1.0),
        between_hosts: between.sqrt(),
        hosts: both.len(),
    })
}

/// Adjusts the probabilities of several questions so that the chance of any false answer is that of one (Holm, 1979).
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut least: f64 = 0.0;
    for (rank, at) in order.into_iter().enumerate() {
        least = least.max(p[at] * (p.len() - rank) as f64).min(1.0);
        adjusted[at] = least;
    }
    adjusted
}
