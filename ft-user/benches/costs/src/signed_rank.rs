//! Wilcoxon's signed-rank test: whether what was measured in pairs differs.

/// How likely the differences are as far above zero as these, or farther, when they are in truth as often
/// below it: small where one subject reads more than the other. Exact; differences of zero are left out, equal
/// ones share their ranks (F. Wilcoxon, *Individual comparisons by ranking methods*, 1945).
pub fn above_zero(differences: &[f64]) -> f64 {
    let mut sorted: Vec<f64> = differences.iter().copied().filter(|&d| d != 0.0).collect();
    sorted.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    // Twice the rank, so that the mean of two ranks is whole.
    let mut ranks: Vec<usize> = Vec::new();
    for equal in sorted.chunk_by(|a, b| a.abs() == b.abs()) {
        let first = ranks.len() + 1;
        ranks.extend(vec![2 * first + equal.len() - 1; equal.len()]);
    }
    let above: usize = sorted.iter().zip(&ranks).filter(|(d, _)| **d > 0.0).map(|(_, r)| r).sum();
    // In how many of all ways to give them signs do the ranks above zero have which sum?
    let mut ways = vec![0.0; ranks.iter().sum::<usize>() + 1];
    ways[0] = 1.0;
    for rank in &ranks {
        for sum in (*rank..ways.len()).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    ways[above..].iter().sum::<f64>() / ways.iter().sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(differences: &[f64], of: f64, all: f64) {
        let p = above_zero(differences);
        assert!((p - of / all).abs() < 1e-12, "{differences:?}: {p}");
    }

    #[test]
    fn every_way_to_give_signs_is_counted() {
        check(&[], 1.0, 1.0);
        check(&[0.0], 1.0, 1.0);
        check(&[1.0], 1.0, 2.0);
        check(&[-1.0], 2.0, 2.0);
        check(&[1.0, 2.0, 3.0, 4.0, 5.0], 1.0, 32.0);
        check(&[-1.0, -2.0, -3.0], 8.0, 8.0);
        // Sums of 1, 2, 3 that reach 5: {2, 3} and {1, 2, 3}.
        check(&[-1.0, 2.0, 3.0], 2.0, 8.0);
    }

    #[test]
    fn equal_differences_share_their_ranks() {
        // Ranks 1.5, 1.5, 3: sums that reach 4.5 are {1.5, 3} twice and all.
        check(&[1.0, -1.0, 2.0], 3.0, 8.0);
        check(&[0.0, 1.0, -1.0, 2.0], 3.0, 8.0);
    }

    /// Of ten pairs, the ranks on one side sum to 8 or less in 25 of 1024 ways (Wilcoxon's table: 0.025).
    #[test]
    fn table_of_ten_pairs() {
        let mut pairs: Vec<f64> = (1..=10).map(f64::from).collect();
        pairs[7] = -8.0;
        check(&pairs, 25.0, 1024.0);
    }
}
