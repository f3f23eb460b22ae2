# SPDX-License-Identifier: MIT
"""function:command:count in set_ftrace_filter of a running program: what is done at the hit."""

import os

import pytest

from mounted import PROGRAM, Mounted, function_names
from test_mount import program  # noqa: F401
from test_set_get import ask, call, folder, recorded  # noqa: F401


@pytest.fixture
def mounted(graftrace, compile):
    traced = compile(PROGRAM, "-O1", "-pthread", "-fpatchable-function-entry=5")
    one = Mounted(graftrace, traced, "-p", "function_graph", "-n", "main")
    yield one
    one.end_anyhow()


def command(mounted, text):
    mounted.write("set_ftrace_filter", text + "\n", os.O_APPEND)


def commands(mounted):
    return [line for line in mounted.read("set_ftrace_filter").splitlines() if ":" in line]


def test_a_snapshot_is_what_was_there_at_the_hit(mounted):
    command(mounted, "other:snapshot:1")
    mounted.calls(2)
    assert function_names(mounted.read("snapshot")) == ["middle", "leaf", "leaf", "other"]
    assert "}" not in mounted.read("snapshot")
    assert function_names(mounted.read("trace")) == []
    assert mounted.read("trace").count("}") == 2  # of other, which began before, and of middle
    assert commands(mounted) == ["other:snapshot:count=0"]
    mounted.calls(1)
    assert function_names(mounted.read("snapshot")) == ["middle", "leaf", "leaf", "other"]
    assert function_names(mounted.read("trace")) == ["middle", "leaf", "other"]


@pytest.mark.parametrize("name", ["dump", "cpudump"])
def test_a_dump_goes_to_the_console_and_ends_the_tracing(mounted, name):
    command(mounted, f"other:{name}:1")
    assert commands(mounted) == [f"other:{name}:count=1"]
    mounted.calls(2)
    assert mounted.read("tracing_on") == "0\n"
    assert function_names(mounted.read("trace")) == ["middle", "leaf", "leaf", "other"]
    command(mounted, f"!other:{name}:0")
    assert commands(mounted) == []
    mounted.end()
    text = mounted.process.stderr.read()
    assert text.startswith("Dumping ftrace buffer:\n---------------------------------\n")
    assert text.endswith("\n---------------------------------\n")
    assert function_names(text) == ["middle", "leaf", "leaf", "other"]


@pytest.mark.parametrize("options", [[], ["--overwrite"]], ids=["file", "ring"])
def test_a_recording_dumps_too(graftrace, recorded, folder, options):  # noqa: F811
    process = recorded("-n", "main", *options)
    ask(graftrace, folder, "set", "-a", "set_ftrace_filter", "other:dump:1")
    call(process, 2)
    assert ask(graftrace, folder, "get", "tracing_on") == "0\n"
    process.stdin.close()
    assert process.wait(60) == 3
    names = ["middle", "leaf", "leaf", "other"]
    assert function_names(process.stderr.read()) == names
    assert function_names(graftrace("show").stdout) == names


def test_what_a_recording_cannot_do_is_refused(graftrace, recorded, folder):  # noqa: F811
    recorded()
    told = ask(graftrace, folder, "set", "-a", "set_ftrace_filter", "other:snapshot:1", code=1)
    assert "--serve and --overwrite" in told
    told = ask(graftrace, folder, "set", "snapshot", "1", code=1)
    assert "--serve and --overwrite" in told
