# SPDX-License-Identifier: MIT
"""Programs built with ThreadSanitizer end themselves if anything is mapped where mirrors of stacks would be."""

import subprocess

import pytest

from conftest import PATIENCE

SOURCE = """
#include <pthread.h>
#include <stdio.h>
__attribute__((noinline)) int odd(int x) { __asm__ volatile("nop;nop;nop;nop"); return x & 1; }
static void *work(void *p) { long s = 0; for (int i = 0; i < 1000; i++) s += odd(i); (void)p; return (void *)s; }
int main(void)
{
	pthread_t threads[3];
	long sum = 0;
	for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 3; i++) { void *part; pthread_join(threads[i], &part); sum += (long)part; }
	printf("%ld\\n", sum);
	return 3;
}
"""


@pytest.mark.parametrize("compiler, stripped", [("gcc", []), ("clang", []), ("clang", ["-s"])])
@pytest.mark.parametrize("command", [["record"], ["record", "--libs"], ["profile", "--libs"]],
                         ids=lambda words: "_".join(words))
def test_a_program_with_thread_sanitizer_runs_as_it_does_untraced(graftrace, compile, compiler,
                                                                  stripped, command):
    program = compile(SOURCE, "-O1", "-g", "-pthread", "-fsanitize=thread", *stripped,
                      compiler=compiler)
    # As the traced program's addresses are where they were drawn: too much chance for TSan's old maps.
    plain = subprocess.run(["setarch", "-R", program], capture_output=True, text=True, timeout=PATIENCE)
    assert (plain.returncode, plain.stdout) == (3, "1500\n"), plain.stderr
    traced = graftrace(*command, "--", "setarch", "-R", program, code=3)
    assert traced.stdout.startswith("1500\n") and "FATAL" not in traced.stderr
    if command[0] == "record" and compiler == "gcc" and command == ["record"]:
        # libtsan has looked at what is mapped before the program's own functions run.
        assert "only entries" not in traced.stderr
    elif command[0] == "record":
        assert "only entries, without returns: ThreadSanitizer is in the process" in traced.stderr
        if not stripped:
            assert graftrace("export", "--to", "json", "-q", "-o", "-").returncode == 0
            report = graftrace("report", "--format", "csv").stdout
            assert "3000" in next(row for row in report.splitlines() if "odd" in row)
