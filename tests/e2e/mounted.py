# SPDX-License-Identifier: MIT
"""A program with its control files mounted, for the tests of the mount and of what works on it."""

import errno
import os
import re
import subprocess
from pathlib import Path

import pytest

from conftest import PATIENCE, wait_until

PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) int leaf(int x)
{
	__asm__ volatile("");
	return x + 1;
}

__attribute__((noinline)) int other(int x)
{
	__asm__ volatile("");
	return x + 2;
}

__attribute__((noinline)) int middle(int count)
{
	int sum = 0;
	for (int i = 0; i < count; i++)
		sum += leaf(i);
	sum += other(sum);
	return sum;
}

static void *work(void *count)
{
	middle(*(int *)count);
	return NULL;
}

/* Each line that is read is a number: of calls that are made then; "t" before it: by four threads
 * at once; "crash" crashes. */
int main(void)
{
	char line[64];

	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		if (line[0] == 'c')
			abort();
		if (line[0] == 't') {
			int count = atoi(line + 1);
			pthread_t threads[4];

			for (int i = 0; i < 4; i++)
				pthread_create(&threads[i], NULL, work, &count);
			for (int i = 0; i < 4; i++)
				pthread_join(threads[i], NULL);
		} else {
			middle(atoi(line));
		}
		printf("done\n");
		fflush(stdout);
	}
	return 3;
}
"""


def is_mounted(directory):
    return any(line.split()[1] == str(directory) for line in open("/proc/self/mounts"))


def has_opened(process, path):
    try:
        return any(os.readlink(link) == str(path)
                   for link in Path(f"/proc/{process.pid}/fd").iterdir())
    except OSError:
        return False


def refused(call, *arguments):
    """The errno with which it fails."""
    with pytest.raises(OSError) as raised:
        call(*arguments)
    return raised.value.errno


def function_names(text):
    """Of the lines of function_graph that begin a call."""
    return re.findall(r"^[^#|\n]*\|\s+(\w+)\(\)", text, re.M)


def leaves(text):
    """Calls of leaf. One that was under way when a snapshot was taken, or whose thread lost its CPU
    to another, is shown open."""
    return text.count("leaf();") + text.count("leaf() {")


class Mounted:
    """A program whose control files are mounted on `path`."""

    def __init__(self, graftrace, program, *options, stdin=subprocess.PIPE):
        self.graftrace = graftrace
        self.path = graftrace.directory / "tracing"
        self.path.mkdir(exist_ok=True)
        self.process = graftrace.start("mount", self.path, *options, "--", program, stdin=stdin)
        assert self.process.stdout.readline() == "ready\n", self.process.stderr.read()
        wait_until((self.path / "trace").exists, "the mount")

    def calls(self, count):
        """Makes the program do `middle(count)`, and waits until it has."""
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def traced(self):
        """The number of the traced process, which has made a call."""
        return int(min((self.path / "per_thread").iterdir(), key=lambda path: int(path.name)).name)

    def sh(self, script, code=0):
        """What a shell in the directory prints."""
        done = subprocess.run(["bash", "-c", script], cwd=self.path, capture_output=True, text=True,
                              timeout=PATIENCE)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    def read(self, name):
        return (self.path / name).read_text()

    def write(self, name, text, flags=os.O_TRUNC):
        """One write(2) after an open(2); what it returned."""
        file = os.open(self.path / name, os.O_WRONLY | flags)
        try:
            return os.write(file, text.encode())
        finally:
            os.close(file)

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(PATIENCE)
        wait_until(lambda: not is_mounted(self.path), "the end of the mount")
        return code

    def end_anyhow(self):
        if self.process.poll() is None:
            try:
                self.end()
            except OSError as error:
                assert error.errno == errno.EPIPE


@pytest.fixture
def start(graftrace, compile):
    """Mounts the program with the options that it is called with; each ends as it does alone."""
    program = compile(PROGRAM, "-O1", "-pthread", "-fpatchable-function-entry=5")
    started = []

    def mount(*options):
        started.append(Mounted(graftrace, program, *options))
        return started[-1]

    yield mount
    for mounted in started:
        assert mounted.end() == 3
        mounted.process.stdout.close()
        mounted.process.stderr.close()
