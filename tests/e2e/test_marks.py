# SPDX-License-Identifier: MIT
"""graftrace_mark: what a program says about itself stands in its trace, in every view and export."""

import json
import re
import subprocess

import pytest

from conftest import PATIENCE, ROOT

TEXTS = [text for part in range(3) for text in ("begun", f'part {part} of "all"', f"left: {3 - part}")]


@pytest.fixture(scope="module", params=["gcc", "clang", "g++"])
def program(request, compile):
    flags = ["-x", "c++"] if request.param == "g++" else []
    return compile("marks.c", *flags, "-O2", f"-I{ROOT / 'include'}", compiler=request.param)


@pytest.fixture
def recorded(program, graftrace):
    assert graftrace("record", program).stdout == "6\n"
    return graftrace


def test_marks_are_recorded_without_asking_and_stand_in_their_calls(recorded):
    text = recorded("show").stdout
    assert re.findall(r"/\* (.*) \*/", text) == TEXTS
    lines = [line.split("|  ", 1)[1].strip() for line in text.splitlines() if "|  " in line]
    work = lines.index("work() {")
    assert lines[work:work + 5] == ["work() {", "/* begun */", '/* part 0 of "all" */', "/* left: 3 */", "}"]
    counts = re.findall(r"^ +(\d+) .* graftrace:mark", recorded("report").stdout, re.M)
    assert sum(map(int, counts)) == len(TEXTS)


def test_exports_and_the_page_have_them(recorded, tmp_path):
    def export(form):
        return recorded("export", "--to", form, "-q", "-o", "-").stdout

    events = json.loads(export("chrome"))["traceEvents"]
    assert [event["name"] for event in events if event["ph"] == "i"] == TEXTS
    page = export("html")
    assert all(json.dumps(text)[1:-1] in page for text in TEXTS)
    recorded("export", "--to", "ctf", "-q", "-o", "out")
    ctf = subprocess.run(["babeltrace2", "out"], cwd=tmp_path, check=True, capture_output=True, text=True,
                         timeout=PATIENCE).stdout
    assert [json.loads(text) for text in re.findall(r'(?:text|mark|msg|message) = (".*") }', ctf)] == TEXTS


def test_who_does_not_want_them_says_so(program, graftrace):
    graftrace("record", "-e", "!graftrace:mark", "-p", "function_graph", program)
    text = graftrace("show").stdout
    assert "work()" in text and "begun" not in text


def test_gdb_knows_the_places(program):
    probes = subprocess.run(["gdb", "-batch", "-nx", "-ex", "info probes stap", str(program)], check=True,
                            capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE).stdout
    assert len(re.findall(r"^stap +graftrace +mark ", probes, re.M)) == 3


def test_untraced_it_is_a_nop(program):
    """No call, no branch, no system call: the instruction at each place is the nop."""
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], check=True, capture_output=True,
                          text=True, timeout=PATIENCE).stdout
    body = re.search(r"<(?:_ZL4worki|work)>:\n(.*?)\n\n", code, re.S)[1]
    assert body.count("nopl   0x0(%rax,%rax,1)") == 3
