//! What is tried again.
//!
//! The crate tries a request again that the store did not answer, or answered by a 5xx. An answer whose body ends too early it
//! does not, and its error of a list does not tell a store that is away from one that refuses.

use std::error::Error;
use std::time::Duration;

use object_store::client::{HttpError, HttpErrorKind};

use super::progress::Large;

/// How often something is tried again: after 0.1 s, 0.2 s and so on, up to two seconds each; after some 8 s the store is away.
///
/// Limit: the store counts as unreachable: the trace stays where it was recorded, whole, and the message has the
/// command that uploads it.
/// Shown by: `while_the_store_is_away_traces_wait_here`, `a_store_that_accepts_and_never_answers_is_away`.
pub(super) const RETRIES: usize = 7;
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause before a retry.
///
/// Limit: as `RETRIES`.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How often something was tried.
#[derive(Debug, Default)]
pub(super) struct Retries {
    done: u32,
}

impl Retries {
    /// Whether what failed so is to be tried again; now, for the pause was made.
    pub(super) async fn again(&mut self, error: &object_store::Error) -> bool {
        if !is_cut(error) || self.done as usize == RETRIES {
            return false;
        }
        tokio::time::sleep((FIRST_PAUSE * (1 << self.done)).min(LONGEST_PAUSE)).await;
        self.done += 1;
        true
    }
}

/// An answer that began, and did not come to its end. What did not come in time is none: that has been tried for long.
fn is_cut(error: &object_store::Error) -> bool {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(http) = error.downcast_ref::<HttpError>() {
            let is_large = http.source().is_some_and(|source| source.is::<Large>());
            let never = matches!(http.kind(), HttpErrorKind::Connect | HttpErrorKind::Timeout);
            return !is_large && !never;
        }
        if error.is::<Short>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// The store has answered, and will not. Its number is in the crate's text alone.
pub(super) fn is_refused(error: &object_store::Error) -> bool {
    let text = error.to_string();
    let status = text.split_once("non-2xx status code: ").map_or("", |(_, status)| status);
    status.starts_with('4') && !status.starts_with("408") && !status.starts_with("429")
}

/// Fewer bytes came than an object has.
#[derive(Debug, thiserror::Error)]
#[error("{received} bytes came of {expected}")]
pub(super) struct Short {
    pub(super) received: u64,
    pub(super) expected: u64,
}
