# SPDX-License-Identifier: MIT
"""Events at a function's first instruction, and those of libraries, switched on while the program runs: whatever is
traced besides, and if nothing is."""

import errno
import re
import subprocess

import pytest

from conftest import PATIENCE, ROOT, wait_until
from mounted import refused

LIBRARY = r"""
#include <graftrace/event.h>
#define ALONE __attribute__((noinline, aligned(32)))
ALONE int served(int n) { GRAFTRACE_EVENT(plug, served, GRAFTRACE_INT(int, n, n)); return n * 3 + 1; }
ALONE int probed(int n) { return n * 7 + 1; }
ALONE int other(int n) { return n * 9 + 1; }
"""

PROGRAM = r"""
#include <graftrace/event.h>
#include <stdio.h>
#include <stdlib.h>
#define ALONE __attribute__((noinline, aligned(32)))
int served(int n);
int probed(int n);
int other(int n);
ALONE int mine(int n) { GRAFTRACE_EVENT(shop, mine, GRAFTRACE_INT(int, n, n)); return n * 5 + 1; }
ALONE int taken(int n) { return n * 11 + 1; }
/* What its event's nop stands in is one instruction behind the entry. */
int inside(int n);
__asm__(".text\n.balign 32\n.globl inside\n.type inside, @function\n"
	"inside: push %rbx\n"
	"990: nop\n"
	".pushsection .note.stapsdt,\"?\",@note\n.balign 4\n.4byte 992f-991f, 994f-993f, 3\n"
	"991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b, 0, 0\n"
	".asciz \"own\"\n.asciz \"inside\"\n.asciz \"-4@%edi\"\n994: .balign 4\n.popsection\n"
	"1: inc %edi\n test $7, %edi\n jnz 1b\n mov %edi, %eax\n pop %rbx\n ret\n"
	".size inside, .-inside\n");
/* At each line all functions are called so often as it says. */
int main(void)
{
	char line[64];
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		int sum = 0, i, n = (int)strtol(line, NULL, 10);
		for (i = 0; i < n; i++)
			sum += served(i) + probed(i) + other(i) + mine(i) + taken(i) + inside(i);
		printf("%d\n", sum);
		fflush(stdout);
	}
	return 0;
}
"""

EVENTS = ("plug/served", "shop/mine", "set/probed", "set/other", "set/taken", "set/strtol")


class Mount:
    def __init__(self, graftrace, options, program):
        self.path = graftrace.directory / "tracing"
        self.path.mkdir()
        self.process = graftrace.start("mount", *options, self.path, "--", program, stdin=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n", self.process.stderr.read()
        wait_until((self.path / "trace").exists, "the mount")

    def run(self, times):
        """How often each event was recorded meanwhile."""
        (self.path / "trace").write_text("")
        self.process.stdin.write(f"{times}\n")
        self.process.stdin.flush()
        self.process.stdout.readline()
        text = (self.path / "trace").read_text()
        return {event: len(re.findall(rf"\b{event.split('/')[1]}: [n(]", text)) for event in EVENTS}

    def add(self, file, text):
        with open(self.path / file, "a", encoding="utf-8") as out:
            out.write(text + "\n")

    def enable(self, event, on=True):
        (self.path / "events" / event / "enable").write_text(f"{on:d}\n")

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    place = tmp_path_factory.mktemp("built")
    (place / "library.c").write_text(LIBRARY)
    (place / "program.c").write_text(PROGRAM)
    flags = ["-O2", "-fcf-protection=none", f"-I{ROOT / 'include'}"]
    subprocess.run(["gcc", *flags, "-shared", "-fPIC", "-o", place / "libplug.so", place / "library.c"], check=True)
    subprocess.run(["gcc", *flags, "-o", place / "program", place / "program.c", f"-L{place}", "-lplug",
                    f"-Wl,-rpath,{place}"], check=True)
    return place / "program", place / "libplug.so"


@pytest.fixture
def mount(graftrace, built):
    made = []

    def start(*options):
        made.append(Mount(graftrace, options, built[0]))
        return made[0]

    yield start
    made[0].end()


@pytest.mark.parametrize("options", [["-p", "nop"], ["-l", "no_such*"], ["-n", "*"], ["-p", "function_graph"],
                                     ["-p", "function_graph", "-l", "taken"], ["--libs", "-p", "function"]],
                         ids=["nop", "none", "notrace", "all", "one", "libraries"])
def test_each_event_is_on_while_it_is_asked_for(mount, built, options):
    program, library = built
    made = mount(*options)
    for line in (f"p:set/probed {library}:probed n=%di:s32", f"r:set/other {library}:other n=$retval:s32",
                 f"p:set/taken {program}:taken n=%di:s32", "p:set/strtol /lib/x86_64-linux-gnu/libc.so.6:strtol"):
        made.add("dynamic_events", line)
    for event in EVENTS:
        made.enable(event)
        assert (made.path / "events" / event / "enable").read_text() == "1\n"
        found = made.run(3)
        assert found.pop(event) == (1 if event == "set/strtol" else 3)
        assert not any(found.values())
        made.enable(event, False)
    assert not any(made.run(3).values())
    made.add("set_event", "*:*")
    assert made.run(5) == {event: 1 if event == "set/strtol" else 5 for event in EVENTS}


def test_events_of_libraries_have_their_files(mount):
    made = mount("-p", "nop")
    served = made.path / "events/plug/served"
    assert sorted(path.name for path in served.iterdir()) == ["enable", "filter", "format", "hist", "id", "trigger"]
    assert "field:int n;" in (served / "format").read_text()
    assert sorted(path.name for path in (made.path / "events/plug").iterdir()) == ["enable", "filter", "served"]
    available = (made.path / "available_events").read_text().split()
    assert all((made.path / "events" / event.replace(":", "/")).is_dir() for event in available)
    (made.path / "events/plug/enable").write_text("1")
    assert made.run(2)["plug/served"] == 2


def test_files_of_events_stay_theirs_when_others_come(mount, built):
    made = mount("-p", "nop")
    ids = {name: (made.path / "events" / name / "id").read_text() for name in ("plug/served", "shop/mine")}
    made.add("dynamic_events", f"p:shop/taken {built[0]}:taken")
    assert ids == {name: (made.path / "events" / name / "id").read_text() for name in ids}
    assert sorted(path.name for path in (made.path / "events/shop").iterdir()) == ["enable", "filter", "mine", "taken"]
    made.enable("plug/served")
    assert (made.path / "set_event").read_text() == "plug:served\n"


def test_an_event_that_cannot_be_recorded_is_refused(mount):
    made = mount("-p", "function_graph")
    inside = made.path / "events/usdt_own/inside/enable"
    assert refused(inside.write_text, "1") == errno.EOPNOTSUPP
    assert "no record can be made there" in (made.path / "error_log").read_text()
    assert inside.read_text() == "0\n" and (made.path / "set_event").read_text() == ""
    made.enable("shop/mine")
    assert made.run(2)["shop/mine"] == 2
