# SPDX-License-Identifier: MIT
"""What a traced program executes and cannot be traced runs as it is, and that is said once."""

import errno
import os
import subprocess

import pytest

from attaching import GRAFTRACE
from conftest import PATIENCE
from behaviour import fixed_addresses

PROGRAM = r"""
#include <stdio.h>
__attribute__((noinline)) int twice(int x)
{
	volatile int sum = 0;
	for (int i = 0; i < 2; i++)
		sum += x;
	return sum;
}
int main(void)
{
	printf("%d\n", twice(21));
	return 0;
}
"""
GO = '__attribute__((section(".gopclntab"), used)) static const char build[] = "go";\n'


@pytest.fixture
def programs(compile, tmp_path):
    """By what they are; each prints 42, but for the 32-bit one, which has no C library."""
    source = tmp_path / "small.c"
    source.write_text('__asm__(".globl _start; _start: mov $1, %eax; mov $42, %ebx; int $0x80");')
    small = tmp_path / "small"
    subprocess.run(["gcc", "-m32", "-static", "-nostdlib", "-o", small, source], check=True)
    return {
        "plain": compile(PROGRAM, "-O2"),
        "static": compile(PROGRAM, "-O2", "-static", "-s"),
        "go": compile(GO + PROGRAM, "-O2"),
        "msan": compile(PROGRAM, "-O1", "-fsanitize=memory", compiler="clang"),
        "small": small,
    }


def runs(program):
    """Some kernels have no 32-bit processes."""
    try:
        return subprocess.run([program]).returncode == 42
    except OSError as error:
        assert error.errno == errno.ENOEXEC
        return False


def test_what_cannot_be_traced_runs_untraced_and_is_said_once(graftrace, programs):
    old = runs(programs["small"])
    reasons = ["MemorySanitizer", "Go program", "Valgrind", *(["32-bit"] if old else [])]
    script = graftrace.directory / "script"
    script.write_text("{static}\n{msan}\n{msan}\n{go}\n{small}\n[ $? = {code} ] || exit 1\n"
                      "valgrind -q {plain}\n{plain}\nexit 7\n".format(code=42 if old else 126, **programs))
    with fixed_addresses():
        done = graftrace("record", "sh", script, code=7)
    assert done.stdout == "42\n" * 6
    for text in reasons:
        assert done.stderr.count(text) == 1, done.stderr
    assert done.stderr.count("runs untraced") == len(reasons)
    shown = graftrace("show")
    for text in reasons:
        assert shown.stderr.count(text) == 1, shown.stderr
    # What stands between them is traced.
    report = graftrace("report", "--format", "csv").stdout
    assert "\ntwice" in report, report


def test_a_set_user_id_program_keeps_its_rights_and_is_untraced(tmp_path):
    as_user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    done = subprocess.run([GRAFTRACE, "record", "-o", "/dev/null", "sh", "-c", "su --version; true"], text=True,
                          capture_output=True, timeout=PATIENCE, cwd="/", **as_user)
    assert done.returncode == 0, done.stderr
    assert "su from util-linux" in done.stdout
    assert done.stderr.count("set-user-ID") == 1, done.stderr
