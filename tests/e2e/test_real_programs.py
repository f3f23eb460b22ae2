# SPDX-License-Identifier: MIT
"""Programs as the distribution ships them, traced whole, with all that they are linked with: they do
what they do untraced, and nothing is lost."""

import re
import subprocess

import pytest

SHELL = ("trap 'echo bye' EXIT; f() { for i in 1 2 3; do echo $i; done; }; f | sort -r; "
         "(cd /; exit 3); echo $?; x=$(echo $(/bin/echo deep)); echo $x; sleep 9 & sleep 0.3; kill $!; "
         "wait $! 2>/dev/null; echo $?; exit 7")

PROGRAMS = {
    "shell": ["bash", "-c", SHELL],
    # a static program, stripped: its setjmp has no name
    "static shell": ["busybox", "sh", "-c", SHELL.replace("trap 'echo bye' EXIT; ", "")],
    "perl": ["perl", "-e", "my $n = () = 'foo bar ' x 99 =~ /o/g; eval { die 5 }; print $n, $@; "
             "print `echo sub`; exit 4"],
    "archive": ["sh", "-c", "seq 3000 | xz -1 | xz -d | gzip | gzip -d | tail -n 1; ls / | wc -l"],
}


@pytest.mark.parametrize("more", [[], ["--libs"]], ids=["program", "libs"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_what_it_does_untraced(graftrace, tmp_path, name, more):
    command = PROGRAMS[name]
    plain = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60,
                           stdin=subprocess.DEVNULL)
    traced = graftrace("record", *more, "--", *command, code=plain.returncode)
    assert traced.stdout == plain.stdout
    *errors, summary = traced.stderr.splitlines()
    numbers = re.compile(r"process \d+")  # the shell names its children
    assert numbers.sub("", "\n".join(errors)) == numbers.sub("", plain.stderr.rstrip())
    assert re.search(r"[1-9][0-9,]* calls.* 0 lost", summary), summary


def test_a_program_that_is_run_by_another_is_followed_with_libraries_too(graftrace):
    graftrace("record", "--libs", "--", "sh", "-c", "/bin/ls / > /dev/null; :")
    report = graftrace("report", "--by", "object").stdout
    assert "/ls" in report and "libc.so" in report


def test_what_has_a_hook_is_listed_as_watched(graftrace):
    listing = graftrace("functions", "--libs", "/bin/true").stdout
    assert re.search(r" execve +\(is watched", listing)
    assert re.search(r" _setjmp +\(entry only: ", listing)
