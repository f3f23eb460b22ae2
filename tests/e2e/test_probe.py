# SPDX-License-Identifier: MIT
"""Dynamic probes: at entries and in the middle of functions, with what they fetch."""

import re
import subprocess

import pytest


@pytest.fixture(scope="module", params=["gcc-0", "gcc", "clang"])
def program(request, compile):
    compiler, level = {"gcc-0": ("gcc", "-O0"), "gcc": ("gcc", "-O2"), "clang": ("clang", "-O2")}[request.param]
    return compile("probes.c", "-g", level, "-pthread", compiler=compiler)


@pytest.fixture(scope="module")
def plain(compile):
    return compile("probes.c", "-g", "-O0", "-pthread")


def fields(graftrace, event):
    """Of each record of the event what stands behind its place."""
    return re.findall(rf" {event}: \(0x[0-9a-f]+\)(?: (.*))?$", graftrace("show").stdout, re.M)


def record(graftrace, program, *probes, options=(), args=()):
    wanted = [word for probe in probes for word in ("--probe", probe)]
    return graftrace("record", *options, *wanted, "--", program, *args)


def test_registers_memory_and_texts_at_an_entry(program, graftrace):
    done = record(graftrace, program, 'handle id=+0(%di):s32 depth=%si:s32 p=+0(+8(%di)):string $comm who=\\"me"')
    assert done.stdout == subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert fields(graftrace, "handle") == [
        f'id={n} depth={n} p={p} arg4="{program.name[:15]}" who="me"' for n, p in
        enumerate(["(fault)", '"/some/path"', '"/some/path"', "(fault)"])]


def test_every_kind_of_fetch(program, graftrace):
    record(graftrace, program, "handle a=+0(+8(%di)):x8 b=%si:u8 c=%si:x16 d=+16(%di):char e=+16(%di):u8[5] "
                               "f=+56(%di):s64[3] g=+88(%di):string[2] h=+48(%di):b3@0/32 i=+48(%di):b5@3/32 "
                               r"j=\-3:s32 k=+0(+40(%di)):ustring l=+0(+8(+40(%di)))")
    lines = fields(graftrace, "handle")
    assert lines[1] == ("a=0x2f b=1 c=0x1 d='f' e={102,105,114,115,116} f={1,-2,3} g={\"one\",\"two\"} h=5 i=17 "
                        'j=-3 k="inner" l=(fault)')
    assert lines[0].startswith("a=(fault) b=0 ")


def test_arguments_by_number_and_the_stack(program, graftrace):
    record(graftrace, program, "sum $arg1:s64 $arg2:s64 $arg6:s64 $arg7:s64 $arg8:s64 s=$stack1 t=+8($stack)",
           options=["-p", "function_graph"])
    lines = re.findall(r"sum: \(0x[0-9a-f]+\) (.*?) \*/", graftrace("show").stdout)
    assert lines == [
        f"arg1={n} arg2=2 arg3=6 arg4=7 arg5=8 s=0x7 t=0x7" for n in range(4)]


def test_a_traced_function_is_probed_inside_its_call(program, graftrace):
    record(graftrace, program, "handle", options=["-p", "function_graph"])
    lines = [line.split("|  ", 1)[-1].strip() for line in graftrace("show").stdout.splitlines() if "|  " in line]
    at = [i for i, line in enumerate(lines) if line.startswith("/* handle:")]
    assert len(at) == 4 and all(lines[i - 1] == "handle() {" and lines[i + 1].startswith("}") for i in at)


def test_variables_by_their_names(plain, graftrace):
    record(graftrace, plain, "handle depth request->id request->path:string request->first.name:string "
                             "request->next->number request->low high=request->high request->array[1] total")
    assert fields(graftrace, "handle")[:2] == [
        'depth=0 id=0 path=(fault) name="first" number=0 low=5 high=17 request__array_1_=-2 total=0',
        'depth=1 id=1 path="/some/path" name="first" number=1 low=5 high=17 request__array_1_=-2 total=0']
    record(graftrace, plain, "one=handle $vars", "two=sum $params")
    assert re.fullmatch(r"request=0x[0-9a-f]+ depth=0 twice=-?\d+", fields(graftrace, "one")[0])
    assert fields(graftrace, "two")[1] == "a=1 b=2 c=3 d=4 e=5 f=6 g=7 h=8"


def test_places_by_their_lines(plain, graftrace):
    record(graftrace, plain, "handle:4 twice", "at=probes.c:32 depth")
    assert fields(graftrace, "handle_L4") == ["twice=0", "twice=2", "twice=4", "twice=6"]
    assert len(fields(graftrace, "at")) in (4, 1)


def test_a_place_in_a_loop_is_met_in_each_round(program, graftrace):
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--disassemble=scale", program],
                          capture_output=True, text=True, check=True).stdout
    start = int(re.search(r"^([0-9a-f]+) <scale>:", code, re.M)[1], 16)
    places = [int(m[1], 16) - start for m in re.finditer(r"^ *([0-9a-f]+):\t(?:imul|lea|mov|add)", code, re.M)]
    plain = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    met = set()
    for place in places:
        done = record(graftrace, program, f"e{place:x}=scale+{place}")
        assert done.stdout == plain
        met.add(len(fields(graftrace, f"e{place:x}")))
    assert 16 in met or 4 in met


def test_what_cannot_be_probed_is_said(program, graftrace):
    for probe, words in (("nosuch", "Invalid probed address or symbol"),
                         ("handle nosuch", "there is no variable 'nosuch'"),
                         ("handle %nosuch", "Invalid register name"),
                         (f"p:a/b {program}:0x10", "Invalid uprobe offset"),
                         ("p:a/b /nosuch:0x10", "Failed to find the given file")):
        done = graftrace("record", "--probe", probe, "--", program, code=1)
        assert words in done.stderr and done.stdout == ""


def test_threads_lose_no_probe(program, graftrace):
    record(graftrace, program, "outer n=%di:s32", "sum", args=["threads"])
    assert sorted(fields(graftrace, "outer")) == sorted(f"n={n}" for n in range(1000) for _ in range(4))
    assert len(fields(graftrace, "sum")) == 4000
