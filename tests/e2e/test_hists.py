# SPDX-License-Identifier: MIT
"""Histograms of events, counted in the program: what they say is what the program did."""

import re

import pytest

from watched import FLAGS, SOLD, program, watched  # noqa: F401, fixtures


def test_the_first_histogram_of_the_manual(watched):
    watched.write("hist:keys=count.buckets=2:vals=small:sort=count.descending if count < 5")
    watched.run(10)
    assert (watched.path / SOLD / "hist").read_text() == (
        "# event histogram\n#\n"
        "# trigger info: hist:keys=count.buckets=2:vals=hitcount,small:sort=count.buckets=2.descending:size=2048"
        " if count < 5 [active]\n#\n\n"
        "{ count: ~ 4-5 } hitcount:          1  small:          1\n"
        "{ count: ~ 2-3 } hitcount:          2  small:          2\n"
        "{ count: ~ 0-1 } hitcount:          2  small:          2\n"
        "\nTotals:\n    Hits: 5\n    Entries: 3\n    Dropped: 0\n")
    assert "sold:" not in (watched.path / "trace").read_text()  # nothing went through the ring


def test_it_counts_beside_the_recorded_events_and_when_tracing_is_off(watched):
    watched.write("hist:keys=what,common_pid.execname")
    (watched.path / "set_event").write_text("shop:sold\n")
    watched.run(7)
    assert (watched.path / "trace").read_text().count(" sold: ") == 7
    (watched.path / "tracing_on").write_text("0")
    watched.run(5)
    [(entries, totals)] = watched.hists()
    [key] = entries
    assert re.fullmatch(r"what: loop {46}, common_pid: \S+ *\[ *\d+\]", key) and entries[key] == 12
    assert totals == {"Hits": 12, "Entries": 1, "Dropped": 0}


def test_it_is_cleared_paused_and_removed_while_the_program_counts(watched):
    watched.write("hist:keys=count:size=131072")
    watched.start(60000)
    for _ in range(5):
        watched.write("hist:keys=count:size=131072:clear")
    watched.write("hist:keys=count:size=131072:pause")
    watched.write("hist:keys=count:size=131072:cont")
    watched.done()
    watched.write("hist:keys=count:size=131072:clear")
    watched.run(3)
    assert watched.hists() == [({f"count: {i:10}": 1 for i in range(3)},
                                {"Hits": 3, "Entries": 3, "Dropped": 0})]
    watched.start(60000)
    watched.write("!hist:keys=count")
    watched.done()
    assert watched.hists() == []
    assert (watched.path / SOLD / "trigger").read_text().startswith("# Available triggers:\n")
    assert (watched.path / SOLD / "enable").read_text() == "0\n"


def test_what_has_no_room_in_the_table_is_counted_as_dropped(watched):
    watched.write("hist:keys=count:size=128")
    watched.run(1000)
    watched.run(500)
    [(entries, totals)] = watched.hists()
    assert set(entries.values()) == {2} and len(entries) == 128
    assert totals == {"Hits": 256, "Entries": 128, "Dropped": 1500 - 256}


def test_tables_without_room_are_refused(watched):
    made = 0
    with pytest.raises(OSError) as refused:
        for made in range(64):
            watched.write(f"hist:keys=what,count+{made}:size=131072:name=n{made}")
    assert refused.value.errno == 28 and made > 1  # ENOSPC
    watched.run(10)
    assert [totals["Hits"] for _, totals in watched.hists()] == [10] * made
    with open(watched.path / SOLD / "trigger", "w", encoding="utf-8"):
        pass  # takes them all away
    watched.write("hist:keys=what,count:size=131072")
    watched.run(10)
    assert [totals["Hits"] for _, totals in watched.hists()] == [10]


def test_a_filter_may_be_a_thousand_deep(watched):
    # A trigger's filter has fewer bytes than that of an event.
    watched.write("hist:keys=count if " + "(" * 200 + "count > 4" + ")" * 200)
    (watched.path / SOLD / "filter").write_text("(" * 1000 + "count > 7" + ")" * 1000)
    (watched.path / "set_event").write_text("shop:sold\n")
    watched.run(10)
    assert watched.hists()[0][1]["Hits"] == 5
    assert (watched.path / "trace").read_text().count(" sold: ") == 2


def test_events_share_a_histogram_by_its_name(watched):
    watched.write("hist:keys=common_pid:name=all")
    watched.write("hist:keys=common_pid:name=all", event="events/usdt_own/heard/")
    watched.run(9)
    assert watched.hists() == watched.hists("events/usdt_own/heard/")
    assert watched.hists()[0][1] == {"Hits": 18, "Entries": 1, "Dropped": 0}
    with pytest.raises(OSError):
        watched.write("hist:keys=arg1:name=all", event="events/usdt_own/heard/")
    watched.write("!hist:keys=common_pid:name=all")
    watched.run(1)
    assert watched.hists("events/usdt_own/heard/")[0][1]["Hits"] == 19 and watched.hists() == []


def test_times_are_microseconds_in_order(watched):
    watched.write("hist:keys=common_timestamp.usecs,count:sort=common_timestamp")
    watched.run(20)
    [(entries, _totals)] = watched.hists()
    times = [int(re.search(r"common_timestamp: +(\d+)", key)[1]) for key in entries]
    assert times == sorted(times) and [int(key.split()[-1]) for key in entries] == list(range(20))
    assert times[-1] - times[0] < 60e6


def test_addresses_have_the_names_of_functions(watched):
    with open(watched.path / "dynamic_events", "a", encoding="utf-8") as file:
        file.write(f"p:own/told {watched.process.args[-2]}:tell\n")
    for modifier in ("sym", "sym-offset"):
        watched.write(f"hist:keys=__probe_ip.{modifier}", event="events/own/told/")
    watched.run(4)
    (sym, _), (offset, _) = watched.hists("events/own/told/")
    assert re.fullmatch(r"__probe_ip: \[[0-9a-f]+\] tell", list(sym)[0])
    assert re.fullmatch(r"__probe_ip: \[[0-9a-f]+\] tell\+0x0/0x[0-9a-f]+", list(offset)[0])
    assert list(sym.values()) == list(offset.values()) == [4]


@pytest.mark.parametrize("what, event, made", [
    ("storm", "shop:sold", r"made (\d+)"), ("signals", "shop:sold", r"made (\d+)"),
    ("signals", "shop:rang", r"rang (\d+)")])
def test_threads_and_handlers_lose_nothing(what, event, made, program, graftrace):
    """The program ends by itself; its histogram is printed with the recording."""
    key = "what" if event == "shop:sold" else "signal"
    done = graftrace("record", "-e", event, "--trigger", f"hist:keys={key}", "--trigger", "traceoff:1", "--",
                     program, what)
    total = int(re.search(made, done.stdout)[1])
    text = graftrace("hist").stdout
    assert sum(int(hits) for hits in re.findall(r"hitcount: +(\d+)", text)) == total
    assert f"    Hits: {total}\n" in text and "    Dropped: 0\n" in text


def test_processes_count_in_one_table(compile, graftrace):
    program = compile("hist_forks.c", "-O2", *FLAGS)
    done = graftrace("record", "-e", "shop:made", "--trigger", "hist:keys=number:vals=child:sort=number", "--",
                     program)
    assert done.stdout == "done\n"
    text = graftrace("hist").stdout
    assert re.findall(r"^\{ number: +(\d+) \} hitcount: +(\d+)  child: +(\d+)$", text, re.M) == [
        (str(i), "5", str(sum(range(5)))) for i in range(100)]


def test_a_list_of_bad_texts_is_refused_before_the_program_starts(program, graftrace):
    for bad in ("hist", "hist:", "hist:vals=count", "hist:keys=nosuch", "hist:keys=count.nosuch",
                "hist:keys=count:size=1"):
        done = graftrace("record", "-e", "shop:sold", "--trigger", bad, "--", program, "fields", code=None)
        assert done.returncode != 0 and done.stderr.startswith("graftrace record: ")
        assert "apples" not in done.stdout


def test_system_calls_have_linux_names(watched):
    (watched.path / "set_event").write_text("raw_syscalls:*\n")
    (watched.path / "events/raw_syscalls/enable").write_text("0")  # named, and not recorded
    watched.write("hist:keys=id.syscall:sort=id if id < 300 && id != 1", "events/raw_syscalls/sys_enter")
    watched.write("hist:keys=id.syscall:vals=hitcount", "events/raw_syscalls/sys_exit")
    watched.run(3)
    watched.run(3)
    # hist_trigger_print_key of kernel/trace/trace_events_hist.c: "%s: %-30s[%3llu]"
    [(entries, _)] = watched.hists("events/raw_syscalls/sys_enter")
    assert entries == {"id: sys_read                      [  0]": 2}
    [(entries, _)] = watched.hists("events/raw_syscalls/sys_exit")
    assert entries["id: sys_write                     [  1]"] == 2
