//! Virtual machines without hardware help: QEMU's own emulation boots every kernel, on every machine.

use std::{
    fs::{self, File},
    ops::RangeInclusive,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::{programs, workspace};

/// What a guest is given unless told otherwise: as many CPUs as most tests want, of which one thread emulates all. With a
/// thread each QEMU has crashed guests.
pub(super) const CPUS: u32 = 2;

/// All that QEMU emulates but `cmpxchg16b`: with it, about half of the guests of Linux 6.12 die in QEMU 7.2 before they are up,
/// of flags that are nonsense; without it, none of ten did.
const CPU: &str = "max,-cx16";

/// What it can be given: the machine that is emulated has no more.
pub(super) const POSSIBLE_CPUS: RangeInclusive<u32> = 2..=255;

/// MiB.
const MEMORY: u32 = 3 << 10;

/// So many CPUs are of two nodes, and as many again could come, which none does: Linux 6.1 counts them as possible, 7.3 does not.
const NODE_CPUS: u32 = 8;

/// How long a guest may take to come up on an idle machine beside another one, all its checks, and how often it is
/// started.
const UP: Duration = Duration::from_secs(60);
const DONE: Duration = Duration::from_secs(450);
const STARTS: u32 = 3;

const INITRAMFS: &str = include_str!("initramfs.sh");
const INIT: &str = include_str!("init.sh");

/// A kernel, and the file system that it begins with.
pub(super) struct Image {
    kernel: PathBuf,
    initramfs: PathBuf,
    /// The scripts that made it.
    scripts: PathBuf,
}

impl Image {
    pub(super) fn of(folder: &Path) -> Image {
        let file = |name| folder.join(name);
        let (kernel, initramfs) = (file("vmlinuz"), file("initramfs.gz"));
        Image { kernel, initramfs, scripts: file("scripts.sh") }
    }

    /// It is there, and was made by the scripts of now.
    pub(super) fn exists(&self) -> bool {
        let made_by = fs::read_to_string(&self.scripts);
        let is_new = made_by.is_ok_and(|scripts| scripts == [INITRAMFS, INIT].concat());
        self.kernel.exists() && self.initramfs.exists() && is_new
    }
}

/// Makes an image of a kernel's packages, unpacked below `root`.
///
/// # Errors
///
/// When there is no kernel, or a command fails.
pub(super) fn make_image(root: &Path, image: &Image) -> Result<()> {
    let modules = ["usr/lib/modules", "lib/modules"].map(|dir| root.join(dir));
    let folders = modules.iter().filter_map(|dir| fs::read_dir(dir).ok()).flatten().flatten();
    let beside = folders.map(|folder| folder.path().join("vmlinuz"));
    let boot = fs::read_dir(root.join("boot")).ok().into_iter().flatten().flatten();
    let in_boot = boot
        .filter(|file| file.file_name().to_string_lossy().starts_with("vmlinuz-"))
        .map(|file| file.path());
    let kernel = beside.chain(in_boot).find(|kernel| kernel.exists());
    let kernel = kernel.context("the package has no kernel")?;
    fs::copy(&kernel, &image.kernel)
        .with_context(|| format!("cannot copy {}", kernel.display()))?;
    let init = root.join("init");
    fs::write(&init, INIT)?;
    let mut make = Command::new("sh");
    make.args(["-c", INITRAMFS, "initramfs.sh"]).arg(root).arg(&init).arg(&image.initramfs);
    workspace::run(&mut make)?;
    fs::write(&image.scripts, [INITRAMFS, INIT].concat())
        .with_context(|| format!("cannot write {}", image.scripts.display()))
}

/// Boots a kernel, which runs the script `job`; what is written into `out`, where `job` lies, comes back. Returns
/// what the guest said when it was up, or nothing if it had not ended at `until`.
///
/// # Errors
///
/// When it does not come up, or does not end.
pub(super) fn boot(
    image: &Image,
    job: &Path,
    out: &Path,
    cpus: u32,
    until: Option<Instant>,
) -> Result<Option<String>> {
    for _ in 0..STARTS {
        match start(image, job, out, cpus, until)? {
            Start::Done(said) => return Ok(Some(said)),
            Start::Late => return Ok(None),
            Start::NotUp => println!("kernels: the guest did not come up; once more"),
        }
    }
    bail!("the guest did not come up; see {}", out.join("console.log").display())
}

/// How many times as long a guest of so many CPUs takes: each has a share of the one that emulates all.
pub(super) fn shared(cpus: u32) -> f64 {
    1.0 + f64::from(cpus) / 16.0
}

/// What came of starting a guest.
enum Start {
    /// It has done its checks; what it said when it was up.
    Done(String),
    NotUp,
    /// The time was over before that.
    Late,
}

/// The same once.
fn start(
    image: &Image,
    job: &Path,
    out: &Path,
    cpus: u32,
    until: Option<Instant>,
) -> Result<Start> {
    let sockets = tempfolder()?;
    let shares = [("host", Path::new("/")), ("out", out)];
    let mut serving = Vec::new();
    for (tag, path) in shares {
        serving.push(serve(path, &sockets.0.join(tag))?);
    }
    let log = out.join("console.log");
    let console = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut qemu = Command::new("qemu-system-x86_64");
    let possible = if cpus < NODE_CPUS { cpus } else { (2 * cpus).min(*POSSIBLE_CPUS.end()) };
    let smp = format!("{cpus},maxcpus={possible}");
    qemu.args(["-accel", "tcg,thread=single", "-cpu", CPU, "-smp", &smp]);
    let memory = format!("{MEMORY}M");
    qemu.args(["-m", &memory, "-nodefaults", "-no-reboot", "-display", "none"]);
    let nodes = if cpus < NODE_CPUS { 1 } else { 2 };
    for node in 0..nodes {
        // virtiofs wants memory that both sides map.
        let size = MEMORY / nodes;
        let memory = format!("memory-backend-memfd,id=memory{node},size={size}M,share=on");
        let mut of_node = format!("node,nodeid={node},memdev=memory{node}");
        for (first, count) in [(0, cpus), (cpus, possible - cpus)] {
            let (from, to) = (first + count * node / nodes, first + count * (node + 1) / nodes);
            if from < to {
                of_node += &format!(",cpus={from}-{}", to - 1);
            }
        }
        qemu.args(["-object", &memory, "-numa", &of_node]);
    }
    for (tag, _) in shares {
        let socket = sockets.0.join(tag);
        qemu.args(["-chardev", &format!("socket,id={tag},path={}", socket.display())]);
        let device = format!("vhost-user-fs-pci,queue-size=1024,chardev={tag},tag={tag}");
        qemu.args(["-device", &device]);
    }
    qemu.arg("-kernel").arg(&image.kernel).arg("-initrd").arg(&image.initramfs);
    let line = "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable no_timer_check";
    qemu.args(["-append", &format!("{line} ft.job={}", job.display())]);
    qemu.args(["-serial", "stdio"]).stdin(Stdio::null());
    qemu.stdout(console.try_clone()?).stderr(console);
    let mut qemu = Running(qemu.spawn().context("qemu-system-x86_64 could not be started")?);

    let slower = busy() * shared(cpus);
    let (began, patience, mut cpu) = (Instant::now(), UP.mul_f64(slower), 0);
    loop {
        let text = fs::read_to_string(&log).unwrap_or_default();
        let up = text.lines().find_map(|line| line.trim().strip_prefix("GUEST-UP "));
        let ended = qemu.0.try_wait()?.is_some();
        cpu = cpu_seconds(qemu.0.id()).unwrap_or(cpu);
        let limit = if up.is_some() { DONE.mul_f64(slower) } else { patience };
        match up {
            Some(said) if text.contains("GUEST-DONE") && ended => {
                return Ok(Start::Done(format!("{said}, ended after {cpu} s of a CPU")));
            }
            Some(_) if ended || began.elapsed() > limit => {
                bail!("the guest did not finish its checks; see {}", log.display())
            }
            None if ended || began.elapsed() > limit => return Ok(Start::NotUp),
            _ if programs::is_over(until) => return Ok(Start::Late),
            _ => thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Shares a folder of this machine.
fn serve(path: &Path, socket: &Path) -> Result<Running> {
    let program = virtiofsd().context("there is no virtiofsd")?;
    let mut serve = Command::new(program);
    serve.arg(format!("--socket-path={}", socket.display()));
    // What this machine has does not change meanwhile; what comes back does.
    let cache = if path == Path::new("/") { "cache=always" } else { "cache=auto" };
    serve.args(["-o", &format!("source={}", path.display()), "-o", cache]);
    serve.args(["-o", "sandbox=chroot"]);
    serve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = Running(serve.spawn().context("virtiofsd could not be started")?);
    let began = Instant::now();
    while !socket.exists() {
        if running.0.try_wait()?.is_some() || began.elapsed() > UP {
            bail!("virtiofsd does not share {}; run as root", path.display());
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(running)
}

/// Where the program lies: Debian has it in no folder of the `PATH`.
pub(super) fn virtiofsd() -> Option<PathBuf> {
    let places = ["/usr/libexec/virtiofsd", "/usr/lib/qemu/virtiofsd", "/usr/lib/virtiofsd"];
    let found = places.iter().map(PathBuf::from).find(|path| path.exists());
    found.or_else(|| workspace::find_in_path("virtiofsd"))
}

/// How many times as long as on an idle machine everything takes.
pub(super) fn busy() -> f64 {
    let cpus = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().and_then(|first| first.parse::<f64>().ok()).unwrap_or(0.0);
    (1.0 + load / cpus as f64).clamp(1.0, 5.0)
}

/// What a process has had of a CPU: on an idle machine, how long it has run.
fn cpu_seconds(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // From the third field on (proc(5)); the second may have spaces in it. Ticks are hundredths.
    let mut rest = stat.rsplit_once(") ")?.1.split(' ').skip(11).map(str::parse::<u64>);
    Some((rest.next()?.ok()? + rest.next()?.ok()?) / 100)
}

/// A process that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder of a short name, as sockets need one, that is removed with this.
struct Folder(PathBuf);

/// Makes a folder that no other guest of this process has, as two run at the same time.
fn tempfolder() -> Result<Folder> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("ft-guest-{}-{number}", std::process::id()));
    fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(Folder(path))
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_at_the_same_time_have_folders_of_their_own() {
        let (one, other) = (tempfolder().unwrap(), tempfolder().unwrap());
        fs::write(other.0.join("host"), "").unwrap();
        drop(one);
        assert!(other.0.join("host").exists());
    }
}
