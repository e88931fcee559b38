"""Compares what babeltrace2 reads of an exported trace with the tables that it was made of.

    ctf.py TRACE EXPORT [FROM TO]

Every event is compared: its name, time, CPU and all fields. The tables are read by DuckDB; what becomes of a row is
written here from LTTng's names and the meaning of the columns, apart from the exporter's code.
"""

import re
import subprocess
import sys
from bisect import bisect_left
from collections import Counter, defaultdict

from exported import EXPORT, META, compare, rows, visible, window

FROM, TO, _ = window(sys.argv[3:])
STATES = {"R": 0, "R+": 0, "S": 1, "D": 2, "T": 4, "t": 8, "X": 16, "Z": 32, "P": 64, "I": 0x402}
VECTORS = {"local_timer": 236, "reschedule": 253, "call_function": 252, "call_function_single": 251, "irq_work": 246}
RESULTS = {"delivered": 0, "ignored": 1, "pending": 2, "overflow": 3, "truncated": 4}


def windowed(table):
    return rows(table, f"ts >= {FROM} AND ts < {TO}")


def text(value):
    """A text ends at NUL."""
    return value.replace("\0", "\u2400")


def identifiers(names):
    """The names of fields, without the `_` that readers take away."""
    taken = set()
    for name in names:
        plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in name or "_")
        found, n = plain, 2
        while found in taken:
            found, n = f"{plain}_{n}", n + 1
        taken.add(found)
        yield found


# What babeltrace2 reads.

ESCAPES = {"a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
TOKEN = re.compile(
    r'"(?P<string>(?:[^"\\]|\\.)*)"|(?P<hex>0x[0-9A-F]+)|(?P<number>-?[0-9.]+(?:e[-+][0-9]+)?|-?inf|-?nan)'
    r"|(?P<word>[A-Za-z_0-9<>]+)|(?P<mark>[{}(),=:])|\s+"
)


def tokens(line):
    at = 0
    while at < len(line):
        match = TOKEN.match(line, at)
        assert match, line[at:]
        at = match.end()
        if match.lastgroup == "string":
            plain = lambda m: chr(int(m[1], 16)) if m[1] else ESCAPES.get(m[2], m[2])
            yield "string", re.sub(r"\\(?:x([0-9a-f]{2})|(.))", plain, match["string"])
        elif match.lastgroup == "hex":
            yield "number", int(match["hex"], 16)
        elif match.lastgroup == "number":
            number = match["number"]
            yield "number", int(number) if re.fullmatch("-?[0-9]+", number) else float(number)
        elif match.lastgroup:
            yield match.lastgroup, match[match.lastgroup]


def structures(line):
    """`{ a = 1, b = "x" }, { … }` as dictionaries; an enumeration is its number and its label."""
    found, stream = [], list(tokens(line))
    i = 0
    while i < len(stream):
        assert stream[i] == ("mark", "{"), line
        fields, i = {}, i + 1
        while stream[i] != ("mark", "}"):
            name, (_, equals), (kind, value) = str(stream[i][1]), stream[i + 1], stream[i + 2]
            assert equals == "=", line
            i += 3
            if (kind, value) == ("mark", "("):
                label = stream[i][1] if stream[i][0] == "string" else None
                while stream[i] != ("word", "container"):
                    i += 1
                value, i = (stream[i + 2][1], label), i + 4
            assert name not in fields, line
            fields[name] = value
            i += stream[i] == ("mark", ",")
        found.append(fields)
        i += 1 + (stream[i + 1 : i + 2] == [("mark", ",")])
    return found


def read():
    """Events as (name, time, CPU, fields), and losses as (stream, count, from, to)."""
    # Without the host's name, which is not a field that can be named alone.
    command = ["babeltrace2", "--clock-seconds", "--no-delta", "--fields=loglevel", EXPORT]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    # Its times are those of day.
    offset = META["clock"]["realtime_offset_ns"]
    time = lambda seconds: int(seconds.replace(".", "")) - offset
    events, last = [], 0
    for line in done.stdout.split("\n")[:-1]:
        ts, name, context, fields = re.fullmatch(r"\[(-?[0-9.]+)\] (.*?): (\{ cpu_id = -?\d+ \}), (.*)", line).groups()
        assert last <= time(ts), "events are in order"
        last = time(ts)
        (packet,), parts = structures(context), structures(fields)
        events.append((name, last, packet["cpu_id"], {k: v for part in parts for k, v in part.items()}))
    losses = []
    for line in done.stderr.splitlines():
        lost = re.search(r"discarded (\d+) events? between \[([0-9.]+)\] and \[([0-9.]+)\].*/(\w+)\"", line)
        assert lost, line
        count, begin, end, stream = lost.groups()
        losses.append((stream, int(count), time(begin), time(end)))
    return events, losses


# What should be there.


def cpu_of():
    """Where a thread was when it began what is recorded with the CPU of its end: by the last switch before."""
    seen = defaultdict(list)
    for e in rows("sched_switch", f"ts < {TO} ORDER BY ts"):
        seen[e["prev_tid"]].append((e["ts"], None))
        seen[e["next_tid"]].append((e["ts"], e["cpu"]))

    def of(tid, ts, otherwise):
        last = bisect_left(seen[tid], (ts, -1), key=lambda s: (s[0], 0)) - 1
        cpu = seen[tid][last][1] if last >= 0 else None
        return otherwise if cpu is None else cpu

    return of


def kernel(threads):
    """Events of the kernel."""
    of = cpu_of()

    def interval(e, cpu, entry, entry_fields, exit, exit_fields):
        yield entry, e["ts"], cpu, entry_fields
        if e["ts"] + e["dur"] < TO:
            yield exit, e["ts"] + e["dur"], e["cpu"], exit_fields

    boolean = lambda is_true: (int(is_true), "true" if is_true else "false")
    for e in windowed("sched_switch"):
        fields = {
            "prev_comm": text(e["prev_comm"]), "prev_tid": e["prev_tid"], "prev_prio": e["prev_prio"],
            "prev_state": STATES[e["prev_state"]], "next_comm": text(e["next_comm"]), "next_tid": e["next_tid"],
            "next_prio": e["next_prio"], "preempted": boolean(e["prev_state"] == "R+"), "woken": boolean(e["prev_woken"]),
        }
        yield "sched_switch", e["ts"], e["cpu"], fields
    for e in windowed("sched_waking"):
        name = "sched_wakeup_new" if e["is_new"] else "sched_waking"
        comm = threads(e["pid"], e["tid"])
        yield name, e["ts"], e["cpu"], {"comm": comm, "tid": e["tid"], "prio": e["prio"], "target_cpu": e["target_cpu"]}
    for e in windowed("sched_migrate"):
        fields = {"comm": threads(e["pid"], e["tid"]), "tid": e["tid"], "orig_cpu": e["from_cpu"], "dest_cpu": e["to_cpu"]}
        yield "sched_migrate_task", e["ts"], e["cpu"], fields
    for e in windowed("task_events"):
        comm, tid = text(e["comm"]), e["tid"]
        name, fields = {
            # Its parent's thread is looked at by the caller.
            "fork": ("sched_process_fork", {"parent_pid": e["parent_pid"], "child_comm": comm, "child_tid": tid, "child_pid": e["pid"]}),
            "exec": ("sched_process_exec", {"filename": comm, "tid": tid}),
            "exit": ("sched_process_exit", {"comm": comm, "tid": tid}),
            "rename": ("task_rename", {"tid": tid, "newcomm": comm}),
        }[e["kind"]]
        yield name, e["ts"], e["cpu"], fields
    for e in windowed("irq"):
        name, number = e["name"], e["number"]
        vector = {"vector": VECTORS.get(name, number)}
        yield from interval(e, e["cpu"], *{
            "hard": ("irq_handler_entry", {"irq": number, "name": text(name)}, "irq_handler_exit", {"irq": number}),
            "soft": ("irq_softirq_entry", {"vec": number}, "irq_softirq_exit", {"vec": number}),
            "vector": (f"x86_irq_vectors_{visible(name)}_entry", vector, f"x86_irq_vectors_{visible(name)}_exit", vector),
        }[e["kind"]])
    for e in windowed("syscalls"):
        name, cpu = visible(e["name"]), of(e["tid"], e["ts"], e["cpu"])
        yield from interval(e, cpu, f"syscall_entry_{name}", {}, f"syscall_exit_{name}", {"ret": e["ret"]})
    for e in windowed("contention"):
        lock, cpu = e["lock"] % 2**64, of(e["tid"], e["ts"], e["cpu"])
        begin = {"lock_addr": lock, "flags": e["flags"], "kind": text(e["kind"])}
        yield from interval(e, cpu, "contention_begin", begin, "contention_end", {"lock_addr": lock})
    for e in windowed("page_faults"):
        fields = {"address": e["address"] % 2**64, "error_code": e["error"]}
        yield "x86_exceptions_page_fault_user", e["ts"], e["cpu"], fields
    for e in windowed("signals"):
        if e["kind"] == "generate":
            fields = {
                "sig": e["number"], "comm": threads(e["pid"], e["tid"]), "pid": e["tid"], "group": int(e["to_process"]),
                "result": RESULTS[e["result"]],
            }
            yield "signal_generate", e["ts"], e["cpu"], fields
        else:
            yield "signal_deliver", e["ts"], e["cpu"], {"sig": e["number"]}


def user(cpus):
    """Events of applications, with their arguments by name and type."""
    sites = {s["site"]: s for s in rows("sites")}
    names, symbols = {}, {}
    for n in rows("names"):
        label = n["text"] if n["kind"] == "name" else f"{n['text']}:{n['line']}"
        names.setdefault((n["source"], n["kind"]), {})[n["id"]] = visible(label)
    for s in rows("symbols"):
        place = s["symbol"]
        symbols.setdefault(s["pid"], {})[s["address"] % 2**64] = s
    for e in windowed("user_events"):
        fields = [("pid", e["pid"]), ("tid", e["tid"])]
        site = sites.get(e["site"])
        args = [arg.rpartition(":") for arg in site["args"].split(", ") if arg] if site else None
        if args is None:
            args = [(f"{c}{i}", ":", t) for i in range(6) for c, t in [("arg", "signed"), ("argf", "float"), ("argt", "str")]]
            columns = [f"{c}{i}" for i in range(6) for c in ["arg", "argf", "argt"]]
        else:
            columns = [("argf" if t[:5] == "float" else "argt" if t[:3] in ("str", "byt") else "arg") + str(i) for i, (_, _, t) in enumerate(args)]
        is_lock = site and site["kind"][:5] in ("lock_", "cond_", "wait_") and len(args) > 1 and not site["format"]
        for (name, _, kind), column in zip(args, columns):
            value, kind = e[column], kind.rstrip("?")
            if value is None:
                continue
            if kind in ("unsigned", "pointer"):
                value %= 2**64
            if kind == "bool":
                value = (value if 0 <= value <= 255 else 255, {0: "false", 1: "true"}.get(value))
            if isinstance(value, str):
                value = text(value)
            if is_lock and column == "arg1" and kind == "unsigned":
                parts = [(name, "place", value % 2**32), ("lock_name", "name", value >> 32)]
                for name, which, part in parts:
                    known = names.get((site["source"], which))
                    fields.append((name, (part, known.get(part)) if known else part))
                continue
            if is_lock and args[1][2] == "pointer" and column in ("arg0", "arg1") and e["pid"] in symbols:
                # How a symbol is put into words is the listing's.
                value = (value, value in symbols[e["pid"]])
            fields.append((name, value))
        context, payload = fields[:2], fields[2:]
        payload = zip(identifiers(name for name, _ in payload), (value for _, value in payload))
        cpu = e["cpu"] if 0 <= e["cpu"] < cpus else -1
        yield visible(e["event"]), e["ts"], cpu, dict(context) | dict(payload)
    for e in windowed("loss"):
        fields = {
            "pid": e["pid"], "tid": e["tid"], "origin": e["origin"], "what": text(e["what"]), "count": e["count"], "duration_ns": e["dur"],
        }
        yield "loss", e["ts"], -1, fields


def key(event):
    name, ts, cpu, fields = event
    def plain(value):
        """babeltrace2 prints six digits of a float, and -0 without its point."""
        if not isinstance(value, float):
            return value
        digits = f"{value + 0:g}"
        return int(digits) if re.fullmatch("-?[0-9]+", digits) else digits

    return name, ts, cpu, tuple(sorted((k, plain(v)) for k, v in fields.items()))


def environment():
    """What the trace says of itself; numbers, too, as babeltrace2 writes them."""
    command = ["babeltrace2", EXPORT, "--component=sink.text.details"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    at = next(i for i, line in enumerate(lines) if line.strip().startswith("Environment ("))
    count = int(re.search(r"\((\d+) entr", lines[at])[1])
    return dict(line.strip().split(": ", 1) for line in lines[at + 1 : at + 1 + count])


def main():
    newest = {(t["pid"], t["tid"]): t["name"] for t in rows("threads")}
    by_tid = {t["tid"]: t["name"] for t in rows("threads", "prio IS NOT NULL")}
    threads = lambda pid, tid: "idle" if tid == 0 else text(newest.get((pid, tid), by_tid.get(tid, "")))
    cpus = META["start"]["cpus"]

    events, losses = read()
    found, dumped, symbols = [], [], rows("symbols")
    current = {}
    for name, ts, cpu, fields in events:
        if name == "lttng_statedump_process_state":
            dumped.append((ts, fields))
            continue
        if name == "sched_process_fork":
            parent = fields.pop("parent_tid")
            if ts in current:
                assert parent == current[ts], f"{parent} forks at {ts}, {current[ts]} has the CPU"
        # A label of a symbol is compared by whether there is one.
        for k, v in fields.items():
            if k in ("lock", "caller", "condition") and isinstance(v, tuple):
                fields[k] = (v[0], v[1] is not None)
        found.append((name, ts, cpu, fields))
    expected = list(kernel(threads)) + list(user(cpus))
    # babeltrace2 2.0.4 shows an empty text as the last one that the field held.
    empty = {(name, ts, cpu, k) for name, ts, cpu, fields in expected for k, v in fields.items() if v == ""}
    for name, ts, cpu, fields in found:
        fields.update((k, "") for k in fields if (name, ts, cpu, k) in empty)
    compare("events", map(key, found), map(key, expected))

    # Who lived at the begin.
    begin = min((e[1] for e in events), default=None)
    tasks = rows("task_events", f"ts < {TO}")
    absent = {(t["pid"], t["tid"]) for t in tasks if t["kind"] == "fork" and t["ts"] >= begin or t["kind"] == "exit" and t["ts"] < begin}
    alive = {(t["pid"], t["tid"], text(t["name"])) for t in rows("threads", "tid > 0") if (t["pid"], t["tid"]) not in absent}
    assert {(f["pid"], f["tid"], f["name"]) for _, f in dumped} == (alive if events else set())
    assert all(ts == begin for ts, _ in dumped)

    # Each loss lies in an interval that the reader was told of, and the counts agree.
    lost = Counter()
    for e in windowed("loss"):
        stream = "kernel" if e["origin"].startswith("kernel") else "user"
        stream += f"_{e['cpu']}" if 0 <= e["cpu"] < cpus else "_unknown"
        lost[stream] += e["count"]
        told = [(a, b) for s, _, a, b in losses if s == stream and a <= e["ts"] and e["ts"] + e["dur"] <= b]
        assert told or not e["count"], f"{e} is in none of {losses}"
    told = Counter()
    for stream, count, _, _ in losses:
        told[stream] += count
    assert +told == +lost, f"{told} {lost}"

    # By these Trace Compass, and who else reads LTTng's traces, knows one of the kernel, and the names in it.
    lttng = {"domain": "kernel", "sysname": "Linux", "tracer_name": "lttng-modules", "tracer_major": "2", "tracer_minor": "13"}
    told = environment() if events else lttng
    assert lttng.items() <= told.items(), told
    names = len({name for name, *_ in found})
    print(f"{len(found)} events of {names} names and {sum(lost.values())} losses are as in the tables; {len(dumped)} threads")


main()
