"""What `ft-agent fleet` says, recomputed from the rows of the traces' own tables, none of them histograms.

usage: fleet.py AGENT CATALOGUE

Of the traces of the catalogue one is damaged. Prints how many figures were compared; ends with an error at the first
that is not as it should be. Student's distribution is SciPy's, and the dealing out of traces to hosts NumPy's.
"""

import html.parser
import json
import math
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import duckdb
import numpy as np
from scipy import stats

AGENT, CATALOGUE = sys.argv[1], Path(sys.argv[2])

# Each quantity's rows: what they are of, whose they are, and who had the CPU meanwhile.
ROWS = {
    "hold": ("critical_sections", "lock_name", "place", "NULL", "preemptor_tid", "preemptor_comm"),
    "wait": ("lock_waits", "lock_name", "place", "comm", "NULL", "NULL"),
    "dispatch": ("dispatch_latency", "''", "''", "comm", "running_tid", "running_comm"),
    "gap": ("gaps", "coalesce(cause, '')", "''", "comm", "culprit_tid", "culprit"),
    "scope": ("scopes", "event", "''", "comm", "preemptor_tid", "preemptor_comm"),
    "request": ("requests", "kind", "''", "end_comm", "NULL", "NULL"),
}

# How far two estimates of a probability of 5 %, of 2,000 and of 20,000 dealings, can be from each other: six standard deviations.
DEALT = 0.035

figures = 0


def check(name, found, expected, near=0.0):
    """One figure."""
    global figures
    figures += 1
    is_same = found == expected
    if not is_same and near and found is not None and expected is not None:
        is_same = math.isclose(found, expected, rel_tol=near, abs_tol=1e-9)
    assert is_same, f"{name}: {found} and not {expected}"


def agent(*args):
    done = subprocess.run([AGENT, *args], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fleet(*args):
    document = json.loads(agent("fleet", str(CATALOGUE), *args, "--json"))
    return {"head": document["trace"], **{name: section["values"] for name, section in document["sections"].items()}}


def members():
    """The traces that have results, by their paths, with what the catalogue says of them."""
    columns = "host, kernel, start_ns, labels, lost, path"
    rows = duckdb.sql(f"SELECT {columns} FROM '{CATALOGUE}/traces/*.parquet' ORDER BY path").fetchall()
    known = [dict(zip(columns.split(", "), row)) for row in rows]
    for member in known:
        member["labels"] = json.loads(member["labels"])
        member["hour"] = f"{member['start_ns'] // 3_600_000_000_000 % 24:02}:00"
    return {m["path"]: m for m in known if (CATALOGUE / m["path"] / "analysis.json").exists()}


def intervals(member, quantity):
    """All of one trace."""
    trace = CATALOGUE / member["path"]
    table, name, place, comm, tid, beside = ROWS[quantity]
    of = "end_" if quantity == "request" else ""
    if not list((trace / table).glob("*.parquet")):
        return []
    comms = {(pid, tid): name for pid, tid, name in duckdb.sql(f"SELECT pid, tid, name FROM '{trace}/threads/*.parquet'").fetchall()}
    query = f"SELECT {name}, {place}, {comm}, {tid}, {beside}, {of}pid, {of}tid, ts, dur, mark FROM '{trace}/{table}/*.parquet'"
    found = []
    for name, place, comm, beside_tid, beside, pid, tid, ts, dur, mark in duckdb.sql(query).fetchall():
        comm = comms.get((pid, tid), "") if comm is None else comm
        if quantity in ("hold", "wait") and re.fullmatch("0x[0-9a-f]+", name):
            name = "(unnamed)"
        neighbour = "swapper" if beside_tid == 0 else beside if beside_tid is not None and beside else "(nobody, or not known)"
        found.append({"subject": (name, place) if name else (comm, ""), "thread": comm, "neighbour": neighbour, "ts": ts,
                      "tid": tid, "dur": dur, "mark": mark, **{k: member[k] for k in ("path", "host", "kernel", "hour", "labels")}})
    return found


def nearest_rank(lengths, per_mille):
    """None where only the longest would be left."""
    if len(lengths) * (1000 - per_mille) < 1000:
        return None
    return sorted(lengths)[-(-len(lengths) * per_mille // 1000) - 1]


def tail(lengths):
    """The 99th percentile as a histogram tells it: the upper bound of its bucket, of which each power of two from 64 on has 32."""
    right = nearest_rank(lengths, 990)
    if right is None:
        return None
    width = 1 if right < 64 else 2 ** (right.bit_length() - 6)
    return min(max(lengths), right // width * width + width - 1)


def check_line(what, line, rows):
    """A line of a table over all traces."""
    lengths = [row["dur"] for row in rows if row["mark"] != "censored"]
    marks = {"exact": "exact", "disturbed": "disturbed", "lower bound": "lower_bounds", "censored": "censored"}
    for mark, key in marks.items():
        check(f"{what} {key}", line.get(key, 0), sum(row["mark"] == mark for row in rows))
    check(f"{what} sum", line["sum_ns"], sum(lengths))
    check(f"{what} max", line["max_ns"], max(lengths, default=0))
    for key, per_mille in (("p50_ns", 500), ("p99_ns", 990), ("p999_ns", 999)):
        right, told = nearest_rank(lengths, per_mille), line[key]
        if right is None:
            check(f"{what} {key}", told, None)
        else:
            check(f"{what} {key} {told} of {right}", right <= told <= right * (1 + 1 / 32), True)
    if "worst_ts" in line:
        check(f"{what} hosts", line["hosts"], len({row["host"] for row in rows}))
        longest = {(r["path"], r["ts"], r["tid"]) for r in rows if r["mark"] != "censored" and r["dur"] == line["max_ns"]}
        told = (line["worst_trace"], line["worst_ts"], line["worst_tid"])
        check(f"{what} longest {told}", told in longest if longest else told == (None, None, None), True)


def grouped(rows, of):
    groups = defaultdict(list)
    for row in rows:
        groups[of(row)].append(row)
    return groups


def means(rows, statistic):
    """Logarithms of each subject's statistic in each trace; subjects of three traces or more."""
    found = defaultdict(dict)
    for (subject, path), of in grouped(rows, lambda row: (row["subject"], row["path"])).items():
        lengths = [row["dur"] for row in of if row["mark"] != "censored"]
        value = statistic(lengths) if lengths else None
        if value:
            found[subject][path] = math.log(value)
    return {subject: of for subject, of in found.items() if len(of) >= 3}


def statistics(values, hosts, host_of):
    """Student's statistic of every subject and host against all others, and the difference of the means."""
    found = {}
    for subject, row in enumerate(values):
        for host in range(hosts):
            is_there = ~np.isnan(row)
            own, others = row[is_there & (host_of == host)], row[is_there & (host_of != host)]
            if len(own) >= 1 and len(others) >= 2:
                within = ((own - own.mean()) ** 2).sum() + ((others - others.mean()) ** 2).sum()
                error = math.sqrt(within / (len(own) + len(others) - 2) * (1 / len(own) + 1 / len(others)))
                by = own.mean() - others.mean()
                found[subject, host] = (by / max(error, 1e-12) if by else 0.0, by)
    return found


def check_outliers(section, of_traces, known):
    hosts = sorted({member["host"] for member in known.values()})
    paths = list(known)
    subjects = sorted(of_traces)
    values = np.array([[of_traces[subject].get(path, math.nan) for path in paths] for subject in subjects])
    host_of = np.array([hosts.index(known[path]["host"]) for path in paths])
    seen = statistics(values, len(hosts), host_of)
    rng = np.random.default_rng(1)
    largest = dealt(values, len(hosts), host_of, rng, 20_000)
    told = {}
    for line in section:
        at = (subjects.index((line["name"], line["place"])), hosts.index(line["host"]))
        t, by = seen[at]
        told[at] = abs(t)
        check(f"{line} change", line["change"], math.expm1(by), 1e-6)
        p = (largest >= abs(t) * (1 - 1e-9)).mean()
        check(f"{line} p {p}", abs(line["p"] - p) < DEALT, True)
    for at, (t, _) in seen.items():
        p = (largest >= abs(t) * (1 - 1e-9)).mean()
        check(f"{subjects[at[0]]} on {hosts[at[1]]} p {p}", at in told or p > 0.05 - DEALT, True)


def dealt(values, hosts, host_of, rng, times):
    """The largest statistic of each dealing, all dealings at once."""
    largest = np.zeros(times)
    hands = np.array([rng.permutation(host_of) for _ in range(times)])
    for row in values:
        is_there = ~np.isnan(row)
        of, value = hands[:, is_there], row[is_there] - row[is_there].mean()
        total, n = (value**2).sum(), len(value)
        for host in range(hosts):
            own = of == host
            count, sums = own.sum(axis=1), (own * value).sum(axis=1)
            ok = (count >= 1) & (n - count >= 2)
            a, b = np.where(ok, count, 1), np.where(ok, n - count, 2)
            rest = value.sum() - sums
            by = sums / a - rest / b
            within = np.maximum(total - sums**2 / a - rest**2 / b, 0)
            error = np.maximum(np.sqrt(within / (n - 2) * (1 / a + 1 / b)), 1e-12)
            largest = np.maximum(largest, np.where(ok & (by != 0), np.abs(by) / error, 0))
    return largest


def effect(a, b):
    """Random effects over hosts: DerSimonian and Laird, with Hartung and Knapp's interval. `a` and `b` are values by host."""
    both = [host for host in a if host in b]
    if len(both) < 2:
        return None
    sides = [np.array(side[host]) for host in both for side in (a, b)]
    freedom = sum(len(side) - 1 for side in sides)
    within = sum(((side - side.mean()) ** 2).sum() for side in sides) / freedom if freedom else 0.0
    by = np.array([np.mean(b[host]) - np.mean(a[host]) for host in both])
    if within > 0:
        variance = np.array([within * (1 / len(a[host]) + 1 / len(b[host])) for host in both])
        w = 1 / variance
        q = (w * (by - (w * by).sum() / w.sum()) ** 2).sum()
        between = max(0.0, (q - (len(both) - 1)) / (w.sum() - (w**2).sum() / w.sum()))
        w = 1 / (variance + between)
    else:
        between, w = by.var(ddof=1), np.ones(len(both))
    mean = (w * by).sum() / w.sum()
    error = math.sqrt((w * (by - mean) ** 2).sum() / (len(both) - 1) / w.sum())
    student = stats.t(len(both) - 1)
    p = 2 * student.sf(abs(mean) / error) if error else float(mean == 0)
    reach = student.ppf(0.975) * error
    return {"hosts": len(both), "change": math.expm1(mean), "interval": [math.expm1(mean - reach), math.expm1(mean + reach)],
            "between_hosts": math.sqrt(between), "p": p}


def holm(p):
    """Adjusted so that the chance of any false answer is that of one."""
    least, adjusted = 0.0, {}
    for rank, (row, own) in enumerate(sorted(p.items(), key=lambda item: item[1])):
        least = max(least, min(1.0, own * (len(p) - rank)))
        adjusted[row] = least
    return adjusted


def check_compared(section, rows, known, label, values):
    expected = {}
    for what, statistic in (("mean", np.mean), ("p99", tail)):
        for subject, of_traces in means(rows, statistic).items():
            sides = []
            for value in values:
                side = defaultdict(list)
                for path, number in of_traces.items():
                    if known[path]["labels"].get(label) == value:
                        side[known[path]["host"]].append(number)
                sides.append(side)
            found = effect(*sides)
            if found:
                expected[(*subject, what)] = found
    adjusted = holm({row: of["p"] for row, of in expected.items()})
    check("comparisons", {(l["name"], l["place"], l["what"]) for l in section}, set(expected))
    for line in section:
        right = expected[line["name"], line["place"], line["what"]]
        check(f"{line} hosts", line["hosts"], right["hosts"])
        for key in ("change", "between_hosts"):
            check(f"{line} {key}", line[key], right[key], 1e-6)
        for end in (0, 1):
            check(f"{line} interval", line["interval"][end], right["interval"][end], 1e-6)
        check(f"{line} p", line["p"], adjusted[line["name"], line["place"], line["what"]], 1e-6)
        check(f"{line} differs", line["differs"], line["p"] <= 0.05)
    check("the least likely first", [line["p"] for line in section], sorted(line["p"] for line in section))


class Cells(html.parser.HTMLParser):
    """The texts of a page's cells, and what they link to."""

    def __init__(self):
        super().__init__()
        self.rows, self.is_in, self.links = [], False, {}

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")
            self.is_in = True
        # A name that is shown in part.
        if tag == "bdi" and self.is_in:
            self.rows[-1][-1] += dict(attrs).get("title") or ""
        if tag == "a" and self.is_in:
            self.href = dict(attrs)["href"]
            self.links[self.href] = self.rows[-1]

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.is_in = False

    def handle_data(self, data):
        if self.is_in:
            self.rows[-1][-1] += data


def check_links(lines):
    """Of two traces there are pages, and whatever is in these links to them."""
    file = CATALOGUE.parent / "a page.html"
    agent("fleet", str(CATALOGUE), "--html", str(file), "--pages", "2")
    page = Cells()
    page.feed(file.read_text())
    links = {href: row for href, row in page.links.items() if ".html" in href}
    files = {href.split("#")[0] for href in links}
    check("pages", len(files), 2)
    check("what a URL may hold", {name.split("/")[0] for name in files}, {"a%20page.html.traces"})
    first = lines[0]
    found = False
    for href, row in links.items():
        name, place = href.split("#at=")
        [trace] = [path for path in {line["worst_trace"] for line in lines} if path and any(path in cell for cell in row)]
        check("the page of the trace", name.endswith(trace.split("trace=")[1] + ".html"), True)
        text = (CATALOGUE.parent / name.replace("%20", " ")).read_text()
        check("it has a timeline", "</html>" in text or "<svg" in text or "<canvas" in text, True)
        start = json.loads((CATALOGUE / trace / "meta.json").read_text())["start"]["start_ns"]
        begin, rest = place.split("-", 1)
        end, tid = rest.split("&tid=")
        told = {(line["worst_ts"] - start, line["worst_tid"], line["max_ns"]) for line in lines if line["worst_trace"] == trace}
        check("the interval", (int(begin), int(tid), int(end) - int(begin)) in told, True)
        found |= first["name"] in row[0]
    check("the worst has a link", found, True)


def check_shown(lines, args):
    """Text and page have the lines that JSON has: name, number, hosts, and where the longest is."""
    text = agent("fleet", str(CATALOGUE), *args).splitlines()
    file = CATALOGUE.parent / "fleet.html"
    agent("fleet", str(CATALOGUE), *args, "--html", str(file))
    page = Cells()
    page.feed(file.read_text())
    for line in lines[:10]:
        count = line["exact"] + line.get("disturbed", 0) + line["lower_bounds"]
        shown = [row.split() for row in text if line["name"].split()[0] in row and f"{count:,}" in row.split()]
        check(f"text has {line['name']} with {count:,} on {line['hosts']}", any(str(line["hosts"]) in row for row in shown), True)
        cells = [row for row in page.rows if any(line["name"] in cell for cell in row) and f"{count:,}" in row]
        check(f"page has {line['name']} with {count:,} on {line['hosts']}", any(str(line["hosts"]) in row for row in cells), True)
        if line["worst_trace"]:
            # The ends of a path that is too long for a line of text are there.
            name, ts = line["worst_trace"][-16:], str(line["worst_ts"])
            check(f"text says where {line['name']} is", any(name in row and ts in row.split() for row in text), True)
            told = [row for row in page.rows if ts in row]
            check(f"page says where {line['name']} is", any(line["worst_trace"] in cell for row in told for cell in row), True)


def main():
    known = members()
    assert len(known) == 15 and len({member["host"] for member in known.values()}) == 4
    differing = 0
    for quantity in ROWS:
        rows = [row for member in known.values() for row in intervals(member, quantity)]
        assert rows, quantity
        sections = fleet("--of", quantity, "--compare", "build=1.4,1.5")
        head = sections["head"]
        check("traces", (head["traces"], head["hosts"], len(head["not_read"])), (15, 4, 1))
        check("lost", head["lost"], sum(member["lost"] for member in known.values()))
        check_line(f"all {quantity}", head, rows)
        subjects = grouped(rows, lambda row: row["subject"])
        check(quantity, {(line["name"], line.get("place", "")) for line in sections["worst"]}, set(subjects))
        for line in sections["worst"]:
            check_line(f"{quantity} {line['name']}", line, subjects[line["name"], line.get("place", "")])
        sums = [line["sum_ns"] for line in sections["worst"]]
        check("most first", sums, sorted(sums, reverse=True))
        of_means = means(rows, np.mean)
        check_outliers(sections["hosts"], of_means, known)
        differing += len(sections["hosts"])
        check_compared(sections["compared"], rows, known, "build", ["1.4", "1.5"])
        check_shown(sections["worst"], ["--of", quantity])
        if quantity == "hold":
            check_links(sections["worst"])
        for by in ("host", "kernel", "hour", "thread", "neighbour", "build", "ring"):
            if by == "neighbour" and quantity in ("wait", "request"):
                continue
            told = fleet("--of", quantity, "--by", by)["by"]
            of = (lambda row: row["labels"].get(by, "(none)")) if by in ("build", "ring") else (lambda row: row[by])
            groups = grouped(rows, of)
            check(f"{quantity} by {by}", {line["name"] for line in told}, set(groups))
            for line in told:
                check_line(f"{quantity} by {by} {line['name']}", line, groups[line["name"]])
        if quantity == "dispatch":
            neighbours = {row["neighbour"] for row in rows}
            assert len(neighbours) > 5 and "swapper" in neighbours, neighbours
    refused = subprocess.run([AGENT, "fleet", str(CATALOGUE), "--of", "wait", "--by", "neighbour"], capture_output=True, text=True)
    check("neighbours of waits", (refused.returncode != 0, "names no thread that had the CPU" in refused.stderr), (True, True))
    print(f"{figures:,} figures of {len(known)} traces, {differing} that differ among them")


main()
