# SPDX-License-Identifier: MIT
"""Stock trace-cmd and the events of a mounted program: histograms, instances, its own statistics."""

import re

from conftest import PATIENCE
from test_trace_cmd import begin_recording
from watched import program, watched  # noqa: F401, fixtures


def trace_cmd(watched, *words):
    return watched.graftrace("mount", "--enter", watched.path, "--", "trace-cmd", *words, timeout=PATIENCE).stdout


def record(watched, *options):
    """Records while the program does three turns."""
    process = begin_recording(watched, "events.dat", *options)
    watched.run(3)
    _, said = process.communicate("\n", timeout=PATIENCE)
    assert process.returncode == 0, said


def test_start_with_a_histogram_stat_and_reset(watched):
    trace_cmd(watched, "start", "-e", "shop:sold", "-R", "hist:keys=count.buckets=2:vals=small")
    watched.run(5)
    assert trace_cmd(watched, "show").count(" sold: count=") == 5
    assert re.search(r'^  shop:sold "hist:keys=count.buckets=2:vals=hitcount,small:sort=hitcount:size=2048 \[active\]"$',
                     trace_cmd(watched, "stat"), re.M)
    [(entries, totals)] = watched.hists()
    assert entries == {"count: ~ 0-1": 2, "count: ~ 2-3": 2, "count: ~ 4-5": 1} and totals["Hits"] == 5
    trace_cmd(watched, "reset")
    assert watched.hists() == []
    assert (watched.path / "set_event").read_text() == ""


def test_hist_counts_what_record_has_taken(watched):
    (watched.path / "set_ftrace_filter").write_text("tell")
    record(watched, "-e", "shop:*", "-p", "function_graph")
    shown = trace_cmd(watched, "hist", "-i", "events.dat")
    assert sorted(re.findall(r"^ +%[\d.]+  \(\d+\) \S+ +(\w+) #(\d+)$", shown, re.M)) == [("sold", "3"), ("tell", "3")]
    assert re.search(r"--- \*sold\*\n +tell\n", shown)
    assert re.search(r"%[\d.]+ <all pids> +sold #3\n", trace_cmd(watched, "hist", "-P", "-i", "events.dat"))


def test_calls_that_are_open_stand_behind_each_event(watched):
    (watched.path / "set_ftrace_filter").write_text("tell main")
    record(watched, "-e", "shop:sold", "-p", "function_graph", "-T")
    shown = trace_cmd(watched, "report", "-i", "events.dat")
    assert shown.count(" sold: ") == 3
    assert len(re.findall(r" sold: +count=.*\n.* kernel_stack: +<stack trace ?>\n=> tell \(\w+\)\n", shown)) == 3, shown
    record(watched, "-e", "shop:sold", "-p", "function_graph")
    assert "kernel_stack" not in trace_cmd(watched, "report", "-i", "events.dat")


def test_events_of_an_instance_are_shown_recorded_and_reset(watched):
    trace_cmd(watched, "start", "-B", "one", "-e", "shop:sold")
    watched.run(2)
    assert trace_cmd(watched, "show", "-B", "one").count(" sold: count=") == 2
    assert "sold" not in trace_cmd(watched, "show")
    assert re.search(r"shop\s+sold", trace_cmd(watched, "stat", "-B", "one"))
    assert "sold" not in trace_cmd(watched, "stat")
    trace_cmd(watched, "reset", "-a", "-d")
    record(watched, "-B", "rec", "-e", "shop:sold")
    shown = trace_cmd(watched, "report", "-i", "events.dat")
    assert re.findall(r"^rec: .* sold: +count=(\d)", shown, re.M) == ["0", "1", "2"]
    assert "sold" not in (watched.path / "trace").read_text()


def test_events_that_histograms_make_are_recorded_and_reported(watched):
    watched.append("synthetic_events", "seen int count; char what[16]")
    watched.write("hist:keys=what:onmatch(shop.sold).trace(seen,count,what)")
    assert "synthetic:seen\n" in trace_cmd(watched, "list", "-e")
    record(watched, "-e", "synthetic:seen")
    shown = trace_cmd(watched, "report", "-i", "events.dat")
    assert re.findall(r" seen: +count=(\d), what=loop$", shown, re.M) == ["0", "1", "2"]
