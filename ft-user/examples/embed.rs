//! A program that can be traced: `cargo run --example embed`.

use ft_user::event;
use ft_user::sync::Mutex;

static ACCOUNTS: Mutex<[i64; 8]> = Mutex::named("accounts", [100; 8]);

fn transfer(from: usize, to: usize, amount: i64) {
    event!("bank.transfer", from: usize, to: usize, amount: i64; "{amount} from {from} to {to}");
    let mut accounts = ACCOUNTS.lock().unwrap();
    accounts[from] -= amount;
    accounts[to] += amount;
}

fn main() {
    // Without an agent nothing is recorded, and the program runs as it would without this line.
    ft_user::init().ok();
    for n in 0..1_000_000 {
        transfer(n % 8, n % 7, n as i64 % 5);
    }
    println!("{:?}", ACCOUNTS.lock().unwrap());
}
