//! Two processes of one number, one after the other, in which everything has the same address: the second is given the
//! number of the first, and neither has its memory at random places.

use std::ffi::{CStr, CString};
use std::os::unix::process::CommandExt;
use std::process::Command;

use ft_user::sync::Mutex;

/// Locks of each.
const LOCKS: usize = 20;

/// Holds locks of these names once, and one that is still held when it exits.
pub(crate) fn one(whose: &str) -> String {
    let locks: Vec<_> =
        (0..LOCKS).map(|i| Mutex::named(format!("{whose} {i}").leak(), ())).collect();
    let locks = locks.leak();
    locks.iter().for_each(|lock| drop(lock.lock()));
    std::mem::forget(locks[0].lock());
    // Not a truth, of which a recording has one.
    format!("{whose} held {LOCKS} locks")
}

/// Runs both; their number is `null` where this process may not choose one.
pub(crate) fn run() -> String {
    // SAFETY: plain calls; the second process is of this program, and its arguments end with a null.
    unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
    let mut first = Command::new("/proc/self/exe");
    let mut first = first.arg0("subject").args(["reused-one", "first"]).spawn().expect("a process");
    let pid = first.id();
    assert!(first.wait().expect("its end").success());
    let number = match again(pid.cast_signed(), [c"subject", c"reused-one", c"other"]) {
        Ok(()) => pid.to_string(),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => "null".into(),
        Err(error) => panic!("a process of the number {pid}: {error}"),
    };
    format!("{{\"pid\":{number},\"locks\":{LOCKS}}}")
}

/// Executes this program in a process that has this number, and waits for its end.
fn again(pid: libc::pid_t, args: [&CStr; 3]) -> std::io::Result<()> {
    let program = CString::from(c"/proc/self/exe");
    let args = [args[0].as_ptr(), args[1].as_ptr(), args[2].as_ptr(), std::ptr::null()];
    // SAFETY: of zeros it asks for nothing.
    let mut clone: libc::clone_args = unsafe { std::mem::zeroed() };
    clone.exit_signal = libc::SIGCHLD as u64;
    clone.set_tid = (&raw const pid).addr() as u64;
    clone.set_tid_size = 1;
    let mut status = 0;
    // SAFETY: the new process, a copy of this one, executes the program at once, or exits; all that it reads was made before.
    unsafe {
        match libc::syscall(libc::SYS_clone3, &raw const clone, size_of_val(&clone)) {
            -1 => return Err(std::io::Error::last_os_error()),
            0 => {
                libc::execv(program.as_ptr(), args.as_ptr());
                libc::_exit(127)
            }
            _ => assert_eq!(libc::waitpid(pid, &mut status, 0), pid),
        }
    }
    assert_eq!(status, 0, "the second process failed");
    Ok(())
}
