# SPDX-License-Identifier: MIT
"""How many functions of packaged programs can be traced as they are, file by file, and uftrace's
dynamic mode on the same programs: coverage, correctness and slowdown."""

import csv
import glob
import io
import re
import subprocess
import time
from collections import Counter

from measure import (GRAFTRACE, PROGRAMS, ROUNDS, SCRATCH, Failed, lua, main, median, remove, run,
                     say)

# What cannot be taken though nobody's rule says that it should be left alone.
MISSING = ("shorter", "a jump leads", "calls within", "own loop", "no instructions", "its end",
           "goes on", "cannot be moved", "needed for the patch", "two pages", "needs a breakpoint")
ALONE = ("part of another function", "linkage stub", "IFUNC", "dynamic loader", "runs before or after",
         "is padding", "own call for tracers", "returned to from a signal", "no section of code")

SQL = ("create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where "
       "x < 20000) insert into t select x, x * 7 % 1000 from c; select sum(a), count(distinct b) "
       "from t; select b, count(*) from t group by b order by 2 desc, 1 limit 3;")
SHELL = ("f() { local x=$1; echo ${x//a/b}; }; for i in {1..3000}; do y=$((i * 3)); [[ $y =~ 99 ]] && "
         "f a$y; done; (exit 3); echo $?; trap 'echo bye' EXIT")
PERL = ("my %h; $h{$_ % 97} .= chr(65 + $_ % 26) for 1..60000; print join(',', map { length $h{$_} } "
        "sort { $a <=> $b } keys %h), qq{\\n}; eval { die qq{x\\n} }; print $@;")
PYTHON = ("import json, re\ntext = json.dumps([{str(i): [i, i / 3, None]} for i in range(4000)])\n"
          "print(len(json.loads(text)), len(re.findall(r'(\\d+)\\.\\d*', text)))")


def program_of(name):
    found = subprocess.run(["sh", "-c", f"command -v {name}"], capture_output=True, text=True,
                           env={"PATH": "/usr/bin:/usr/sbin:/bin:/usr/lib/postgresql/15/bin"})
    return found.stdout.strip()


def cc1():
    return subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True,
                          text=True).stdout.strip()


def programs():
    paths = [program_of(name) for name in (
        "sqlite3", "python3", "lua5.4", "zstd", "xz", "bash", "perl", "gcc", "redis-server",
        "nginx", "git")]
    paths += [cc1(), program_of("as"), program_of("ld")]
    paths += glob.glob("/usr/lib/postgresql/*/bin/postgres")
    return [path for path in paths if path.startswith("/")]


def functions(*words):
    """{object: {address: (traced, reason)}}"""
    listing, _ = run([GRAFTRACE, "functions", "--format", "csv", *words], timeout=300)
    found = {}
    for row in csv.DictReader(io.StringIO(listing)):
        found.setdefault(row["object"], {})[row["address"]] = row["traced"], row["reason"]
    return found


def count(listed):
    """(can be traced, cannot) of one object's functions; what is left alone is in neither."""
    taken = sum(traced != "no" for traced, _ in listed.values())
    missing = sum(traced == "no" and any(word in reason for word in MISSING)
                  for traced, reason in listed.values())
    return taken, missing


def unprepared_functions():
    objects = {}
    files = programs()
    for path in files:
        objects.update(functions("--libs", path))
    counts = {path: count(listed) for path, listed in objects.items()}
    taken = sum(one[0] for one in counts.values())
    missing = sum(one[1] for one in counts.values())
    reasons = Counter(reason for listed in objects.values() for traced, reason in listed.values()
                      if traced == "no")
    said = "; ".join(f"{number} {reason}" for reason, number in reasons.most_common()
                     if any(word in reason for word in MISSING))
    alone = sum(number for reason, number in reasons.items() if any(w in reason for w in ALONE))
    say("functions of programs and their libraries that can be traced as they are", "≥ 99.9",
        100 * taken / (taken + missing), "%", f"{taken + missing} functions of {len(objects)} files; "
        f"cannot: {said}; {alone} are parts of others, linkage stubs, IFUNC resolvers, the loader's, "
        "start-up code")
    share, least = min((100 * one[0] / sum(one), path) for path, one in counts.items() if sum(one))
    say("the same, the file with the least", "≥ 99.5", share, "%",
        f"{least.rsplit('/', 1)[-1]}: {counts[least][1]} of {sum(counts[least])} cannot")


def with_breakpoints():
    taken = missing = 0
    for path in programs():
        for listed in functions("--breakpoints", "--libs", path).values():
            one = count(listed)
            taken, missing = taken + one[0], missing + one[1]
    say("the same, with --breakpoints", "100", 100 * taken / (taken + missing), "%",
        f"{missing} of {taken + missing} cannot (libraries counted with each program)")


def small_builds():
    for compiler in ("gcc", "clang"):
        program = lua(f"lua_os_{compiler}", "-Os", compiler=compiler)
        taken, missing = count(functions(program)[str(program)])
        say(f"the same, Lua built by {compiler} -Os", "≥ 99", 100 * taken / (taken + missing), "%",
            f"{missing} of {taken + missing} cannot")


# Program, arguments, what is run.
WORK = [
    ("lua5.4", [PROGRAMS / "work.lua", "1"]),
    ("sqlite3", [":memory:", SQL]),
    ("bash", ["-c", SHELL]),
    ("perl", ["-e", PERL]),
    ("python3", ["-c", PYTHON]),
    ("xz", ["-1", "-k", "-c", "input"]),
    ("zstd", ["-5", "-q", "-c", "input"]),
    ("git", ["--no-pager", "help", "-a"]),
]


def timed(words):
    """(seconds, exit code, standard output), or None: it did not end."""
    begin = time.perf_counter()
    try:
        done = subprocess.run([str(word) for word in words], cwd=SCRATCH, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=120)
    except subprocess.TimeoutExpired:
        return None
    return time.perf_counter() - begin, done.returncode, done.stdout, done.stderr


def verdict(run_, plain):
    if run_ is None:
        return "did not end"
    if run_[1] != plain[1]:
        return f"ended with {run_[1]} instead of {plain[1]}"
    return "same output" if run_[2] == plain[2] else "other output"


def calls_of(text):
    found = re.search(r"([\d,]+) calls?,", text)
    return found.group(1) if found else "?"


def beside_uftrace():
    (SCRATCH / "input").write_bytes(GRAFTRACE.read_bytes() * 2)
    rounds = max(1, min(ROUNDS, 3))
    for name, arguments in WORK:
        path = program_of(name)
        if not path:
            raise Failed(f"{name} is not there (make setup installs it)")
        ours, peers = SCRATCH / "coverage.data", SCRATCH / "coverage.uftrace"
        times = {"plain": [], "ours": [], "peers": []}
        for _ in range(rounds):
            plain = timed([path, *arguments])
            own = timed([GRAFTRACE, "record", "--no-libcall", "-o", ours, "--", path, *arguments])
            remove(peers)
            peer = timed(["uftrace", "record", "-v", "--force", "--no-event", "--no-libcall", "-P",
                          ".", "-d", peers, path, *arguments])
            for key, one in (("plain", plain), ("ours", own), ("peers", peer)):
                times[key].append(one[0] if one else 120)
        listed = functions(path)[path]
        taken, missing = count(listed)
        patched = re.search(rb"patched: +(\d+)", peer[3] if peer else b"")
        share = 100 * int(patched.group(1)) / (taken + missing) if patched else 0
        slow = {key: median(times[key]) / median(times["plain"]) for key in ("ours", "peers")}
        say(f"{name} as packaged: functions traced, of all", "≥ 99.5",
            100 * taken / (taken + missing), "%",
            f"{taken} of {taken + missing}; {verdict(own, plain)}, {calls_of(own[3].decode())} "
            f"calls, whole command × {slow['ours']:.1f}. uftrace -P . : {share:.0f} %, "
            f"{verdict(peer, plain)}, × {slow['peers']:.1f}")


if __name__ == "__main__":
    main(unprepared_functions, with_breakpoints, small_builds, beside_uftrace)
