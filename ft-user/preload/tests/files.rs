//! What ordinary programs print and write is, byte for byte, the same with the library and without it: their files, pipes and sockets are
//! theirs alone, whatever numbers they have, and whether an agent listens or not.
//!
//! A program that is not installed is left out, and the test says so.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../../tests/common/said.rs"]
mod said;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::agent::Listener;

/// What a run has left: how it ended, what it printed, and all files below its directory.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    status: Option<i32>,
    printed: String,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    Plain,
    Alone,
    WithAgent,
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|directory| directory.join(program).exists());
    if !found {
        said::skipped(&format!("{program} is not installed"));
    }
    found
}

fn files(directory: &Path, below: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let (name, kind) = (below.join(entry.file_name()), entry.file_type().unwrap());
        if kind.is_dir() {
            files(&entry.path(), &name, found);
        } else if kind.is_file() {
            found.insert(name, fs::read(entry.path()).unwrap());
        }
    }
}

/// An agent for all tests, which asks for every lock.
fn agent() -> &'static Path {
    static AGENT: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    AGENT.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("ft-files-{}.sock", std::process::id()));
        let listener = Listener::at(&path);
        std::thread::spawn(move || {
            loop {
                listener.serve(b"lock.*");
            }
        });
        path
    })
}

/// Runs `words` in an empty directory.
fn left(name: &str, words: &[&str], run: Run) -> Left {
    // All runs in the same place: some programs write where they are.
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("files-of-{name}"));
    fs::remove_dir_all(&directory).ok();
    fs::create_dir_all(&directory).unwrap();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(&directory).stdin(Stdio::null());
    command
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .env("SOURCE_DATE_EPOCH", "0")
        .env("HOME", &directory);
    if run != Run::Plain {
        let library = std::env::current_exe().unwrap().with_file_name("libft_preload.so");
        command.env("LD_PRELOAD", library).env("FT_ENABLE", "lock.*");
        let socket = if run == Run::Alone { Path::new("/nonexistent") } else { agent() };
        command.env("FT_SOCKET", socket);
    }
    let output = command.output().unwrap();
    let mut found = BTreeMap::new();
    files(&directory, Path::new(""), &mut found);
    Left {
        status: output.status.code(),
        printed: String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr),
        files: found,
    }
}

/// The command leaves the same in all runs.
fn same(name: &str, words: &[&str]) {
    if !words[0].starts_with('/') && !is_installed(words[0]) {
        return;
    }
    let plain = left(name, words, Run::Plain);
    assert_eq!(plain.status, Some(0), "{name}: {}", plain.printed);
    assert!(!plain.files.is_empty() || !plain.printed.is_empty(), "{name} leaves nothing");
    for run in [Run::Alone, Run::WithAgent] {
        let traced = left(name, words, run);
        assert_eq!(traced.status, plain.status, "{name}, {run:?}: {}", traced.printed);
        assert_eq!(traced.printed, plain.printed, "{name}, {run:?}");
        assert!(traced.files.keys().eq(plain.files.keys()), "{name}, {run:?}");
        for (path, content) in &plain.files {
            assert!(traced.files[path] == *content, "{name}, {run:?}: {path:?} differs");
        }
    }
}

fn shells(name: &str, script: &str) {
    for shell in ["bash", "dash", "zsh"] {
        same(&format!("{name}-{shell}"), &[shell, "-c", script]);
    }
}

#[test]
fn shells_that_choose_numbers() {
    shells(
        "numbers",
        r#"exec 3>out.log
        echo "line from the shell" >&3
        ( echo "line from a subshell" >&3 )
        echo "line through a pipe" | cat >&3
        /bin/echo "line from a program" >&3
        exec 4<out.log 5>>out.log 6<>other 7>&3
        echo more >&5; echo other >&6; echo again >&7; cat <&4
        exec 3>&- 4<&- 5>&- 6>&- 7>&-
        echo "$(echo substituted; (echo nested) )" > last"#,
    );
}

#[test]
fn shells_that_limit_themselves() {
    shells(
        "limits",
        r"ulimit -n 16; exec 3>few; echo few >&3; (echo fewer >&3; ls / | wc -l | sed 's/.*/n/' >&3)
        ( ulimit -v 200000; echo little | cat > little; (echo less) >> little )
        ulimit -f 8; echo small > small; sort small > sorted",
    );
}

#[test]
fn shells_that_leave_children_behind() {
    shells(
        "daemons",
        r#"mkfifo over
        ( setsid sh -c 'exec 3>daemon.log </dev/null >/dev/null 2>&1; cd .; umask 0
            (echo started >&3; sleep 0.1; echo done >&3; echo > over) & ' )
        read line < over
        for i in 1 2 3 4; do (echo job $i > job$i) & done; wait
        trap 'echo trapped > trap' USR1; kill -USR1 $$; echo after >> trap"#,
    );
}

/// Almost all that there are: the shell needs some itself.
#[test]
fn bash_that_takes_all_numbers() {
    let script = r#"ulimit -n 1024
        for ((fd = 3; fd < 1000; fd++)); do [ $fd = 255 ] || eval "exec $fd>>all.log"; done
        for ((fd = 3; fd < 1000; fd++)); do [ $fd = 255 ] || echo "line $fd" >&$fd; done
        ( for ((fd = 3; fd < 1000; fd += 7)); do [ $fd = 255 ] || echo "child $fd" >&$fd; done )
        coproc cat; echo through >&"${COPROC[1]}"; read -r line <&"${COPROC[0]}"; echo "$line"
        exec {new}>new.log; echo new >&$new; echo $new
        cat <(echo a) <(echo b) > substituted"#;
    same("all-numbers", &["bash", "-c", script]);
}

/// Compiles a program of these tests.
fn compiled(name: &str) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("files-{name}"));
    let mut command = Command::new("cc");
    command.args(["-std=gnu17", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread", "-o"]);
    command.arg(&program).arg(source.with_extension("c"));
    assert!(command.status().expect("a C compiler, cc").success(), "{name} compiles");
    program.to_str().unwrap().to_owned()
}

/// Functions of the C library that this one calls, and whose names are not the C library's alone (ISO C): whoever calls them here means
/// the C library, and a program may have its own. What remains are those of which ISO C or POSIX say what they do, and `getauxval` and `sched_getcpu`, which
/// no system call does as fast.
fn names_that_programs_may_have() -> Vec<String> {
    let library = std::env::current_exe().unwrap().with_file_name("libft_preload.so");
    let listed = Command::new("nm").args(["-D", "--undefined-only"]).arg(library).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let names = listed.lines().filter_map(|line| line.split_whitespace().last()?.split('@').next());
    const OF_C: [&str; 12] = [
        "abort",
        "bcmp",
        "calloc",
        "free",
        "getauxval",
        "getenv",
        "malloc",
        "posix_memalign",
        "realloc",
        "sched_getcpu",
        "strlen",
        "strnlen",
    ];
    let is_of_c = |name: &&str| {
        ["_", "mem", "pthread_", "dl"].iter().any(|prefix| name.starts_with(prefix))
            || OF_C.contains(name)
    };
    // And those that it called when it made its system calls by the C library.
    let more =
        ["access", "connect", "fcntl", "fstat", "poll", "prctl", "recv", "sendmsg", "socket"];
    let names: std::collections::BTreeSet<&str> =
        names.filter(|name| !is_of_c(name)).chain(more).collect();
    names.into_iter().map(str::to_owned).collect()
}

#[test]
fn functions_of_the_program_are_not_called() {
    let names = names_that_programs_may_have();
    assert!(names.iter().any(|name| name == "open64") && names.len() > 15, "{names:?}");
    let mut source = String::from(
        "static void die(const char *name, unsigned long bytes) {
            unsigned long n = 1, to = 2;
            asm volatile(\"syscall\" : \"+a\"(n) : \"D\"(to), \"S\"(name), \"d\"(bytes) : \"rcx\", \"r11\", \"memory\");
            n = 231, to = 3;
            asm volatile(\"syscall\" : \"+a\"(n) : \"D\"(to) : \"rcx\", \"r11\");
        }\n",
    );
    for name in &names {
        source += &format!(
            "void {name}(void) {{ die(\"{name} is called\\n\", {}); }}\n",
            name.len() + 11
        );
    }
    source +=
        "int puts(const char *); int fork(void); int waitpid(int, int *, int); void _exit(int);
        int pthread_mutex_lock(void *); int pthread_mutex_unlock(void *); long mutex[8];
        int pthread_create(unsigned long *, void *, void *(*)(void *), void *); int pthread_join(unsigned long, void *);
        int vfork(void);
        static void hold(void) { pthread_mutex_lock(mutex); pthread_mutex_unlock(mutex); }
        static void *of_vfork(void *none) {
            // Without a ring of its own.
            int status, child = vfork();
            if (child == 0) { hold(); _exit(0); }
            waitpid(child, &status, 0);
            return none;
        }
        int main(void) {
            int status;
            unsigned long thread;
            for (int i = 0; i < 100; i++) hold();
            pthread_create(&thread, 0, of_vfork, 0); pthread_join(thread, 0);
            int child = fork();
            if (child == 0) { hold(); _exit(7); }
            if (waitpid(child, &status, 0) != child) return 1;
            puts(status == 7 << 8 ? \"the child is well\" : \"the child is not\");
        }\n";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (file, program) = (folder.join("own-names.c"), folder.join("own-names"));
    fs::write(&file, source).unwrap();
    let mut compile = Command::new("cc");
    compile.args(["-w", "-fno-builtin", "-rdynamic", "-pthread", "-o"]).arg(&program).arg(&file);
    assert!(compile.status().expect("a C compiler, cc").success());
    same("own-names", &[program.to_str().unwrap()]);
}

#[test]
fn daemons_keep_their_databases() {
    let daemon = compiled("daemon");
    for how in ["closefrom", "close_range", "dup2"] {
        let ours = left("daemon", &[&daemon, how], Run::Plain);
        assert!(ours.files[Path::new("base7")].starts_with(b"generation 0, file 7\n"));
        for run in [Run::Alone, Run::WithAgent] {
            // Threads that wait print nothing; the files are what counts.
            let traced = left("daemon", &[&daemon, how], run);
            assert_eq!(
                (traced.status, &traced.printed),
                (Some(0), &ours.printed),
                "{how}, {run:?}"
            );
            assert!(traced.files == ours.files, "{how}, {run:?}: a database differs");
        }
    }
}

#[test]
fn python_with_its_subprocesses_and_sockets() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/activated.py");
    same("activated", &["python3", script.to_str().unwrap()]);
    let script = "
import multiprocessing, os
def work(n):
    with open(f'work{n}', 'w') as file: file.write(str(n * n))
    return n * n
if __name__ == '__main__':
    with multiprocessing.get_context('fork').Pool(3) as pool: print(sum(pool.map(work, range(20))))
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 65536)
            fd = os.open('daemon', os.O_CREAT | os.O_WRONLY)
            os.write(fd, b'fd %d' % fd)
        os._exit(0)
    os.wait()
    import time
    while not os.path.exists('daemon') or not os.path.getsize('daemon'): time.sleep(0.01)
";
    same("pool", &["python3", "-c", script]);
}

/// A server that is started by the first connection, to a socket that it is handed as its number 3.
#[test]
fn a_server_that_systemd_activates() {
    let script = r#"cat > server.py <<'END'
import os, socket
with socket.socket(fileno=2 + int(os.environ['LISTEN_FDS'])) as listener, open('asked', 'w') as asked:
    for _ in range(3):
        connection, _ = listener.accept()
        with connection:
            text = connection.recv(100).decode()
            print(listener.fileno(), text, file=asked)
            connection.sendall(text.upper().encode())
END
        set -- -l $PWD/socket
        [ -z "$LD_PRELOAD" ] || set -- "$@" -E LD_PRELOAD -E FT_ENABLE -E FT_SOCKET
        systemd-socket-activate "$@" python3 server.py 2> errors & activated=$!
        for n in $(seq 1000); do [ -S socket ] && break; sleep 0.01; done
        for word in one two three; do python3 -c "
import socket, sys
with socket.socket(socket.AF_UNIX) as to:
    to.connect('socket'); to.sendall(b'$word'); print(to.recv(100).decode())"; done
        wait $activated; echo $?; rm errors"#;
    if is_installed("systemd-socket-activate") {
        same("systemd", &["sh", "-c", script]);
    }
}

/// A server with a master and two workers, which becomes a daemon.
#[test]
fn a_web_server() {
    if !is_installed("nginx") || !is_installed("curl") {
        return;
    }
    let script = r#"mkdir html tmp; seq 1 20000 > html/in
        user=; [ $(id -u) = 0 ] && user='user root;'
        cat > conf <<END
        $user worker_processes 2; pid $PWD/pid; error_log $PWD/errors crit; events { worker_connections 64; }
        http {
            log_format brief '\$status \$body_bytes_sent \$uri'; access_log $PWD/requests brief;
            client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp;
            server { listen unix:$PWD/socket; root $PWD/html; }
        }
END
        nginx -p $PWD -c conf -e $PWD/errors
        for n in 1 2 3 4 5 6 7 8; do curl -s --unix-socket socket http://localhost/in | cmp - html/in && echo equal; done
        curl -s -o none -w '%{http_code}
' --unix-socket socket http://localhost/none
        kill -QUIT $(cat pid)
        while [ -e pid ]; do sleep 0.01; done
        rm conf"#;
    same("nginx", &["sh", "-c", script]);
}

/// A server with a process for each connection; as a user who is not root, as it demands.
#[test]
fn a_database_server() {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let Some(programs) = versions.map(|version| version.path().join("bin")).next() else {
        said::skipped("postgres is not installed");
        return;
    };
    let script = r#"as=; d=$(mktemp -d); trap 'rm -rf $d' EXIT
        cp "${LD_PRELOAD:-/dev/null}" $d/library; library=$LD_PRELOAD; unset LD_PRELOAD; cd $d
        if [ $(id -u) = 0 ]; then chown -R nobody $d; as='setpriv --reuid=nobody --clear-groups'; fi
        as() { $as env ${library:+LD_PRELOAD=$d/library} "$@"; }
        as $1/initdb -D $d/data -U x -A trust -E UTF8 --locale=C -N > /dev/null || exit 1
        as $1/pg_ctl -D $d/data -o "-k $d -c listen_addresses=" -l $d/log -w start > /dev/null || exit 1
        sql() { as $1/psql -h $d -U x -d postgres -At -c "$2"; }
        sql $1 'create table t (n int, s text)'
        sql $1 "insert into t select n, md5(n::text) from generate_series(1, 3000) n"
        sql $1 'create index on t (s)'
        for k in 0 1 2 3; do sql $1 "update t set n = n + 4 where n % 4 = $k" & done; wait
        sql $1 'select sum(n), md5(string_agg(s, null order by s)) from t'
        as $1/pg_ctl -D $d/data -m fast -w stop > /dev/null
        grep -c PANIC $d/log"#;
    let programs = programs.to_str().unwrap();
    same("postgres", &["sh", "-c", &format!("({script}) | sort"), "sh", programs]);
}

/// Twenty of them, in a directory with files of each other.
#[test]
fn ordinary_programs() {
    let with_input = |script: &str| {
        format!("seq 1 20000 > in; mkdir -p d/e; cp in d/e/copy; ln -s in link; {script}")
    };
    let programs = [
        ("cat", "cat in d/e/copy > out"),
        ("sort", "sort -r --parallel=4 in > out"),
        ("sed", "sed -n 's/7/seven/p' in > out"),
        ("awk", "awk '{ s += $1 } END { print s }' in"),
        ("grep", "grep -c 99 in; grep -rl 19999 d"),
        ("tar", "tar --sort=name --mtime=@0 --owner=0 --group=0 -cf out.tar in d; tar -tf out.tar"),
        ("gzip", "gzip -n9 < in > out.gz; gzip -dc out.gz | cmp - in && echo equal"),
        ("bzip2", "bzip2 -k in && bzip2 -dc in.bz2 | cmp - in && echo equal"),
        ("xz", "xz -T2 -k in && xz -dc in.xz | cmp - in && echo equal"),
        (
            "find",
            "find . -type f -newer /dev/null | sort; find . -name 'c*' -exec cat {} + | wc -l",
        ),
        ("xargs", "head -100 in | xargs -P4 -n10 sh -c 'echo \"$@\" > x$1' x; cat x1 x91"),
        ("split", "split -l 3000 in part-; wc -l part-*"),
        ("dd", "dd if=in of=out bs=1k skip=3 count=20 status=none"),
        ("make", "printf 'all: a b\\na b:\\n\\tcp in $@\\n' > Makefile; make -sj3 all"),
        (
            "perl",
            "perl -e 'open(F, \">\", \"out\"); if (fork) { wait } print F fileno(F), \"\\n\"'",
        ),
        (
            "sqlite3",
            "sqlite3 base 'create table t(a); insert into t values (1), (2); select sum(a) from t'",
        ),
        ("diff", "sed 5d in > less; diff in less; true"),
        ("sha256sum", "sha256sum in d/e/copy"),
        ("tee", "tee one two < in | wc -l"),
        (
            "flock",
            "exec 3>lock; flock -n 3 && echo taken >&3; flock -n lock echo never || cat lock",
        ),
        ("git", "git init -q r 2>&1; cd r; cp ../in .; git add in; git ls-files -s; rm -rf .git"),
        ("node", "node -e 'require(\"fs\").writeFileSync(\"out\", \"text\"); console.log(6 * 7)'"),
        (
            "java",
            "printf 'class T { public static void main(String[] a) throws Exception { \
            try (var f = new java.io.FileWriter(\"out\")) { f.write(\"text\"); } } }' > T.java; \
            java -Xshare:auto T.java",
        ),
        // These two are written in Go.
        (
            "direnv",
            "echo export WORD=word > .envrc; direnv allow .; direnv exec . sh -c 'echo $WORD | tee out' 2>&1",
        ),
        ("fzf", "fzf --filter 999 --no-sort < in; FZF_DEFAULT_COMMAND='cat in' fzf -f 77 | sort"),
    ];
    for (program, script) in programs {
        if is_installed(program) {
            same(&format!("ordinary-{program}"), &["sh", "-c", &with_input(script)]);
        }
    }
}
