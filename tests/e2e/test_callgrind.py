# SPDX-License-Identifier: MIT
"""An independent count: function by function, real programs have as many calls by valgrind's callgrind, which
executes every instruction itself, as graftrace records of them."""

import collections
import csv
import os
import re
import subprocess
from pathlib import Path

import pytest

from conftest import PATIENCE, ROOT

LUA = """local t = {} for i = 1, 500 do t[i] = (i * 7919) % 1009 end table.sort(t)
print(t[1], #t, ("x"):rep(5)) print(pcall(error, "m"))"""
PERL = """my $n = () = "foo bar " x 99 =~ /o/g; eval { die 5 }; print $n, $@; my %h; $h{$_ % 7} .= $_ for 1..200;
print map { length $h{$_} } sort keys %h;"""
BASH = """f() { local x=$1; echo $((x*2)); }; for i in 1 2 3 4 5; do f $i; done; a=(1 2 3)
echo ${a[@]/2/x} ${#a[@]}; [[ abc =~ b ]] && echo m; printf "%05d\\n" 42"""
SQL = """create table t(a, b); create index i on t(b); insert into t values(1, 2), (3, 4), (5, 'six');
select sum(a) from t where b like '%4'; select group_concat(a) from t where a > 1 and b < 9 and a < 4;"""
BUILT = ["-g", "-I" + str(ROOT), "-D_GNU_SOURCE", "-pthread", str(ROOT / "tests" / "programs" / "count.c")]

# A program: the object whose functions are compared (None: itself; else a glob of a library), and the words.
# A source is built, with the option behind it.
PROGRAMS = {
    "lua": (None, ["lua5.4", "-e", LUA]),
    "sqlite3": ("*libsqlite3*", ["sqlite3", ":memory:", SQL]),
    "throw": (None, ["throw.cc", "-O0", "catch"]),
    "words": (None, ["words.c", "-O1"]),
}
MORE = {
    "luajit": (None, ["luajit", "-joff", "-e", LUA]),
    "perl": (None, ["perl", "-e", PERL]),
    "bash": (None, ["bash", "-c", BASH]),
    "xz": ("*liblzma*", ["xz", "-c", "-3"]),
    "curl": ("*libcurl*", ["curl", "-s", f"file://{ROOT}/LICENSE"]),
    "jump": (None, ["jump.c", "-O1", "longjmp"]),
    "threads": (None, ["threads.c", "-O2", "serial", "50"]),
    "throw -O2": (None, ["throw.cc", "-O2", "catch"]),
}
if os.environ.get("GRAFTRACE_TEST_LONG"):
    PROGRAMS |= MORE

# What differs in every program: the start-up files' functions are not traced by default.
START_UP = {"_start", "_init", "_fini", "frame_dummy", "register_tm_clones", "deregister_tm_clones",
            "__do_global_dtors_aux"}
# What differs in one: (callgrind's calls, graftrace's), and why.
EXPLAINED = {
    # Its tail call of itself is a jump to its own first instruction: a loop in the moved code, and no call.
    ("sqlite3", "sqlite3WhereSplit"): (14, 10),
}


def environment(directory):
    """The same for both: what valgrind adds is in it, so that programs that read it do the same work."""
    plain = {"PATH": os.environ["PATH"], "HOME": str(directory), "LC_ALL": "C", "PERL_HASH_SEED": "0"}
    done = subprocess.run(["valgrind", "-q", "--tool=callgrind", "--callgrind-out-file=/dev/null", "env", "-0"],
                          env=plain, cwd=directory, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return plain, dict(word.split("=", 1) for word in done.stdout.split("\0") if word)


def by_callgrind(words, directory, variables, stdin):
    """The program's run, and calls by (object, function): each `calls=` line is of a caller and a callee."""
    out = directory / "callgrind.out"
    done = subprocess.run(
        ["valgrind", "-q", "--tool=callgrind", "--demangle=no", "--compress-strings=no", "--compress-pos=no",
         f"--callgrind-out-file={out}", *words], env=variables, stdin=stdin, capture_output=True, timeout=120,
        cwd=directory, check=False)
    calls = collections.Counter()
    where = callee_where = callee = None
    for line in out.read_text().splitlines():
        key, _, value = line.partition("=")
        if key == "ob":
            where = value
        elif key == "cob":
            callee_where = value
        elif key == "cfn":
            callee = value.split("'")[0]
        elif key == "calls":
            calls[callee_where or where, callee] += int(value.split()[0])
            callee_where = None
    return done, calls


def by_graftrace(graftrace, words, directory, variables, stdin, options):
    done = subprocess.run([graftrace.path, "record", "--no-demangle", "--no-fork", "-b", "256M", *options, "--", *words],
                          env=variables, stdin=stdin, capture_output=True, timeout=120, cwd=directory, check=False)
    assert b" 0 lost" in done.stderr, done.stderr
    calls = collections.Counter()
    for row in csv.DictReader(graftrace("report", "--format", "csv").stdout.splitlines()):
        calls[row["object"], row["function"]] += int(row["calls"])
    return done, calls


def addresses(path):
    """Functions by name, so that several names of one are one."""
    found = {}
    for options in ([], ["-D"]):
        done = subprocess.run(["nm", "--defined-only", *options, path], capture_output=True, text=True, check=False)
        for address, kind, name in (line.split()[:3] for line in done.stdout.splitlines()):
            if kind in "tTwWi":
                found.setdefault(name.split("@")[0], int(address, 16))
    return found


def of_object(calls, path, known):
    """Calls by address of one object's functions that have a name, and a name for each."""
    counts, names = collections.Counter(), {}
    for (where, name), count in calls.items():
        name = name.split("@")[0]
        if where and os.path.realpath(where) == path and name in known:
            counts[known[name]] += count
            names[known[name]] = name
    return counts, names


def library_of(program, glob):
    for line in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.splitlines():
        found = re.search(r"=> (\S*" + glob.strip("*") + r"\S*)", line)
        if found:
            return os.path.realpath(found.group(1))
    raise AssertionError(f"{program} is not linked with {glob}")


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_function_has_as_many_calls_as_callgrind_counts(graftrace, compile, tmp_path, name):
    glob, words = PROGRAMS[name]
    if words[0].endswith((".c", ".cc")):
        source = ROOT / "examples" / words[0] if words[0] == "words.c" else words[0]
        compiler = "g++" if words[0].endswith(".cc") else "gcc"
        words = [compile(source, words[1], *BUILT, compiler=compiler), *words[2:]]
    program = subprocess.run(["which", words[0]], capture_output=True, text=True, check=True).stdout.strip()
    path = library_of(program, glob) if glob else os.path.realpath(program)
    plain, variables = environment(tmp_path)
    words = [program, *words[1:]]
    with open(ROOT / "LICENSE") as first, open(ROOT / "LICENSE") as second:
        one, by_valgrind = by_callgrind(words, tmp_path, plain, first)
        other, recorded = by_graftrace(graftrace, words, tmp_path, variables, second, ["--lib", glob] if glob else [])
    assert (one.returncode, one.stdout) == (other.returncode, other.stdout)
    known = addresses(path)
    expected, names = of_object(by_valgrind, path, known)
    found, found_names = of_object(recorded, path, known)
    names |= found_names
    wrong, equal = [], 0
    for address in expected | found:
        function, both = names[address], (expected[address], found[address])
        if both[0] == both[1]:
            equal += both[0]
        elif function in START_UP and both[1] == 0 or re.search(r"\.cold$", function) and both[1] == 0:
            continue  # a `.cold` part is jumped to, and is no function
        elif EXPLAINED.get((name, function)) != both:
            wrong.append(f"{function}: {both[0]} by callgrind, {both[1]} recorded")
    assert not wrong, "; ".join(sorted(wrong)[:20])
    assert equal > 40, f"only {equal} calls were compared"
