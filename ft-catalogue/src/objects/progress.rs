//! A request is waited for as long as enough of it moves.
//!
//! What a store sends is counted as it comes: a large file may take as long as it comes, and a store that sends a byte now and then is
//! given up as one that says nothing. What is sent to it cannot be counted, for the crate's client takes it whole; so its time follows
//! from its length: a store that says nothing to a piece of 8 MiB is waited for nine times as long. Time in which a transfer writes to
//! its disk, and does not wait, does not count; time in which it waits, and another one's disk keeps the thread, does.
//!
//! What the crate keeps in memory as a whole, lists and reasons of errors, has a largest size.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService, ReqwestConnector,
};
use tokio::time::{Instant, Sleep, sleep_until, timeout};

/// Bytes of an answer that must come in each [`super::patience::SILENCE`], or all that are left.
///
/// Limit: the store counts as away; a large file that comes faster may take as long as it comes.
/// Shown by: `a_store_that_says_nothing_or_drips_is_given_up_after_the_same_time`,
/// `a_large_answer_may_take_as_long_as_it_comes`, `a_store_that_sends_a_byte_now_and_then_is_away`.
const LEAST_RECEIVED: usize = 64 << 10;

/// Bytes of a request for which one such time more is given until its answer begins.
///
/// Limit: as `LEAST_RECEIVED`.
const LEAST_SENT: usize = 1 << 20;

/// Bytes of an answer that is no object: a page of a list, of a thousand names of at most a KiB, is much shorter.
///
/// Limit: the store is refused with that reason.
/// Shown by: `what_is_kept_whole_has_a_size`, `lies_about_all_are_one_failure`.
const MAX_ANSWER_BYTES: usize = 16 << 20;

/// Makes the crate's own client, and waits for it as said above.
#[derive(Debug)]
pub(super) struct Connector {
    pub(super) silence: Duration,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        // What does TLS, unless the program has chosen for itself: then this is refused, and its choice stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let inner = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(Client { inner, silence: self.silence }))
    }
}

#[derive(Debug)]
struct Client {
    inner: HttpClient,
    silence: Duration,
}

impl HttpService for Client {
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let more = request.body().content_length() / LEAST_SENT;
        let most = self.silence.saturating_mul(u32::try_from(more + 1).unwrap_or(u32::MAX));
        let query = request.uri().query().unwrap_or_default();
        let is_for_object = request.method() == "GET" && !query.contains("list-type=");
        Box::pin(async move {
            let answer = timeout(most, self.inner.execute(request)).await;
            let answer = answer.map_err(|_| Slow::after(most))??;
            let (head, body) = answer.into_parts();
            let is_object = is_for_object && head.status.is_success();
            let room = if is_object { usize::MAX } else { MAX_ANSWER_BYTES };
            let body = HttpResponseBody::new(Watched::new(body, self.silence, room));
            Ok(HttpResponse::from_parts(head, body))
        })
    }
}

/// What comes of an answer.
struct Watched<B> {
    body: B,
    silence: Duration,
    /// Bytes that may still come.
    room: usize,
    /// Since [`LEAST_RECEIVED`] bytes came: how long was waited, and how many have come.
    waited: Duration,
    received: usize,
    /// Since when nothing came, and until when that may be.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<B> Watched<B> {
    fn new(body: B, silence: Duration, room: usize) -> Watched<B> {
        Watched { body, silence, room, waited: Duration::ZERO, received: 0, waiting: None }
    }

    /// So many bytes came. Whether they were too few for the time.
    fn are_too_few(&mut self, bytes: usize) -> bool {
        if let Some((since, _)) = self.waiting.take() {
            self.waited += since.elapsed();
        }
        self.received += bytes;
        if self.received >= LEAST_RECEIVED {
            (self.waited, self.received) = (Duration::ZERO, 0);
        }
        self.waited >= self.silence
    }
}

impl<B: Body<Data = Bytes, Error = HttpError> + Unpin> Body for Watched<B> {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            let bytes = match &frame {
                Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
                _ => return Poll::Ready(frame),
            };
            let Some(room) = this.room.checked_sub(bytes) else {
                return Poll::Ready(Some(Err(HttpError::new(HttpErrorKind::Unknown, Large))));
            };
            this.room = room;
            return Poll::Ready(match this.are_too_few(bytes) {
                true => Some(Err(Slow::after(this.silence))),
                false => frame,
            });
        }
        let left = this.silence.saturating_sub(this.waited);
        let (_, sleep) = this.waiting.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(sleep_until(now + left)))
        });
        sleep.as_mut().poll(context).map(|()| Some(Err(Slow::after(this.silence))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.room {
            usize::MAX => self.body.size_hint(),
            // For what an answer says to be, the crate would make room at once.
            _ => SizeHint::default(),
        }
    }
}

/// More came than such an answer has.
#[derive(Debug, thiserror::Error)]
#[error("the answer is longer than {} MiB", MAX_ANSWER_BYTES >> 20)]
pub(super) struct Large;

/// Too little moved.
#[derive(Debug, thiserror::Error)]
#[error("too little came of it in {0:?}")]
struct Slow(Duration);

impl Slow {
    fn after(time: Duration) -> HttpError {
        HttpError::new(HttpErrorKind::Timeout, Slow(time))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use http_body_util::BodyExt;

    use super::*;

    const SILENCE: Duration = Duration::from_secs(60);

    /// An answer whose pieces come each so long after it was asked for.
    struct Pieces {
        left: VecDeque<(Duration, usize)>,
        next: Option<Pin<Box<Sleep>>>,
    }

    impl Body for Pieces {
        type Data = Bytes;
        type Error = HttpError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
            let Some(&(after, bytes)) = self.left.front() else { return Poll::Ready(None) };
            let sleep =
                self.next.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + after)));
            std::task::ready!(sleep.as_mut().poll(context));
            self.next = None;
            self.left.pop_front();
            Poll::Ready(Some(Ok(Frame::data(vec![0; bytes].into()))))
        }
    }

    /// How many bytes come of such an answer, and after how long; nothing of it passes here.
    fn received(pieces: &[(u64, usize)], pause: u64) -> (Result<usize, HttpErrorKind>, u64) {
        received_of(usize::MAX, pieces, pause)
    }

    /// The same of an answer that may have so many bytes.
    fn received_of(
        room: usize,
        pieces: &[(u64, usize)],
        pause: u64,
    ) -> (Result<usize, HttpErrorKind>, u64) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let left = pieces.iter().map(|&(s, bytes)| (Duration::from_secs(s), bytes));
            let mut body = Watched::new(Pieces { left: left.collect(), next: None }, SILENCE, room);
            let (began, mut bytes) = (Instant::now(), 0);
            let done = loop {
                match body.frame().await {
                    None => break Ok(bytes),
                    Some(Ok(frame)) => bytes += frame.data_ref().unwrap().len(),
                    Some(Err(error)) => break Err(error.kind()),
                }
                // A disk that takes its time.
                tokio::time::sleep(Duration::from_secs(pause)).await;
            };
            (done, began.elapsed().as_secs())
        })
    }

    #[test]
    fn a_store_that_says_nothing_or_drips_is_given_up_after_the_same_time() {
        let silent = [(0, 100), (1_000_000, 1)];
        assert_eq!(received(&silent, 0), (Err(HttpErrorKind::Timeout), 60));
        for seconds in [1, 7, 59] {
            let drips = vec![(seconds, 1); 10_000];
            assert_eq!(received(&drips, 0), (Err(HttpErrorKind::Timeout), 60), "{seconds} s");
        }
        // Fast at first.
        let drips = [vec![(1, LEAST_RECEIVED); 100], vec![(1, 100); 1000]].concat();
        assert_eq!(received(&drips, 0), (Err(HttpErrorKind::Timeout), 160));
    }

    #[test]
    fn what_is_kept_whole_has_a_size() {
        let pieces = [(0, MAX_ANSWER_BYTES), (0, 1)];
        assert_eq!(received_of(MAX_ANSWER_BYTES, &pieces[..1], 0), (Ok(MAX_ANSWER_BYTES), 0));
        assert_eq!(received_of(MAX_ANSWER_BYTES, &pieces, 0), (Err(HttpErrorKind::Unknown), 0));
    }

    #[test]
    fn a_large_answer_may_take_as_long_as_it_comes() {
        let slow = vec![(59, LEAST_RECEIVED); 500];
        assert_eq!(received(&slow, 0), (Ok(500 * LEAST_RECEIVED), 59 * 500));
        let small = vec![(3, LEAST_RECEIVED / 16); 500];
        assert_eq!(received(&small, 0), (Ok(500 * LEAST_RECEIVED / 16), 3 * 500));
        // A short one that comes in time, and a slow disk.
        assert_eq!(received(&[(20, 1), (20, 1), (19, 1)], 0), (Ok(3), 59));
        assert_eq!(received(&[(9, 1); 6], 1000), (Ok(6), 6 * 1009));
    }
}
