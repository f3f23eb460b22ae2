# SPDX-License-Identifier: MIT
"""Events: the static probes of programs, ours and others', with their fields."""

import os
import re
import subprocess
import time

import pytest

from attaching import Running, code, maps
from conftest import BUILD, PATIENCE, ROOT, wait_until
from watched import Watched

FLAGS = ["-pthread", f"-I{ROOT / 'include'}"]
SOLD = ["sold: count=1 what=\"apples\" small=200 negative=-6 price=2.500000 nowhere=0x10",
        "sold: count=-2 what=\"\" small=0 negative=-3 price=-0.125000 nowhere=0x10",
        "sold: count=3 what=(fault) small=255 negative=-8 price=0x7e37e43c8800759c nowhere=0x10",
        "sold: count=4 what=\"012345678901234567890123456789012345678901234567890123456789012\" small=1 "
        "negative=-9 price=0.000000 nowhere=0x10",
        "closed:"]
BUILDS = {"gcc": ("gcc", ["-O2"]), "gcc-0": ("gcc", ["-O0"]), "clang": ("clang", ["-O2"])}


@pytest.fixture(scope="module", params=["gcc", "gcc-0", "clang"])
def program(request, compile):
    compiler, flags = BUILDS[request.param]
    return compile("events.c", *flags, *FLAGS, compiler=compiler)


@pytest.fixture(scope="module")
def fast(compile):
    return compile("events.c", "-O2", *FLAGS)


def shown(graftrace):
    return graftrace("show").stdout


def count(text, event):
    return len(re.findall(rf"\b{event}:", text))


def test_fields_are_what_the_program_gave(program, graftrace):
    graftrace("record", "-e", "shop:*", "--", program, "fields")
    text = shown(graftrace)
    assert text.startswith("# tracer: nop\n")
    assert re.findall(r" (\w+:(?: count=.*)?)$", text, re.M) == SOLD


def test_events_stand_in_the_calls_that_they_happened_in(fast, graftrace):
    graftrace("record", "-e", "shop", "-p", "function_graph", "--", fast, "fields")
    lines = [line.split("|  ", 1)[-1] for line in shown(graftrace).splitlines() if "|  " in line]
    calls = [line.strip() for line in lines if "tell" in line or "sold" in line]
    assert calls[:8] == [line for sold in SOLD[:4] for line in ("tell() {", f"/* {sold} */")]


def test_globs_and_their_opposites_say_which(fast, graftrace):
    graftrace("record", "-e", "shop:*", "-e", "!shop:s*d", "--", fast, "fields")
    text = shown(graftrace)
    assert count(text, "closed") == 1 and count(text, "sold") == 0


@pytest.mark.parametrize("how", [[], ["--breakpoints"], ["-p", "function_graph"], ["-p", "function"]])
def test_registers_flags_and_red_zone_stay(how, program, graftrace):
    done = graftrace("record", *how, "-e", "usdt_own:*", "--", program)
    assert done.stdout == "bad 0\n"
    found = re.findall(r"registers: arg1=0x65 arg2=0x75 arg3=0 arg4=\S+ arg5=4294967289 arg6=0x\w+ arg7=\(fault\)",
                       shown(graftrace))
    assert len(found) == 100


def test_the_same_note_is_what_others_read(fast):
    notes = subprocess.run(["readelf", "-n", fast], capture_output=True, text=True, check=True).stdout
    assert re.search(r"Provider: shop\s+Name: sold\s", notes)
    probes = subprocess.run(["gdb", "-batch", "-ex", "info probes stap", str(fast)], capture_output=True,
                            text=True, check=True, stdin=subprocess.DEVNULL).stdout
    assert {tuple(line.split()[1:3]) for line in probes.splitlines() if line.startswith("stap")} == {
        ("shop", "sold"), ("shop", "closed"), ("shop", "rang"), ("own", "heard"), ("own", "registers")}


SALES = r"""
#include <graftrace/event.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		GRAFTRACE_EVENT(TILL, sale, GRAFTRACE_INT(int, count, atoi(argv[i])), GRAFTRACE_STRING(what, argv[i]));
}
"""


# perf's probes have names that the whole machine shares.
TILL = f"till{os.getpid()}"


@pytest.fixture(scope="module")
def sales(compile):
    """A program that sells what its arguments say, as a command."""
    return [str(compile(SALES.replace("TILL", TILL), "-O2", FLAGS[1])), "3apples", "-4pears", "5plums"]


def test_bpftrace_sees_the_events_that_graftrace_sees(sales, graftrace):
    probe = f"usdt:{sales[0]}:{TILL}:sale"
    listed = subprocess.run(["bpftrace", "-l", probe], capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
    assert listed == probe + "\n"
    seen = subprocess.run(["bpftrace", "-c", " ".join(sales), "-e",
                           probe + ' { printf("count=%d what=\\"%s\\"\\n", (int32)arg0, str(arg1)); }'],
                          capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
    graftrace("record", "-e", f"{TILL}:sale", "--", *sales)
    ours = re.findall(r"sale: (count=.*)", shown(graftrace))
    assert len(ours) == 3 and re.findall("count=.*", seen) == ours


def test_perf_sees_the_events_that_graftrace_sees(sales, tmp_path):
    def perf(*words):
        return subprocess.run(["perf", *words], env={**os.environ, "HOME": str(tmp_path)}, cwd=tmp_path,
                              capture_output=True, text=True, check=True, timeout=PATIENCE).stdout

    perf("buildid-cache", "--add", sales[0])
    event = f"sdt_{TILL}:sale"
    assert re.search(rf"^ *{event} +\[SDT event\]$", perf("list", "sdt"), re.M)
    perf("probe", "-x", sales[0], f"%{event}")
    try:
        perf("record", "-q", "-o", "sales.data", "-e", event, *sales)
        assert re.findall(r" arg1=(-?\d+) arg2=", perf("script", "-i", "sales.data")) == ["3", "-4", "5"]
    finally:
        perf("probe", "-d", event)


def test_systemtap_sees_the_events_that_graftrace_sees(sales, tmp_path):
    """Its translator, up to where it would make a kernel module: it asks for a kernel's configuration, and
    nothing in it matters for a program's probes."""
    kernel = tmp_path / "kernel"
    for name, text in {".config": "CONFIG_UPROBES=y\nCONFIG_UTRACE=y\n", "Makefile": "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 0\n",
                       "Module.symvers": "", "System.map": "", "include/config/kernel.release": "6.1.0\n"}.items():
        (kernel / name).parent.mkdir(parents=True, exist_ok=True)
        (kernel / name).write_text(text)

    def stap(*words):
        return subprocess.run(["stap", "-r", kernel, *words], env={**os.environ, "HOME": str(tmp_path)},
                              capture_output=True, text=True, check=True, timeout=PATIENCE).stdout

    probe = f'process("{sales[0]}").provider("{TILL}").mark("sale")'
    assert stap("-L", probe).split(" ", 1)[1] == "$arg1:long $arg2:long\n"
    notes = subprocess.run(["readelf", "-n", sales[0]], capture_output=True, text=True, check=True).stdout
    place = int(re.search(r"Name: sale\n\s+Location: 0x(\w+)", notes)[1], 16)
    script = stap("-p2", "-e", f'probe {probe} {{ printf("%d %s\\n", $arg1, user_string($arg2)) }}')
    assert int(re.search(r"\.statement\(0x(\w+)\)", script)[1], 16) == place


def test_the_header_is_one_of_cpp_too(compile, graftrace):
    text = ('#include <graftrace/event.h>\nint main(int argc, char **)\n{\n\tenum { RED = 3 } c = RED;\n'
            '\tGRAFTRACE_EVENT(app, ran, GRAFTRACE_INT(bool, few, argc < 9), GRAFTRACE_INT(unsigned, c, c));\n}\n')
    for compiler in ("g++", "clang++"):
        path = compile(text, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic", FLAGS[1],
                       compiler=compiler, suffix=".cc")
        graftrace("record", "-e", "app:ran", "--", path)
        assert "ran: few=1 c=3\n" in shown(graftrace)


def test_events_in_signal_handlers_are_all_there(fast, graftrace):
    for how in ([], ["-p", "function_graph"]):
        made = graftrace("record", *how, "-e", "shop:*", "--", fast, "signals").stdout
        sold, rang = map(int, re.match(r"made (\d+) rang (\d+)", made).groups())
        text = shown(graftrace)
        assert (count(text, "sold"), count(text, "rang")) == (sold, rang)


def test_what_a_storm_of_events_does_not_leave_room_for_is_counted(fast, graftrace):
    done = graftrace("record", "-b", "256k", "--serve=unix:socket", "-e", "shop:sold", "--", fast, "storm")
    made = int(done.stdout.split()[1])
    lost = re.search(r"(\d+) events? lost", done.stderr)
    assert lost and 0 < made - int(lost[1]) < made
    graftrace("record", "-e", "shop:sold", "--", fast, "storm")
    report = graftrace("report").stdout
    assert re.search(rf"^ +{made} +[\d.]+  shop:sold$", report, re.M)
    assert re.search(r"^ +count +0 +9999.5 +19999$", report, re.M)


def test_an_object_that_comes_and_goes_has_its_events_each_time(fast, compile, graftrace):
    library = compile("events.c", "-O2", "-shared", "-fPIC", "-DLIBRARY", *FLAGS)
    done = graftrace("record", "-e", "plug:*", "--", fast, "plugs", library)
    assert done.stdout == "sum 220\n"
    assert re.findall(r"worked: n=(\d)", shown(graftrace)) == [str(n) for n in range(10)] * 4


def test_a_program_that_dies_leaves_its_events(fast, graftrace):
    graftrace("record", "-e", "shop:*", "--", fast, "crash", code=-11)
    assert count(shown(graftrace), "sold") == 5


def test_a_program_that_runs_is_watched_and_left_as_it_was(fast, graftrace):
    with Running(fast, "loop") as target:
        assert target("5") == "heard 0 bad 0 semaphore 0"
        before = maps(target.pid), code(target.pid)
        for _ in range(2):
            recorder = graftrace.start("record", "-P", target.pid, "-e", "shop", "-e", "usdt_own:*")
            for _ in range(6000):
                if target("100") == "heard 100 bad 0 semaphore 1":
                    break
                time.sleep(0.01)
            assert target("100") == "heard 100 bad 0 semaphore 1"
            recorder.terminate()
            recorder.communicate()
            text = shown(graftrace)
            assert count(text, "heard") == count(text, "registers") >= 100
            assert [int(n) for n in re.findall(r"heard: arg1=(\d+)", text)][-100:] == list(range(100))
            assert target("5") == "heard 0 bad 0 semaphore 0"
            assert (maps(target.pid), code(target.pid)) == before


def test_python_tells_of_its_functions(graftrace, tmp_path):
    python = "/usr/bin/python3"
    source = "\n" * 776 + "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nprint(fib(9))\n"
    (tmp_path / "fib.py").write_text(source)
    done = graftrace("record", "-e", "usdt_python:function__*", "--", python, "-I", tmp_path / "fib.py")
    assert done.stdout == "34\n"
    returns = re.findall(r"function__return: arg1=(0x[0-9a-f]+) arg2=0x[0-9a-f]+ arg3=(\d+)$", shown(graftrace), re.M)
    name = returns[-1][0]  # of the file: its own code returns last, from line 779
    assert [line for file, line in returns if file == name] == ["778"] * 109 + ["779"]


def test_the_list_says_what_there_is_and_how(fast, graftrace):
    lines = graftrace("list", fast).stdout.splitlines()
    assert lines[0] == f"# {fast}"
    assert "shop:sold\tnops\tint count, const char * what, unsigned char small, long negative, double price, " \
           "const void * nowhere" in lines
    assert "usdt_own:heard\tmoved\ts64 arg1" in lines
    assert any(line.startswith("usdt_libstdcxx:throw\tmoved\t") for line in
               graftrace("list", "/usr/bin/gdb").stdout.splitlines())
    with Running(fast, "loop") as target:
        assert graftrace("list", "-P", target.pid).stdout.splitlines()[1:len(lines)] == lines[1:]


def test_exports_have_events_as_marks(fast, graftrace, tmp_path):
    graftrace("record", "-e", "shop", "-p", "function_graph", "--", fast, "fields")
    graftrace("export", "--to", "chrome", "-o", "trace.json")
    assert "shop:sold: count=1 what=\\\"apples\\\"" in (tmp_path / "trace.json").read_text()


@pytest.mark.parametrize("expression, which", [
    ("count > 1", [2, 3]), ('what ~ "a*"', [0]), ("small == 200 || negative == -9", [0, 3]),
    ("!(count == 1)", [1, 2, 3]), ('what == ""', [1]), ('what != "apples" && count & 1', [2]),
    ('COMM == "events" && CPU >= 0 && common_pid > 0', [0, 1, 2, 3]), ("nowhere != 0x10", []),
    ("(" * 1000 + "count < 0" + ")" * 1000, [1])])
def test_a_filter_says_which_events_are_recorded(expression, which, fast, graftrace):
    (graftrace.directory / "events").symlink_to(fast)
    graftrace("record", "-e", "shop:*", "--filter", expression, "--", "./events", "fields")
    found = re.findall(r" (sold: .*)$", shown(graftrace), re.M)
    assert found == [SOLD[i] for i in which]
    assert count(shown(graftrace), "closed") == 1  # it has no such fields: it is not filtered


def test_a_filter_that_fits_no_event_is_an_error(fast, graftrace):
    for expression, error in (("nosuch == 1", "Field not found"), ("count == ", "Invalid value"),
                              ("price > 1", "Illegal operation for field type"), ("(count", "Too many '('")):
        done = graftrace("record", "-e", "shop:sold", "--filter", expression, "--", fast, "fields", code=1)
        assert f"filter '{expression}' of shop:sold: {error}" in done.stderr and done.stdout == ""


def test_filters_hold_in_signal_handlers_and_without_room_in_the_ring(fast, graftrace):
    for how in ([], ["-p", "function_graph"]):
        made = graftrace("record", *how, "-e", "shop:*", "--filter", "count & 1", "--", fast, "signals").stdout
        sold, rang = map(int, re.match(r"made (\d+) rang (\d+)", made).groups())
        text = shown(graftrace)
        assert (count(text, "sold"), count(text, "rang")) == (sold // 2, rang)
    done = graftrace("record", "-b", "256k", "--serve=unix:socket", "-e", "shop:sold", "--filter", "count == 7",
                     "--", fast, "storm")
    made = int(done.stdout.split()[1])
    assert " 0 lost" in done.stderr and count(shown(graftrace), "sold") == made // 20000 > 1


@pytest.fixture
def mounted(fast, graftrace):
    """The program with "loop" and its control files: (run, their directory)."""
    watched = Watched(graftrace, fast, "loop")

    def run(times):
        text = watched.text_of(times)
        return {name: count(text, name) for name in ("sold", "heard", "registers") if name in text}

    yield run, watched.path
    watched.end()


def switched_on(path):
    return (path / "set_event").read_text().split()


def test_the_control_files_switch_events_while_the_program_runs(mounted):
    run, path = mounted
    events = {"shop:sold", "shop:closed", "shop:rang", "usdt_own:heard", "usdt_own:registers"}
    assert events <= set((path / "available_events").read_text().split())
    assert (path / "set_event").read_text() == "" and run(3) == {}
    (path / "set_event").write_text("shop:s* usdt_own:heard\n")
    assert set(switched_on(path)) == {"shop:sold", "usdt_own:heard"}
    assert run(3) == {"sold": 3, "heard": 3}
    with open(path / "set_event", "a") as file:
        file.write("!usdt_own:*\n")
    assert switched_on(path) == ["shop:sold"] and run(2) == {"sold": 2}
    assert (path / "events/enable").read_text() == "X\n"
    assert (path / "events/shop/enable").read_text() == "X\n"
    (path / "events/usdt_own/enable").write_text("1")
    assert (path / "events/usdt_own/enable").read_text() == "1\n"
    (path / "events/shop/sold/enable").write_text("0")
    assert (path / "events/shop/sold/enable").read_text() == "0\n"
    assert run(4) == {"heard": 4, "registers": 4}
    (path / "set_event").write_text("")
    assert run(2) == {} and (path / "events/usdt_own/enable").read_text() == "0\n"
    with pytest.raises(OSError):
        (path / "set_event").write_text("nosuch:thing\n")


def test_a_format_is_what_linux_writes_of_its_events(mounted):
    _run, path = mounted
    text = (path / "events/shop/sold/format").read_text()
    number = int((path / "events/shop/sold/id").read_text())
    assert text.startswith(f"name: sold\nID: {number}\nformat:\n\tfield:unsigned short common_type;\toffset:0;")
    assert "\tfield:int count;\toffset:8;\tsize:4;\tsigned:1;\n" in text
    assert "\tfield:__data_loc char[] what;\toffset:16;\tsize:4;\tsigned:1;\n" in text
    assert ('print fmt: "count=%d what=\\"%s\\" small=%u negative=%lld price=0x%llx nowhere=0x%llx", REC->count, '
            '__get_str(what), REC->small, REC->negative, REC->price, REC->nowhere\n') in text


def test_filters_are_files_and_change_while_the_program_runs(mounted):
    run, path = mounted
    sold, heard = path / "events/shop/sold/filter", path / "events/usdt_own/heard/filter"
    assert sold.read_text() == "none\n" == heard.read_text()
    (path / "set_event").write_text("shop:sold usdt_own:heard\n")
    assert run(4) == {"sold": 4, "heard": 4}
    heard.write_text("arg1 >= 2 && arg1 != 3\n")
    assert heard.read_text() == "arg1 >= 2 && arg1 != 3\n" and run(4) == {"sold": 4, "heard": 1}
    for wrong in ("arg1 = 3", "arg2 == 3", "arg1 == 3)", "1" * 4097):
        with pytest.raises(OSError):
            heard.write_text(wrong)
    assert heard.read_text() == "arg1 == 3)\n         ^\nparse_error: Too few '('\n\n"
    assert run(4) == {"sold": 4, "heard": 4}
    (path / "events/usdt_own/filter").write_text("arg1 == 0")
    assert heard.read_text() == "arg1 == 0\n" and run(4)["heard"] == 1
    heard.write_text("0")
    assert heard.read_text() == "none\n" and run(4) == {"sold": 4, "heard": 4}


def test_a_mount_shows_the_filters_that_it_began_with(fast, graftrace):
    path = graftrace.directory / "tracing"
    path.mkdir()
    process = graftrace.start("mount", path, "-e", "shop:*", "--filter", "count > 2", "--", fast, "loop",
                              stdin=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    wait_until((path / "trace").exists, "the mount")
    assert (path / "events/shop/sold/filter").read_text() == "count > 2\n"
    assert (path / "events/shop/closed/filter").read_text() == "none\n"
    process.stdin.close()
    assert process.wait(PATIENCE) == 0


def test_trace_cmd_takes_events_with_their_fields(mounted):
    run, path = mounted
    (path / "set_event").write_text("shop:sold\n")
    run(3)
    shown = [line for line in (path / "trace").read_text().splitlines() if "sold: " in line]
    subprocess.run([BUILD / "cli" / "graftrace", "mount", "--enter", path, "--", "trace-cmd", "extract", "-o", path.parent / "it.dat"],
                   check=True, capture_output=True, timeout=PATIENCE)
    told = subprocess.run(["trace-cmd", "report", "-i", path.parent / "it.dat"], check=True, capture_output=True, text=True,
                          timeout=PATIENCE).stdout
    fields = re.findall(r" sold: +(.*)$", told, re.M)
    assert len(fields) == len(shown) >= 3
    # a fraction is shown by its bits, for libtraceevent prints none
    assert fields == [line.split("sold: ", 1)[1].replace("price=1.000000", "price=0x3ff0000000000000") for line in shown]


def test_triggers_act_where_the_event_happens(mounted):
    run, path = mounted
    trigger, on = path / "events/usdt_own/heard/trigger", path / "tracing_on"
    assert trigger.read_text().startswith("# Available triggers:\n# traceon traceoff ")
    (path / "set_event").write_text("shop:sold\n")  # the trigger works though its event is off
    trigger.write_text("traceoff:1 if arg1 == 2\n")
    assert trigger.read_text() == "traceoff:count=1 if arg1 == 2\n"
    assert run(5) == {"sold": 3} and on.read_text() == "0\n"
    assert trigger.read_text() == "traceoff:count=0 if arg1 == 2\n"
    on.write_text("1")
    assert run(5) == {"sold": 5} and on.read_text() == "1\n"
    with pytest.raises(FileExistsError):
        trigger.write_text("traceoff\n")
    on.write_text("0")
    trigger.write_text("!traceoff\n")
    trigger.write_text("traceon if arg1 == 3\n")
    assert trigger.read_text() == "traceon:unlimited if arg1 == 3\n"
    assert run(5) == {"sold": 1} and on.read_text() == "1\n"
    for wrong in ("nosuch", "traceoff:", "traceoff:x", "traceoff:3 when arg1 == 3", "traceoff if", "stacktrace if arg9 == 1",
                  "enable_event", "enable_event:shop:nosuch"):
        with pytest.raises(OSError):
            trigger.write_text(wrong)
    trigger.write_text("!traceon")
    trigger.write_text("!traceoff:9")
    trigger.write_text("!stacktrace")
    assert trigger.read_text().startswith("# Available")
    on.write_text("0")
    assert run(5) == {}


def test_a_trigger_enables_another_event(mounted):
    run, path = mounted
    heard, enable = path / "events/usdt_own/heard", path / "events/shop/sold/enable"
    (heard / "trigger").write_text("enable_event:shop:sold:1 if arg1 == 3\n")
    assert (heard / "trigger").read_text() == "enable_event:shop:sold:count=1 if arg1 == 3\n"
    assert enable.read_text() == "0*\n" and (path / "set_event").read_text() == ""
    assert run(5) == {"sold": 1} and enable.read_text() == "1*\n"
    assert run(5) == {"sold": 5}
    with pytest.raises(FileExistsError):
        (heard / "trigger").write_text("disable_event:shop:sold\n")
    (heard / "trigger").write_text("!enable_event:shop:sold")
    assert enable.read_text() == "0\n" and run(5) == {}
    (heard / "trigger").write_text("enable_event:shop:sold if arg1 == 3\n")
    (path / "events/shop/rang/trigger").write_text("enable_event:shop:sold\n")
    assert run(5) == {"sold": 1}
    (heard / "trigger").write_text("!enable_event:shop:sold")
    (heard / "trigger").write_text("disable_event:shop:sold if arg1 == 1\n")
    assert run(5) == {"sold": 2} and enable.read_text() == "0*\n" and run(5) == {}
    enable.write_text("1")
    assert run(5) == {"sold": 2}
    (heard / "trigger").write_text("!disable_event:shop:sold")
    (path / "events/shop/rang/trigger").write_text("!enable_event:shop:sold")
    assert enable.read_text() == "1\n" and run(5) == {"sold": 5}


def test_triggers_take_snapshots_and_stack_traces(mounted):
    run, path = mounted
    sold = path / "events/shop/sold"
    (path / "set_event").write_text("shop:sold\n")
    (path / "current_tracer").write_text("function_graph")
    (sold / "trigger").write_text("stacktrace:2\n")
    run(4)
    text = (path / "trace").read_text()
    assert text.count("<stack trace>") == 2 and re.search(r" => tell\b", text)
    (path / "snapshot").write_text("1")
    (sold / "trigger").write_text("!stacktrace")
    (sold / "trigger").write_text("snapshot:1 if count == 2\n")
    assert run(4)["sold"] == 1  # the ring went into the snapshot
    assert count((path / "snapshot").read_text(), "sold") == 3


def test_calls_that_are_open_are_shown_behind_each_event(mounted):
    run, path = mounted
    (path / "set_event").write_text("shop:sold\n")
    (path / "current_tracer").write_text("function_graph")
    run(2)
    (path / "options/stacktrace").write_text("1")
    assert len(re.findall(r"/\* sold: .* \*/\n.* /\* <stack trace>\n => tell(?:\n => \w+)* \*/\n",
                          (path / "trace").read_text())) == 2
    (path / "options/stacktrace").write_text("0")
    assert "<stack trace>" not in (path / "trace").read_text()
    (path / "current_tracer").write_text("nop")  # which has no calls
    (path / "options/stacktrace").write_text("1")
    assert run(1)["sold"] == 1 and "<stack trace>" not in (path / "trace").read_text()


def test_record_takes_triggers(fast, graftrace):
    graftrace("record", "-e", "shop:sold", "--trigger", "traceoff if count == 3", "--", fast, "fields")
    assert count(shown(graftrace), "sold") == 3
    for wrong, error in (("traceoff if nosuch == 1", "Field not found"), ("nosuch", "is not a trigger"),
                         ("enable_event", "is not a trigger")):
        done = graftrace("record", "-e", "shop:sold", "--trigger", wrong, "--", fast, "fields", code=None)
        assert error in done.stderr and done.returncode != 0 and done.stdout == ""


EARLY = r"""
#include <graftrace/event.h>
#include <stdio.h>
static int seven(void)
{
	return 7;
}
__attribute__((noinline)) int helper(int x)
{
	__asm__ volatile("nop" : "+r"(x));
	x *= 3;
	GRAFTRACE_EVENT(early, one, GRAFTRACE_INT(int, x, x));
	return x;
}
static int (*resolve(void))(void)
{
	return helper(1) == 3 ? seven : NULL;
}
int chosen(void) __attribute__((ifunc("resolve")));
int main(void)
{
	return chosen() + helper(2) - 13;
}
"""


def test_an_event_may_come_before_the_program_has_thread_storage(compile, graftrace):
    graftrace("record", "-e", "early:*", "--", compile(EARLY, "-O2", "-static", *FLAGS))
    assert re.findall(r"one: x=(\d+)", shown(graftrace)) == ["6"]
