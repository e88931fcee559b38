//! Turns of users on the control plane.

use std::sync::Mutex;

use ft_trace::owners::owner_of;
use tokio::sync::oneshot;
use tokio::task::yield_now;

use super::lock;
use crate::collect::fair_queue::FairQueue;

/// Users take turns: to find out about a process takes longer than to connect.
#[derive(Default)]
pub(super) struct Turns(Mutex<(bool, FairQueue<oneshot::Sender<()>>)>);

impl Turns {
    /// Does `work` when it is the turn of this user.
    pub(super) async fn take<T>(&self, user: u32, work: impl FnOnce() -> T) -> T {
        let waiting = {
            let (is_taken, queue) = &mut *lock(&self.0);
            std::mem::replace(is_taken, true).then(|| {
                let (call, called) = oneshot::channel();
                queue.push(owner_of(user), call);
                called
            })
        };
        match waiting {
            // Fails when the runtime ends.
            Some(called) => drop(called.await),
            // All who are there now get into the queue first.
            None => yield_now().await,
        }
        let done = work();
        let (is_taken, queue) = &mut *lock(&self.0);
        *is_taken = std::iter::from_fn(|| queue.pop()).any(|next| next.send(()).is_ok());
        done
    }
}
