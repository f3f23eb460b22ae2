# SPDX-License-Identifier: MIT
"""Events of instances/NAME: each buffer has those that were switched on in it."""

import contextlib
import errno
import os
import re
import subprocess

import pytest

from mounted import refused
from watched import FLAGS, Watched, program  # noqa: F401, a fixture
from watched import watched as alone  # noqa: F401, a fixture


@pytest.fixture
def watched(alone):
    (alone.path / "instances" / "one").mkdir()
    return alone


def counts(path):
    """Of each event in a trace: how often."""
    names = re.findall(r"\b(sold|heard|registers|tell): ", path.read_text())
    return {name: names.count(name) for name in dict.fromkeys(names)}


def append(path, text):
    with open(path, "a", encoding="utf-8") as file:
        file.write(text + "\n")


def test_an_event_of_an_instance_is_in_its_trace_alone(watched):
    top, one = watched.path, watched.path / "instances" / "one"
    (one / "set_event").write_text("shop:sold\n")
    watched.run(3)
    assert counts(one / "trace") == {"sold": 3} and counts(top / "trace") == {}
    assert (one / "trace").read_text().startswith("# tracer: nop\n")
    assert (one / "set_event").read_text() == "shop:sold\n" and (top / "set_event").read_text() == ""
    assert (one / "events/shop/sold/enable").read_text() == "1\n"
    assert (top / "events/shop/sold/enable").read_text() == "0\n"
    (top / "events/usdt_own/heard/enable").write_text("1")
    watched.run(2)
    assert counts(one / "trace") == {"sold": 5} and counts(top / "trace") == {"heard": 2}
    (one / "events/enable").write_text("0")
    (top / "events/enable").write_text("1")
    watched.run(4)
    assert counts(one / "trace") == {"sold": 5}
    assert counts(top / "trace") == {"heard": 6, "sold": 4, "registers": 4}


@pytest.mark.parametrize("name, text", [("set_event", b"shop:sold\n"), ("set_event_pid", b"1\n")])
def test_a_file_of_a_removed_instance_changes_no_other_instance(watched, name, text):
    instances = watched.path / "instances"
    left = os.open(instances / "one" / name, os.O_WRONLY)
    (instances / "one").rmdir()
    (instances / "two").mkdir()
    (instances / "two" / "set_event").write_text("usdt_own:heard\n")
    assert refused(lambda: os.write(left, text)) == errno.ENOENT
    os.close(left)
    watched.run(3)
    assert counts(instances / "two" / "trace") == {"heard": 3}


def test_events_of_the_top_that_were_there_before_stay(watched):
    top, one = watched.path, watched.path / "instances" / "one"
    (top / "set_event").write_text("shop:sold\n")
    watched.run(3)
    (one / "events/usdt_own/enable").write_text("1")
    watched.run(2)
    assert counts(top / "trace") == {"sold": 5}
    assert counts(one / "trace") == {"heard": 2, "registers": 2}
    assert (one / "events/usdt_own/enable").read_text() == "1\n"
    assert (one / "events/enable").read_text() == "X\n"
    one.rmdir()
    watched.run(1)
    assert counts(top / "trace") == {"sold": 6}


def test_what_one_leaves_out_others_have(watched):
    top, one = watched.path, watched.path / "instances" / "one"
    append(one / "set_event", "*:*")
    append(one / "set_event", "!shop:sold")
    (top / "set_event").write_text("shop:sold\n")
    watched.run(3)
    assert counts(one / "trace") == {"heard": 3, "registers": 3} and counts(top / "trace") == {"sold": 3}
    assert "shop:sold" not in (one / "set_event").read_text()
    append(top / "set_event", "!shop:sold")
    watched.run(2)
    assert counts(top / "trace") == {"sold": 3} and counts(one / "trace")["heard"] == 5


def test_fields_are_the_same_and_stand_in_the_calls(watched):
    one, two = watched.path / "instances" / "one", watched.path / "instances" / "two"
    two.mkdir()
    (one / "set_ftrace_filter").write_text("tell")
    (one / "current_tracer").write_text("function_graph")
    (one / "set_event").write_text("shop:sold\n")
    (two / "current_tracer").write_text("function")
    (two / "set_ftrace_filter").write_text("tell")
    (two / "set_event").write_text("shop\n")
    watched.run(2)
    sold = [f"sold: count={i} what=\"loop\" small=1 negative={-5 - i} price=1.000000 nowhere=0x10" for i in (0, 1)]
    lines = [line.split("|  ", 1)[-1].strip() for line in (one / "trace").read_text().splitlines()
             if "tell" in line or "sold" in line]
    assert [line for line in lines if line != "} /* tell */"] == [
        "tell() {", f"/* {sold[0]} */", "tell() {", f"/* {sold[1]} */"]
    lines = (two / "trace").read_text()
    assert [found[0] or found[1] for found in re.findall(r": (tell) <-|: (sold: .*)$", lines, re.M)] == [
        "tell", sold[0], "tell", sold[1]]


def test_an_instance_is_switched_off_and_read_by_itself(watched):
    top, one = watched.path, watched.path / "instances" / "one"
    (top / "set_event").write_text("shop:sold\n")
    (one / "set_event").write_text("shop:sold\n")
    (top / "tracing_on").write_text("0")
    watched.run(3)
    assert counts(top / "trace") == {} and counts(one / "trace") == {"sold": 3}
    (top / "tracing_on").write_text("1")
    (one / "tracing_on").write_text("0")
    watched.run(2)
    assert counts(top / "trace") == {"sold": 2} and counts(one / "trace") == {"sold": 3}
    pipe = os.open(one / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
    lines = os.read(pipe, 65536).decode()
    os.close(pipe)
    assert lines.count(" sold: ") == 3
    assert counts(one / "trace") == {}


def test_filters_and_triggers_are_the_tops(watched):
    one = watched.path / "instances" / "one"
    event = one / "events/shop/sold"
    assert (event / "format").read_text() == (watched.path / "events/shop/sold/format").read_text()
    assert (event / "filter").read_text() == "none\n"
    (event / "filter").write_text("0")
    assert refused((event / "filter").write_text, "count < 3") == errno.EOPNOTSUPP
    assert (event / "hist").read_text() == "" and (event / "trigger").read_text().startswith("# Avail")
    assert refused((event / "trigger").write_text, "traceoff") == errno.EOPNOTSUPP
    assert "in events/ of the top" in (one / "error_log").read_text()


def test_events_that_triggers_of_the_top_enable_are_the_tops(watched):
    top, one = watched.path, watched.path / "instances" / "one"
    (one / "set_event").write_text("shop:sold\n")
    watched.write("enable_event:usdt_own:heard if count == 1")
    watched.run(3)
    assert counts(one / "trace") == {"sold": 3} and counts(top / "trace") == {"heard": 2}


def test_a_trigger_of_the_top_changes_which_of_an_instances_events_it_has(watched):
    top, one = watched.path, watched.path / "instances" / "one"
    (one / "set_event").write_text("usdt_own:heard\n")
    watched.run(3)
    assert counts(one / "trace") == {"heard": 3} and counts(top / "trace") == {}
    watched.write("enable_event:usdt_own:heard")
    watched.run(2)
    assert counts(one / "trace") == {"heard": 5} and counts(top / "trace") == {"heard": 2}
    watched.write("!enable_event:usdt_own:heard")
    watched.run(1)
    assert counts(one / "trace") == {"heard": 6} and counts(top / "trace") == {"heard": 2}


def test_system_calls_are_an_instances_own(watched):
    top, one = watched.path, watched.path / "instances" / "one"
    (top / "set_event").write_text("shop:sold\n")
    append(one / "set_event", "syscalls:sys_enter_read")
    append(one / "set_event", "syscalls:sys_enter_write")
    append(one / "set_event", "!syscalls:sys_enter_read")
    assert (one / "events/syscalls/sys_enter_write/enable").read_text() == "1\n"
    assert (top / "events/syscalls/sys_enter_write/enable").read_text() == "0\n"
    watched.run(2)
    assert (one / "trace").read_text().count(" sys_write(") == 1 and " sys_read(" not in (one / "trace").read_text()
    assert counts(top / "trace") == {"sold": 2} and " sys_" not in (top / "trace").read_text()


# Linux as the judge: the machine's own tracefs, with a uprobe in the place of the program's event


def write(path, text, append=False):
    """These files have no end to seek to. What came of it: 0, or the error."""
    try:
        file = os.open(path, os.O_WRONLY | (os.O_APPEND if append else os.O_TRUNC))
    except OSError as error:
        return error.errno
    try:
        os.write(file, text.encode())
    except OSError as error:
        return error.errno
    finally:
        os.close(file)
    return 0


@contextlib.contextmanager
def probed(root, group, place):
    """Two instances below the root of control files, with a probe that both may switch on."""
    assert write(root / "uprobe_events", f"p:{group}/rang {place}\n", True) == 0
    instances = [root / "instances" / f"{group}_{letter}" for letter in "ab"]
    for instance in instances:
        instance.mkdir()
    try:
        yield instances
    finally:
        for instance in instances:
            write(instance / "set_event", "\n")
            instance.rmdir()
        write(root / "uprobe_events", f"-:{group}/rang\n", True)


def typed(a, b, group, run):
    """What the steps give: results, files, and how often the event is in each trace."""
    seen = []
    for where, text, append in (
            (a / "set_event", f"{group}:rang\n", True), (b / f"events/{group}/rang/enable", "1", False),
            (a / "set_event", f"!{group}:rang\n", True), (b / f"events/{group}/enable", "0", False),
            (a / f"events/{group}/enable", "1", False), (b / "set_event", f"{group}:*\n", True),
            (b / "set_event", f"nosuch_{group}\n", True), (a / "tracing_on", "0", False),
            (a / "trace", "", False), (b / "set_event", "", False), (a / "tracing_on", "1", False),
            (b / f"events/{group}/rang/enable", "2", False), (a / "set_event", f"!{group}\n", True)):
        seen.append(write(where, text, append))
        run()
        for one in (a, b):
            seen.append([(one / name).read_text() for name in (
                "set_event", f"events/{group}/enable", f"events/{group}/rang/enable")])
            seen.append((one / "trace").read_text().count(" rang: "))
    return seen


def test_two_instances_have_what_linux_gives_them(graftrace, compile, tmp_path, alone_with_tracefs):
    program = compile("events.c", "-O2", "-fno-pie", "-no-pie", *FLAGS)
    group = f"graftrace_{os.getpid()}"
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    address = int(re.search(r"^(\w+) [tT] tell$", symbols, re.M)[1], 16)
    place = f"{program}:{address - 0x400000:#x}"
    tracefs = tmp_path / "tracefs"
    tracefs.mkdir()
    subprocess.run(["mount", "-t", "tracefs", "none", tracefs], check=True)
    try:
        with subprocess.Popen([program, "loop"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as process:
            assert process.stdout.readline() == "ready\n"

            def run():
                process.stdin.write("3\n")
                process.stdin.flush()
                process.stdout.readline()

            with probed(tracefs, group, place) as (a, b):
                theirs = typed(a, b, group, run)
            process.stdin.close()
    finally:
        subprocess.run(["umount", "-l", tracefs], check=True)
    watched = Watched(graftrace, program, "loop")
    with probed(watched.path, group, place) as (a, b):
        ours = typed(a, b, group, lambda: watched.run(3))
    watched.end()
    assert ours == theirs
