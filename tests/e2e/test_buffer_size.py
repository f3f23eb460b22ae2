# SPDX-License-Identifier: MIT
"""buffer_size_kb of a program that runs: another size keeps what there is, as on Linux."""

import errno
import re
import time

import pytest

from mounted import refused, start  # noqa: F401


def counts(path):
    return {name: int(value)
            for name, value in re.findall(r"^([a-z ]+): +(\d+)$", path.read_text(), re.M)}


def settled(path):
    """The counts when graftrace has made the room that it keeps for overwriting."""
    last = []
    while len(last) < 3 or any(one["overrun"] != last[-1]["overrun"] for one in last[-3:]):
        time.sleep(0.1)
        last.append(counts(path))
    return last[-1]


def shown(path):
    """What stands in a trace, but for the times."""
    return re.findall(r"^[^#\n]*\|  (.*)$", path.read_text(), re.M)


def test_another_size_keeps_what_there_is(start):
    mounted = start("-p", "function_graph", "-b", "8M")
    top = mounted.path
    mounted.calls(100)
    before = (top / "trace").read_text()
    for size in ("16384", "4096", "65536"):
        (top / "buffer_size_kb").write_text(size)
        assert (top / "buffer_size_kb").read_text() == f"{size}\n"
        assert (top / "buffer_total_size_kb").read_text() == f"{size}\n"
        assert (top / "per_cpu/cpu0/buffer_size_kb").read_text() == f"{size}\n"
        assert (top / "trace").read_text() == before
    (top / "per_cpu/cpu0/buffer_size_kb").write_text("2048")
    assert (top / "buffer_size_kb").read_text() == "2048\n"
    mounted.calls(50)
    assert len(shown(top / "trace")) == len(re.findall(r"^[^#\n]*\|  ", before, re.M)) + 50 + 3
    (top / "trace").write_text("")
    assert shown(top / "trace") == []
    mounted.calls(2)
    assert shown(top / "trace") == [
        "  middle() {", "    leaf();", "    leaf();", "    other();", "  }"]


@pytest.mark.parametrize("overwrite", ["1", "0"])
def test_a_full_ring_has_room_again_when_it_is_larger(start, overwrite):
    # as large that all that the larger size is given fits in what the program writes to
    mounted = start("-p", "function_graph", "-b", "8M")
    top = mounted.path
    (top / "options/overwrite").write_text(overwrite)
    (top / "set_ftrace_filter").write_text("leaf")
    mounted.calls(1000000)
    full = settled(top / "stats")
    assert overwrite == "0" or full["entries"] + full["overrun"] in range(2000000, 2000004)
    assert full["entries"] < 1120000
    assert (full["overrun"] > 0) == (overwrite == "1")
    (top / "buffer_size_kb").write_text("32768")
    assert counts(top / "stats")["entries"] == full["entries"]
    for _ in range(40):
        mounted.calls(5000)
    larger = counts(top / "stats")
    assert larger["entries"] == full["entries"] + 400000
    assert larger["overrun"] == full["overrun"]
    assert larger["dropped events"] == full["dropped events"]
    # smaller: the oldest go, and are counted
    (top / "buffer_size_kb").write_text("512")
    smaller = counts(top / "stats")
    assert smaller["entries"] * 8 <= 512 * 1024
    assert smaller["entries"] + smaller["overrun"] == larger["entries"] + larger["overrun"]


def test_a_small_buffer_without_overwriting_counts_what_it_drops(start):
    mounted = start("-p", "function_graph", "-b", "8M", "-l", "leaf")
    top = mounted.path
    (top / "options/overwrite").write_text("0")
    (top / "buffer_size_kb").write_text("256")
    for _ in range(20):
        mounted.calls("t2000")
    found = counts(top / "stats")
    assert found["entries"] * 8 <= 256 * 1024 and found["dropped events"] > 0
    assert found["entries"] + found["overrun"] + found["dropped events"] == 2 * 20 * 4 * 2000
    (top / "trace").write_text("")
    mounted.calls(3)
    assert [line.strip() for line in shown(top / "trace")] == ["leaf();"] * 3


def test_bad_sizes_have_linuxs_errors(start):
    mounted = start()
    top = mounted.path
    before = (top / "buffer_size_kb").read_text()
    for path in ("buffer_size_kb", "per_cpu/cpu0/buffer_size_kb"):
        for bad in ("0", "-1", "abc", "", "1k"):
            if bad:
                assert refused((top / path).write_text, bad) == errno.EINVAL, bad
        assert refused((top / path).write_text, "1000000000000") == errno.ENOMEM
    assert (top / "buffer_size_kb").read_text() == before


def test_an_instance_has_a_size_of_its_own(start):
    mounted = start("-p", "nop", "-b", "8M")
    top = mounted.path
    one = top / "instances" / "one"
    one.mkdir()
    (one / "buffer_size_kb").write_text("128")
    (one / "current_tracer").write_text("function_graph")
    for _ in range(20):
        mounted.calls(2000)
    assert (top / "buffer_size_kb").read_text() == "8192\n"
    found = counts(one / "stats")
    assert found["entries"] * 8 <= 128 * 1024 and found["overrun"] > 0
    assert found["entries"] + found["overrun"] == 20 * 2 * 2002
    (one / "buffer_size_kb").write_text("4096")
    mounted.calls(2000)
    assert counts(one / "stats")["entries"] == found["entries"] + 2 * 2002


def test_records_go_to_instances_after_another_size_too(start):
    mounted = start("-p", "function_graph", "-b", "8M", "-l", "leaf")
    top = mounted.path
    mounted.calls(5)
    (top / "buffer_size_kb").write_text("4096")
    mounted.calls(5)
    one = top / "instances" / "one"
    one.mkdir()
    (one / "set_ftrace_filter").write_text("other")
    (one / "current_tracer").write_text("function")
    mounted.calls(5)
    assert [line.strip() for line in shown(top / "trace")] == ["leaf();"] * 15
    (top / "buffer_size_kb").write_text("2048")
    mounted.calls(5)
    assert [line.strip() for line in shown(top / "trace")] == ["leaf();"] * 20
    assert (one / "trace").read_text().count("other <-") == 2
