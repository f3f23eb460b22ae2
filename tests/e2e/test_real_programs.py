# SPDX-License-Identifier: MIT
"""Programs as the distribution ships them, traced whole, with all that they are linked with: they do
what they do untraced, and nothing is lost."""

import os
import re
import subprocess

import pytest

from conftest import PATIENCE

SHELL = ("trap 'echo bye' EXIT; f() { for i in 1 2 3; do echo $i; done; }; f | sort -r; "
         "(cd /; exit 3); echo $?; x=$(echo $(/bin/echo deep)); echo $x; sleep 9 & sleep 0.3; kill $!; "
         "wait $! 2>/dev/null; echo $?; exit 7")

# More of everything: what a nightly run does. A factor for loops.
MORE = int(os.environ.get("GRAFTRACE_LONG_TESTS", "1"))

SQL = f"""
create table t(a integer primary key, b text, c real);
begin;
with recursive n(i) as (select 1 union all select i + 1 from n where i < {2000 * MORE})
insert into t select i, 'row ' || i, i * 1.5 from n;
commit;
create index ti on t(b);
select count(*), sum(a), avg(c) from t where b like '%7%';
select b from t order by c desc limit 5;
update t set b = upper(b) where a % 3 = 0;
select group_concat(b) from (select b from t where a < 30);
delete from t where a > 500;
select count(*), total(c) from t group by a % 7;
select json_object('a', 1, 'b', json_array(1, 2));
select no_such_function(1);
""" + "".join(f"select {i} * {i}, hex('{i}'), (select max(a) from t where a < {i});\n"
              for i in range(2000))

LUA = f"""
local t = {{}} for i = 1, {2000 * MORE} do t[i] = (i * 7919) % 1009 end table.sort(t)
print(t[1], t[#t], #t, string.format("%5.2f", math.pi), ("x"):rep(5))
local co = coroutine.wrap(function() for i = 1, 300 do coroutine.yield(i) end end)
local s = 0 for i = 1, 300 do s = s + co() end print(s)
print(pcall(function() error("here") end)) print(select(2, pcall(error, "message")))
for w in ("a b c"):gmatch("%a") do io.write(w, ",") end print()
setmetatable(t, {{__index = function(_, k) return k .. "!" end}}) print(t.foo)
print(pcall(string.rep, "x", -1), pcall(function() local function f() return f() + 1 end return f() end))
os.exit(9)
"""

C_SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct pair { int x; double y[4]; };
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(int argc, char **argv) {
    int v[100]; struct pair pair = { 0, { 1, 2, 3, 4 } };
    for (int i = 0; i < 100; i++) v[i] = (i * 31) % 101;
    qsort(v, 100, sizeof(*v), compare);
    printf("%d %s %g\\n", v[3], argv[0] ? "prog" : "", pair.y[2]);
    return argc + (int)strlen("abc");
}
"""

# What each is run with; a file "input" of text and one "source.c" are there.
PROGRAMS = {
    "shell": ["bash", "-c", SHELL],
    "shell with subshells": ["bash", "-c", f"""
        trap 'echo int' INT; trap 'echo usr1' USR1
        for i in {{1..{20 * MORE}}}; do (kill -USR1 $$; echo $(echo $i | tr 1 2) | (read x; echo "<$x>")); done
        kill -INT $$; set -o pipefail; false | true; echo $?
        exec 3< <(seq 5); cat <&3; cat <<< "here"; coproc cat; echo co >&${{COPROC[1]}}
        read line <&${{COPROC[0]}}; echo $line; kill $!; declare -A m=([a]=1); echo ${{m[a]}}
        (ulimit -c 0; kill -SEGV $BASHPID); echo $?; exit 5"""],
    # a static program, stripped: its setjmp has no name
    "static shell": ["busybox", "sh", "-c", SHELL.replace("trap 'echo bye' EXIT; ", "")],
    "perl": ["perl", "-e", "my $n = () = 'foo bar ' x 99 =~ /o/g; eval { die 5 }; print $n, $@; "
             "print `echo sub`; my %h; $h{$_ % 7} .= sort { $b <=> $a } $_ for 1..2000; "
             "print map { length $h{$_} } sort keys %h; local $SIG{ALRM} = sub { die \"late\\n\" }; "
             "eval { alarm 1; select undef, undef, undef, 5; }; print $@; exit 4"],
    "archive": ["sh", "-c", "seq 3000 | xz -1 | xz -d | gzip | gzip -d | tail -n 1; ls / | wc -l"],
    "xz": ["sh", "-c", "xz -T2 -3 -k -c input > i.xz && xz -t i.xz && xz -d -c i.xz | cmp - input && "
           "md5sum < i.xz; xz -d -c input; echo $?"],
    "zstd": ["sh", "-c", "zstd -q -T2 -9 -c input > i.zst && zstd -q -t i.zst && "
             "zstd -q -d -c i.zst | cmp - input && zstd -q -1 -c input | md5sum; zstd -q -d -c input"],
    "sqlite3": ["sh", "-c", "sqlite3 file.db < statements; sqlite3 file.db 'pragma integrity_check'; "
                "rm file.db; exit 3"],
    "lua": ["lua5.4", "program.lua"],
    "python": ["/usr/bin/python3", "-m", "unittest", "-q", "test.test_json.test_scanstring",
               "test.test_json.test_recursion", "test.test_re" + (".ReTests" if MORE == 1 else "")],
    # OCaml: its collector looks up return addresses
    "unison": ["sh", "-c", "rm -rf a b h; mkdir a b h; seq 3 > a/x; seq 5 > b/y; UNISON=h unison-2.52 a b -batch -silent -ui text "
               "> /dev/null; echo $?; diff -r a b && cat a/y"],
    "gcc": ["sh", "-c", "gcc -O2 -g source.c -o made && ./made 1 2; echo $?; md5sum < made; "
            "gcc -c missing.c"],
}


def run_plain(command, directory):
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=PATIENCE,
                          stdin=subprocess.DEVNULL)


def without_numbers(text):
    """Shells name their children by number, unittest the time that it took."""
    return re.sub(r"process \d+|line \d+: +\d+|in \d+\.\d+s", "", text)


@pytest.fixture
def inputs(tmp_path):
    (tmp_path / "input").write_text("".join(f"{i * i % 9973} some text\n" for i in range(20000 * MORE)))
    (tmp_path / "statements").write_text(SQL)
    (tmp_path / "program.lua").write_text(LUA)
    (tmp_path / "source.c").write_text(C_SOURCE)
    return tmp_path


@pytest.mark.parametrize("more", [[], ["--libs"]], ids=["program", "libs"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_what_it_does_untraced(graftrace, inputs, name, more):
    command = PROGRAMS[name]
    plain = run_plain(command, inputs)
    # Room for all of it: on a busy machine the file can be slower than the program may wait.
    traced = graftrace("record", "-b", "512M", *more, "--", *command, code=plain.returncode)
    assert traced.stdout == plain.stdout
    crashes = r"graftrace: process \d+ died.*\n(?:  thread .*\n(?:    .*\n)*|  no traced call\n)*"
    poor = r"graftrace: (?:\d+ of (?:the first program's )?\d+ traced functions have no name,|few calls:|calls of libraries are) .*\n"
    *errors, summary = re.sub(poor, "", re.sub(crashes, "", traced.stderr)).splitlines()
    assert without_numbers("\n".join(errors)).rstrip() == without_numbers(plain.stderr.rstrip())
    assert re.search(r"[1-9][0-9,]* calls.* 0 lost", summary), summary


def test_a_program_that_is_run_by_another_is_followed_with_libraries_too(graftrace):
    graftrace("record", "--libs", "--", "sh", "-c", "/bin/ls / > /dev/null; :")
    report = graftrace("report", "--by", "object").stdout
    assert "/ls" in report and "libc.so" in report


def test_what_has_a_hook_is_listed_as_watched(graftrace):
    listing = graftrace("functions", "--libs", "/bin/true").stdout
    assert re.search(r" execve +\(is watched", listing)
    assert re.search(r" _setjmp +\(entry only: ", listing)


@pytest.mark.parametrize("command", [
    "tar cf - words", "grep -c b words", "sed -n 1~7p words", "sort -r words", "make -s -f words", "diff words same",
    "find . -name w*", "git hash-object words", "awk {s+=length($0)}END{print(s)} words", "wc words",
], ids=lambda command: command.split()[0])
def test_tools_of_every_day_do_traced_what_they_do(command, graftrace, tmp_path):
    (tmp_path / "words").write_text("".join(f"# line {i} {'ab' * (i % 5)}\n" for i in range(500)) + "all:\n\t@echo made\n")
    (tmp_path / "same").write_bytes((tmp_path / "words").read_bytes())
    words = command.split(" ")
    plain = run_plain(words, tmp_path)
    traced = graftrace("record", "--libs", "--breakpoints", "-o", "a.data", "--", *words,
                       code=plain.returncode)
    assert traced.stdout == plain.stdout
