# SPDX-License-Identifier: MIT
"""set_event with :mod: (Linux 6.14): the events of one object of the program, which may be loaded later."""

import errno
import os
import subprocess

import pytest

from conftest import PATIENCE, ROOT, wait_until
from mounted import refused

FLAGS = [f"-I{ROOT / 'include'}"]

LOADER = r"""
#include <dlfcn.h>
#include <graftrace/event.h>
#include <stdio.h>
#include <string.h>

static int done(int n)
{
	GRAFTRACE_EVENT(main, done, GRAFTRACE_INT(int, n, n));
	return printf("done\n");
}

/* Each line is a library, which is loaded, and whose work is done once. */
int main(void)
{
	char line[4096];
	int count = 0;

	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		void *library = dlopen(line, RTLD_NOW);
		int (*work)(int) = library ? (int (*)(int))dlsym(library, "library_work") : NULL;

		if (work)
			work(++count);
		done(count);
		fflush(stdout);
	}
	return 0;
}
"""

LIBRARY = r"""
#include <graftrace/event.h>

int library_work(int n);

__attribute__((constructor)) static void begin(void)
{
	static volatile int begun;

	begun++;
	GRAFTRACE_EVENT(plug, begun, GRAFTRACE_INT(int, n, 0));
}

int library_work(int n)
{
	GRAFTRACE_EVENT(plug, worked, GRAFTRACE_INT(int, n, n));
	GRAFTRACE_EVENT(tool, worked, GRAFTRACE_INT(int, n, n));
	return n;
}
"""


class Loader:
    def __init__(self, graftrace, compile):
        program = compile(LOADER, "-O1", *FLAGS)
        self.object = program.name
        self.library = graftrace.directory / "libplug.so"
        self.library.symlink_to(compile(LIBRARY, "-O1", "-shared", "-fPIC", *FLAGS))
        self.library = self.library.resolve()
        self.path = graftrace.directory / "tracing"
        self.path.mkdir()
        self.process = graftrace.start("mount", self.path, "--", program, stdin=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n", self.process.stderr.read()
        wait_until((self.path / "trace").exists, "the mount")

    def load(self):
        self.process.stdin.write(f"{self.library}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def add(self, word, instance="."):
        with open(self.path / instance / "set_event", "a", encoding="utf-8") as file:
            file.write(word + "\n")

    def events(self, instance="."):
        """The lines of set_event, in order of names."""
        return sorted((self.path / instance / "set_event").read_text().split())

    def trace(self, instance="."):
        return [line.split(": ", 1)[1] for line in (self.path / instance / "trace").read_text().splitlines()
                if line[0] != "#"]


@pytest.fixture
def loader(graftrace, compile):
    made = Loader(graftrace, compile)
    yield made
    made.process.stdin.close()
    assert made.process.wait(PATIENCE) == 0


def test_a_word_waits_for_the_object_and_its_first_event_is_there(loader):
    name = loader.library.name
    loader.add(f":mod:{name}")
    assert loader.events() == [f"*:*:mod:{name}"]
    loader.load()
    assert loader.trace() == ["begun: n=0", "worked: n=1", "worked: n=1"]
    assert loader.events() == ["plug:begun", "plug:worked", "tool:worked"]
    loader.add(f"!tool:*:mod:{name}")
    loader.load()
    assert loader.trace()[3:] == ["worked: n=2"]
    assert loader.events() == ["plug:begun", "plug:worked"]
    loader.add(f"!*:*:mod:{name}")
    loader.load()
    assert len(loader.trace()) == 4 and loader.events() == []


def test_words_before_it_choose_events_of_the_object_alone(loader):
    name = loader.library.name
    loader.add(f"plug:wor*:mod:{name}")
    loader.add(f"main:mod:{name}")  # it has none such; the program has
    loader.add("*:done")
    assert loader.events() == ["main:done", f"main:mod:{name}", f"plug:wor*:mod:{name}"]
    loader.load()
    assert loader.trace() == ["worked: n=1", "done: n=1"]
    assert loader.events() == ["main:done", "plug:worked"]


def test_the_program_is_an_object_too_and_what_names_nothing_is_refused(loader):
    loader.add(f"*:mod:{loader.object}")
    assert loader.events() == ["main:done"]
    for word in (f"nosuch:mod:{loader.object}", ":mod:", "!:mod:libnosuch.so", "main:done:mod:a:b"):
        assert refused(loader.add, word) == errno.EINVAL
    loader.load()
    assert loader.trace() == ["done: n=1"]


def test_a_word_that_waits_is_taken_back(loader):
    name = loader.library.name
    loader.add(f"plug:mod:{name}")
    loader.add(f"tool::mod:{name}")
    assert loader.events() == [f"plug:mod:{name}", f"tool:*:mod:{name}"]
    loader.add(f"!plug:mod:{name}")
    loader.load()
    assert loader.trace() == ["worked: n=1"] and loader.events() == ["tool:worked"]
    (loader.path / "set_event").write_text("")
    assert loader.events() == []


def test_an_instance_waits_by_itself(loader):
    name = loader.library.name
    for instance in "ab":
        (loader.path / "instances" / instance).mkdir()
    loader.add(f"plug:*:mod:{name}", "instances/a")
    loader.add(f"tool:*:mod:{name}", "instances/b")
    loader.load()
    assert loader.trace() == []
    assert loader.trace("instances/a") == ["begun: n=0", "worked: n=1"]
    assert loader.trace("instances/b") == ["worked: n=1"]
    assert loader.events("instances/b") == ["tool:worked"] and loader.events() == []
