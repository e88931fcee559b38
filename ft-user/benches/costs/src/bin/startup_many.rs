//! A program with 512 sites, as a large application has.

use ft_user::event;

macro_rules! sites {
    ($($a:literal)*) => {$(
        event!("startup.a");
        event!("startup.b");
        event!("startup.c");
        event!("startup.d", n: u64 = $a);
        event!("startup.e", n: u64 = $a, m: u64 = 2);
        event!("startup.f");
        event!("startup.g");
        event!("startup.h");
    )*};
}

fn main() {
    ft_costs::startup::measure();
    sites!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
    sites!(32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60);
    sites!(61 62 63);
}
