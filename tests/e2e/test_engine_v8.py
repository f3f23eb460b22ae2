# SPDX-License-Identifier: MIT
"""V8 walks its stack by return addresses: node traced whole, at entries and returns."""

import csv
import io
import os
import re
import subprocess
import time

import pytest

from attaching import until_seen
from conftest import PROGRAMS

ENGINE = PROGRAMS / "engine.js"

# What V8 looks like: a word that one exported function sets, and a walk that asks it.
WALKER = """#include <stdio.h>
#include <string.h>
#include <unistd.h>
typedef unsigned long resolver(unsigned long);
namespace v8 {
struct Isolate { int enter(int x); };
struct V8 { static void SetReturnAddressLocationResolver(resolver *); };
static resolver *volatile set;
void V8::SetReturnAddressLocationResolver(resolver *one) { set = one; }
}
#define APART __attribute__((noinline, noclone))
int main(int, char **words);
static unsigned long same(unsigned long slot) { return slot; }
APART int look(unsigned long slot) {
	if (v8::set) slot = v8::set(slot);
	unsigned long real = *(volatile unsigned long *)slot, start = (unsigned long)main;
	return real - start < 1024;
}
APART int v8::Isolate::enter(int) {
	int known = look((unsigned long)__builtin_frame_address(0) + 8);
	__asm__ volatile("" : : : "memory");
	return known;
}
int main(int count, char **words) {
	bool own = count > 1 && !strcmp(words[1], "own"), loop = count > 1;
	if (own) v8::V8::SetReturnAddressLocationResolver(same);
	puts("ready");
	fflush(stdout);
	do {
		if (!v8::Isolate().enter(1)) return puts("not known"), 1;
		if (loop) usleep(1000);
	} while (loop);
	puts("known");
	return v8::set != nullptr;
}
"""


@pytest.fixture(scope="module")
def walker(compile):
    return compile(WALKER, "-O1", "-fno-omit-frame-pointer", compiler="g++", suffix=".cc")


def test_an_engine_that_asks_for_return_addresses_is_told_of_the_real_ones(walker, graftrace):
    listed = {row["function"]: row["traced"] for row in csv.DictReader(io.StringIO(
        graftrace("functions", "--format", "csv", walker).stdout))}
    assert listed["v8::Isolate::enter"] == listed["look"] == "graph"
    assert graftrace("record", "--", walker, code=1).stdout == "ready\nknown\n"
    report = graftrace("report").stdout
    assert re.search(r"^ +[\d.]+ +1 .* [nu]s .* v8::Isolate::enter$", report, re.M)


@pytest.mark.parametrize("how", ["loop", "own"])
def test_attaching_sets_it_and_leaves_another_alone(how, walker, graftrace):
    def is_as_it_should(_):
        line = re.search(r".* v8::Isolate::enter$", graftrace("report", code=None).stdout, re.M)
        has_time = line and re.search(r" [mun]?s ", line[0])
        assert not has_time or how == "loop"
        return line and (has_time or how == "own")

    with subprocess.Popen([str(walker), how], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        for _ in range(3):
            until_seen(lambda: graftrace("record", "-P", process.pid, "--for", "50ms"), is_as_it_should)
        listing = graftrace("functions", "-P", process.pid).stdout
        assert ("has another resolver" in listing) == (how == "own")
        time.sleep(0.05)
        assert process.poll() is None
        process.kill()


def run(words, directory, **how):
    return subprocess.run([str(word) for word in words], cwd=directory, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=300, **how)


def test_node_is_traced_whole_with_recursion_exceptions_collections_and_workers(graftrace, tmp_path):
    words = ["node", ENGINE, "1"]
    plain = run(words, tmp_path)
    assert plain.returncode == 9
    traced = graftrace("record", "--lib", "libnode*", "--", *words, code=9, timeout=300)
    assert traced.stdout == plain.stdout
    assert re.search(r"[1-9][0-9]*,[0-9,]*,[0-9]{3} calls.* 0 lost", traced.stderr)
    report = graftrace("report", timeout=120).stdout
    assert re.search(r"[0-9] m?s .* node::Start", report)


def test_node_is_attached_to_and_left_while_it_works(graftrace, tmp_path):
    plain = run(["node", ENGINE, "1"], tmp_path).stdout.splitlines()
    with subprocess.Popen(["node", str(ENGINE), "1", "loop"], cwd=tmp_path, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        for line in process.stdout:
            if line == "looping\n":
                break
        for _ in range(2):
            graftrace("record", "--lib", "libnode*", "-P", process.pid, "-n", "v8::internal::*Scan*", "--for", "100ms",
                      timeout=120)
        said, _ = process.communicate("now\n", timeout=120)
        assert process.returncode == 5
    assert said.splitlines()[-1].rsplit(" ", 1)[0].split(" ", 1)[1] in plain[0]
