//! A direct solver of a sparse system of linear equations: much work, and few tasks (the paper's program on SuperLU_MT).
//!
//! LU decomposition by blocks, without pivoting, of a matrix that is diagonally dominant, as partial differential equations
//! make them. A task for each block of a row or column of a step, and for each block that the step changes; blocks that are zero
//! have none (Golub and Van Loan, "Matrix Computations", section 3.2.11).

use std::sync::{Arc, Mutex};

use serde::Serialize;

use super::executor::{self, Executor, Queues, locked};
use crate::Error;
use crate::clock::{monotonic_ns, process_ns};

/// Rows and columns of a block.
const SIDE: usize = 32;

type Block = Box<[[f64; SIDE]; SIDE]>;

/// What it came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Solved {
    /// The decomposition, ns.
    pub(super) elapsed_ns: u64,
    /// The CPU time of all threads meanwhile, ns.
    pub(super) cpu_ns: u64,
    pub(super) tasks: u64,
    /// Blocks that are not zero, before and after.
    pub(super) blocks: [usize; 2],
    /// How far `LUx` is from `Ax` for some `x`, as a part of the largest.
    pub(super) residual: f64,
}

/// A matrix by blocks, of which those that are zero are not there.
struct Matrix {
    side: usize,
    blocks: Vec<Mutex<Option<Arc<Block>>>>,
}

/// Decomposes a matrix of so many by so many blocks.
///
/// # Errors
///
/// When a worker cannot be started.
pub(super) fn run(workers: usize, queues: Queues, side: usize) -> Result<Solved, Error> {
    let matrix = Arc::new(Matrix::sparse(side));
    let x: Vec<f64> = (0..side * SIDE).map(|n| 1.0 + (n % 7) as f64).collect();
    let (wanted, before) = (matrix.times(&x, |_, _| true), matrix.count());
    let of = matrix.clone();
    let (elapsed_ns, cpu_ns, tasks) = executor::run(workers, queues, move |executor| async move {
        let (begin, cpu) = (monotonic_ns(), process_ns());
        let mut tasks = 0;
        for k in 0..of.side {
            tasks += step(&executor, &of, k).await;
        }
        (monotonic_ns() - begin, process_ns() - cpu, tasks)
    })?;
    let y = matrix.times(&x, |row, column| row <= column);
    let mut found = matrix.times(&y, |row, column| row > column);
    found.iter_mut().zip(&y).for_each(|(sum, y)| *sum += y);
    let largest =
        |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, |a: f64, b| a.max(b.abs()));
    let off = largest(&mut found.iter().zip(&wanted).map(|(found, wanted)| found - wanted));
    let residual = off / largest(&mut wanted.iter().copied());
    Ok(Solved { elapsed_ns, cpu_ns, tasks, blocks: [before, matrix.count()], residual })
}

/// A step of the decomposition: the block on the diagonal, its row and its column, and all that both change. How many tasks.
async fn step(executor: &Executor, matrix: &Arc<Matrix>, k: usize) -> u64 {
    let mut diagonal = matrix.take(k, k);
    decompose(&mut diagonal);
    let diagonal = matrix.put(k, k, diagonal);
    let there = |i: usize, j: usize| matrix.at(i, j).is_some();
    let (rows, columns): (Vec<usize>, Vec<usize>) = (
        (k + 1..matrix.side).filter(|i| there(*i, k)).collect(),
        (k + 1..matrix.side).filter(|j| there(k, *j)).collect(),
    );
    let mut joins = Vec::new();
    for i in rows.iter().copied() {
        let (of, diagonal) = (matrix.clone(), diagonal.clone());
        joins.push(executor.spawn("column", async move {
            let mut block = of.take(i, k);
            divide(&mut block, &diagonal);
            of.put(i, k, block);
        }));
    }
    for j in columns.iter().copied() {
        let (of, diagonal) = (matrix.clone(), diagonal.clone());
        joins.push(executor.spawn("row", async move {
            let mut block = of.take(k, j);
            eliminate(&mut block, &diagonal);
            of.put(k, j, block);
        }));
    }
    let mut tasks = joins.len();
    for join in joins {
        join.await;
    }
    let mut joins = Vec::new();
    for (i, j) in rows.iter().flat_map(|i| columns.iter().map(|j| (*i, *j))) {
        let of = matrix.clone();
        joins.push(executor.spawn("block", async move {
            let (left, above) = (of.at(i, k), of.at(k, j));
            let mut block = of.take(i, j);
            subtract(&mut block, &left.expect("it is there"), &above.expect("it is there"));
            of.put(i, j, block);
        }));
    }
    tasks += joins.len();
    for join in joins {
        join.await;
    }
    tasks as u64
}

impl Matrix {
    /// Of a grid of unknowns, some of which depend on others far away: blocks at the diagonal, and a seventh of the rest.
    fn sparse(side: usize) -> Matrix {
        let block = |i: usize, j: usize| {
            let is_there = i.abs_diff(j) <= 1 || (2 * i + 3 * j).is_multiple_of(7);
            is_there.then(|| {
                let value = |row: usize, column: usize| match i == j && row == column {
                    // More than all others of the row together.
                    true => (2 * side * SIDE) as f64,
                    false => ((i * 31 + j * 17 + row * 5 + column * 3) % 19) as f64 / 19.0,
                };
                let rows =
                    std::array::from_fn(|row| std::array::from_fn(|column| value(row, column)));
                Arc::new(Box::new(rows))
            })
        };
        let places = (0..side).flat_map(|i| (0..side).map(move |j| (i, j)));
        Matrix { side, blocks: places.map(|(i, j)| Mutex::new(block(i, j))).collect() }
    }

    fn at(&self, i: usize, j: usize) -> Option<Arc<Block>> {
        locked(&self.blocks[i * self.side + j]).clone()
    }

    /// A block to be changed, zero if it was not there.
    fn take(&self, i: usize, j: usize) -> Block {
        match locked(&self.blocks[i * self.side + j]).take() {
            Some(block) => Arc::try_unwrap(block).unwrap_or_else(|shared| (*shared).clone()),
            None => Box::new([[0.0; SIDE]; SIDE]),
        }
    }

    fn put(&self, i: usize, j: usize, block: Block) -> Arc<Block> {
        let block = Arc::new(block);
        *locked(&self.blocks[i * self.side + j]) = Some(block.clone());
        block
    }

    fn count(&self) -> usize {
        self.blocks.iter().filter(|block| locked(block).is_some()).count()
    }

    /// The product with a vector, of those elements alone whose row and column are wanted.
    fn times(&self, x: &[f64], is_wanted: impl Fn(usize, usize) -> bool) -> Vec<f64> {
        let mut product = vec![0.0; x.len()];
        for (i, j) in (0..self.side).flat_map(|i| (0..self.side).map(move |j| (i, j))) {
            for (row, values) in self.at(i, j).iter().flat_map(|block| block.iter().enumerate()) {
                let row = i * SIDE + row;
                for (column, value) in values.iter().enumerate() {
                    let column = j * SIDE + column;
                    if is_wanted(row, column) {
                        product[row] += value * x[column];
                    }
                }
            }
        }
        product
    }
}

/// Into a lower part whose diagonal is one, and an upper part, in place.
#[ft_user::function("solver::decompose")]
fn decompose(block: &mut Block) {
    for k in 0..SIDE {
        let pivot = block[k];
        for row in &mut block[k + 1..] {
            row[k] /= pivot[k];
            for j in k + 1..SIDE {
                row[j] -= row[k] * pivot[j];
            }
        }
    }
}

/// By the upper part of the diagonal, from the right.
#[ft_user::function("solver::divide")]
fn divide(block: &mut Block, diagonal: &Block) {
    for row in block.iter_mut() {
        for k in 0..SIDE {
            row[k] /= diagonal[k][k];
            for j in k + 1..SIDE {
                row[j] -= row[k] * diagonal[k][j];
            }
        }
    }
}

/// By the lower part of the diagonal, from the left.
#[ft_user::function("solver::eliminate")]
fn eliminate(block: &mut Block, diagonal: &Block) {
    for k in 0..SIDE {
        let pivot = block[k];
        for i in k + 1..SIDE {
            for j in 0..SIDE {
                block[i][j] -= diagonal[i][k] * pivot[j];
            }
        }
    }
}

/// A product.
#[ft_user::function("solver::subtract")]
fn subtract(block: &mut Block, left: &Block, above: &Block) {
    for (row, left) in block.iter_mut().zip(left.iter()) {
        for (value, above) in left.iter().zip(above.iter()) {
            for j in 0..SIDE {
                row[j] -= value * above[j];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The decomposition multiplied out is the matrix.
    #[test]
    fn what_was_decomposed_comes_out_again() {
        for (workers, queues) in [(1, Queues::Shared), (3, Queues::Own)] {
            let solved = run(workers, queues, 6).unwrap();
            assert!(solved.residual < 1e-12, "{solved:?}");
            // Steps fill blocks that were zero.
            assert!(solved.blocks[0] < solved.blocks[1], "{solved:?}");
        }
    }
}
