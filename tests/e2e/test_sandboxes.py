# SPDX-License-Identifier: MIT
"""Programs that enter a sandbox of their own (seccomp) while they are traced: no system call of ours kills them."""

import subprocess

import pytest


@pytest.mark.parametrize("more", [[], ["--libs"], ["--breakpoints"], ["-p", "function"]], ids=["program", "libs", "int3", "function"])
@pytest.mark.parametrize("flags", [[], ["-static"]], ids=["dynamic", "static"])
@pytest.mark.parametrize("way", ["prctl", "syscall"])
def test_a_filter_that_forbids_our_calls_kills_nobody(way, flags, more, graftrace, compile):
    program = compile("sandbox.c", "-O1", *flags)
    done = graftrace("record", *more, "--", program, way, "narrow", code=6)
    assert done.stdout == "done\n"
    assert "it has entered a sandbox (seccomp) that forbids mmap" in done.stderr


@pytest.mark.parametrize("way", ["prctl", "syscall"])
def test_a_filter_that_allows_our_calls_changes_nothing(way, graftrace, compile):
    done = graftrace("record", "--", compile("sandbox.c", "-O1"), way, "wide", code=6)
    assert done.stdout == "done\n" and "sandbox" not in done.stderr
    rows = {words[-1]: words[1:] for words in map(str.split, graftrace("report").stdout.splitlines()) if words}
    assert rows["inner"][0] == "1050011"


EXECS = """
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv) {
    struct sock_filter filter[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
    struct sock_fprog program = { 4, filter };
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) || execv(argv[1], argv + 1);
}
"""


def test_a_new_image_in_a_sandbox_is_asked_for_first(graftrace, compile):
    done = graftrace("record", "--", compile(EXECS), "/bin/echo", "here")
    assert done.stdout == "here\n"
    assert "runs untraced: a seccomp filter of process" in done.stderr and "forbids socketpair" in done.stderr
    assert subprocess.run([compile(EXECS), "/bin/echo", "here"], capture_output=True, timeout=60, check=True).stdout == b"here\n"
