# SPDX-License-Identifier: MIT
"""function:command:count in set_ftrace_filter of a running program: what is done at the hit."""

import os

import pytest

from conftest import PATIENCE
from mounted import PROGRAM, Mounted, function_names, leaves
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
    assert process.wait(PATIENCE) == 3
    names = ["middle", "leaf", "leaf", "other"]
    assert function_names(process.stderr.read()) == names
    assert function_names(graftrace("show").stdout) == names


def test_what_a_recording_cannot_do_is_refused(graftrace, recorded, folder):  # noqa: F811
    recorded()
    told = ask(graftrace, folder, "set", "-a", "set_ftrace_filter", "other:snapshot:1", code=1)
    assert "--serve and --overwrite" in told
    told = ask(graftrace, folder, "set", "snapshot", "1", code=1)
    assert "--serve and --overwrite" in told


# Of instances


@pytest.fixture
def one(mounted):
    path = mounted.path / "instances" / "one"
    path.mkdir()
    (path / "current_tracer").write_text("function_graph")
    return path


def add(path, text):
    with open(path / "set_ftrace_filter", "a") as file:
        file.write(text + "\n")


def test_an_instance_is_switched_by_its_own_commands(mounted, one):
    add(one, "leaf:traceoff:1")
    add(one, "other:traceon")
    mounted.calls(2)
    assert function_names((one / "trace").read_text()) == ["middle", "leaf", "other"]
    assert (one / "tracing_on").read_text() == "1\n"
    assert "other:traceon:unlimited\nleaf:traceoff:count=0\n" in (
        one / "set_ftrace_filter").read_text()
    assert function_names(mounted.read("trace")) == ["middle", "leaf", "leaf", "other"]
    assert commands(mounted) == []
    add(one, "leaf:traceoff")
    mounted.calls(1)
    mounted.calls(1)
    assert function_names((one / "trace").read_text())[3:] == [
        "middle", "leaf", "other"] + ["middle", "leaf", "other"]
    add(one, "!other:traceon")
    mounted.calls(1)
    assert (one / "tracing_on").read_text() == "0\n"
    assert mounted.read("tracing_on") == "1\n"
    add(one, "!leaf:traceoff:0")
    add(one, "!leaf:traceoff")
    assert (one / "set_ftrace_filter").read_text() == "#### all functions enabled ####\n"
    with pytest.raises(OSError, match="No such device"):
        add(one, "!leaf:traceoff:0")
    with pytest.raises(OSError, match="Invalid argument"):
        add(one, "no_such:traceoff")


def test_an_instances_commands_act_where_nothing_else_is_traced(mounted, one):
    mounted.write("current_tracer", "nop")
    (one / "current_tracer").write_text("nop")
    add(one, "leaf:traceoff:1")
    enabled = mounted.read("enabled_functions").split()
    assert enabled[0] == "leaf" and "other" not in enabled
    mounted.calls(1)
    assert (one / "tracing_on").read_text() == "0\n"
    assert function_names((one / "trace").read_text()) == []
    assert function_names(mounted.read("trace")) == []
    add(one, "!leaf:traceoff:0")
    assert mounted.read("enabled_functions") == ""


def test_an_instances_snapshot_is_taken_at_the_hit(mounted, one):
    (one / "set_ftrace_filter").write_text("leaf middle")
    add(one, "other:snapshot:1")
    mounted.calls(2)
    assert function_names((one / "snapshot").read_text()) == ["middle", "leaf", "leaf"]
    assert function_names((one / "trace").read_text()) == []
    assert "Snapshot is freed" in mounted.read("snapshot")
    mounted.calls(1)
    assert function_names((one / "trace").read_text()) == ["middle", "leaf"]


def test_an_instances_stack_and_dump_are_its_own(mounted, one):
    (one / "set_ftrace_filter").write_text("leaf")
    add(one, "leaf:stacktrace:1")
    add(one, "other:dump:1")
    mounted.calls(2)
    text = (one / "trace").read_text()
    assert text.count("<stack trace>\n => leaf\n => middle\n") == 1
    assert function_names(text) == ["leaf", "leaf"]
    assert "stack" not in mounted.read("trace")
    mounted.end()
    assert function_names(mounted.process.stderr.read()) == ["leaf", "leaf"]


def test_threads_are_an_instances_own(mounted, one):
    mounted.calls(1)
    assert function_names(mounted.read("trace")) == ["middle", "leaf", "other"]
    first = os.listdir(mounted.path / "per_thread")
    assert len(first) == 1
    assert (one / "set_ftrace_pid").read_text() == "no pid\n"
    (one / "set_ftrace_notrace_pid").write_text(first[0])
    mounted.calls(1)
    mounted.calls("t2")
    assert leaves((one / "trace").read_text()) == 1 + 4 * 2
    (one / "set_ftrace_notrace_pid").write_text("")
    (one / "set_ftrace_pid").write_text(first[0])
    assert (one / "set_ftrace_pid").read_text() == first[0] + "\n"
    # what the top leaves out is not left out here, and the other way round
    mounted.write("set_ftrace_notrace_pid", first[0])
    for path in (mounted.path, one):
        (path / "trace").write_text("")
    mounted.calls(2)
    mounted.calls("t3")
    assert leaves((one / "trace").read_text()) == 2
    assert leaves(mounted.read("trace")) == 4 * 3
    # alone again, the top's is what is recorded
    (one / "current_tracer").write_text("nop")
    mounted.write("trace", "")
    mounted.calls(5)
    mounted.calls("t1")
    assert leaves(mounted.read("trace")) == 4
    with pytest.raises(OSError, match="Invalid argument"):
        (one / "options" / "function-fork").write_text("1")
