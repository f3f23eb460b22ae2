# SPDX-License-Identifier: MIT
"""Probes and bad luck: wrong places, libraries that go, a thousand at once, texts that are huge, change or are none.
The program is unharmed, and what cannot be had is told."""

import re
import subprocess

import pytest

from conftest import PATIENCE, wait_until



def plain(program, *lines):
    """What the program answers to these, each in its turn."""
    done = subprocess.run([program, "loop"], input="".join(f"{line}\n" for line in lines), capture_output=True, text=True,
                          check=True)
    return [line + "\n" for line in done.stdout.splitlines()[1:]]


class Mount:
    """A program with its control files; each line that it is given is answered by one."""

    def __init__(self, graftrace, *words):
        self.path = graftrace.directory / "tracing"
        self.path.mkdir()
        self.process = graftrace.start("mount", self.path, "--", *words, stdin=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n", self.process.stderr.read()
        wait_until((self.path / "trace").exists, "the mount")
        self.write("current_tracer", "nop")

    def write(self, name, text):
        (self.path / name).write_text(text)

    def add(self, line):
        with open(self.path / "dynamic_events", "a") as file:
            file.write(line + "\n")

    def run(self, line):
        self.write("trace", "")
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline()
        return said, re.findall(r" (\w+): \(0x\w+(?: <- 0x\w+)?\)(?: (.*))?$", (self.path / "trace").read_text(), re.M)

    def last_error(self):
        return [line for line in (self.path / "error_log").read_text().splitlines() if " error: " in line][-1]

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0


@pytest.fixture
def mount(graftrace):
    made = []

    def start(*words):
        made.append(Mount(graftrace, *words))
        return made[0]

    yield start
    for each in made:
        each.end()


THOUSAND = ['#include <stdio.h>', '#include <stdlib.h>', 'static volatile long sum;'] + [
    f'__attribute__((noinline)) long f{i}(long x) {{ __asm__ volatile(""); sum += x; return x * 3 + sum; }}'
    for i in range(1000)] + [
    'int main(void) { char line[32]; puts("ready"); fflush(stdout);',
    'while (fgets(line, sizeof(line), stdin)) { long x = atol(line);'] + [f'f{i}(x + {i});' for i in range(1000)] + [
    'printf("%ld\\n", sum); fflush(stdout); } return 0; }', '']


def test_a_thousand_probes_at_once(compile, mount):
    program = compile("\n".join(THOUSAND), "-O1")
    mount = mount(program)
    sums = [str(sum(range(1000))), str(sum(range(1000)) * 2 + 1000)]
    assert mount.run(0) == (sums[0] + "\n", [])
    for first in range(0, 1000, 250):
        with open(mount.path / "dynamic_events", "a") as file:
            file.write("".join(f"{'r' if i % 10 == 3 else 'p'}:many/e{i} {program}:f{i} x=%ax:s64 y=%di:s64\n"
                               for i in range(first, first + 250)))
    assert len((mount.path / "dynamic_events").read_text().splitlines()) == 1000
    mount.write("events/many/enable", "1")
    said, met = mount.run(1)
    assert said == sums[1] + "\n"
    assert [name for name, _ in met] == [f"e{i}" for i in range(1000)]
    assert [text.split()[1] for i, (_, text) in enumerate(met) if i % 10 != 3] == [
        f"y={i + 1}" for i in range(1000) if i % 10 != 3]
    hits = re.findall(r" e\d+ +(\d+)$", (mount.path / "uprobe_profile").read_text(), re.M)
    assert hits == ["1"] * 1000
    mount.write("events/many/enable", "0")
    mount.write("dynamic_events", "")
    assert mount.run(0)[1] == [] and (mount.path / "dynamic_events").read_text() == ""


def test_a_place_that_is_none_is_refused_and_nothing_is_changed(compile, mount):
    program = compile("probes.c", "-g", "-O1", "-pthread")
    mount = mount(program, "loop")
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True, text=True,
                          check=True).stdout
    body = re.search(r"<sum>:\n(.*?)\n\n", text, re.S)[1]
    places = [int(line.split(":")[0], 16) for line in body.splitlines()]
    start = places[0]
    inside = [at - start for at in range(places[0], places[-1]) if at not in places]
    assert inside
    for offset in inside:
        with pytest.raises(OSError) as error:
            mount.add(f"p:my/bad{offset} {program}:sum+{offset}")
        assert error.value.errno == 22 and "Probe point is not an instruction boundary" in mount.last_error()
    # Behind its end, of no file, no code.
    for place in (f"{program}:sum+100000", f"{program}:nosuch", "/no/such:1", f"{program}:0x7fffffffffff", "/tmp:1"):
        with pytest.raises(OSError):
            mount.add(f"p:my/bad {place}")
    assert (mount.path / "dynamic_events").read_text() == ""
    assert mount.run(3) == (plain(program, 3)[0], [])


def test_places_in_the_bytes_of_a_patch(compile, mount):
    """With the function traced, and its first bytes a jump: each place further in is met or refused in words, and the
    program computes what it did."""
    program = compile("probes.c", "-g", "-O1", "-pthread")
    mount = mount(program, "loop")
    mount.write("current_tracer", "function_graph")
    said = [mount.run(1)[0]]
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True, text=True,
                          check=True).stdout
    body = re.search(r"<sum>:\n(.*?)\n\n", text, re.S)[1]
    places = [int(line.split(":")[0], 16) for line in body.splitlines() if "ret" not in line]
    offsets = [place - places[0] for place in places][:8]
    met = 0
    for offset in offsets:
        try:
            mount.add(f"p:my/at{offset} {program}:sum+{offset}")
        except OSError:
            assert "Failed to register probe event" in mount.last_error()
            continue
        mount.write(f"events/my/at{offset}/enable", "1")
        said.append(mount.run(2)[0])
        found = (mount.path / "trace").read_text().count(f"/* at{offset}: ")
        assert found in (0, 2)
        met += found == 2
    assert met >= 1
    mount.write("events/my/enable", "0")
    mount.write("current_tracer", "nop")
    assert mount.run(2)[1] == [] and said == plain(program, 1, *[2] * (len(said) - 1))


LIBRARY = r"""
__attribute__((noinline)) int work(int x)
{
	static volatile int all;

	all += x;
	return x * 2 + (all < x);
}
"""
LOADS = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	char line[32];
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		long sum = 0;
		for (int i = 0; i < atoi(line); i++) {
			void *library = dlopen(argv[argc - 1], RTLD_NOW);
			int (*work)(int) = (int (*)(int))dlsym(library, "work");
			sum += work(i);
			dlclose(library);
		}
		printf("%ld\n", sum);
		fflush(stdout);
	}
	return 0;
}
"""


def test_a_library_that_goes_and_comes_under_its_probes(compile, mount):
    library = compile(LIBRARY, "-O1", "-shared", "-fPIC")
    mount = mount(compile(LOADS, "-O1"), library)
    assert mount.run(3)[0] == "6\n"
    mount.add(f"p:my/there {library}:work x=%di:s32")
    mount.add(f"r:my/back {library}:work ret=$retval:s32")
    mount.write("set_event", "my:*")
    said, met = mount.run(20)
    assert said == "380\n"
    assert met == [event for i in range(20) for event in (("there", f"x={i}"), ("back", f"ret={2 * i}"))]
    mount.write("set_event", "")
    assert mount.run(5) == ("20\n", [])


TEXTS = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct sized { long size; char *text; };

__attribute__((noinline)) size_t look(const char *text, struct sized *sized)
{
	__asm__ volatile("" : : "r"(text), "r"(sized) : "memory");
	return 1;
}

static char *volatile shared;
static volatile int over;

/* Mapped, not mapped, of another length, without an end. */
static void *changes(void *unused)
{
	(void)unused;
	for (unsigned i = 0; !over; i++) {
		char *page = shared;

		switch (i % 4) {
		case 0: mprotect(page, 4096, PROT_NONE); break;
		case 1: mprotect(page, 4096, PROT_READ | PROT_WRITE); break;
		case 2: memset(page, 'x', 4096); break;
		default: memset(page, 0, 4096);
		}
	}
	return NULL;
}

int main(void)
{
	const size_t huge = 64ul << 20;
	char *text = mmap(NULL, huge + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sized sized = { -1, text }, other = { -4096, (char *)-8 };
	size_t calls = 0;
	pthread_t thread;

	memset(text, 'a', huge);
	calls += look(text, &sized);
	calls += look(text + huge - 3, &sized);
	mprotect(text + huge, 4096, PROT_NONE);
	text[huge - 1] = 'z';
	calls += look(text + huge - 5, &other);
	calls += look((char *)8, (struct sized *)-1);
	calls += look((char *)0x8000000000000000, NULL);
	/* Behind it is nothing to read, nor what somebody else maps. */
	shared = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(shared, 4096, PROT_READ | PROT_WRITE);
	pthread_create(&thread, NULL, changes, NULL);
	for (int i = 0; i < 20000; i++)
		calls += look(shared + i % 4096, &sized);
	over = 1;
	pthread_join(thread, NULL);
	printf("%zu\n", calls);
	return 0;
}
"""


def test_texts_that_are_huge_or_change_or_are_none(compile, graftrace):
    program = compile(TEXTS, "-O1", "-g", "-pthread")
    done = graftrace("record", "-p", "nop", "--probe",
                     "look text=+0(%di):string size=+0(%si):s64 sub=+0(+8(%si)):u8[64] far=-8(%di):x64", "--", program)
    assert done.stdout == "20005\n"
    lines = re.findall(r" look: \(0x\w+\) (text=.*?) (size=.*)$", graftrace("show").stdout, re.M)
    assert len(lines) == 20005
    # At most 64 bytes of one are kept, its end included.
    assert lines[0][0] == 'text="' + "a" * 63 + '"'
    assert lines[0][1].startswith("size=-1 sub={97,97,97")
    assert lines[1][0] == 'text="aaa"'
    assert lines[2][0] == 'text="aaaaz"' and lines[2][1].startswith("size=-4096 sub=(fault)")
    for text, rest in lines[3:5]:
        assert text == "text=(fault)" and rest.startswith("size=(fault) sub=(fault) far=(fault)")
    for text, _ in lines[5:]:
        assert re.fullmatch(r'text=(\(fault\)|"x{0,63}")', text), text


def test_sizes_that_are_wrong_are_refused(compile, mount):
    program = compile("probes.c", "-g", "-O1", "-pthread")
    mount = mount(program, "loop")
    for argument, said in (("+0(%di):u8[-1]", "Invalid array size"), ("+0(%di):u8[0]", "Invalid array size"),
                           ("+0(%di):u8[65]", "Array number is too big"),
                           ("+0(%di):u8[99999999999999999999]", "Invalid array size"),
                           ("+0(%di):b0@0/32", "Invalid bitfield"), ("+0(%di):b33@0/32", "Invalid bitfield"),
                           ("+0(%di):b-1@0/32", "Unknown type"), ("+0(%di):string[65]", "Array number is too big"),
                           ("+99999999999999999999(%di)", "Invalid dereference offset"),
                           ("$stack-1", "Invalid $-variable"), ("$stack99999", "Invalid stack number"),
                           ("$arg0", "Invalid argument number"), ("+0(" * 20 + "%di" + ")" * 20, "nested")):
        with pytest.raises(OSError) as error:
            mount.add(f"p:my/bad handle {argument}")
        assert error.value.errno == 22 and said in mount.last_error(), argument
    assert (mount.path / "dynamic_events").read_text() == ""
    assert mount.run(2) == (plain(program, 2)[0], [])


SHORT = r"""
int work(int n);
__asm__(".text\n.balign 32\n.globl work\n.type work, @function\n"
	"work: push %rbx\nlea (%rdi,%rdi,2), %eax\nmov %eax, %ebx\nlea 1(%rbx), %eax\npop %rbx\nret\n.size work, .-work\n");
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 5; i++)
		sum += work(i);
	return sum != 35;
}
"""


@pytest.mark.parametrize("offset", [1, 4])
def test_a_place_in_a_functions_first_bytes_is_the_functions(offset, graftrace, compile):
    done = graftrace("record", "-p", "function_graph", "-o", "near.data", "--probe", f"near=work+{offset}", "--",
                     compile(SHORT, "-O1"))
    assert "near is not recorded" in done.stderr
    assert re.search(r"^work,[^,]*,5,", graftrace("report", "--format", "csv", "near.data").stdout, re.M)
