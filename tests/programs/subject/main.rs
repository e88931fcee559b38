//! The program that the end-to-end tests record: each scenario does something whose truth it knows,
//! and prints that truth as one line of JSON.
//!
//! `subject SCENARIO [ARGS]`. Threads that must not be disturbed run as `SCHED_FIFO`, pinned to one CPU,
//! so that only what the scenario itself does can preempt them.

mod chain;
mod convoy;
mod counters;
mod disk;
mod endless;
mod family;
mod forks;
mod freed;
mod functions;
mod futexes;
mod held;
mod kernel_groups;
mod kernel_locks;
mod namesakes;
mod nesting;
mod packets;
mod ping_pong;
mod preempted;
mod raced;
mod react;
mod relay;
mod reused;
mod sched;
mod spins;
mod tasks;
mod variety;
mod waiters;
mod wakes;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |i: usize, default: u64| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    ft_user::init().expect("the tracer starts");
    let truth = match args.first().map(String::as_str) {
        Some("preempted") => preempted::all(arg(1, 5)),
        Some("preempted-hold") => preempted::hold(arg(1, 5_000), arg(2, 5)),
        Some("chain") => chain::run(arg(1, 5_000)),
        Some("convoy") => convoy::run(arg(1, 3)),
        Some("sleep") => held::sleep(arg(1, 50)),
        Some("signal") => held::signal(arg(1, 50)),
        Some("migrate") => held::migrate(arg(1, 50)),
        Some("freed") => freed::run(arg(1, 12)),
        Some("waiters") => waiters::run(arg(1, 50)),
        Some("raced") => raced::run(arg(1, 1_500)),
        Some("react") => react::run(arg(1, 50)),
        Some("disk") => disk::run(arg(1, 50)),
        Some("packets") => packets::run(arg(1, 50)),
        Some("tasks") => tasks::run(arg(1, 50)),
        Some("relay") => relay::run(arg(1, 50)),
        Some("wakes") => wakes::run(arg(1, 50)),
        Some("counters") => counters::run(arg(1, 200)),
        Some("ping-pong") => ping_pong::run(arg(1, 1_000)),
        Some("kernel-groups") => kernel_groups::run(arg(1, 100)),
        Some("kernel-locks") => kernel_locks::run(arg(1, 20)),
        Some("in-kernel") => kernel_locks::stays(),
        Some("functions") => functions::run(arg(1, 50)),
        Some("futexes") => futexes::run(arg(1, 10)),
        Some("waits-on") => futexes::stays(),
        Some("family") => family::run(),
        Some("family-last") => family::last(),
        Some("brief") => family::brief(),
        Some("forks") => forks::run(arg(1, 10_000), arg(2, 3)),
        Some("namesakes") => namesakes::run(&args[1]),
        Some("namesakes-last") => namesakes::last(),
        Some("reused") => reused::run(),
        Some("reused-one") => reused::one(&args[1]),
        Some("nesting") => nesting::run(arg(1, 100)),
        Some("spins") => spins::run(arg(1, 4_000), arg(2, 500)),
        Some("variety") => variety::run(arg(1, 100)),
        Some("variety-unread") => variety::unread(arg(1, 100)),
        Some("flood") => endless::flood(arg(1, 1_000_000)),
        Some("unread") => endless::unread(arg(1, 1_000_000)),
        Some("endless") => endless::run(&args[1], arg(2, u64::MAX)),
        _ => {
            eprintln!(
                "subject: chain | convoy | preempted | preempted-hold | sleep | signal | migrate | freed | waiters | wakes | raced | react | packets | disk | relay | tasks | ping-pong | nesting | spins | \
                 kernel-groups | kernel-locks | functions | futexes | counters | family | brief | forks | namesakes PLUGIN | reused | variety | endless FILE"
            );
            std::process::exit(2);
        }
    };
    println!("{truth}");
}
