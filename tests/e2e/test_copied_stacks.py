# SPDX-License-Identifier: MIT
"""Libraries that copy stacks away and back, or find frames by what lies beside them: from when they are
loaded only entries are recorded."""

import re
import subprocess

import pytest

from conftest import PATIENCE, PROGRAMS

LOOP = """
import greenlet, sys
def deep(n, function): return function() if n == 0 else max(map(lambda one: deep(n - 1, function), [n]))
def away():
    while True: deep(4, lambda: here.switch())
here = greenlet.getcurrent()
other = greenlet.greenlet(away)
print('ready', flush=True)
def once(i):
    other.switch()
    return i
while not sys.stdin.closed:
    for i in range(2000): assert deep(i % 9, lambda: once(i)) == i
    print('again', flush=True)
"""


@pytest.mark.parametrize("more", [[], ["--libs"], ["-p", "function"]], ids=["program", "libs", "function"])
@pytest.mark.parametrize("words, code, why", [
    (["/usr/bin/python3", PROGRAMS / "greenlets.py"], 4, "greenlet"),
    (["ruby", "-W0", PROGRAMS / "callcc.rb"], 6, "callcc"),
    (["guile", "--no-auto-compile", PROGRAMS / "continuations.scm"], 5, "Guile"),
    (["luajit", PROGRAMS / "throw.lua"], 6, "LuaJIT"),
], ids=["greenlet", "callcc", "guile", "luajit"])
def test_what_is_copied_comes_back_whole(words, code, why, more, graftrace):
    plain = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=PATIENCE)
    assert plain.returncode == code
    traced = graftrace("record", *more, "--", *words, code=code)
    assert traced.stdout == plain.stdout
    assert f"only entries, without returns: {why} is in the process" in traced.stderr
    assert " 0 lost" in traced.stderr


# Calls are open when a library is loaded that is taken for one that copies stacks.
OPEN_CALLS = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
extern char __executable_start, etext;
static void **slots[64];
static int count;
static int own(void)
{
	int found = 0;
	for (int i = 0; i < count; i++)
		found += (char *)*slots[i] >= &__executable_start && (char *)*slots[i] < &etext;
	return found;
}
__attribute__((noinline)) static int deep(int n, const char *library)
{
	int found = 0;
	slots[count++] = (void **)((char *)__builtin_frame_address(0) + 8);
	if (n > 0) {
		found = deep(n - 1, library);
	} else {
		printf("%d of %d\n", own(), count);
		if (dlopen(library, RTLD_NOW) == NULL)
			abort();
		printf("%d of %d\n", own(), count);
	}
	__asm__ volatile("" : "+r"(found));
	return found;
}
int main(int argc, char **argv)
{
	return deep(20, argv[argc - 1]);
}
"""


def test_open_calls_have_their_return_addresses_when_stacks_can_be_copied(graftrace, compile):
    library = compile("void *PyInit__greenlet(void) { return 0; }\n", "-O2", "-shared", "-fPIC")
    program = compile(OPEN_CALLS, "-O1", "-fno-omit-frame-pointer")
    done = graftrace("record", "--", program, library)
    assert done.stdout == "0 of 21\n21 of 21\n" and "greenlet is in the process" in done.stderr


# An exception has its handler found and waits for its landing while such a library is loaded.
UNDER_WAY = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <unwind.h>
typedef _Unwind_Reason_Code personality(int, _Unwind_Action, _Unwind_Exception_Class, _Unwind_Exception *,
					_Unwind_Context *);
static volatile int sum, inside, loaded;
static personality *real;
struct counts {
	~counts() { sum = sum + 1; }
};
extern "C" _Unwind_Reason_Code __gxx_personality_v0(int version, _Unwind_Action actions,
	_Unwind_Exception_Class type, _Unwind_Exception *exception, _Unwind_Context *context)
{
	static _Unwind_Ptr handles;
	const _Unwind_Reason_Code code = real(version, actions, type, exception, context);
	if (code == _URC_HANDLER_FOUND)
		handles = _Unwind_GetRegionStart(context);
	if (actions & _UA_CLEANUP_PHASE) {
		inside = 1;
		while (!loaded)
			WAIT;
		if (_Unwind_GetRegionStart(context) == handles)
			puts(actions & _UA_HANDLER_FRAME ? "the handler's" : "no frame of a handler");
	}
	return code;
}
__attribute__((noinline)) static int deep(int n)
{
	counts one;
	if (n == 0)
		throw 42;
	return deep(n - 1) + 1;
}
static void *throws(void *)
{
	try {
		deep(20);
	} catch (int thrown) {
		puts(thrown == 42 ? "right" : "wrong");
	}
	return nullptr;
}
int main(int argc, char **argv)
{
	pthread_t other;
	real = (personality *)dlsym(RTLD_NEXT, "__gxx_personality_v0");
	pthread_create(&other, nullptr, throws, nullptr);
	while (!inside)
		usleep(1000);
	if (dlopen(argv[argc - 1], RTLD_NOW) == nullptr)
		abort();
	loaded = 1;
	pthread_join(other, nullptr);
}
"""


@pytest.mark.parametrize("wait", ["", "usleep(1000)"], ids=["works", "waits"])
def test_exceptions_find_their_handlers_when_stacks_can_be_copied(graftrace, compile, wait):
    library = compile("void *PyInit__greenlet(void) { return 0; }\n", "-O2", "-shared", "-fPIC")
    program = compile(UNDER_WAY, "-O1", "-pthread", "-rdynamic", f"-DWAIT={wait}", compiler="g++", suffix=".cc")
    done = graftrace("record", "--", program, library)
    assert done.stdout == "the handler's\nright\n" and "greenlet is in the process" in done.stderr


def test_returns_are_recorded_until_the_library_is_loaded(graftrace):
    graftrace("record", "-l", "PyImport_ImportModuleLevelObject", "--", "/usr/bin/python3", "-c",
              "import json, greenlet")
    assert re.search(r" [mu]s .* PyImport_ImportModuleLevelObject$", graftrace("report").stdout, re.M)


def test_a_process_that_has_it_already_is_attached_to_and_says_so(graftrace):
    with subprocess.Popen(["/usr/bin/python3", "-c", LOOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        assert process.stdout.readline() == "ready\n"
        for _ in range(2):
            done = graftrace("record", "-P", process.pid, "--for", "100ms")
            assert "greenlet is in the process" in done.stderr
            assert process.stdout.readline() == "again\n"
        listing = graftrace("functions", "-P", process.pid).stdout
        assert "greenlet is in the process" in listing
        assert process.poll() is None
        process.kill()
