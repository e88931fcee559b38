//! The whole path on the running kernel: the `ft-agent` binary records the `subject` program, and what
//! it says is held against the truth that the subject prints.

use ft_tests::oracle as recomputed;

use ft_tests::registry;

use ft_tests::pytest as package;

mod cgroup;
mod counting;
mod errors;
mod harness;
mod holes;
mod mounts;
mod peers;

mod account;
mod bpftrace;
mod breakdown;
mod capacity;
mod containers;
mod counters;
mod cyclictest;
mod deadlines;
mod devices;
mod freed;
mod full_disk;
mod full_ring;
mod functions;
mod futexes;
mod held;
mod kernel_groups;
mod kernel_locks;
mod killed;
mod libraries;
mod loads;
mod machine;
mod namesakes;
mod nesting;
mod notebooks;
mod npt;
mod oracle;
mod overhead;
mod perf_sched;
mod ping_pong;
mod postgres;
mod preempted;
mod probes;
mod proc_counters;
mod reactivity;
mod real_time_clock;
mod relay;
mod samples;
mod signals;
mod sleeps;
mod spans;
mod strangers;
mod tasks;
mod time;
mod waiters;
mod waits;
mod wakes;
mod watched;
