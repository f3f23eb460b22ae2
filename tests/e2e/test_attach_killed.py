# SPDX-License-Identifier: MIT
"""graftrace record -P PID: hosts that are killed at any moment, and a loaded server that is attached to many times."""

import random
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from attaching import (FLAGS, MORE, Running, calls, end_recording, is_clean, kill, look, looks_as,
                       record, start_recording)
from conftest import PATIENCE, wait_until


def kill_after(graftrace, pid, seconds, *options):
    tracer = graftrace.start("record", "-P", str(pid), *options, stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    kill(tracer)


def leave(graftrace, tracer, pid, killed):
    """At once, or killed, with another that cleans up."""
    if killed:
        kill(tracer)
        record(graftrace, pid, "--for", "1ms")
    else:
        end_recording(tracer)
    assert is_clean(pid)


def test_a_host_killed_at_any_moment_harms_nobody(graftrace, attached):
    with Running(attached, "work") as target:
        for i in range(24):
            # attaching takes some 40 ms from the start, detaching at 60
            kill_after(graftrace, target.pid, 0.004 * i, "--for", "20ms")
            assert target("check") == "right", f"killed after {4 * i} ms"
        record(graftrace, target.pid, "--for", "10ms")
        assert is_clean(target.pid)
        assert target("check") == "right"


# What these say to any stop that is not undone: see signal(7).
INTERRUPTED = re.compile(r"((epoll_wait|poll|recv|sigwaitinfo|nanosleep): -1 \(Interrupted [^)]*\); )*")


def test_waiting_threads_survive_hosts_that_are_killed(graftrace, attached):
    with Running(attached, "waits") as target:
        before = look(target.pid)
        for i in range(16):
            kill_after(graftrace, target.pid, 0.005 * i, "--libs", "--for", "20ms")
        assert target("check") == "right" or INTERRUPTED.fullmatch(target("check"))
        record(graftrace, target.pid, "--for", "10ms")
        after = look(target.pid)
        assert after["code"] == before["code"]
        assert after["descriptors"] == before["descriptors"]
        assert is_clean(target.pid)
        assert target("wake") == "woken"


def test_a_process_of_a_killed_host_goes_on_and_is_cleaned(graftrace, attached):
    with Running(attached) as target:
        before = look(target.pid)
        tracer = start_recording(graftrace, target.pid)
        assert target("enter") == "entering"
        kill(tracer)
        assert not is_clean(target.pid)
        assert target("call") == "right"
        assert target("fork") == "child 7"
        tracer = start_recording(graftrace, target.pid)
        assert target("call") == "right"
        end_recording(tracer)
        assert calls(graftrace)["outer"] == 1
        assert looks_as(target.pid, before)
        assert target("return") == "returning"


# The hook of an unwinder's landing asks for the frame's address, which takes until a line has come.
LANDING = """
#include <stdio.h>
#define KEEP __attribute__((noinline))
static char line[64];
KEEP unsigned long _Unwind_GetCFA(void *frame)
{
	puts("asked");
	fgets(line, sizeof(line), stdin);
	return (unsigned long)frame;
}
static volatile unsigned long landed;
KEEP void _Unwind_SetIP(void *frame, unsigned long place) { (void)frame, landed = place; }
int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	for (puts("ready"); fgets(line, sizeof(line), stdin); puts("landed"))
		_Unwind_SetIP(__builtin_frame_address(0), 0);
	return _Unwind_GetCFA == NULL;
}
"""


def test_a_thread_that_was_called_by_the_recorder_comes_back_to_it(graftrace, compile):
    with Running(compile(LANDING, "-O2")) as target:
        assert target("land") == "landed"
        before = look(target.pid)
        tracer = start_recording(graftrace, target.pid)
        assert target("land") == "asked"
        assert "a thread stands in it" in end_recording(tracer)
        assert target("go on") == "landed"
        record(graftrace, target.pid, "--for", "1ms")
        assert looks_as(target.pid, before)
        assert target("land") == "landed"


# A static program has its unwinder inside; a later host has to know where that is.
THROWS = r"""
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <unistd.h>
__attribute__((noinline)) static int deep(int n)
{
	if (n == 0)
		throw std::runtime_error("far");
	int more = deep(n - 1);
	__asm__ volatile("" : "+r"(more));
	return more + 1;
}
__attribute__((noinline)) static int catches(int n)
{
	try {
		return deep(n);
	} catch (const std::exception &) {
		return -n;
	}
}
static volatile long thrown[4];
int main()
{
	char line[64];
	for (int i = 0; i < 4; i++)
		std::thread([i] {
			for (;; thrown[i] = thrown[i] + 1)
				if (catches(10 + 10 * i) != -10 - 10 * i)
					std::terminate();
		}).detach();
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (puts("ready"); fgets(line, sizeof line, stdin); puts("right"))
		for (long before = thrown[0]; thrown[0] == before;)
			std::this_thread::yield();
	_exit(0);
}
"""


def test_exceptions_of_a_static_program_survive_hosts_that_are_killed(graftrace, compile):
    with Running(compile(THROWS, "-O1", "-static", "-pthread", compiler="g++", suffix=".cc")) as target:
        for _ in range(10):
            tracer = start_recording(graftrace, target.pid)
            time.sleep(0.05)
            kill(tracer)
            record(graftrace, target.pid, "--for", "1ms")
            assert is_clean(target.pid)
        assert target("check") == "right"


# Words of the program's own where return addresses stood before, which look like one in a stub by their last digits:
# what an unwinder keeps there of the unwind data of our code.
KEEPS_WORDS = r"""
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#define NOINLINE __attribute__((noinline))

/* The mapping that the address lies in, and what is 1,024 from its start on: unwind data. */
static uint64_t unwind_data(uint64_t address)
{
	unsigned long start, end;
	char line[256];
	uint64_t found = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof line, maps))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && start <= address && address < end)
			found = start + 1024;
	fclose(maps);
	return found;
}

NOINLINE int deep(int n)
{
	int more = n > 0 ? deep(n - 1) : 0;
	__asm__ volatile("" : "+r"(more));
	return more + 1;
}

/* A traced function begins with a jump to its stub. */
static int (*volatile traced)(int) = deep;

NOINLINE uint64_t region(void)
{
	const unsigned char *code = (const unsigned char *)traced;
	int distance;
	memcpy(&distance, code + 1, 4);
	return *code == 0xe9 ? unwind_data((uint64_t)code + 5 + (uint64_t)(int64_t)distance) : 0;
}

NOINLINE int keeps(uint64_t data)
{
	volatile uint64_t words[512];
	char line[20];
	int wrong = 0;
	if (!data)
		return -1;
	for (int i = 0; i < 512; i++)
		words[i] = data + 21 + 32 * (i % 64);
	puts("kept");
	if (!fgets(line, sizeof line, stdin))
		return 1;
	for (int i = 0; i < 512; i++)
		wrong += words[i] != data + 21 + 32 * (i % 64);
	return wrong;
}

int main(void)
{
	char line[20];
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof line, stdin)) {
		deep(200);
		printf("%d changed\n", keeps(region()));
	}
	return 0;
}
"""


# An object that is laid out as an exception, and has an address in a frame where an exception has its handler's.
KEEPS_POINTER = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
struct object {
	char name[8];
	void (*run)(void);
	void *next;
	char *within;
};

__attribute__((noinline)) int keeps(struct object *volatile object)
{
	/* rbp is saved below the return address */
	char *within = (char *)__builtin_frame_address(0) + 8 + 16;
	char line[20];
	object->within = within;
	puts("kept");
	return !fgets(line, sizeof line, stdin) || object->within != within;
}

int main(void)
{
	struct object *object = aligned_alloc(16, sizeof *object);
	char line[20];
	*object = (struct object){ NAME, RUN, NULL, NULL };
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof line, stdin))
		printf("%d changed\n", keeps(object));
	return 0;
}
"""


@pytest.mark.parametrize("text, more", [
    (KEEPS_WORDS, []),
    (KEEPS_POINTER, ['-DNAME=""', "-DRUN=NULL"]),
    (KEEPS_POINTER, ['-DNAME="resize"', "-DRUN=abort"]),
], ids=["words", "zeros", "job"])
@pytest.mark.parametrize("killed", [False, True], ids=["left", "killed"])
def test_the_programs_own_words_on_a_stack_stay(graftrace, compile, text, more, killed):
    flags = ["-O1", "-fno-stack-protector", "-fno-omit-frame-pointer", *more]
    with Running(compile(text, *flags)) as target:
        tracer = start_recording(graftrace, target.pid)
        assert target("keep") == "kept"
        leave(graftrace, tracer, target.pid, killed)
        assert target("look") == "0 changed"


# Two calls are open; it has memory whose name begins as ours does.
TWO_CALLS = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
static volatile int sum;
__attribute__((noinline)) int inner(void)
{
	char line[20];
	puts("inside");
	sum++;
	return fgets(line, sizeof line, stdin) != NULL;
}
__attribute__((noinline)) int outer(void)
{
	int found = inner();
	sum++;
	return found;
}
int main(void)
{
	char line[20], c;
	int memory = memfd_create("graftraced", 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (write(memory, "x", 1) != 1)
		return 2;
	puts("ready");
	while (fgets(line, sizeof line, stdin))
		puts(outer() && pread(memory, &c, 1, 0) == 1 ? "right" : "wrong");
	return 0;
}
"""


@pytest.mark.parametrize("killed", [False, True], ids=["left", "killed"])
def test_calls_on_a_stack_at_the_highest_addresses_return(graftrace, compile, killed):
    """As gdb runs a program: its addresses are not random."""
    with Running("setarch", "-R", str(compile(TWO_CALLS, "-O1"))) as target:
        tracer = start_recording(graftrace, target.pid)
        assert target("call") == "inside"
        leave(graftrace, tracer, target.pid, killed)
        assert target("return") == "right"
        assert target("call") == "inside"
        assert target("return") == "right"


SERVER = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <unistd.h>
__attribute__((noinline)) int answer(char *text, int size)
{
	for (int i = 0; i < size; i++)
		text[i] ^= 1;
	return size;
}
__attribute__((noinline)) int serve(int fd)
{
	char text[64];
	int size = (int)recv(fd, text, sizeof(text), 0);
	if (size <= 0)
		return 0;
	return write(fd, text, (size_t)answer(text, size)) == size;
}
static void *loop(void *data)
{
	int epoll = *(int *)data;
	for (;;) {
		struct epoll_event event;
		if (epoll_wait(epoll, &event, 1, -1) != 1) {
			if (TOLERANT && errno == EINTR)
				continue;
			_exit(3);
		}
		event.events = EPOLLIN | EPOLLONESHOT;
		if (!serve(event.data.fd))
			close(event.data.fd);
		else
			epoll_ctl(epoll, EPOLL_CTL_MOD, event.data.fd, &event);
	}
}
int main(void)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), epoll = epoll_create1(0);
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(address);
	pthread_t threads[4];
	bind(listener, (struct sockaddr *)&address, size);
	listen(listener, 64);
	getsockname(listener, (struct sockaddr *)&address, &size);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, loop, &epoll);
	printf("ready\n%d\n", ntohs(address.sin_port));
	fflush(stdout);
	for (;;) {
		struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };
		event.data.fd = accept(listener, NULL, NULL);
		if (event.data.fd < 0)
			_exit(4);
		epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
	}
}
"""


class Clients(threading.Thread):
    """Asks a server, one request after the other on one connection."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port = port
        self.requests = 0
        self.wrong = 0
        self.stopping = False

    def run(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        while not self.stopping:
            connection.sendall(b"abcdefgh")
            got = b""
            while len(got) < 8:
                part = connection.recv(64)
                if not part:
                    self.wrong += 1
                    return
                got += part
            self.wrong += got != bytes(byte ^ 1 for byte in b"abcdefgh")
            self.requests += 1
        connection.close()


class Load:
    """A server with clients that ask it all the time; at the end every answer was right."""

    def __init__(self, program):
        self.target = Running(program)

    def __enter__(self):
        self.target.__enter__()
        self.pid = self.target.pid
        self.before = look(self.pid)
        port = int(self.target.line())
        self.clients = [Clients(port) for _ in range(3)]
        for client in self.clients:
            client.start()
        self.wait_for_requests(20)
        return self

    def wait_for_requests(self, more):
        counts = [client.requests for client in self.clients]
        wait_until(lambda: all(c.requests > n + more for c, n in zip(self.clients, counts)))

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.check()
        finally:
            for client in self.clients:
                client.stopping = True
            self.target.__exit__()

    def check(self):
        self.wait_for_requests(1)
        for client in self.clients:
            client.stopping = True
        for client in self.clients:
            client.join(30)
        assert sum(client.wrong for client in self.clients) == 0
        assert not any(client.is_alive() for client in self.clients)
        assert self.target.is_alive()
        after = look(self.pid)
        assert after["code"] == self.before["code"]
        assert after["descriptors"].keys() >= self.before["descriptors"].keys()
        assert is_clean(self.pid)


def test_many_rounds_on_a_loaded_server_lose_no_request(graftrace, compile):
    with Load(compile(SERVER, *FLAGS, "-DTOLERANT=0")) as server:
        for _ in range(40 * MORE):
            record(graftrace, server.pid, "--for", "2ms", "-o", "round.data")


def test_a_loaded_server_answers_whatever_hosts_are_killed(graftrace, compile):
    """At any moment; only EINTR from epoll_wait is what such a server has to know of: signal(7)."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    moments = random.Random(seed)
    with Load(compile(SERVER, *FLAGS, "-DTOLERANT=1")) as server:
        for i in range(40 * MORE):
            options = ["--libs"] if i % 4 == 0 else []
            kill_after(graftrace, server.pid, moments.uniform(0, 0.09), *options, "--for", "10ms")
            server.wait_for_requests(1)
        record(graftrace, server.pid, "--for", "10ms")
