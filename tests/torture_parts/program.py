# SPDX-License-Identifier: MIT
"""Makes a random program from a seed: its acts (acts/*.in), each with a call tree of its own, put together
with signals that come at any instant, threads and an end, and the compiler and options that build it.

An act is C, or C++ where its file says so. Its first line says what it does and, behind a bar, what it
needs: `main` (nothing runs beside it), `threads`, `loose` (what is counted may differ by the number that
count 0 says), `partial` (some of its calls are left out by design), `unwinds` (see SWITCHES), `dl` (no static program), `c`, `gcc`, `cxx20`, `switch=NAME` (see SWITCHES). In it `$name` is a name of this
act's own, `#LO..HI#` a random number, `#-1#` the last such number, `#pick:A|B#` one of these, `#signal#` a
signal of the act's own, and `$work(n)` its call tree.
"""

import random
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
ACTS = HERE / "acts"

# What is known not to work yet, by its name, and why; --switches takes them in all the same.
SWITCHES = {
    "static_unwinds": "in a static program that is stripped, walks over the stack end early",
}

C_COMPILERS = ["gcc", "gcc", "clang"]
LEVELS = ["-O0", "-O1", "-O2", "-O2", "-O3", "-Os"]
LINKS = [[], [], [], ["-no-pie", "-fno-pie"], ["-static"], ["-static-pie", "-fPIE"]]
MORE = [[], [], ["-fpatchable-function-entry=5"], ["-fcf-protection=full"], ["-fno-omit-frame-pointer"],
        ["-fstack-protector-strong"], ["-fstack-clash-protection"], ["-fno-plt"], ["-ffunction-sections"],
        ["-D_FORTIFY_SOURCE=2"], ["-flto"], ["-march=x86-64-v2"]]
CXX_INCLUDES = ["coroutine"], ["cstring", "exception", "functional", "future", "memory", "stdexcept", "string",
                               "thread", "vector"]


class Act:
    """A file of acts/."""

    def __init__(self, path):
        self.name = path.name.split(".")[0]
        self.text = path.read_text()
        head = re.match(r"/\* (.*?) \*/\n", self.text)
        self.does, _, needs = head.group(1).partition(" | ")
        self.needs = set(filter(None, re.split(r",\s*", needs.strip())))
        self.switch = next((need[7:] for need in self.needs if need.startswith("switch=")), None)
        self.is_cxx = path.name.endswith(".cc.in")


def all_acts():
    return {act.name: act for act in (Act(path) for path in sorted(ACTS.glob("*.in")))}


class Tree:
    """Random functions that call each other: `PREFIX_work(n)` is a function of n, whatever happens beside it."""

    LIMIT = 120  # calls of the whole tree, about

    def __init__(self, chance, prefix):
        self.chance = chance
        self.prefix = prefix
        self.costs = []
        self.text = ""
        for number in range(chance.randint(2, 7)):
            self.add(number)
        last = len(self.costs) - 1
        self.text += (f"COUNTED static long {prefix}_work(long n)\n{{\n\tCOUNT({prefix}_work);\n"
                      f"\treturn mix({prefix}_w{last}(n), n);\n}}\n")

    def name(self, number):
        return f"{self.prefix}_w{number}"

    def add(self, number):
        chance = self.chance
        name = self.name(number)
        key = chance.randint(1, 1 << 30)
        shapes = {"leaf": 2, "recursion": 2, "room": 1, "alloca": 1, "doubles": 1, "cases": 1}
        affordable = [i for i, cost in enumerate(self.costs) if cost * 4 < self.LIMIT]
        if affordable:
            shapes.update({"calls": 4, "loop": 3, "tail": 2, "pointer": 2, "variadic": 1, "many": 1,
                           "pointer_tail": 2})
        shape = chance.choices(list(shapes), list(shapes.values()))[0]
        some = [chance.choice(affordable) for _ in range(4)] if affordable else []
        cost, before, body = getattr(self, shape)(name, key, some)
        self.costs.append(1 + cost)
        self.text += f"{before}COUNTED static long {name}(long n)\n{{\n\tCOUNT({name});\n{body}}}\n"

    def leaf(self, name, key, some):
        return 0, "", f"\treturn mix(n, {key});\n"

    def recursion(self, name, key, some):
        mask = self.chance.choice([3, 7, 15])
        return mask / 2, "", (f"\tif ((n & {mask}) == 0)\n\t\treturn {key};\n"
                              f"\treturn mix(torture_kept({name}((n & {mask}) - 1)), n);\n")

    def room(self, name, key, some):
        size = self.chance.choice([40, 300, 5000])
        return 0, "", (f"\tvolatile char room[{size}];\n\troom[(unsigned long)n % {size}] = (char)n;\n"
                       f"\treturn mix(room[(unsigned long)n % {size}], {key});\n")

    def alloca(self, name, key, some):
        return 0, "", ("\tvolatile char *room = (volatile char *)alloca(16 + (n & 255));\n"
                       f"\troom[n & 15] = (char)n;\n\treturn mix(room[n & 15], {key});\n")

    def doubles(self, name, key, some):
        return 0, "", (f"\tdouble value = (double)(n & 1023) * {key % 97}.5;\n"
                       f"\treturn mix((long)(value * 2), {key});\n")

    def cases(self, name, key, some):
        cases = "".join(f"\tcase {i}:\n\t\treturn mix(n, {key + i * i});\n" for i in range(7))
        return 0, "", f"\tswitch (n & 7) {{\n{cases}\tdefault:\n\t\treturn {key};\n\t}}\n"

    def calls(self, name, key, some):
        some = some[:self.chance.randint(1, 3)]
        body = "".join(f"\tsum = mix(sum, {self.name(i)}(sum & 63));\n" for i in some)
        return sum(self.costs[i] for i in some), "", f"\tlong sum = mix(n, {key});\n{body}\treturn sum;\n"

    def loop(self, name, key, some):
        times = self.chance.randint(2, 4)
        return times * self.costs[some[0]], "", (
            f"\tlong sum = {key};\n\tfor (long i = 0; i < {times}; i++)\n"
            f"\t\tsum = mix(sum, {self.name(some[0])}(n + i));\n\treturn sum;\n")

    def tail(self, name, key, some):
        return self.costs[some[0]], "", f"\treturn {self.name(some[0])}(n ^ {key});\n"

    def pointer(self, name, key, some):
        return self.costs[some[0]], f"static long (*volatile {name}_at)(long) = {self.name(some[0])};\n", (
            f"\treturn {name}_at(n) + {key};\n")

    def pointer_tail(self, name, key, some):
        names = ", ".join(self.name(i) for i in some[:2])
        return max(self.costs[i] for i in some[:2]), (
            f"static long (*const volatile {name}_all[])(long) = {{ {names} }};\n"), (
            f"\treturn {name}_all[n & 1](n + {key});\n")

    def variadic(self, name, key, some):
        before = (f"COUNTED static long {name}_sum(int count, ...)\n{{\n\tCOUNT({name}_sum);\n\tva_list list;\n"
                  "\tlong sum = 0;\n\tva_start(list, count);\n\tfor (int i = 0; i < count; i++)\n"
                  "\t\tsum = mix(sum, va_arg(list, long));\n\tva_end(list);\n\treturn sum;\n}\n")
        return 1 + self.costs[some[0]], before, (
            f"\treturn {name}_sum(7, n, {key}l, n + 1, n + 2, n + 3, 9l, {self.name(some[0])}(n));\n")

    def many(self, name, key, some):
        before = (f"COUNTED static long {name}_many(long a, double b, long c, long d, long e, long f, long g, long h)\n"
                  f"{{\n\tCOUNT({name}_many);\n\treturn mix(mix(a + (long)b, c ^ d), mix(e - f, g + h));\n}}\n")
        return 1 + self.costs[some[0]], before, (
            f"\treturn {name}_many(n, 2.5, {key}, n & 3, 4, n ^ 5, {self.name(some[0])}(n), n);\n")


class Program:
    """The text of a program and how it is built; what of its counts is exact."""

    def __init__(self, seed, kinds=None, switches=()):
        self.chance = chance = random.Random(f"program {seed}")
        acts = all_acts()
        self.switches = set(switches)
        self.is_cxx = chance.random() < 0.35
        self.compiler = chance.choice(C_COMPILERS)
        chosen = [acts[name] for name in kinds] if kinds else None
        if chosen:
            self.is_cxx = any(act.is_cxx for act in chosen) or (
                self.is_cxx and not any(act.needs & {"c", "gcc"} for act in chosen))
            if any(act.needs & {"gcc", "cxx20"} for act in chosen):
                self.compiler = "gcc"
        self.link = chance.choice(LINKS)
        self.is_stripped = chance.random() < 0.15
        if chosen and any("dl" in act.needs for act in chosen) and self.link and "static" in self.link[0]:
            self.link = []
        able = [act for act in acts.values() if self.is_able(act)]
        if not chosen:
            chosen = chance.sample(able, min(len(able), chance.randint(2, 7)))
        self.acts = chosen
        self.options = [chance.choice(LEVELS), *chance.choice(MORE), *self.link]
        self.loose, self.partial = set(), set()
        self.names = []
        self.used = [0]
        self.text = self.make()
        self.library_text = self.make_library()

    @property
    def is_static(self):
        return any("static" in option for option in self.link)

    def is_able(self, act):
        if act.switch in SWITCHES and act.switch not in self.switches:
            return False
        if act.is_cxx and not self.is_cxx or act.needs & {"c", "gcc"} and self.is_cxx:
            return False
        if act.needs & {"gcc", "cxx20"} and self.compiler != "gcc":
            return False
        if "unwinds" in act.needs and "static_unwinds" not in self.switches and \
                self.is_static and self.is_stripped:
            return False
        return not ("dl" in act.needs and self.is_static)

    def fill(self, act, prefix):
        """An act's text with its random numbers and names."""
        last = [""]
        self.used[0] += 1
        signal = f"SIGRTMIN + {2 + self.used[0]}"

        def number(found):
            what = found.group(1)
            if what == "-1":
                return last[0]
            if what == "signal":
                return signal
            if what.startswith("pick:"):
                return self.chance.choice(what[5:].split("|"))
            low, high = what.split("..")
            last[0] = str(self.chance.randint(int(low), int(high)))
            return last[0]

        text = re.sub(r"#(-1|signal|pick:[^#\n]*|\d+\.\.\d+)#", number, act.text)
        return re.sub(r"\$([a-z]\w*)", prefix + r"_\1", text)

    def groups(self):
        """Acts that run beside each other in threads, and those that run alone, in a random order."""
        beside, groups = [], []
        for number, act in enumerate(self.acts):
            if "main" in act.needs or self.chance.random() < 0.3:
                groups.append([number])
            else:
                beside.append(number)
        while beside:
            count = self.chance.randint(1, 4)
            groups.append(beside[:count])
            beside = beside[count:]
        self.chance.shuffle(groups)
        return groups

    def make(self):
        body = ""
        for number, act in enumerate(self.acts):
            prefix = f"a{number}_"[:-1]
            part = Tree(self.chance, prefix).text + self.fill(act, prefix)
            if "partial" in act.needs:
                self.partial.update(re.findall(r"\bCOUNT\((\w+)\)", part))
            if "loose" in act.needs:
                self.loose.update(re.findall(r"\bCOUNT\((\w+)\)", part))
            body += part
        storm = Tree(self.chance, "a99").text
        body += storm
        if any("loose" in act.needs for act in self.acts):
            self.loose.update(re.findall(r"\bCOUNT\((\w+)\)", storm))
        body += self.make_main()
        self.library_names = ["a98_library", "a98_pass"]
        self.names = re.findall(r"\bCOUNT\((\w+)\)", body) + self.library_names
        includes = ""
        if self.is_cxx:
            wanted = CXX_INCLUDES[1] + (CXX_INCLUDES[0] if any("cxx20" in act.needs for act in self.acts) else [])
            includes = "".join(f"#include <{name}>\n" for name in wanted)
        return f"{includes}#include \"torture.h\"\n{self.numbers()}\n{body}"

    def numbers(self):
        return "enum {\n" + "".join(f"\tN_{name} = {number},\n" for number, name in enumerate(self.names, 1)) + "};\n"

    def make_library(self):
        return f"""#include "torture.h"
{self.numbers()}
COUNTED static long a98_pass(long (*back)(long), long n)
{{
	COUNT(a98_pass);
	return mix(back(n), {self.chance.randint(1, 99)});
}}
#ifdef __cplusplus
extern "C" {{
#endif
void lib_begin(unsigned long *counts)
{{
	torture_counts = counts;
}}
long lib_call(long (*back)(long), long n);
COUNTED static long a98_library(long (*back)(long), long n)
{{
	COUNT(a98_library);
	long sum = n;
	for (long i = 0; i < 5; i++)
		sum = mix(sum, a98_pass(back, n + i));
	return sum;
}}
long lib_call(long (*back)(long), long n)
{{
	return a98_library(back, n);
}}
#ifdef __cplusplus
}}
#endif
"""

    def make_main(self):
        chance = self.chance
        groups = ""
        for number, members in enumerate(self.groups()):
            groups += f"static long group_{number}(long seed)\n{{\n\tlong sum = seed;\n"
            if len(members) == 1:
                groups += f"\tsum = mix(sum, a{members[0]}_act(seed));\n"
            else:
                groups += f"\tstruct started all[{len(members)}];\n\tpthread_t threads[{len(members)}];\n"
                for i, act in enumerate(members):
                    groups += (f"\tall[{i}].act = a{act}_act;\n\tall[{i}].seed = seed + {i};\n"
                               f"\tthreads[{i}] = torture_start(in_thread, &all[{i}], 0);\n")
                for i in range(len(members)):
                    groups += f"\tpthread_join(threads[{i}], NULL);\n\tsum = mix(sum, all[{i}].sum);\n"
            groups += "\treturn sum;\n}\n"
        all_groups = "".join(f"\t\tsum = mix(sum, group_{i}(sum));\n"
                             for i in range(len(re.findall("static long group_", groups))))
        storms, timers = "", ""
        if chance.random() < 0.6:
            kinds = chance.sample([("ITIMER_REAL", "SIGALRM"), ("ITIMER_PROF", "SIGPROF"),
                                   ("ITIMER_VIRTUAL", "SIGVTALRM")], chance.randint(1, 2))
            for timer, signal in kinds:
                every = chance.choice([211, 500, 1000, 3000])
                storms += (f"\tstorm_timer.it_value.tv_usec = storm_timer.it_interval.tv_usec = {every};\n"
                           f"\ttorture_handle({signal}, on_storm, SA_RESTART);\n"
                           f"\tsetitimer({timer}, &storm_timer, NULL);\n")
                timers += (f"\tmemset(&storm_timer, 0, sizeof storm_timer);\n\tsetitimer({timer}, &storm_timer, NULL);\n"
                           f"\ttorture_handle({signal}, SIG_IGN, 0);\n")
        code = chance.choice([0, 0, 1, 7, 126])
        end = chance.choice([f"\treturn {code};\n", f"\treturn {code};\n", f"\texit({code});\n",
                             f"\tfflush(stdout);\n\t_exit({code});\n", "\traise(SIGTERM);\n", "\tabort();\n",
                             "\tkill(getpid(), SIGKILL);\n\tfor (;;)\n\t\tpause();\n",
                             f"\ttorture_start(in_last_thread, NULL, 0);\n\tpthread_exit(NULL);\n",
                             "\texecl(torture_program, torture_program, \"child\", \"77\", (char *)NULL);\n"])
        return f"""struct started {{
	long (*act)(long);
	long seed, sum;
}};
static void *in_thread(void *argument)
{{
	struct started *started = (struct started *)argument;
	started->sum = started->act(started->seed);
	return NULL;
}}
static void *in_last_thread(void *argument)
{{
	(void)argument;
	sched_yield();
	exit({code});
}}
static long storm_expected;
static struct itimerval storm_timer;
static void on_storm(int number)
{{
	(void)number;
	int error = errno;
	EXPECT("what a handler computes", a99_work(5), storm_expected);
	errno = error;
}}
COUNTED static void a97_at_exit(void)
{{
	COUNT(a97_at_exit);
}}
/* So many rounds, or until standard input ends. */
static int goes_on(long round, long rounds)
{{
	struct pollfd input = {{ 0, POLLIN, 0 }};
	return rounds > 0 ? round < rounds : round == 0 || poll(&input, 1, 0) <= 0;
}}
{groups}int main(int argc, char **argv)
{{
	static char library[4096];
	long rounds = argc > 1 ? atol(argv[1]) : 1, sum = 1, first = 0;

	torture_map_counts();
	torture_program = argv[0];
	snprintf(library, sizeof library, "%s.so", argv[0]);
	torture_library = library;
	setvbuf(stdout, NULL, _IOLBF, 0);
	atexit(a97_at_exit);
	if (argc > 2)
		return (int)(a99_work(atol(argv[2])) & 63);
	storm_expected = a99_work(5);
	(void)in_thread;
	(void)in_last_thread;
	(void)on_storm;
{storms}	for (long round = 0; goes_on(round, rounds); round++) {{
		sum = 1;
{all_groups}		if (round == 0) {{
			first = sum;
			fprintf(stderr, "first %lx\\n", (unsigned long)sum);
		}}
		EXPECT("a round's sum", sum, first);
	}}
{timers}	printf("sum %lx\\n", (unsigned long)sum);
{end}}}
"""

    def commands(self):
        """What builds it: each as words, to be run in the case's directory."""
        compiler = {"gcc": "g++", "clang": "clang++"}[self.compiler] if self.is_cxx else self.compiler
        source = "program.cc" if self.is_cxx else "program.c"
        common = [compiler, "-w", f"-I{HERE}", "-pthread"]
        if self.is_cxx:
            common.append("-std=c++20" if any("cxx20" in act.needs for act in self.acts) else "-std=c++17")
        if any("walks" in act.name for act in self.acts):
            common.append("-fasynchronous-unwind-tables")
        made = [[*common, *self.options, *(["-s"] if self.is_stripped else []), source, "-o", "program", "-ldl"]]
        if any("dl" in act.needs for act in self.acts):
            options = [option for option in self.options if option not in self.link]
            made.append([*common, *options, "-shared", "-fPIC", source.replace("program", "library"), "-o",
                         "program.so"])
        return made

    def write(self, directory):
        ending = "cc" if self.is_cxx else "c"
        (directory / f"program.{ending}").write_text(self.text)
        (directory / f"library.{ending}").write_text(self.library_text)

    def describe(self):
        language = "C++" if self.is_cxx else "C"
        return (f"{language}, {self.compiler} {' '.join(self.options)}{' -s' if self.is_stripped else ''}: "
                f"{', '.join(act.name for act in self.acts)}")
