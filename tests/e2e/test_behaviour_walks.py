# SPDX-License-Identifier: MIT
"""Who walks the stack of a traced program sees the program's own frames."""

import re
import subprocess

import pytest

import behaviour

GDB_SCRIPT = behaviour.ROOT / "share" / "gdb" / "graftrace-gdb.py"
FRAMES = ["by_debugger", "innermost", "nested", "nested", "nested", "nested", "main"]


@pytest.mark.parametrize("kind", ["backtrace", "unwind"])
@pytest.mark.parametrize("way", ["patchable", "patchable-clang", "pg", "no-pie", "unprepared"])
def test_a_backtrace_goes_on_to_the_start(way, kind, tmp_path):
    program = behaviour.program(way, "walk.c", flags=["-rdynamic"])
    judged = behaviour.judge([program, kind], tmp_path, way=way, same_counts=False)
    assert judged.after.out == judged.before.out
    assert b"_start" in judged.after.out


WALK = """
#include <execinfo.h>
#include <stdio.h>
__attribute__((noinline)) int looks(int n)
{
	void *found[50];
	if (n > 0) { int count = looks(n - 1); __asm__ volatile("" : "+r"(count)); return count; }
	return backtrace(found, 50);
}
int main(void) { printf("%d\\n", looks(3)); return 0; }
"""


# Functions of the C library take their jumps in the midst of other code, beside the entries that are hooked.
@pytest.mark.parametrize("flags", [["-static-pie", "-fPIE"], ["-static"], []], ids=["static-pie", "static", "libs"])
@pytest.mark.parametrize("tracer", ["function_graph", "function"])
def test_a_walk_passes_hooked_functions_beside_jumps_in_the_midst_of_code(graftrace, compile, flags, tracer):
    program = compile(WALK, "-O2", *flags)
    plain = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    traced = graftrace("record", "--libs", "-p", tracer, program).stdout
    assert traced == plain and int(plain) >= 6


@pytest.mark.parametrize("way", ["patchable", "unprepared"])
def test_gdb_shows_the_frames_of_a_traced_program(way, tmp_path):
    program = behaviour.program(way, "walk.c", flags=["-g"])
    gdb = ["gdb", "-batch", "-nx", "-iex", "set debuginfod enabled off", "-x", GDB_SCRIPT,
           "-ex", "bt", "-p"]
    # gdb itself stays untraced.
    judged = behaviour.judge([program, "debugger", *gdb], tmp_path, "--no-fork", way=way,
                             same_output=False)
    text = judged.after.out.decode()
    assert "debugger ended with 0" in text
    for out in (judged.before.out.decode(), text):
        frames = re.findall(r"^#\d+ .*?(\w+) \(.*\) at ", out, re.M)
        ours = [name for name in frames if name in set(FRAMES)]
        assert ours == FRAMES, out
        assert re.search(r"innermost \(a=(a@entry=)?42, b=.*\"text\"\)", out), out


def test_a_rust_panic_shows_each_call_once(tmp_path):
    program = behaviour.rust_program("unprepared", "panics.rs")
    runs = [behaviour.plain([program], tmp_path, RUST_BACKTRACE="1"),
            behaviour.traced([program], tmp_path, RUST_BACKTRACE="1")]
    before, after = (re.sub(r"thread 'main' \(\d+\)", "thread", run.err.decode()) for run in runs)
    assert "panics::innermost" in before and "panics::outer" in before
    assert after == before
