// A panic of a signal handler, through a condition wait.
use std::ffi::c_int;
use std::panic::catch_unwind;

/// A mutex or a condition, which are smaller in glibc; zeros are a new one.
#[repr(C, align(8))]
struct Zeros([u8; 64]);

unsafe extern "C" {
    fn pthread_mutex_lock(mutex: *mut Zeros) -> c_int;
    fn pthread_self() -> usize;
    fn pthread_kill(thread: usize, signal: c_int) -> c_int;
    fn signal(signal: c_int, handler: extern "C-unwind" fn(c_int)) -> usize;
}
unsafe extern "C-unwind" {
    fn pthread_cond_wait(condition: *mut Zeros, mutex: *mut Zeros) -> c_int;
}

extern "C-unwind" fn on_signal(_: c_int) {
    panic!("on purpose");
}

struct Kept;

impl Drop for Kept {
    fn drop(&mut self) {
        println!("dropped");
    }
}

const SIGUSR1: c_int = 10;

fn main() {
    // SAFETY: no argument.
    let own = unsafe { pthread_self() };
    std::thread::spawn(move || {
        // The main thread, once it waits in futex(2).
        let file = format!("/proc/self/task/{}/syscall", std::process::id());
        while !std::fs::read_to_string(&file).unwrap().starts_with("202 ") {
            std::thread::yield_now();
        }
        // SAFETY: the main thread lives.
        unsafe { pthread_kill(own, SIGUSR1) };
    });
    let (mut mutex, mut condition) = (Zeros([0; 64]), Zeros([0; 64]));
    // SAFETY: the handler panics, which what it interrupts is made for.
    let result = catch_unwind(move || unsafe {
        let _kept = Kept;
        signal(SIGUSR1, on_signal);
        pthread_mutex_lock(&raw mut mutex);
        loop {
            pthread_cond_wait(&raw mut condition, &raw mut mutex);
        }
    });
    let Err(panic) = result;
    println!("caught: {:?}", panic.downcast_ref::<&str>());
}
