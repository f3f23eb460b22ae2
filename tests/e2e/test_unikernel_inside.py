# SPDX-License-Identifier: MIT
"""Probes inside functions of the unikernel (SYM+OFFS): at each instruction of its code, as objdump reads it."""

import collections
import http.client
import re
import socket
import subprocess

import pytest

from unikernel import Machine, image, machine
from test_unikernel_events import expect, lines_of, quiet
from test_unikernel_probes import check_refused, hits_of, plain, read, texts_of
from test_unikernel_trace import COUNTED, ftrace, put, visit

__all__ = ["machine", "quiet", "plain"]


def code_of(target):
    """Function -> [(offset, bytes, instruction)] of those in the image that can be traced."""
    listing = subprocess.run(["objdump", "-d", "-w", "--section=.text", image(target, TRACE="ftrace")],
                             check=True, capture_output=True, text=True).stdout
    found = {}
    for part in re.split(r"^$", listing, flags=re.M):
        if head := re.match(r"\n*([0-9a-f]{16}) <(\w+)>:\n", part):
            start = int(head[1], 16)
            lines = [(int(at, 16) - start, len(words.split()), text.split("#")[0].strip()) for at, words, text in
                     re.findall(r"^([0-9a-f]{16}):\t((?:[0-9a-f]{2} )+) *\t(.*)$", part, re.M)]
            if [text for *_, text in lines[:5]] == 5 * ["nop"]:  # room for a jump, by gcc: it can be traced
                lines[:5] = [(0, 5, "nop")]
            if lines and lines[0][1] == 5 and lines[0][2].startswith("nop"):
                while len(lines) > 1 and re.match(r"nop|data16|cs nop|xchg +%ax,%ax", lines[-1][2]):  # padding
                    lines.pop()
                found[head[2]] = lines
    return found


@pytest.fixture(scope="module")
def code():
    return code_of("webserver")


def set_at(machine, function, offset):
    """The status of setting a probe there, and what was said."""
    return put(machine, "kprobe_events", f"p:at_{offset} {function}+{offset}", "POST")


def set_at_each(machine, places):
    """(status, what was said) of setting a probe at each of these (function, offset): all over one connection."""
    asker = http.client.HTTPConnection("localhost")
    with machine.connect(machine.trace_port) as asker.sock:
        asker.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # head and body are sent one by one
        for function, offset in places:
            asker.request("POST", "/ftrace/kprobe_events", f"p:at_{offset} {function}+{offset}")
            answer = asker.getresponse()
            yield answer.status, answer.read().decode()


def is_left_alone(text):
    return re.match(r"sti|hlt|ud2|int3", text) is not None


# They run while places change, on a thread that is paused meanwhile.
PATCHING = ["paging_map", "smp_stopped"]


@pytest.mark.parametrize("function", ["serve", "read", "strlen", "tcp_output", "tcpip_thread", "ip4_input", "memcpy",
                                      "schedule", "apic_timer_arm", *PATCHING])
@pytest.mark.parametrize("tracer", ["nop", "function_graph"])
def test_each_instruction_of_a_function_has_a_probe(plain, code, function, tracer):
    is_taken = {}
    places = code[function][1:]
    set_there = set_at_each(plain, [(function, offset) for offset, *_ in places])
    for (offset, _, text), (status, words) in zip(places, set_there, strict=True):
        is_taken[offset] = status == 204
        assert is_taken[offset] or is_left_alone(text) or "a static event is there" in words, (offset, text, words)
    assert sum(is_taken.values()) > 0.8 * len(is_taken)
    expect(plain, "kprobe_events", f"p:at_0 {function}\nr:back {function}", "POST")
    expect(plain, "current_tracer", tracer)
    expect(plain, "events/kprobes/enable", "1")
    visit(plain, 20)
    expect(plain, "events/kprobes/enable", "0")
    hits = hits_of(plain)
    visit(plain, 5)
    expect(plain, "current_tracer", "nop")
    assert hits_of(plain) == hits and "***" not in plain.output()
    assert all(missed == 0 for _, missed in hits.values()), hits
    straight = []  # up to where it may go elsewhere each is met as often as the entry, but for calls that are under way
    for offset, _, text in code[function]:
        if is_taken.get(offset):
            straight.append(hits[f"at_{offset}"][0])
        if re.match(r"j|call|ret|rep", text):
            break
    assert straight and (hits["at_0"][0] > 0) == (function not in ["tcpip_thread", *PATCHING])
    assert all(abs(count - hits["at_0"][0]) <= 3 for count in straight), (hits["at_0"], straight)


@pytest.mark.parametrize("function", ["serve", "memcpy", "schedule", "paging_map"])
def test_only_where_instructions_begin(plain, code, function):
    begin = {offset for offset, *_ in code[function]}
    end = code[function][-1][0] + code[function][-1][1]
    between = [offset for offset in range(1, end) if offset not in begin]
    set_there = set_at_each(plain, [(function, offset) for offset in between])
    for offset, (status, words) in zip(between, set_there, strict=True):
        assert status != 204 and words.strip() == "Probe point is not an instruction boundary", offset
    log = re.findall(r"trace_kprobe: error: (.*)\n  Command: p:at_\d+ (\S+)\n( +)\^", read(plain, "error_log"))
    assert log and {text for text, *_ in log} == {"Probe point is not an instruction boundary"}
    assert set_at(plain, function, end)[1].strip() == "Invalid probed address or symbol"


@pytest.mark.parametrize("line, error, at", [
    ("p:x {f}+1", "Probe point is not an instruction boundary", "{f}+1"),
    ("p:x {f}+5 $arg1", "Invalid $-variable specified", "$arg1"),
    ("p:x {f}+5 $retval", "$retval is not available on probe", "$retval"),
    ("r:x {f}+5", "Retprobe address must be an function entry", "{f}+5"),
    ("p:x {f}+99999", "Invalid probed address or symbol", "{f}+99999"),
    ("p:there {f}+5 %si", "Argument type or name is different from existing probe", "%si"),
    ("p:there {f}+5", "There is already the exact same probe event", "p:"),
    ("r:there {f}", "Probe type is different from existing probe", "r:"),
])
def test_errors_are_linuxs(plain, line, error, at):
    check_refused(plain, "p:there strlen+5", line.format(f="strlen"), error, at.format(f="strlen"))


def test_what_must_stay_at_its_place_is_refused_in_words(plain, code):
    found = collections.Counter()
    for function, lines in code.items():
        for offset, _, text in lines:
            if is_left_alone(text) and found[text] < 3 and function != "handle":  # there are several of that name
                found[text] += 1
                status, words = set_at(plain, function, offset)
                assert status != 204
                assert words.startswith("Failed to register probe event: its instruction "), (function, offset, words)
    assert found["sti"] and found["hlt"] and found["ud2"]
    assert read(plain, "kprobe_events") == ""


def test_the_place_has_its_registers_and_its_name(plain, code):
    """Behind the first instruction all is as at the entry, but for the stack."""
    _, (offset, size, text), *_ = code["tcp_output"]
    assert offset == 5 and text.startswith("push")
    expect(plain, "kprobe_events", "p:entry tcp_output pcb=+0(%di):x64 di=%di sp=$stack\n"
                                   f"p:inside tcp_output+{5 + size} pcb=+0(%di):x64 di=%di sp=$stack\n"
                                   "r:done tcp_output n=$retval")
    assert f"p:kprobes/inside tcp_output+{5 + size} " in read(plain, "kprobe_events")
    expect(plain, "set_ftrace_filter", "tcp_output")
    expect(plain, "current_tracer", "function_graph")
    expect(plain, "events/kprobes/enable", "1")
    visit(plain, 10)
    expect(plain, "events/kprobes/enable", "0")
    text = read(plain, "trace")
    expect(plain, "current_tracer", "nop")
    expect(plain, "set_ftrace_filter", "")
    shown = re.findall(r"/\* (entry|inside): \(tcp_output\+0x(\w+)/0x\w+\) (.* )sp=0x(\w+) \*/", text)
    hits = hits_of(plain)
    assert len(shown) >= 20 and len(set(hits.values())) == 1 and hits["entry"] == (len(shown) // 2, 0)
    for entry, inside in zip(shown[::2], shown[1::2]):
        assert (entry[0], entry[1], inside[0], inside[1]) == ("entry", "0", "inside", f"{5 + size:x}")
        assert entry[2] == inside[2] and int(inside[3], 16) == int(entry[3], 16) - 8


def test_an_address_is_a_place_too_and_several_probes_have_it(plain):
    expect(plain, "kprobe_events", "p:entry strlen")
    expect(plain, "events/kprobes/enable", "1")
    visit(plain, 1)
    expect(plain, "events/kprobes/enable", "0")
    expect(plain, "kprobe_events", "p:entry strlen at=%ip:x64")
    expect(plain, "events/kprobes/enable", "1")
    visit(plain, 1)
    expect(plain, "events/kprobes/enable", "0")
    address = int(re.search(r"at=(0x\w+)", read(plain, "trace"))[1], 16)
    expect(plain, "trace", "")
    expect(plain, "kprobe_events", f"p 0x{address + 5:x} at=%ip:x64\np:same strlen+5\np:again strlen+5 who=$comm")
    assert read(plain, "kprobe_events").startswith(f"p:kprobes/p_0x{address + 5:x} 0x{address + 5:x} at=%ip:x64\n")
    assert "Invalid $-variable" in put(plain, "kprobe_events", f"p 0x{address:x} $arg1", "POST")[1]
    expect(plain, "events/kprobes/enable", "1")
    visit(plain, 5)
    expect(plain, "events/kprobes/enable", "0")
    assert len(set(hits_of(plain).values())) == 1
    assert {text for _, text in texts_of(plain, f"p_0x{address + 5:x}")} == {
        f"(strlen+0x5/0x{size}) at=0x{address + 5:x}"
        for size in re.findall(r"strlen\+0x5/0x(\w+)\)", read(plain, "trace"))[:1]}


def test_what_is_recorded_cannot_be_removed(plain):
    expect(plain, "kprobe_events", "p:busy strlen+5\np:free strlen+5")
    expect(plain, "events/kprobes/busy/enable", "1")
    assert put(plain, "kprobe_events", "-:busy", "POST")[0] == put(plain, "kprobe_events", "")[0] == 409
    expect(plain, "kprobe_events", "-:free", "POST")
    expect(plain, "events/kprobes/busy/enable", "0")
    expect(plain, "kprobe_events", "-:busy", "POST")


def test_filters_triggers_and_histograms(plain):
    expect(plain, "kprobe_events", "p:in strlen+5 first=+0(%di):u8")
    expect(plain, "events/kprobes/in/trigger", "hist:keys=first")
    expect(plain, "events/kprobes/enable", "1")
    visit(plain, 10)
    [wanted] = collections.Counter(text.rpartition("=")[2] for _, text in texts_of(plain, "in")).most_common(1)
    expect(plain, "events/kprobes/in/filter", f"first == {wanted[0]}")
    expect(plain, "trace", "")
    visit(plain, 10)
    expect(plain, "events/kprobes/enable", "0")
    hist = read(plain, "events/kprobes/in/hist")
    expect(plain, "events/kprobes/in/trigger", "!hist:keys=first", "POST")
    assert {text.rpartition("=")[2] for _, text in texts_of(plain, "in")} == {wanted[0]}
    assert re.search(rf"\{{ first: +{wanted[0]} \}}", hist)
    assert int(re.search(r"Hits: (\d+)", hist)[1]) <= hits_of(plain)["in"][0]


# CPUs and arguments of QEMU.
MACHINES = [(8, ""), (2, "-singlestep")]
PLACES = "p:nmi,stress_nmi+5;p:below,stress_below_nmi+5;p:lock,stress_lock+5"


@pytest.mark.parametrize("cpus, arguments", MACHINES)
def test_none_is_lost_in_handlers_of_nmis(cpus, arguments):
    with Machine(TARGET="stress", TRACE="ftrace", CPUS=cpus, LINGER=60, QEMU_ARGS=arguments, BUFFER=128 << 20, MEMORY="512M",
                 OPTIONS=f"nmi=1 ftrace=nop kprobe_event={PLACES}") as machine:
        machine.wait_for("stress: all is well", timeout=120)
        machine.wait_for("can be fetched")
        counted = " ".join(COUNTED.findall(machine.output())).split()
        counted = dict(zip(counted[::2], map(int, counted[1::2])))
        hits = hits_of(machine)
        assert "***" not in machine.output()
    assert {name: sum(hits[name]) for name in hits} == {
        "nmi": counted["stress_nmi"], "below": counted["stress_below_nmi"], "lock": counted["stress_lock"]}
    assert hits["lock"][1] == 0


@pytest.mark.parametrize("cpus, arguments", MACHINES)
def test_places_are_taken_and_left_while_they_are_met(cpus, arguments):
    names = ["stress_lock", "stress_nmi", "stress_below_nmi", "stress_recurse", "pthread_mutex_lock"]
    lines = "".join(f"p:{name} {name}+5 top=$stack0:x64\np:e_{name} {name}\nr:r_{name} {name}\n" for name in names)
    with Machine(TARGET="stress", TRACE="ftrace", CPUS=cpus, LINGER=60, QEMU_ARGS=arguments,
                 OPTIONS="nmi=1 endless=1 depth=4") as machine:
        machine.wait_for("stress: until somebody connects")
        expect(machine, "set_ftrace_filter", "stress_* pthread_mutex_lock")
        for tracer in ["nop", "function_graph"] * 2:
            expect(machine, "current_tracer", tracer)
            expect(machine, "kprobe_events", lines)
            for name in [*names, *names]:
                expect(machine, f"events/kprobes/{name}/enable", "1")
                expect(machine, "events/kprobes/enable", "1")
                expect(machine, f"events/kprobes/{name}/enable", "0")
                expect(machine, "trace", "")
            assert all(hits[0] for hits in hits_of(machine).values())
            expect(machine, "events/kprobes/enable", "0")
            expect(machine, "kprobe_events", "")
        with machine.connect():
            machine.wait_for("stress: all is well", timeout=120)
        assert "***" not in machine.output()


def test_a_fault_of_a_moved_instruction_is_told_of_its_place():
    [offset] = [offset for offset, _, text in code_of("faults")["fault_null"] if text.startswith("movl   $0x1,(%r")]
    with Machine(TARGET="faults", TRACE="ftrace", LINGER=0,
                 OPTIONS=f"fault=null kprobe_event=p:x,fault_null+{offset}") as machine:
        machine.wait_for(rf"call stack:\n +[0-9a-f]+ fault_null\+0x{offset:x}\n +[0-9a-f]+ main\+")
