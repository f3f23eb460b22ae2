# SPDX-License-Identifier: MIT
"""Dynamic probes of the unikernel: what Linux' documentation of them does (Documentation/trace/kprobetrace.rst), typed into
the kernel's own control files, and what does it no good."""

import collections
import re
import subprocess

import pytest

from conftest import PATIENCE
from unikernel import Machine, machine
from test_unikernel_events import expect, lines_of, quiet
from test_unikernel_record import GRAFTRACE, Recorder
from test_unikernel_trace import ftrace, put, visit

__all__ = ["machine", "quiet"]


def read(machine, path):
    return ftrace(machine, path).decode()


def texts_of(machine, name):
    """What each line of that event says behind its name, with its thread."""
    return [(thread, text[len(name) + 2:]) for thread, *_, text in lines_of(read(machine, "trace"))
            if text.startswith(f"{name}: ")]


def hits_of(machine):
    return {name: (int(hits), int(missed)) for name, hits, missed in
            (line.split() for line in read(machine, "kprobe_profile").splitlines())}


@pytest.fixture
def plain(quiet):
    """No probe, before and after."""
    def reset():
        expect(quiet, "events/enable", "0")
        expect(quiet, "tracing_on", "1")
        expect(quiet, "kprobe_events", "")

    reset()
    yield quiet
    reset()


def check_refused(machine, there, line, error, at):
    """Beside the probe that is there, the line is refused with the error; in the log, too, with the caret where `at` begins."""
    expect(machine, "kprobe_events", there, "POST")
    expect(machine, "error_log", "")
    status, words = put(machine, "kprobe_events", line, "POST")
    assert status != 204 and error in words
    log = re.search(r"trace_kprobe: error: (.*)\n  Command: (.*)\n(.*)\^\n", read(machine, "error_log"))
    assert log and log[1] == error and log[2] == line, read(machine, "error_log")
    assert line[len(log[3]) - len("  Command: "):].startswith(at)
    assert read(machine, "kprobe_events") == there.replace("p:", "p:kprobes/") + "\n"


def test_the_files_of_a_probe_are_linuxs(plain):
    expect(plain, "kprobe_events", "p:entry read fd=$arg1:s32 bytes=%dx")
    expect(plain, "kprobe_events", "r4:shop/back read $retval", "POST")
    expect(plain, "kprobe_events", "p strlen+0 text=+0($arg1):string", "POST")
    assert read(plain, "kprobe_events") == ("p:kprobes/entry read fd=$arg1:s32 bytes=%dx\n"
                                            "r4:shop/back read arg1=$retval\n"
                                            "p:kprobes/p_strlen_0 strlen text=+0($arg1):string\n")
    assert read(plain, "dynamic_events") == read(plain, "kprobe_events")
    available = read(plain, "available_events").split()
    assert {"kprobes:entry", "shop:back", "kprobes:p_strlen_0"} < set(available)
    number = int(read(plain, "events/kprobes/entry/id"))
    assert read(plain, "events/kprobes/entry/format") == (
        f"name: entry\nID: {number}\nformat:\n"
        "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
        "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
        "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
        "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
        "\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n"
        "\tfield:s32 fd;\toffset:16;\tsize:4;\tsigned:1;\n"
        "\tfield:u64 bytes;\toffset:24;\tsize:8;\tsigned:0;\n\n"
        'print fmt: "(%lx) fd=%d bytes=0x%llx", REC->__probe_ip, REC->fd, REC->bytes\n')
    expect(plain, "kprobe_events", "-:shop/back", "POST")
    assert "shop:back" not in read(plain, "available_events")
    assert put(plain, "events/shop/back/enable", "1")[0] == 404
    expect(plain, "kprobe_events", "r:shop/back read $retval", "POST")
    assert read(plain, "events/shop/back/enable") == read(plain, "events/shop/enable") == "0\n"


def test_a_probe_sees_the_calls_that_are_traced(plain):
    expect(plain, "kprobe_events", "p:entry read\nr:back read ret=$retval:s64\np:from read caller=$stack0:symbol")
    expect(plain, "set_ftrace_filter", "read serve")
    expect(plain, "current_tracer", "function_graph")
    expect(plain, "events/kprobes/enable", "1")
    visit(plain, 20)
    expect(plain, "events/kprobes/enable", "0")
    text = read(plain, "trace")
    calls = len(re.findall(r"\| +read\(\);| read\(\) \{", text))
    backs = re.findall(r"/\* back: \((\w+)\+0x[0-9a-f]+/0x[0-9a-f]+ <- read\) ret=(-?\d+) \*/", text)
    sources = re.findall(r"/\* from: \(read\+0x0/0x[0-9a-f]+\) caller=(\w+)\+0x[0-9a-f]+/0x[0-9a-f]+ \*/", text)
    entries = re.findall(r"/\* entry: \(read\+0x0/0x[0-9a-f]+\) \*/", text)
    expect(plain, "set_ftrace_filter", "")
    assert calls >= 20 and len(entries) == len(backs) == len(sources) == calls
    assert {name for name, _ in backs} == set(sources) and min(int(size) for _, size in backs) > 0
    assert hits_of(plain) == {"entry": (calls, 0), "back": (calls, 0), "from": (calls, 0)}


def test_arguments_and_results_belong_together(plain):
    expect(plain, "kprobe_events", "p:text strlen s=+0($arg1):string who=$comm first=+0(%di):char all=+0(%di):u8[4]\n"
                                   "r:bytes strlen n=$retval:u64")
    expect(plain, "events/kprobes/enable", "1")
    visit(plain, 10)
    expect(plain, "events/kprobes/enable", "0")
    open_calls = collections.defaultdict(list)
    seen = 0
    for thread, *_, text in lines_of(read(plain, "trace")):
        if text.startswith("text: "):
            match = re.match(r'text: \(strlen\+0x0/0x[0-9a-f]+\) s="(.*)" who="([^"]*)" first=\'(.)\' '
                             r"all=\{(\d+),\d+,\d+,\d+\}$", text)
            assert match, text
            if match[1]:
                assert match[1][0] == match[3] and ord(match[1][0]) in (int(match[4]), ord("?"))
            open_calls[thread].append(match[1])
        elif text.startswith("bytes: "):
            string = open_calls[thread].pop()
            size = int(re.search(r" n=(\d+)$", text)[1])
            assert min(size, 63) == len(string)
            seen += 1
    assert seen >= 10


JUMPS = {"strlen": "strnlen", "memp_free": "do_memp_free_pool", "mem_free": "free", "lwip_write": "lwip_send",
         "tcp_recved": "tcp_output"}  # by their last instruction


@pytest.mark.parametrize("traced", ["from", "to", "both"])
@pytest.mark.parametrize("probed", ["to", "both"])
def test_a_traced_function_goes_on_as_one_whose_return_is_probed(plain, traced, probed):
    def those(which):
        return {"from": list(JUMPS), "to": list(JUMPS.values()), "both": [*JUMPS, *JUMPS.values()]}[which]

    expect(plain, "kprobe_events", "".join(f"p:p_{name} {name}\nr:r_{name} {name}\n" for name in those(probed)))
    expect(plain, "set_ftrace_filter", " ".join(those(traced)))
    expect(plain, "current_tracer", "function_graph")
    expect(plain, "events/kprobes/enable", "1")
    visit(plain, 20)
    expect(plain, "events/kprobes/enable", "0")
    text = read(plain, "trace")
    expect(plain, "current_tracer", "nop")
    expect(plain, "set_ftrace_filter", "")
    for name in those(probed):
        callers = re.findall(rf"/\* r_{name}: \(([^+ ]+)\S* <- {name}\) \*/", text)
        begun = len(re.findall(rf"/\* p_{name}: \({name}\+", text))
        assert begun >= 10 and abs(len(callers) - begun) <= 1, (name, begun, len(callers))
        assert not {"gt_arch_probe_return", *JUMPS} & set(callers), callers
    assert "***" not in plain.output()


# e: more than all stacks have; below this one is another thread's
FAULTS = ("a=@0:x64", "b=@0xffffffffffffffff:x64", "c=@0x8000000000000000", "d=+0(+0($stack0))", "e=-0x900000000($stack)",
          "f=@0x1000:string", "g=+0(@0xffffffff80200000)", "h=@nothing_of_that_name", "i=@0xfffffffffffffff9:x64[2]",
          "j=+0(\\1):ustring", "k=@0x7fffffffffff:x16")


def test_what_cannot_be_read_is_said_to_be_so(plain):
    for index, argument in enumerate(FAULTS):
        expect(plain, "kprobe_events", f"p:f{index} serve {argument}", "POST")
        expect(plain, "kprobe_events", f"r:r{index} serve {argument.replace('$stack0', '@0')}", "POST")
    expect(plain, "events/kprobes/enable", "1")
    visit(plain, 3)
    expect(plain, "events/kprobes/enable", "0")
    found = collections.Counter(re.sub(r".* (\w=.*)", r"\1", text)
                                for *_, text in lines_of(read(plain, "trace")))
    for argument in FAULTS:
        assert found[f"{argument[0]}=(fault)"] >= 6 or argument[0] in "dg", (argument, found)
    assert not [text for text in found if "(fault)" not in text and text[0] not in "dg"]
    visit(plain, 1)  # the kernel goes on


@pytest.mark.parametrize("line, error, at", [
    ("p:x nosuch", "Invalid probed address or symbol", "nosuch"),
    ("p:x 0x10", "Invalid probed address or symbol", "0x10"),
    ("p:x read+0x100000", "Invalid probed address or symbol", "read"),
    ("r:x read+4", "Retprobe address must be an function entry", "read+4"),
    ("p:x read $argh", "Invalid $-variable specified", "$argh"),
    ("p:x read %nowhere", "Invalid register name", "%nowhere"),
    ("p:x read $retval", "$retval is not available on probe", "$retval"),
    ("p4:x read", "Maxactive is only for function exit", "4:x"),
    ("r99999:x read", "Maxactive is too big", "99999"),
    ("p:9x read", "Event name must follow the same rules as C identifiers", "9x"),
    ("p:x /bin/ls:0x10", "Invalid probed address or symbol", "/bin"),
    ("p:x read a=%di:u7", "Unknown type is specified", "u7"),
    ("p:sched/sched_switch read", "Given group/event name is already used by another event", "p:"),
    ("p:there read", "There is already the exact same probe event", "p:"),
    ("r:there read", "Probe type is different from existing probe", "r:"),
    ("p:there serve %di", "Argument type or name is different from existing probe", "%di"),
])
def test_errors_stand_in_the_log_with_a_caret(plain, line, error, at):
    check_refused(plain, "p:there read", line, error, at)


def test_what_is_recorded_cannot_be_removed(plain):
    expect(plain, "kprobe_events", "p:busy read\np:free write")
    expect(plain, "events/kprobes/busy/enable", "1")
    for method, line in ("PUT", ""), ("POST", "-:busy"), ("PUT", "p:other serve"):
        assert put(plain, "kprobe_events", line, method)[0] == 409
    expect(plain, "kprobe_events", "-:free", "POST")
    assert read(plain, "kprobe_events") == "p:kprobes/busy read\n"
    expect(plain, "events/kprobes/busy/enable", "0")
    expect(plain, "events/kprobes/busy/trigger", "traceoff")
    assert put(plain, "kprobe_events", "-:busy", "POST")[0] == 409
    expect(plain, "events/kprobes/busy/trigger", "!traceoff", "POST")
    expect(plain, "kprobe_events", "-:busy", "POST")
    assert put(plain, "kprobe_events", "-:busy", "POST")[0] == 404


def test_a_probe_joins_an_event_that_is_on(plain):
    expect(plain, "kprobe_events", "p:either strlen who=$comm")
    expect(plain, "events/kprobes/either/trigger", "hist:keys=who")
    expect(plain, "events/kprobes/either/enable", "1")
    expect(plain, "kprobe_events", "p:either serve who=$comm", "POST")
    visit(plain, 5)
    expect(plain, "events/kprobes/either/enable", "0")
    expect(plain, "events/kprobes/either/trigger", "!hist:keys=who", "POST")
    texts = [text for _, text in texts_of(plain, "either")]
    assert sum(text.startswith("(serve+0x0/") for text in texts) == 5
    assert sum(text.startswith("(strlen+0x0/") for text in texts) >= 5


def test_filters_triggers_and_histograms_of_a_probe(plain):
    expect(plain, "kprobe_events", "r:sizes read size=$retval:s64\np:begins serve")
    expect(plain, "events/kprobes/sizes/filter", "size > 1000000")
    expect(plain, "events/kprobes/sizes/trigger", "hist:keys=size:vals=hitcount")
    expect(plain, "events/kprobes/begins/trigger", "traceoff:1")
    expect(plain, "events/kprobes/sizes/enable", "1")
    assert read(plain, "events/kprobes/begins/enable") == "0*\n"
    visit(plain, 5)
    assert read(plain, "tracing_on") == "0\n"
    assert not texts_of(plain, "sizes")
    assert int(re.search(r"Hits: (\d+)", read(plain, "events/kprobes/sizes/hist"))[1]) == \
        hits_of(plain)["sizes"][0] >= 1
    expect(plain, "tracing_on", "1")
    expect(plain, "events/kprobes/sizes/trigger", "!hist:keys=size:vals=hitcount", "POST")
    expect(plain, "events/kprobes/begins/trigger", "!traceoff", "POST")
    expect(plain, "events/kprobes/sizes/filter", "size > 0 && size < 1000000")
    visit(plain, 5)
    expect(plain, "events/kprobes/enable", "0")
    assert len(texts_of(plain, "sizes")) >= 5


def test_a_recording_has_probes_that_came_while_it_ran(plain, tmp_path):
    recorder = Recorder(plain, tmp_path / "r.data").drains()
    expect(plain, "kprobe_events", "p:late serve line=$stack0:symbol\nr:result read n=$retval:s64")
    expect(plain, "events/kprobes/enable", "1")
    visit(plain, 5)
    expect(plain, "events/kprobes/enable", "0")
    hits = hits_of(plain)
    expect(plain, "kprobe_events", "")
    recorder.end()
    text = subprocess.run([GRAFTRACE, "show", "-i", recorder.path], check=True, capture_output=True, text=True).stdout
    late = re.findall(r"late: \(serve\+0x0/0x[0-9a-f]+\) line=\w+\+0x[0-9a-f]+/0x[0-9a-f]+", text)
    assert len(late) == hits["late"][0] >= 5
    assert len(re.findall(r"result: \(\w+\+0x[0-9a-f]+/0x[0-9a-f]+ <- read\) n=\d+", text)) == hits["result"][0]


def test_trace_cmd_and_a_pipe_give_probes(plain, tmp_path):
    expect(plain, "kprobe_events", "p:text strlen who=%di")  # one of that name, which is removed
    recorder = Recorder(plain, tmp_path / "r.data").drains()
    expect(plain, "kprobe_events", "p:text strlen s=+0($arg1):string who=$comm bytes=+0(%di):u8[2] bad=@0:x64 "
                                   "low=%di:b4@0/8\nr:size strlen n=$retval:s64 half=$retval:x32\n")
    expect(plain, "events/kprobes/enable", "1")
    visit(plain, 10)
    expect(plain, "events/kprobes/enable", "0")
    hits = hits_of(plain)
    recorder.end().loses_nothing()
    dat = tmp_path / "trace.dat"
    subprocess.run([GRAFTRACE, "export", "--to", "trace.dat", "-o", dat, recorder.path], check=True, timeout=PATIENCE)

    def fields_of(text):
        """Of each event in their order: as trace and show print them, and as libtraceevent does, to which a number that
        could not be read is 0."""
        texts = re.findall(r' text: +\([^)]+\) s="(.*?)" who="(\w+)" bytes=\{?(\d+)[, ](\d+)\}? '
                           r"bad=(\(fault\)|0x0) low=(\d+)", text, re.S)
        return ([(re.sub(r"[^ -~]", "?", string), *numbers, low) for string, *numbers, _, low in texts],
                re.findall(r" size: +\([^)]+ <- [^)]+\) n=(\d+) half=(0x\w+)", text))

    def output_of(*command):
        return subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE).stdout.decode("latin-1")

    shown = fields_of(output_of(GRAFTRACE, "show", recorder.path))
    assert [len(events) for events in shown] == [hits["text"][0], hits["size"][0]] and len(shown[0]) >= 10
    assert fields_of(output_of("trace-cmd", "report", "-i", dat)) == shown
    expect(plain, "events/kprobes/enable", "1")
    visit(plain, 10)
    expect(plain, "events/kprobes/enable", "0")
    now = hits_of(plain)
    piped = fields_of(ftrace(plain, "trace_pipe").decode("latin-1"))
    assert [len(events) for events in piped] == [now[name][0] - hits[name][0] for name in ("text", "size")]
    assert not lines_of(read(plain, "trace"))  # all of it was taken out


def test_a_probe_at_each_function_at_once(plain):
    names = sorted(set(read(plain, "available_filter_functions").split()))
    assert len(names) > 500
    for i in range(0, len(names), 100):
        lines = "".join(f"{kind}:{kind}{i + k} {name}\n" for k, name in enumerate(names[i:i + 100]) for kind in "pr")
        expect(plain, "kprobe_events", lines, "POST")
    assert len(read(plain, "kprobe_events").splitlines()) == 2 * len(names)
    expect(plain, "events/kprobes/enable", "1")
    visit(plain, 20)
    expect(plain, "events/kprobes/enable", "0")
    visit(plain, 2)
    hits = hits_of(plain)
    assert sum(hit for hit, _ in hits.values()) > 10000
    serving = names.index("serve")
    assert hits[f"p{serving}"][0] >= 20
    expect(plain, "kprobe_events", "")
    visit(plain, 2)
    assert read(plain, "kprobe_events") == ""


def test_probes_come_and_go_while_their_functions_run(plain):
    for tracer in "nop", "function", "function_graph":
        expect(plain, "current_tracer", tracer)
        expect(plain, "kprobe_events", "".join(f"p:p_{name} {name} $stack0 +0($stack):string\nr:r_{name} {name} $retval\n"
                                               for name in ("schedule", "serve", "read", "strlen", "strncmp")))
        for _ in range(15):
            expect(plain, "events/kprobes/enable", "1")
            visit(plain, 1)
            expect(plain, "events/kprobes/enable", "0")
            expect(plain, "kprobe_events", "-:r_read", "POST")
            expect(plain, "kprobe_events", "r:r_read read $retval", "POST")
        expect(plain, "kprobe_events", "")
        visit(plain, 1)
    assert "***" not in plain.output()


def test_a_boot_has_probes_from_the_start_and_a_step_through_them_harms_nothing():
    options = "ftrace=nop kprobe_event=p:inner,steps_inner,number=%di:u32;r:inner_back,steps_inner,$retval:u32;" \
              "p:outer,steps_outer;r:outer_back,steps_outer;p:after,steps_after"
    with Machine(TARGET="steps", TRACE="ftrace", CPUS=1, LINGER=60, BUFFER="192M", OPTIONS=options) as machine:
        machine.wait_for("can be fetched", 200)
        counted = re.search(r"steps: calls (.*)", machine.output())[1].split()
        calls = dict(zip(counted[::2], map(int, counted[1::2])))
        hits = hits_of(machine)
    assert hits == {"inner": (calls["steps_inner"], 0), "inner_back": (calls["steps_inner"], 0),
                    "outer": (calls["steps_outer"], 0), "outer_back": (calls["steps_outer"], 0),
                    "after": (calls["steps_after"], 0)}


def test_a_crash_report_names_the_callers_whose_returns_a_probe_has_taken():
    reports = []
    for probes in "", " kprobe_event=r:first,fault_null;r:second,fail;p:third,fault_null":
        with Machine(TARGET="faults", TRACE="ftrace", OPTIONS=f"fault=null{probes}") as machine:
            machine.wait()
            assert "cannot be" not in machine.output()
            reports.append(re.findall(r"^  [0-9a-f]{16} (\w+)\+", machine.output(), re.M))
    assert reports[0] == reports[1] and "fault_null" in reports[0], reports
