# SPDX-License-Identifier: MIT
"""Limits that a user sets (ulimit) for graftrace and the program."""

import os
import subprocess

import pytest
from attaching import Running, is_clean
from conftest import BUILD, PATIENCE, open_to_everyone

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
    return subprocess.run(["bash", "-c", f'{limit}; exec "$@"', "-", *map(str, command)], text=True, capture_output=True, timeout=PATIENCE,
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
    assert "inner" in subprocess.run([GRAFTRACE, "report", "-i", data], text=True, capture_output=True, timeout=PATIENCE, check=True).stdout


def test_a_hard_limit_of_file_sizes_is_named():
    done = limited("ulimit -f 1000", GRAFTRACE, "record", "-o", "/dev/null", "/bin/true", **USER)
    assert done.returncode == 1 and "(ulimit -f)" in done.stderr and "--buffer-size" in done.stderr


def test_who_is_attached_to_has_its_own_limit(compile, tmp_path):
    program = compile("#include <unistd.h>\nint main(void) { for (;;) sleep(1); }\n", "-O1")
    with subprocess.Popen(["bash", "-c", 'ulimit -v 400000; exec "$0"', str(program)]) as process:
        while os.readlink(f"/proc/{process.pid}/exe") != str(program):
            assert process.poll() is None
        done = subprocess.run([GRAFTRACE, "record", "-P", str(process.pid), "--for", "0.2s", "-o", tmp_path / "data"], text=True,
                              capture_output=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
        assert process.poll() is None
        process.kill()


LOCKED = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) static int inner(volatile int n) { return n ? 1 + inner(n - 1) : 0; }
/* locked FLAGS call|number [wait] */
int main(int count, char **words) {
    int flags = atoi(words[1]);
    int first = inner(3);
    int result = words[2][0] == 'c' ? mlockall(flags) : (int)syscall(SYS_mlockall, flags);
    char *later = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char there[256];
    mincore(later, 1 << 20, there);
    printf("%d %d %d\n", first + inner(3000), result, there[255] & 1);
    fflush(stdout);
    if (count > 3) for (int end = 0; !end; end = getchar() == '\n') inner(3);
    return 0;
}
"""
CURRENT, FUTURE = 1, 2
LOCKABLE = 200 << 20


def memory(pid, name):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(name + ":"))


@pytest.fixture(scope="module", name="locked")
def locked_program(tmp_path_factory):
    place = tmp_path_factory.mktemp("locked")
    open_to_everyone(place)
    (place / "locked.c").write_text(LOCKED)
    subprocess.run(["gcc", "-O1", str(place / "locked.c"), "-o", str(place / "locked")], check=True)
    return place / "locked"


@pytest.mark.parametrize("way", ["call", "number"])
@pytest.mark.parametrize("flags", [CURRENT, FUTURE, CURRENT | FUTURE])
def test_a_program_that_locks_its_memory_locks_none_of_the_recorders(locked, tmp_path, flags, way):
    """As untraced: what it maps later has pages, if it asks for them, and its lock is no failure."""
    with subprocess.Popen([GRAFTRACE, "record", "-o", tmp_path / "data", locked, str(flags), way, "wait"], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == f"3003 0 {int(flags & FUTURE != 0)}\n"
        pid = int(subprocess.run(["pgrep", "-P", str(process.pid), "locked"], capture_output=True, text=True, check=True).stdout)
        rss, lock = memory(pid, "VmRSS"), memory(pid, "VmLck")
        _, errors = process.communicate("\n", timeout=PATIENCE)
    assert process.returncode == 0 and " 0 lost" in errors, errors
    assert rss < LOCKABLE and 0 < lock < LOCKABLE


def test_a_users_limit_of_locked_memory_counts_none_of_the_recorders(locked, tmp_path):
    """Untraced, 4.6 MB are locked."""
    tmp_path.chmod(0o777)
    done = limited("ulimit -l 6000", GRAFTRACE, "record", "-o", tmp_path / "data", locked, CURRENT | FUTURE, "call", **USER)
    assert done.stdout == "3003 0 1\n", done.stderr


def test_a_process_that_has_locked_its_memory_is_attached_to_without_more(locked, tmp_path):
    with subprocess.Popen([locked, str(CURRENT | FUTURE), "call", "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        assert process.stdout.readline() == "3003 0 1\n"
        with subprocess.Popen([GRAFTRACE, "record", "-o", tmp_path / "data", "-P", str(process.pid)], text=True,
                              stderr=subprocess.PIPE) as host:
            assert "recording process" in host.stderr.readline()
            assert memory(process.pid, "VmRSS") < LOCKABLE
            assert 0 < memory(process.pid, "VmLck") < LOCKABLE
            process.communicate("\n", timeout=PATIENCE)
            assert host.wait(PATIENCE) == 0
        assert process.returncode == 0


def test_a_graftrace_without_descriptors_says_what_it_cannot_do(attached, tmp_path):
    """It refuses before, or it leaves nothing behind, or tells of it."""
    said = set()
    with Running(attached) as target:
        for most in range(10, 30):
            ended = limited(f"ulimit -n {most}", GRAFTRACE, "record", "-P", target.pid, "--for", "20ms", "-o",
                            tmp_path / "data")
            assert ended.returncode != 0 or is_clean(target.pid) or "Too many open files" in ended.stderr
            said.add(ended.returncode)
    assert said == {0, 1}
