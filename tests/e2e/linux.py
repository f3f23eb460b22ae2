# SPDX-License-Identifier: MIT
"""Linux as the judge: boots Debian's kernel in QEMU, lets a program type steps into its tracefs and
into the mount of a traced program, and makes alike what may differ from run to run."""

import csv
import io
import os
import re
import shutil
import subprocess

from conftest import BUILD, PATIENCE, PROGRAMS, ROOT, Graftrace
from mounted import Mounted

SESSIONS = ROOT / "tests" / "e2e" / "linux_sessions.txt"
# A quarter of a minute on an idle machine; this is for one that is busy with much else.
BOOT_LIMIT_S = 240


class Step:
    def __init__(self, line, session, typed, topic):
        self.line = line  # in what is typed
        self.session = session
        self.typed = typed
        self.topic = topic  # why the results have to differ; None: they must not


def read_sessions():
    """The steps of linux_sessions.txt, each session's behind those that make everything as it was."""
    parts = re.split(r"^== (.*)\n", SESSIONS.read_text(), flags=re.M)
    sessions = dict(zip(parts[1::2], parts[2::2]))
    before = sessions.pop("before each session")
    steps = []
    for name, text in sessions.items():
        topic = None
        for typed in (before + text).splitlines():
            if typed.startswith("~ "):
                topic = typed[2:]
            elif typed and not typed.startswith("#"):
                steps.append(Step(len(steps) + 1, name, typed, topic))
                topic = None
    return steps


def results_of(output):
    """{line: (result, text)} of what linux_session printed."""
    found = {}
    for line, result, text in re.findall(r"^@(\d+)\t([^\t]*)\t(.*)$", output.replace("\r", ""),
                                         re.M):
        text = re.sub(r"\\(n|\\|x..)", lambda escape: {"n": "\n", "\\": "\\"}.get(
            escape[1]) or chr(int(escape[1][1:], 16)), text)
        found[int(line)] = (result.strip(), text)
    assert output.rstrip().endswith("@end") or "\n@end" in output.replace("\r", ""), output[-2000:]
    return found


# The kernel

def archive(files):
    """An initramfs of (name, mode, contents, device)."""
    made = b""
    for number, (name, mode, contents, device) in enumerate([*files, ("TRAILER!!!", 0, b"", (0, 0))]):
        fields = (number, mode, 0, 0, 1, 0, len(contents), 0, 0, *device, len(name) + 1, 0)
        made += b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        made += b"\0" * (-len(made) % 4) + contents
        made += b"\0" * (-len(made) % 4)
    return made


class Kernel:
    """Debian's, which types the steps and switches itself off."""

    def __init__(self, directory, session, steps):
        image = subprocess.run([ROOT / "tools" / "fetch_kernel", BUILD / "linux"], text=True,
                               stdout=subprocess.PIPE, timeout=BOOT_LIMIT_S, check=True).stdout
        (directory / "initramfs").write_bytes(archive([
            ("dev", 0o40755, b"", (0, 0)), ("dev/console", 0o20600, b"", (5, 1)),
            ("init", 0o100755, session.read_bytes(), (0, 0)),
            ("steps", 0o100644, steps.encode(), (0, 0))]))
        self.console = directory / "console"
        self.process = subprocess.Popen(
            ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", "512M", "-smp", "1",
             "-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{self.console}",
             "-icount", "shift=2,sleep=on",  # a busy machine's ticks would take longer than a tick
             "-kernel", image.strip(), "-initrd", directory / "initramfs",
             # a busy machine's timer ticks come late; that is no broken one
             "-append", "console=ttyS0 quiet panic=-1 no_timer_check"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def results(self):
        try:
            self.process.wait(BOOT_LIMIT_S)
        finally:
            self.process.kill()
            self.process.wait()
        return results_of(self.console.read_text(encoding="utf-8", errors="replace"))


# The mount of a program whose functions have the kernel's names

def results_of_mount(directory, program, session, steps):
    own = shutil.copy(program, directory / "init")
    allowed = os.sched_getaffinity(0)
    cpu = min(allowed)  # its per_cpu files are read: the kernel has one CPU
    (directory / "steps").write_text(steps.replace("/cpu0/", f"/cpu{cpu}/"))
    os.sched_setaffinity(0, {cpu})
    try:
        mounted = Mounted(Graftrace(directory), own, "-b", "1M", "-n", "main")
    finally:
        os.sched_setaffinity(0, allowed)
    try:
        to, answer = mounted.process.stdin.fileno(), mounted.process.stdout.fileno()
        done = subprocess.run(
            [session, mounted.path, directory / "steps", str(to), str(answer)],
            stdout=subprocess.PIPE, text=True, pass_fds=[to, answer], timeout=PATIENCE, check=True)
    finally:
        mounted.end_anyhow()
    return results_of(done.stdout)


def run_both(directory, compile):
    """[(step, what Linux did, what graftrace did)]"""
    steps = read_sessions()
    text = "".join(step.typed + "\n" for step in steps)
    session = compile(ROOT / "tests" / "e2e" / "linux_session.c", "-O1", "-static")
    program = compile(PROGRAMS / "poll.c", "-O1", "-fno-toplevel-reorder",
                      "-fpatchable-function-entry=5", f"-I{ROOT / 'include'}")
    kernel = Kernel(directory, session, text)
    try:
        own_session = directory / "own" / "init"  # markers are of a thread of the same name
        own_session.parent.mkdir()
        shutil.copy(session, own_session)
        ours = results_of_mount(directory, program, own_session, text)
        theirs = kernel.results()
    finally:
        kernel.process.kill()
        kernel.process.wait()
    return [(step, theirs.get(step.line), ours.get(step.line)) for step in steps]


# What may differ from run to run. Widths are kept: they are checked before a number goes.

def in_width(text, width, name):
    return name if len(text) >= width else f"{name} of {len(text)} columns"


def alike(text):
    # bin: bytes of any value, behind the header's last line
    text = re.sub(r"^(#[ |]+\n)(.*\0.*)", lambda m: f"{m[1]}BIN of {len(m[2])} bytes", text,
                  flags=re.M | re.S)
    text = re.sub(r"#P:\d+", "#P:N", text)
    # a kernel learns a process's name when it leaves the CPU
    text = re.sub(r"^ +<\.\.\.>-1 ", "            init-1 ", text, flags=re.M)
    # … and where it was renamed, what it was called when it did
    text = re.sub(r"^ +(?!init-)\w+-1 (?= *\[\d{3}\] )", "            init-1 ", text, flags=re.M)
    # error_log
    text = re.sub(r"^\[( *\d+\.\d{6})\] (?=.*: error: )", lambda m: "[" + in_width(m[1], 12, "TIME") +
                  "] ", text, flags=re.M)
    # TASK-PID is %16s-%-7d
    text = re.sub(r"^( *init)-(\d+ *)(?= [\[(])", lambda m: in_width(m[1], 16, "TASK") + "-" +
                  in_width(m[2], 7, "PID"), text, flags=re.M)
    text = re.sub(r"\([ \d-]{7}\) \[", "(TGID) [", text)
    text = re.sub(r"\[\d{3}\] ", "[CPU] ", text)
    # the five flags, of which a program has none
    text = re.sub(r"(?<=\[CPU\] )[.dDbB][.Nnp][.hHsSzZ][.\da-f][.\da-f](?= )", ".....", text)
    # times are %5lu.%06lu, counts of other clocks %12llu
    text = re.sub(r"(?<=[\].(]) *(\d+)(\.\d{6})?: ", lambda m: " COUNT: " if m[2] is None else
                  " TIME: ", re.sub(r"(?<=\.\.\.\.\. )( *\d+\.\d{6}|(?= {0,11}\d{1,12}:)[ \d]{12,}):",
                                    lambda m: in_width(m[1], 12, "TIME" if "." in m[1] else "COUNT")
                                    + ":", text))
    text = re.sub(r"(?<=\[CPU\] )( *\d+\.\d{6}):", lambda m: in_width(m[1], 12, "TIME") + ":", text)
    text = re.sub(r"last_ts:( *\d+\.\d{6})\)", lambda m: "last_ts:" + in_width(m[1], 13, "TIME") +
                  ")", text)
    # who called the first function, and where in it
    text = re.sub(r"<-(do_syscall_64|main)\b", "<-CALLER", text)
    text = re.sub(r"\+0x[\da-f]+/0x[\da-f]+", "+OFFSET/SIZE", text)
    text = re.sub(r"<[\da-f]{16}>", "<ADDRESS>", text)
    text = re.sub(r"^ => (0x[\da-f]{16}|do_syscall_64|entry_SYSCALL_64_after_hwframe)\n", "", text,
                  flags=re.M)
    # enabled_functions: the kernel's trampolines
    text = re.sub(r" \(1\) +\ttramp: .*", " (1)", text)
    # function_graph: CPU, time, task (14 columns, centred), duration (%-15 with its mark)
    text = re.sub(r"^ *\d+\) ", " C) ", text, flags=re.M)
    text = re.sub(r"^( *\d+\.\d{6}) \|", lambda m: in_width(m[1], 12, "TIME") + " |", text, flags=re.M)
    text = re.sub(r"^(.*?) {2}( *init-\d+ *) \|", lambda m: m[1] + "  " + in_width(
        m[2], 14, "TASK") + " |", text, flags=re.M)
    text = re.sub(r"(?<=\| ) [.dDbB][.Nnp][.hHsSzZ][.\da-f][.\da-f] \|", " ..... |", text)
    text = re.sub(r"(?<=[)|] ) [.dDbB][.Nnp][.hHsSzZ][.\da-f][.\da-f] \|", " ..... |", text)
    text = re.sub(r"(^|[)|] )([ +!#*@$]) ([\d.]+ us *)\|", lambda m: m[1] + in_width(
        m[3], 12, "DURATION") + "|", text, flags=re.M)
    # … of another thread, when a marker was written by one
    text = re.sub(r"^ -{42}\n C\) +init-\d+ +=> +init-\d+ +\n -{42}\n\n", "", text, flags=re.M)
    # latency-format; the flags (need-resched and others) are the kernel's own
    text = re.sub(r"trace v1.1.5 on \S+", "trace v1.1.5 on RELEASE", text)
    text = re.sub(r"\(M:\w+ VP", "(M:MODEL VP", text)
    text = re.sub(r"^( *init)-(\d+ *)( +\d)[.dDN\d]{5}( *\d+us)[ +!#*@$]: ", lambda m: in_width(
        m[1], 8, "TASK") + "-" + in_width(m[2], 7, "PID") + in_width(m[3], 4, "CPU") + "....." +
        in_width(m[4], 7, "TIME") + ": ", text, flags=re.M)
    text = re.sub(r"^( *init) ( *\d+) ( *\d) \d+ [\da-f]{8} ([\da-f]{8}) \[[\da-f]+\] \d+\.\d{3}ms "
                  r"\(\+\d+\.\d{3}ms\): ", lambda m: in_width(m[1], 16, "TASK") + " " + in_width(
                      m[2], 7, "PID") + " " + in_width(m[3], 3, "CPU") + f" {m[4]} TIMES: ", text,
                  flags=re.M)
    # raw, hex
    text = re.sub(r"^(\d+ \d+ \d+) # [\da-f]{16} ", r"\1 # 0 ", text, flags=re.M)
    text = re.sub(r"^\d+ \d+ \d+ (?=[\da-f]+ [\da-f]+$|# |type)", "PID CPU TIME ", text, flags=re.M)
    text = re.sub(r"^(.*?)[\da-f]{6,16} [\da-f]{6,16}$", r"\1ADDRESS CALLER", text, flags=re.M)
    text = re.sub(r"^[\da-f]{8} [\da-f]{8} [\da-f]{16} [\da-f]{16} [\da-f]{16} $", "HEX", text,
                  flags=re.M)
    # stats
    text = re.sub(r"^bytes: [1-9]\d*$", "bytes: N", text, flags=re.M)
    text = re.sub(r"^(oldest event|now) ts: *\d+(\.\d{6})?$", lambda m: f"{m[1]} ts: " + (
        "TIME" if m[2] else "COUNT"), text, flags=re.M)
    # saved_cmdlines: a kernel has other processes
    if re.match(r"\d+ \S", text):
        text = re.sub(r"^\d+ (?!init$)\S.*\n", "", text, flags=re.M)
        text = re.sub(r"^(\d+ init\n)+", "PID init\n", text, flags=re.M)
    return text


def in_some_order(text):
    """Histograms that are sorted by their hits alone: Linux has those of as many in no order."""
    def of_as_many(match):
        return "".join(sorted(match[0].splitlines(True), key=lambda line: (
            int(line.split("hitcount:")[1].split()[0]), line)))

    return re.sub(r"(?<=:sort=hitcount)(:size=.*\n#\n\n)((?:\{.*\n)*)", lambda m: m[1] + re.sub(
        r"(?:\{.*hitcount: +(\d+).*\n)(?:\{.*hitcount: +\1\b.*\n)+", of_as_many, m[2]), text)


def is_alike(typed, theirs, ours):
    if None in (theirs, ours) or theirs[0] != ours[0]:
        return False
    if typed.startswith("cat set_graph"):  # Linux lists them by a hash
        return sorted(theirs[1].split()) == sorted(ours[1].split())
    if typed.endswith("/hist"):
        return in_some_order(theirs[1]) == in_some_order(ours[1])
    return alike(theirs[1]) == alike(ours[1])


def describe(step, theirs, ours):
    """For a person: what differs."""
    if None in (theirs, ours):
        return f"{step.typed}: not done: Linux {theirs}, graftrace {ours}"
    return (f"$ {step.typed}\n-- Linux: {theirs[0]}\n{alike(theirs[1])}\n"
            f"-- graftrace: {ours[0]}\n{alike(ours[1])}")


def rows_of(graftrace, path):
    """id -> row of the calls, and a function that gives a call's callers, innermost first."""
    done = graftrace("export", "-q", "--to", "csv", "-o", "-", path)
    rows = {row["id"]: row for row in csv.DictReader(io.StringIO(done.stdout))}

    def callers(row):
        names = []
        while row["parent"]:
            row = rows[row["parent"]]
            names.append(row["function"])
        return names

    return rows, callers
