# SPDX-License-Identifier: MIT
"""The page of a recording, in a real browser: its figures against report, graph and the exported rows."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import urllib.request
from collections import defaultdict

import pytest

from conftest import PATIENCE, ROOT, line_with, wait_until
from mounted import PROGRAM as LIVE
from served import serving
from webdriver import Browser

HOSTILE = "</script><script>document.title='taken'</script><img/src=x/onerror=document.title=1>"
PROGRAM = r"""
#include <pthread.h>
#include <time.h>
#include <unistd.h>
#define N __attribute__((noinline))
static volatile unsigned sink;
static struct timespec began;
N void leaf(unsigned rounds) { for (unsigned i = 0; i < rounds; i++) sink += i; }
N void hostile(void) { leaf(2000); }
N unsigned again(unsigned depth) { leaf(5); return depth ? again(depth - 1) + 1 : 0; }
/* The last call sleeps for twice the time of the program so far, so that no wait for a CPU is as long. */
N void look_up(unsigned n)
{
	struct timespec now;

	leaf(10);
	if (n < 399)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	usleep(3000 + 2 * ((now.tv_sec - began.tv_sec) * 1000000 + (now.tv_nsec - began.tv_nsec) / 1000));
}
N void handle(unsigned n) { look_up(n); hostile(); if (n % 50 == 0) again(5); }
N void *work(void *first)
{
	for (unsigned n = 0; n < 200; n++)
		handle((unsigned long)first + n);
	return NULL;
}
int main(void)
{
	pthread_t other;
	clock_gettime(CLOCK_MONOTONIC, &began);
	pthread_create(&other, NULL, work, NULL);
	pthread_join(other, NULL);
	work((void *)200);
	return 0;
}
"""


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A program with a function whose name is markup."""
    directory = tmp_path_factory.mktemp("page")
    (directory / "p.c").write_text(PROGRAM)
    for command in (["gcc", "-O1", "-fno-inline", "-c", "p.c"],
                    ["objcopy", f"--redefine-sym=hostile={HOSTILE}", "p.o"],
                    ["gcc", "-pthread", "p.o", "-o", "p"]):
        subprocess.run(command, cwd=directory, check=True)
    return directory / "p"


@pytest.fixture
def recorded(graftrace, program):
    graftrace("record", program)
    return {row["function"]: row for row in
            json.loads(graftrace("report", "--format", "json").stdout)["rows"]}


def visit(browser, url):
    browser.ask("POST", "/url", {"url": url})
    browser.wait_for("return document.documentElement.dataset.ready === 'yes'")


def silent(browser, own):
    """Nothing is complained of, nothing foreign was run or asked for."""
    assert browser.log() == []
    assert browser.run("return document.title") == "p — graftrace"
    asked = browser.run("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [url for url in asked if not url.startswith(("data:", own))] == []


@pytest.fixture(params=["served", "file"])
def page(request, graftrace, browser, recorded):
    """The page is open: from a server, and as one file."""
    browser.log()
    if request.param == "file":
        done = graftrace("export", "--to", "html", "-q")
        assert done.stdout == "" and done.stderr == ""
        visit(browser, (graftrace.directory / "graftrace.html").as_uri())
        yield recorded
        silent(browser, "file:")
        return
    process = graftrace.start("serve", "-a", "127.0.0.1:0")
    try:
        url = line_with(process.stderr, r"http://127\.0\.0\.1:\d+/")[0]
        visit(browser, url)
        yield recorded
        silent(browser, url)
    finally:
        # The page asks for more meanwhile: not of a server that has ended.
        browser.ask("POST", "/url", {"url": "about:blank"})
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)


def show(browser, view, **state):
    """Goes to a view by its address, and waits until it is there."""
    words = "&".join(f"{name}={value}" for name, value in {"view": view, **state}.items())
    browser.run("location.hash = arguments[0]", words)
    browser.wait_for("return document.documentElement.dataset.view === arguments[0]", view)


def rows(browser, table):
    return browser.wait_for("""const rows = [...document.querySelectorAll(`#${arguments[0]} tbody tr`)];
        return rows.length > 0 && rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))""", table)


def boxes(browser, name=None):
    """What is drawn, as soon as it is."""
    found = browser.wait_for("""const boxes = window.graftrace.boxes();
        return boxes.some(b => arguments[0] === null || b.name === arguments[0]) && boxes""", name)
    return [box for box in found if name is None or box["name"] == name]


def boxes_now(browser):
    return browser.run("return window.graftrace.boxes()")


def id_of(browser, name):
    return browser.run("return source.ask('functions', {q: arguments[0], sort: 'self', limit: 2000})"
                       ".then(got => got.functions.find(f => f.name === arguments[0]).id)", name)


UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}


def ns(text):
    """Of a time with three digits that count."""
    value, unit = text.split()
    return float(value) * UNITS[unit]


def close(text, exact):
    """Of one call, less than 20 ns is not known, as report has it."""
    if text == "< 20 ns":
        return exact < 20
    return ns(text) == pytest.approx(exact, rel=0.006, abs=0.6)


def test_the_overview_and_the_table_are_the_reports(page, browser):
    show(browser, "overview")
    browser.wait_for("return window.graftrace.filled?.then(() => true)")
    text = browser.run("return document.querySelector('main').innerText")
    assert re.search(rf"calls\n{sum(row['calls'] for row in page.values()):,}\n", text)
    assert "threads\n2" in text and "lost records\n0" in text
    show(browser, "functions", sort="total")
    browser.wait_for("return document.documentElement.dataset.functions === 'total '")
    shown = {row[0]: row for row in rows(browser, "functions")}
    assert len(shown) == len(page)
    for name, row in page.items():
        # Markup looks like C++'s templates, and is cut as those are; the whole name is the title.
        cells = shown.get(name) or next(cells for text, cells in shown.items() if text not in page)
        assert int(cells[1].replace(",", "")) == row["calls"], name
        assert close(cells[2], row["total_ns"]) and close(cells[3], row["self_ns"]), name
        assert close(cells[6], row["maximum_ns"]), name
        # Of all calls, also those within another one of the same function.
        assert close(cells[4], row["average_ns"]) and close(cells[5], row["p99_ns"]), name
    titles = browser.run("return [...document.querySelectorAll('#functions a')].map(a => a.title)")
    assert sorted(titles) == sorted(page)


def test_the_slow_call_is_two_clicks_away(page, browser):
    show(browser, "overview")
    listed = rows(browser, "outliers")
    # Of calls within each other the innermost is told, with those that were slow by it.
    told = {row[0]: row[1] for row in listed}
    assert "handle" in told["look_up"] and "handle" not in told
    at = next(i for i, row in enumerate(listed) if row[0] == "look_up")
    browser.click(f"#outliers tbody tr:nth-child({at + 1}) td:last-child a")
    browser.wait_for("return document.documentElement.dataset.view === 'timeline'")
    browser.wait_for("return !document.getElementById('detail').hidden")
    detail = browser.wait_for("""const text = document.getElementById("detail").innerText;
        return text.includes("look_up") && text""")
    took = re.search(r"took\n(.*)", detail)[1]
    assert close(took, page["look_up"]["maximum_ns"])
    # It slept. A file has that by cells of the time line, a server exactly. Of the other calls it is not known
    # here how much of their time was off the CPU.
    off = browser.wait_for("""const text = document.getElementById("detail").innerText;
        return text.includes("off the CPU") && text""")
    off = re.search(r"off the CPU\n(about )?(.*)", off)
    others = page["look_up"]["total_ns"] - page["look_up"]["maximum_ns"]
    slept = page["look_up"]["total_off_cpu_ns"] - others
    assert slept > ns(took) / 2
    assert slept * (0.95 if off[1] else 0.994) <= ns(off[2]) <= ns(took)
    slow = max(boxes(browser, "look_up"), key=lambda box: box["took"])
    assert slow["took"] == page["look_up"]["maximum_ns"] and slow["w"] > 700


def exported(graftrace):
    text = graftrace("export", "--to", "csv", "-q", "-o", "-").stdout
    return list(csv.DictReader(io.StringIO(text)))


def test_the_time_line_goes_down_to_the_single_call(page, browser, graftrace):
    one = [call for call in exported(graftrace) if call["function"] == "handle"][277]
    start, took, depth = int(one["start_ns"]), int(one["duration_ns"]), int(one["depth"])
    show(browser, "timeline", **{"from": start, "to": start + took})
    found = browser.wait_for("""const found = window.graftrace.boxes().filter(b => b.name === "handle" &&
        b.count === 1 && b.start === arguments[0] && b.took === arguments[1]);
        return found.length > 0 && found""", start, took)
    assert len(found) == 1 and found[0]["depth"] == depth
    inner = [box for box in boxes(browser, "look_up") if box["lane"] == found[0]["lane"]]
    assert [box["depth"] for box in inner] == [depth + 1]


def press(browser, key):
    browser.run("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0], bubbles: true}))", key)


def test_keys_zoom_and_the_address_keeps_it(page, browser):
    show(browser, "timeline")
    boxes(browser)
    whole = browser.run("return document.getElementById('window').textContent")
    press(browser, "w")
    press(browser, "w")
    address = browser.wait_for("return /to=\\d+/.test(location.hash) && location.hash")
    browser.wait_for("return document.getElementById('window').textContent !== arguments[0]", whole)
    browser.run("location.reload()")
    browser.wait_for("return document.documentElement.dataset.ready === 'yes'")
    assert browser.run("return location.hash") == address
    boxes(browser)
    browser.wait_for("return document.getElementById('window').textContent !== arguments[0]", whole)
    press(browser, "Home")
    browser.wait_for("return document.getElementById('window').textContent === arguments[0]", whole)


def stacks(nodes, above=()):
    for node in nodes:
        path = (*above, node["function"])
        yield path, (node["count"], node["total_ns"], node["self_ns"])
        yield from stacks(node["calls"], path)


def test_the_flame_graph_is_the_graph(page, browser, graftrace):
    wanted = dict(stacks(json.loads(graftrace("graph", "--format", "json").stdout)["calls"]))
    show(browser, "flame")
    drawn, path = {}, []
    boxes(browser, "work")
    for box in boxes(browser):
        path[box["depth"]:] = [box["name"]]
        drawn[tuple(path)] = (box["calls"], box["total"], box["self"])
    all_time = sum(figures[1] for stack, figures in wanted.items() if len(stack) == 1)
    assert drawn.items() <= wanted.items()
    for stack, figures in wanted.items():
        assert stack in drawn or figures[1] < all_time / 100, stack
    # A click makes it the whole width.
    handle = boxes(browser, "handle")[0]
    click_box(browser, handle)
    browser.wait_for("return document.documentElement.dataset.flame.split(' ')[1].split('.').length > 1")
    again = browser.wait_for("return window.graftrace.boxes().filter(b => b.name === 'handle' && b.part === 1)")
    assert again[0]["total"] == handle["total"]
    assert "handle" in browser.run("return document.getElementById('crumbs').innerText")


def click_box(browser, box):
    browser.run("""const canvas = document.querySelector("canvas#flame"), at = canvas.getBoundingClientRect();
        const point = {clientX: at.left + arguments[0], clientY: at.top + arguments[1], bubbles: true};
        canvas.dispatchEvent(new PointerEvent("pointermove", point));
        canvas.dispatchEvent(new MouseEvent("click", point));""", box["x"] + box["w"] / 2, box["y"] + 8)


def test_the_flame_graph_of_one_thread(page, browser):
    show(browser, "flame")
    boxes(browser, "work")
    choices = browser.run("return [...document.querySelectorAll('#whose option')].map(o => [o.value, o.textContent])")
    assert [value for value, _ in choices] == ["all", "lane:0", "lane:1"]
    other = choices[2][0]
    browser.run("""const select = document.getElementById("whose");
        select.value = arguments[0];
        select.dispatchEvent(new Event("change"));""", other)
    browser.wait_for("return document.documentElement.dataset.flame === `${arguments[0]} `", other)
    drawn = browser.wait_for("const boxes = window.graftrace.boxes(); "
                             "return boxes.length > 0 && boxes[0].part === 1 && boxes")
    assert drawn[0]["name"] == "work" and drawn[0]["calls"] == 1
    assert not [box for box in drawn if box["name"] == "main"]


def test_the_page_of_a_function(page, browser, graftrace):
    durations = defaultdict(list)
    for call in exported(graftrace):
        durations[call["function"]].append(int(call["duration_ns"]))
    name = "look_up"
    show(browser, "function", id=id_of(browser, name))
    browser.wait_for("return document.getElementById('name')?.textContent === arguments[0]", name)
    figures = dict(browser.run("return [...document.querySelectorAll('.tiles div')].map(d => "
                               "[d.querySelector('dt').innerText, d.querySelector('dd').innerText])"))
    assert figures["calls"] == "400"
    assert close(figures["total"], page[name]["total_ns"]) and close(figures["self"], page[name]["self_ns"])
    assert close(figures["fastest"], page[name]["minimum_ns"])
    assert close(figures["slowest"], page[name]["maximum_ns"])
    exact = sorted(durations[name])
    for title, part in (("half below (p50)", 0.5), ("90 % below", 0.9)):
        # A bucket of the histogram is a sixteenth of its power of two.
        # a clock ticks: two neighbours may be far apart, and so many calls lie below either
        rank = int(part * len(exact))
        assert exact[rank - 1] * 0.92 - 2 <= ns(figures[title]) <= exact[rank] * 1.08 + 2, title
    slowest = rows(browser, "slowest")
    assert [ns(row[0]) for row in slowest] == pytest.approx(exact[::-1][:12], rel=0.006, abs=0.6)
    callers = rows(browser, "callers")
    assert [row[:2] for row in callers] == [["handle", "400"]]
    assert {row[0]: row[1] for row in rows(browser, "callees")}["leaf"] == "400"
    told = json.loads(graftrace("report", "--callees", name, "--format", "json").stdout)["rows"]
    assert {row["callee"]: f"{row['calls']:,}" for row in told} == \
        {row[0]: row[1] for row in rows(browser, "callees")}
    # A name leads to its function.
    browser.click("#callers tbody a")
    browser.wait_for("return document.getElementById('name')?.textContent === 'handle'")


def test_recursion_counts_once_here_too(page, browser):
    show(browser, "function", id=id_of(browser, "again"))
    browser.wait_for("return document.getElementById('name')?.textContent === 'again'")
    figures = dict(browser.run("return [...document.querySelectorAll('.tiles div')].map(d => "
                               "[d.querySelector('dt').innerText, d.querySelector('dd').innerText])"))
    assert close(figures["total"], page["again"]["total_ns"])


def test_a_hostile_name_is_only_text(page, browser):
    show(browser, "function", id=id_of(browser, HOSTILE))
    browser.wait_for("return document.getElementById('name')?.textContent === arguments[0]", HOSTILE)
    assert browser.run("return document.querySelectorAll('main img, main script').length") == 0
    show(browser, "flame")
    boxes(browser, HOSTILE)


def test_search_finds_functions_and_threads(page, browser):
    show(browser, "overview")
    press(browser, "/")
    assert browser.run("return document.activeElement.id") == "search"
    browser.type("#search", "look")
    browser.wait_for("return !document.getElementById('found').hidden && "
                     "document.getElementById('found').innerText.includes('look_up')")
    browser.press_enter("#search")
    browser.wait_for("return document.getElementById('name')?.textContent === 'look_up'")
    browser.type("#search", "p-")
    browser.wait_for("return document.getElementById('found').innerText.includes('Thread p-')")
    browser.press_enter("#search")
    browser.wait_for("return document.documentElement.dataset.view === 'timeline'")
    browser.run("document.getElementById('search').value = ''")


def test_bars_of_self_time_and_their_toggles(page, browser):
    show(browser, "overview")
    browser.wait_for("return document.documentElement.dataset.bars === 'lane' && "
                     "document.querySelectorAll('#bars .who').length")
    who = browser.run("return [...document.querySelectorAll('#bars .who')].map(e => e.textContent.replace(/-\\d+$/, ''))")
    assert who == ["p", "p"]
    much = browser.run("return [...document.querySelectorAll('#bars .much')].map(e => e.title)")
    exact = [int(text.split()[0].replace(",", "")) for text in much]
    assert sum(exact) == pytest.approx(sum(row["self_ns"] for row in page.values()), abs=len(page) * 4)
    # The one that sleeps: of the others a busy machine can leave less than is drawn.
    longest = id_of(browser, "look_up")
    assert browser.run("return document.querySelectorAll(`#bars [data-function='${arguments[0]}']`).length", longest) > 0
    at = browser.run("""return [...document.querySelectorAll("#legend button")].findIndex(b => b.title === "look_up")""")
    browser.click(f"#legend button:nth-child({at + 1})")
    assert browser.run("return document.querySelectorAll(`#bars [data-function='${arguments[0]}']`).length", longest) == 0
    browser.click("[data-by='cpu']")
    browser.wait_for("return document.documentElement.dataset.bars === 'cpu'")
    assert all(re.fullmatch(r"CPU \d+", text) for text in
               browser.run("return [...document.querySelectorAll('#bars .who')].map(e => e.textContent)"))


def test_it_fits_on_a_small_screen(page, browser):
    """Nothing is wider than the window, 500 pixels wide."""
    browser.ask("POST", "/window/rect", {"width": 500, "height": 800})
    try:
        for view in ("overview", "timeline", "flame", "functions"):
            show(browser, view)
            browser.wait_for("return document.querySelector('main').childElementCount > 0")
            assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), view
        # The link to the slow call is to be seen without scrolling at any width.
        show(browser, "overview")
        for width in (500, 700, 900, 1000, 1100, 1400):
            browser.ask("POST", "/window/rect", {"width": width, "height": 800})
            browser.wait_for("return document.getElementById('outliers') !== null && innerWidth === arguments[0]", width)
            assert browser.run("const box = document.getElementById('outliers').parentNode;"
                               "return box.scrollWidth <= box.clientWidth"), width
    finally:
        browser.ask("POST", "/window/rect", {"width": 1400, "height": 900})


METHODS = """
namespace of_a_long_name { template<class T> struct also_of_a_long_name { template<class U> struct and_one_more {
    __attribute__((noinline)) static unsigned of_the_method(unsigned n) { return n ? of_the_method(n - 1) + 1 : 0; }
}; }; }
int main() { return of_a_long_name::also_of_a_long_name<int>::and_one_more<char>::of_the_method(30) != 30; }
"""


def test_a_name_is_never_cut_at_the_method(graftrace, compile, browser):
    graftrace("record", compile(METHODS, "-O1", "-fno-inline", compiler="g++", suffix=".cc"))
    graftrace("report", "--html", "methods.html")
    browser.ask("POST", "/window/rect", {"width": 500, "height": 800})
    try:
        visit(browser, (graftrace.directory / "methods.html").resolve().as_uri())
        for view, of in (("overview", "top"), ("functions", "functions")):
            show(browser, view)
            names = [row[0] for row in rows(browser, of)]
            assert "of_a_long_name::also_of_a_long_name<…>::and_one_more<…>::of_the_method" in names
            seen = browser.run("""return [...document.querySelectorAll(`#${arguments[0]} a`)]
                .filter(a => a.textContent.endsWith("::of_the_method")).map(a => {
                    const range = document.createRange(), cell = a.closest("td").getBoundingClientRect();
                    const all = a.querySelector(".head");
                    range.selectNodeContents(a.lastChild);
                    return [range.getBoundingClientRect().right <= cell.right, all.scrollWidth > all.clientWidth];
                })""", of)
            assert seen == [[True, True]], view
    finally:
        browser.ask("POST", "/window/rect", {"width": 1400, "height": 900})


def test_a_name_on_a_narrow_box_is_the_methods(graftrace, compile, browser):
    graftrace("record", compile(METHODS, "-O1", "-fno-inline", compiler="g++", suffix=".cc"))
    graftrace("report", "--html", "methods.html")
    visit(browser, (graftrace.directory / "methods.html").resolve().as_uri())
    for most, text in ((40, "a::bcdefgh<…>::the_method"), (21, "a::bcdef…::the_method"), (14, "a…::the_method"),
                       (13, "the_method"), (8, "the_met…"), (2, "")):
        assert browser.run("return cut('a::bcdefgh<…>::the_method', arguments[0])", most) == text
    assert browser.run("return cut('a_function_without_scope', 11)") == "a_fu…_scope"


OPEN_END = """
#include <unistd.h>
__attribute__((noinline)) void part(void) { usleep(1000); }
int main(void)
{
    for (int i = 0; i < 30; i++)
        part();
    _exit(0);
}
"""


def test_a_call_that_did_not_return_is_marked_at_its_end_alone(graftrace, compile, browser):
    graftrace("record", compile(OPEN_END, "-O1"))
    graftrace("report", "--html", "open.html")
    visit(browser, (graftrace.directory / "open.html").resolve().as_uri())

    def is_marked(**window):
        """Whether the right edge of what is seen of main has the colour of marks."""
        show(browser, "timeline", **window)
        if window:
            browser.wait_for("return document.documentElement.dataset.timeline === arguments[0]",
                             "-".join(map(str, window.values())))
        main = boxes(browser, "main")[0]
        assert main["flags"] & 1
        browser.wait_for("return window.graftrace.boxes().filter(box => box.name === 'part').length > 0")
        return browser.run("""const canvas = document.getElementById("timeline"), ratio = canvas.width / canvas.clientWidth;
            const main = window.graftrace.boxes().find(box => box.name === "main");
            const x = Math.min(main.x + main.w, canvas.clientWidth) - 1, context = canvas.getContext("2d");
            const pixel = (at) => [...context.getImageData(at * ratio, (main.y + 4) * ratio, 1, 1).data].join();
            return pixel(x) !== pixel(x - 20)""")
    assert is_marked()
    main = boxes(browser, "main")[0]
    end = int(main["start"] + main["took"])
    assert not is_marked(**{"from": end // 3, "to": end // 2})


OPERATORS = """
#include <algorithm>
#include <map>
#include <string>
#include <vector>
namespace { struct Order { std::vector<int> items; bool operator<(const Order &other) const { return items < other.items; } }; }
static std::string name_of(int n) { return "k" + std::to_string(n); }
int main() {
    std::map<std::string, Order> orders;
    std::map<Order, std::string> names;
    for (int i = 0; i < 50; i++) {
        auto &items = orders[name_of(i % 7)].items;
        items.push_back(i);
        std::sort(items.begin(), items.end(), [](int a, int b) { return a > b; });
        names[orders[name_of(i % 7)]] = name_of(i);
    }
    return orders.size() == 7 ? 0 : 1;
}
"""
RUST = ["<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop", "<gimli::read::unit::Unit<R>>::entries",
        "core::ptr::drop_in_place<alloc::string::String>", "<F as core::str::pattern::Pattern>::into_searcher",
        "a<b", "x::<y", "operator<<", "std::operator<< <std::char_traits<char> >", "<dyn core::any::Any>::is<T>::{{closure}}"]


def test_short_names_are_the_terminals(graftrace, compile, browser):
    graftrace("record", compile(OPERATORS, "-O0", compiler="g++", suffix=".cc"))
    told = {which: graftrace("report", "--sort", "name", "-f", "name", "--names", which).stdout.splitlines()[1:]
            for which in ("short", "full")}
    names = [[line.split(None, 2)[2] for line in told[which] if line.strip()] for which in ("full", "short")]
    assert len(names[0]) > 100 and any(name.endswith("::operator()") for name in names[1])
    graftrace("report", "--html", "operators.html")
    visit(browser, (graftrace.directory / "operators.html").resolve().as_uri())
    for full, brief in zip(*names):
        assert browser.run("return shortName(arguments[0])", full) == brief, full
    assert [browser.run("return shortName(arguments[0])", name) for name in RUST] == [
        "<Vec<…> as Drop>::drop", "<Unit<…>>::entries", "core::ptr::drop_in_place<…>", "<F as Pattern>::into_searcher",
        "a<…>", "x::<y", "operator<<", "std::operator<< <…>", "<Any>::is<…>::{{closure}}"]


def test_a_long_command_line_leaves_room_for_the_figures(graftrace, browser, program):
    graftrace("record", program, "x" * 300, *[f"--option-{i}=value" for i in range(200)])
    graftrace("report", "--html", "long.html")
    visit(browser, (graftrace.directory / "long.html").resolve().as_uri())
    show(browser, "overview")
    text, height, scrolls = browser.run("""const shown = document.getElementById("command");
        return [shown.innerText, shown.clientHeight, shown.scrollHeight > shown.clientHeight]""")
    assert text.endswith("--option-199=value") and height < 80 and scrolls


def test_report_writes_the_page_too(graftrace, recorded):
    graftrace("report", "--html", "one.html")
    assert HOSTILE not in (graftrace.directory / "one.html").read_text()
    assert "html" in graftrace("report", "--html", "/nowhere/one.html", code=1).stderr


def test_the_recording_is_read_while_the_page_is_on_its_way(graftrace, recorded):
    """Its figures are not asked for first: a script that has not begun yet costs no time."""
    assert recorded
    process = graftrace.start("serve", "-a", "127.0.0.1:0")
    try:
        url = line_with(process.stderr, r"http://127\.0\.0\.1:\d+/")[0]
        with urllib.request.urlopen(url, timeout=PATIENCE) as page:
            assert b"<script>" in page.read()
        looks = 0
        while looks == 0:
            with urllib.request.urlopen(url + "api/progress", timeout=PATIENCE) as answer:
                looks = json.load(answer)["looks"]
        assert looks == 1
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)


FULL = """
#include <unistd.h>
static volatile unsigned sink;
void __attribute__((noinline)) leaf(void) { sink++; }
int main(void)
{
    for (int i = 0; i < 3000000; i++)
        leaf();
    char end;
    return write(1, "done\\n", 5) != 5 || read(0, &end, 1) != 0;
}
"""


def test_what_a_full_ring_loses_is_told_though_no_record_comes_after_it(graftrace, compile):
    program = compile(FULL, "-O1")
    process = graftrace.start("record", "--serve=127.0.0.1:0", "-b", "1M", program, stdin=subprocess.PIPE)
    try:
        url = line_with(process.stderr, r"http://127\.0\.0\.1:\d+/")[0]
        assert process.stdout.readline() == "done\n"
        ask = lambda what: json.loads(urllib.request.urlopen(f"{url}api/{what}").read())
        urllib.request.urlopen(url).read()
        wait_until(lambda: "program" in ask("overview"), "the program's name")
        seen = ask("overview")
        assert seen["lost"] > 1000000 and seen["lost"] + seen["calls"] == 3000001
    finally:
        process.communicate(timeout=PATIENCE)


def test_a_program_that_runs_is_looked_at_and_controlled(graftrace, compile, browser):
    browser.log()
    program = compile(LIVE, "-O2", "-pthread", "-fpatchable-function-entry=5")
    with serving(graftrace, program) as served:
        served.calls(7)
        visit(browser, f"http://127.0.0.1:{served.port}/")

        def calls_of(name):
            return browser.run("return source.ask('functions', {q: arguments[0]}).then(got => "
                               "got.functions.find(f => f.name === arguments[0])?.calls ?? 0)", name)

        assert calls_of("leaf") == 7
        served.calls(5)
        assert calls_of("leaf") == 7  # as it was looked at
        browser.click("[data-seconds='0']")
        browser.wait_for("return document.documentElement.dataset.looks === '1'")
        assert calls_of("leaf") == 12
        show(browser, "control")
        browser.wait_for("return document.documentElement.dataset.control === '1 function_graph'")
        browser.wait_for("return Number(document.documentElement.dataset.entries) >= 24")
        browser.type("#set_ftrace_filter", "middle")
        browser.press_enter("#set_ftrace_filter")
        browser.wait_for("return document.documentElement.dataset.written === 'set_ftrace_filter middle'")
        assert browser.run("return document.getElementById('set_ftrace_filter').value") == "middle"
        assert served.get("set_ftrace_filter") == "middle\n"
        browser.type("#set_ftrace_filter", "nothing_of_this_name")
        browser.press_enter("#set_ftrace_filter")
        browser.wait_for("return document.getElementById('told').textContent !== ''")
        browser.click("#tracing-on")
        browser.wait_for("return document.documentElement.dataset.control === '0 function_graph'")
        assert served.get("tracing_on") == "0\n"
        browser.run("location.href = 'about:blank'")


BUSY = r"""
#include <unistd.h>
volatile int sum;
__attribute__((noinline)) void leaf(void) { sum++; }
int main(void)
{
	for (;;) {
		for (int i = 0; i < 60; i++) /* the buffer is full after seconds */
			leaf();
		usleep(5000);
	}
}
"""


FORKS = r"""
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
volatile int sum;
__attribute__((noinline)) void leaf(void) { sum++; }
__attribute__((noinline)) void *work(void *name)
{
	prctl(PR_SET_NAME, name);
	leaf();
	usleep(100000); /* until its name is read */
	return NULL;
}
int main(void)
{
	pthread_t second;
	pid_t child = fork();
	pthread_create(&second, NULL, work, "second");
	pthread_join(second, NULL);
	if (child != 0)
		waitpid(child, NULL, 0);
	return 0;
}
"""


def test_what_a_full_buffer_means_is_said_and_mended_by_a_click(graftrace, compile, browser):
    browser.log()
    process = graftrace.start("record", "--serve=127.0.0.1:0", "--buffer-size", "512k",
                              compile(BUSY, "-O1"), "an", "argument")
    try:
        port = line_with(process.stderr, r"http://127\.0\.0\.1:(\d+)/")[1]
        visit(browser, f"http://127.0.0.1:{port}/")
        browser.wait_for("""return /^0 calls.s recorded, [1-9][\\d,]* lost.s: the buffer is full/.test(
            document.getElementById("rates").innerText)""")
        text = browser.run("return document.querySelector('main').innerText")
        assert f"\non\n{os.uname().nodename}\n" in text and " an argument\n" in text
        browser.click("[data-seconds='1']")
        browser.wait_for("return document.documentElement.dataset.looks === '1'")
        assert "No calls were recorded in this time." in browser.run("return document.querySelector('main').innerText")
        show(browser, "timeline")
        assert boxes_now(browser) == []
        browser.click("#empty")
        browser.wait_for("""return /^[1-9][\\d,]* calls.s recorded/.test(document.getElementById("rates").innerText)""")
        browser.run("location.href = 'about:blank'")
        assert browser.log() == []
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def test_the_end_of_what_is_served_is_seen(graftrace, compile, browser):
    process = graftrace.start("record", "--serve=127.0.0.1:0", compile(BUSY, "-O1"))
    try:
        port = line_with(process.stderr, r"http://127\.0\.0\.1:(\d+)/")[1]
        visit(browser, f"http://127.0.0.1:{port}/")
        assert "running" in browser.run("return document.getElementById('live').innerText")
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)
    browser.wait_for("return document.getElementById('running').textContent === 'ended'")


def test_the_end_of_the_program_is_seen_while_it_is_served_on(graftrace, compile, browser):
    program = compile("#include <unistd.h>\nint main(void) { char c; return read(0, &c, 1) < 0; }", "-O1")
    process = graftrace.start("record", "--serve=127.0.0.1:0", "--linger", program, stdin=subprocess.PIPE)
    try:
        port = line_with(process.stderr, r"http://127\.0\.0\.1:(\d+)/")[1]
        visit(browser, f"http://127.0.0.1:{port}/")
        assert "running" in browser.run("return document.getElementById('live').innerText")
        process.stdin.write("c")
        process.stdin.flush()
        browser.wait_for("return document.getElementById('running').textContent === 'ended'")
        assert "still served" in browser.run("return document.getElementById('rates').innerText")
        visit(browser, f"http://127.0.0.1:{port}/")
        browser.wait_for("return document.getElementById('running').textContent === 'ended'")
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def test_a_process_is_named_by_its_first_thread(graftrace, compile, browser):
    program = compile(FORKS, "-O1", "-pthread")
    graftrace("record", program)
    graftrace("export", "--to", "html", "-q")
    visit(browser, (graftrace.directory / "graftrace.html").as_uri())
    show(browser, "flame")
    choices = browser.run("return [...document.querySelectorAll('#whose option')].map(o => o.textContent)")
    named = [choice for choice in choices if choice.startswith("Process ")]
    assert [re.sub(r"\d+$", "", name) for name in named] == [f"Process {program.name[:15]}-"] * 2
    assert sum("second" in choice for choice in choices) == 2  # the threads


def test_the_keys_are_listed_by_a_click_too(page, browser):
    show(browser, "overview")
    browser.click("#help")
    assert "next, previous call" in browser.run("return document.querySelector('dialog').innerText")
    browser.click("dialog button")
    browser.wait_for("return document.querySelector('dialog') === null")


VALUES = """
#include <graftrace/event.h>
#include <time.h>
__attribute__((noinline)) const char *word(int number, const char *text)
{
	nanosleep(&(struct timespec){ 0, number * 1000000 }, 0);
	GRAFTRACE_EVENT(shop, sold, GRAFTRACE_INT(int, number, number), GRAFTRACE_STRING(text, text));
	return number == 2 ? "<b>two</b>" : text;
}
int main(void)
{
	for (int i = 0; i < 4; i++)
		word(i, "a text");
	return 0;
}
"""


@pytest.fixture(params=["served", "file"])
def with_values(request, graftrace, browser, compile):
    browser.log()
    graftrace("record", "-p", "function_graph", "--args", "--retval", "-e", "shop", "--",
              compile(VALUES, "-O0", "-g", f"-I{ROOT / 'include'}"))
    if request.param == "file":
        graftrace("export", "--to", "html", "-q")
        visit(browser, (graftrace.directory / "graftrace.html").as_uri())
        yield graftrace
        assert browser.log() == []
        return
    process = graftrace.start("serve", "-a", "127.0.0.1:0")
    try:
        visit(browser, line_with(process.stderr, r"http://127\.0\.0\.1:\d+/")[0])
        yield graftrace
        assert browser.log() == []
    finally:
        browser.ask("POST", "/url", {"url": "about:blank"})  # it asks no more
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)


def tip_at(browser, x, y):
    """What stands beside the pointer."""
    return browser.run("""const canvas = document.querySelector("canvas#timeline"), at = canvas.getBoundingClientRect();
        canvas.dispatchEvent(new PointerEvent("pointermove", {clientX: at.left + arguments[0],
            clientY: at.top + arguments[1], bubbles: true}));
        return document.getElementById("tip").innerText""", x, y)


def test_the_time_line_tells_what_calls_were_called_with_and_returned(with_values, browser):
    show(browser, "timeline")
    calls = sorted(boxes(browser, "word"), key=lambda box: box["start"])
    browser.wait_for("return window.graftrace.boxes().filter(b => b.name === 'word').length === 4")
    for number, call in enumerate(calls):
        said = tip_at(browser, call["x"] + call["w"] / 2, call["y"] + 4)
        returned = "<b>two</b>" if number == 2 else "a text"
        assert f'called with number={number}, text="a text"\nreturned "{returned}"' in said
    chosen = [str(calls[3][name]) for name in ("lane", "depth", "start", "took", "id", "count")]
    show(browser, "timeline", sel=".".join(chosen))
    browser.wait_for("return document.getElementById('detail').innerText.includes('number=3')")


def test_an_event_says_all_its_fields_beside_the_pointer(with_values, browser):
    event = [row for row in csv.DictReader(io.StringIO(
        with_values("export", "--to", "events-csv", "-q", "-o", "-").stdout))][2]
    at = int(event["time_ns"])
    show(browser, "timeline", **{"from": at - 100000, "to": at + 100000})
    call = boxes(browser, "word")[0]
    middle = browser.run("return document.querySelector('canvas#timeline').clientWidth / 2")
    top = min(box["y"] for box in boxes(browser))
    said = ""
    for x in range(int(middle) - 2, int(middle) + 40, 3):
        said = tip_at(browser, x, top - 12)
        if "sold" in said:
            break
    assert said.startswith('shop:sold: number=2 text="a text"\n') and call["lane"] == 0


def test_the_slowest_calls_stand_with_their_arguments(with_values, browser):
    show(browser, "function", id=id_of(browser, "word"))
    found = rows(browser, "slowest")
    assert sorted(row[3:5] for row in found) == [
        [f'number={n}, text="a text"', '"<b>two</b>"' if n == 2 else '"a text"'] for n in range(4)]


MANY_THREADS = r"""
#include <pthread.h>
static volatile unsigned sink;
__attribute__((noinline)) void leaf(unsigned n) { for (unsigned i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) void *work(void *calls)
{
	for (unsigned n = 0; n < (unsigned long)calls; n++)
		leaf(n);
	return NULL;
}
int main(void)
{
	for (unsigned long i = 0; i < 24000; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, work, (void *)(i % 100 ? 1ul : 9ul));
		pthread_join(thread, NULL);
	}
	return 0;
}
"""


def test_a_file_of_very_many_threads_shows_those_with_the_most_calls(graftrace, browser, compile):
    graftrace("record", "-b", "64M", "--", compile(MANY_THREADS, "-O1", "-pthread"))
    graftrace("export", "--to", "html", "-q")
    made = graftrace.directory / "graftrace.html"
    browser.log()
    visit(browser, made.as_uri())
    shown, left_out, calls = browser.run("""
        const whole = JSON.parse(document.getElementById("data").textContent), line = whole.timeline;
        const calls = new Map(whole.overview.lanes.map((lane) => [lane.lane, lane.calls]));
        return [line.lanes.length, line.leftOut, line.lanes.filter((lane) => calls.get(lane.lane) === 10).length];
    """)
    assert shown > 1000 and left_out > 0 and shown + left_out == 24001
    assert calls == 240
    assert browser.log() == []


MANY_MARKS = r"""
#include <stdint.h>
#include <graftrace/mark.h>

__attribute__((noinline)) void work(void)
{
	for (volatile int i = 0; i < 2000; i++)
		;
}
int main(void)
{
	for (int i = 0; i < 8000; i++) {
		graftrace_mark("a batch begins with its orders");
		work();
	}
	return 0;
}
"""


def test_a_recording_of_events_alone_has_a_time_line(graftrace, browser):
    graftrace("record", "-e", "syscalls", "--", "true")
    graftrace("export", "--to", "html", "-q")
    visit(browser, (graftrace.directory / "graftrace.html").as_uri())
    show(browser, "overview")
    assert "events alone: the time line shows them" in browser.run("return document.querySelector('main').innerText")
    show(browser, "timeline")
    browser.wait_for("return document.documentElement.dataset.timeline")
    width = browser.run("return document.querySelector('canvas#timeline').clientWidth")
    assert "syscalls:sys_" in tip_at(browser, width - 3, 30)


MARKS_OF_A_THREAD = r"""
#include <pthread.h>
#include <stdint.h>
#include <graftrace/mark.h>

static void *tells(void *nothing)
{
	graftrace_mark("told beside the calls");
	return nothing;
}
int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, tells, NULL);
	return pthread_join(thread, NULL);
}
"""


def test_a_thread_with_marks_alone_is_shown_beside_those_with_calls(graftrace, browser, compile):
    graftrace("record", "-p", "function_graph", "-l", "main", "-e", "graftrace:mark", "--",
              compile(MARKS_OF_A_THREAD, "-O1", "-pthread", f"-I{ROOT / 'include'}"))
    graftrace("export", "--to", "html", "-q")
    visit(browser, (graftrace.directory / "graftrace.html").as_uri())
    show(browser, "overview")
    assert "threads\n2\n" in browser.run("return document.querySelector('main').innerText")
    show(browser, "timeline")
    bottom = boxes(browser, "main")[0]["y"] + 17
    moment = browser.run("return JSON.parse(document.getElementById('data').textContent).timeline.moments[0][0] / "
                         "JSON.parse(document.getElementById('data').textContent).overview.length")
    width = browser.run("return document.querySelector('canvas#timeline').clientWidth")
    assert "told beside the calls" in tip_at(browser, moment * width + 1, bottom + 6 + 20 + 8)


def test_marks_are_shown_to_the_end_of_the_run_and_not_over_names(graftrace, browser, compile):
    """They were the first 300, written over the thread's name and over each other."""
    graftrace("record", "-p", "function_graph", "-e", "graftrace:mark", "--", compile(MANY_MARKS, "-O1", f"-I{ROOT / 'include'}"))
    graftrace("export", "--to", "html", "-q")
    in_file = json.loads(re.search(r'<script[^>]* id="data"[^>]*>(.*?)</script>',
                                   (graftrace.directory / "graftrace.html").read_text(), re.S)[1])
    process = graftrace.start("serve", "-a", "127.0.0.1:0")
    url = line_with(process.stderr, r"http://127\.0\.0\.1:\d+/")[0]
    try:
        ask = lambda what: json.loads(urllib.request.urlopen(f"{url}api/{what}").read())
        visit(browser, url)
        show(browser, "timeline")
        length, (lane,) = (ask("overview")[name] for name in ("length", "lanes"))
        assert lane["marks"] == 8000
        for moments, most in (ask("timeline?lanes=0")["moments"], 1500), (in_file["timeline"]["moments"], 6000):
            times = [moment[0] for moment in moments]
            assert 50 < len(times) <= most and times == sorted(times) and times[-1] > length * 0.95
        assert len(ask(f"timeline?lanes=0&from={times[5]}&to={times[6] + 1}")["moments"]) >= 2
        top = min(box["y"] for box in boxes(browser))
        width = browser.run("return document.querySelector('canvas#timeline').clientWidth")
        assert "a batch begins" in tip_at(browser, times[-1] / length * width + 1, top - 12)
        tip_at(browser, 20, top - 32)
        assert browser.run("return document.getElementById('tip').hidden")
    finally:
        browser.ask("POST", "/url", {"url": "about:blank"})
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
