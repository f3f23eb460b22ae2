# SPDX-License-Identifier: MIT
"""Real programs run as before with every function patched, none of them made for it.

patch_all.c is preloaded: it plans the program (and libraries), moves, patches, counts.
"""

import json
import os
import re
import shutil
import subprocess

import pytest

from conftest import BUILD, PATIENCE

LIBRARY = BUILD / "tests" / "e2e" / "libpatch_all.so"
LIBRARIES = "libc.so:libcrypto:libstdc:liblzma:libsqlite3:libzstd:libperl:libz.so:libm.so:libgcc_s"

PERL = """my %h; $h{$_ % 7} += $_ for 1..5000; print "$_ $h{$_}\\n" for sort keys %h;
print join(",", map { sprintf "%x", $_ } 1..10), "\\n"; eval { die "x\\n" }; print $@;"""
PYTHON = """import json, re, decimal
print(sum(i * i for i in range(50000)), json.dumps({"a": [1, 2.5, None]}))
print(re.sub("a+", "b", "caaat"), decimal.Decimal(1) / 7, sorted(map(str, range(300)))[:10])
try:
    1 / 0
except ZeroDivisionError as error:
    print(error)
"""
BASH = """for i in {1..300}; do x=$((i * 3)); [[ $x =~ 9 ]] && echo $x; done
declare -A m; m[a]=1; echo "${m[@]}"; f() { local y=$1; echo ${y//a/b}; }; f banana; echo $(f papaya)"""
C_SOURCE = """#include <stdio.h>
struct s { int a; double b[3]; };
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(void) { struct s s = { fib(20), { 1, 2, 3 } }; printf("%d %g\\n", s.a, s.b[1]); return 0; }
"""


def cc1():
    name = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True,
                          check=True).stdout.strip()
    return name


# Program, arguments, functions that must at least be reached.
RUNS = {
    "bash": (["/bin/bash", "-c", BASH], 300),
    "python": (["/usr/bin/python3", "-c", PYTHON], 1000),
    "perl": (["/usr/bin/perl", "-e", PERL], 300),
    "git": (["/usr/bin/git", "--help"], 20),
    "xz": (["/usr/bin/xz", "-k", "-c", "input"], 20),
    "gdb": (["/usr/bin/gdb", "--batch", "-ex", "print 6*7"], 500),
    "cc1": ([None, "-quiet", "-O2", "input.i", "-o", "-"], 3000),
}


def run(words, directory, report=None, libraries=None):
    environment = dict(os.environ, LC_ALL="C", HOME=str(directory))
    if report:
        environment.update(LD_PRELOAD=str(LIBRARY), GT_PATCH_REPORT=str(report))
    if libraries:
        environment.update(GT_PATCH_LIBRARIES=libraries)
    done = subprocess.run(words, cwd=directory, env=environment, capture_output=True, timeout=100)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("libraries", [None, LIBRARIES], ids=["program", "with_libraries"])
@pytest.mark.parametrize("name", RUNS)
def test_a_program_runs_as_before_with_every_function_patched(name, libraries, tmp_path):
    words, least = RUNS[name]
    words = [word or cc1() for word in words]
    assert shutil.which(words[0])
    (tmp_path / "input").write_text("some text, " * 500)
    (tmp_path / "input.i").write_text(
        subprocess.run(["gcc", "-E", "-xc", "-"], input=C_SOURCE, capture_output=True, text=True,
                       check=True).stdout)
    plain = run(words, tmp_path)
    report = tmp_path / "report"
    patched = run(words, tmp_path, report, libraries)
    assert patched == plain
    objects, functions, taken, reached, calls = map(int, report.read_text().split())
    assert objects > (1 if libraries else 0)
    assert reached > least and calls >= reached
    assert taken > functions // 2


def test_every_byte_of_a_patch_is_where_the_plan_says(tmp_path, compile):
    """The tool compares what it replaces with the plan's original bytes, and would end with 99."""
    program = compile(C_SOURCE, "-O2", "-pg")
    report = tmp_path / "report"
    code, out, _ = run([program], tmp_path, report)
    assert (code, out) == (0, b"6765 2\n")
    _, _, taken, reached, calls = map(int, report.read_text().split())
    assert taken >= 2 and reached >= 2 and calls > 100


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("level", ["-O0", "-O2", "-Os"])
@pytest.mark.parametrize("way", [
    ["-fpatchable-function-entry=5"], ["-fpatchable-function-entry=16"],
    ["-fpatchable-function-entry=7,5"], ["-fpatchable-function-entry=5,5"], ["-pg"],
    ["-pg", "-mfentry"], ["-finstrument-functions"], ["-finstrument-functions", "-fno-plt"],
    ["-fcf-protection"], ["-no-pie"], ["-fcf-protection", "-fpatchable-function-entry=5"],
], ids=" ".join)
def test_each_way_counts_the_calls_of_a_recursion(compiler, level, way, tmp_path, compile):
    source = """#include <stdio.h>
static __attribute__((noinline)) int ack(int m, int n) {
    return m == 0 ? n + 1 : n == 0 ? ack(m - 1, 1) : ack(m - 1, ack(m, n - 1)); }
int (*volatile through)(int, int) = ack;
__attribute__((noinline)) int twice(int x) { return through(1, x) + through(2, x); }
int main(void) { int s = 0; for (int i = 0; i < 50; i++) s += twice(i); printf("%d\\n", s); return 0; }
"""
    program = compile(source, level, *way, compiler=compiler)
    report = tmp_path / "report"
    plain = run([program], tmp_path)
    patched = run([program], tmp_path, report)
    assert plain[0] == 0 and patched[:2] == plain[:2]
    objects, _, taken, reached, calls = map(int, report.read_text().split())
    assert objects == 1 and taken >= 3 and reached >= 3
    assert calls > 150


def test_nearly_every_function_of_packaged_programs_can_be_patched(graftrace):
    """What is left alone on purpose is not missing; what is ours and cannot be is, with a reason."""
    missing_words = ("shorter", "a jump leads", "calls within", "own loop", "no instructions",
                     "its end", "goes on", "cannot be moved")
    libraries = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libstdc++.so.6"]
    taken = missing = 0
    for path in [cc1(), "/bin/bash", "/usr/bin/perl", "/usr/bin/git", *libraries]:
        assert os.path.exists(path)
        object = json.loads(graftrace("functions", "--format=json", path).stdout)["objects"][0]
        for function in object["functions"]:
            taken += function["traced"] != "no"
            missing += function["traced"] == "no" and any(
                word in function["reason"] for word in missing_words)
    assert taken > 30000
    assert missing <= 0.001 * taken, f"{missing} of {taken + missing} cannot be patched"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("flags", [["-finstrument-functions"],
                                   ["-finstrument-functions", "-fno-plt"],
                                   ["-finstrument-functions", "-no-pie"],
                                   ["-pg"], ["-pg", "-no-pie"]], ids=" ".join)
def test_calls_made_for_other_tracers_are_not_made_any_more(compiler, flags, tmp_path, graftrace):
    """A library counts the calls that the compiler put in: many without graftrace, none with it,
    but for the exits in tail position, and what start-up files do."""
    counter = tmp_path / "libcounter.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-xc", "-", "-o", counter], check=True,
                   input=b"""#include <stdio.h>
int enters;
void __cyg_profile_func_enter(void *a, void *b) { (void)a; (void)b; enters++; }
void __cyg_profile_func_exit(void *a, void *b) { (void)a; (void)b; }
__attribute__((naked)) void mcount(void) { __asm__("mov enters@GOTPCREL(%rip), %r11; incl (%r11); ret"); }
__asm__(".globl _mcount; .set _mcount, mcount");
__attribute__((destructor)) static void tell(void) { printf("enters %d\\n", enters); }
""")
    program = tmp_path / "prog"
    subprocess.run([compiler, "-O1", *flags, "-c", "-xc", "-", "-o", tmp_path / "prog.o"], check=True,
                   input=b"""__attribute__((noinline)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(void) { return fib(15) != 610; }
""")
    # Linked without -pg: its start-up files want the C library's mcount.
    subprocess.run([compiler, *[flag for flag in flags if flag == "-no-pie"], tmp_path / "prog.o",
                    "-o", program, "-L", tmp_path, "-Wl,--no-as-needed", "-lcounter",
                    f"-Wl,-rpath,{tmp_path}"], check=True)
    plain = subprocess.run([program], capture_output=True, text=True, timeout=PATIENCE)
    assert (plain.returncode, plain.stdout) == (0, "enters 1974\n")
    traced = graftrace("record", program)
    assert traced.stdout == "enters 0\n"
    assert "1,974 calls" in traced.stderr


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("flags", [["-O1"], ["-O2"], ["-O2", "-static"], ["-O2", "-fcf-protection"],
                                   ["-O0"], ["-O2", "-static-libgcc", "-static-libstdc++"]],
                         ids=" ".join)
def test_exceptions_pass_through_moved_calls(compiler, flags, tmp_path, compile, graftrace):
    """The frames' calls are among the moved instructions: the unwinder must see where they were."""
    source = """#include <cstdio>
int gone, caught;
struct guard { ~guard() { gone++; } };
__attribute__((noinline)) int thrower(int n) { if (n % 3 == 0) throw n; return n; }
__attribute__((noinline)) int passes(int n) { return thrower(n) + 1; }
__attribute__((noinline)) int guards(int n) { guard g; return passes(n) + 2; }
__attribute__((noinline)) int (*volatile through)(int) = guards;
__attribute__((noinline)) int catches(int n) {
    try { return through(n) + passes(n); } catch (int m) { caught++; return -m; } }
int main() { int s = 0; for (int i = 0; i < 300; i++) s += catches(i);
    std::printf("%d %d %d\\n", s, gone, caught); return 0; }
"""
    program = compile(source, *flags, compiler=compiler, suffix=".cc")
    plain = subprocess.run([program], capture_output=True, text=True, timeout=PATIENCE)
    assert plain.returncode == 0 and plain.stdout.endswith(" 300 100\n")
    traced = graftrace("record", "-l", "thrower*", "-l", "passes*", "-l", "guards*",
                       "-l", "catches*", program)
    assert traced.stdout == plain.stdout
    calls = 300 + 300 + (300 + 200) * 2  # catches, guards, passes and thrower
    assert f"{calls:,} calls" in traced.stderr


# Functions as -Os packs them: no padding for 200 bytes around, two bytes long, loops that begin in
# the first five bytes, some reached by jumps of others. Each lender has room in its middle.
TIGHT = r"""
#include <stdio.h>
#define LENDER(name, number) \
    ".type " name ", @function\n" name ": mov %rdi, %rax\n mov $" number ", %ecx\n" \
    "1: lea 3(%rax,%rcx,2), %rax\n rol $5, %rax\n xor %rdi, %rax\n add $0x12345, %rax\n" \
    "imul $0x10001, %rax, %rax\n add %rcx, %rax\n sub $0x77, %rax\n mov %rax, %rdx\n" \
    "shr $9, %rdx\n xor %rdx, %rax\n lea (%rax,%rdx,4), %rax\n dec %ecx\n jnz 1b\n" \
    "mov %rax, %rdx\n shl $7, %rdx\n add %rdx, %rax\n xor $0x5555, %rax\n ror $3, %rax\n" \
    "mov %rax, %rdx\n shl $11, %rdx\n sub %rdx, %rax\n xor $0x3333, %rax\n ror $13, %rax\n ret\n" \
    ".size " name ", . - " name "\n"
__asm__(".text\n"
    LENDER("lender1", "3") LENDER("lender2", "4") LENDER("lender3", "5")
    ".type two_bytes, @function\ntwo_bytes: jmp 9f\n.size two_bytes, . - two_bytes\n"
    LENDER("lender4", "6")
    ".type four_bytes, @function\nfour_bytes: mov %rdi, %rax\nret\n.size four_bytes, . - four_bytes\n"
    ".type after, @function\nafter: 9: lea 5(%rdi), %rax\nret\n.size after, . - after\n"
    LENDER("lender5", "7")
    ".type looping, @function\nlooping: mov %edi, %eax\n1: inc %eax\n cmp $1000, %eax\n jl 1b\n ret\n"
    ".size looping, . - looping\n"
    ".type own, @function\nown: dec %rdi\n mov %rdi, %rax\n nop\n nop\n jg own\n ret\n.size own, . - own\n"
    LENDER("lender6", "8")
    ".type shared, @function\nshared: push %rdi\n8: add $4, %rdi\n pop %rax\n add %rdi, %rax\n ret\n"
    ".size shared, . - shared\n"
    ".type sharing, @function\nsharing: push %rdi\n lea 1(%rdi), %rdx\n test %rdi, %rdi\n jnz 8b\n pop %rax\n"
    "mov $77, %eax\n ret\n.size sharing, . - sharing\n"
    LENDER("lender7", "9") LENDER("lender8", "10") LENDER("lender9", "11"));
#define ALL(X) X(lender1) X(lender2) X(lender3) X(lender4) X(lender5) X(lender6) X(lender7) \
    X(lender8) X(lender9) X(two_bytes) X(four_bytes) X(after) X(looping) X(own) X(shared) X(sharing)
#define DECLARE(name) long name(long);
ALL(DECLARE)
int main(void) {
    for (long i = 0; i < 50; i++) {
#define CALL(name) printf("%s %ld\n", #name, name(i));
        ALL(CALL)
    }
    return 0;
}
"""


@pytest.fixture
def tight(compile):
    return compile(TIGHT, "-Os")


def test_functions_without_padding_borrow_from_their_neighbours(tight, tmp_path, graftrace):
    listed = json.loads(graftrace("functions", "--format=json", tight).stdout)["objects"][0]
    ways = {function["name"]: function["way"] for function in listed["functions"]}
    assert ways["two_bytes"] == ways["four_bytes"] == "short"
    assert ways["looping"] in ("short", "moved") and ways["own"] == "moved"
    assert ways["shared"] in ("short", "moved")
    report = tmp_path / "report"
    plain = run([tight], tmp_path)
    assert plain[0] == 0
    assert run([tight], tmp_path, report)[:2] == plain[:2]
    calls = int(report.read_text().split()[4])
    assert calls >= 50 * 16


@pytest.mark.parametrize("names", [
    ["*"], ["two_bytes"], ["looping", "own"], ["shared"], ["sharing"], ["lender*"],
], ids=" ".join)
def test_what_is_borrowed_is_counted_right_and_given_back(names, tight, tmp_path, graftrace):
    plain = run([tight], tmp_path)
    words = [word for name in names for word in ("-l", name)]
    traced = graftrace("record", *words, tight)
    assert traced.stdout.encode() == plain[1]
    text = graftrace("show").stdout
    for name in names:
        if "*" not in name:
            assert len(re.findall(rf"\b{name}\(\)", text)) >= 50, name
    if names == ["*"]:
        for name in ("two_bytes", "own", "looping", "lender5"):
            assert len(re.findall(rf"\b{name}\(\)", text)) == 50, name
