//! Three copies of the tracer in one process, each with locks of its own: that of the program, that of a plugin, and that
//! of the program which the process executes next. Each copy numbers names and places by itself, so that some have the
//! number of another's.

use std::ffi::{CStr, CString, c_void};
use std::os::unix::process::CommandExt;
use std::process::Command;

use ft_user::sync::Mutex;

/// Locks of each.
const LOCKS: u64 = 200;

/// Holds each lock once.
fn hold(whose: &str) {
    for i in 0..LOCKS {
        // For good: no other lock shall have its address.
        let lock = Box::leak(Box::new(Mutex::named(format!("{whose} {i}").leak(), ())));
        drop(lock.lock());
    }
}

/// The first two; becomes [`last`], and still holds a lock. `plugin`: `ft-user/examples/plugin.rs`, built.
pub(crate) fn run(plugin: &str) -> ! {
    hold("first");
    let plugin = CString::new(plugin).expect("a path has no NUL");
    // SAFETY: the library was built from that source, whose functions have the types that stand here.
    unsafe {
        let library = libc::dlopen(plugin.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        assert!(!library.is_null(), "the plugin cannot be loaded");
        let symbol = |name: &CStr| {
            let symbol = libc::dlsym(library, name.as_ptr());
            assert!(!symbol.is_null(), "{name:?} is missing");
            symbol
        };
        std::mem::transmute::<*mut c_void, extern "C" fn()>(symbol(c"plugin_start"))();
        std::mem::transmute::<*mut c_void, extern "C" fn(u64)>(symbol(c"plugin_hold"))(LOCKS);
    }
    let kept = Box::leak(Box::new(Mutex::named("kept", ())));
    std::mem::forget(kept.lock());
    let error = Command::new("/proc/self/exe").arg("namesakes-last").exec();
    panic!("exec: {error}");
}

/// The last one.
pub(crate) fn last() -> String {
    hold("last");
    format!("{{\"pid\":{},\"locks\":{LOCKS}}}", std::process::id())
}
