//! The times of which records are missing: table `doubts`.

use crate::Rows;
use crate::analysis::Analysis;
use crate::world::{Change, World};

/// Makes the table `doubts`.
#[derive(Debug, Default)]
pub struct Doubts;

impl Analysis for Doubts {
    #[inline]
    fn see(&mut self, change: &Change<'_>, _: &World, rows: &mut Rows) {
        if let Change::Missing(doubt) = change {
            rows.doubts.push((*doubt).clone());
        }
    }
}
