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


# Variables, actions and synthetic events

HEARD = "events/usdt_own/heard/"


def test_the_time_between_two_events_becomes_an_event(watched):
    """As Linux' documentation makes wakeup latencies."""
    watched.append("synthetic_events", "latency u64 lat; int count; char what[16]")
    watched.write("hist:keys=common_pid:ts0=common_timestamp.usecs,c=count,w=what if count > 0")
    watched.write("hist:keys=common_pid:lat=common_timestamp.usecs-$ts0:"
                  "onmatch(shop.sold).trace(latency,$lat,$c,$w):onmax($lat).save(arg1)", HEARD)
    watched.write("hist:keys=count,lat.log2:vals=lat:sort=count", "events/synthetic/latency")
    watched.run(2)
    assert "latency" not in (watched.path / "trace").read_text()  # it is counted, and not recorded
    assert watched.hists("events/synthetic/latency")[0][1]["Hits"] == 1
    (watched.path / "set_event").write_text("synthetic:latency\n")
    (watched.path / "events/synthetic/latency/filter").write_text("count != 3")
    watched.run(6)
    made = re.findall(r" latency: lat=(\d+) count=(\d+) what=loop$", (watched.path / "trace").read_text(), re.M)
    assert [count for _, count in made] == ["1", "2", "4", "5"]
    text = (watched.path / HEARD / "hist").read_text()
    longest, value = re.search(r"hitcount: +6\n\tmax: +(\d+)  arg1: +(\d+)$", text, re.M).groups()
    assert int(longest) >= max(int(lat) for lat, _ in made) and 1 <= int(value) <= 5
    assert "synthetic:latency\n" in (watched.path / "available_events").read_text()
    watched.append("set_event", "!synthetic:latency")
    watched.run(6)
    assert (watched.path / "trace").read_text().count(" latency: ") == 4
    for text, name in (("!latency", "synthetic_events"),
                       ("!hist:keys=common_pid:ts0=common_timestamp.usecs,c=count,w=what if count > 0",
                        SOLD + "trigger")):
        with pytest.raises(OSError) as refused:
            watched.append(name, text)
        assert refused.value.errno == 16  # EBUSY
    for event in ("events/synthetic/latency", HEARD, SOLD):
        (watched.path / event / "trigger").write_text("")
    watched.append("synthetic_events", "!latency")
    assert not (watched.path / "events/synthetic/latency").exists()
    watched.run(3)


def test_a_synthetic_event_of_a_recording(graftrace, program, tmp_path):  # noqa: F811
    graftrace("record", "--synthetic", "seen int count; char what[16]", "-e", "synthetic:seen",
              "--trigger", "hist:keys=count", "-e", "shop:sold",
              "--trigger", "hist:keys=count:w=what:onmatch(shop.sold).seen(count,$w) if count > 0", "--", program,
              "fields")
    shown = graftrace("show").stdout
    assert re.findall(r" seen: count=(\d+) what=(\S+)$", shown, re.M) == [
        ("1", "apples"), ("3", "(fault)"), ("4", "0123456789" * 6 + "012")], shown
    assert len(re.findall(" sold: ", shown)) == 4
    assert "    Hits: 3\n" in graftrace("hist", "-e", "synthetic:seen").stdout
    for bad, place in (("seen nosuch x", "nosuch x"), ("seen", "seen")):
        done = graftrace("record", "--synthetic", bad, "--", program, "fields", code=None)
        assert done.returncode != 0 and place in done.stderr, done.stderr


def test_a_synthetic_event_is_defined_among_the_dynamic_ones(watched):
    watched.append("dynamic_events", "s:seen int count")
    watched.append("dynamic_events", "s:synthetic/also u64 a; u64 b")
    assert (watched.path / "dynamic_events").read_text() == "s:synthetic/seen\tint count\ns:synthetic/also\tu64 a; u64 b\n"
    assert (watched.path / "synthetic_events").read_text() == "seen\tint count\nalso\tu64 a; u64 b\n"
    assert (watched.path / "uprobe_events").read_text() == ""
    watched.write("hist:keys=count:onmatch(shop.sold).seen(count)")
    watched.write("hist:keys=count", "events/synthetic/seen")
    watched.run(4)
    assert watched.hists("events/synthetic/seen")[0][1]["Hits"] == 4
    with pytest.raises(OSError) as refused:
        watched.append("dynamic_events", "-:seen")
    assert refused.value.errno == 16  # EBUSY
    for event in ("events/synthetic/seen", SOLD):
        (watched.path / event / "trigger").write_text("")
    watched.append("dynamic_events", "-:seen")
    watched.append("dynamic_events", "-:synthetic/also")
    assert (watched.path / "synthetic_events").read_text() == ""


def test_an_instance_gets_events_that_histograms_make(watched):
    (watched.path / "instances/one").mkdir()
    watched.append("synthetic_events", "seen int count")
    watched.write("hist:keys=what:onmatch(shop.sold).seen(count)")
    (watched.path / "instances/one/set_event").write_text("synthetic:seen\n")
    watched.run(3)
    trace = (watched.path / "instances/one/trace").read_text()
    assert re.findall(r" seen: count=(\d+)$", trace, re.M) == ["0", "1", "2"]
    assert " seen: " not in (watched.path / "trace").read_text()


def test_events_that_make_each_other_come_to_an_end(watched):
    for name in ("tick", "tock"):
        watched.append("synthetic_events", f"{name} int count")
    watched.write("hist:keys=what:onmatch(shop.sold).tick(count)")
    watched.write("hist:keys=count:onmatch(synthetic.tick).tock(count)", "events/synthetic/tick")
    watched.write("hist:keys=count:onmatch(synthetic.tock).tick(count)", "events/synthetic/tock")
    watched.run(5)
    assert [watched.hists(f"events/synthetic/{name}")[0][1]["Hits"] for name in ("tick", "tock")] == [10, 5]


def test_a_chain_of_events_ends_where_a_small_alternate_stack_does(watched):
    before = "shop.sold"
    for name in ("one", "two", "three", "four"):
        watched.append("synthetic_events", f"{name} int count")
        watched.write(f"hist:keys=count:onmatch({before}).{name}(count)", f"events/{before.replace('.', '/')}")
        before = f"synthetic.{name}"
    watched.run(1)
    assert [watched.hists(f"events/synthetic/{name}")[0][1]["Hits"] for name in ("one", "two", "three")] == [1, 1, 1]
    watched.process.stdin.write("alternate\n")
    watched.process.stdin.flush()
    assert watched.process.stdout.readline() == "small: kept\n"


@pytest.mark.parametrize("what, made", [("threads", r"made (\d+)"), ("signals", r"made (\d+) rang")])
def test_each_variable_that_is_set_is_read_once(what, made, watched):
    """By the thread that has set it, or by a handler that comes before."""
    watched.append("synthetic_events", "seen int difference")
    watched.write("hist:keys=common_pid:c=count")
    watched.write("hist:keys=common_pid:difference=count-$c:onmatch(shop.sold).trace(seen,$difference)")
    watched.write("hist:keys=common_pid:d=signal-shop.sold.$c:size=4096", "events/shop/rang")
    watched.write("hist:keys=difference", "events/synthetic/seen")
    watched.process.stdin.write(what + "\n")
    watched.process.stdin.flush()
    total = int(re.search(made, watched.process.stdout.readline())[1])
    stolen = watched.hists("events/shop/rang")[0][1]["Hits"]
    [(entries, totals)] = watched.hists("events/synthetic/seen")
    assert totals["Hits"] + stolen == total and (what == "signals" or stolen == 0)
    assert list(entries) == ["difference:          0"]
    assert sum(totals["Hits"] for _, totals in watched.hists()) == 2 * total - stolen


def test_calls_that_are_open_are_a_key(watched):
    with open(watched.path / "dynamic_events", "a", encoding="utf-8") as file:
        file.write(f"p:own/told {watched.process.args[-2]}:tell\n")
    (watched.path / "current_tracer").write_text("function_graph\n")
    watched.write("hist:keys=stacktrace,common_cpu.log2:vals=__probe_ip.hex", event="events/own/told")
    watched.run(4)
    text = (watched.path / "events/own/told/hist").read_text()
    assert re.search(r"^\{ stacktrace:\n {9}tell\n(?: {9}\S+\n)*, common_cpu: ~ 2\^\d+ *\} hitcount: +", text,
                     re.M)
    assert watched.hists("events/own/told")[0][1]["Hits"] == 4


def test_how_long_a_function_takes_is_a_histogram(watched):
    """By a probe at its entry and one at its return, as between any two events."""
    for probe in "p:own/called", "r:own/returned":
        watched.append("dynamic_events", f"{probe} {watched.process.args[-2]}:tell")
    watched.append("synthetic_events", "tell_ns u64 ns")
    watched.write("hist:keys=common_pid:t=common_timestamp", "events/own/called")
    watched.write("hist:keys=common_pid:ns=common_timestamp-$t:onmatch(own.called).tell_ns($ns)", "events/own/returned")
    watched.write("hist:keys=ns.log2:sort=ns", "events/synthetic/tell_ns")
    watched.run(5)
    entries, totals = watched.hists("events/synthetic/tell_ns")[0]
    assert totals["Hits"] == 5 and totals["Dropped"] == 0
    assert all(re.fullmatch(r"ns: ~ 2\^\d+ *", key) for key in entries), entries


def test_a_snapshot_is_taken_of_the_largest(watched):
    (watched.path / "set_event").write_text("shop:sold\n")
    watched.write("hist:keys=what:c=count:onmax($c).snapshot() if count < 4")
    watched.run(9)
    assert "triggering value { onmax($c) }:          3\ttriggered by event with key: { what: loop" in \
        (watched.path / SOLD / "hist").read_text()
    # Each of the three takes what has come since the one before.
    assert re.findall(r" sold: count=(\d+)", (watched.path / "snapshot").read_text()) == ["3"]
    assert re.findall(r" sold: count=(\d+)", (watched.path / "trace").read_text()) == ["4", "5", "6", "7", "8"]


def test_a_field_of_the_matched_event_comes_by_a_variable_of_its_own(watched):
    """As Linux makes it: a histogram with the same keys and the same filter, which goes with the other."""
    first = "hist:keys=common_pid:ts0=common_timestamp if count != 1"
    second = "hist:keys=common_pid:lat=common_timestamp-$ts0:onmatch(shop.sold).trace(seen,count,arg1)"
    watched.append("synthetic_events", "seen int count; s64 value")
    watched.write(first)
    for bad in ("price", "nosuch"):
        with pytest.raises(OSError):
            watched.write(second.replace("count,", f"{bad},"), HEARD)
    with pytest.raises(OSError):
        watched.write(second.replace("keys=common_pid", "keys=common_pid,common_cpu"), HEARD)
    watched.write(second, HEARD)
    assert (watched.path / SOLD / "trigger").read_text().splitlines()[1] == (
        "hist:keys=common_pid:vals=hitcount:synthetic_count=count:sort=hitcount:size=2048 if count != 1 [active]")
    watched.write("hist:keys=count,value:sort=count", "events/synthetic/seen")
    watched.run(4)
    assert list(watched.hists("events/synthetic/seen")[0][0]) == [f"count: {i:10}, value: {i:10}" for i in (0, 2, 3)]
    watched.write("!" + second, HEARD)
    assert len((watched.path / SOLD / "trigger").read_text().splitlines()) == 1
    watched.write("!" + first)
    watched.run(1)
