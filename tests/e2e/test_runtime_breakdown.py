# SPDX-License-Identifier: MIT
"""graftrace runtime-breakdown: the page in a real browser, and the command around it."""

import csv
import os
import random
import re
import stat
import time
from collections import defaultdict
from decimal import Decimal

import pytest

from conftest import wait_until
from webdriver import Browser

HOSTILE = "</script><script>document.title='taken'</script>"
HOSTILE_LINK = "<a href='javascript:document.title=1'>x</a><b>%{x}"
NAMES = ["kernel_sleep", "epoll_wait", "runtime_memcpy", "mcache_alloc", "tcp_input", HOSTILE, HOSTILE_LINK,
         "std::vector<int, std::allocator<int> >::push_back", "café"]
HEADER = "function,tid,latency_us,latency_us_self\n"


def write_csv(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER.strip().split(","))
        writer.writerows(rows)


def sums(path):
    """By function: calls, total, self; and by function and thread: self. As exact decimals."""
    functions = defaultdict(lambda: [0, Decimal(0), Decimal(0)])
    cells = defaultdict(Decimal)
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            of = functions[row["function"]]
            of[0] += 1
            of[1] += Decimal(row["latency_us"])
            of[2] += Decimal(row["latency_us_self"])
            cells[row["function"], row["tid"]] += Decimal(row["latency_us_self"])
    return functions, cells


def bars(browser):
    """The heights of the bars that are drawn: {(function, thread): us}. From plotly's own state."""
    return {(name, thread): Decimal(str(us)) for name, thread, us in browser.run("""
        const names = JSON.parse(document.getElementById("data").textContent).functions.map(f => f[0]);
        return document.getElementById("chart").data.flatMap((t, i) => t.visible === true ?
            t.x.map((x, j) => [names[i] ?? t.name, x, t.y[j]]) : []);""")}


def drawn(browser):
    """How many rectangles of some height are in the chart's drawing."""
    return browser.run("""return [...document.querySelectorAll("#chart .barlayer .point path")]
        .filter(p => p.getBBox().height > 0 && p.getBBox().width > 0).length""")


def rows(browser):
    """The table's rows as texts, those hidden marked."""
    return browser.run("""return [...document.querySelectorAll("#legend tr")].map(row => ({
        name: row.cells[1].textContent, calls: row.cells[2].textContent,
        total: row.cells[3].textContent, self: row.cells[4].textContent,
        hidden: row.classList.contains("hidden"), rest: row.classList.contains("rest") }))""")


def number(text):
    return Decimal(text.replace(",", ""))


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


@pytest.fixture
def page(graftrace, browser):
    """page(rows) -> the CSV's path; the page is made of it and open in the browser, and silent."""
    def make(rows):
        path = graftrace.directory / "trace.csv"
        write_csv(path, rows)
        done = graftrace("runtime-breakdown", "--no-open", "trace.csv")
        assert done.stdout == "trace.html\n" and done.stderr == ""
        browser.log()
        browser.open(graftrace.directory / "trace.html")
        browser.wait_for("return document.documentElement.dataset.ready === 'yes'")
        return path
    yield make
    assert browser.log() == []
    requests = browser.run("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [url for url in requests if not url.startswith(("data:", "blob:"))] == []


def few(seed=1):
    rng = random.Random(seed)
    return [(name, rng.choice([7, 11, 1234]), f"{us * 2:.3f}", f"{us:.3f}")
            for name in NAMES for us in (rng.uniform(1, 900) for _ in range(20))]


def many(functions=400):
    rng = random.Random(2)
    return [(f"function_{i}" if i % 10 else f"wait_{i}", rng.choice([1, 2]), "9.000",
             f"{1000 - i + rng.random():.3f}") for i in range(functions) for _ in range(3)]


def test_there_is_a_bar_for_each_thread_with_each_functions_self_time(page, browser):
    functions, cells = sums(page(few()))
    assert bars(browser) == dict(cells)
    assert drawn(browser) == len(cells)
    assert browser.run("return document.getElementById('chart').layout.barmode") in ("stack", "relative")
    texts = browser.run("return document.body.innerText")
    assert "Sum of Per-Function Self Latencies" in texts
    titles = browser.run("""return [...document.querySelectorAll("#chart .xtitle, #chart .ytitle")]
        .map(t => t.textContent)""")
    assert titles == ["Thread Idx", "Latency (us)"]


def test_the_tables_numbers_are_the_csvs(page, browser):
    functions, _ = sums(page(few()))
    shown = {row["name"]: [number(row[key]) for key in ("calls", "total", "self")]
             for row in rows(browser)}
    assert shown == {name: [Decimal(of[0]), of[1], of[2]] for name, of in functions.items()}
    foot = browser.run("return [...document.getElementById('sum').cells].map(c => c.textContent)")
    assert number(foot[2]) == sum(of[0] for of in functions.values())
    assert number(foot[4]) == sum(of[2] for of in functions.values())


def test_a_click_in_the_legend_hides_a_function_and_another_shows_it(page, browser):
    _, cells = sums(page(few()))
    first = rows(browser)[0]["name"]
    left = {key: us for key, us in cells.items() if key[0] != first}
    browser.click("#legend tr:first-child button")
    assert rows(browser)[0]["hidden"]
    assert bars(browser) == left
    browser.wait_for("return document.querySelectorAll('#chart .barlayer .point').length === arguments[0]",
                     len(left))
    time.sleep(0.6)  # else the two clicks would be a double click
    browser.click("#legend tr:first-child td.name")
    assert bars(browser) == dict(cells)


def test_a_double_click_shows_one_function_alone(page, browser):
    _, cells = sums(page(few()))
    second = rows(browser)[1]["name"]
    browser.double_click("#legend tr:nth-child(2) td.name")
    browser.wait_for("return document.querySelectorAll('#legend tr.hidden').length === arguments[0]",
                     len(NAMES) - 1)
    assert bars(browser) == {key: us for key, us in cells.items() if key[0] == second}
    browser.click("#all")
    assert bars(browser) == dict(cells)
    browser.click("#none")
    assert bars(browser) == {}


def test_what_sleeps_or_waits_is_hidden_in_one_click_and_told(page, browser):
    _, cells = sums(page(few()))
    browser.click("#waits")
    assert {row["name"] for row in rows(browser) if row["hidden"]} == {"kernel_sleep", "epoll_wait"}
    assert bars(browser) == {key: us for key, us in cells.items()
                             if key[0] not in ("kernel_sleep", "epoll_wait")}
    told = browser.run("return document.getElementById('told').textContent")
    assert "Hid 2" in told and "kernel_sleep" in told and "epoll_wait" in told
    browser.click("#waits")
    assert bars(browser) == dict(cells)
    assert browser.run("return document.getElementById('told').textContent") == ""


def test_the_search_leaves_only_what_matches(page, browser):
    page(few())
    browser.type("#search", "ALLOC")
    assert {row["name"] for row in rows(browser)} == {
        "mcache_alloc", "std::vector<int, std::allocator<int> >::push_back"}
    browser.type("#search", "no such function")
    browser.wait_for("return document.querySelectorAll('#legend tr').length === 0")
    assert "No function" in browser.run("return document.getElementById('hint').textContent")
    browser.run("""const s = document.getElementById("search"); s.value = "";
        s.dispatchEvent(new Event("input"));""")
    assert len(rows(browser)) == len(NAMES)


def test_the_table_is_sorted_by_any_column_both_ways(page, browser):
    page(few())
    for key, column in (("self", "self"), ("total", "total"), ("calls", "calls")):
        browser.run("document.querySelector(`th[data-key=${arguments[0]}]`).click()", key)
        up = [number(row[column]) for row in rows(browser)]
        browser.run("document.querySelector(`th[data-key=${arguments[0]}]`).click()", key)
        down = [number(row[column]) for row in rows(browser)]
        assert sorted(up) == sorted(down)
        assert {tuple(up), tuple(down)} == {tuple(sorted(up)), tuple(sorted(up, reverse=True))}
    browser.run("document.querySelector('th[data-key=name]').click()")
    names = [row["name"] for row in rows(browser)]
    assert names == browser.run("return arguments[0].sort((a, b) => a.localeCompare(b, 'en'))", names)


def test_beyond_the_top_150_functions_there_is_other(page, browser):
    functions, cells = sums(page(many()))
    ranked = sorted(functions, key=lambda name: -functions[name][2])
    shown = {row["name"]: row for row in rows(browser)}
    assert len(shown) == 152
    assert set(ranked[:150]) < set(shown)
    for name, waits in (("other (225 functions)", False), ("other that sleep or wait (25 functions)", True)):
        lumped = [of for of in ranked[150:] if of.startswith("wait_") == waits]
        assert number(shown[name]["self"]) == sum(functions[of][2] for of in lumped)
        assert number(shown[name]["calls"]) == sum(functions[of][0] for of in lumped)
    assert abs(sum(bars(browser).values()) - sum(cells.values())) < Decimal("0.001")
    # One of the rest is found by the search, and marked as such.
    browser.type("#search", ranked[200])
    found = [row for row in rows(browser) if row["name"] == ranked[200]]
    assert len(found) == 1 and found[0]["rest"]
    assert number(found[0]["self"]) == functions[ranked[200]][2]


def test_hiding_what_waits_takes_the_lump_of_those_too(page, browser):
    functions, _ = sums(page(many()))
    browser.click("#waits")
    left = sum(of[2] for name, of in functions.items() if not name.startswith("wait_"))
    assert abs(sum(bars(browser).values()) - left) < Decimal("0.001")


def test_of_very_many_threads_the_last_are_one_bar_when_asked_for(page, browser):
    page([("f", tid, "1.000", f"{1000 - tid}.000") for tid in range(1, 251)])
    assert {thread for _, thread in bars(browser)} == {str(tid) for tid in range(1, 100)}
    told = browser.run("return document.getElementById('crowd').textContent")
    rest = sum(1000 - tid for tid in range(100, 251))
    assert "99 threads with the most self time" in told and f"151 threads, {rest:,}.000 us" in told
    browser.click("#others")
    assert bars(browser)["f", "151 others"] == rest
    assert len(bars(browser)) == 100
    browser.click("#others")
    assert len(bars(browser)) == 99


def test_hostile_names_are_text_and_nothing_else(page, browser):
    page(few())
    assert browser.run("return document.title").startswith("trace.csv")
    names = [row["name"] for row in rows(browser)]
    assert HOSTILE in names and HOSTILE_LINK in names
    assert browser.run("return document.querySelectorAll('#legend b, #legend a, #chart a').length") == 0
    # What plotly shows beside the pointer holds the name as it is, without its markup.
    index = names.index(HOSTILE_LINK)
    place = browser.run("return JSON.parse(document.getElementById('data').textContent)"
                        ".functions.findIndex(f => f[0] === arguments[0])", HOSTILE_LINK)
    assert index >= 0
    browser.run("Plotly.Fx.hover('chart', [{ curveNumber: arguments[0], pointNumber: 0 }])", place)
    text = browser.wait_for("return document.querySelector('#chart .hoverlayer .hovertext')?.textContent")
    assert "<a href=" in text and "<b>" in text
    assert browser.run("return document.querySelectorAll('#chart .hoverlayer a').length") == 0


def test_one_thread_and_no_call_make_pages_too(page, browser):
    page([("f", 1, "1.000", "1.000")])
    assert drawn(browser) == 1
    page([])
    assert drawn(browser) == 0 and rows(browser) == []
    assert "0 calls" in browser.run("return document.getElementById('summary').textContent")


def test_the_page_asks_nothing_of_the_network(graftrace):
    write_csv(graftrace.directory / "trace.csv", few())
    graftrace("runtime-breakdown", "--no-open", "trace.csv", "-o", "page.html")
    text = (graftrace.directory / "page.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert not re.search(r"<(script|link|img|iframe)[^>]*\b(src|href)=\"(?!data:)", text)


def test_the_page_fits_wide_and_narrow_windows(graftrace):
    write_csv(graftrace.directory / "trace.csv", few())
    graftrace("runtime-breakdown", "--no-open", "trace.csv")
    for width, height in ((1400, 900), (700, 1000)):
        with Browser(width, height) as browser:
            browser.open(graftrace.directory / "trace.html")
            browser.wait_for("return document.documentElement.dataset.ready === 'yes'")
            box = browser.run("return document.querySelector('#chart .main-svg').getBoundingClientRect().toJSON()")
            room = browser.run("return document.getElementById('chart-box').getBoundingClientRect().toJSON()")
            assert box["width"] > 0.9 * room["width"] and box["height"] > 0.9 * room["height"]
            assert browser.run("return document.documentElement.scrollWidth <= innerWidth")


# The command itself.

def test_stdin_and_stdout_are_taken(graftrace):
    done = graftrace("runtime-breakdown", "-o", "-", "-", stdin=HEADER + "f,1,2,3\n")
    assert done.stdout.startswith("<!DOCTYPE html>") and '"source":"stdin"' in done.stdout
    assert list(graftrace.directory.iterdir()) == []


def test_bad_rows_are_told_and_counted_on_the_page(graftrace):
    (graftrace.directory / "x.csv").write_bytes(
        HEADER.encode() + b"f,1,2,3\r\nf,one,2,3\r\ng,1,2,3\0\r\n\"cut")
    done = graftrace("runtime-breakdown", "--no-open", "x.csv")
    assert "3 rows could not be read" in done.stderr
    assert "line 3 (byte " in done.stderr and "tid is no number" in done.stderr
    assert '"bad":3' in (graftrace.directory / "x.html").read_text()


@pytest.mark.parametrize("text, words", [
    ("", "empty"),
    ("\n", "no column 'function'"),
    ("function,tid\nf,1\n", "no column 'latency_us'"),
    (HEADER + "f,x,2,3\n", "no row"),
    ("\0" * 5000, "no column"),
    ("x" * 3_000_000, "no CSV header"),
], ids=["empty", "a blank line", "columns missing", "no good row", "NUL bytes", "one long line"])
def test_what_is_no_such_csv_is_refused_and_leaves_no_page(graftrace, text, words):
    (graftrace.directory / "x.csv").write_text(text)
    (graftrace.directory / "x.html").write_text("the old one")
    done = graftrace("runtime-breakdown", "--no-open", "x.csv", code=1)
    assert words in done.stderr and done.stderr.startswith("graftrace runtime-breakdown: ")
    assert (graftrace.directory / "x.html").read_text() == "the old one"
    assert len(list(graftrace.directory.iterdir())) == 2


def test_files_that_cannot_be_read_or_written_are_refused(graftrace):
    (graftrace.directory / "x.csv").write_text(HEADER + "f,1,2,3\n")
    assert "cannot open 'none.csv'" in graftrace("runtime-breakdown", "none.csv", code=1).stderr
    assert "read" in graftrace("runtime-breakdown", "-n", ".", code=1).stderr
    assert graftrace("runtime-breakdown", "-n", "x.csv", "-o", "none/x.html", code=1).stderr
    assert "space" in graftrace("runtime-breakdown", "-n", "x.csv", "-o", "/dev/full", code=1).stderr
    graftrace("runtime-breakdown", code=2)
    graftrace("runtime-breakdown", "x.csv", "y.csv", code=2)


def opener(directory):
    """A directory with an xdg-open that notes what it is given."""
    program = directory / "bin" / "xdg-open"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho \"$@\" > '{directory}/opened.new'\nmv '{directory}/opened.new' '{directory}/opened'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}", "WAYLAND_DISPLAY": ""}


def test_the_page_is_opened_where_there_is_a_display(graftrace):
    (graftrace.directory / "x.csv").write_text(HEADER + "f,1,2,3\n")
    environment = opener(graftrace.directory)
    graftrace("runtime-breakdown", "x.csv", env={**environment, "DISPLAY": ":7"})
    opened = graftrace.directory / "opened"
    wait_until(opened.exists, "the browser")
    assert opened.read_text() == "x.html\n"


@pytest.mark.parametrize("words, display", [(["--no-open"], ":7"), ([], "")])
def test_the_page_is_not_opened_without_a_display_or_when_told_so(graftrace, words, display):
    (graftrace.directory / "x.csv").write_text(HEADER + "f,1,2,3\n")
    environment = opener(graftrace.directory)
    done = graftrace("runtime-breakdown", *words, "x.csv", env={**environment, "DISPLAY": display})
    assert done.stdout == "x.html\n"
    assert not (graftrace.directory / "opened").exists()
