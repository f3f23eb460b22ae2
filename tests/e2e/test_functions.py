# SPDX-License-Identifier: MIT
"""graftrace functions: what can be traced, how, and what cannot and why."""

import csv
import io
import json
import shutil
import subprocess

import pytest

SOURCE = """#include <stdio.h>
__attribute__((noinline)) int leaf(int x) { return x + 1; }
__attribute__((noinline)) int middle(int x) { return leaf(x) * 2; }
int main(void) { printf("%d\\n", middle(3)); return 0; }
"""
OWN = ("leaf", "middle", "main")


def rows(graftrace, *words):
    done = graftrace("functions", "--format", "csv", *words)
    return list(csv.DictReader(io.StringIO(done.stdout)))


def own(listed):
    """The program's own functions, by name."""
    return {row["function"]: row for row in listed if row["function"] in OWN}


@pytest.mark.parametrize("flags, way, prepared", [
    (["-fpatchable-function-entry=5"], "nops", "patchable"),
    (["-fpatchable-function-entry=16"], "nops", "patchable"),
    (["-fpatchable-function-entry=5", "-fcf-protection"], "nops", "patchable"),
    (["-fpatchable-function-entry=7,5"], "moved", "patchable"),
    (["-pg", "-mfentry"], "fentry", "fentry"),
    (["-pg", "-mfentry", "-static"], "fentry", "fentry"),
    (["-pg"], "moved", "mcount"),
    (["-finstrument-functions"], "moved", "cyg"),
    (["-static"], "moved", "none"),
    (["-no-pie"], "moved", "none"),
    ([], "moved", "none"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else value)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_each_way_of_preparing_is_told(compiler, flags, way, prepared, graftrace, compile):
    found = own(rows(graftrace, compile(SOURCE, "-O2", *flags, compiler=compiler)))
    assert set(found) == set(OWN)
    for name, row in found.items():
        if name == "leaf" and way == "moved":  # 4 bytes long
            assert row["way"] in ("moved", "padding", "short")
        else:
            assert row["way"] == way, row
        assert row["prepared"] == prepared, row
        assert row["traced"] == "graph" and row["reason"] == ""


def test_nops_of_mnop_mcount_are_found(graftrace, compile):
    found = own(rows(graftrace, compile(SOURCE, "-O2", "-pg", "-mfentry", "-mnop-mcount",
                                        "-fno-pie", "-no-pie")))
    assert {(row["way"], row["prepared"]) for row in found.values()} == {("nops", "patchable")}


@pytest.mark.parametrize("kind", ["-pie", "-no-pie"])
def test_a_stripped_program_has_its_functions_and_main_its_name(graftrace, compile, tmp_path, kind):
    program = compile(SOURCE, "-O2", kind, "-fno-pie" if kind == "-no-pie" else "-fpie")
    whole = {row["address"]: row for row in rows(graftrace, program)
             if row["function"] in OWN}
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", stripped, program], check=True)
    found = {row["address"]: row for row in rows(graftrace, stripped)}
    assert set(whole) <= set(found)
    for address in whole:
        assert found[address]["way"] == whole[address]["way"]
        assert found[address]["function"] == ("main" if whole[address]["function"] == "main" else f"stripped+{address}")


def test_names_are_demangled_unless_told_otherwise(graftrace, compile):
    source = """#include <vector>
namespace space { struct thing { int grow(std::vector<int> &v); }; }
__attribute__((noinline)) int space::thing::grow(std::vector<int> &v) { v.push_back(1); return 2; }
int main() { std::vector<int> v; space::thing t; return t.grow(v) - 2; }
"""
    program = compile(source, "-O0", compiler="g++", suffix=".cc")
    names = {row["function"] for row in rows(graftrace, program)}
    assert "space::thing::grow" in names
    raw = {row["function"] for row in rows(graftrace, "--no-demangle", program)}
    assert "_ZN5space5thing4growERSt6vectorIiSaIiEE" in raw


@pytest.mark.parametrize("mangling", ["legacy", "v0"])
def test_rust_names_are_demangled(mangling, graftrace, tmp_path):
    source = tmp_path / "crab.rs"
    source.write_text("mod inner { #[inline(never)] pub fn walk(x: u32) -> u32 { x + 1 } }\n"
                      "fn main() { std::process::exit(inner::walk(41) as i32 - 42) }\n")
    program = tmp_path / "crab"
    extra = ["-C", "symbol-mangling-version=v0"] if mangling == "v0" else []
    subprocess.run(["rustc", "-C", "debuginfo=0", *extra, "-o", program, source], check=True,
                   capture_output=True, timeout=120)
    assert "crab::inner::walk" in {row["function"] for row in rows(graftrace, program)}


def test_what_cannot_be_traced_has_a_reason(graftrace, compile):
    listed = rows(graftrace, compile(SOURCE, "-O2", "-static"))
    for row in listed:
        assert (row["traced"] == "graph") == (row["reason"] == ""), row
        assert (row["traced"] == "no") == (row["way"] == "none"), row
        assert row["prepared"] == "none", row
    by_name = {row["function"]: row for row in listed}
    assert by_name["_start"]["traced"] == "no"
    assert by_name["_setjmp"]["traced"] == "entry" and by_name["_setjmp"]["reason"] == "returns twice"
    assert "IFUNC" in by_name["strlen"]["reason"]


def test_a_function_that_looks_at_its_return_address_is_entry_only(graftrace, compile):
    source = """#include <stdio.h>
#include <alloca.h>
#include <string.h>
__attribute__((noinline)) void *who(void) { return __builtin_return_address(0); }
__attribute__((noinline)) void *who_deep(int n) { char b[100]; memset(b, n, 100);
    printf("%d", b[n & 31]); return __builtin_return_address(0); }
__attribute__((noinline)) int stack_arguments(int a, int b, int c, int d, int e, int f, int g, int h)
    { return a + b + c + d + e + f + g * h; }
__attribute__((noinline)) int variable(int n) { char b[n]; memset(b, n, n); return b[n / 2]; }
__attribute__((noinline)) int taken(int n) { char *b = alloca(n); memset(b, n, n); return b[n / 2]; }
int main(int c, char **v) { printf("%p %p %d %d %d\\n", who(), who_deep(c),
    stack_arguments(c, c, c, c, c, c, c, c), variable(c + 8), taken(c + 8)); return 0; }
"""
    for level in ("-O0", "-O1", "-O2", "-Os"):
        for compiler in ("gcc", "clang"):
            listed = {row["function"]: row
                      for row in rows(graftrace, compile(source, level, compiler=compiler))}
            for name in ("who", "who_deep"):
                assert listed[name]["traced"] == "entry", (compiler, level, name)
                assert "return address" in listed[name]["reason"]
            for name in ("stack_arguments", "variable", "taken", "main"):
                assert listed[name]["traced"] == "graph", (compiler, level, name, listed[name])


def test_own_libraries_are_listed_and_the_systems_with_libs(graftrace, compile, tmp_path):
    library = tmp_path / "libown.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-xc", "-", "-o", library], check=True,
                   input=b"int own(int x) { return x * 3; }\n")
    program = tmp_path / "prog"
    subprocess.run(["gcc", "-xc", "-", "-o", program, "-L", tmp_path, "-lown",
                    "-Wl,-rpath,$ORIGIN"], check=True,
                   input=b"int own(int); int main(void) { return own(0); }\n")
    listed = rows(graftrace, program)
    assert {row["object"] for row in listed} == {str(program), str(library)}
    assert "own" in {row["function"] for row in listed}
    objects = {row["object"].rsplit("/", 1)[-1] for row in rows(graftrace, "--libs", program)}
    assert {"prog", "libown.so", "libc.so.6", "ld-linux-x86-64.so.2"} <= objects


def test_json_and_csv_and_text_agree(graftrace, compile):
    program = compile(SOURCE, "-O2", "-fpatchable-function-entry=5")
    listed = rows(graftrace, program)
    data = json.loads(graftrace("functions", "--format=json", program).stdout)
    functions = [function for object in data["objects"] for function in object["functions"]]
    assert [(f["name"], f["address"], f["way"], f["reason"]) for f in functions] == [
        (row["function"], int(row["address"], 16), row["way"], row["reason"]) for row in listed]
    summary = data["summary"]
    apart = sum(row["reason"].startswith(("runs before or after", "is a part", "is a linkage")) for row in listed)
    assert apart and summary["functions"] == len(listed) - apart
    assert summary["parts"] + summary["start"] + summary["linkage"] == apart
    assert summary["traceable"] == sum(row["traced"] != "no" for row in listed)
    assert summary["prepared"] == 3
    assert len(data["objects"][0]["build_id"]) == 40
    text = graftrace("functions", program).stdout
    assert (f"in all: {len(listed) - apart} functions, 3 can be traced (nops 3); 3 are prepared by the compiler; "
            f"not counted: {apart} of the program's start and end\n") in text


def test_parts_of_functions_are_counted_apart(graftrace, compile):
    program = compile("""int many(int *list, int n) {
        if (__builtin_expect(n < 0, 0)) {
            for (int i = 0; i < -n; i++) __builtin_printf("%d %d\\n", i, list[0]);
            __builtin_abort(); }
        return list[n]; }
        int main(int argc, char **argv) { int list[4] = { 0 }; return many(list, argc & 3) + (argv == 0); }""",
                      "-O2", "-fno-inline")
    data = json.loads(graftrace("functions", "--format=json", program).stdout)["summary"]
    assert data["parts"] == 1 and data["functions"] == data["traceable"] == 2
    assert "2 functions, 2 can be traced" in graftrace("functions", program).stdout
    assert "not counted: 1 part of functions, " in graftrace("functions", program).stdout


def test_a_name_is_looked_for_in_the_path(graftrace):
    assert {row["object"] for row in rows(graftrace, "xz")} == {shutil.which("xz")}


@pytest.mark.parametrize("make, words", [
    (lambda path: path.write_bytes(b""), "is empty"),
    (lambda path: path.write_text("#!/bin/sh\necho\n"), "is a script"),
    (lambda path: path.write_text("just a text\n"), "is no ELF file"),
    (lambda path: path.write_bytes(b"\x7fELF\x01\x01\x01" + bytes(60)), "32-bit"),
    (lambda path: path.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xb7\x00" + bytes(60)),
     "another machine"),
    (lambda path: path.write_bytes(b"\x7fELF\x02\x01\x01\x00"), "cut at byte 8"),
    (lambda path: path.mkdir(), "is a directory"),
    (lambda path: None, "No such file"),
], ids=["empty", "script", "text", "32-bit", "aarch64", "cut header", "directory", "missing"])
def test_bad_input_is_refused_in_words(make, words, graftrace, tmp_path):
    path = tmp_path / "bad"
    make(path)
    done = graftrace("functions", path, code=1)
    assert words in done.stderr and "bad" in done.stderr
    assert done.stderr.startswith("graftrace functions: ") and done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_cut_program_is_refused_with_the_offset(graftrace, compile, tmp_path):
    whole = compile(SOURCE, "-O2").read_bytes()
    path = tmp_path / "cut"
    for length in (64, 100, 1000, 5000, len(whole) // 2):
        path.write_bytes(whole[:length])
        done = graftrace("functions", path, code=1)
        assert "byte" in done.stderr and "end" in done.stderr, (length, done.stderr)


def test_a_relocatable_file_is_refused(graftrace, tmp_path):
    subprocess.run(["gcc", "-c", "-xc", "-", "-o", tmp_path / "part.o"], check=True,
                   input=b"int x;\n")
    assert "link it" in graftrace("functions", "part.o", code=1).stderr


def test_a_wrong_command_line_is_usage(graftrace):
    assert "which program" in graftrace("functions", code=2).stderr
    assert "one program" in graftrace("functions", "a", "b", code=2).stderr
    assert "no format 'xml'" in graftrace("functions", "--format", "xml", "a", code=2).stderr
    graftrace("functions", "--nothing", "a", code=2)


def test_cold_parts_are_no_functions_stripped_or_not(graftrace, tmp_path):
    """gcc moves what is unlikely elsewhere, in the middle of the function's frame."""
    source = """#include <stdio.h>
#include <stdlib.h>
__attribute__((cold, noinline)) void complain(int x) { printf("%d\\n", x); }
__attribute__((noinline)) int busy(int a, int b, int *c) {
    int sum = 0; char space[64];
    for (int i = 0; i < a; i++) {
        if (__builtin_expect(c[i] > b, 0)) { complain(i); complain(c[i]); sum -= 3; }
        else sum += sprintf(space, "%d", c[i] * 3);
    }
    return sum; }
__attribute__((noinline)) int bare(int a) { if (a > 90) { complain(a); abort(); } return a * 3; }
int main(int n, char **v) { int c[9] = { 0 }; return busy(n, 5, c) + bare(n) < 0; }
"""
    program, stripped = tmp_path / "prog", tmp_path / "stripped"
    subprocess.run(["gcc", "-O2", "-xc", "-", "-o", program], input=source.encode(), check=True)
    subprocess.run(["strip", "-o", stripped, program], check=True)
    parts = {row["address"] for row in rows(graftrace, program) if ".cold" in row["function"]}
    assert parts
    for path in (program, stripped):
        found = {row["address"]: row for row in rows(graftrace, path)}
        for address in parts:
            assert found[address]["reason"] == "is a part of another function"
        assert sum(row["traced"] == "graph" for row in found.values()) == 4


PIECES = r"""
__asm__(".text\n.type leaf, @function\nleaf: .cfi_startproc\n push %rbx\n.cfi_def_cfa_offset 16\n"
        " mov %rdi, -8(%rsp)\n test %rdi, %rdi\n jne leaf.beyond\n xor %eax, %eax\n pop %rbx\n ret\n.cfi_endproc\n"
        ".size leaf, . - leaf\n.type bare, @function\nbare: .cfi_startproc\n mov %rdi, -8(%rsp)\n"
        " test %rdi, %rdi\n jne bare.warm\n xor %eax, %eax\n ret\n.cfi_endproc\n.size bare, . - bare\n"
        ".p2align 4\n.type leaf.beyond, @function\nleaf.beyond: .cfi_startproc\n.cfi_def_cfa_offset 16\n"
        " imul $3, %rdi, %rax\n add -8(%rsp), %rax\n pop %rbx\n ret\n.cfi_endproc\n.size leaf.beyond, . - leaf.beyond\n"
        ".p2align 4\n.type bare.warm, @function\nbare.warm: .cfi_startproc\n imul $5, %rdi, %rax\n"
        " add -8(%rsp), %rax\n ret\n.cfi_endproc\n.size bare.warm, . - bare.warm\n");
long leaf(long), bare(long);
int main(void) { return leaf(10) + bare(3); }
"""


def test_what_bolt_splits_off_is_no_function(graftrace, compile):
    """The rest of a leaf function, with a name of its own, uses what lies below the stack pointer."""
    program = compile(PIECES, "-O2")
    found = {row["function"]: row for row in rows(graftrace, program)}
    for name in ("leaf.beyond", "bare.warm"):
        assert found[name]["reason"] == "is a part of another function"
    graftrace("record", "--", program, code=58)


def test_engines_that_walk_their_stack_are_entry_only(graftrace, compile):
    source = """namespace v8 { struct Isolate { int enter(int x); }; }
__attribute__((noinline)) int v8::Isolate::enter(int x) { volatile int y = x; return y * 3; }
int main(int n, char **) { return v8::Isolate().enter(n) == 0; }
"""
    program = compile(source, "-O2", compiler="g++", suffix=".cc")
    listed = {row["function"]: row for row in rows(graftrace, program)}
    for name in ("main", "v8::Isolate::enter"):
        assert listed[name]["traced"] == "entry" and "V8" in listed[name]["reason"]


def test_what_ocaml_has_compiled_is_left_alone_and_the_rest_is_not(graftrace, compile):
    names = ("camlFirst__code_begin", "camlLast__code_end", "caml_system__code_begin", "caml_system__code_end")
    marks = [f'__asm__(".globl {name}\\n{name}:");\n' for name in names]
    source = (SOURCE + marks[0] + '__attribute__((used, noinline)) int caml_apply2(int x) { return x * 7 + 1; }\n' + marks[1]
              + marks[2] + '__attribute__((used, noinline)) int caml_c_call(int x) { return x * 9 + 1; }\n' + marks[3])
    program = compile(source, "-O2", "-fno-toplevel-reorder", "-fno-reorder-functions")
    listed = {row["function"]: row for row in rows(graftrace, program)}
    for name in ("caml_apply2", "caml_c_call"):
        assert listed[name]["traced"] == "no" and "OCaml" in listed[name]["reason"]
    assert {row["traced"] for row in own(listed.values()).values()} >= {"graph"}


def test_what_mono_has_compiled_is_left_alone_and_its_engine_is_entry_only(graftrace, compile):
    image = compile(SOURCE + "int mono_aot_file_info = 1;\n", "-O2", "-rdynamic")
    assert {(row["traced"], "Mono" in row["reason"]) for row in own(rows(graftrace, image)).values()} == {("no", True)}
    engine = compile(SOURCE + "int mono_jit_init(void) { return 1; }\n", "-O2", "-rdynamic")
    assert {(row["traced"], "Mono" in row["reason"]) for row in own(rows(graftrace, engine)).values()} == {("entry", True)}


def test_go_programs_are_left_alone_in_words(graftrace, compile):
    program = compile(SOURCE + '__asm__(".section .gopclntab, \\"a\\"; .quad 1; .text");\n', "-O2")
    listed = own(rows(graftrace, program))
    assert {(row["traced"], "Go" in row["reason"]) for row in listed.values()} == {("no", True)}


def split(compile, tmp_path, source=SOURCE, *flags):
    """A stripped program and a file with all of its names: (program, names)."""
    program = compile(source, "-O2", "-Wl,--build-id", *flags)
    stripped, names = tmp_path / "stripped", tmp_path / "names.debug"
    subprocess.run(["objcopy", "--only-keep-debug", program, names], check=True)
    subprocess.run(["strip", "-o", stripped, program], check=True)
    return stripped, names


def build_id(path):
    listing = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True)
    return listing.stdout.split("Build ID: ")[1].split()[0]


def test_names_come_from_a_debug_file_with_the_same_build_id(graftrace, compile, tmp_path, monkeypatch):
    stripped, names = split(compile, tmp_path)
    assert set(own(rows(graftrace, stripped))) == {"main"}  # as _start names it
    identity = build_id(stripped)
    place = tmp_path / "debug" / ".build-id" / identity[:2] / f"{identity[2:]}.debug"
    place.parent.mkdir(parents=True)
    shutil.copy(names, place)
    monkeypatch.setenv("GRAFTRACE_DEBUG_DIRECTORY", str(tmp_path / "debug"))
    assert set(own(rows(graftrace, stripped))) == set(OWN)
    # One that is broken, or of another program, is as none.
    place.write_bytes(names.read_bytes()[:-300])
    assert set(own(rows(graftrace, stripped))) == {"main"}  # as _start names it
    other, other_names = split(compile, tmp_path, SOURCE.replace("* 2", "* 3"))
    assert build_id(other) != identity
    shutil.copy(other_names, place)
    assert set(own(rows(graftrace, stripped))) == {"main"}  # as _start names it


def test_names_come_from_what_debuginfod_has_fetched(graftrace, compile, tmp_path, monkeypatch):
    stripped, names = split(compile, tmp_path)
    monkeypatch.setenv("GRAFTRACE_DEBUG_DIRECTORY", str(tmp_path / "debug"))
    place = tmp_path / "cache" / "debuginfod_client" / build_id(stripped) / "debuginfo"
    place.parent.mkdir(parents=True)
    shutil.copy(names, place)
    assert set(own(rows(graftrace, stripped))) == {"main"}  # as _start names it
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert set(own(rows(graftrace, stripped))) == set(OWN)
    # Where others may write, nothing is believed.
    place.parent.parent.chmod(0o777)
    assert set(own(rows(graftrace, stripped))) == {"main"}  # as _start names it
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(place.parent.parent))
    place.parent.parent.chmod(0o755)
    assert set(own(rows(graftrace, stripped))) == set(OWN)


def test_names_come_from_inside_a_stripped_program(graftrace, compile, tmp_path):
    stripped, names = split(compile, tmp_path)
    subprocess.run(["xz", "-k", names], check=True)
    packed = tmp_path / "packed"
    subprocess.run(["objcopy", f"--add-section=.gnu_debugdata={names}.xz", stripped, packed], check=True)
    assert set(own(rows(graftrace, packed))) == set(OWN)
    (tmp_path / "names.debug.xz").write_bytes(b"\xfd7zXZ\0" + bytes(200))
    subprocess.run(["objcopy", f"--add-section=.gnu_debugdata={names}.xz", stripped, packed], check=True)
    assert set(own(rows(graftrace, packed))) == {"main"}  # as _start names it


@pytest.fixture
def running(compile):
    source = SOURCE.replace("int main(void) {", "#include <unistd.h>\nint main(void) { puts(\"up\"); "
                            "fflush(stdout); pause();")
    process = subprocess.Popen([compile(source, "-O2")], stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()


def test_the_functions_of_a_process_are_listed(running, graftrace):
    listed = rows(graftrace, "-P", str(running.pid))
    assert set(own(listed)) == set(OWN)
    assert {row["traced"] for row in own(listed).values()} == {"graph"}
    objects = {row["object"].rsplit("/", 1)[-1] for row in rows(graftrace, "--libs", "-P", str(running.pid))}
    assert {"libc.so.6", "ld-linux-x86-64.so.2"} <= objects


def test_what_a_debugger_has_put_into_a_process_is_told(running, graftrace):
    listed = own(rows(graftrace, "-P", str(running.pid)))
    with open(f"/proc/{running.pid}/maps") as maps:
        start = next(int(line.split("-")[0], 16) - int(line.split()[2], 16) for line in maps
                     if "r-xp" in line)
    with open(f"/proc/{running.pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(start + int(listed["middle"]["address"], 16) + 1)
        memory.write(b"\xcc")
    listed = own(rows(graftrace, "-P", str(running.pid)))
    assert listed["middle"]["traced"] == "no" and "debugger" in listed["middle"]["reason"]
    assert listed["leaf"]["traced"] == "graph"


def test_a_process_that_is_none_is_refused_in_words(graftrace):
    with subprocess.Popen(["true"]) as ended:
        pass
    assert str(ended.pid) in graftrace("functions", "-P", ended.pid, code=1).stderr
    assert "--pid" in graftrace("functions", "-P", "one", code=2).stderr
    assert "not both" in graftrace("functions", "-P", "1", "prog", code=2).stderr


def test_a_recording_has_the_linkers_names_if_asked(graftrace, compile):
    source = """namespace inner { __attribute__((noinline)) int twice(int x) { volatile int y = x; return y * 2; } }
int main(int n, char **) { return inner::twice(n) != 2; }
"""
    program = compile(source, "-O2", compiler="g++", suffix=".cc")
    for words, name, other in (([], "inner::twice", "_ZN5inner5twiceEi"),
                               (["--no-demangle"], "_ZN5inner5twiceEi", "inner::twice"),
                               (["--no-demangle", "-l", "inner::*"], "_ZN5inner5twiceEi", "main")):
        graftrace("record", *words, "--", program)
        report = graftrace("report").stdout
        assert f" {name}\n" in report and f" {other}\n" not in report
