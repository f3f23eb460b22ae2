# SPDX-License-Identifier: MIT
"""LTTng records a program's own tracepoints while graftrace records its calls and the kernel: each
has all of its events."""

import os
import subprocess
import time

import pytest

from conftest import PATIENCE

pytestmark = pytest.mark.usefixtures("alone_with_tracefs")

PROGRAM = """
#include <lttng/tracef.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) void step(int i) { tracef("step %d", i); }
int main(void)
{
	for (int i = 0; i < 500; i++) {
		step(i);
		getppid();
	}
	puts("ran");
	return 0;
}
"""


def lttng(*words, **options):
    return subprocess.run(["lttng", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=PATIENCE, **options)


@pytest.fixture
def session(tmp_path, monkeypatch):
    """A running session of a daemon of its own; the directory of its trace."""
    for name in ("LTTNG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    with open(tmp_path / "daemon.out", "wb") as out:
        daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + 60
        while lttng("list", check=False).returncode != 0:
            assert daemon.poll() is None and time.monotonic() < deadline, \
                (tmp_path / "daemon.out").read_text()
            time.sleep(0.2)
        lttng("create", "beside", f"--output={tmp_path}/trace", check=True)
        lttng("enable-event", "-u", "lttng_ust_tracef:*", check=True)
        lttng("start", check=True)
        yield tmp_path / "trace"
    finally:
        lttng("destroy", "-a", check=False)
        daemon.terminate()
        daemon.wait(PATIENCE)


def test_lttng_beside_is_not_disturbed_and_does_not_disturb(graftrace, compile, session):
    program = compile(PROGRAM, "-O1", "-Wl,--no-as-needed", "-llttng-ust", "-ldl")
    done = graftrace("record", "--kernel=try", "-e", "k:syscalls:sys_enter_getppid", "-o", "it.data",
                     program)
    assert done.stdout == "ran\n"
    lttng("stop", check=True)
    theirs = subprocess.run(["babeltrace2", session], stdout=subprocess.PIPE, text=True, check=True,
                            timeout=PATIENCE).stdout
    assert [f"step {i}\"" in line for i, line in enumerate(theirs.splitlines())] == [True] * 500, theirs
    shown = graftrace("show", "--no-pager", "it.data").stdout
    assert shown.count("step()") == 500
    if "without the kernel" not in done.stderr:
        assert shown.count("sys_enter_getppid") >= 500 and os.path.isdir("/sys/kernel/tracing/events")
