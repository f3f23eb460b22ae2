# SPDX-License-Identifier: MIT
"""Arguments and results of functions: from debug information, prototypes and specifications; in all
that shows calls."""

import csv
import json
import re
import sqlite3
import subprocess

import pytest

import behaviour
import format_reader

from conftest import PATIENCE, wait_until

BUILDS = {"gcc": ("gcc", ["-O2", "-g"]), "gcc-0": ("gcc", ["-O0", "-g"]),
          "gcc-dwarf4": ("gcc", ["-O1", "-gdwarf-4"]), "clang": ("clang", ["-O2", "-g"]),
          "clang-0": ("clang", ["-O0", "-g"])}
ALL = [
    "add(a=1, b=-2); /* ret=-1 */",
    "numbers(u=0x7, c=0xc8, s=-3, l=-9, yes=0x1, small=-100); /* ret=0x60 */",
    "find(in=\"hello world\", what='w'); /* ret=\"world\" */",
    "find(in=\"on the stack\", what='\\n'); /* ret=NULL */",
    "fractions(x=1.500000, y=2.250000, n=3); /* ret=6.375000 */",
    "next(c=RED); /* ret=GREEN */",
    "next(c=BLUE); /* ret=BLUE */",
    "next(c=77); /* ret=BLUE */",
    "add(a=1, b=2); /* ret=0x3 */",
    "swap(p=(struct pair)[0x200000001], l=(struct large)[0xa:0x14], behind=9); /* ret=(struct pair)[0xa00000034] */",
    "mix(m=(struct mixed)[0x3fe0000000000000:0x7], e=(union either)[0x3]); "
    "/* ret=(struct mixed)[0x400c000000000000:0x7] */",
    "ten(a=1, b=2, c=3, d=4, e=5, f=6, g=7, h=-8, x=9.500000, i=\"tab\\there\"); /* ret=0x25 */",
    "fails(error=2); /* ret=-2 */",
    "fails(error=9999); /* ret=0xffffd8f1 */",
    "is_null(t=NULL); /* ret=0x1 */",
    "nothing();",
]


@pytest.fixture(scope="module", params=BUILDS)
def program(request, compile):
    compiler, flags = BUILDS[request.param]
    return compile("arguments.c", *flags, "-pthread", compiler=compiler)


@pytest.fixture(scope="module")
def fast(compile):
    return compile("arguments.c", "-O2", "-g", "-pthread")


def shown(graftrace, *options):
    return graftrace("show", *options).stdout


def calls(text):
    """What stands in the last column, without its indentation."""
    return [line.split("|  ", 1)[1].strip() for line in text.splitlines()
            if "|  " in line and not line.startswith("#")]


def test_all_sorts_of_values_are_what_the_program_gave(program, graftrace):
    assert graftrace("record", "--args", "--retval", "--", program).stdout == "did all\n"
    lines = calls(shown(graftrace))
    assert [line for line in lines if line in ALL] == ALL
    assert re.fullmatch(r"main\(argc=1, argv=0x7\w+\) \{", lines[0])
    assert any(re.fullmatch(r"calls\(function=add, data=0x7\w+\) \{", line) for line in lines)
    assert "} /* calls ret=0x4 */" in lines and "} /* main ret=0x0 */" in lines
    assert any(re.fullmatch(r"enlarge\(n=4\); /\* ret=0x7\w+ \*/", line) for line in lines)
    assert "tail(n=21) {" in lines or "tail(n=21);" in lines
    assert "add(a=21, b=21); /* ret=0x2a */" in lines
    if "fact(n=0x2) {" in lines:
        assert [line for line in lines if "fact" in line] == [
            "fact(n=0x3) {", "fact(n=0x2) {", "fact(n=0x1); /* ret=0x1 */", "} /* fact ret=0x2 */",
            "} /* fact ret=0x6 */"]


def test_options_say_what_is_shown_of_them(fast, graftrace):
    graftrace("record", "--args", "--retval", "--", fast)
    assert "add(); /* ret=-1 */" in calls(shown(graftrace, "-O", "nofuncgraph-args"))
    assert "add(a=1, b=-2);" in calls(shown(graftrace, "-O", "nofuncgraph-retval"))
    text = calls(shown(graftrace, "-O", "funcgraph-retval-hex"))
    assert "add(a=1, b=-2); /* ret=0xffffffff */" in text and "fails(error=2); /* ret=0xfffffffe */" in text


def test_without_the_options_nothing_is_recorded(fast, graftrace):
    graftrace("record", "--", fast)
    assert "add();" in calls(shown(graftrace)) and "ret=" not in shown(graftrace)
    graftrace("record", "--args", "--", fast)
    assert "add(a=1, b=-2);" in calls(shown(graftrace))
    graftrace("record", "--retval", "--", fast)
    assert "add(); /* ret=-1 */" in calls(shown(graftrace))


def test_single_functions_by_uftraces_words(fast, graftrace):
    graftrace("record", "-A", "add@arg1/x,arg2/i32;find@arg1/s", "-A", "fractions@fparg1,fparg2/32,arg1/i32",
              "-A", "ten@arg7%stack+1,arg2%rsi,arg8/i16%stack2", "-R", "add@retval/i32", "-R", "nex*",
              "-A", "numbers@arg2/u8,arg6/i8,retval/u32", "--", fast)
    lines = calls(shown(graftrace))
    for line in ("add(a=0x1, b=-2); /* ret=-1 */", "find(in=\"hello world\");", "next(); /* ret=GREEN */",
                 "fractions(x=1.500000, y=2.250000, n=3);", "ten(g=7, b=2, h=-8);",
                 "numbers(c=200, small=-100); /* ret=96 */", "fails();"):
        assert line in lines, line


def test_without_debug_information_words_alone_say_it(compile, graftrace):
    program = compile("arguments.c", "-O2", "-g0", "-pthread")
    graftrace("record", "--args", "--retval", "--", program)
    assert "add();" in calls(shown(graftrace))
    graftrace("record", "-A", "add@arg1/i32,arg2/i32", "-A", "find@arg1/s,arg2/c", "-R", "find@retval/s",
              "-A", "calls@arg1/p", "--", program)
    lines = calls(shown(graftrace))
    assert "add(1, -2);" in lines and "find(\"hello world\", 'w'); /* ret=\"world\" */" in lines
    assert "calls(add) {" in lines


@pytest.mark.parametrize("spec", ["add@arg0", "add@", "add@arg1/q", "add@arg1/i33", "add@arg1%rdx2", "@arg1",
                                  "add@fparg1%rdi", "add@retval%rax", "add@arg1,", "add@stack1"])
def test_words_that_make_no_sense_are_refused(spec, fast, graftrace):
    done = graftrace("record", "-A", spec, "--", fast, code=2)
    assert "no argument" in done.stderr or "no function" in done.stderr


def test_a_debug_file_of_the_same_build_says_it(compile, graftrace, tmp_path, monkeypatch):
    program = tmp_path / "stripped"
    program.write_bytes(compile("arguments.c", "-O2", "-g", "-pthread", "-Wl,--build-id").read_bytes())
    program.chmod(0o755)
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    build_id = re.search(r"Build ID: (\w+)", notes)[1]
    debug = tmp_path / "debug" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    debug.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    monkeypatch.setenv("GRAFTRACE_DEBUG_DIRECTORY", str(tmp_path / "debug"))
    graftrace("record", "--args", "--", program)
    assert "add(a=1, b=-2);" in calls(shown(graftrace))


def test_cpp_has_strings_references_and_members(compile, graftrace):
    for compiler in ("g++", "clang++"):
        program = compile("arguments.cc", "-std=c++17", "-O1", "-g", compiler=compiler)
        done = graftrace("record", "--args", "--retval", "--no-demangle", "--", program)
        assert done.stdout == "hello a text that does not fit in the object 6\n"
        graftrace("record", "--args", "--retval", "--", program)
        text = shown(graftrace)
        assert re.search(r"shop::join\(a=\"hello \", b=\"a text that does not fit in the object\", n=3, d=2\.500000\)",
                         text)
        assert "ret=\"hello a text that does not fit in the object\"" in text
        assert re.search(r"Counter::get\(this=0x7\w+, d=2\); /\* ret=0x6 \*/", text)
        assert re.search(r"mode\(m=Write, yes=0x1, text=\(.*string_view.*\)\[0x4:0x\w+\]\); /\* ret=Write \*/", text)
        assert "refer(n=3); /* ret=0x3 */" in text
        assert "throws(what=\"oops\") {" in text


def test_bad_addresses_do_no_harm(fast, graftrace):
    assert graftrace("record", "--args", "--", fast, "bad").stdout == "did bad\n"
    assert [line for line in calls(shown(graftrace)) if line.startswith("is_null")] == \
        ["is_null(t=(fault));"] * 4 + ["is_null(t=\"good\");"]
    graftrace("record", "--args", "--", fast, "mapped")
    assert [line for line in calls(shown(graftrace)) if line.startswith("is_null")] == [
        "is_null(t=\"xxxx\");", f"is_null(t=\"{'x' * 63}\"...);"]


def test_addresses_above_a_stack_of_unknown_bounds_do_no_harm(compile, graftrace):
    """What lies between the stack pointer and the thread pointer need not be the stack."""
    program = compile("own_stack.c", "-O1", "-g", "-fno-stack-protector")
    assert graftrace("record", "--args", "--retval", "--", program).stdout == "done\n"
    assert len(re.findall(r'looks\(text=\(fault\), n=\d+\)', shown(graftrace))) == 300


def test_threads_and_handlers_have_their_own(fast, graftrace):
    graftrace("record", "--args", "--retval", "--", fast, "threads")
    text = shown(graftrace)
    for thread in range(4):
        found = [int(n) for n in re.findall(rf"\badd\(a=(\d+), b={thread}\)", text)]
        assert found == list(range(20000))
        assert len(re.findall(rf"\badd\(a=\d+, b={thread}\)", text)) == 20000
    heard = re.findall(r"fails\(error=(\d+)\)", text)
    assert heard and set(heard) == {"10"}


def test_the_function_tracer_shows_them_as_linux_does(fast, graftrace):
    graftrace("record", "-p", "function", "--args", "--", fast)
    text = shown(graftrace)
    assert re.search(r": add\(a=1, b=-2\) <-(all|main)$", text, re.M)
    assert re.search(r": add <-", shown(graftrace, "-O", "nofunc-args"))


def test_roots_have_their_arguments(fast, graftrace):
    graftrace("record", "-g", "calls", "--args", "--retval", "--", fast)
    lines = calls(shown(graftrace))
    assert re.fullmatch(r"calls\(function=add, data=0x7\w+\) \{", lines[0])
    assert lines[1:] == ["add(a=1, b=2); /* ret=0x3 */", "} /* calls ret=0x4 */"]


def test_prototypes_of_the_c_library(fast, graftrace):
    graftrace("record", "--libcall", "--args", "--retval", "--", fast)
    text = shown(graftrace)
    assert "strchr@plt(s=\"hello world\", c='w'); /* ret=\"world\" */" in text


def test_what_uftrace_says_is_the_same(compile, graftrace, tmp_path):
    """uftrace's own examples: t-arg, t-retval, t-autoargs of its tests, in short."""
    text = """
        #include <stdlib.h>
        int mul(int a, int b, int c) { return a * b * c; }
        int str(const char *s, char c) { return s[0] + c; }
        double flt(float a, double b) { return a + b; }
        long many(long a, long b, long c, long d, long e, long f, int g, long h) { return a + h + g; }
        int main(int argc, char **argv) { volatile int n = mul(3, 4, -5) + str("Hello", 'c') + (int)flt(1.5f, 2.5);
            n += (int)many(1, 2, 3, 4, 5, 6, 7, 8); return 0; }
    """
    program = compile(text, "-O0", "-g", "-pg", "-fno-inline")
    spec = "mul@arg1,arg2,arg3/i32;str@arg1/s,arg2/c;flt@fparg1/32,fparg2/64;many@arg1,arg7/i32%stack+1,arg8%stack+2"
    returned = "mul@retval/i32;flt@retval/f64;many@retval"
    folder = tmp_path / "uftrace"
    # A context switch stands in the call where it came, which is no leaf then.
    subprocess.run(["uftrace", "record", "--no-event", "-d", folder, "-A", spec, "-R", returned, program], check=True,
                   capture_output=True, timeout=PATIENCE)
    theirs = subprocess.run(["uftrace", "replay", "-d", folder, "-f", "none", "--no-pager"], check=True, text=True,
                            capture_output=True).stdout
    graftrace("record", "--no-switch-events", "-A", spec, "-R", returned, "--", program)
    ours = shown(graftrace)

    def values(line):
        return [re.sub(r"^\w+=", "", word) for word in line.split(", ")]

    for name in ("mul", "str", "flt", "many"):
        them = re.search(rf"\b{name}\((.*?)\)(?: = (\S+))?;", theirs)
        us = re.search(rf"\b{name}\((.*?)\);(?: /\* ret=(\S+) \*/)?", ours)
        assert values(us[1]) == [re.sub(r"^0x0$", "0", word) for word in values(them[1])], (theirs, ours)
        if them[2]:
            assert us[2] == them[2] or int(us[2], 0) == int(them[2], 0), (theirs, ours)


def test_exports_carry_them(fast, graftrace, tmp_path):
    graftrace("record", "--args", "--retval", "--", fast)
    graftrace("export", "--to", "csv", "-o", "calls.csv")
    with open(tmp_path / "calls.csv", newline="") as file:
        row = next(row for row in csv.DictReader(file) if row["function"] == "find")
    assert (row["arguments"], row["result"]) == ("in=\"hello world\", what='w'", '"world"')
    graftrace("export", "--to", "json", "-o", "calls.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert next(row for row in rows if row["function"] == "next")["result"] == "GREEN"
    assert next(row for row in rows if row["function"] == "main")["result"] == "0x0"
    graftrace("export", "--to", "chrome", "-o", "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    found = next(event for event in events if event.get("name") == "add")["args"]
    assert (found["arguments"], found["returns"]) == ("a=1, b=-2", "-1")
    graftrace("export", "--to", "sqlite", "-o", "trace.sqlite")
    with sqlite3.connect(tmp_path / "trace.sqlite") as database:
        assert database.execute("SELECT arguments, result FROM calls JOIN functions ON function = functions.id "
                                "WHERE name = 'fails'").fetchall() == [("error=2", "-2"), ("error=9999", "0xffffd8f1")]
    graftrace("export", "--to", "perfetto", "-o", "trace.perfetto")
    data = (tmp_path / "trace.perfetto").read_bytes()
    assert b"a=1, b=-2" in data and b"in=\"hello world\", what='w'" in data


def test_the_file_is_as_its_format_says(fast, graftrace, tmp_path):
    graftrace("record", "--args", "--retval", "--", fast)
    recording = format_reader.read(tmp_path / "graftrace.data")
    described = {event["number"]: event for event in recording.events}
    numbers = {name: number for number, name in recording.names.items()}
    arguments = described[0x80000000 | numbers["add"]]
    assert [(field["name"], field["type"]) for field in arguments["fields"]] == [("a", "int"), ("b", "int")]
    assert [field["type"] for field in described[0xc0000000 | numbers["next"]]["fields"]] == \
        ["enum color {RED=0,GREEN=5,BLUE=-1}"]


@pytest.mark.parametrize("options, arguments, results", [((), False, False), (("--args",), True, False),
                                                         (("-R", "add"), False, True),
                                                         (("-A", "add@arg1,retval"), True, True)])
def test_a_mount_shows_values_that_are_recorded_and_refuses_others(fast, graftrace, options, arguments, results):
    path = graftrace.directory / "tracing"
    path.mkdir()
    process = graftrace.start("mount", *options, path, "--", "sh", "-c", "read x", stdin=subprocess.PIPE)
    wait_until((path / "trace").exists, "the mount")
    for name, recorded in (("funcgraph-args", arguments), ("func-args", arguments), ("funcgraph-retval", results)):
        assert (path / "options" / name).read_text() == f"{recorded:d}\n"
        (path / "options" / name).write_text("0")
        if recorded:
            (path / "options" / name).write_text("1")
        else:
            with pytest.raises(OSError) as error:
                (path / "options" / name).write_text("1")
            assert error.value.errno == 22
            said = [line for line in (path / "error_log").read_text().splitlines() if "error: " in line][-1]
            assert "not recorded: start with --" in said
        assert (path / "options" / name).read_text() == f"{recorded:d}\n"
    process.stdin.close()
    process.wait(PATIENCE)


def test_names_that_match_no_function_are_told(fast, graftrace):
    done = graftrace("record", "-R", "nosuch;add", "-A", "ad@arg1", "-A", "add@arg1", "--", fast)
    assert re.findall(r"(--\w+ '\w+') matches no function", done.stderr) == ["--return 'nosuch'", "--argument 'ad'"]
    assert "did you mean 'add'?" in done.stderr


PROGRAMS = [(["registers.c", "registers.S"], [], {}), (["ipa.c"], [], {}), (["calls.c"], [], {}),
            (["jump.c"], ["longjmp"], {}), (["jump.c"], ["signal"], {}), (["throw.cc"], ["catch"], {}),
            (["signals.c"], ["fault"], {}), (["forks.c"], ["vfork"], {}), (["forks.c"], ["tree"], {})]


@pytest.mark.parametrize("options", [["-A", "*@arg1,arg2,arg3,arg4,arg5,arg6", "-R", "*@retval"],
                                     ["-A", "*@arg1/s,fparg1,arg9", "-R", "*@retval/s"]], ids=["numbers", "texts"])
@pytest.mark.parametrize("sources, words, how", PROGRAMS,
                         ids=[" ".join([sources[0], *words]) for sources, words, _ in PROGRAMS])
def test_programs_do_what_they_did(sources, words, how, options, tmp_path):
    """Registers, jumps, exceptions, handlers, forks: as without arguments."""
    target = [behaviour.program("unprepared", "target.c")] if sources == ["forks.c"] else []
    behaviour.judge([behaviour.program("unprepared", *sources), *words, *target], tmp_path, *options,
                    way="unprepared", **how)
