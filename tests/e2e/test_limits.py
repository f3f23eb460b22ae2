# SPDX-License-Identifier: MIT
"""Limits that a user sets (ulimit) for graftrace and the program."""

import os
import subprocess

import pytest
from conftest import BUILD

GRAFTRACE = str(BUILD / "cli" / "graftrace")
LIMITED = r"""
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
__attribute__((noinline)) static int inner(volatile int n) { return n ? 1 + inner(n - 1) : 0; }
static void *thread(void *sum) { *(int *)sum = inner(20); return NULL; }
int main(void) {
    struct rlimit space, size;
    int sum = inner(3), sums[3] = { 0 };
    pthread_t ids[3];
    for (int i = 0; i < 3; i++)
        if (pthread_create(&ids[i], NULL, thread, &sums[i])) return 1;
    for (int i = 0; i < 3; i++) pthread_join(ids[i], NULL), sum += sums[i];
    getrlimit(RLIMIT_AS, &space);
    getrlimit(RLIMIT_FSIZE, &size);
    printf("%d %ld %ld\n", sum, (long)space.rlim_cur, (long)size.rlim_cur);
    return 0;
}
"""
USER = {"user": 65534, "group": 65534, "extra_groups": []}


def limited(limit, *command, **options):
    return subprocess.run(["bash", "-c", f'{limit}; exec "$@"', "-", *map(str, command)], text=True, capture_output=True, timeout=60,
                          cwd="/", **options)


@pytest.mark.parametrize("limit", ["ulimit -v 400000", "ulimit -S -f 1000"])
def test_a_limited_program_is_recorded_and_keeps_its_limits(limit, compile, tmp_path):
    program = compile(LIMITED, "-O1", "-pthread")
    data = tmp_path / "data"
    done = limited(limit, GRAFTRACE, "record", "-o", data, program)
    assert done.returncode == 0, done.stderr
    assert done.stdout == limited(limit, program).stdout
    assert done.stdout.startswith("63 ")
    assert " 0 lost" in done.stderr
    assert "inner" in subprocess.run([GRAFTRACE, "report", "-i", data], text=True, capture_output=True, timeout=60, check=True).stdout


def test_a_hard_limit_of_file_sizes_is_named():
    done = limited("ulimit -f 1000", GRAFTRACE, "record", "-o", "/dev/null", "/bin/true", **USER)
    assert done.returncode == 1 and "(ulimit -f)" in done.stderr and "--buffer-size" in done.stderr


def test_who_is_attached_to_has_its_own_limit(compile, tmp_path):
    program = compile("#include <unistd.h>\nint main(void) { for (;;) sleep(1); }\n", "-O1")
    with subprocess.Popen(["bash", "-c", 'ulimit -v 400000; exec "$0"', str(program)]) as process:
        while os.readlink(f"/proc/{process.pid}/exe") != str(program):
            assert process.poll() is None
        done = subprocess.run([GRAFTRACE, "record", "-P", str(process.pid), "--for", "0.2s", "-o", tmp_path / "data"], text=True,
                              capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert process.poll() is None
        process.kill()
