//! What an event and a span of `tracing` cost with this crate, and with others, in turns.
//!
//! `cargo bench -p ft-tracing` prints a table; `-- LISTENER` measures one of them alone, in this process.
//!
//! A subscriber is one for a process, so each is measured in a process of its own: medians of rounds in turns. Times are net
//! of the same loop without the macro. Ours overwrites (`FT_MODE`), so that an event is written however slowly it is read. Peers
//! write to nothing: what a file or a pipe would take comes on top.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use tracing::subscriber::set_global_default;
use tracing::{Metadata, info, info_span, subscriber::Interest};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::{Layer, Registry, fmt, registry};

const ROUNDS: usize = 7;
const PASSES: u64 = 200_000;

/// Counts what is allocated.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: what the system's allocator promises, which does all.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Wants everything, and does nothing with it: what a registry of spans costs any layer.
struct Idle;

impl Layer<Registry> for Idle {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::always()
    }

    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, Registry>) {
        black_box(event);
    }
}

const LISTENERS: [(&str, fn()); 10] = [
    ("no subscriber", || {}),
    ("ours as started, off", || listen(registry().with(ft_tracing::layer_as_started()))),
    ("ours alone, off", || listen(ft_tracing::subscriber())),
    ("ours as a layer, off", || listen(registry().with(ft_tracing::layer()))),
    ("registry alone", || listen(registry().with(Idle))),
    ("ours alone, on", || {
        listen(ft_tracing::subscriber());
        ft_user::enable("*");
    }),
    ("ours as a layer, on", || {
        listen(registry().with(ft_tracing::layer()));
        ft_user::enable("*");
    }),
    ("fmt to a sink", || listen(registry().with(fmt::layer().with_writer(io::sink)))),
    ("fmt with spans, to a sink", || {
        let spans = fmt::format::FmtSpan::FULL;
        listen(registry().with(fmt::layer().with_writer(io::sink).with_span_events(spans)))
    }),
    ("tracing-chrome to a sink", || {
        let builder = tracing_chrome::ChromeLayerBuilder::new();
        let (layer, guard) = builder.writer(io::sink()).include_args(true).build();
        std::mem::forget(guard);
        listen(registry().with(layer));
    }),
];

fn listen(subscriber: impl tracing::Subscriber + Send + Sync + 'static) {
    set_global_default(subscriber).expect("the first");
}

/// The median of batches, ns and allocations a pass.
fn measure(mut pass: impl FnMut(u64)) -> [f64; 2] {
    let mut times: Vec<[f64; 2]> = (0..9)
        .map(|_| {
            let (start, before) = (Instant::now(), ALLOCATIONS.load(Relaxed));
            (0..PASSES / 9).for_each(&mut pass);
            let took = start.elapsed().as_nanos() as f64;
            let made = (ALLOCATIONS.load(Relaxed) - before) as f64;
            [took, made].map(|sum| sum / (PASSES / 9) as f64)
        })
        .collect();
    times.sort_by(|a, b| a[0].total_cmp(&b[0]));
    times[4]
}

fn measured(name: &str) {
    let (_, start) = LISTENERS.iter().find(|(known, _)| *known == name).expect("a listener");
    start();
    let [empty, _] = measure(|n| _ = black_box(n));
    let event = measure(|n| info!(n = black_box(n), "said"));
    let span = measure(|n| info_span!("work", n = black_box(n)).in_scope(|| ()));
    println!("{} {} {} {}", event[0] - empty, span[0] - empty, event[1], span[1]);
}

fn main() {
    // Cargo passes a flag of its own.
    if let Some(name) = std::env::args().skip(1).find(|argument| !argument.starts_with("--")) {
        return measured(&name);
    }
    let own = std::env::current_exe().expect("a path");
    let mut figures: BTreeMap<&str, Vec<Vec<f64>>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        for (name, _) in LISTENERS {
            let mut listener = Command::new(&own);
            listener.arg(name).env("FT_MODE", "overwrite").env("FT_SOCKET", "/nonexistent");
            let output = listener.output().expect("this program starts");
            let text = String::from_utf8(output.stdout).expect("numbers");
            let words = text.split_whitespace().map(|word| word.parse().expect("a number"));
            figures.entry(name).or_default().push(words.collect());
        }
    }
    println!("| listener | event; ns | span: open, enter, exit, close; ns | allocations |");
    println!("|---|---:|---:|---:|");
    for (name, _) in LISTENERS {
        let median = |column: usize| {
            let mut all: Vec<f64> = figures[name].iter().map(|row| row[column]).collect();
            all.sort_by(f64::total_cmp);
            all[ROUNDS / 2]
        };
        let [event, span, of_event, of_span] = [0, 1, 2, 3].map(median);
        println!("| {name} | {event:.1} | {span:.1} | {of_event:.0}, {of_span:.0} |");
    }
}
