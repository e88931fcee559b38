//! The hooks of a runtime.

use std::hash::{Hash, Hasher};

use ft_user::task::hooks;
use tokio::runtime::{Builder, TaskMeta};
use tokio::task::Id;

/// Tells of all tasks of the runtimes that are built of it. It sets the builder's four hooks of tasks.
pub fn follow(builder: &mut Builder) -> &mut Builder {
    builder
        .on_task_spawn(spawned)
        .on_before_task_poll(polls)
        .on_after_task_poll(polled)
        .on_task_terminate(over)
}

/// To be called by a hook of `on_task_spawn`.
pub fn spawned(task: &TaskMeta<'_>) {
    hooks::made(number(task.id()), task.spawned_at());
}

/// To be called by a hook of `on_before_task_poll`.
pub fn polls(task: &TaskMeta<'_>) {
    hooks::polls(number(task.id()), task.spawned_at());
}

/// To be called by a hook of `on_after_task_poll`.
pub fn polled(_: &TaskMeta<'_>) {
    hooks::polled();
}

/// To be called by a hook of `on_task_terminate`.
pub fn over(task: &TaskMeta<'_>) {
    hooks::over(number(task.id()));
}

/// The number of a task. Tokio tells it only as text, which would have to be read at each event; but an `Id` is a number,
/// which it hands to whoever hashes it.
fn number(id: Id) -> u64 {
    struct Told(u64);

    impl Hasher for Told {
        fn write(&mut self, bytes: &[u8]) {
            // Should it ever be no number: different ones stay different, as far as a hash can say.
            for byte in bytes {
                self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
            }
        }

        fn write_u64(&mut self, number: u64) {
            self.0 = number;
        }

        fn finish(&self) -> u64 {
            self.0
        }
    }

    let mut told = Told(0);
    id.hash(&mut told);
    told.finish()
}
