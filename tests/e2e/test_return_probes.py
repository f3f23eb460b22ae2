# SPDX-License-Identifier: MIT
"""Return probes: every return is met once, with its result, whatever is traced besides and however the function was
left."""

import collections
import re
import subprocess

import pytest

from watched import Looping

PROBED = "leaf recur leaves around last second first even paint middle".split()
# Of 1,000 rounds. even(60) jumps to odd(), and that back.
ROUNDS = {"leaf": 3000, "recur": 4000, "leaves": 500, "around": 1000, "last": 1000, "second": 1000, "first": 1000,
          "even": 31000, "paint": 1000, "middle": 1000}


@pytest.fixture(scope="module", params=["gcc", "clang"])
def program(request, compile):
    return compile("return_probes.c", "-g", "-O2", "-pthread", compiler=request.param)


def events(graftrace):
    return re.findall(r" (\w+): \((0x[0-9a-f]+) <- (0x[0-9a-f]+)\)(?: (.*?))?(?: \*/)?$",
                      graftrace("show").stdout, re.M)


def record(graftrace, program, *probes, options=("-p", "nop"), args=()):
    wanted = [word for probe in probes for word in ("--probe", probe)]
    return graftrace("record", *options, *wanted, "--", program, *args)


@pytest.mark.parametrize("options", [
    ("-p", "nop"), ("-p", "function"), ("-p", "function_graph"), ("-p", "function_graph", "-l", "last", "-l", "second"),
    ("-p", "function_graph", "-N", "middle"), ("-p", "function_graph", "-g", "outer"),
    ("-p", "function_graph", "--retval")],
    ids=lambda options: "-".join(options[1:]).replace("--", "-"))
def test_every_return_is_met_once_whatever_is_traced(program, graftrace, options):
    record(graftrace, program, *(f"{name}={name}%return" for name in PROBED),
           options=options, args=["200", "3"])
    counts = collections.Counter(name for name, *_ in events(graftrace))
    assert counts == {name: 3 * count // 5 for name, count in ROUNDS.items()}


def test_a_hundred_thousand_calls_in_four_threads(program, graftrace):
    record(graftrace, program, "leaf=leaf%return $retval:s64", "recur=recur%return", args=["9000", "4", "0"])
    counts = collections.Counter(name for name, *_ in events(graftrace))
    assert counts == {"leaf": 4 * 27000, "recur": 4 * 36000}


def test_of_calls_that_jump_to_each_other_for_ever_64_are_followed(program, graftrace):
    record(graftrace, program, "even%return", args=["10", "1", "2000"])
    assert len(events(graftrace)) == 650
    done = graftrace("info")
    assert re.search(r"\b9,?360\b", done.stdout + done.stderr)


def test_results_are_of_their_c_type(program, graftrace):
    record(graftrace, program, "paint%return $retval", "word%return $retval:string", "around%return $retval",
           "pair_of%return $retval->second", "narrow%return n=$retval", "recur%return $retval:x8", args=["3"])
    found = collections.defaultdict(list)
    for name, _caller, _function, text in events(graftrace):
        found[name.removesuffix("__return")].append(text)
    assert found["paint"] == ["ret=0", "ret=1", "ret=2"]
    assert found["word"] == ["ret=(fault)", 'ret="some words"', "ret=(fault)"]
    assert found["around"] == ["ret=0", "ret=1000", "ret=-2"]
    assert found["pair_of"] == ["second=0", "second=-1", "second=-2"]
    assert found["narrow"] == ["n=0", "n=1", "n=2"]
    assert found["recur"] == [f"ret={n:#x}" for n in (1, 2, 3, 4)] * 3


def test_functions_that_end_with_a_jump_return_with_what_they_jumped_to(program, graftrace):
    for options in (("-p", "nop"), ("-p", "function_graph")):
        record(graftrace, program, "first%return $retval", "second%return $retval", "last%return $retval",
               options=options, args=["2"])
        lines = events(graftrace)
        assert [(name, text) for name, _, _, text in lines] == [
            (f"{name}__return", f"ret={value}") for value in (117, 118) for name in ("last", "second", "first")]
        # All of them go back to one place.
        assert len({caller for _, caller, *_ in lines}) == 1


def test_the_calls_between_are_where_they_were(program, graftrace):
    """A function that only the probe knows does not count in the depth of others."""
    record(graftrace, program, "middle%return", options=("-p", "function_graph", "-l", "outer", "-l", "leaf"), args=["1"])
    lines = [re.sub(r"\(0x.*?\)", "()", line.split("|", 1)[1].rstrip()) for line in
             graftrace("show").stdout.splitlines() if "|" in line and not line.startswith("#")]
    at = lines.index("  outer() {")
    assert lines[at:at + 6] == ["  outer() {", "    leaf();", "    leaf();", "  /* middle__return: () */",
                                "    leaf();", "  }"]


def test_handlers_between_any_two_instructions(program, graftrace):
    done = record(graftrace, program, "leaf%return", "recur%return", options=("-p", "function_graph"),
                  args=["1000", "2", "10", "5000"])
    counts = collections.Counter(name for name, *_ in events(graftrace))
    assert counts["leaf__return"] == 2 * 1000 * 3 + int(done.stdout)
    assert counts["recur__return"] == 2 * 1000 * 4


THROWS = r"""
#include <stdexcept>
#include <stdio.h>
#define NOINLINE __attribute__((noinline))
struct counted { long *at; ~counted() { ++*at; } };
NOINLINE int inner(int x)
{
	__asm__ volatile("");
	if (x % 3 == 0)
		throw std::runtime_error("x");
	return x;
}
NOINLINE int between(int x, long *ended)
{
	counted one{ ended };
	return inner(x) + 1;
}
NOINLINE int catches(int x, long *ended)
{
	try {
		return between(x, ended);
	} catch (const std::exception &) {
		return -1;
	}
}
int main()
{
	long sum = 0, ended = 0;
	for (int i = 0; i < 3000; i++)
		sum += catches(i, &ended);
	printf("%ld %ld\n", sum, ended);
}
"""


def test_what_an_exception_leaves_has_not_returned(compile, graftrace):
    program = compile(THROWS, "-O2", "-g", compiler="g++", suffix=".cc")
    for options in (("-p", "nop"), ("-p", "function_graph")):
        done = record(graftrace, program, "inner%return $retval", "between%return $retval", "catches%return $retval",
                      options=options)
        assert done.stdout == subprocess.run([program], capture_output=True, text=True, check=True).stdout
        found = collections.defaultdict(list)
        for name, _caller, _function, text in events(graftrace):
            found[name.removesuffix("__return")].append(int(text.removeprefix("ret=")))
        assert found["inner"] == [n for n in range(3000) if n % 3]
        assert found["between"] == [n + 1 for n in range(3000) if n % 3]
        assert found["catches"] == [n + 1 if n % 3 else -1 for n in range(3000)]


def test_what_cannot_be_met_is_said(program, graftrace):
    for probe, words in (("work+4%return", "%return wants a function alone"),
                         ("leaf%return $arg1", "Invalid $-variable specified"),
                         ("leaf $retval", "$retval is not available on probe"),
                         ("handler%return $retval", "the function returns nothing"),
                         ("r:a/b {program}:leaf%returns", "Invalid probed address suffix")):
        done = graftrace("record", "--probe", probe.format(program=program), "--", program, code=1)
        assert words in done.stderr, probe
    said = [graftrace("record", "--probe", f"r:a/b {program}:outer+{offset}", "--", program, code=1).stderr
            for offset in range(1, 12)]
    assert all("Retprobe address must be an function entry" in text or "instruction boundary" in text for text in said)
    assert any("Retprobe address must be an function entry" in text for text in said)


ASKS = r"""
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
	static jmp_buf place;
	for (int i = 0; i < 500; i++) {
		if (setjmp(place) == 0 && i % 2)
			longjmp(place, 1);
		if (!getenv(i % 5 ? "WORDS" : "NO_SUCH_WORDS") != !(i % 5))
			return 1;
	}
	return 0;
}
"""


def test_functions_of_a_library_that_is_not_traced(compile, graftrace):
    program = compile(ASKS, "-O2")
    libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    library = re.search(r"=> (\S*libc\.so\S*)", libraries)[1]
    for options in (("-p", "nop"), ("-p", "function_graph")):
        graftrace("record", *options, "--probe", f"r:c/get {library}:getenv ret=+0($retval):string", "--", program,
                  env={"WORDS": "of the environment"})
        assert [text for name, _, _, text in events(graftrace) if name == "get"] == [
            'ret="of the environment"' if i % 5 else "ret=(fault)" for i in range(500)]
        assert "getenv()" not in graftrace("show").stdout


@pytest.fixture
def mounted(program, graftrace):
    looping = Looping(graftrace, program, "loop")

    def run(times):
        return re.findall(r" (\w+): \(0x[0-9a-f]+ <- 0x[0-9a-f]+\)(.*)$", looping.text_of(times), re.M)

    yield run, looping.path, program
    looping.end()


def test_a_return_probe_comes_and_goes_while_the_program_runs(mounted):
    run, path, program = mounted
    (path / "current_tracer").write_text("nop")
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    offset = int(re.search(r"^([0-9a-f]+) T around$", symbols, re.M)[1], 16)
    (path / "uprobe_events").write_text(f"r:my/back {program}:{offset:#x} ret=$retval:s32\n")
    assert (path / "uprobe_events").read_text() == f"r:my/back {program}:0x{offset:016x} ret=$retval:s32\n"
    assert run(2) == []
    (path / "events/my/back/enable").write_text("1")
    assert run(3) == [("back", " ret=0"), ("back", " ret=1000"), ("back", " ret=-2")]
    text = (path / "events/my/back/format").read_text()
    assert 'print fmt: "(%lx <- %lx) ret=%d", REC->__probe_func, REC->__probe_ret_ip, REC->ret\n' in text
    with open(path / "dynamic_events", "a") as file:
        file.write("p:my/there leaves%return $retval:s32\np:my/entry leaves x=%di:s32\n")
    (path / "events/my/enable").write_text("1")
    assert run(2) == [("there", " arg1=0"), ("back", " ret=0"), ("back", " ret=1000")]
    assert (path / "trace").read_text().count(" entry: (") == 2
    (path / "current_tracer").write_text("function_graph")
    run(3)
    text = (path / "trace").read_text()
    assert [text.count(f"/* {name}: (") for name in ("back", "there", "entry")] == [3, 2, 3]
    (path / "events/my/back/enable").write_text("0")
    run(3)
    text = (path / "trace").read_text()
    assert [text.count(f"/* {name}: (") for name in ("back", "there", "entry")] == [0, 2, 3]
    # 3 rounds, 2 and 2; tracing on or off.
    before = dict(re.findall(rf"^  {re.escape(str(program))} (\w+) +(\d+)$", (path / "uprobe_profile").read_text(), re.M))
    (path / "tracing_on").write_text("0")
    run(4)
    (path / "tracing_on").write_text("1")
    after = dict(re.findall(r" (\w+) +(\d+)$", (path / "uprobe_profile").read_text(), re.M))
    assert before == {"back": "8", "there": "5", "entry": "8"}
    assert after == {"back": "8", "there": "7", "entry": "12"}
    (path / "events/my/enable").write_text("0")
    (path / "current_tracer").write_text("nop")
    (path / "dynamic_events").write_text("")
    assert run(1) == [] and (path / "dynamic_events").read_text() == ""
