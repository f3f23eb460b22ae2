# SPDX-License-Identifier: MIT
"""The page that a kernel serves by itself: read in the browser from its recording, with the figures of report."""

import json
import os
import re
from pathlib import Path

import pytest

from test_page import boxes, close, ns, rows, show, visit as open_page
from test_unikernel_trace import ftrace, put, visit
from unikernel import machine
from webdriver import Browser


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


@pytest.fixture
def stopped(machine, graftrace):
    """Some requests are recorded, and no more: the table of functions, by report of the same recording."""
    assert put(machine, "tracing_on", "1")[0] == 204
    assert put(machine, "trace", "")[0] == 204
    visit(machine, 20)
    assert put(machine, "tracing_on", "0")[0] == 204
    (graftrace.directory / "graftrace.data").write_bytes(ftrace(machine, "trace.data"))
    return {row["function"]: row for row in json.loads(graftrace("report", "--format", "json").stdout)["rows"]}


def test_a_browser_gets_the_page_and_others_the_list(machine):
    ask = lambda more: machine.ask(f"GET / HTTP/1.1\r\nHost: localhost\r\n{more}Connection: close\r\n\r\n",
                                   machine.trace_port)
    page = ask("Accept: text/html,*/*\r\n")
    head, _, body = page.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200") and b"frame-ancestors 'none'" in head and b"</html>" in body
    assert int(re.search(rb"Content-Length: (\d+)", head)[1]) == len(body)
    assert ask("").startswith(b"HTTP/1.1 301") and ask("Accept: */*\r\n").startswith(b"HTTP/1.1 301")


def test_the_figures_are_those_of_report(machine, browser, stopped, graftrace):
    open_page(browser, f"http://localhost:{machine.trace_port}/")
    show(browser, "functions", sort="self")
    browser.wait_for("return document.documentElement.dataset.functions === 'self '")
    shown = {row[0]: row for row in rows(browser, "functions")}
    assert shown.keys() == stopped.keys()
    # Report has one stack for the idle threads of all CPUs, which call schedule; here each has its own.
    for name, row in stopped.items():
        cells = shown[name]
        if name == "schedule":
            assert abs(int(cells[1].replace(",", "")) - row["calls"]) <= 4
            continue
        assert int(cells[1].replace(",", "")) == row["calls"], name
        if row.get("maximum_ns") is None:  # no call of it returned
            continue
        assert close(cells[6], row["maximum_ns"]), name
        # The page's mean is one of whole nanoseconds, report's one of ticks.
        assert close(cells[4], row["average_ns"]) or abs(ns(cells[4]) - row["average_ns"]) <= 1, name
        assert close(cells[3], row["self_ns"]) and close(cells[2], row["total_ns"]), name
    if where := os.environ.get("GRAFTRACE_PICTURES"):
        show(browser, "timeline")
        boxes(browser)
        browser.screenshot(Path(where) / "kernel-timeline.png")
        show(browser, "overview")
        rows(browser, "top")
        browser.screenshot(Path(where) / "kernel-overview.png")
    # Parts of the self time of all calls that returned, as report counts it.
    show(browser, "overview")
    all_self = sum(row.get("self_ns", 0) for row in stopped.values())
    for cells in rows(browser, "top"):
        part = 100 * stopped[cells[0]].get("self_ns", 0) / all_self
        assert float(cells[3].strip("<% ")) == pytest.approx(part, abs=1), cells
    # The slowest call of one of them, on the time line.
    name = "answer"
    show(browser, "function", id=browser.run(
        "return source.ask('functions', {q: arguments[0], sort: 'self', limit: 500})"
        ".then(got => got.functions.find(f => f.name === arguments[0]).id)", name))
    text = browser.wait_for("const text = document.querySelector('main').innerText; "
                            "return /Slowest calls/i.test(text) && text")
    assert close(re.search(r"slowest\n(.*)", text)[1], stopped[name]["maximum_ns"])
    browser.click("main a[href*='view=timeline'][href*='sel=']")
    slow = max(boxes(browser, name), key=lambda box: box["took"])
    assert slow["took"] == pytest.approx(stopped[name]["maximum_ns"], abs=2)


def test_times_off_the_cpu_are_those_that_the_switches_tell(machine, browser, graftrace):
    """The page knows them from who records on which CPU; report from the event of each switch."""
    assert put(machine, "events/sched/sched_switch/enable", "1")[0] == 204
    try:
        for path, value in (("tracing_on", "1"), ("trace", "")):
            assert put(machine, path, value)[0] == 204
        visit(machine, 20)
        assert put(machine, "tracing_on", "0")[0] == 204
    finally:
        assert put(machine, "events/sched/sched_switch/enable", "0")[0] == 204
    (graftrace.directory / "graftrace.data").write_bytes(ftrace(machine, "trace.data"))
    wanted = {row["function"]: row.get("self_off_cpu_ns", 0) for row in
              json.loads(graftrace("report", "--format", "json").stdout)["rows"]}
    open_page(browser, f"http://localhost:{machine.trace_port}/")
    show(browser, "timeline")
    boxes(browser)
    overview = browser.run("return source.ask('overview')")
    assert overview["offCpu"] and "off the CPU" in browser.run("return document.querySelector('main').innerText")
    found = {f["name"]: f["off"] for f in browser.run(
        "return source.ask('functions', {sort: 'self', limit: 1000})")["functions"]}
    # A thread that waits: its strip is full somewhere and empty somewhere, and what it adds up to is the sum.
    lane = max((lane for lane in overview["lanes"] if lane["depth"]), key=lambda lane: lane["off"])
    assert 0 < lane["off"] <= lane["self"]
    assert all(lane["off"] == 0 for lane in overview["lanes"] if lane["name"] == "idle of CPU")
    strip = browser.run("return source.ask('timeline', {from: 0, to: arguments[0], width: 1000, lanes: arguments[1]})",
                        overview["length"], str(lane["lane"]))["lanes"][0]
    assert max(strip["off"]) == 100 and min(strip["off"]) < 100
    most = max(wanted, key=wanted.get)
    assert wanted[most] > 0 and found[most] == pytest.approx(wanted[most], rel=0.05)
    assert sum(found.values()) == pytest.approx(sum(wanted.values()), rel=0.05)
    if where := os.environ.get("GRAFTRACE_PICTURES"):
        browser.screenshot(Path(where) / "kernel-off.png")


def test_the_flame_graph_is_the_graph(machine, browser, stopped, graftrace):
    wanted = json.loads(graftrace("graph", "--format", "json").stdout)["calls"]
    # Calls that are open end with the recording, which each of the two was read of at another moment.
    rows_of_calls = map(json.loads, graftrace("export", "-q", "--to", "json", "-o", "-").stdout.splitlines())
    still_open = {row["function"] for row in rows_of_calls if row["end"] == "open"}
    open_page(browser, f"http://localhost:{machine.trace_port}/")
    show(browser, "flame")
    top = {box["name"]: box for box in boxes(browser) if box["depth"] == 0}
    compared = 0
    for node in wanted:
        if node["function"] == "schedule" or node["function"] not in top:
            continue
        box = top[node["function"]]
        assert box["calls"] == node["count"]
        compared += 1
        # those that returned may all be too short to be drawn beside those that wait
        if node["function"] not in still_open:
            assert box["total"] == pytest.approx(node["total_ns"], rel=1e-4, abs=node["count"] + 10)
    assert compared > 2 and "thread_run" in still_open and "thread_run" in top


def test_it_is_looked_at_again_and_controlled(machine, browser, stopped):
    open_page(browser, f"http://localhost:{machine.trace_port}/")
    before = browser.run("return document.getElementById('subtitle').textContent")
    show(browser, "control")
    browser.wait_for("return document.documentElement.dataset.control === '0 function_graph'")
    browser.click("#tracing-on")
    browser.wait_for("return document.documentElement.dataset.control === '1 function_graph'")
    visit(machine, 10)
    browser.click("#live button[data-seconds='0']")
    browser.wait_for("return document.documentElement.dataset.looks === '1'")
    after = browser.run("return document.getElementById('subtitle').textContent")
    calls = lambda text: int(re.match(r"([\d,]+) calls", text)[1].replace(",", ""))
    assert calls(after) > calls(before) > 0
    assert browser.log() == []
