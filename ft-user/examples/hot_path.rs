//! Functions with sites, for a look at their machine code: `tests/disassembly.rs` reads that of optimisation
//! levels 2 and 3.
//!
//! `cargo rustc -p ft-user --example hot_path --release -- --emit asm`

use std::hint::black_box;

use ft_user::event;

struct Order {
    id: u64,
    shard: u32,
    price: f64,
    from: i16,
    to: i16,
    urgent: bool,
}

#[unsafe(no_mangle)]
fn no_argument(a: u64) -> u64 {
    event!("hot.no_argument");
    a + 1
}

#[unsafe(no_mangle)]
fn two_arguments(a: u64, b: u64) -> u64 {
    event!("hot.two_arguments", a: u64, b: u64);
    a ^ b
}

#[unsafe(no_mangle)]
fn six_parameters(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> u64 {
    event!("hot.six_parameters", a: u64, b: u64, c: u64, d: u64, e: u64, f: u64);
    a + b + c + d + e + f
}

#[unsafe(no_mangle)]
fn six_fields(order: &Order) -> u64 {
    event!(
        "hot.six_fields",
        id: u64 = order.id, shard: u32 = order.shard, price: f64 = order.price,
        from: i16 = order.from, to: i16 = order.to, urgent: bool = order.urgent
    );
    order.id + 1
}

#[unsafe(no_mangle)]
fn six_in_a_loop(orders: &[Order]) -> u64 {
    let mut sum = 0u64;
    for order in orders {
        event!(
            "hot.six_in_a_loop",
            id: u64 = order.id, shard: u32 = order.shard, price: f64 = order.price,
            from: i16 = order.from, to: i16 = order.to, urgent: bool = order.urgent
        );
        sum = sum.rotate_left(5) ^ order.id;
    }
    sum
}

fn generic<T: Copy + Into<u64>>(values: &[T], seed: u64) -> u64 {
    let mut sum = seed;
    for &value in values {
        let value: u64 = value.into();
        event!(
            "hot.generic",
            value: u64, sum: u64, seed: u64, next: u64 = value + 1, mixed: u64 = sum ^ 3,
            len: usize = values.len()
        );
        sum = sum.wrapping_mul(31) ^ value;
    }
    sum
}

#[unsafe(no_mangle)]
fn six_in_a_generic_loop(values: &[u32], seed: u64) -> u64 {
    generic(values, seed)
}

#[unsafe(no_mangle)]
fn two_sites(a: u64, b: &mut u64) -> bool {
    event!("hot.first", a: u64);
    *b = b.rotate_left(3) ^ a;
    event!("hot.second", b: u64 = *b);
    a < *b
}

#[unsafe(no_mangle)]
fn text_parameters(id: u64, path: &str, body: &[u8]) -> u64 {
    event!("hot.text_parameters", id: u64, path: &str, body: &[u8], size: usize = body.len());
    id + 1
}

#[unsafe(no_mangle)]
fn text_in_a_loop(names: &[&str]) -> u64 {
    let mut sum = 0u64;
    for (i, name) in names.iter().enumerate() {
        event!("hot.text_in_a_loop", i: usize, name: &str, sum: u64);
        sum = sum.rotate_left(5) ^ name.len() as u64;
    }
    sum
}

#[unsafe(no_mangle)]
fn optional_parameters(
    id: u64,
    parent: Option<u64>,
    price: Option<f64>,
    path: Option<&str>,
) -> u64 {
    event!("hot.optional_parameters", id: u64, parent: Option<u64>, price: Option<f64>, path: Option<&str>);
    id + 1
}

#[unsafe(no_mangle)]
fn one_scope(a: u64, b: u64) -> u64 {
    let _scope = ft_user::scope!("hot.one_scope", a: u64, b: u64);
    a * b
}

#[unsafe(no_mangle)]
#[ft_user::function]
fn one_function(a: u64, b: u64) -> u64 {
    a * b
}

fn main() {
    let order = Order { id: 1, shard: 2, price: 3.0, from: 4, to: 5, urgent: true };
    black_box(no_argument(1));
    black_box(two_arguments(1, 2));
    black_box(six_parameters(1, 2, 3, 4, 5, 6));
    black_box(six_fields(&order));
    black_box(six_in_a_loop(&[order]));
    black_box(six_in_a_generic_loop(&[1, 2], 3));
    black_box(two_sites(1, &mut 2));
    black_box(one_scope(1, 2));
    black_box(one_function(1, 2));
    black_box(text_parameters(1, "path", b"body"));
    black_box(optional_parameters(1, Some(2), None, Some("path")));
    black_box(text_in_a_loop(&["a", "b"]));
}
