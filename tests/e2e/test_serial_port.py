# SPDX-License-Identifier: MIT
"""The port that others copy: a tiny kernel, built from what is installed, traced over a serial line."""

import os
import re
import shutil
import signal
import subprocess

import pytest

import format_reader
from conftest import BUILD, PATIENCE, ROOT, free_port, let_port_go

GRAFTRACE = BUILD / "cli" / "graftrace"
PORT = ROOT / "port" / "serial"
# Two threads calculate fibonacci(10), and give the processor away in mid-call.
CALLS = 2 * 177


@pytest.fixture(scope="module")
def booted(tmp_path_factory):
    """One boot: where its recording lies, and what came over the first line."""
    scratch = tmp_path_factory.mktemp("serial")
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", scratch / "stage"],
                   check=True, capture_output=True)
    prefix = next((scratch / "stage").glob("**/include/graftrace-core")).parent.parent
    # A tree of its own: nothing of ours is in reach but what is installed.
    shutil.copytree(PORT, scratch / "copied")
    out = scratch / "out"
    out.mkdir()
    done = make_run(out, f"PREFIX={prefix}")
    assert done.returncode == 0, done.stdout + done.stderr
    return out / "trace.data", done.stdout.replace("\r", "")


def make_run(out, *arguments, **environment):
    return subprocess.run(["make", "-s", "-C", out.parent / "copied", f"OUT={out}", *arguments, "run"],
                          capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                          env={**os.environ, **environment})


def test_the_port_is_as_small_as_the_checklist_says():
    code = (PORT / "trace.c").read_text().splitlines()
    script = [line for line in (PORT / "serial.ld").read_text().splitlines()
              if re.search("gt_|stubs|patchable", line)]
    assert len(code) + len(script) <= 300
    hooks = re.findall(r"\btrace_\w+\(", (PORT / "main.c").read_text())
    assert sorted(hooks) == ["trace_init(", "trace_send(", "trace_serve(", "trace_switch(", "trace_thread("]
    assert sum(len(path.read_text().splitlines()) for path in PORT.iterdir()) <= 700


def test_the_first_line_gives_the_graph_as_text(booted):
    _, console = booted
    assert console.startswith("serial: a kernel of one page\n# tracer: function_graph\n")
    assert re.search(r"^ 0\) +main-1 +=> +first-2 +$", console, re.M)
    assert re.search(r"^ 0\) .* us +\|  } /\* calculate \*/$", console, re.M)
    assert console.count("fibonacci();") + console.count("fibonacci() {") == CALLS


def test_the_second_line_gives_a_recording(booted):
    recording, _ = booted
    data = format_reader.read(recording)
    assert not data.problems
    report = subprocess.run([GRAFTRACE, "report", recording], check=True, capture_output=True,
                            text=True, timeout=PATIENCE).stdout
    assert re.search(rf"^ +[\d.]+ +{CALLS} +0 .* fibonacci$", report, re.M), report
    assert re.search(r"^ +[\d.]+ +2 +0 .* calculate$", report, re.M)
    threads = subprocess.run([GRAFTRACE, "report", "--by", "thread", recording], check=True,
                             capture_output=True, text=True, timeout=PATIENCE).stdout
    assert re.search(r" first-2$", threads, re.M) and re.search(r" second-3$", threads, re.M)
    shown = subprocess.run([GRAFTRACE, "show", recording], check=True, capture_output=True,
                           text=True, timeout=PATIENCE).stdout
    assert shown.count("fibonacci();") + shown.count("fibonacci() {") == CALLS
    # Both threads have ended in yield().
    parsed = subprocess.run([GRAFTRACE, "parse-trace", recording, "-o", "/dev/null"], check=True,
                            capture_output=True, text=True, timeout=PATIENCE).stderr
    assert "2 calls still open at the end" in parsed


@pytest.mark.parametrize("qemus_code, runs_code", [(1, 0), (0, 2), (3, 2)])
def test_only_the_kernels_own_end_is_a_good_one(booted, tmp_path, qemus_code, runs_code):
    """QEMU ends with 0 when the machine was reset, by a triple fault."""
    recording, _ = booted
    emulator = tmp_path / "qemu-system-x86_64"
    emulator.write_text(f"#!/bin/sh\nexit {qemus_code}\n")
    emulator.chmod(0o755)
    prefix = next((recording.parent.parent / "stage").glob("**/include/graftrace-core")).parent.parent
    done = make_run(recording.parent, f"PREFIX={prefix}", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == runs_code


def test_the_text_can_be_taken_apart_too(booted, tmp_path):
    _, console = booted
    text = tmp_path / "console.txt"
    text.write_text(console)
    subprocess.run([GRAFTRACE, "parse-trace", text, "-o", tmp_path / "calls.csv"], check=True,
                   capture_output=True, timeout=PATIENCE)
    rows = (tmp_path / "calls.csv").read_text().splitlines()
    assert sum(row.startswith("fibonacci,") for row in rows) == CALLS


def test_the_third_line_is_asked_over_http_by_a_kernel_that_never_waits(booted):
    recording, console = booted
    prefix = next((recording.parent.parent / "stage").glob("**/include/graftrace-core")).parent.parent
    out = recording.parent.parent / "asked"
    out.mkdir()
    port = free_port()
    machine = subprocess.Popen(
        ["make", "-s", "-C", out.parent / "copied", f"OUT={out}", f"PREFIX={prefix}", f"HTTP={port}", "run"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def curl(path, *arguments):
        return subprocess.run(["curl", "-sS", "--retry", "60", "--retry-delay", "1", "--retry-connrefused",
                               "--max-time", "100", *arguments, f"http://127.0.0.1:{port}/ftrace/{path}"],
                              capture_output=True, text=True, timeout=110)
    try:
        text = curl("trace").stdout
        assert text.count("fibonacci();") + text.count("fibonacci() {") == CALLS
        for _ in range(30):  # the kernel's memory is given back
            assert curl("trace").stdout == text
        refused = curl("current_tracer", "-X", "PUT", "-d", "nosuch", "-w", "%{http_code}").stdout
        assert refused.endswith("400") and "nosuch" in refused
        assert curl("tracing_on", "-X", "PUT", "-d", "1", "-w", "%{http_code}").stdout == "204"
        assert curl("tracing_on").stdout == "1\n"
        assert curl("trace_pipe").stdout.count("fibonacci") == text.count("fibonacci")
        assert "fibonacci" not in curl("trace").stdout
        names = curl("", "-I").stdout + curl("").stdout
        assert "200 OK" in names and "set_ftrace_filter\n" in names
    finally:
        os.killpg(machine.pid, signal.SIGKILL)
        machine.wait()
        let_port_go(port)
