# SPDX-License-Identifier: MIT
"""What people type wrongly, or expect: each ends in a message that says what to do."""

import os
import re
import shutil
import subprocess

import pytest

from conftest import ROOT

WORDS = "int most_frequent(void) { return 1; }\nint main(void) { return most_frequent() - 1; }\n"


@pytest.mark.parametrize("words, said", [
    (["recrod"], "did you mean 'record'?"),
    (["-p", "1"], "options stand behind a command: 'graftrace record -p ...'"),
    (["./words"], "to run and record it: 'graftrace record ./words'"),
    (["record", "--treshold", "5us", "ls"], "did you mean '--threshold'?"),
    (["report", "--limt=3"], "did you mean '--limit'?"),
    (["list", "--breakpints", "ls"], "did you mean '--breakpoints'?"),
    (["export", "--to", "crome"], "did you mean 'chrome'?"),
    (["show", "-O", "nofuncgraph-tial"], "did you mean 'nofuncgraph-tail'?"),
    (["show", "-O", "colours"], "'graftrace show --help' lists them"),
    (["record", "--stop-when", "main >> 10ms", "ls"], "one > is enough"),
    (["export"], "there are csv, json, sqlite,"),
    (["show", "-t", "+20ms-+10ms"], "ends before it begins"),
    (["export", "--to", "csv", "-t", "5-3.5"], "ends before it begins"),
    (["annotate"], "here it is 'graftrace report --source'"),
    (["live", "ls"], "here it is 'graftrace record PROGRAM' and then 'graftrace show'"),
    (["evlist"], "here it is 'graftrace list'"),
    (["record", "-F", "99", "ls"], "every call is recorded"),
    (["record", "-F", "main", "ls"], "uftrace's -F FUNC is -g FUNC"),
    (["record", "-c", "ls"], "strace's -c is 'graftrace profile'"),
    (["record", "-f", "ls"], "children are followed: --no-fork leaves them alone"),
    (["record", "-d", "here", "ls"], "the recording is a file: -o FILE"),
    (["record", "--call-graph=dwarf", "ls"], "'graftrace graph' prints the tree"),
    (["record", "--depth", "3", "ls"], "the outermost levels of calls are -D N"),
    (["record", "--max-depth", "3", "ls"], "the outermost levels of calls are -D N"),
    (["record", "--time", "1ms", "ls"], "are --threshold TIME"),
    (["strace", "ls"], "here it is 'graftrace record -e syscalls PROGRAM'"),
    (["ltrace", "ls"], "here it is 'graftrace record --libcall PROGRAM'"),
    (["list", "-e"], "events are what it lists"),
    (["list", "-f"], "functions are listed by 'graftrace functions'"),
    (["report", "-n"], "Calls is how often each function was called"),
    (["record", "-P", "1", "sleep", "5"], "how long to record is --for TIME"),
    (["record", "--for", "10parsecs", "ls"], "'10parsecs' is not a duration: use a number and ns, us, ms or s"),
    (["report", "--stdio"], "text is what it prints"),
    (["report", "-F", "main"], "only what is called below a function is -g GLOB"),
    (["record", "-a"], "they want --kernel"),
    (["record", "-g", "/bin/true"], "the program to run is missing: '/bin/true' is taken for a function"),
    (["record", "-P", "words"], "-P $(pgrep -d, words) has them by name"),
    (["graph", "--callers", "main", "older.data"], "another recording is -i FILE"),
])
def test_a_wrong_word_is_answered_with_the_right_one(graftrace, words, said):
    assert said in graftrace(*words, code=2).stderr


def test_a_program_that_an_option_has_taken_is_told(graftrace):
    done = graftrace("record", "-A", "/bin/echo", "hello-word", code=127)
    assert "'/bin/echo' is taken for a function: -g, -A and -R take one" in done.stderr


def test_a_function_behind_an_option_that_takes_none_is_told(graftrace, compile):
    done = graftrace("record", "--args", "most_frequent", compile(WORDS, "-O0"), code=127)
    assert "--args takes no function, -A and -R do" in done.stderr


def test_a_program_in_the_place_of_a_recording_is_told_where_it_stands(graftrace, compile):
    program = compile(WORDS, "-O0")
    said = graftrace("mount", ".", program, code=1).stderr
    assert f"a program stands behind --: graftrace mount . -- {program}" in said


def test_a_program_without_events_is_told(graftrace, compile):
    done = graftrace("list", compile("int main(void) { return 0; }\n", "-static"))
    assert done.stdout == "" and "neither the program nor its libraries have events" in done.stderr


@pytest.mark.parametrize("first, said", [
    (b"PERFILE2" + bytes(100), "it is perf's: 'perf report -i' reads it"),
    (b"\x7fELF" + bytes(100), "it is a program or library"),
    (b"some text, long enough", "byte 0 does not begin one"),
    (b"short", "it has only 5 bytes"),
    (None, "it is a folder"),
])
def test_what_is_no_recording_is_said_to_be_what_it_is(graftrace, first, said):
    other = graftrace.directory / "other"
    if first is None:
        other.mkdir()
    else:
        other.write_bytes(first)
    for command in ("report", "show", "info"):
        assert said in graftrace(command, "other", code=1).stderr


def test_a_recording_instead_of_a_table_of_its_calls_is_told(graftrace, compile):
    graftrace("record", compile(WORDS, "-O0"))
    assert "'graftrace report --html' a page at once" in graftrace("runtime-breakdown", "graftrace.data", code=1).stderr


def test_where_nothing_can_be_written_is_said_with_what_helps(graftrace):
    assert "cannot create '/proc/x': No such file" in graftrace("record", "-o", "/proc/x", "/bin/true", code=1).stderr
    assert "there is no folder 'missing'" in graftrace("record", "-o", "missing/x", "/bin/true", code=1).stderr
    if os.geteuid() == 0:
        command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    else:
        command = []
        graftrace.directory.chmod(0o555)
    done = subprocess.run([*command, graftrace.path, "record", "/bin/true"], cwd=graftrace.directory, check=False,
                          capture_output=True, text=True)
    graftrace.directory.chmod(0o755)
    assert done.returncode == 1
    assert "nothing may be written to the folder '.' (Permission denied): -o FILE names another place" in done.stderr


@pytest.mark.parametrize("word", ["ulimit", "cd", "export"])
def test_a_command_of_the_shell_is_told_from_a_program(graftrace, word):
    done = graftrace("record", word, "x", code=127)
    assert f"'{word}' is a command of the shell itself" in done.stderr
    assert f"sh -c '{word} ...'" in done.stderr


@pytest.mark.parametrize("line, said", [
    ("#!/no/such -x\n", "asks for '/no/such', which is not there"),
    ("#! /bin/sh\r\n", "ends as on Windows"),
])
def test_a_script_whose_interpreter_is_missing_is_not_said_to_be_missing_itself(
        graftrace, line, said):
    script = graftrace.directory / "script"
    script.write_text(line + "echo hello\n")
    script.chmod(0o755)
    assert said in graftrace("record", "./script", code=127).stderr


def test_a_pattern_that_matches_nothing_is_told_with_what_may_be_meant(graftrace, compile):
    program = compile(WORDS, "-O0")
    done = graftrace("record", "-l", "most_frequnt", program)
    assert "did you mean 'most_frequent'?" in done.stderr
    done = graftrace("record", "-l", "most_.*", program)
    assert "it is a glob, not a regular expression" in done.stderr
    # The recording is this one's, empty; the older has another name.
    assert graftrace("report", "--format=csv").stdout.count("\n") == 1
    assert (graftrace.directory / "graftrace.data.old").exists()


def test_a_function_that_is_there_and_was_not_called_is_not_taken_for_another(graftrace, compile):
    program = compile("void turn_back(void) {}\nvoid turn(void) {}\n"
                      "int main(void) { turn_back(); return 0; }\n", "-O0")
    graftrace("record", program)
    for command in ("show", "report"):
        told = graftrace(command, "--no-pager", "-g", "turn").stderr
        assert "no call" in told and "did you mean" not in told
    assert "did you mean 'turn_back'?" in graftrace("show", "--no-pager", "-g", "turn_bac").stderr


def test_a_condition_on_a_function_that_is_not_there_is_told_with_what_may_be_meant(graftrace, compile):
    told = graftrace("record", "--stop-when", "main > 10parsecs", code=2).stderr
    assert "is not a duration" in told
    told = graftrace("record", "--stop-when", "most_frequnt > 1ms", compile(WORDS, "-O0")).stderr
    assert "--stop-when: there is no function 'most_frequnt'; did you mean 'most_frequent'?; 'graftrace" in told


def test_a_function_that_is_typed_wrongly_is_proposed_where_a_recording_is_looked_at(graftrace, compile):
    graftrace("record", compile(WORDS, "-O0"))
    for words in (["show", "-g"], ["show", "--format=json", "-g"], ["report", "-g"], ["report", "--hist"],
                  ["report", "--callers"], ["graph"], ["graph", "--callers"]):
        told = graftrace(*words, "most_frequnt", code=None).stderr
        assert "; did you mean 'most_frequent'?\n" in told, told
    assert "did you mean" not in graftrace("show", "-g", "main", "-t", "0-0.000001").stderr


def test_a_pattern_that_is_empty_is_told(graftrace, compile):
    done = graftrace("record", "-l", "", compile(WORDS, "-O0"))
    assert "-l '' names no function" in done.stderr


def test_patterns_are_looked_for_in_the_libraries_too_that_are_traced(graftrace, compile):
    program = compile(WORDS.replace("return 1", "void *got = malloc(3); free(got); return got != 0")
                      .replace("int most", "#include <stdlib.h>\nint most", 1), "-O0")
    assert "1 call," not in graftrace("record", "-l", "malloc", program).stderr
    told = graftrace("record", "--libs", "-l", "malloc", program).stderr
    assert "matches no" not in told and "none of" not in told and " 0 calls" not in told
    told = graftrace("record", "--lib", "libc", "--lib", "libnosuch*", "-l", "mallc", program).stderr
    assert f"--lib 'libnosuch*' matches no library that the program begins with: 'ldd {program}' lists" in told
    assert "--lib 'libc'" not in told
    assert "'mallc' matches no function" in told and "none of the 2 functions" in told
    assert "none of the 2 functions" in graftrace("record", "--libs", "-n", "*", "-l", "main", program).stderr
    assert "--threshold TIME" in graftrace("record", "-t", "5us", program, code=2).stderr


def test_typing_wrongly_twice_leaves_the_older_recording(graftrace, compile):
    program = compile(WORDS, "-O0")
    graftrace("record", program)
    for _ in range(3):
        graftrace("record", "-l", "most_frequnt", program)
    assert graftrace("report", "--format=csv", "graftrace.data.old").stdout.count("\n") == 3
    assert graftrace("report", "--format=csv").stdout.count("\n") == 1
    # Two recordings with calls push the older out, as ever.
    graftrace("record", program)
    graftrace("record", "-l", "main", program)
    graftrace("record", "-l", "main", program)
    assert graftrace("report", "--format=csv", "graftrace.data.old").stdout.count("\n") == 2


def test_a_word_that_names_no_event_is_told_and_one_of_a_library_that_comes_later_is_not(graftrace, compile):
    (graftrace.directory / "lent.c").write_text(
        '#include <graftrace/event.h>\nvoid lend(int n) { GRAFTRACE_EVENT(lib, lent, GRAFTRACE_INT(int, n, n)); }\n')
    subprocess.run(["gcc", "-shared", "-fPIC", f"-I{ROOT / 'include'}", "lent.c", "-o", "lent.so"], check=True,
                   cwd=graftrace.directory)
    program = compile("""#include <dlfcn.h>
        int main(void) {
            void *lib = dlopen("./lent.so", RTLD_NOW);
            ((void (*)(int))dlsym(lib, "lend"))(3);
            return dlclose(lib);
        }""", "-O0")
    told = graftrace("record", "-e", "lib:lent", program).stderr
    assert "no event" not in told and "graftrace: events alone, 1 thread, " in told
    done = graftrace("record", "-e", "lib:lend", program)
    assert f"-e 'lib:lend' matched no event; did you mean 'lent'?; 'graftrace list {program}' lists them" in done.stderr


def test_a_stripped_interpreter_is_named_not_its_script(graftrace):
    script = graftrace.directory / "script"
    script.write_text("#!/bin/dash\necho hello\n")
    script.chmod(0o755)
    told = graftrace("record", "./script").stderr
    assert re.search(r"traced functions have no name, as '/\S*dash' is stripped", told), told


def test_a_stripped_front_of_a_library_says_what_takes_the_work_in(graftrace, monkeypatch):
    plain = graftrace("record", "bzip2", "-c", "/proc/self/cmdline").stderr
    assert "traced functions have no name" in plain and "-dbgsym" in plain
    assert "debuginfod" not in plain
    monkeypatch.setenv("DEBUGINFOD_URLS", "a server")
    asked = graftrace("record", "bzip2", "-c", "/proc/self/cmdline").stderr
    assert re.search(r"-dbgsym\b.*; `debuginfod-find debuginfo /\S*bzip2` asks for them\n", asked)
    assert "--lib takes a library's own functions: 'libbz2*'\n" in plain
    assert "libraries are recorded too, as puts@plt, since the program is stripped (--no-libcall: not); --lib" in plain
    assert re.search(r"BZ2_\w+@plt", graftrace("report").stdout)
    told = graftrace("record", "--no-libcall", "bzip2", "-c", "/proc/self/cmdline").stderr
    assert "few calls: the work may lie in libraries" in told and "recorded too" not in told
    assert "@plt" not in graftrace("report").stdout
    taken = graftrace("record", "--lib", "libbz2*", "bzip2", "-c", "/proc/self/cmdline")
    assert "few calls" not in taken.stderr and "recorded too" not in taken.stderr
    assert "BZ2_" in graftrace("report").stdout


def test_a_front_of_a_library_is_recorded_with_the_calls_of_it(graftrace, compile):
    program = compile("#include <zstd.h>\nint main(void) { return ZSTD_versionNumber() == 0; }", "-O0",
                      "-Wl,--no-as-needed", "-lzstd")
    told = graftrace("record", program).stderr
    assert "since the program has few functions (--no-libcall: not); " in told
    assert "; --lib takes a library's own functions: 'libzstd*'\n" in told
    assert "ZSTD_versionNumber@plt" in graftrace("report").stdout
    assert "recorded too" in graftrace("record", "--serve=127.0.0.1:0", program).stderr
    for chosen in (["-l", "*"], ["-n", "nosuch"], ["-g", "main"], ["-D", "3"], ["--threshold", "1ns"],
                   ["-e", "syscalls"]):
        assert "recorded too" not in graftrace("record", *chosen, program).stderr
    script = graftrace.directory / "script"
    script.write_text(f"#!{program}\n")
    script.chmod(0o755)
    assert "since the program has few functions" in graftrace("record", "./script").stderr


def test_dpkg_is_asked_for_the_package_with_the_names_where_that_takes_no_time_beside_the_program(
        graftrace, monkeypatch):
    """It takes a tenth of a second, more than all else of a short program's recording."""
    asked = graftrace.directory / "asked"
    program = graftrace.directory / "dpkg-query"
    program.write_text(f'#!/bin/sh\nfor path; do :; done\necho "$path" >> {asked}\necho "the-package: $path"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(graftrace.directory), prepend=os.pathsep)
    short = graftrace("record", "/usr/bin/true").stderr
    assert "'/usr/bin/true' is stripped: the names are in the -dbgsym package of its Debian package\n" in short
    own = shutil.copy("/usr/bin/sleep", graftrace.directory / "own")
    assert "a build with symbols, or a file with them" in graftrace("record", own, "1.1").stderr
    assert not asked.exists()
    long = graftrace("record", "/usr/bin/sleep", "1.1").stderr
    assert "the names are in Debian's package the-package-dbgsym\n" in long
    assert asked.read_text() == "/bin/sleep\n"


def test_a_program_with_names_is_recorded_without_a_word_more(graftrace, compile):
    done = graftrace("record", compile(WORDS, "-O0"))
    assert [line for line in done.stderr.splitlines() if "times off the CPU" not in line] == [
        line for line in done.stderr.splitlines() if " 0 lost, graftrace.data" in line]


def test_counters_are_perfs(graftrace, compile):
    done = graftrace("record", "-e", "cycles:u", "-e", "page-faults", compile(WORDS, "-O0"))
    for counter in ("cycles:u", "page-faults"):
        assert f"-e '{counter}': counters are not recorded: perf stat -e {counter} counts" in done.stderr
    assert "matched no event" not in done.stderr


def on_terminal(graftrace, *words):
    """What a command writes on a terminal of 80 columns."""
    command = " ".join([str(graftrace.path), *words])
    return subprocess.run([shutil.which("script"), "-qec", f"stty cols 80 rows 24; {command}", "/dev/null"],
                          cwd=graftrace.directory, check=True, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL).stdout.splitlines()


def test_a_view_on_a_terminal_begins_with_what_was_recorded(graftrace, compile):
    program = compile(WORDS, "-O0")
    graftrace("record", program, "with a blank")
    for command in ("show", "report", "graph"):
        assert "with a blank" not in graftrace(command).stdout
        first = on_terminal(graftrace, command, "--no-pager")[0]
        assert first.startswith(f"# {program} 'with a blank': graftrace.data of 20")
    shown = on_terminal(graftrace, "diff", "graftrace.data", "graftrace.data", "--no-pager")
    assert shown[0].startswith(f"# A: {program} 'with a blank': graftrace.data of 20")
    assert shown[1].startswith(f"# B: {program} 'with a blank': graftrace.data of 20")
    assert "# A" not in graftrace("diff", "graftrace.data", "graftrace.data").stdout
    shown = on_terminal(graftrace, "diff", "--no-pager", "graftrace.data", "--", "graftrace.data", "graftrace.data")
    assert shown[1].endswith(", and 1 more")


def test_the_method_is_seen_in_a_narrow_terminal(graftrace):
    (graftrace.directory / "long.cpp").write_text("""
        template<class T> struct a_class_template_with_a_name_that_is_too_long {
            __attribute__((noinline)) void do_the_work(int n) { if (n) do_the_work(n - 1); asm volatile(""); } };
        int main(int argc, char **) { a_class_template_with_a_name_that_is_too_long<int>().do_the_work(2 * argc); }""")
    subprocess.run(["g++", "-O0", "long.cpp", "-o", "long"], cwd=graftrace.directory, check=True)
    graftrace("record", "./long")
    graftrace("record", "-o", "more", "./long", "2")
    for words in (["report", "--no-pager"], ["graph", "--no-pager"], ["diff", "--no-pager", "graftrace.data", "more"],
                  ["profile", "./long"]):
        text = re.sub(r"\x1b\[\d*m", "", "\n".join(on_terminal(graftrace, *words)))
        shown = [line for line in text.splitlines() if "a_" in line]
        assert shown and all("::do_the_work" in line and "…" in line for line in shown), shown
        assert all(len(line) <= 80 for line in shown), shown


def test_a_deep_tree_stays_within_a_narrow_terminal(graftrace, compile):
    program = compile("""
        #include <unistd.h>
        #define N __attribute__((noinline))
        N int the_last_one(void) { return getppid(); }
        N int descend(int n) { return (n ? descend(n - 1) : the_last_one()) + (n % 10 ? 0 : the_last_one()); }
        int main(void) { return descend(119) < 0; }""", "-O1", "-fno-optimize-sibling-calls")
    graftrace("record", program)
    for words in ("graph --no-pager", "graph --no-pager --callers the_last_one"):
        text = on_terminal(graftrace, *words.split())
        assert all(len(re.sub(r"\x1b\[\d*m", "", line)) <= 80 for line in text[1:]), text
        lines = [line.split() for line in text if "descend" in line or "the_last_one" in line]
        assert lines and all(line[-1] in ("descend", "the_last_one") for line in lines), text
        assert "a number before a name is its depth" in text[-1]
        depths = [int(found[1]) for line in text if (found := re.search(r" (\d+) [ |`-]+(?:descend|the_last_one)", line))
                  and "%" not in found[0]]
        assert depths and max(depths) >= 120
        lined = on_terminal(graftrace, *words.split(), "--lines")
        assert len(max(lined[1:], key=len)) <= 80 + len("  long-name.c:123"), lined
        # elsewhere it is whole
        whole = graftrace(*words.split()).stdout
        assert re.search(r"\n.{47}(?:   |\|  ){80}", whole) and "its depth" not in whole


def test_names_of_a_profile_are_short_where_that_is_wanted_and_times_of_one_call_known(graftrace):
    (graftrace.directory / "long.cpp").write_text("""
        template<class T> struct a_class { __attribute__((noinline)) void work() { asm volatile(""); } };
        int main() { a_class<int>().work(); }""")
    subprocess.run(["g++", "-O0", "long.cpp", "-o", "long"], cwd=graftrace.directory, check=True)
    assert "a_class<int>::work" in graftrace("profile", "./long").stderr
    told = graftrace("profile", "--names=short", "./long").stderr
    assert "a_class<…>::work" in told and "0.000 us     0.000 us" not in told
    assert re.search(r"^ +1 +(<20|\d+) ns +(<20|\d+) ns ", told, re.M)
    assert "'long' is none of short, full" in graftrace("profile", "--names", "long", "./long", code=2).stderr
