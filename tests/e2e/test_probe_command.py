# SPDX-License-Identifier: MIT
"""graftrace probe: lines, variables and functions as perf-probe prints them; probes of what runs, set and removed."""

import re
import subprocess

import pytest

from conftest import PATIENCE, PROGRAMS, wait_until

SOURCE = (PROGRAMS / "probes.c").read_text().splitlines()


@pytest.fixture(scope="module")
def program(compile):
    return compile("probes.c", "-g", "-O0", "-pthread")


def line_of(text):
    return next(number for number, line in enumerate(SOURCE, 1) if line.startswith(text))


def test_lines_of_a_function_have_numbers_where_code_is(program, graftrace):
    first = line_of("NOINLINE int handle")
    lines = graftrace("probe", "-x", program, "--line", "handle").stdout.splitlines()
    assert lines[0] == f"<handle@{PROGRAMS / 'probes.c'}:0>"
    # Each line is the source's, and those with a number have that from the function's first one.
    for number, line in enumerate(lines[1:]):
        text = SOURCE[first - 1 + number]
        assert line in (f"{number:7d}  {text}", f"         {text}")
    coded = [int(line[:7]) for line in lines[1:] if line[:7].strip()]
    assert {2, 4, 5, 6, 7, 8} <= set(coded) and 3 not in coded
    part = graftrace("probe", "-x", program, "-L", "handle:4-6").stdout.splitlines()
    assert part[1:] == [line for number, line in enumerate(lines[1:]) if 4 <= number <= 6]
    # Where a number is a probe can be.
    for number in (2, 4, 7):
        graftrace("record", "--probe", f"handle:{number} id=request->id", "--", program)
        assert re.search(rf"handle_L{number}: \(0x\w+\) id=1\b", graftrace("show").stdout)


def test_lines_of_a_file_are_its_own(program, graftrace):
    first = line_of("NOINLINE int handle")
    lines = graftrace("probe", "-x", program, "-L", f"probes.c:{first}-{first + 5}").stdout.splitlines()
    assert lines[0] == f"<{PROGRAMS / 'probes.c'}:{first}>"
    assert f"{first + 2:7d}  {SOURCE[first + 1]}" in lines and len(lines) == 7


def test_variables_are_those_that_a_probe_takes(program, graftrace):
    text = graftrace("probe", "-x", program, "--vars", "handle:4").stdout
    assert re.fullmatch(r"Available variables at handle:4\n\t@<handle\+\d+>\n\t\tstruct request\*\trequest\n"
                        r"\t\tint\tdepth\n\t\tint\ttwice\n", text)
    names = re.findall(r"\t(\w+)$", text, re.M)
    graftrace("record", "--probe", "handle:4 " + " ".join(names), "--", program)
    assert re.search(r"handle_L4: \(0x\w+\) request=0x\w+ depth=2 twice=4", graftrace("show").stdout)


def test_functions_by_a_glob(program, graftrace):
    symbols = subprocess.run(["nm", "--defined-only", program], capture_output=True, text=True, check=True).stdout
    own = {"handle", "sum", "outer", "scale", "main"}
    assert own <= set(re.findall(r" [Tt] (\w+)$", symbols, re.M))
    names = graftrace("probe", "-x", program, "--funcs").stdout.split()
    assert own <= set(names) and names == sorted(names)
    assert graftrace("probe", "-x", program, "-F", "s[cu]*").stdout.split() == ["scale", "sum"]


def test_errors_say_what_to_do(program, graftrace, compile):
    plain = compile("probes.c", "-O0", "-pthread", "-s")
    for words, code, said in ((("-x", program, "-V", "nosuch"), 1, "no function 'nosuch' in the debug information"),
                              (("-x", program, "-L", "probes.c:4000"), 1, "no code comes from there"),
                              (("-x", program, "-L", "handle:9-2"), 2, "FUNC:FIRST-LAST"),
                              (("-x", program, "-F", "no*"), 1, "no function of"),
                              (("-x", plain, "-L", "handle"), 1, "compile it with -g"),
                              (("-x", "/no/such", "-F"), 1, "/no/such"),
                              (("-L", "handle"), 2, "-x FILE or -P PID"),
                              (("-x", program, "-L", "handle", "-V", "handle"), 2, "do not go together"),
                              ((), 2, "what is to be done?"),
                              (("--at", "/tmp", "--list"), 1, "no mount of a program"),
                              (("--at", "/tmp", "-x", program, "handle nosuch"), 1, "no variable 'nosuch'")):
        done = graftrace("probe", *words, code=code)
        assert said in done.stderr and done.stdout == "", words


def check_probes(graftrace, program, enable, run, *where):
    """Set, listed, met and removed."""
    assert graftrace("probe", *where, "--list").stdout == ""
    done = graftrace("probe", *where, "-x", program, "my:one=handle:4 twice", "two=sum%return $retval:s64")
    assert re.match(r"Added new event:\n  my:one \(on \S+:0x\w+ twice=\S+\)\n  probe_\w+:two \(on ", done.stdout)
    group = re.search(r"(probe_\w+):two", done.stdout)[1]
    listed = graftrace("probe", *where, "-l").stdout
    assert re.fullmatch(rf"  my:one +\(on \S+:0x\w+ with twice=\S+:s32\)\n"
                        rf"  {group}:two +\(on \S+:0x\w+%return with ret=\$retval:s64\)\n", listed)
    enable("my", "one", "1")
    enable(group, "two", "1")
    text = run(2)
    assert re.findall(r" (one: \(0x\w+\) twice=\d|two: \(0x\w+ <- 0x\w+\) ret=\d+)", re.sub(r"0x\w+", "0x1", text)) == [
        "one: (0x1) twice=0", "two: (0x1 <- 0x1) ret=35", "one: (0x1) twice=2", "two: (0x1 <- 0x1) ret=36"]
    assert "switch it off first" in graftrace("probe", *where, "-d", "my:one", code=1).stderr
    enable("my", "one", "0")
    assert graftrace("probe", *where, "--del", "m*:o*").stdout == "Removed event: my:one\n"
    assert "matches no probe" in graftrace("probe", *where, "--del", "my:one", code=1).stderr
    enable(group, "two", "0")
    assert graftrace("probe", *where, "--del", "*").stdout == f"Removed event: {group}:two\n"
    assert graftrace("probe", *where, "--list").stdout == ""
    assert "Invalid register name" in graftrace("probe", *where, "-x", program, "handle %nosuch", code=1).stderr


def test_probes_of_a_mount(program, graftrace):
    path = graftrace.directory / "tracing"
    path.mkdir()
    process = graftrace.start("mount", path, "--", program, "loop", stdin=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    wait_until((path / "trace").exists, "the mount")
    (path / "current_tracer").write_text("nop")

    def run(times):
        process.stdin.write(f"{times}\n")
        process.stdin.flush()
        process.stdout.readline()
        return (path / "trace").read_text()

    check_probes(graftrace, program, lambda group, name, text: (path / f"events/{group}/{name}/enable").write_text(text),
                 run, "--at", path)
    process.stdin.close()
    assert process.wait(PATIENCE) == 0


def test_probes_of_a_recording_that_runs(program, graftrace):
    process = graftrace.start("record", "-p", "nop", "--", program, "loop", stdin=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    pid = int(subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True).stdout)
    wait_until(lambda: graftrace("get", "-P", pid, "tracing_on", code=None).returncode == 0, "the door")

    def run(times):
        process.stdin.write(f"{times}\n")
        process.stdin.flush()
        process.stdout.readline()
        return graftrace("get", "-P", pid, "trace").stdout

    check_probes(graftrace, program,
                 lambda group, name, text: graftrace("set", "-P", pid, f"events/{group}/{name}/enable", text),
                 run, "-P", pid)
    process.stdin.close()
    assert process.wait(PATIENCE) == 0
