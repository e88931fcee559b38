//! How deep locks are nested.

use ft_analysis::Mark;

/// How many holds there are of each nesting depth.
#[derive(Clone, Debug, Default)]
pub struct Depths {
    /// By depth, from 0; the analyses follow 256 locks of a thread.
    pub counts: Vec<u64>,
    /// Of these, how many are at least that deep: their thread may hold more than is known.
    pub lower_bounds: u64,
}

impl Depths {
    /// Counts a hold of this depth (a negative one is 0) and mark.
    pub fn add(&mut self, depth: i32, mark: Mark) {
        let depth = usize::try_from(depth).unwrap_or(0);
        if self.counts.len() <= depth {
            self.counts.resize(depth + 1, 0);
        }
        self.counts[depth] += 1;
        self.lower_bounds += u64::from(mark != Mark::Exact);
    }
}
