//! A small program that embeds the tracer.

use ft_user::event;

fn main() {
    ft_costs::startup::measure();
    event!("startup.one");
    event!("startup.two", n: u64 = 2);
    event!("startup.three", n: u64 = 3, m: u64 = 4);
}
