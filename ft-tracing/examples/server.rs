//! A server of HTTP/2 and its clients in one process, with hyper and tokio as they come: what the end-to-end test records,
//! and what a first look at `ft-tracing` may record.
//!
//! ```sh
//! ft-agent record -o trace -- target/debug/examples/server 1000
//! ft-agent report trace requests --request shop.order.open,shop.order.close --key span
//! ```
//!
//! h2, below hyper, has spans and events of its own. The server's own span is `shop.order`, one a request. Prints one line
//! of JSON with what was served. A second argument says who listens: `alone` (the default), `beside` other layers, `nobody`.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ft_user::task;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response, client, server, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tracing::{Instrument as _, info, info_span};
use tracing_subscriber::layer::SubscriberExt as _;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Connections, each with requests one after the other.
const CLIENTS: u64 = 4;

static SERVED: AtomicU64 = AtomicU64::new(0);

/// Adds up for a while, on whichever thread polls the request.
fn price(order: u64) -> u64 {
    info_span!(target: "shop", "price", order).in_scope(|| {
        (0..20_000).fold(order, |sum, n| std::hint::black_box(sum.wrapping_mul(31) ^ n))
    })
}

async fn serve(
    request: Request<Incoming>,
) -> std::result::Result<Response<Full<Bytes>>, Infallible> {
    let order = request.uri().path().trim_start_matches('/').parse().unwrap_or_default();
    let span = info_span!(target: "shop", "order", order, method = %request.method());
    let work = async move {
        let before = price(order);
        if order % 8 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::task::yield_now().await;
        let total = before ^ price(order);
        info!(target: "shop", order, total, "served");
        SERVED.fetch_add(1, Relaxed);
        Ok(Response::new(Full::new(Bytes::from(total.to_string()))))
    };
    work.instrument(span).await
}

async fn listen(listener: TcpListener) -> Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        let connection = server::conn::http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(stream), service_fn(serve));
        task::spawn(tokio::spawn, "connection", connection);
    }
}

async fn ask(address: SocketAddr, orders: impl Iterator<Item = u64>) -> Result<()> {
    let stream = TokioIo::new(TcpStream::connect(address).await?);
    let (mut sender, connection) =
        client::conn::http2::handshake(TokioExecutor::new(), stream).await?;
    tokio::spawn(connection);
    for order in orders {
        let request = Request::get(format!("http://{address}/{order}"));
        let answer = sender.send_request(request.body(Full::<Bytes>::default())?).await?;
        answer.into_body().collect().await?;
    }
    Ok(())
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let orders: u64 = arguments.next().unwrap_or("1000".into()).parse()?;
    match arguments.next().as_deref() {
        None | Some("alone") => tracing::subscriber::set_global_default(ft_tracing::subscriber())?,
        Some("beside") => {
            let registry = tracing_subscriber::registry().with(ft_tracing::layer());
            tracing::subscriber::set_global_default(registry)?;
        }
        Some(_) => {}
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    task::spawn(tokio::spawn, "listener", listen(listener));
    let started = std::time::Instant::now();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|n| (n..orders).step_by(CLIENTS as usize))
        .map(|orders| task::spawn(tokio::spawn, "client", ask(address, orders)))
        .collect();
    for client in clients {
        client.await??;
    }
    let (served, ms) = (SERVED.load(Relaxed), started.elapsed().as_millis());
    println!(r#"{{"asked":{orders},"served":{served},"ms":{ms}}}"#);
    Ok(())
}
