# SPDX-License-Identifier: MIT
"""Runs one made program plain and traced in every way, and says what differs: output, exit status, counts of
calls, code that is not its own again, processes left behind, hangs."""

import array
import collections
import csv
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

COUNTS = 4096
HANG_S = 60
# What graftrace may say of its own about a crash that the program has untraced, too.
CRASH = re.compile(r"^graftrace: process \d+ died of .*\n(?:  .*\n)*", re.M)
ALL_COUNTED = "a[0-9]*_*"


class Failure(Exception):
    """What came out otherwise than it must."""


def free_port(chance):
    for _ in range(100):
        port = chance.randrange(20000, 32768)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise OSError("no port is free")


def members(session):
    """The processes of a session, as (pid, state), without zombies."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(name))
    return found


def look_at(pid):
    """What a process that does not end stands in."""
    text = f"==== process {pid}\n"
    for name in ("cmdline", "wchan", "syscall", "stack", "status"):
        try:
            text += f"-- {name}\n{Path(f'/proc/{pid}/{name}').read_bytes().decode(errors='replace')}\n"
        except OSError as error:
            text += f"-- {name}: {error}\n"
    try:
        done = subprocess.run(["gdb", "-nx", "-p", str(pid), "--batch", "-ex", "thread apply all bt 30"],
                              capture_output=True, text=True, errors="replace", timeout=120,
                              stdin=subprocess.DEVNULL, check=False)
        text += done.stdout[-20000:] + done.stderr[-2000:]
    except (OSError, subprocess.TimeoutExpired) as error:
        text += f"gdb: {error}\n"
    return text


class Started:
    """A command in a session of its own; its output goes to files of the case's directory."""

    def __init__(self, case, label, words, stdin=subprocess.DEVNULL, **environment):
        self.case = case
        self.label = label
        self.words = [str(word) for word in words]
        case.log(f"{label}: {' '.join(self.words)}")
        with open(case.path(f"{label}.out"), "wb") as out, open(case.path(f"{label}.err"), "wb") as err:
            self.process = subprocess.Popen(self.words, cwd=case.directory, stdin=stdin, stdout=out,
                                            stderr=err, start_new_session=True,
                                            env={**os.environ, **environment})
        self.pid = self.process.pid

    def release(self):
        """Its standard input ends: a program of endless rounds ends with this one."""
        self.process.stdin.close()

    def look(self):
        """Notes where each of its processes stands."""
        with open(self.case.path(f"{self.label}.hang"), "w") as hang:
            for pid in members(self.pid):
                hang.write(look_at(pid))

    def wait(self, limit_s=HANG_S):
        """Returns its status; a hang is told with stacks, and ended. So is whatever it left behind."""
        try:
            status = self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.look()
            self.end()
            raise Failure(f"{self.label} has not ended after {limit_s} s (see {self.label}.hang)") from None
        end = time.monotonic() + 5
        while members(self.pid):
            if time.monotonic() > end:
                self.look()
                self.end()
                raise Failure(f"{self.label} left processes behind (see {self.label}.hang)")
            time.sleep(0.01)
        return status

    def end(self):
        for pid in members(self.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()

    def out(self):
        return self.case.path(f"{self.label}.out").read_text(errors="replace")

    def err(self):
        return self.case.path(f"{self.label}.err").read_text(errors="replace")


class Result:
    """How the program ended, what it printed, what it counted."""

    def __init__(self, status, out, err, counts=None):
        self.status = status
        self.out = out
        self.err = err
        self.counts = counts

    def differs(self, other):
        if self.status != other.status:
            return f"ended with {other.status}, plain with {self.status}"
        if self.out != other.out:
            return f"printed {other.out[-300:]!r}, plain {self.out[-300:]!r}"
        if self.err != other.err:
            return f"wrote {other.err[-600:]!r} to stderr, plain {self.err[-300:]!r}"
        return None


class Case:
    """One program in a directory, with the runs of it."""

    def __init__(self, program, seed, directory, build):
        self.program = program
        self.seed = seed
        self.directory = directory
        self.graftrace = build / "cli" / "graftrace"
        self.attached = 0
        self.refused = 0
        self.seconds = {}
        self.places = None
        self.refused_entries = set()

    def path(self, name):
        return self.directory / name

    def log(self, text):
        with open(self.path("commands.txt"), "a") as log:
            log.write(text + "\n")

    def make(self):
        self.program.write(self.directory)
        self.log(self.program.describe())
        for command in self.program.commands():
            self.log("build: " + " ".join(command))
            done = subprocess.run(command, cwd=self.directory, capture_output=True, text=True, timeout=900,
                                  check=False)
            if done.returncode != 0:
                raise Failure(f"{' '.join(command)}\n{done.stderr[-2000:]}")
        # One entry in a thousand; nearby there is no room for a short jump. Nothing else is accepted.
        listing = subprocess.run([self.graftrace, "functions", self.path("program")], capture_output=True, text=True,
                                 timeout=120, check=False).stdout
        self.refused_entries = set(re.findall(r" (\w+)(?:\(.*\))?  \(its first bytes lie on two pages", listing))

    def counts_of(self, label):
        """The counts that the runs with this label made, by the functions' names; what is inexact."""
        path = self.path(f"{label}.counts")
        numbers = array.array("L", path.read_bytes() if path.exists() else bytes(8 * COUNTS))
        return dict(zip(self.program.names, numbers[1:])), numbers[0]

    def start(self, label, words, stdin=subprocess.DEVNULL):
        self.path(f"{label}.counts").unlink(missing_ok=True)
        return Started(self, label, words, stdin, TORTURE_COUNTS=str(self.path(f"{label}.counts")))

    def plain(self, label, rounds):
        started = self.start(label, [self.path("program"), rounds])
        status = started.wait()
        return Result(status, started.out(), started.err(), self.counts_of(label))

    def traced(self, label, tracer_words, rounds, meanwhile=None):
        """Runs the program below graftrace, until `meanwhile` is done where that is given. Returns the result
        and what graftrace said itself."""
        started = self.start(label, [self.graftrace, *tracer_words, "--", self.path("program"), rounds],
                             stdin=subprocess.PIPE if meanwhile else subprocess.DEVNULL)
        if meanwhile:
            try:
                meanwhile(started)
                started.release()
            except BaseException:
                started.look()
                started.end()
                raise
        status = started.wait()
        lines = CRASH.sub("", started.err()).splitlines(keepends=True)
        said = "".join(line for line in lines if line.startswith("graftrace"))
        rest = "".join(line for line in lines if not line.startswith("graftrace"))
        return Result(status, started.out(), rest, self.counts_of(label)), said

    # Counts of calls

    def calls_in(self, text):
        calls = {}
        for row in csv.DictReader(text.splitlines()):
            name = row["function"].split(" [")[0]
            if ")::" not in name:  # a lambda's is its own
                name = name.split("(")[0]
            calls[name] = calls.get(name, 0) + int(row["calls"])
        return calls

    def report(self, data):
        done = subprocess.run([self.graftrace, "report", "--format", "csv", data], cwd=self.directory,
                              capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise Failure(f"graftrace report {data}: {done.returncode}, {done.stderr[-500:]}")
        return self.calls_in(done.stdout)

    def compare(self, result, calls, lost, refused=()):
        """made = recorded + lost, function by function where nothing was lost."""
        counted, inexact = result.counts
        program = self.program
        partial = program.partial | self.refused_entries | set(refused)
        if not any(counted.values()):
            raise Failure("the program counted nothing")
        if program.is_stripped:
            return  # the recording has no names
        wrong, room = [], 0
        for name, made in counted.items():
            slack = inexact if name in program.loose else 0
            room += slack
            found = calls.get(name, 0)
            if name in partial:
                room += made
            if found > made + slack or not lost and found < made - slack and name not in partial:
                wrong.append(f"{name} {found} of {made}" + (f" (± {slack})" if slack else ""))
        if wrong:
            raise Failure(f"calls recorded of calls made, {lost} lost: " + ", ".join(wrong[:12]))
        if lost:
            made = sum(counted.values())
            recorded = sum(calls.values())
            if made - room > recorded + lost:
                raise Failure(f"{made} calls made, more than {recorded} recorded + {lost} lost")


def lost_of(said):
    found = re.search(r"([\d,]+) lost", said)
    if not found:
        raise Failure(f"graftrace did not say what was lost: {said[-600:]!r}")
    return int(found.group(1).replace(",", ""))


def recorded(case, label, *options, counts=True):
    data = f"{label}.data"
    result, said = case.traced(label, ["record", "-o", data, *options], case.rounds)
    if difference := case.expected.differs(result):
        raise Failure(f"{difference}\ngraftrace said: {said[-600:]}")
    lost = lost_of(said)
    calls = case.report(data)
    if counts:
        # A probe at an entry may have taken the room that another entry's short jump needs.
        probes = dict(re.findall(r"^(\w+)=(\w+)", "\n".join(map(str, options)), re.M))
        case.compare(result, calls, lost, [probes.get(probe) for probe in re.findall(
            r"probe_program:(\w+) is not recorded \(its first bytes lie on two pages", said)])
    return result, calls, lost


def way_record(case, chance):
    recorded(case, "record")


def way_overwrite(case, chance):
    recorded(case, "overwrite", "--overwrite", "-b", chance.choice(["64K", "256K", "4M"]))


def way_small(case, chance):
    recorded(case, "small", "-b", chance.choice(["64K", "256K"]))


def way_libs(case, chance):
    recorded(case, "libs", "--libs", *chance.choice([[], ["--overwrite"], ["--breakpoints"]]))


def way_function(case, chance):
    recorded(case, "function", "-p", "function", *chance.choice([[], ["--libs"], ["--overwrite", "-b", "128K"]]))


def way_breakpoints(case, chance):
    recorded(case, "breakpoints", "--breakpoints", "--unprepared")


def way_counted(case, chance):
    """Nothing but what is counted: the sum of what is recorded and lost is what was made, exactly."""
    options = chance.choice([[], ["--overwrite", "-b", "64K"], ["-p", "function"]])
    result, calls, lost = recorded(case, "counted", "-l", ALL_COUNTED, *options)
    counted, inexact = result.counts
    others = set(calls) - set(counted)
    if others or inexact or case.program.partial or case.program.is_stripped or "--overwrite" in options:
        return
    # What `graftrace functions` says cannot be traced is not recorded, and not lost.
    made = sum(count for name, count in counted.items() if name not in case.refused_entries)
    found = sum(calls.values())
    if made != found + lost:
        raise Failure(f"{made} calls made, {found} recorded, {lost} lost")


def way_threshold(case, chance):
    recorded(case, "threshold", "--threshold", chance.choice(["1us", "10us", "1ms"]), counts=False)


def way_filtered(case, chance):
    """Filters of every kind; what they let through is not judged here, only the program."""
    some = [name for name in case.program.names if chance.random() < 0.3] or ["a0_act"]
    options = []
    for _ in range(chance.randint(1, 3)):
        options += chance.choice([["-l", chance.choice(some)], ["-n", chance.choice(some)], ["-g", chance.choice(some)],
                                  ["-N", chance.choice(some)], ["-D", str(chance.randint(1, 4))], ["--libcall"],
                                  ["-l", "*_w*"]])
    recorded(case, "filtered", *options, counts=False)


def way_profile(case, chance):
    table = case.path("profile.csv")
    result, said = case.traced("profile", ["profile", "--format", "csv", "-o", "profile.csv",
                                           *chance.choice([[], ["--libs"]])], case.rounds)
    if difference := case.expected.differs(result):
        raise Failure(f"{difference}\ngraftrace said: {said[-600:]}")
    if "not in the table" not in said:
        case.compare(result, case.calls_in(table.read_text()), 0)


# Values of calls, probes and what is done at them.

# Of the program's own functions: with all of a static program's, the unwinder's too, a handler that walks the stack
# takes longer than its timer's interval.
VALUES = [["--args"], ["--args", "--retval"], ["-A", f"{ALL_COUNTED}@arg1/s,arg2", "-R", f"{ALL_COUNTED}@retval/s"],
          ["-A", f"{ALL_COUNTED}@arg1,arg2,arg3", "-R", f"{ALL_COUNTED}@retval"]]


def way_values(case, chance):
    recorded(case, "values", *chance.choice(VALUES), *chance.choice([[], ["--overwrite", "-b", "256K"], ["--libs"],
                                                                     ["-p", "function"], ["--breakpoints"]]))


def places_of(case):
    """All instructions of the program's own functions, as FUNCTION+OFFSET; a stripped program has none."""
    if case.places is None:
        found, name, start = [], None, 0
        done = subprocess.run(["objdump", "-d", "--no-show-raw-insn", case.path("program")], capture_output=True,
                              text=True, timeout=120, check=False)
        for line in done.stdout.splitlines():
            if head := re.match(r"([0-9a-f]+) <(.+)>:$", line):
                start, name = int(head[1], 16), head[2] if head[2] in case.program.names else None
            elif name and (at := re.match(r" +([0-9a-f]+):\t(?!.*nop|xchg +%ax,%ax)", line)):
                found.append((name, int(at[1], 16) - start))
        case.places = found
    return case.places


def probes_of(case, chance):
    """Probes of entries, returns and any instructions, with all that can be fetched there."""
    options = []
    places = places_of(case)
    for number in range(chance.randint(1, 12) if places else 0):
        name, offset = chance.choice(places)
        place = chance.choice([f"{name}+{offset}", f"{name}+{offset}", f"{name}+{offset}", name, f"{name}%return"])
        fetched = chance.sample(["a=%di:s32", "b=%sp:x64", "c=+0(%sp):x8[8]", "d=+0(%di):string",
                                 "e=+0(+8(%si)):string", "f=$comm", "g=+0(%bx):u64", "h=-8(%bp):x32"],
                                chance.randint(0, 5))
        if place.endswith("%return"):
            fetched = ["r=$retval:x64", "s=+0($retval):string"]
        options += ["--probe", " ".join([f"x{number}={place}", *fetched])]
    return options


def way_probes(case, chance):
    tracer = chance.choice([[], ["-p", "function_graph"], ["-p", "function_graph", *chance.choice(VALUES)],
                            ["-p", "function"]])
    recorded(case, "probes", *probes_of(case, chance), *tracer,
             *chance.choice([[], ["--breakpoints"], ["--overwrite", "-b", "128K"]]),
             counts="function_graph" in tracer)


def way_rules(case, chance):
    """Filters and triggers that the program itself evaluates, where probes are."""
    places = places_of(case)
    options = []
    for number in range(chance.randint(1, 6) if places else 0):
        name, offset = chance.choice(places)
        options += ["--probe", f"x{number}={name}{chance.choice(['', f'+{offset}'])} a=%di:s32 t=+0(%si):string",
                    "-e", f"probe_program:x{number}"]
        if chance.random() < 0.7:
            options += ["--filter", chance.choice(["a > 3", "a & 1 && common_pid > 1", 't ~ "*a*"', 'COMM != "sh"'])]
        if chance.random() < 0.7:
            options += ["--trigger", chance.choice(["stacktrace:20", "traceoff:1 if a == 7", "stacktrace if a > 100",
                                                    "snapshot:1", f"disable_event:probe_program:x{number}:3"])]
    recorded(case, "rules", *options, "-p", chance.choice(["function_graph", "function", "nop"]), counts=False)


# System calls, and events that are counted in the program.

SYSCALLS = [["-e", "syscalls"], ["-e", "syscalls:*"], ["-e", "raw_syscalls"], ["-e", "syscalls:sys_exit_*"],
            ["-e", "syscalls", "-e", "raw_syscalls"], ["-e", "syscalls:sys_enter_*"]]
SYSCALL_RULES = [[], [], *([["-e", "raw_syscalls:sys_enter", *rule] for rule in (
    ["--trigger", "hist:keys=id:size=128"], ["--trigger", "stacktrace:20 if id == 1"], ["--filter", "id > 1"])])]


def way_syscalls(case, chance):
    """Every `syscall` instruction is moved; what the calls do is the same."""
    tracer = chance.choice([["-p", "nop"], ["-p", "function_graph"], ["-p", "function_graph", *chance.choice(VALUES)],
                            ["-p", "function"], ["-p", "function_graph", "--libs"]])
    recorded(case, "syscalls", *chance.choice(SYSCALLS), *chance.choice(SYSCALL_RULES), *tracer,
             *chance.choice([[], ["--breakpoints"], ["--overwrite", "-b", "256K"], probes_of(case, chance)]),
             counts="function_graph" in tracer)


def a_histogram(chance, fields=("a", "b")):
    """A trigger that counts an event, of these fields; some tables are too small for all keys."""
    field = chance.choice(fields)
    key = chance.choice([field, f"{field}.log2", f"{field}.buckets=16", f"{field},common_pid", "common_pid.execname",
                         "common_cpu", f"common_pid,{chance.choice(fields)}", "stacktrace"])
    return (f"hist:keys={key}" + chance.choice(["", "", f":vals={field}"]) +
            chance.choice(["", ":size=128", ":size=16384"]) +
            chance.choice(["", "", "", f":m={field}:onmax($m).save(common_pid,common_cpu)",
                           f":c={field}:onchange($c).save(common_cpu)", f":m={field}:onmax($m).snapshot()"]) +
            chance.choice(["", "", f" if {field} > 100"]))


def a_pair(chance, first, second, made="made", name="ts"):
    """Two histograms, of which one reads a variable that the other one sets."""
    key = chance.choice(["common_pid", "common_pid", "common_cpu"])
    value = chance.choice(["common_timestamp", "common_timestamp.usecs"])
    action = chance.choice([f":onmatch({first.replace('/', '.')}).trace({made},${name}_lat)"] * bool(made) + [
        f":onmax(${name}_lat).save(common_pid)", f":onchange(${name}_lat).save(common_cpu)"])
    return [(first, f"hist:keys={key}:{name}={value}"),
            (second, f"hist:keys={key}:{name}_lat={value}-{first.replace('/', '.')}.${name}{action}")]


def way_hists(case, chance):
    places = places_of(case)
    options = []
    for number in range(chance.randint(1, 8) if places else 0):
        name, offset = chance.choice(places)
        place, fields = chance.choice([(f"{name}+{offset}", "a=%di:u64 b=%sp:u64"), (name, "a=%si:u64 b=%sp:u64"),
                                       (f"{name}%return", "a=$retval:u64 b=$retval:u32")])
        options += ["--probe", f"x{number}={place} {fields}", "-e", f"probe_program:x{number}", "--trigger",
                    a_histogram(chance)]
        if number > 0 and chance.random() < 0.5:
            events = [f"probe_program/x{number - 1}", f"probe_program/x{number}"]
            chance.shuffle(events)
            for event, text in a_pair(chance, *events, made=None, name=f"ts{number}"):
                options += ["-e", event.replace("/", ":"), "--trigger", text]
    tracer = chance.choice([["-p", "nop"], ["-p", "function_graph"], ["-p", "function"]])
    recorded(case, "hists", *options, *tracer, *chance.choice([[], ["--breakpoints"], ["-b", "64K"]]),
             counts="function_graph" in tracer)


# What is changed while the program runs.

def change_events(chance, probes):
    """Histograms, triggers and filters of probes and of system calls, and whether they are recorded."""
    calls = chance.choice(["read", "write", "futex", "clone", "rt_sigprocmask", "tgkill", "munmap", "wait4"])
    event, fields = chance.choice([
        *(2 * [(f"probe_program/x{number}", ("a", "b")) for number in range(probes)]),
        ("raw_syscalls/sys_enter", ("id", "common_pid")), ("raw_syscalls/sys_exit", ("id", "ret")),
        (f"syscalls/sys_enter_{calls}", ("common_pid", "common_cpu")), (f"syscalls/sys_exit_{calls}", ("ret",))])
    own = a_histogram(chance, fields)
    if chance.random() < 0.3:
        name, text = chance.choice(a_pair(chance, f"probe_program/x{chance.randrange(max(probes, 1))}", event))
        return (f"events/{name}/trigger", chance.choice(["", "", "", "!"]) + text), f"events/{name}/hist"
    if chance.random() < 0.2:
        return chance.choice([
            *(3 * [("synthetic_events", "made u64 lat")]), ("synthetic_events", "!made"),
            ("events/synthetic/made/enable", chance.choice("01")), ("events/synthetic/made/filter", "lat > 9"),
            ("events/synthetic/made/trigger", "hist:keys=lat.log2"),
            ("events/synthetic/made/trigger", "hist:keys=lat.log2:onmatch(synthetic.made).made(lat)"),
            ("events/synthetic/made/trigger", chance.choice(["stacktrace:3", "snapshot:1", "!hist:keys=lat.log2"]))
        ]), "synthetic_events"
    return chance.choice([
        *(4 * [(f"events/{event}/trigger", own)]), (f"events/{event}/trigger", f"!{own}"),
        (f"events/{event}/trigger", f"{own.split(' if ')[0]}:{chance.choice(['clear', 'pause', 'cont'])}"),
        (f"events/{event}/trigger", f"hist:keys={fields[0]}:name=shared"),
        (f"events/{event}/trigger", f"!hist:keys={fields[0]}:name=shared"),
        (f"events/{event}/trigger", chance.choice(["stacktrace:3", "!stacktrace", "traceoff:1", "traceon:1"])),
        (f"events/{event}/enable", chance.choice("01")), (f"events/{event}/enable", "1"),
        (f"events/{event}/filter", chance.choice([f"{fields[0]} > 3", "0"])),
        ("events/syscalls/enable", chance.choice("01")), ("events/raw_syscalls/enable", chance.choice("01")),
        ("current_tracer", chance.choice(["nop", "function", "function_graph"])), ("tracing_on", "1"),
        ("trace", "")]), f"events/{event}/hist"


def way_counting(case, chance):
    """Events are counted by many threads while their histograms come, change and go."""
    point = case.path("counting")
    point.mkdir(exist_ok=True)
    places = places_of(case)
    options, last = [], [""]
    probes = chance.randint(1, 6) if places else 0
    for number in range(probes):
        name, offset = chance.choice(places)
        options += ["--probe", f"x{number}={name}" + chance.choice(
            [f"+{offset} a=%di:u64 b=%sp:u64", " a=%di:u64 b=%sp:u64", "%return a=$retval:u64 b=$retval:u32"])]

    def write(started, name, value):
        if not (point / name).exists():
            raise OSError("not there")
        with open(point / name, "w" if name == "trace" else "a") as file:
            file.write(value + "\n")

    def choose(chance, names):
        (name, value), last[0] = change_events(chance, probes)
        return name, value

    def read(started, name):
        (point / chance.choice([name, last[0], last[0], "stats", "uprobe_profile"])).read_bytes()

    try:
        changing(case, chance, "counting", ["mount", "counting", "-p", chance.choice(["nop", "function_graph"]),
                                            *chance.choice([[], ["-e", "syscalls"], ["-e", "raw_syscalls"]]),
                                            *options, *chance.choice([[], ["--breakpoints"], ["-b", "256K"]])],
                 write, read, 20, choose)
    finally:
        if os.path.ismount(point):
            subprocess.run(["fusermount3", "-u", "-z", point], check=False, capture_output=True)


def change(chance, names):
    """A control file and what is written there."""
    some = [chance.choice(names) for _ in range(chance.randint(1, 5))]
    return chance.choice([
        ("set_ftrace_filter", "\n".join(some) + "\n"), ("set_ftrace_filter", "a*_w*\n"), ("set_ftrace_filter", "\n"),
        ("set_ftrace_notrace", "\n".join(some) + "\n"), ("set_ftrace_notrace", "\n"),
        ("set_graph_function", some[0] + "\n"), ("set_graph_function", "\n"),
        ("current_tracer", "function\n"), ("current_tracer", "function_graph\n"), ("current_tracer", "nop\n"),
        ("tracing_on", "0\n"), ("tracing_on", "1\n"), ("tracing_on", "1\n"),
        ("max_graph_depth", f"{chance.randint(0, 5)}\n"), ("tracing_thresh", f"{chance.choice([0, 0, 10, 1000])}\n"),
        ("trace", "\n"), ("buffer_size_kb", f"{chance.choice([64, 512, 4096])}\n")])


def changing(case, chance, label, words, write, read, count, choose=change):
    """Changes one thing after the other while the program runs; at least one must have been taken."""
    def meanwhile(started):
        done, end, refusals = 0, time.monotonic() + HANG_S, collections.Counter()
        while done < count and started.process.poll() is None:
            if time.monotonic() > end:
                raise Failure(f"{label}: no change in {HANG_S} s, the {done + 1}th; refused: {dict(refusals)}")
            name, value = choose(chance, case.program.names)
            try:
                write(started, name, value)
                done += 1
                refusals.clear()
                if chance.random() < 0.15:  # the text of a full buffer with deep stacks is gigabytes
                    read(started, chance.choice(["trace", "set_ftrace_filter", "available_filter_functions"]))
                end = time.monotonic() + HANG_S
            except (OSError, ValueError) as refusal:
                refusals[f"{name}: {refusal}"] += 1
                time.sleep(0.01)  # not there yet, or not to be had in this state
            time.sleep(chance.choice([0, 0.001, 0.01]))

    result, said = case.traced(label, words, 0, meanwhile)
    if difference := case.expected.differs(result):
        raise Failure(f"{difference}\ngraftrace said: {said[-600:]}")


def way_serve(case, chance):
    port = free_port(chance)
    root = f"http://127.0.0.1:{port}/ftrace/"

    def write(started, name, value):
        request = urllib.request.Request(root + name, value.encode(), method="PUT")
        urllib.request.urlopen(request, timeout=20).read()

    def read(started, name):
        urllib.request.urlopen(root + name, timeout=20).read(1 << 22)

    changing(case, chance, "serve", ["record", f"--serve=127.0.0.1:{port}", "-o", "serve.data",
                                     *chance.choice([[], ["-b", "256K"], ["--libs"]])], write, read, 15)


def way_mount(case, chance):
    point = case.path("mounted")
    point.mkdir(exist_ok=True)

    def write(started, name, value):
        if not (point / name).exists():
            raise OSError("not mounted yet")
        (point / name).write_text(value)

    def read(started, name):
        (point / name).read_bytes()

    try:
        changing(case, chance, "mount", ["mount", "mounted", "-p", "function_graph", *chance.choice([[], ["--libs"]])],
                 write, read, 15)
    finally:
        if os.path.ismount(point):
            subprocess.run(["fusermount3", "-u", "-z", point], check=False, capture_output=True)


def way_set(case, chance):
    def run(started, *words):
        pids = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
        if not pids:
            raise OSError("no program yet")
        done = subprocess.run([case.graftrace, words[0], "-P", pids[0], *words[1:]], timeout=HANG_S,
                              capture_output=True, text=True, cwd=case.directory, stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise OSError(done.stderr)

    changing(case, chance, "set", ["record", "-o", "set.data"],
             lambda started, name, value: run(started, "set", name, *value.split()),
             lambda started, name: run(started, "get", name), 6)


# Attached to while it runs.

def is_clean(pid):
    try:
        return "graftrace" not in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return True


def attaching(case, chance, label, one_attach, count):
    started = case.start(label, [case.path("program"), 0], stdin=subprocess.PIPE)
    try:
        for number in range(1, count + 1):
            time.sleep(chance.choice([0, 0.001, 0.02]))
            if started.process.poll() is None:
                one_attach(case, chance, started, f"{label}-{number}")
        started.release()
    except BaseException:
        started.end()
        raise
    status = started.wait()
    result = Result(status, started.out(), started.err())
    if difference := case.expected.differs(result):
        raise Failure(difference)


def attach_words(case, chance, started, label):
    options = chance.choice([[], [], ["--libs"], ["-p", "function"], ["--overwrite", "-b", "1M"], ["--breakpoints"],
                             ["-l", "*_w*"], ["--threshold", "1us"], ["--children"], chance.choice(VALUES),
                             [*chance.choice(VALUES), "--overwrite", "-b", "1M"], probes_of(case, chance),
                             [*probes_of(case, chance), "--breakpoints"], chance.choice(SYSCALLS),
                             [*chance.choice(SYSCALLS), *chance.choice(SYSCALL_RULES), "-p", "nop"],
                             [*chance.choice(SYSCALLS), *probes_of(case, chance)]])
    return [case.graftrace, "record", "-o", f"{label}.data", *options, "-P", started.pid]


def attach_once(case, chance, started, label):
    words = [*attach_words(case, chance, started, label), "--for", f"{chance.choice([1, 5, 20, 100])}ms"]
    if chance.random() < 0.2:
        words = [case.graftrace, "profile", "-o", f"{label}.txt", "-P", started.pid, "--for", "20ms"]
    attached = Started(case, label, words)
    status = attached.wait()
    said = attached.err()
    if status < 0:
        raise Failure(f"{label}: graftrace died of signal {-status}: {said[-600:]}")
    if status != 0:
        if started.process.poll() is not None:
            return  # the program's own end says what happened
        if "has still parts of an earlier recording" in said:
            case.refused += 1  # one of its coroutines has calls open from then: later
            return
        raise Failure(f"{label}: graftrace ended with {status}: {said[-600:]}")
    case.attached += 1
    if "keeps the recorder's memory" not in said and not is_clean(started.pid):
        raise Failure(f"{label}: graftrace left something mapped: {said[-600:]}")


def way_attach(case, chance):
    attaching(case, chance, "attach", attach_once, 4)


def killed_once(case, chance, started, label):
    attached = Started(case, label, attach_words(case, chance, started, label))
    time.sleep(chance.random() * chance.choice([0.02, 0.1, 0.3]))
    attached.end()
    if chance.random() < 0.6:
        attach_once(case, chance, started, label + "-again")


def way_killed(case, chance):
    attaching(case, chance, "killed", killed_once, 3)


WAYS = {name[4:]: way for name, way in list(globals().items()) if name.startswith("way_")}


def run_case(program, seed, directory, build, ways):
    """Runs all ways. Returns a list of (way, None or what was wrong) and the case."""
    if directory.exists():
        shutil.rmtree(directory)
    directory.mkdir(parents=True)
    case = Case(program, seed, directory, build)
    try:
        case.make()
        case.rounds = 1
        case.expected = case.plain("plain", 1)
        second = case.plain("plain-again", 1)
        if (difference := case.expected.differs(second)) or case.expected.status == 99:
            raise Failure(f"untraced, in two runs: {difference or case.expected.out}")
    except Failure as failure:
        return [("plain", str(failure))], case
    results = []
    for name in ways:
        chance = random.Random(f"{seed} {name}")
        begin = time.monotonic()
        try:
            WAYS[name](case, chance)
            results.append((name, None))
        except Failure as failure:
            results.append((name, str(failure)))
        except subprocess.TimeoutExpired as late:
            results.append((name, f"{late}"))
        case.seconds[name] = time.monotonic() - begin
        for data in directory.glob("*.data*"):
            if results[-1][1] is None:
                data.unlink()
    return results, case
