//! Permits of connections that have not spoken yet: each process and each user has a share of them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use ft_trace::owners::owner_of;
use tokio::sync::oneshot;

use super::lock;
use crate::collect::peer::Peer;
use crate::collect::shares::Shares;

/// Silent connections of one process.
///
/// Limit: as `MAX_SOURCES` of `arrivals.rs`.
pub(super) const MAX_OF_PROCESS: usize = 8;

/// Who has not spoken yet.
pub(super) struct Silent(Arc<Mutex<Clients>>);

struct Clients {
    shares: Shares<u32>,
    /// The oldest first.
    waiting: VecDeque<Waiting>,
    /// Number of the next one.
    next: u64,
}

struct Waiting {
    number: u64,
    pid: i32,
    uid: u32,
    dismiss: oneshot::Sender<()>,
}

impl Silent {
    /// So many at once.
    pub(super) fn new(capacity: usize) -> Silent {
        let shares = Shares::new(capacity);
        Silent(Arc::new(Mutex::new(Clients { shares, waiting: VecDeque::new(), next: 0 })))
    }

    /// A permit to be silent. Whose share is used up loses the oldest one; `None` when there is none to lose.
    pub(super) fn permit(&self, peer: &Peer) -> Option<Permit> {
        let (pid, uid) = (peer.pid, owner_of(peer.uid));
        let mut clients = lock(&self.0);
        if clients.waiting.iter().filter(|client| client.pid == pid).count() >= MAX_OF_PROCESS {
            clients.dismiss_oldest(|client| client.pid == pid);
        }
        while !clients.shares.take(uid, peer.is_first()) {
            if !clients.dismiss_oldest(|client| client.uid == uid) {
                return None;
            }
        }
        let (dismiss, dismissed) = oneshot::channel();
        let number = clients.next;
        clients.next += 1;
        clients.waiting.push_back(Waiting { number, pid, uid, dismiss });
        Some(Permit { clients: self.0.clone(), number, dismissed })
    }
}

impl Clients {
    /// Takes the permit of the oldest of these clients; false when there is none.
    fn dismiss_oldest(&mut self, is_one: impl Fn(&Waiting) -> bool) -> bool {
        let at = self.waiting.iter().position(is_one);
        let Some(client) = at.and_then(|at| self.remove(at)) else { return false };
        // Fails when it stops waiting just now.
        let _ = client.dismiss.send(());
        true
    }

    fn remove(&mut self, at: usize) -> Option<Waiting> {
        let client = self.waiting.remove(at)?;
        self.shares.give_back(client.uid);
        Some(client)
    }
}

/// A permit to be silent; given back when it is dropped.
pub(super) struct Permit {
    clients: Arc<Mutex<Clients>>,
    number: u64,
    /// Ends when somebody else needs it.
    pub(super) dismissed: oneshot::Receiver<()>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut clients = lock(&self.clients);
        if let Some(at) = clients.waiting.iter().position(|client| client.number == self.number) {
            clients.remove(at);
        }
    }
}
