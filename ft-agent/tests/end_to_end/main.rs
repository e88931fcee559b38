//! The whole path on the running kernel: the `ft-agent` binary records the `subject` program, and what
//! it says is held against the truth that the subject prints.

mod cgroup;
mod counting;
mod harness;
mod mounts;

mod containers;
mod full_disk;
mod kernel_groups;
mod killed;
mod nesting;
mod ping_pong;
mod preempted;
mod time;
