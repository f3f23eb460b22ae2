# SPDX-License-Identifier: MIT
"""graftrace record -P PID: processes that cannot be attached to are refused, with the reason."""

import errno
import os
import subprocess
from pathlib import Path

from attaching import FLAGS, GRAFTRACE, TRACER, Running, end_recording, record, start_recording
from behaviour import fixed_addresses
from conftest import PATIENCE, PROGRAMS, wait_until


def refusal(graftrace, pid, *options):
    done = record(graftrace, pid, *options, code=1)
    assert not Path(graftrace.directory / "graftrace.data").exists()
    return done.stderr


def test_processes_that_are_none_are_refused(graftrace, attached):
    assert "there is no process 999999999" in refusal(graftrace, 999999999)
    child = subprocess.Popen(["true"])
    wait_until(lambda: Path(f"/proc/{child.pid}/stat").read_text().rsplit(")")[1].split()[0] == "Z")
    assert "has ended; its parent" in refusal(graftrace, child.pid)
    child.wait()
    with Running(attached, "work") as target:
        other = next(t for t in os.listdir(f"/proc/{target.pid}/task") if t != str(target.pid))
        assert f"use -P {target.pid}" in refusal(graftrace, other)


def test_a_process_that_is_traced_already_is_refused(graftrace, attached, compile):
    with Running(attached) as target:
        with Running(compile(TRACER), str(target.pid)) as debugger:
            said = refusal(graftrace, target.pid)
            assert f"is traced already, by process {debugger.pid}" in said
        tracer = start_recording(graftrace, target.pid, "-o", "first.data")
        assert f"is being recorded already, by graftrace (process {tracer.pid})" in refusal(
            graftrace, target.pid)
        end_recording(tracer)
        record(graftrace, target.pid, "--for", "10ms")


def test_a_process_of_another_user_is_refused(attached, tmp_path):
    if os.geteuid() == 0:
        with Running(attached) as target:
            tmp_path.chmod(0o777)
            done = subprocess.run([GRAFTRACE, "record", "-o", "/dev/null", "-P", str(target.pid)], user=65534,
                                  group=65534, extra_groups=[], cwd="/", text=True,
                                  capture_output=True, timeout=PATIENCE)
            pid = target.pid
    else:
        pid = 1
        done = subprocess.run([GRAFTRACE, "record", "-P", "1"], cwd=tmp_path, text=True,
                              capture_output=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert f"process {pid}" in done.stderr and "run graftrace as root" in done.stderr


def test_programs_that_no_tracer_can_follow_are_refused(graftrace, compile):
    text = PROGRAMS.joinpath("attached.c").read_text()
    go = '__attribute__((section(".go.buildinfo"), used)) static const char build[] = "go";\n'
    with Running(compile(text + go, *FLAGS)) as target:
        assert "is a Go program" in refusal(graftrace, target.pid)
    sanitized = compile("attached.c", "-O1", "-pthread", "-fsanitize=memory", compiler="clang")
    with fixed_addresses(), Running(sanitized) as target:
        assert "MemorySanitizer" in refusal(graftrace, target.pid)
    with Running("valgrind", "-q", compile("attached.c", *FLAGS)) as target:
        assert "runs under Valgrind" in refusal(graftrace, target.pid)


# write(1, "ready\n", 6), then pause() for ever
OLD = """.globl _start
_start: mov $4, %eax
        mov $1, %ebx
        mov $text, %ecx
        mov $6, %edx
1:      int $0x80
        mov $29, %eax
        jmp 1b
text:   .ascii "ready\\n"
"""


def test_a_32_bit_program_is_refused(graftrace):
    source = graftrace.directory / "old.s"
    source.write_text(OLD)
    for words in (["as", "--32", "-o", "old.o", "old.s"], ["ld", "-m", "elf_i386", "-o", "old", "old.o"]):
        subprocess.run(words, cwd=graftrace.directory, check=True)
    assert "is a 32-bit ELF file" in graftrace("functions", "old", code=1).stderr
    try:
        target = Running(graftrace.directory / "old")
    except OSError as error:  # a kernel that has no 32-bit processes
        assert error.errno == errno.ENOEXEC
        return
    with target:
        assert "is no 64-bit x86 program" in refusal(graftrace, target.pid)
        assert target.is_alive()


SANDBOX = r"""
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
__attribute__((constructor)) static void enter(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FORBIDDEN, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
"""


def test_a_sandbox_is_asked_before_it_kills(graftrace, compile):
    text = PROGRAMS.joinpath("attached.c").read_text() + SANDBOX
    with Running(compile(text, *FLAGS, "-DFORBIDDEN=SYS_socketpair")) as target:
        # Only root may read what a filter says.
        said = refusal(graftrace, target.pid)
        assert ("forbids socketpair" if os.geteuid() == 0 else "may not read") in said
        assert target("call") == "right"
    with Running(compile(text, *FLAGS, "-DFORBIDDEN=SYS_kexec_load")) as target:
        if os.geteuid() == 0:
            record(graftrace, target.pid, "--for", "10ms")
        else:
            assert "may not read" in refusal(graftrace, target.pid)
        assert target("call") == "right"
