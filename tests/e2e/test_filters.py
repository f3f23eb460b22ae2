# SPDX-License-Identifier: MIT
"""set_ftrace_filter and set_ftrace_notrace of a running program: whatever the way in which a list
came to be what it is, the functions that are patched are those that it names."""

import fnmatch
import random
import re

import pytest

from conftest import PATIENCE
from mounted import Mounted

PROGRAM = r"""
#include <cstdio>
#include <cstring>
namespace space { struct Thing { __attribute__((noinline)) int get(int x) { asm(""); return x; } }; }
#define F(n) extern "C" __attribute__((noinline)) int n(int x) { asm(""); return x + 1; }
F(red) F(green) F(blue) F(cyan) F(leaf) F(other) F(middle)
int main()
{
	char line[64];
	space::Thing thing;
	int sum = 0;
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		sum += red(1) + green(2) + blue(3) + cyan(4) + leaf(5) + other(6) + middle(7);
		sum += thing.get(1);
		puts("done");
		fflush(stdout);
	}
	return 3;
}
"""


@pytest.fixture
def mounted(graftrace, compile):
    program = compile(PROGRAM, "-O1", "-fpatchable-function-entry=5", compiler="g++",
                      suffix=".cc")
    mounted = Mounted(graftrace, program, "-p", "function_graph")
    yield mounted
    mounted.process.stdin.close()
    assert mounted.process.wait(timeout=PATIENCE) == 3
    mounted.process.stdout.close()
    mounted.process.stderr.close()


def names(path):
    return {line.split(" ")[0] for line in path.read_text().splitlines()
            if line and not line.startswith("#")}


def test_what_is_patched_is_what_the_lists_say_after_any_changes(mounted):
    top = mounted.path
    everything = names(top / "available_filter_functions")
    assert {"red", "main", "space::Thing::get"} <= everything
    words = ["red", "green", "blue", "c?an", "leaf", "o*", "main", "space::Thing::get",
             "_ZN5space5Thing3getEi", "[mr]*"]
    mangled = {"_ZN5space5Thing3getEi": "space::Thing::get"}
    chance = random.Random(7)
    lists = {"set_ftrace_filter": [], "set_ftrace_notrace": []}

    def named(globs):
        return {name for name in everything for glob in globs
                if fnmatch.fnmatchcase(name, mangled.get(glob, glob))}

    for _ in range(120):
        file = chance.choice(list(lists))
        now = lists[file]
        if now and chance.random() < 0.45:
            word = chance.choice(now)
            with open(top / file, "a", encoding="utf-8") as to:
                to.write("!" + word)
            now.remove(word)
        elif chance.random() < 0.1:
            (top / file).write_text("")
            now.clear()
        else:
            word = chance.choice(words)
            if word in now:
                continue
            with open(top / file, "a", encoding="utf-8") as to:
                to.write(word)
            now.append(word)
        only = named(lists["set_ftrace_filter"]) if lists["set_ftrace_filter"] else everything
        assert names(top / "enabled_functions") == only - named(lists["set_ftrace_notrace"]), lists


def test_a_switched_function_is_recorded_from_the_next_call_on(mounted):
    top = mounted.path
    (top / "set_ftrace_filter").write_text("red")
    with open(top / "set_ftrace_filter", "a", encoding="utf-8") as to:
        to.write("blue")
    mounted.calls(1)
    with open(top / "set_ftrace_filter", "a", encoding="utf-8") as to:
        to.write("!red")
    mounted.calls(1)
    called = re.findall(r"\|  +(\w+)\(\);", (top / "trace").read_text())
    assert called == ["red", "blue", "blue"]
