//! A complete binary tree of tasks, each of which waits for two others: little work, and many tasks (the paper's *Sumtime*).

use std::pin::Pin;

use serde::Serialize;

use super::executor::{self, Executor, Queues};
use crate::Error;
use crate::clock::{monotonic_ns, process_ns};

/// What it came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Tree {
    /// From before the first task to after the last, ns.
    pub(super) elapsed_ns: u64,
    /// The CPU time of all threads meanwhile, ns.
    pub(super) cpu_ns: u64,
    pub(super) tasks: u64,
    /// Leaves, as the tasks have counted them.
    pub(super) sum: u64,
}

/// Makes a tree of this height.
///
/// # Errors
///
/// When a worker cannot be started.
pub(super) fn run(workers: usize, queues: Queues, height: u32) -> Result<Tree, Error> {
    executor::run(workers, queues, move |executor| async move {
        let (begin, cpu) = (monotonic_ns(), process_ns());
        let sum = executor.spawn("node", node(executor.clone(), height)).await;
        let (elapsed_ns, cpu_ns) = (monotonic_ns() - begin, process_ns() - cpu);
        Tree { elapsed_ns, cpu_ns, tasks: (2 << height) - 1, sum }
    })
}

/// What a node does, by itself and by those below it.
#[ft_user::function("tree::node")]
fn node(executor: Executor, height: u32) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        let Some(below) = height.checked_sub(1) else { return 1 };
        let [left, right] = [(); 2].map(|()| executor.spawn("node", node(executor.clone(), below)));
        sum(left.await, right.await)
    })
}

#[ft_user::function("tree::sum")]
fn sum(left: u64, right: u64) -> u64 {
    left + right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_leaf_is_counted() {
        for queues in [Queues::Shared, Queues::Own] {
            let tree = run(3, queues, 8).unwrap();
            assert_eq!((tree.tasks, tree.sum), (511, 256));
        }
    }
}
