//! LTTng's pthread wrapper, with a session daemon of our own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// LTTng's preload library, if it is installed.
pub(crate) fn wrapper() -> Option<PathBuf> {
    let name = "liblttng-ust-pthread-wrapper.so";
    let directories = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"];
    directories.iter().map(|d| Path::new(d).join(name)).find(|path| path.exists())
}

/// Calls `work` while LTTng records all events of its wrapper. `None` if it could not be set up.
pub(crate) fn session<R>(work: impl FnOnce() -> R) -> Option<R> {
    let directory = std::env::temp_dir().join(format!("ft-pair-{}", std::process::id()));
    std::fs::create_dir_all(&directory).ok()?;
    let daemon = Daemon::start(&directory)?;
    let output = format!("--output={}", directory.join("trace").display());
    let lttng = |arguments: &[&str]| daemon.lttng(arguments);
    let result = lttng(&["create", "pair", &output])
        .and_then(|()| {
            let sizes = ["--discard", "--subbuf-size=1M", "--num-subbuf=32"];
            let channel = ["enable-channel", "-u", "-s", "pair", "--buffers-uid"];
            lttng(&[&channel[..], &sizes, &["channel"]].concat())
        })
        .and_then(|()| {
            lttng(&["enable-event", "-u", "-s", "pair", "-c", "channel", "lttng_ust_pthread:*"])
        })
        .and_then(|()| lttng(&["start", "pair"]))
        .map(|()| work());
    lttng(&["destroy", "pair"]);
    drop(daemon);
    std::fs::remove_dir_all(&directory).ok();
    result
}

struct Daemon {
    process: Child,
    home: PathBuf,
}

impl Daemon {
    fn start(home: &Path) -> Option<Daemon> {
        let process = Command::new("lttng-sessiond")
            .arg("--no-kernel")
            .env("LTTNG_HOME", home)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let daemon = Daemon { process, home: home.to_owned() };
        for _ in 0..100 {
            if daemon.lttng(&["list"]).is_some() {
                return Some(daemon);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        None
    }

    fn lttng(&self, arguments: &[&str]) -> Option<()> {
        let status = Command::new("lttng")
            .args(["--no-sessiond", "-q"])
            .args(arguments)
            .env("LTTNG_HOME", &self.home)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success()).then_some(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // SAFETY: our own child, which is not waited for yet. Ends its consumer too.
        unsafe { libc::kill(self.process.id() as i32, libc::SIGTERM) };
        self.process.wait().ok();
    }
}
