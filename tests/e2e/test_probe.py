# SPDX-License-Identifier: MIT
"""Dynamic probes: at entries and in the middle of functions, with what they fetch."""

import re
import subprocess

import pytest

from watched import Looping


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


def test_addresses_of_code_are_functions(plain, graftrace):
    record(graftrace, plain, "handle at=%ip:symbol caller=+0(%sp):symbol none=\\0:symbol stack=$stack:symbol")
    line = fields(graftrace, "handle")[0]
    assert re.fullmatch(r"at=handle\+0x0/0x[0-9a-f]+ caller=outer\+0x[0-9a-f]+/0x[0-9a-f]+ none=0x0 stack=0x7f[0-9a-f]+",
                        line), line


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


SHORT_PROLOGUE = r"""
#include <stdio.h>
struct request { int id; const char *path; };
__attribute__((noinline)) int look_up(struct request *request)
{
	int id = request->id;

	puts(request->path);
	return id * 2;
}
static volatile int calls = 7;
__attribute__((noinline)) int count(void) { return calls++; }
int main(void)
{
	count();
	return look_up(&(struct request){ 3, "apples" }) != 6;
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-Os"])
def test_parameters_are_there_however_short_the_prologue_is(compiler, level, compile, graftrace):
    """Optimized code comes to its second line within the five bytes of a jump at the function's entry."""
    program = compile(SHORT_PROLOGUE, "-g", level, compiler=compiler)
    record(graftrace, program, "look_up request->id request->path:string")
    assert fields(graftrace, "look_up") == ['id=3 path="apples"']
    record(graftrace, program, "count calls")
    assert fields(graftrace, "count") == ["calls=7"]


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


@pytest.fixture
def mounted(plain, graftrace):
    """The program with "loop" and its control files: (run, their directory, the program)."""
    looping = Looping(graftrace, plain, "loop")

    def run(times):
        return re.findall(r" (\w+): \(0x[0-9a-f]+\)(.*)$", looping.text_of(times), re.M)

    yield run, looping.path, plain
    looping.end()


def test_a_probe_is_set_recorded_and_removed_by_its_files(mounted):
    run, path, program = mounted
    (path / "current_tracer").write_text("nop")
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    offset = int(re.search(r"^([0-9a-f]+) T handle$", symbols, re.M)[1], 16)
    (path / "uprobe_events").write_text(f"p:my/hand {program}:{offset:#x} d=%si:s32\n")
    assert (path / "uprobe_events").read_text() == f"p:my/hand {program}:0x{offset:016x} d=%si:s32\n"
    assert "my:hand" in (path / "available_events").read_text().split()
    assert run(2) == []
    (path / "events/my/hand/enable").write_text("1")
    assert run(2) == [("hand", " d=0"), ("hand", " d=1")]
    text = (path / "events/my/hand/format").read_text()
    assert "\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n" in text
    assert 'print fmt: "(%lx) d=%d", REC->__probe_ip, REC->d\n' in text
    for line in ("-:my/hand\n", "-:hand\n"):
        with pytest.raises(OSError) as error, open(path / "dynamic_events", "a") as file:
            file.write(line)
            file.flush()
        assert error.value.errno == 16
    with pytest.raises(OSError) as error:
        (path / "uprobe_events").write_text("")
    assert error.value.errno == 16
    (path / "events/my/hand/enable").write_text("0")
    with open(path / "dynamic_events", "a") as file:
        file.write("p:my/two sum $arg2:u8 # a comment\n")
    assert len((path / "dynamic_events").read_text().splitlines()) == 2
    (path / "events/my/enable").write_text("1")
    assert run(1) == [("hand", " d=0"), ("two", " arg1=2")]
    (path / "events/my/enable").write_text("0")
    with open(path / "dynamic_events", "a") as file:
        file.write("-:my/hand\n")
    assert not (path / "events/my/hand").exists() and (path / "events/my/two/enable").read_text() == "0\n"
    (path / "dynamic_events").write_text("")
    assert (path / "dynamic_events").read_text() == "" and run(1) == []
    assert not (path / "events/my").exists()
    with pytest.raises(OSError) as error, open(path / "dynamic_events", "a") as file:
        file.write("-:my/hand\n")
        file.flush()
    assert error.value.errno == 2


def test_the_list_of_events_follows_each_change_at_once(mounted):
    _run, path, _program = mounted

    def available():
        return set((path / "available_events").read_text().split())

    own = available()
    for name in ("hand", "more", "hand"):
        with open(path / "dynamic_events", "a") as file:
            file.write(f"p:my/{name} handle\n")
        assert available() == own | {f"my:{name}"}
        (path / "set_event").write_text("syscalls:sys_enter_write\n")
        named = available()
        assert named >= own | {f"my:{name}", "syscalls:sys_enter_write", "syscalls:sys_exit_read"}
        (path / "set_event").write_text("\n")
        assert available() == named
        own = named - {f"my:{name}"}  # system calls that were named once stay
        with open(path / "dynamic_events", "a") as file:
            file.write(f"-:my/{name}\n")
        assert available() == own


def test_what_is_wrong_with_a_line_is_under_its_caret(mounted):
    _run, path, _program = mounted
    with pytest.raises(OSError):
        (path / "uprobe_events").write_text("p:my/hand handle %di\np:my/more handle %nosuch\n")
    lines = (path / "error_log").read_text().splitlines()
    assert lines[0].endswith(" error: Invalid register name")
    command = lines[1].removeprefix("  Command: ")
    assert command[lines[2].index("^") - 11:].startswith("%nosuch")
    assert (path / "uprobe_events").read_text().count("\n") == 1
    with pytest.raises(OSError) as error, open(path / "uprobe_events", "a") as file:
        file.write("p:my/hand handle %di\n")
        file.flush()
    assert error.value.errno == 17


def test_a_traced_function_is_probed_while_it_runs(mounted):
    run, path, _program = mounted
    (path / "current_tracer").write_text("function_graph")
    (path / "set_ftrace_filter").write_text("handle")
    (path / "dynamic_events").write_text("p:my/hand handle\np:my/more handle %si:u8\n")
    (path / "events/my/enable").write_text("1")
    run(1)
    lines = [line.split("|  ", 1)[-1].strip() for line in (path / "trace").read_text().splitlines()
             if "|  " in line and not line.startswith("#")]
    assert [re.sub(r"\(0x\w+\)", "()", line) for line in lines] == [
        "handle() {", "/* hand: () */", "/* more: () arg1=0 */", "}"]
    (path / "set_ftrace_filter").write_text("sum")
    assert "hand" in {name for name, _ in run(1)} or "hand:" in (path / "trace").read_text()
    (path / "events/my/enable").write_text("0")
    run(1)
    assert "hand" not in (path / "trace").read_text()
