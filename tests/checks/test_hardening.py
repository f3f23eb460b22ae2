# SPDX-License-Identifier: MIT
"""graftrace itself, which root runs on what others have written, is built to notice when its memory is
overrun; what runs inside a traced program, and core/, is not."""

import json
import subprocess

import pytest

import tree

WANTED = ["-fstack-protector-strong", "-D_FORTIFY_SOURCE=2"]
HOST = ("attach/", "cli/", "export/", "read/", "serve/")
INSIDE = ("arch/", "core/", "port/program/agent.c", "port/program/threads.c")
BOTH = "arch/x86_64/code/"  # the host plans with what a kernel patches itself with
BINARY = tree.BUILD / "cli" / "graftrace"


def readelf(*words):
    return subprocess.run(["readelf", "-W", *words, BINARY], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def commands():
    """Command lines by source, of what the command and the agent are made of."""
    found = {}
    for entry in json.loads((tree.BUILD / "compile_commands.json").read_text()):
        path = (tree.BUILD / entry["file"]).resolve()
        if path.is_relative_to(tree.ROOT) and "tests/" not in entry["output"] and "bench/" not in entry["output"]:
            found.setdefault(path.relative_to(tree.ROOT).as_posix(), []).append(entry["command"].split())
    return found


def test_the_host_side_is_compiled_with_guards(commands):
    sources = [path for path in commands if path.startswith(HOST) and path.endswith(".c")]
    assert len(sources) > 150 and {path.split("/")[0] + "/" for path in sources} == set(HOST)
    bare = [path for path in sources for words in commands[path] if not set(WANTED) <= set(words)]
    assert not bare, bare


def test_what_runs_inside_a_program_is_compiled_without(commands):
    inside = [path for path in commands if path.startswith(INSIDE) and path.endswith(".c")]
    assert len(inside) > 30 and any(path.startswith("port/program/") for path in inside)
    for path in inside:
        for words in commands[path]:
            if path.startswith(BOTH) and set(WANTED) <= set(words):
                continue
            assert not set(WANTED) & set(words) and "-fno-stack-protector" in words, path


def test_the_binary_binds_at_its_start_and_nothing_writable_is_executable():
    flags = [line for line in readelf("-d").splitlines() if "FLAGS" in line]
    assert any("NOW" in line for line in flags) and any("PIE" in line for line in flags), flags
    segments = readelf("-l").splitlines()
    assert any("GNU_RELRO" in line for line in segments)
    rights = [line.split()[-2] for line in segments if "GNU_STACK" in line]
    assert rights == ["RW"], rights
    assert not any("RWE" in line for line in segments)


def test_the_binary_calls_the_checks():
    wanted = {name for name in ("__stack_chk_fail", "__vsnprintf_chk", "__memcpy_chk", "__read_chk")
              if f" {name}@" in readelf("--dyn-syms")}
    assert {"__stack_chk_fail", "__vsnprintf_chk"} <= wanted, wanted
