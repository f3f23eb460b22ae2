# SPDX-License-Identifier: MIT
"""File and line of functions, and the lines themselves: in all views as gdb reads the same DWARF."""

import csv
import io
import json
import re
import shutil
import subprocess

import pytest

from conftest import PATIENCE

PROGRAM = """
#include <cstdio>
namespace shop {
struct Cart {
	int items[8] = {};
	int sum(int many) const;
	__attribute__((noinline)) int add(int n) { items[n % 8] += n; return n; }
};

__attribute__((noinline)) int Cart::sum(int many) const
{
	int s = 0;
	for (int i = 0; i < many % 8; i++)
		s += items[i];
	return s;
}
namespace { __attribute__((noinline)) int hidden(int n) { asm volatile(""); return n + 1; } }
template <class T> __attribute__((noinline)) T twice(T n) { asm volatile(""); return n * 2; } /* ends */
}
int main()
{
	shop::Cart cart;
	for (int i = 0; i < 4; i++)
		cart.add(shop::hidden(i));
	std::printf("%d\\n", shop::twice(cart.sum(5)));
}
"""
FUNCTIONS = {"main", "shop::Cart::add", "shop::Cart::sum", "shop::hidden", "shop::twice"}


def bare(name):
    """Without template arguments, parameters and the unnamed namespace."""
    name = re.sub(r"\(anonymous namespace\)::|<.*|\(.*", "", name.replace(" const", ""))
    return name.split()[-1]


def gdb_says(program):
    """By function (file, line), as gdb reads the program."""
    text = subprocess.run(["gdb", "-batch", "-nx", "-ex", "info functions -q -n .", program], check=True,
                          capture_output=True, text=True, timeout=PATIENCE).stdout
    found, file = {}, None
    for line in text.splitlines():
        if line.startswith("File "):
            file = line[5:].rstrip(":").rsplit("/", 1)[-1]
        elif numbered := re.match(r"(\d+):\s(?:static )?\S+ (.*);", line):
            found[bare(numbered[2])] = (file, int(numbered[1]))
    return {name: found[name] for name in FUNCTIONS}


@pytest.fixture(params=["gcc -gdwarf-5", "gcc -gdwarf-4", "clang -gdwarf-5", "clang -gdwarf-4"])
def traced(request, graftrace, tmp_path):
    """The recorded program and what gdb says."""
    compiler, flag = request.param.split()
    (tmp_path / "shop.cc").write_text(PROGRAM)
    subprocess.run([{"gcc": "g++", "clang": "clang++"}[compiler], "-O1", flag, "-Wl,--build-id", "-o",
                    "shop", "shop.cc"], cwd=tmp_path, check=True, timeout=PATIENCE)
    graftrace("record", "-l", "main", "-l", "shop::*", "-l", "int shop::*", "./shop")
    return gdb_says(tmp_path / "shop")


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def lines_of(rows, name="function"):
    """By function (file, line) of rows with the keys function, file and line."""
    return {bare(row[name]): (row["file"].rsplit("/", 1)[-1], int(row["line"])) for row in rows}


def test_every_view_has_the_lines_that_gdb_has(graftrace, traced):
    for form, read in (("csv", rows_of), ("json", lambda text: json.loads(text)["rows"])):
        assert lines_of(read(graftrace("report", "--lines", "--format", form).stdout)) == traced
    report = graftrace("report", "--lines").stdout
    graph = graftrace("graph", "--lines").stdout
    show = graftrace("show", "--lines").stdout
    for name, (file, line) in traced.items():
        assert re.search(rf" {name}(<.*>)?  {file}:{line}$", report.replace("int shop", "shop").replace(
            "(anonymous namespace)::", ""), re.M), name
        assert f"  {file}:{line}\n" in graph
        assert re.search(rf"{name.split('::')[-1]}.*\(\)(;| {{) /\* {file}:{line} \*/\n", show), name
    assert "shop.cc" not in graftrace("show").stdout + graftrace("report").stdout


def test_exports_have_them_too(graftrace, traced, tmp_path):
    def export(form):
        return graftrace("export", "--to", form, "-q", "-o", "-").stdout

    assert lines_of(rows_of(export("csv"))) == traced
    assert lines_of(map(json.loads, export("json").splitlines())) == traced
    events = [event for event in json.loads(export("chrome"))["traceEvents"] if event["ph"] == "X"]
    assert lines_of([{"function": event["name"], **event["args"]} for event in events]) == traced
    assert lines_of(json.loads(export("speedscope"))["shared"]["frames"], "name") == traced
    page = export("html")
    for file, line in traced.values():
        assert re.search(rf'"file":"[^"]*{re.escape(file)}","line":{line},"source":"', page)
    (tmp_path / "calls").write_text(export("callgrind"))
    table = subprocess.run(["callgrind_annotate", "--threshold=100", "calls"], cwd=tmp_path, check=True,
                           capture_output=True, text=True, timeout=PATIENCE).stdout
    for name, (file, _) in traced.items():
        assert re.search(rf"{re.escape(file)}:.*{name.split('::')[-1]}", table), name
    assert re.search(rf"^fn=\(\d+\) main\n{traced['main'][1]} \d", export("callgrind"), re.M)


def test_the_source_is_shown_while_it_is_that_of_the_program(graftrace, traced, tmp_path):
    twice = f"shop.cc:{traced['shop::twice'][1]}: template <class T> __attribute__((noinline)) T twice"
    assert traced and twice in graftrace("show", "--source").stdout
    assert twice in graftrace("report", "--source").stdout
    assert twice in graftrace("graph", "--source").stdout
    # The end of a comment in a source does not end ours.
    assert all(line.count("*/") <= 1 for line in graftrace("show", "--source").stdout.splitlines())
    (tmp_path / "shop.cc").write_text("\n" * 40)
    later = (tmp_path / "shop").stat().st_mtime_ns + 1_000_000_000
    subprocess.run(["touch", "-d", f"@{later / 1e9:f}", "shop.cc"], cwd=tmp_path, check=True, timeout=PATIENCE)
    assert "template" not in graftrace("show", "--source").stdout
    assert f"shop.cc:{traced['shop::twice'][1]} */" in graftrace("show", "--source").stdout


@pytest.mark.parametrize("traced", ["gcc -gdwarf-5"], indirect=True)
def test_lines_come_from_the_debug_file_of_the_same_build_and_no_other(graftrace, traced, tmp_path,
                                                                       monkeypatch):
    program = tmp_path / "shop"
    notes = subprocess.run(["readelf", "-n", program], check=True, capture_output=True, text=True,
                           timeout=PATIENCE).stdout
    build_id = re.search(r"Build ID: (\w+)", notes)[1]
    debug = tmp_path / "debug" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    debug.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True, timeout=PATIENCE)
    subprocess.run(["strip", program], check=True, timeout=PATIENCE)
    assert "shop.cc" not in graftrace("report", "--lines").stdout
    monkeypatch.setenv("GRAFTRACE_DEBUG_DIRECTORY", str(tmp_path / "debug"))
    found = rows_of(graftrace("report", "--lines", "--format", "csv").stdout)
    assert lines_of(found) == traced
    # Another program under the same name has no say.
    program.unlink()
    shutil.copy("/bin/true", program)
    assert lines_of(rows_of(graftrace("report", "--lines", "--format", "csv").stdout)) == traced
    debug.unlink()
    assert "shop.cc" not in graftrace("report", "--lines").stdout
