//! How long a store is waited for.

use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{BackoffConfig, ClientConfigKey, ClientOptions, RetryConfig};

use super::progress::Connector;
use super::retries;

/// How long one request is tried in all, if the store does not answer it: then no further try begins.
///
/// Limit: as `RETRIES` of `retries.rs`.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long the store may take to accept a connection, and for how long too little may come of an answer (`progress.rs`), if the
/// environment (`AWS_READ_TIMEOUT`) does not say otherwise.
///
/// Limit: as `RETRIES` of `retries.rs`.
const CONNECT: Duration = Duration::from_secs(5);

/// How long an object store may send nothing, unless `AWS_READ_TIMEOUT` says otherwise.
///
/// Limit: as `RETRIES` of `retries.rs`.
pub(super) const SILENCE: Duration = Duration::from_secs(60);

/// How long a store is waited for: one that accepts connections and says nothing is away after [`SILENCE`], for with that
/// [`PATIENCE`] has ended; or after up to nine times as long, if a piece of a trace was sent to it (`progress.rs`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) in_all: Duration,
    pub(super) silence: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { in_all: PATIENCE, silence: SILENCE }
    }
}

impl Patience {
    /// What the environment says, or ours.
    pub(super) fn of(store: &AmazonS3Builder) -> Result<Patience, String> {
        let read_timeout = AmazonS3ConfigKey::Client(ClientConfigKey::ReadTimeout);
        let silence = match store.get_config_value(&read_timeout) {
            Some(text) => humantime::parse_duration(&text)
                .map_err(|error| format!("AWS_READ_TIMEOUT is '{text}': {error}"))?,
            None => SILENCE,
        };
        Ok(Patience { silence, ..Patience::default() })
    }

    /// A store that is waited for so long.
    pub(super) fn given(&self, store: AmazonS3Builder) -> AmazonS3Builder {
        let backoff = BackoffConfig {
            init_backoff: retries::FIRST_PAUSE,
            max_backoff: retries::LONGEST_PAUSE,
            base: 2.0,
        };
        let retry_timeout = self.in_all;
        let retry = RetryConfig { backoff, max_retries: retries::RETRIES, retry_timeout };
        let allow_http = AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp);
        let allow_http = store.get_config_value(&allow_http);
        let client = ClientOptions::new()
            .with_allow_http(allow_http.is_some_and(|value| value == "true"))
            .with_connect_timeout(CONNECT)
            .with_timeout_disabled();
        let connector = Connector { silence: self.silence };
        store.with_retry(retry).with_client_options(client).with_http_connector(connector)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;
    use crate::objects::Objects;
    use crate::place::Place;
    use crate::task::Tasks;
    use crate::{CatalogueError, Key};

    /// Accepts, reads, and never answers; how many requests began.
    fn silent() -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let count = count.clone();
                std::thread::spawn(move || {
                    let mut bytes = [0; 4096];
                    let mut is_first = true;
                    while client.read(&mut bytes).is_ok_and(|read| read > 0) {
                        count.fetch_add(usize::from(std::mem::take(&mut is_first)), SeqCst);
                    }
                });
            }
        });
        (endpoint, asked)
    }

    /// A catalogue in such a store, for which nobody waits long.
    fn of_silent(endpoint: &str) -> Objects {
        let store = AmazonS3Builder::new()
            .with_bucket_name("fleet")
            .with_endpoint(endpoint)
            .with_config("aws_allow_http".parse().unwrap(), "true")
            .with_access_key_id("test")
            .with_secret_access_key("secret");
        let millis = Duration::from_millis;
        let patience = Patience { in_all: millis(200), silence: millis(100) };
        Objects::of("s3://fleet/x", "x", store, &patience).unwrap()
    }

    #[test]
    fn a_store_that_accepts_and_never_answers_is_away() {
        let (endpoint, asked) = silent();
        let store = of_silent(&endpoint);
        let error = store.prepare().unwrap_err();
        assert!(matches!(error, CatalogueError::Away { .. }), "{error}");
        let said = error.to_string();
        assert!(said.starts_with("cannot reach s3://fleet/x: "), "{said}");
        assert!(said.ends_with("try again when the store answers, and check AWS_ENDPOINT_URL"));
        // As many tries as begin in that time, which a busy machine makes fewer: nobody else tries again.
        assert!((1..=3).contains(&asked.load(SeqCst)), "{asked:?}");
    }

    #[test]
    fn a_store_that_fell_silent_is_not_waited_for_at_each_trace() {
        let (endpoint, asked) = silent();
        let tasks = Tasks::at("s3://fleet/x", of_silent(&endpoint));
        let key = |n: usize| {
            let trace = format!("20261121T104500Z-{n:016x}");
            Key::of_path(&format!("host=a/date=2026-11-21/trace={trace}")).unwrap()
        };
        let traces: Vec<(Key, usize)> = (0..100).map(|n| (key(n), n)).collect();
        let mut seen = Vec::new();
        tasks.read_each(
            &traces,
            |_| true,
            |n, read| {
                let error = read.unwrap_err();
                assert!(matches!(error, CatalogueError::Away { .. }), "{error}");
                seen.push(*n);
            },
        );
        assert_eq!(seen, Vec::from_iter(0..100));
        // Of those that are under way at once, each has its tries; of all, a hundred would have one at least.
        let asked = asked.load(SeqCst);
        assert!((1..100).contains(&asked), "{asked}");
    }
}
