# SPDX-License-Identifier: MIT
"""stats: eight threads write while four readers read, and every record is somewhere."""

import os
import re
import subprocess
import threading

import pytest

from conftest import PATIENCE
from served import Served, port_of

THREADS = 8
CALLS = 60000

PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) int leaf(int x)
{
	__asm__ volatile("");
	return x + 1;
}

static int calls;

static void *work(void *unused)
{
	int sum = 0;
	for (int i = 0; i < calls; i++)
		sum += leaf(i);
	(void)unused;
	return (void *)(long)sum;
}

/* For each line that is read eight threads call leaf() so many times each. */
int main(void)
{
	char line[64];

	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		pthread_t threads[8];
		calls = atoi(line);
		for (int i = 0; i < 8; i++)
			pthread_create(&threads[i], NULL, work, NULL);
		for (int i = 0; i < 8; i++)
			pthread_join(threads[i], NULL);
		printf("done\n");
		fflush(stdout);
	}
	return 0;
}
"""


def counts(served, path):
    text = served.get(path)
    return {name: int(value) for name, value in re.findall(r"^([a-z ]+): +(\d+)$", text, re.M)}


@pytest.mark.parametrize("options", [[], ["--overwrite"]], ids=["ring", "overwrite"])
def test_every_record_is_an_entry_read_overrun_or_dropped(graftrace, compile, options):
    program = compile(PROGRAM, "-O2", "-pthread", "-fpatchable-function-entry=5")
    process = graftrace.start("record", "--serve=127.0.0.1:0", "--buffer-size=1M", "-l", "leaf",
                              *options, program, stdin=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    served = Served(process, port_of(process))
    stop = threading.Event()

    wrong = []  # a thread's failure is nobody's but what is asked for here

    def read():
        try:
            while not stop.is_set():
                wrong.extend(re.findall(r".*(?:function#|\?\?).*", served.get("trace")))
        except Exception as error:
            wrong.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    pipe = served.socket(b"GET /ftrace/trace_pipe?follow HTTP/1.0\r\nHost: localhost\r\n\r\n")

    def follow():
        while pipe.recv(1 << 16):
            pass

    readers.append(threading.Thread(target=follow))
    for reader in readers:
        reader.start()
    served.calls(CALLS)
    stop.set()
    for reader in readers[:3]:
        reader.join(PATIENCE)
        assert not reader.is_alive()
    assert wrong == []
    found = counts(served, "stats")
    pipe.shutdown(2)
    readers[3].join(PATIENCE)
    written = 2 * (THREADS * CALLS - found["dropped events"])
    assert found["entries"] + found["overrun"] + found["read events"] == written
    process.stdin.close()
    process.wait(PATIENCE)


def test_a_recording_has_the_counts_of_each_cpu(graftrace, compile):
    program = compile(PROGRAM, "-O2", "-pthread", "-fpatchable-function-entry=5")
    graftrace("record", "-l", "leaf", program, stdin="1000\n")
    process = graftrace.start("serve", "-a", "127.0.0.1:0", "graftrace.data")
    served = Served(process, port_of(process))
    assert counts(served, "stats")["entries"] == 2 * THREADS * 1000
    cpus = [counts(served, f"per_cpu/cpu{cpu}/stats") for cpu in range(os.cpu_count())]
    assert sum(cpu["entries"] for cpu in cpus) == 2 * THREADS * 1000
    for number, cpu in enumerate(cpus):
        assert cpu["bytes"] == 8 * cpu["entries"] and cpu["overrun"] == cpu["read events"] == 0
        lines = re.findall(r"\|  (?:leaf\(\)|})", served.get(f"per_cpu/cpu{number}/trace"))
        assert bool(lines) == bool(cpu["entries"])
    for tid in re.findall(r">(\d+)/?<", served.get("per_thread/")):
        assert counts(served, f"per_thread/{tid}/stats")["entries"] == 2 * 1000
    process.terminate()
    process.wait(PATIENCE)
    process.stdout.close()
    process.stderr.close()


def test_what_is_taken_out_while_it_is_counted_is_counted_once(graftrace, compile):
    program = compile(PROGRAM, "-O2", "-pthread", "-fpatchable-function-entry=5")
    process = graftrace.start("record", "--serve=127.0.0.1:0", "--buffer-size=1M", "-l", "leaf",
                              program, stdin=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    served = Served(process, port_of(process))
    pipe = served.socket(b"GET /ftrace/trace_pipe?follow HTTP/1.0\r\nHost: localhost\r\n\r\n")

    def follow():
        while pipe.recv(1 << 16):
            pass

    reader = threading.Thread(target=follow)
    reader.start()
    wrong = []
    for turn in range(1, 16):
        served.calls(CALLS)
        for _ in range(60):
            found = counts(served, "stats")
            written = 2 * (turn * THREADS * CALLS - found["dropped events"])
            if found["entries"] + found["overrun"] + found["read events"] != written:
                wrong.append((turn, found))
    pipe.shutdown(2)
    reader.join(PATIENCE)
    process.stdin.close()
    process.wait(PATIENCE)
    assert not wrong
