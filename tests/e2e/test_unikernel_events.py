# SPDX-License-Identifier: MIT
"""The unikernel's static events: Linux' names, fields and texts, live and in a recording."""

import re
import subprocess

import pytest

from conftest import BUILD, PATIENCE
from unikernel import Machine, machine
from test_unikernel_record import Recorder
from test_unikernel_trace import ftrace, get, put, visit

GRAFTRACE = BUILD / "cli" / "graftrace"
HASHES = r"block-hasher: hash [0-9a-f]{16}"


def expect(machine, path, value, method="PUT"):
    status, words = put(machine, path, value, method)
    assert status == 204, (path, value, words)


@pytest.fixture
def quiet(machine):
    """The machine with the tracer nop, no event on and nothing in the trace; so it is left, too."""
    def reset():
        for path, value in ("events/enable", "0"), ("current_tracer", "nop"), ("trace", ""):
            expect(machine, path, value)

    reset()
    yield machine
    reset()
    expect(machine, "current_tracer", "function_graph")


# What Linux 6.1 prints of each, as regular expressions.
TEXTS = {
    "sched_switch": r"prev_comm=\S+ prev_pid=\d+ prev_prio=120 prev_state=[RSX] ==> "
                    r"next_comm=\S+ next_pid=\d+ next_prio=120",
    "sched_waking": r"comm=\S+ pid=\d+ prio=120 target_cpu=\d{3}",
    "sched_wakeup": r"comm=\S+ pid=\d+ prio=120 target_cpu=\d{3}",
    "sched_wakeup_new": r"comm=\S+ pid=\d+ prio=120 target_cpu=\d{3}",
    "sched_migrate_task": r"comm=\S+ pid=\d+ prio=120 orig_cpu=\d dest_cpu=\d",
    "sched_process_fork": r"comm=\S+ pid=\d+ child_comm=\S+ child_pid=\d+",
    "sched_process_exit": r"comm=\S+ pid=\d+ prio=120",
    "irq_handler_entry": r"irq=\d+ name=virtio-net",
    "irq_handler_exit": r"irq=\d+ ret=handled",
    "local_timer_entry": r"vector=224",
    "local_timer_exit": r"vector=224",
    "reschedule_entry": r"vector=208",
    "reschedule_exit": r"vector=208",
    "hrtimer_start": r"hrtimer=0x[0-9a-f]{16} function=0x[0-9a-f]{16} expires=\d+ softexpires=\d+ mode=ABS",
    "hrtimer_expire_entry": r"hrtimer=0x[0-9a-f]{16} function=0x[0-9a-f]{16} now=\d+",
    "hrtimer_expire_exit": r"hrtimer=0x[0-9a-f]{16}",
    "hrtimer_cancel": r"hrtimer=0x[0-9a-f]{16}",
    "netif_receive_skb": r"dev=en0 skbaddr=0x[0-9a-f]{16} len=\d+",
    "net_dev_queue": r"dev=en0 skbaddr=0x[0-9a-f]{16} len=\d+",
    "net_dev_xmit": r"dev=en0 skbaddr=0x[0-9a-f]{16} len=\d+ rc=0",
}
LINE = re.compile(r"^ *(.{1,16})-(\d+) +\[(\d+)\] ([d.][N.][hZz.][0-9a-f.]\.) +(\d+\.\d+): (.*)$")


def lines_of(text):
    """(thread, CPU, flags, time, the event's text) of each line; fails where one is something else."""
    found = []
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = LINE.match(line)
        assert match, line
        found.append((int(match[2]), int(match[3]), match[4], float(match[5]), match[6]))
    return found


def test_events_have_linuxs_names_and_texts(quiet):
    available = ftrace(quiet, "available_events").decode().split()
    assert available == sorted(available)
    for system in "block", "irq", "irq_vectors", "lock", "net", "printk", "raw_syscalls", "sched", "syscalls", "timer":
        assert any(name.startswith(f"{system}:") for name in available), system
    for system in "sched", "irq", "irq_vectors", "timer", "net":
        expect(quiet, f"events/{system}/enable", "1")
    visit(quiet, 20)
    expect(quiet, "events/enable", "0")
    seen = set()
    for _, _, flags, _, text in lines_of(ftrace(quiet, "trace").decode()):
        name, _, rest = text.partition(": ")
        if name in TEXTS:
            assert re.fullmatch(TEXTS[name], rest), text
            seen.add(name)
        if name.startswith(("irq_handler", "local_timer")):
            assert flags[2] == "h", text
        if name == "sched_switch":
            assert flags[0] == "d" and flags[2] == ".", text
    assert {"sched_switch", "sched_waking", "sched_wakeup", "irq_handler_entry", "irq_handler_exit", "netif_receive_skb",
            "net_dev_queue", "net_dev_xmit"} <= seen


def test_an_interrupt_is_entered_and_left(quiet):
    expect(quiet, "set_event", "irq:*")
    visit(quiet, 10)
    expect(quiet, "events/enable", "0")
    open_on = {}
    count = 0
    for _, cpu, _, _, text in lines_of(ftrace(quiet, "trace").decode()):
        if text.startswith("irq_handler_entry"):
            open_on.setdefault(cpu, []).append(text.split()[1])
        else:
            assert text.startswith("irq_handler_exit"), text
            assert open_on[cpu].pop() == text.split()[1]
            count += 1
    assert count >= 10


def test_files_of_an_event(quiet):
    def read(path):
        return ftrace(quiet, path).decode()

    assert read("events/enable") == "0\n"
    expect(quiet, "events/sched/sched_switch/enable", "1")
    assert read("events/sched/enable") == "X\n"
    assert read("set_event") == "sched:sched_switch\n"
    expect(quiet, "set_event", "net:*", "POST")
    assert read("events/net/enable") == "1\n"
    expect(quiet, "set_event", "!net:*", "POST")
    assert read("events/net/enable") == "0\n"
    assert put(quiet, "set_event", "nothing:here", "POST")[0] != 204
    assert int(read("events/sched/sched_switch/id")) != int(read("events/sched/sched_wakeup/id"))
    words = read("events/block/block_rq_issue/format")
    fields = re.findall(r"field:(.+?) (\w+);\toffset:(\d+);\tsize:(\d+);\tsigned:([01]);", words)
    assert [field[1] for field in fields][4:] == ["dev", "sector", "nr_sector", "bytes", "rwbs", "comm", "cmd"]
    assert 'print fmt: "%d,%d %s %u (%s) %llu + %u [%s]", ' in words


def test_system_calls_of_the_program(quiet):
    expect(quiet, "set_event", "syscalls:*")
    visit(quiet, 5)
    expect(quiet, "events/enable", "0")
    calls, open_in = [], {}
    for tid, _, _, _, text in lines_of(ftrace(quiet, "trace").decode()):
        entered = re.fullmatch(r"sys_(\w+)\((.*)\)", text)
        left = re.fullmatch(r"sys_(\w+) -> 0x([0-9a-f]+)", text)
        assert entered or left, text
        if entered:
            assert open_in.get(tid) is None, text
            open_in[tid] = entered[1]
        elif tid in open_in:
            assert open_in.pop(tid) == left[1], text
            calls.append(left[1])
    assert calls.count("accept") >= 4, calls
    assert "close" in calls


def test_events_stand_in_the_call_graph(quiet):
    expect(quiet, "current_tracer", "function_graph")
    expect(quiet, "set_event", "net:netif_receive_skb net:net_dev_xmit")
    visit(quiet, 5)
    expect(quiet, "events/enable", "0")
    text = ftrace(quiet, "trace").decode()
    assert re.search(r"^ \d\) +\| +/\* netif_receive_skb: dev=en0 skbaddr=0x[0-9a-f]{16} len=\d+ \*/$", text, re.M)
    assert re.search(r"^ \d\) +\| +/\* net_dev_xmit: dev=en0 .* rc=0 \*/$", text, re.M)


def test_a_recording_has_the_events(quiet, tmp_path):
    data = tmp_path / "trace.data"
    expect(quiet, "set_event", "sched:sched_switch sched:sched_wakeup net:*")
    recorder = Recorder(quiet, data).drains()
    visit(quiet, 10)
    recorder.end()
    shown = subprocess.run([GRAFTRACE, "show", data], capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
    assert re.search(rf": sched_switch: {TEXTS['sched_switch']}$", shown, re.M), shown[:3000]
    assert re.search(rf": netif_receive_skb: {TEXTS['netif_receive_skb']}$", shown, re.M)
    assert re.search(r"\] d\.h\.\. .*: sched_wakeup: comm=net", shown)


def test_requests_of_the_disk_as_blktrace_prints_them():
    """Each request of the program is queued, gets its structure, is inserted, issued and completed."""
    blocks = 64
    with Machine(TARGET="block-hasher", TRACE="ftrace", CPUS=2, LINGER=60,
                 OPTIONS=f"ftrace=blk blocks={blocks} threads=2") as machine:
        machine.wait_for(HASHES)
        text = ftrace(machine, "trace").decode()
        assert ftrace(machine, "current_tracer") == b"blk\n"
        assert ftrace(machine, "available_tracers") == \
            b"blk function_graph preemptirqsoff preemptoff irqsoff function nop\n"
        assert ftrace(machine, "set_event") == b""
    assert text.startswith("# tracer: blk\n#\n")
    steps = {}
    for line in text.splitlines()[2:]:
        match = re.fullmatch(r" *(\S+)-\d+ +\[00[01]\] \S{5} +\d+\.\d{6}: 254,0    ([QGIDC])   R (\d+) \+ (\d+) "
                             r"\[(.+)\]", line)
        assert match, line
        comm, action, sector, count, last = match.groups()
        assert count == "32" and last == ("0" if action == "C" else "main"), line
        assert action == "C" or comm == "main", line
        steps.setdefault(int(sector), []).append(action)
    assert sorted(steps) == [32 * block for block in range(blocks)]
    assert {"".join(actions) for actions in steps.values()} == {"QGIDC"}


def test_the_disks_requests_and_the_programs_calls_on_the_console():
    """OPTIONS=debugsyscalls prints each call and what it returns."""
    with Machine(TARGET="block-hasher", TRACE="ftrace", CPUS=2, OPTIONS="debugsyscalls") as machine:
        assert machine.wait() == 0
        text = machine.output()
    assert re.search(HASHES, text)
    assert re.search(r"^\d+ open: filename 0x[0-9a-f]+, flags 0x0, mode 0x0\n\d+ direct return: 3, "
                     r"rsp 0x[0-9a-f]+$", text, re.M)
    reads = re.findall(r"^(\d+) pread64: fd 0x3, buf 0x[0-9a-f]+, count 0x[0-9a-f]+, pos 0x[0-9a-f]+$", text, re.M)
    assert len(reads) >= 1024 and len(set(reads)) == 4
    assert len(re.findall(r"^\d+ direct return: 16384, rsp 0x", text, re.M)) >= 1000
