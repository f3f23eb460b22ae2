# SPDX-License-Identifier: MIT
"""Viewers that people use, opened on what graftrace exports: speedscope in a browser, KernelShark on a screen."""

import base64
import collections
import csv
import io
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import PATIENCE, ROOT
from judges import modules
from test_export import THREADS
from webdriver import Browser

UNITS = {"ns": 1, "µs": 1e3, "us": 1e3, "ms": 1e6, "s": 1e9}


@pytest.fixture
def recorded(graftrace, compile):
    """Three threads; the calls as csv has them."""
    graftrace("record", compile(THREADS, "-O1", "-pthread"))
    return list(csv.DictReader(io.StringIO(graftrace("export", "--to", "csv", "-q", "-o", "-").stdout)))


def opened_by_speedscope(browser, path):
    """Shows a file's functions in speedscope."""
    data = base64.b64encode(path.read_bytes()).decode()
    (path.parent / "load.js").write_text(f'speedscope.loadFileFromBase64("{path.name}", "{data}")')
    page = (Path(modules()) / "speedscope" / "dist" / "release" / "index.html").as_uri()
    browser.ask("POST", "/url", {"url": f"{page}#view=sandwich&localProfilePath={path.parent / 'load.js'}"})


def nanoseconds(text):
    """Of a cell of speedscope's; without a unit it is a number of them."""
    value, unit = re.match(r"([\d.,]+)\s*([a-zµ]*)", text).groups()
    return float(value.replace(",", "")) * (UNITS[unit] if unit else 1)


@pytest.mark.parametrize("form", ["speedscope", "chrome"])
def test_speedscope_has_the_threads_and_the_times_of_functions(graftrace, recorded, tmp_path, form):
    graftrace("export", "--to", form, "-q", "-o", "trace.json")
    by_thread = collections.defaultdict(collections.Counter)
    calls = collections.Counter((row["tid"], row["function"]) for row in recorded)
    function = {row["id"]: row["function"] for row in recorded}
    calls.update((row["tid"], function[row["parent"]]) for row in recorded if row["parent"])
    for row in recorded:
        by_thread[row["tid"]][row["function"]] += int(row["self_ns"])
    with Browser() as browser:
        opened_by_speedscope(browser, tmp_path / "trace.json")
        seen, at = {}, None
        for key, last in (("p", 1), ("n", len(by_thread))):
            # The keys go to the thread before and to the next one, up to the first and the last.
            while True:
                tid, at, rows = browser.wait_for("""const rows = [...document.querySelectorAll("tr")].map(row =>
                    [...row.cells].map(cell => cell.innerText.trim())).filter(row => row.length >= 3 && /%/.test(row[0]));
                    const found = /-(\\d+)(?: .[pt]id.*?.)? ?\\((\\d+)\\/4\\)/.exec(document.body.innerText);
                    return rows.length > 0 && found && found[2] !== arguments[0] && [found[1], found[2], rows]""", at)
                if not seen and (where := os.environ.get("GRAFTRACE_PICTURES")):
                    browser.screenshot(Path(where) / "speedscope.png")
                seen[tid] = {row[-1].split("\n")[0]: row[1] for row in rows}
                if int(at) == last:
                    at = None
                    break
                browser.run("window.dispatchEvent(new KeyboardEvent('keypress', {key: arguments[0], bubbles: true}))", key)
    # The busiest is there first, where the format can say so.
    assert (form == "chrome" or next(iter(seen)) != min(by_thread)) and seen.keys() == by_thread.keys()
    for tid, functions in seen.items():
        assert functions.keys() == by_thread[tid].keys()
        if form == "chrome":
            # It adds begin and duration as floating-point numbers: an end may come before that of a callee at the same
            # nanosecond, whose time goes to the wrong one of the two then.
            assert sum(map(nanoseconds, functions.values())) == pytest.approx(sum(by_thread[tid].values()), rel=0.02)
            continue
        for name, text in functions.items():
            # A row's nanoseconds are cut, and so are both ends of a call and of its callees in the other file.
            assert nanoseconds(text) == pytest.approx(by_thread[tid][name], rel=0.01,
                                                               abs=10 + calls[tid, name]), name


@pytest.mark.parametrize("form", ["folded", "callgrind", "pprof"])
def test_speedscope_reads_the_merged_stacks_of_all_threads(graftrace, recorded, tmp_path, form):
    graftrace("export", "--to", form, "-q", "-o", "stacks")
    own, calls = collections.Counter(), collections.Counter(row["function"] for row in recorded)
    for row in recorded:
        own[row["function"]] += int(row["self_ns"])
    with Browser() as browser:
        opened_by_speedscope(browser, tmp_path / "stacks")
        rows = browser.wait_for("""const rows = [...document.querySelectorAll("tr")].map(row =>
            [...row.cells].map(cell => cell.innerText.trim())).filter(row => row.length >= 3 && /%/.test(row[0]));
            return rows.length >= arguments[0] && rows""", len(own))
    assert {row[-1].split("\n")[0] for row in rows} == own.keys()
    for row in rows:
        name = row[-1].split("\n")[0]
        assert nanoseconds(row[1]) == pytest.approx(own[name], rel=0.01, abs=10 + calls[name]), name


def on_screen(words, path, seconds=120):
    """Runs a program on a screen that is none, and takes a picture of its window when that has a title with the
    expression: the title."""
    script = r"""
        "$@" > viewer.log 2>&1 &
        viewer=$!
        trap 'kill $viewer; wait $viewer' EXIT
        until title=$(xdotool search --onlyvisible --name "Kernel Shark \(" getwindowname 2> /dev/null); do
            kill -0 $viewer || exit 1
            # To root it says first that it runs as root, and waits for a key.
            xdotool key Return
            sleep 0.5
        done
        xdotool search --onlyvisible --name "Kernel Shark \(" windowmove 0 0 windowsize 1100 700
        sleep 2
        import -window root "$PICTURE"
        echo "$title"
    """
    home = path / "home"
    home.mkdir(mode=0o700)
    process = subprocess.Popen(["xvfb-run", "-a", "-s", "-screen 0 1100x700x24", "bash", "-c", script, "bash", *words],
                               cwd=path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True, env={**os.environ, "HOME": str(home), "XDG_RUNTIME_DIR": str(home),
                                                            "PICTURE": str(path / "picture.png")})
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    assert process.returncode == 0, err + (path / "viewer.log").read_text()
    return out.strip()


def coloured(picture):
    """How many of the picture's pixels have a strong colour: what is drawn of tasks."""
    mean = subprocess.run(["convert", picture, "-crop", "1100x600+0+95", "+repage", "-colorspace", "HSL", "-channel",
                           "G", "-separate", "-threshold", "60%", "-format", "%[fx:mean*w*h]", "info:"],
                          check=True, capture_output=True, text=True, timeout=PATIENCE).stdout
    return float(mean)


def shown_by_kernelshark(tmp_path):
    """Opens calls.dat; how much is drawn of its tasks."""
    title = on_screen(["kernelshark", "calls.dat"], tmp_path)
    assert title == "Kernel Shark (calls.dat)"
    said = (tmp_path / "viewer.log").read_text()
    assert 'Loading  "calls.dat"' in said and not re.search(r"fail(?!ed to initialize on stream)|error", said, re.I), said
    return coloured(tmp_path / "picture.png")


def test_kernelshark_shows_trace_dat(graftrace, recorded, tmp_path):
    graftrace("export", "--to", "trace.dat", "-o", "calls.dat")
    assert shown_by_kernelshark(tmp_path) > 2000 and recorded
    if where := os.environ.get("GRAFTRACE_PICTURES"):
        (Path(where) / "kernelshark.png").write_bytes((tmp_path / "picture.png").read_bytes())


def test_kernelshark_shows_events(graftrace, compile, tmp_path):
    """Of the system calls of a program, and of its own; no call beside them."""
    program = compile("events.c", "-O2", "-pthread", f"-I{ROOT / 'include'}")
    graftrace("record", "-p", "nop", "-e", "syscalls", "-e", "shop:*", "--", program, "storm")
    graftrace("export", "--to", "trace.dat", "-o", "calls.dat")
    assert shown_by_kernelshark(tmp_path) > 2000
